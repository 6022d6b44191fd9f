// SPDX-License-Identifier: Apache-2.0
/*
 * Frames that no socket would send, played into one interface of a cable; the node at the other end
 * (pair1) is looked at by its counts.
 *
 *   golden INTERFACE FILE    plays golden frames, and compares what the node does with what they say; FILE
 *                            is made by dostp.rs
 *   hostile INTERFACE FILE   plays every frame of the file with each byte changed
 *   storm INTERFACE          first fragments, until the module is gone
 *   flood INTERFACE NUMBER   first fragments of so many messages, from as many senders and ports
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dostp_guest.h"

#define ETHER_TYPE 0x88b5
#define STATS "/proc/net/dostp/stats"
#define FAULTS_MAX 64

static const uint8_t receiver[6] = { 2, 0, 0, 0, 0, 8 };

/* All lines of the node's counts: `NAME NUMBER`. */
struct counts {
	int number;
	char name[FAULTS_MAX][32];
	unsigned long value[FAULTS_MAX];
};

static void read_counts(struct counts *counts)
{
	FILE *file = fopen(STATS, "r");

	if (!file)
		fail(STATS);
	counts->number = 0;
	while (counts->number < FAULTS_MAX && fscanf(file, "%31s %lu", counts->name[counts->number],
						     &counts->value[counts->number]) == 2)
		counts->number++;
	fclose(file);
}

static unsigned long count(const struct counts *counts, const char *name)
{
	for (int i = 0; i < counts->number; i++)
		if (!strcmp(counts->name[i], name))
			return counts->value[i];
	fail("no count %s", name);
}

static int raw_socket(const char *interface, struct sockaddr_ll *to)
{
	int raw = socket(AF_PACKET, SOCK_RAW, 0);

	*to = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_halen = 6 };
	to->sll_ifindex = if_nametoindex(interface);
	if (raw < 0 || !to->sll_ifindex)
		fail("%s", interface);
	return raw;
}

static void send_raw(int raw, const struct sockaddr_ll *to, const uint8_t *from, const uint8_t *bytes,
		     size_t length)
{
	uint8_t frame[2048];

	memcpy(frame, receiver, 6);
	memcpy(frame + 6, from, 6);
	frame[12] = ETHER_TYPE >> 8;
	frame[13] = ETHER_TYPE & 0xff;
	memcpy(frame + 14, bytes, length);
	if (sendto(raw, frame, 14 + length, 0, (const void *)to, sizeof(*to)) < 0)
		fail("send");
}

static void write_setting(const char *name, const char *value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/dostp/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("%s", path);
	close(fd);
}

static size_t unhex(const char *digits, uint8_t *bytes)
{
	size_t length = 0;
	unsigned int byte;

	for (; sscanf(digits, "%2x", &byte) == 1 && digits[1] && digits[1] != '\n'; digits += 2)
		bytes[length++] = byte;
	return length;
}

/* Waits until the node has seen so many frames. */
static void wait_for_frames(struct counts *counts, unsigned long frames)
{
	do
		read_counts(counts);
	while (count(counts, "frames_received") < frames);
}

/* What the node did between two readings and what the socket got, in the words of the files. */
static void outcome(const struct counts *before, const struct counts *after, int fd, char *words, size_t room)
{
	ssize_t length = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC);
	bool dropped = false, order = false;

	*words = 0;
	for (int i = 0; i < after->number; i++) {
		const char *name = after->name[i];

		if (strncmp(name, "dropped_", 8) || after->value[i] == count(before, name))
			continue;
		snprintf(words + strlen(words), room - strlen(words), "%sdropped %s", dropped ? ", " : "", name + 8);
		dropped = true;
		order |= !strcmp(name, "dropped_order");
	}
	if (length >= 0)
		snprintf(words + strlen(words), room - strlen(words), "%smessage %zd", dropped ? ", " : "", length);
	else if (count(after, "control_received") > count(before, "control_received"))
		snprintf(words + strlen(words), room - strlen(words), "%speer", dropped ? ", " : "");
	else if (!dropped || (order && count(after, "messages_under_way")))
		snprintf(words + strlen(words), room - strlen(words), "%sstored", dropped ? ", " : "");
}

/* Lines: `receiver NAME CLUSTER`, or `FROM HEX OUTCOME`. */
struct played {
	int raw, fd, files, frames;
	struct sockaddr_ll to;
	struct counts before;
	unsigned long sent; /* since `before` was read */
	char name[64];
};

/* Compares what was done with the frames that were sent last with what had to be. */
static void settle(struct played *played, const char *digits, const char *expected)
{
	struct counts after;
	char words[256];

	wait_for_frames(&after, count(&played->before, "frames_received") + played->sent);
	outcome(&played->before, &after, played->fd, words, sizeof(words));
	if (strcmp(words, expected))
		fail("%s: %s: was \"%s\" and had to be \"%s\"", played->name, digits, words, expected);
	played->before = after;
	played->sent = 0;
}

/*
 * Plays one frame. Those that wait for others are only sent, for a message has a second: that nothing
 * was dropped of them is seen with the next frame that does not, or at the file's end.
 */
static void play(struct played *played, const char *from_digits, const char *digits, const char *expected)
{
	uint8_t from[8], bytes[2048];
	size_t length = strcmp(digits, "-") ? unhex(digits, bytes) : 0;

	unhex(from_digits, from);
	send_raw(played->raw, &played->to, from, bytes, length);
	played->sent++;
	played->frames++;
	if (strcmp(expected, "stored"))
		settle(played, digits, expected);
}

/* The node begins anew, as writing a setting makes it: it knows nobody. */
static void begin(struct played *played, const char *cluster)
{
	if (played->sent)
		settle(played, "the end", "stored");
	write_setting("cluster", cluster);
	read_counts(&played->before);
	played->files++;
}

static int golden(const char *interface, const char *path)
{
	static char line[1 << 16], digits[1 << 15];
	static struct played played;
	FILE *file = fopen(path, "r");
	char word[32], cluster[16], name[64];
	int rest;

	if (!file)
		fail("%s", path);
	played.fd = bound_socket(2000);
	played.raw = raw_socket(interface, &played.to);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "receiver %63s %15s", name, cluster) == 2) {
			begin(&played, cluster);
			strcpy(played.name, name);
		} else if (sscanf(line, "%31s %32767s %n", word, digits, &rest) == 2) {
			play(&played, word, digits, line + rest);
		} else {
			fail("%s", line);
		}
	}
	begin(&played, "0");
	printf("golden: %d frames of %d files\n", played.frames, played.files - 1);
	return 0;
}

/* Every frame of the file with each byte changed, and cut at each length. */
static int hostile(const char *interface, const char *path)
{
	static char line[1 << 16], digits[1 << 15];
	FILE *file = fopen(path, "r");
	struct counts counts;
	unsigned long frames = 0;
	struct sockaddr_ll to;
	int raw = raw_socket(interface, &to), fd = bound_socket(2000);
	char from_digits[16];

	if (!file)
		fail("%s", path);
	read_counts(&counts);
	unsigned long before = count(&counts, "frames_received");

	while (fgets(line, sizeof(line), file)) {
		uint8_t from[8], bytes[2048];
		size_t length, most;

		if (sscanf(line, "%12s %32767s", from_digits, digits) != 2 || !strncmp(line, "receiver", 8))
			continue;
		unhex(from_digits, from);
		length = strcmp(digits, "-") ? unhex(digits, bytes) : 0;
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

static uint8_t check(const uint8_t *bytes)
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

static int storm(const char *interface)
{
	struct sockaddr_ll to;
	int raw = raw_socket(interface, &to);

	for (unsigned long i = 0; i % 512 || !access(STATS, F_OK); i++)
		send_first(raw, &to, i);
	printf("storm: the module is gone\n");
	return 0;
}

/* First fragments: each may be held for a second, within bounds. */
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

int play_frames(int count, char **word)
{
	if (count == 4 && !strcmp(word[1], "golden"))
		return golden(word[2], word[3]);
	if (count == 4 && !strcmp(word[1], "hostile"))
		return hostile(word[2], word[3]);
	if (count == 4 && !strcmp(word[1], "flood"))
		return flood(word[2], strtoul(word[3], NULL, 10));
	if (count == 3 && !strcmp(word[1], "storm"))
		return storm(word[2]);
	return -1;
}
