// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Slices of bytes: compared, trimmed, split, read as numbers.
 *
 * Owns the table of letters. Freestanding: see text.h.
 */
#include "text.h"

/* Bits of enum khttpd_text_class, by byte; none above ASCII. */
const u8 khttpd_text_classes[256] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 3, 1, 3, 3, 2, 2, 3, 3, 2, 7, 7, 0, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 0, 2, 0, 2, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 1, 7, 1, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 1, 0, 7, 0,
};

u8 khttpd_text_hex(u8 digit)
{
	u8 letter = khttpd_text_lower(digit);

	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 16;
}

bool khttpd_text_equal(struct khttpd_text one, struct khttpd_text other)
{
	return one.length == other.length && (!one.length || !memcmp(one.at, other.at, one.length));
}

bool khttpd_text_is_word(struct khttpd_text text, const char *lower)
{
	size_t i;

	for (i = 0; i < text.length; i++)
		if (!lower[i] || khttpd_text_lower(text.at[i]) != (u8)lower[i])
			return false;
	return !lower[i];
}

size_t khttpd_text_find(struct khttpd_text text, u8 byte)
{
	size_t i = 0;

	while (i < text.length && text.at[i] != byte)
		i++;
	return i;
}

static bool khttpd_text_is_space(u8 byte)
{
	return byte == ' ' || byte == '\t';
}

struct khttpd_text khttpd_text_trim(struct khttpd_text text)
{
	while (text.length && khttpd_text_is_space(text.at[0]))
		text = khttpd_text_from(text, 1);
	while (text.length && khttpd_text_is_space(text.at[text.length - 1]))
		text.length--;
	return text;
}

bool khttpd_text_member(struct khttpd_text *rest, bool *more, struct khttpd_text *member)
{
	size_t comma = khttpd_text_find(*rest, ',');

	if (!*more)
		return false;
	*member = khttpd_text_trim(khttpd_text_until(*rest, comma));
	*more = comma < rest->length;
	*rest = khttpd_text_from(*rest, *more ? comma + 1 : comma);
	return true;
}

bool khttpd_text_decimal(struct khttpd_text digits, u64 *number)
{
	u64 value = 0;
	size_t i;

	for (i = 0; i < digits.length; i++) {
		u8 digit = digits.at[i] - '0';

		if (digit > 9 || value > (~0ULL - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return digits.length;
}
