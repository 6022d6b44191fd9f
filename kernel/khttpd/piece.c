// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The pieces in which an answer is sent: see piece.h.
 */
#include "piece.h"

static bool khttpd_piece_is_head(const char *at, size_t length)
{
	static const char first[] = "HTTP/1.1 ";

	return length >= sizeof(first) - 1 && !memcmp(at, first, sizeof(first) - 1);
}

size_t khttpd_piece_length(const char *at, size_t length)
{
	bool is_head = khttpd_piece_is_head(at, length);
	const char *end = at;

	/* A head ends with an empty line. */
	while ((end = memchr(end, '\n', at + length - end))) {
		end++;
		if (!is_head || (end - at >= 4 && end[-3] == '\n' && end[-2] == '\r'))
			return end - at;
	}
	return length;
}
