/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the program share that runs in the emulated machine: see dostp.c. */
#ifndef DOSTP_GUEST_H
#define DOSTP_GUEST_H

#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX (256 << 10)
#define STATS "/proc/net/dostp/stats"
#define COUNTS_MAX 64

struct sockaddr_ll;

extern char buffer[MESSAGE_MAX + 1];

/* Says what failed, with errno, and ends. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
/* A socket of the module with this port. */
int bound_socket(int port);
/* The commands of the other files; -1: it is none of theirs. */
int play_frames(int count, char **word);
int play_hostile(int count, char **word);
int keep_keys(int count, char **word);

/* All lines of the node's counts: `NAME NUMBER`. */
struct counts {
	int number;
	char name[COUNTS_MAX][32];
	unsigned long value[COUNTS_MAX];
};

void read_counts(struct counts *counts);
unsigned long count(const struct counts *counts, const char *name);

/* A socket that sends to an interface, and hears the frames that come there. */
int raw_socket(const char *interface, struct sockaddr_ll *to);
void send_raw(int raw, const struct sockaddr_ll *to, const uint8_t *from, const uint8_t *bytes,
	      size_t length);
void write_setting(const char *name, const char *value);
/* Gives the number of bytes. */
size_t unhex(const char *digits, uint8_t *bytes);
/* The last byte of a header. */
uint8_t check(const uint8_t *bytes);

/* Writes words to the module's file of keys. */
void write_keys(const char *words);
/*
 * Answers the next HELLO of the node as if this were the node with that address and boot number. The
 * socket is older than that HELLO.
 */
void believe(int raw, const struct sockaddr_ll *to, const uint8_t *secret, uint16_t source, uint64_t boot);

#endif
