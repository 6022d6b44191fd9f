// SPDX-License-Identifier: Apache-2.0
/*
 * Keys, from outside of the module: the functions of docs/dostp.md, section "Keys", written once more,
 * so that the module is compared with the page and not with its own code.
 *
 *   believe INTERFACE SECRET    makes the node at the other end (pair1) believe that 10.0.0.7 is here
 *   replay INTERFACE SECRET     plays frames of 10.0.0.7 with old counters, and of more ports than windows
 *   passed INTERFACE SECRET     plays a frame of 10.0.0.7 from another link address: it moves nobody
 *   unprivileged                writes keys as root without CAP_NET_ADMIN, which must be refused
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dostp_guest.h"

#define KEYS "/proc/net/dostp/keys"
#define HEADER 16
#define GREETING 32
#define HELLO 2
#define HELLO_REPLY 3
#define WHOLE_AUTH 7

static uint32_t rotate32(uint32_t word, int by)
{
	return word << by | word >> (32 - by);
}

static uint64_t rotate64(uint64_t word, int by)
{
	return word << by | word >> (64 - by);
}

static void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
	*a += *b, *d = rotate32(*d ^ *a, 16);
	*c += *d, *b = rotate32(*b ^ *c, 12);
	*a += *b, *d = rotate32(*d ^ *a, 8);
	*c += *d, *b = rotate32(*b ^ *c, 7);
}

/* The first 16 bytes of HChaCha20, as two numbers: the key of a node in mode `mac`. */
static void derive(const uint8_t *secret, uint64_t boot, uint16_t source, uint64_t key[2])
{
	uint8_t bytes[64] = "expand 32-byte k";
	uint32_t x[16];

	memcpy(bytes + 16, secret, 32);
	memcpy(bytes + 48, "dstp", 4);
	for (int i = 0; i < 8; i++)
		bytes[52 + i] = boot >> (56 - 8 * i);
	bytes[60] = source >> 8;
	bytes[61] = source & 0xff;
	memcpy(x, bytes, sizeof(x));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			quarter(x + i, x + 4 + i, x + 8 + i, x + 12 + i);
		for (int i = 0; i < 4; i++)
			quarter(x + i, x + 4 + (i + 1) % 4, x + 8 + (i + 2) % 4, x + 12 + (i + 3) % 4);
	}
	memcpy(key, x, 16);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1], v[1] = rotate64(v[1], 13) ^ v[0], v[0] = rotate64(v[0], 32);
		v[2] += v[3], v[3] = rotate64(v[3], 16) ^ v[2];
		v[0] += v[3], v[3] = rotate64(v[3], 21) ^ v[0];
		v[2] += v[1], v[1] = rotate64(v[1], 17) ^ v[2], v[2] = rotate64(v[2], 32);
	}
}

/* SipHash-2-4 of some bytes. */
static uint64_t sip(const uint64_t key[2], const uint8_t *bytes, size_t length)
{
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			  key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573 };

	for (size_t at = 0; at <= length; at += 8) {
		size_t left = length - at < 8 ? length - at : 8;
		uint64_t word = 0;

		memcpy(&word, bytes + at, left);
		word |= left < 8 ? (uint64_t)length << 56 : 0;
		v[3] ^= word;
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The tag of a frame with a payload of so many bytes: a greeting, or nothing. */
static uint64_t tag_of(const uint8_t *secret, uint64_t boot, const uint8_t *frame, size_t payload)
{
	uint8_t input[HEADER + 8 + GREETING];
	uint64_t key[2];

	derive(secret, boot, frame[2] << 8 | frame[3], key);
	memcpy(input, frame, HEADER);
	memcpy(input + HEADER, frame + HEADER + payload, 8);
	memcpy(input + HEADER + 8, frame + HEADER, payload);
	return sip(key, input, HEADER + 8 + payload);
}

/* The tag of a control frame without padding. */
static uint64_t tag(const uint8_t *secret, uint64_t boot, const uint8_t *frame)
{
	return tag_of(secret, boot, frame, GREETING);
}

static void write_u64(uint8_t *bytes, uint64_t number)
{
	for (int i = 7; i >= 0; i--, number >>= 8)
		bytes[i] = number & 0xff;
}

static uint64_t read_u64(const uint8_t *bytes)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | bytes[i];
	return number;
}

void write_keys(const char *words)
{
	int fd = open(KEYS, O_WRONLY);

	if (fd < 0 || write(fd, words, strlen(words)) < 0)
		fail("%s: %.6s", KEYS, words);
	close(fd);
}

/* Waits for a HELLO of the node; its tag must be right. Gives its challenge. */
static uint64_t challenge(int raw, const uint8_t *secret)
{
	uint8_t frame[2048];
	uint64_t found;

	for (;;) {
		ssize_t length = recv(raw, frame, sizeof(frame), 0);
		const uint8_t *bytes = frame + 14;

		if (length < 0)
			fail("no HELLO with keys");
		if (length < 14 + HEADER + GREETING + 16 || bytes[0] != 0x10 + HELLO || bytes[1] != WHOLE_AUTH)
			continue;
		memcpy(&found, bytes + HEADER + GREETING + 8, 8);
		if (found != tag(secret, read_u64(bytes + HEADER), bytes))
			fail("the tag of a HELLO is wrong");
		if (read_u64(bytes + HEADER + 8))
			return read_u64(bytes + HEADER + 8);
	}
}

void believe(int raw, const struct sockaddr_ll *to, const uint8_t *secret, uint16_t source, uint64_t boot)
{
	uint8_t frame[HEADER + GREETING + 16] = { 0x10 + HELLO_REPLY, WHOLE_AUTH, source >> 8, source & 0xff, 0, 8 };
	uint8_t from[6] = { 2, 0, 0, 0, 0, source & 0xff };
	uint64_t found;

	frame[13] = GREETING;
	frame[15] = check(frame);
	write_u64(frame + HEADER, boot);
	write_u64(frame + HEADER + 16, challenge(raw, secret));
	frame[HEADER + 24] = 1500 >> 8;
	frame[HEADER + 25] = 1500 & 0xff;
	memcpy(frame + HEADER + 26, from, sizeof(from));
	write_u64(frame + HEADER + GREETING, 1);
	found = tag(secret, boot, frame);
	memcpy(frame + HEADER + GREETING + 8, &found, 8);
	send_raw(raw, to, from, frame, sizeof(frame));
}

/* Where the peer of these frames is, and what is known of it. */
struct sender {
	int raw;
	struct sockaddr_ll to;
	uint8_t secret[64];
	uint64_t boot;
	unsigned long sent; /* frames that the node must have seen */
};

/* Sends an empty message to port 2000, from this link address and port and with this counter. */
static void send_sealed_from(struct sender *sender, const uint8_t *from, uint16_t port, uint64_t counter)
{
	uint8_t frame[HEADER + 16] = { 0x11, WHOLE_AUTH, 0, 7, 0, 8, port >> 8, port & 0xff, 2000 >> 8, 2000 & 0xff,
				       counter >> 8 & 0xff, counter & 0xff };
	uint64_t found;

	frame[15] = check(frame);
	write_u64(frame + HEADER, counter);
	found = tag_of(sender->secret, sender->boot, frame, 0);
	memcpy(frame + HEADER + 8, &found, 8);
	send_raw(sender->raw, &sender->to, from, frame, sizeof(frame));
	sender->sent++;
}

static void send_sealed(struct sender *sender, uint16_t port, uint64_t counter)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 7 };

	send_sealed_from(sender, own, port, counter);
}

/* Waits until the node has seen what was sent; gives its counts. */
static void settle(const struct sender *sender, struct counts *counts)
{
	do {
		usleep(1000);
		read_counts(counts);
	} while (count(counts, "frames_received") < sender->sent);
}

/* Sends one of port 1 with this counter: it must be taken, or dropped as a replay. */
static void must_be(struct sender *sender, uint64_t counter, bool taken)
{
	const char *name = taken ? "messages_received" : "dropped_replay";
	struct counts counts;
	unsigned long before;

	read_counts(&counts);
	before = count(&counts, name);
	send_sealed(sender, 1, counter);
	settle(sender, &counts);
	if (count(&counts, name) != before + 1)
		fail("counter %lu: no %s", (unsigned long)counter, name);
}

/* Begins the node anew, and makes it believe 10.0.0.7. */
static void begin_sender(struct sender *sender, const char *interface, const char *secret)
{
	struct counts counts;

	sender->boot = 0x1111111122222222;
	sender->raw = raw_socket(interface, &sender->to);
	unhex(secret, sender->secret);
	write_setting("cluster", "0");
	believe(sender->raw, &sender->to, sender->secret, 7, sender->boot);
	do
		read_counts(&counts);
	while (!count(&counts, "peers"));
	sender->sent = count(&counts, "frames_received");
}

/* Whether the table of peers has 10.0.0.7 at its own link address. */
static bool is_at_home(void)
{
	FILE *file = fopen("/proc/net/dostp/peers", "r");
	char line[256] = "";

	if (!file || !fgets(line, sizeof(line), file))
		fail("no peers");
	fclose(file);
	return !strncmp(line, "10.0.0.7 02:00:00:00:00:07 ", 27);
}

static int passed(const char *interface, const char *secret)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x66 };
	struct sender sender = {};
	int fd = bound_socket(2000);
	struct counts counts;
	uint8_t frame[2048];

	begin_sender(&sender, interface, secret);
	send_sealed_from(&sender, other, 1, 5000);
	settle(&sender, &counts);
	if (recv(fd, buffer, sizeof(buffer), 0) || !is_at_home())
		fail("passed on");
	/* Whoever passed it on is asked to prove that the sender is there. */
	do {
		if (recv(sender.raw, frame, sizeof(frame), 0) < 0)
			fail("no PROBE");
	} while (memcmp(frame, other, 6) || frame[14] != 0x14);
	close(fd);
	printf("passed on: taken, and nobody moved\n");
	return 0;
}

static int replay(const char *interface, const char *secret)
{
	struct sender sender = {};
	int fd = bound_socket(2000);
	struct counts counts;
	unsigned long before;

	begin_sender(&sender, interface, secret);

	must_be(&sender, 5000, true);
	must_be(&sender, 5000, false);
	must_be(&sender, 5000 - 1023, true);
	must_be(&sender, 5000 - 1024, false);
	must_be(&sender, 4500, true);
	must_be(&sender, 4500, false);
	must_be(&sender, 9000, true);
	must_be(&sender, 5001, false);

	read_counts(&counts);
	before = count(&counts, "dropped_replay");
	for (int port = 2; port <= 5000; port++) {
		send_sealed(&sender, port, 10);
		if (port % 64 == 0 || port == 5000)
			settle(&sender, &counts);
	}
	printf("replay: %lu windows, %lu ports without one were not heard\n", count(&counts, "replay_windows"),
	       count(&counts, "dropped_replay") - before);
	while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) >= 0)
		;
	/* A port that has a window is heard. */
	must_be(&sender, 9001, true);
	close(fd);
	return 0;
}

static int unprivileged(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int fd;

	if (syscall(SYS_capget, &header, data))
		fail("capget");
	data[0].effective &= ~(1u << CAP_NET_ADMIN);
	if (syscall(SYS_capset, &header, data))
		fail("capset");
	fd = open(KEYS, O_WRONLY);
	if (fd < 0 || write(fd, "off", 3) >= 0 || errno != EPERM)
		fail("keys were written");
	printf("unprivileged: refused\n");
	return 0;
}

int keep_keys(int count, char **word)
{
	if (count == 4 && !strcmp(word[1], "believe")) {
		struct sockaddr_ll to;
		uint8_t secret[64];
		int raw = raw_socket(word[2], &to);

		unhex(word[3], secret);
		write_setting("cluster", "0");
		believe(raw, &to, secret, 7, 0x1111111122222222);
		return 0;
	}
	if (count == 4 && !strcmp(word[1], "replay"))
		return replay(word[2], word[3]);
	if (count == 4 && !strcmp(word[1], "passed"))
		return passed(word[2], word[3]);
	if (count == 2 && !strcmp(word[1], "unprivileged"))
		return unprivileged();
	return -1;
}
