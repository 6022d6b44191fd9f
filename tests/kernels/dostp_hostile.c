// SPDX-License-Identifier: Apache-2.0
/*
 * Hostile frames, played into one interface of a cable. The counts of the node at the other end (pair1) show
 * what it makes of them.
 *
 *   hostile INTERFACE FILE   plays every frame of the file with each byte changed; FILE is made by dostp.rs
 *   storm INTERFACE          first fragments, until the module is gone
 *   flood INTERFACE NUMBER   first fragments of so many messages, from as many senders and ports
 */
#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../kernel/dostp/header.h"
#include "dostp_guest.h"

/* Sends every frame of the file with each bit of its first 96 bytes changed, and cut at each of them. */
static int hostile(const char *interface, const char *path)
{
	static char line[1 << 16], digits[1 << 15];
	FILE *file = fopen(path, "r");
	struct counts counts;
	unsigned long frames = 0;
	struct sockaddr_ll to;
	int raw = raw_socket(interface, &to), fd = bound_socket(2000);
	char from_digits[16], outcome[16], fault[16];

	if (!file)
		fail("%s", path);
	read_counts(&counts);
	unsigned long before = count(&counts, "frames_received");

	while (fgets(line, sizeof(line), file)) {
		uint8_t from[8], bytes[2048];
		size_t length, most;

		fault[0] = 0;
		if (sscanf(line, "%12s %32767s %15s %15s", from_digits, digits, outcome, fault) < 3 ||
		    !strncmp(line, "receiver", 8) || !strncmp(line, "keys", 4))
			continue;
		/* Of those whose tag is wrong by one bit a change would make right ones. */
		if (!strcmp(outcome, "dropped") && !strcmp(fault, "auth"))
			continue;
		unhex(from_digits, from);
		length = strcmp(digits, "-") ? unhex(digits, bytes) : 0;
		/* Of joined frames with tags the others stay right. */
		if (length > 1 && !(~bytes[1] & (DOSTP_AUTH | DOSTP_MORE)))
			continue;
		most = length < 96 ? length : 96;
		for (size_t at = 0; at < most; at++) {
			uint8_t kept = bytes[at];

			for (int bit = 0; bit < 8; bit++) {
				bytes[at] = kept ^ (1 << bit);
				send_raw(raw, &to, from, bytes, length);
			}
			bytes[at] = kept;
			send_raw(raw, &to, from, bytes, at);
			frames += 9;
			while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) >= 0)
				;
		}
	}
	/* The queue of the processor that takes frames is bounded: some may be lost before the node. */
	read_counts(&counts);
	printf("hostile: %lu frames sent, %lu seen, %lu bytes under way\n", frames,
	       count(&counts, "frames_received") - before, count(&counts, "bytes_under_way"));
	return count(&counts, "frames_received") - before < frames / 2;
}

uint8_t check(const uint8_t *bytes)
{
	uint8_t state = 0xff;

	for (int at = -1; at < 15; at++) {
		state ^= at < 0 ? 0 : bytes[at];
		for (int bit = 0; bit < 8; bit++)
			state = state & 0x80 ? state << 1 ^ 0x2f : state << 1;
	}
	return state ^ 0xff;
}

/* The first fragment of the i-th message, to port 2000. */
static void send_first(int raw, const struct sockaddr_ll *to, unsigned long i)
{
	static uint8_t frame[1500] = {
		0x11, 1, 0, 0, 0, 8, 0, 0, 2000 >> 8, 2000 & 0xff, 0, 0, 1484 >> 8, 1484 & 0xff,
	};
	uint16_t source = 0x100 + i % 5000, port = 1 + i / 5000 % 60000;
	uint8_t from[6] = { 2, 0, 0, 1, source >> 8, source & 0xff };

	frame[2] = source >> 8;
	frame[3] = source & 0xff;
	frame[6] = port >> 8;
	frame[7] = port & 0xff;
	frame[15] = check(frame);
	send_raw(raw, to, from, frame, sizeof(frame));
}

/* First fragments, until the module's file of counts is gone. */
static int storm(const char *interface)
{
	struct sockaddr_ll to;
	int raw = raw_socket(interface, &to);

	for (unsigned long i = 0; i % 512 || !access(STATS, F_OK); i++)
		send_first(raw, &to, i);
	printf("storm: the module is gone\n");
	return 0;
}

/* First fragments, which the node may hold for a second each: its bounds must hold. */
static int flood(const char *interface, unsigned long number)
{
	unsigned long bytes_most = 0, messages_most = 0;
	struct sockaddr_ll to;
	struct counts counts;
	int raw = raw_socket(interface, &to), fd = bound_socket(2000);

	for (unsigned long i = 0; i < number; i++) {
		send_first(raw, &to, i);
		if (i % 256)
			continue;
		read_counts(&counts);
		if (count(&counts, "bytes_under_way") > bytes_most)
			bytes_most = count(&counts, "bytes_under_way");
		if (count(&counts, "messages_under_way") > messages_most)
			messages_most = count(&counts, "messages_under_way");
	}
	close(fd);
	printf("flood: at most %lu bytes and %lu messages under way, %lu peers\n", bytes_most, messages_most,
	       count(&counts, "peers"));
	return bytes_most > 4 << 20 || messages_most > 4096 || count(&counts, "peers") > 4096 || !bytes_most;
}

int play_hostile(int count, char **word)
{
	if (count == 4 && !strcmp(word[1], "hostile"))
		return hostile(word[2], word[3]);
	if (count == 4 && !strcmp(word[1], "flood"))
		return flood(word[2], strtoul(word[3], NULL, 10));
	if (count == 3 && !strcmp(word[1], "storm"))
		return storm(word[2]);
	return -1;
}
