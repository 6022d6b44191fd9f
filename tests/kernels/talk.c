// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * kernel/kecho/talk.c in user space: reads records from standard input (a byte that tells the length, then
 * so many bytes, as they come from the network) and writes what the connection sends, in pieces of at most
 * `argv[2]` bytes. argv[1]: echo or lab. Ends with 0 when the input ends, with 7 where the connection does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"

static void send_all(struct kecho_talk *talk, size_t most)
{
	const char *piece;
	size_t length;

	while (piece = kecho_talk_piece(talk, &length), length) {
		if (length > most)
			length = most;
		fwrite(piece, 1, length, stdout);
		kecho_talk_sent(talk, length);
	}
}

int main(int argc, char **argv)
{
	static struct kecho_talk talk;
	int length;

	if (argc != 3)
		return 2;
	kecho_talk_begin(&talk, strcmp(argv[1], "lab") ? KECHO_TALK_ECHO : KECHO_TALK_LABORATORY);
	while ((length = getchar()) != EOF) {
		size_t room, left = (size_t)length;

		while (left) {
			char *bytes = kecho_talk_room(&talk, &room);
			size_t read = fread(bytes, 1, left < room ? left : room, stdin);

			if (!read)
				return 3;
			kecho_talk_heard(&talk, read);
			left -= read;
			send_all(&talk, strtoul(argv[2], NULL, 10));
			if (kecho_talk_is_over(&talk))
				return 7;
		}
	}
	return 0;
}
