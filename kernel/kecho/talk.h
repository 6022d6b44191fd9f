/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What the bytes of a connection mean: plain echo, or the two languages of the laboratory's models.
 * Freestanding: no call of the kernel, so user space compiles and tests the same file.
 *
 * Order of calls: send kecho_talk_piece() until it is empty; if kecho_talk_is_over(), close; else receive
 * into kecho_talk_room(), tell kecho_talk_heard(), begin again.
 */
#ifndef KECHO_TALK_H
#define KECHO_TALK_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#endif

enum kecho_talk_limits {
	/* Received at once, and the longest head of a request: those of browsers stay below 2 KiB. */
	KECHO_TALK_BYTES = 4096,
	/* The beginning of an answer by HTTP has at most 80 bytes. */
	KECHO_TALK_HEAD_BYTES = 96,
	/* Most bytes that may be asked for, as of the laboratory's other models. */
	KECHO_TALK_ANSWER_BYTES_MAX = 16 * 1024 * 1024,
	/* What "GET /" asks for: the size of Dong (2012). */
	KECHO_TALK_ANSWER_BYTES_DEFAULT = 4000,
	/* Long answers are these bytes many times over. */
	KECHO_TALK_BODY_BYTES = 4096,
};

enum kecho_talk_language {
	/* What comes is sent back, byte by byte. */
	KECHO_TALK_ECHO,
	/*
	 * A number and a newline ask for so many bytes and the end (Dong, 2012); "GET /N" asks for N
	 * bytes.
	 */
	KECHO_TALK_LABORATORY,
};

struct kecho_talk {
	enum kecho_talk_language language;
	/* Nothing more is understood: what is to be sent is sent, and then the connection ends. */
	bool is_ending;
	size_t heard;
	size_t used;
	size_t head_length;
	size_t head_sent;
	size_t body_left;
	char head[KECHO_TALK_HEAD_BYTES];
	char bytes[KECHO_TALK_BYTES];
};

void kecho_talk_begin(struct kecho_talk *talk, enum kecho_talk_language language);
char *kecho_talk_room(struct kecho_talk *talk, size_t *length);
void kecho_talk_heard(struct kecho_talk *talk, size_t length);
const char *kecho_talk_piece(struct kecho_talk *talk, size_t *length);
void kecho_talk_sent(struct kecho_talk *talk, size_t length);
bool kecho_talk_is_over(const struct kecho_talk *talk);

#endif
