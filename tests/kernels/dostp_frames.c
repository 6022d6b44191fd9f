// SPDX-License-Identifier: Apache-2.0
/*
 * Frames that no socket would send, played into one interface of a cable; the node at the other end
 * (pair1) is looked at by its counts.
 *
 *   golden INTERFACE FILE    plays golden frames, and compares what the node does with what they say; FILE
 *                            is made by dostp.rs
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
#include <sys/time.h>
#include <unistd.h>

#include "dostp_guest.h"

#define ETHER_TYPE 0x88b5

static const uint8_t receiver[6] = { 2, 0, 0, 0, 0, 8 };

void read_counts(struct counts *counts)
{
	FILE *file = fopen(STATS, "r");

	if (!file)
		fail(STATS);
	counts->number = 0;
	while (counts->number < COUNTS_MAX && fscanf(file, "%31s %lu", counts->name[counts->number],
						     &counts->value[counts->number]) == 2)
		counts->number++;
	fclose(file);
}

unsigned long count(const struct counts *counts, const char *name)
{
	for (int i = 0; i < counts->number; i++)
		if (!strcmp(counts->name[i], name))
			return counts->value[i];
	fail("no count %s", name);
}

int raw_socket(const char *interface, struct sockaddr_ll *to)
{
	struct timeval patience = { .tv_sec = 20 };
	int raw = socket(AF_PACKET, SOCK_RAW, 0);

	*to = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_halen = 6 };
	to->sll_protocol = htons(ETHER_TYPE);
	to->sll_ifindex = if_nametoindex(interface);
	if (raw < 0 || !to->sll_ifindex || bind(raw, (void *)to, sizeof(*to)) ||
	    setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		fail("%s", interface);
	return raw;
}

void send_raw(int raw, const struct sockaddr_ll *to, const uint8_t *from, const uint8_t *bytes,
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

void write_setting(const char *name, const char *value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/dostp/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("%s", path);
	close(fd);
}

size_t unhex(const char *digits, uint8_t *bytes)
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

/* Adds words behind those that stand there. */
static void add_words(char *words, size_t room, const char *name, const char *rest)
{
	size_t length = strlen(words);

	snprintf(words + length, room - length, "%s%s%s", length ? ", " : "", name, rest);
}

/* Adds every message that the socket got; says whether there was one. */
static bool add_messages(int fd, char *words, size_t room)
{
	bool came = false;
	char digits[24];
	ssize_t length;

	while ((length = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
		snprintf(digits, sizeof(digits), "%zd", length);
		add_words(words, room, "message ", digits);
		came = true;
	}
	return came;
}

/* What the node did between two readings and what the socket got, in the words of the files. */
static void outcome(const struct counts *before, const struct counts *after, int fd, char *words, size_t room)
{
	bool dropped = false, order = false;

	*words = 0;
	for (int i = 0; i < after->number; i++) {
		const char *name = after->name[i];

		if (strncmp(name, "dropped_", 8) || after->value[i] == count(before, name))
			continue;
		add_words(words, room, "dropped ", name + 8);
		dropped = true;
		order |= !strcmp(name, "dropped_order");
	}
	if (add_messages(fd, words, room))
		return;
	if (count(after, "control_received") > count(before, "control_received"))
		add_words(words, room, "peer", "");
	else if (!dropped || (order && count(after, "messages_under_way")))
		add_words(words, room, "stored", "");
}

/*
 * The state of `golden`. Lines of its file: `receiver NAME CLUSTER`, for a receiver with keys
 * `keys MODE SECRET SECRET|none SOURCE BOOT`, and for each frame `FROM HEX OUTCOME`.
 */
struct played {
	int raw, fd, files, frames;
	struct sockaddr_ll to;
	struct counts before;
	unsigned long sent; /* since `before` was read */
	bool has_keys;
	char name[64];
};

/* Compares what was done with the frames that were sent last with what had to be. */
static void settle(struct played *played, const char *digits, const char *expected)
{
	struct counts after;
	char words[2048];

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
	if (played->has_keys)
		write_keys("off");
	played->has_keys = false;
	write_setting("cluster", cluster);
	read_counts(&played->before);
	played->files++;
}

/* Takes a line `keys`: gives the secrets to the node, which begins anew, and makes it believe the peer. */
static void protect(struct played *played, const char *line)
{
	char mode[8], secrets[2][80], words[256];
	unsigned long control;
	unsigned long long boot;
	unsigned int source;
	uint8_t secret[64];

	if (sscanf(line, "keys %7s %79s %79s %x %llx", mode, secrets[0], secrets[1], &source, &boot) != 5)
		fail("%s", line);
	snprintf(words, sizeof(words), "slot 0 %s slot 1 %s mode %s", secrets[0], secrets[1], mode);
	while (recv(played->raw, buffer, sizeof(buffer), MSG_DONTWAIT) >= 0)
		;
	write_keys(words);
	played->has_keys = true;
	unhex(secrets[0], secret);
	control = count(&played->before, "control_received");
	believe(played->raw, &played->to, secret, source, boot);
	do
		read_counts(&played->before);
	while (count(&played->before, "control_received") == control);
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
		} else if (!strncmp(line, "keys ", 5)) {
			protect(&played, line);
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

int play_frames(int count, char **word)
{
	return count == 4 && !strcmp(word[1], "golden") ? golden(word[2], word[3]) : -1;
}
