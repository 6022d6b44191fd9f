/* SPDX-License-Identifier: Apache-2.0 */
/* What the two parts of the program share that runs in the emulated machine: see dostp.c. */
#ifndef DOSTP_GUEST_H
#define DOSTP_GUEST_H

#define MESSAGE_MAX (256 << 10)

extern char buffer[MESSAGE_MAX + 1];

/* Says what failed, with errno, and ends. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
/* A socket of the module with this port. */
int bound_socket(int port);
/* The commands of dostp_frames.c; -1: it is none of them. */
int play_frames(int count, char **word);

#endif
