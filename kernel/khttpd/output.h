/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Text that is written into room of a known size.
 *
 * Never writes behind its end: what does not fit is left out, and `full` says so, once and for
 * all. Freestanding.
 */
#ifndef KHTTPD_OUTPUT_H
#define KHTTPD_OUTPUT_H

#include "text.h"

struct khttpd_output {
	char *at;
	size_t length;
	size_t room;
	bool full;
};

void khttpd_output_bytes(struct khttpd_output *output, const void *bytes, size_t count);
void khttpd_output_words(struct khttpd_output *output, const char *words);
void khttpd_output_number(struct khttpd_output *output, u64 number);
void khttpd_output_hex(struct khttpd_output *output, u64 number, unsigned int digits);

#endif
