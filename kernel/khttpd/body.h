/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Bodies of requests, read only to be thrown away, so that the next request on the connection is
 * found.
 *
 * Owns how much is worth reading. Keeps no byte: its state is a few numbers. Freestanding: see
 * text.h.
 */
#ifndef KHTTPD_BODY_H
#define KHTTPD_BODY_H

#include "request.h"

enum khttpd_body_limit {
	KHTTPD_BODY_BYTES_MAX = 1024 * 1024, /* longer bodies end the connection */
	KHTTPD_CHUNK_LINE_BYTES_MAX = 256,   /* a chunk's size with its extensions */
	KHTTPD_TRAILER_BYTES_MAX = 8 * 1024,
};

enum khttpd_body_progress {
	KHTTPD_BODY_DONE,   /* what follows is the next request */
	KHTTPD_BODY_MORE,   /* the input is used up */
	KHTTPD_BODY_LOST,   /* longer than worth reading: no request can follow */
	KHTTPD_BODY_BROKEN, /* not in the chunked coding: no request can follow */
};

struct khttpd_body {
	u32 remaining; /* of the body or the chunk; while a size is read, the size so far */
	u32 taken;     /* lines around chunks too: many tiny chunks are no cheaper way */
	u16 line;      /* bytes of the size line or the trailer section */
	u8 position;
};

/* The body of this request. */
void khttpd_body_begin(struct khttpd_body *body, const struct khttpd_request *request);
/* Takes what belongs to the body from the front of `input`. */
enum khttpd_body_progress khttpd_body_advance(struct khttpd_body *body, struct khttpd_text *input);
/*
 * False where what came of a chunked body is broken already, so that the request gets 400 and no
 * answer.
 */
bool khttpd_body_check(const struct khttpd_request *request, struct khttpd_text behind,
		       struct khttpd_refusal *refusal);
/* Whether it is known already that no request can follow. */
bool khttpd_body_is_lost(const struct khttpd_body *body);

#endif
