/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Range requests for bytes (RFC 9110, section 14): a field and a length in, one range out.
 * Freestanding.
 */
#ifndef KHTTPD_RANGE_H
#define KHTTPD_RANGE_H

#include "text.h"

enum khttpd_range_answer {
	KHTTPD_RANGE_IGNORE, /* send the whole: no valid range of bytes, several, or of nothing */
	KHTTPD_RANGE_UNSATISFIABLE, /* 416 */
	KHTTPD_RANGE_ONE,           /* 206 with the bytes from start up to, not with, end */
};

/*
 * Several ranges are ignored: a server may (section 14.2), and the answer in parts is for user
 * space. Of nothing there are no parts: a client that asks for the first part of everything gets
 * an empty file whole.
 */
enum khttpd_range_answer khttpd_range_parse(struct khttpd_text field, u64 length, u64 *start,
					    u64 *end);

#endif
