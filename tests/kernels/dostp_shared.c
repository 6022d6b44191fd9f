// SPDX-License-Identifier: Apache-2.0
/*
 * A port that two sockets share (SO_REUSEADDR), of which the older takes transactions.
 *
 *   shared INTERFACE         plays frames of each kind into an interface of a cable, and compares which of
 *                            the sockets at the other end gets them
 */
#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../kernel/dostp/header.h"
#include "../../kernel/dostp/transact.h"
#include "dostp_guest.h"

#define AF_DOSTP 19
#define PORT 2001
#define NODE 8

static int older, newer;

static void take_transactions(int fd, int on)
{
	if (setsockopt(fd, SOL_DOSTP, DOSTP_TRANSACTIONS, &on, sizeof(on)))
		fail("transactions");
}

static bool has_message(int fd)
{
	return recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) >= 0;
}

/* Messages that sockets have got, and those that were dropped for their kind or for want of room. */
static unsigned long done_with(const struct counts *counts)
{
	return count(counts, "messages_received") + count(counts, "dropped_kind") + count(counts, "dropped_queue");
}

/* Sends a message of one frame, waits for the node, and tells how many it dropped for their kind. */
static unsigned long play(int raw, const struct sockaddr_ll *to, enum dostp_kind kind, uint16_t destination,
			  unsigned int messages)
{
	static const uint8_t from[6] = { 2, 0, 0, 0, 0, 9 };
	static uint8_t id;
	struct counts before, after;
	uint8_t length = kind != DOSTP_ACK;
	uint8_t frame[DOSTP_HEADER_BYTES + 1] = {
		0x10 | kind, DOSTP_WHOLE, 0, 9, destination >> 8, destination & 0xff,
		1000 >> 8, 1000 & 0xff, PORT >> 8, PORT & 0xff, 0, ++id, 0, length,
	};

	frame[15] = check(frame);
	read_counts(&before);
	send_raw(raw, to, from, frame, DOSTP_HEADER_BYTES + length);
	do
		read_counts(&after);
	while (done_with(&after) - done_with(&before) < messages);
	return count(&after, "dropped_kind") - count(&before, "dropped_kind");
}

/* Plays a message that must come to these sockets, or be dropped for its kind where it is for none. */
static void expect(int raw, const struct sockaddr_ll *to, enum dostp_kind kind, uint16_t destination,
		   bool is_for_older, bool is_for_newer)
{
	unsigned long dropped = play(raw, to, kind, destination, is_for_older && is_for_newer ? 2 : 1);
	bool came_to_older = has_message(older), came_to_newer = has_message(newer);

	if (came_to_older != is_for_older || came_to_newer != is_for_newer ||
	    dropped != !(is_for_older || is_for_newer))
		fail("kind %d: older %d, newer %d, %lu dropped", kind, came_to_older, came_to_newer, dropped);
}

static int sharing_socket(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_DOSTP, SOCK_DGRAM, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&name, sizeof(name)))
		fail("a shared port");
	return fd;
}

static int shared(const char *interface)
{
	struct sockaddr_ll to;
	int raw = raw_socket(interface, &to);

	older = sharing_socket();
	newer = sharing_socket();
	expect(raw, &to, DOSTP_REQUEST, NODE, false, false);
	take_transactions(older, 1);
	for (enum dostp_kind kind = DOSTP_REQUEST; kind <= DOSTP_ACK; kind++)
		expect(raw, &to, kind, NODE, true, false);
	expect(raw, &to, DOSTP_DATA, NODE, false, true);
	expect(raw, &to, DOSTP_DATA, DOSTP_EVERYBODY, true, true);
	take_transactions(newer, 1);
	expect(raw, &to, DOSTP_REQUEST, NODE, false, true);
	take_transactions(newer, 0);
	expect(raw, &to, DOSTP_REQUEST, NODE, true, false);
	take_transactions(older, 0);
	expect(raw, &to, DOSTP_REQUEST, NODE, false, false);
	close(newer);
	close(older);
	printf("shared: each kind to whom it is for\n");
	return 0;
}

int play_shared(int count, char **word)
{
	return count == 3 && !strcmp(word[1], "shared") ? shared(word[2]) : -1;
}
