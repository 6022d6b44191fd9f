/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the program for the emulated machine share: see dostp.c. */
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
/* Run a command of the file's, and give its exit status; -1: the file has no such command. */
int play_frames(int count, char **word);
int play_hostile(int count, char **word);
int play_shared(int count, char **word);
int keep_keys(int count, char **word);

/* The node's counts: the lines `NAME NUMBER` of STATS. */
struct counts {
	int number;
	char name[COUNTS_MAX][32];
	unsigned long value[COUNTS_MAX];
};

void read_counts(struct counts *counts);
unsigned long count(const struct counts *counts, const char *name);

/* A packet socket that sends by an interface, and receives the module's frames there for 20 s at most. */
int raw_socket(const char *interface, struct sockaddr_ll *to);
void send_raw(int raw, const struct sockaddr_ll *to, const uint8_t *from, const uint8_t *bytes,
	      size_t length);
void write_setting(const char *name, const char *value);
/* Reads hexadecimal digits; gives the number of bytes. */
size_t unhex(const char *digits, uint8_t *bytes);
/* The check of a header's first 15 bytes, which is its last byte (CRC-8). */
uint8_t check(const uint8_t *bytes);

/* Writes words to the module's file of keys. */
void write_keys(const char *words);
/*
 * Makes the node believe a peer: waits for a HELLO of the node, and answers as the node with that address and
 * boot number does. The socket must be open before the HELLO is sent.
 */
void believe(int raw, const struct sockaddr_ll *to, const uint8_t *secret, uint16_t source, uint64_t boot);

#endif
