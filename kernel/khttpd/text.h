/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Slices of bytes and the letters of RFC 9110, section 5.6: tokens, white space, lists.
 *
 * Owns the few words that every freestanding file uses. Such a file compiles in the kernel and in
 * user space, keeps no state of its own, allocates nothing, and never reads outside the slice
 * that it was given.
 */
#ifndef KHTTPD_TEXT_H
#define KHTTPD_TEXT_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

/* Bytes of somebody else. `at` may be anything where `length` is 0. */
struct khttpd_text {
	const u8 *at;
	size_t length;
};

/* Which bytes may stand where, as bits of khttpd_text_classes. */
enum khttpd_text_class {
	KHTTPD_TOKEN = 1,   /* RFC 9110, section 5.6.2 */
	KHTTPD_NAME = 2,    /* registered name: unreserved and sub-delims (RFC 3986, section 2) */
	KHTTPD_SEGMENT = 4, /* unreserved alone */
};

extern const u8 khttpd_text_classes[256];

static inline bool khttpd_text_is(u8 byte, enum khttpd_text_class class)
{
	return khttpd_text_classes[byte] & class;
}

static inline struct khttpd_text khttpd_text_of(const char *words)
{
	return (struct khttpd_text){ (const u8 *)words, strlen(words) };
}

/* The slice without its first `count` bytes, which must be there. */
static inline struct khttpd_text khttpd_text_from(struct khttpd_text text, size_t count)
{
	return (struct khttpd_text){ text.at + count, text.length - count };
}

static inline struct khttpd_text khttpd_text_until(struct khttpd_text text, size_t count)
{
	return (struct khttpd_text){ text.at, count };
}

static inline u8 khttpd_text_lower(u8 byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* The value of a hexadecimal digit, or 16. */
u8 khttpd_text_hex(u8 digit);
/* Whether both are the same bytes. */
bool khttpd_text_equal(struct khttpd_text one, struct khttpd_text other);
/*
 * Whether both are the same but for the case of ASCII letters; `lower` stands in small letters.
 */
bool khttpd_text_is_word(struct khttpd_text text, const char *lower);
/* Where the byte stands first; the slice's length if it does not. */
size_t khttpd_text_find(struct khttpd_text text, u8 byte);
/* Without spaces and tabs at both ends (RFC 9110, section 5.6.3). */
struct khttpd_text khttpd_text_trim(struct khttpd_text text);
/*
 * Takes the part before the first comma from `rest`; false once nothing is left. Start with
 * `*more` true.
 */
bool khttpd_text_member(struct khttpd_text *rest, bool *more, struct khttpd_text *member);
/* Digits only, no overflow: false where it is no such number. */
bool khttpd_text_decimal(struct khttpd_text digits, u64 *number);

#endif
