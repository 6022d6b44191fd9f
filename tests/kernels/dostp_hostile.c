// SPDX-License-Identifier: Apache-2.0
/*
 * Hostile frames, played into one interface of a cable. The counts of the node at the other end (pair1) show
 * what it makes of them.
 *
 *   hostile INTERFACE FILE   plays every frame of the file with each byte changed; FILE is made by dostp.rs
 *   storm INTERFACE          first fragments, until the module is gone
 *   reflect INTERFACE        returns the HELLO of a node that starts, as it is and with another link address
 *                            in it: the node must take it for its own and keep its address
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

#define KEYS "/proc/net/dostp/keys"

/* A payload of the link that is to be changed. */
struct victim {
	uint8_t from[8], bytes[2048];
	size_t length;
};

/* Reads the next frame of the file. */
static bool next_victim(FILE *file, struct victim *victim)
{
	static char line[1 << 16], digits[1 << 15];
	char from_digits[16], outcome[16], fault[16];

	while (fgets(line, sizeof(line), file)) {
		fault[0] = 0;
		if (sscanf(line, "%12s %32767s %15s %15s", from_digits, digits, outcome, fault) < 3 ||
		    !strncmp(line, "receiver", 8) || !strncmp(line, "keys", 4))
			continue;
		/* A tag that is wrong by one bit would be made right by a change. */
		if (!strcmp(outcome, "dropped") && !strncmp(fault, "auth", 4))
			continue;
		unhex(from_digits, victim->from);
		victim->length = strcmp(digits, "-") ? unhex(digits, victim->bytes) : 0;
		return true;
	}
	return false;
}

static bool is_joined_with_keys(const struct victim *victim)
{
	return victim->length > 1 && !(~victim->bytes[1] & (DOSTP_AUTH | DOSTP_MORE));
}

/* Whether the node has keys and takes messages in the mode of a trailer that begins with this byte. */
static bool is_mode_of_node(uint8_t key)
{
	char words[128] = "";
	FILE *file = fopen(KEYS, "r");

	if (!file)
		fail(KEYS);
	words[fread(words, 1, sizeof(words) - 1, file)] = 0;
	fclose(file);
	return strstr(words, key & 0x80 ? "mode aead" : "mode mac");
}

/* Where the counter word behind a payload begins, and where a frame with keys ends. */
static size_t word_of(const uint8_t *frame)
{
	return DOSTP_HEADER_BYTES + (frame[12] << 8 | frame[13]);
}

static size_t end_of(const uint8_t *frame)
{
	return word_of(frame) + (frame[word_of(frame)] & 0x80 ? 24 : 16);
}

/* Joined frames with keys that are played: payloads sent, and right tags that must be found in them. */
struct joined {
	int raw;
	struct sockaddr_ll to;
	unsigned long payloads, right;
	unsigned long payloads_before, right_before;
};

/* Frames whose tag was right: no socket has their port, and each counter is new once. */
static unsigned long right_tags(const struct counts *counts)
{
	return count(counts, "dropped_closed") + count(counts, "dropped_replay");
}

static void send_joined(struct joined *joined, const struct victim *victim, size_t length,
			unsigned long right)
{
	send_raw(joined->raw, &joined->to, victim->from, victim->bytes, length);
	joined->payloads++;
	joined->right += right;
}

/* Waits until the node has seen all that was sent, and has found as many right tags as there are. */
static void settle_joined(const struct joined *joined, size_t at)
{
	unsigned long payloads = 0, right = 0;
	struct counts counts;

	for (int tries = 0; tries < 10000; tries++) {
		read_counts(&counts);
		payloads = count(&counts, "frames_received") - joined->payloads_before;
		right = right_tags(&counts) - joined->right_before;
		if (payloads == joined->payloads && right == joined->right)
			return;
		usleep(1000);
	}
	fail("changed at %zu: %lu payloads of %lu seen, %lu tags right and not %lu", at, payloads,
	     joined->payloads, right, joined->right);
}

/*
 * Sends joined frames as they are, with each bit changed, and cut at each byte. A change in a header, or in
 * the mode that says where its frame ends, hides that frame and all behind it; any other spoils its own
 * frame alone.
 */
static void change_joined(struct joined *joined, struct victim *victim)
{
	uint8_t *bytes = victim->bytes;
	bool is_taken = is_mode_of_node(bytes[word_of(bytes)]);
	unsigned long frames = 1, before = 0;
	size_t start, end;

	for (start = 0; bytes[start + 1] & DOSTP_MORE; start += end_of(bytes + start))
		frames++;
	send_joined(joined, victim, victim->length, is_taken ? frames : 0);
	settle_joined(joined, 0);
	for (start = 0; before < frames; before++, start = end) {
		size_t word = start + word_of(bytes + start);

		end = start + end_of(bytes + start);
		for (size_t at = start; at < end; at++) {
			uint8_t kept = bytes[at];

			for (int bit = 0; bit < 8; bit++) {
				bool hides = at < start + DOSTP_HEADER_BYTES || (at == word && bit == 7);

				bytes[at] = kept ^ (1 << bit);
				send_joined(joined, victim, victim->length,
					    !is_taken ? 0 : hides ? before : frames - 1);
			}
			bytes[at] = kept;
			send_joined(joined, victim, at, is_taken ? before : 0);
			settle_joined(joined, at);
		}
	}
}

/*
 * The joined frames with keys of the file, while no socket has their port: the untouched ones are decrypted,
 * and are no messages. Exactly these must be found right.
 */
static void hostile_joined(const char *interface, FILE *file)
{
	struct joined joined = {};
	struct counts counts;
	struct victim victim;

	joined.raw = raw_socket(interface, &joined.to);
	read_counts(&counts);
	joined.payloads_before = count(&counts, "frames_received");
	joined.right_before = right_tags(&counts);
	while (next_victim(file, &victim))
		if (is_joined_with_keys(&victim))
			change_joined(&joined, &victim);
	close(joined.raw);
	printf("hostile: %lu times joined frames with keys, %lu untouched ones were right\n", joined.payloads,
	       joined.right);
}

/* Sends every frame of the file with each bit of its first 96 bytes changed, and cut at each of them. */
static int hostile(const char *interface, const char *path)
{
	FILE *file = fopen(path, "r");
	struct counts counts;
	struct victim victim;
	unsigned long frames = 0, before;
	struct sockaddr_ll to;
	int raw, fd;

	if (!file)
		fail("%s", path);
	hostile_joined(interface, file);
	rewind(file);
	raw = raw_socket(interface, &to);
	fd = bound_socket(2000);
	read_counts(&counts);
	before = count(&counts, "frames_received");
	while (next_victim(file, &victim)) {
		uint8_t *bytes = victim.bytes;
		size_t most = victim.length < 96 ? victim.length : 96;

		if (is_joined_with_keys(&victim))
			continue;
		for (size_t at = 0; at < most; at++) {
			uint8_t kept = bytes[at];

			for (int bit = 0; bit < 8; bit++) {
				bytes[at] = kept ^ (1 << bit);
				send_raw(raw, &to, victim.from, bytes, victim.length);
			}
			bytes[at] = kept;
			send_raw(raw, &to, victim.from, bytes, at);
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

/* Waits for a HELLO of the node: its payload. */
static size_t hear_hello(int raw, uint8_t *bytes, size_t room)
{
	uint8_t frame[2048];

	for (;;) {
		ssize_t length = recv(raw, frame, sizeof(frame), 0);

		if (length < 0)
			fail("no HELLO");
		if (length < 14 + DOSTP_HEADER_BYTES + DOSTP_GREETING_BYTES || frame[14] != 0x10 + DOSTP_HELLO)
			continue;
		length -= 14;
		memcpy(bytes, frame + 14, (size_t)length < room ? (size_t)length : room);
		return length;
	}
}

/* Sends a frame, and waits until the node has counted it under this name. */
static void must_count(int raw, const struct sockaddr_ll *to, const uint8_t *from, const uint8_t *bytes,
		       size_t length, const char *name)
{
	struct counts counts;
	unsigned long before;

	read_counts(&counts);
	before = count(&counts, name);
	send_raw(raw, to, from, bytes, length);
	for (int tries = 0; tries < 10000; tries++) {
		read_counts(&counts);
		if (count(&counts, name) > before)
			return;
		usleep(1000);
	}
	fail("no %s", name);
}

static int reflect(const char *interface)
{
	static const uint8_t above[6] = { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xfe };
	int raw;
	struct sockaddr_ll to;
	struct counts counts;
	unsigned long conflicts;
	uint8_t bytes[128];
	size_t length;

	raw = raw_socket(interface, &to);
	read_counts(&counts);
	conflicts = count(&counts, "dropped_conflict");
	write_setting("cluster", "0");
	length = hear_hello(raw, bytes, sizeof(bytes));
	must_count(raw, &to, above, bytes, length, "dropped_relayed");
	memcpy(bytes + DOSTP_HEADER_BYTES + 26, above, sizeof(above));
	/* With keys the tag covers the link address. */
	must_count(raw, &to, above, bytes, length, bytes[1] & DOSTP_AUTH ? "dropped_auth" : "dropped_own");
	read_counts(&counts);
	close(raw);
	printf("reflect: %lu conflicts, refused %lu\n", count(&counts, "dropped_conflict") - conflicts,
	       count(&counts, "refused"));
	return count(&counts, "refused");
}

int play_hostile(int count, char **word)
{
	if (count == 3 && !strcmp(word[1], "reflect"))
		return reflect(word[2]);
	if (count == 4 && !strcmp(word[1], "hostile"))
		return hostile(word[2], word[3]);
	if (count == 4 && !strcmp(word[1], "flood"))
		return flood(word[2], strtoul(word[3], NULL, 10));
	if (count == 3 && !strcmp(word[1], "storm"))
		return storm(word[2]);
	return -1;
}
