// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Text that is written into room of a known size: see output.h.
 */
#include "output.h"

void khttpd_output_bytes(struct khttpd_output *output, const void *bytes, size_t count)
{
	if (output->full || count > output->room - output->length) {
		output->full = true;
		return;
	}
	memcpy(output->at + output->length, bytes, count);
	output->length += count;
}

void khttpd_output_words(struct khttpd_output *output, const char *words)
{
	khttpd_output_bytes(output, words, strlen(words));
}

void khttpd_output_number(struct khttpd_output *output, u64 number)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = '0' + number % 10;
		number /= 10;
	} while (number);
	khttpd_output_bytes(output, digits + first, sizeof(digits) - first);
}

void khttpd_output_hex(struct khttpd_output *output, u64 number, unsigned int digits)
{
	while (digits--)
		khttpd_output_bytes(output, "0123456789abcdef" + (number >> (4 * digits) & 15), 1);
}
