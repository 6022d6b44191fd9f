// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Requests understood and answers made. Freestanding: see talk.h. */
#include "talk.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

static const char body[KECHO_TALK_BODY_BYTES] = { [0 ... KECHO_TALK_BODY_BYTES - 1] = 'x' };

void kecho_talk_begin(struct kecho_talk *talk, enum kecho_talk_language language)
{
	talk->language = language;
	talk->is_ending = false;
	talk->heard = 0;
	talk->used = 0;
	talk->head_length = 0;
	talk->head_sent = 0;
	talk->body_left = 0;
}

/* Where the next bytes are to be received. Never empty: a request that fills all of it is refused. */
char *kecho_talk_room(struct kecho_talk *talk, size_t *length)
{
	*length = sizeof(talk->bytes) - talk->heard;
	return talk->bytes + talk->heard;
}

void kecho_talk_heard(struct kecho_talk *talk, size_t length)
{
	talk->heard += length;
}

/* Forgets what was understood, and moves the rest to the beginning. */
static void kecho_talk_forget(struct kecho_talk *talk)
{
	memmove(talk->bytes, talk->bytes + talk->used, talk->heard - talk->used);
	talk->heard -= talk->used;
	talk->used = 0;
}

static bool kecho_talk_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Reads digits up to `end`. False where there is none, or too large a number. */
static bool kecho_talk_number(const char **at, const char *end, size_t *number)
{
	const char *begin = *at;

	*number = 0;
	while (*at < end && kecho_talk_is_digit(**at)) {
		*number = *number * 10 + (size_t)(**at - '0');
		if (*number > KECHO_TALK_ANSWER_BYTES_MAX)
			return false;
		++*at;
	}
	return *at > begin;
}

static void kecho_talk_put(struct kecho_talk *talk, const char *text)
{
	size_t length = strlen(text);

	memcpy(talk->head + talk->head_length, text, length);
	talk->head_length += length;
}

static void kecho_talk_put_number(struct kecho_talk *talk, size_t number)
{
	char digits[20];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	kecho_talk_put(talk, digits + at);
}

static void kecho_talk_answer(struct kecho_talk *talk, size_t length)
{
	kecho_talk_put(talk, "HTTP/1.1 200 OK\r\nServer: kecho\r\nContent-Length: ");
	kecho_talk_put_number(talk, length);
	kecho_talk_put(talk, "\r\n\r\n");
	talk->body_left = length;
}

static void kecho_talk_refuse(struct kecho_talk *talk)
{
	kecho_talk_put(talk, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	talk->is_ending = true;
}

/* The place behind the blank line that ends a head, or NULL. */
static const char *kecho_talk_end_of_head(const char *at, const char *end)
{
	for (; end - at >= 4; at++)
		if (!memcmp(at, "\r\n\r\n", 4))
			return at + 4;
	return NULL;
}

static bool kecho_talk_has(const char *at, const char *end, const char *text)
{
	size_t length = strlen(text);

	for (; (size_t)(end - at) >= length; at++)
		if (!memcmp(at, text, length))
			return true;
	return false;
}

/* A request by HTTP, if it is whole: "GET /" and perhaps a number, a version, fields that only may end it. */
static void kecho_talk_http(struct kecho_talk *talk)
{
	const char *at = talk->bytes;
	const char *end = kecho_talk_end_of_head(at, at + talk->heard);
	size_t length = KECHO_TALK_ANSWER_BYTES_DEFAULT;

	if (!end) {
		if (talk->heard == sizeof(talk->bytes))
			kecho_talk_refuse(talk);
		return;
	}
	talk->used = (size_t)(end - at);
	if (end - at < 5 || memcmp(at, "GET /", 5)) {
		kecho_talk_refuse(talk);
		return;
	}
	at += 5;
	if (*at != ' ' && !kecho_talk_number(&at, end, &length)) {
		kecho_talk_refuse(talk);
		return;
	}
	if (end - at < 9 || memcmp(at, " HTTP/1.", 8)) {
		kecho_talk_refuse(talk);
		return;
	}
	kecho_talk_answer(talk, length);
	talk->is_ending = at[8] == '0' || kecho_talk_has(at, end, "\r\nConnection: close\r\n");
}

/* A number and a newline, if both came. Any other byte behind the digits ends the connection. */
static void kecho_talk_paper(struct kecho_talk *talk)
{
	const char *at = talk->bytes;
	const char *end = at + talk->heard;
	bool is_number = kecho_talk_number(&at, end, &talk->body_left);

	if (is_number && at == end && talk->heard < sizeof(talk->bytes)) {
		talk->body_left = 0;
		return;
	}
	if (!is_number || *at != '\n')
		talk->body_left = 0;
	talk->used = talk->heard;
	talk->is_ending = true;
}

static void kecho_talk_understand(struct kecho_talk *talk)
{
	talk->head_length = 0;
	talk->head_sent = 0;
	if (!talk->heard || talk->is_ending)
		return;
	if (kecho_talk_is_digit(talk->bytes[0]))
		kecho_talk_paper(talk);
	else
		kecho_talk_http(talk);
	kecho_talk_forget(talk);
}

static bool kecho_talk_has_answer(const struct kecho_talk *talk)
{
	return talk->head_sent < talk->head_length || talk->body_left;
}

/* The bytes to send now; `length` 0 if there are none. */
const char *kecho_talk_piece(struct kecho_talk *talk, size_t *length)
{
	if (talk->language == KECHO_TALK_ECHO) {
		*length = talk->heard - talk->used;
		return talk->bytes + talk->used;
	}
	if (!kecho_talk_has_answer(talk))
		kecho_talk_understand(talk);
	if (talk->head_sent < talk->head_length) {
		*length = talk->head_length - talk->head_sent;
		return talk->head + talk->head_sent;
	}
	*length = talk->body_left < sizeof(body) ? talk->body_left : sizeof(body);
	return body;
}

/* So many bytes of the piece were sent. */
void kecho_talk_sent(struct kecho_talk *talk, size_t length)
{
	if (talk->language == KECHO_TALK_ECHO) {
		talk->used += length;
		if (talk->used == talk->heard)
			kecho_talk_forget(talk);
	} else if (talk->head_sent < talk->head_length) {
		talk->head_sent += length;
	} else {
		talk->body_left -= length;
	}
}

/* Whether the connection is to end, now that there is nothing more to send. */
bool kecho_talk_is_over(const struct kecho_talk *talk)
{
	return talk->is_ending;
}
