/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The head of an answer, and the small answers that have no file behind them.
 *
 * Owns every byte that stands before a body. Never writes a byte of the peer's but an encoded
 * path in Location. Freestanding: see text.h.
 */
#ifndef KHTTPD_ANSWER_H
#define KHTTPD_ANSWER_H

#include "condition.h"
#include "output.h"

enum khttpd_answer_limit {
	/*
	 * Room that every answer of this file fits in, but for the path in Location, three times
	 * as long encoded.
	 */
	KHTTPD_ANSWER_BYTES = 1024,
};

/* What holds for each answer on a connection. */
struct khttpd_manner {
	const char *date; /* 29 bytes */
	bool http10;
	bool keep;      /* the connection stays */
	bool omit_body; /* the request was HEAD */
};

/* What is sent of a file. */
struct khttpd_represented {
	u64 size;       /* of the whole */
	u64 start, end; /* what is sent of it */
	const char *media;
	const char *coding; /* of the body; NULL for none */
	bool varies;        /* with Accept-Encoding */
	bool partial;
	struct khttpd_validators validators;
};

/* Status line, Server, Date, and Connection where it is needed (RFC 9112, section 9.3). */
void khttpd_answer_begin(struct khttpd_output *output, unsigned int status,
			 const struct khttpd_manner *manner);
/* The whole head of a 200, 206 or 304. */
void khttpd_answer_file(struct khttpd_output *output, unsigned int status,
			const struct khttpd_manner *manner, const struct khttpd_represented *file);
/* The whole head of a listing: chunked, or ended by the connection where the peer speaks 1.0. */
void khttpd_answer_listing(struct khttpd_output *output, const struct khttpd_manner *manner);
/* A whole answer for what cannot be served. `size` is told in a 416. */
void khttpd_answer_problem(struct khttpd_output *output, unsigned int status,
			   const struct khttpd_manner *manner, u64 size);
/* A whole answer to what is no request; it ends the connection. */
void khttpd_answer_refusal(struct khttpd_output *output, const struct khttpd_refusal *refusal,
			   const struct khttpd_manner *manner);
/* 204 to OPTIONS. */
void khttpd_answer_options(struct khttpd_output *output, const struct khttpd_manner *manner);
/* 301 to a decoded path of this host, the query kept. */
void khttpd_answer_moved(struct khttpd_output *output, const struct khttpd_manner *manner,
			 struct khttpd_text path, const struct khttpd_request *request);

#endif
