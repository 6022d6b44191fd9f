/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The head of a request (RFC 9112, sections 2 to 6): bytes in, what is asked for out.
 *
 * Owns the vocabulary between parser and connection. Order of calls: khttpd_request_parse with
 * all bytes that came since the last request, again when more came, with the same search; after
 * KHTTPD_COMPLETE the search is cleared. Freestanding: see text.h.
 */
#ifndef KHTTPD_REQUEST_H
#define KHTTPD_REQUEST_H

#include "text.h"

/*
 * The same numbers as the server's (crates/protocol/src/limits.rs), so that both refuse the same
 * requests.
 */
enum khttpd_request_limit {
	KHTTPD_LINE_BYTES_MAX = 8 * 1024,  /* request line: longer ones get 414 */
	KHTTPD_HEAD_BYTES_MAX = 32 * 1024, /* a proxy's cookies fit several times; more gets 431 */
	KHTTPD_FIELDS_MAX = 100,           /* browsers send about 20; more gets 431 */
};

enum khttpd_method {
	KHTTPD_GET,
	KHTTPD_HEAD,
	KHTTPD_OPTIONS,
	KHTTPD_CONNECT,
	KHTTPD_KNOWN,   /* in the registry, not offered here: 405 */
	KHTTPD_UNKNOWN, /* 501 */
};

/* Fields that an answer depends on. */
enum khttpd_field {
	KHTTPD_ACCEPT_ENCODING,
	KHTTPD_RANGE,
	KHTTPD_IF_RANGE,
	KHTTPD_IF_MATCH,
	KHTTPD_IF_NONE_MATCH,
	KHTTPD_IF_MODIFIED_SINCE,
	KHTTPD_IF_UNMODIFIED_SINCE,
	KHTTPD_FIELDS_KEPT,
};

/* How the body behind the head is delimited. */
enum khttpd_framing {
	KHTTPD_NO_BODY,
	KHTTPD_LENGTH,
	KHTTPD_CHUNKED,
};

/*
 * Why a request is refused: a status, and the end of a sentence that holds no byte of the peer's.
 */
struct khttpd_refusal {
	u16 status;
	const char *reason;
};

/* Host and port, as Host and absolute targets carry them. */
struct khttpd_authority {
	struct khttpd_text host;
	u32 port; /* 0 where none was written */
};

/* A request whose head is complete. All slices lie within the bytes that it was parsed from. */
struct khttpd_request {
	enum khttpd_method method;
	enum khttpd_framing framing;
	struct khttpd_text path;  /* begins with '/', or is "*"; not decoded */
	struct khttpd_text query; /* behind the first '?' */
	struct khttpd_text host;
	u64 body_bytes; /* of KHTTPD_LENGTH */
	u32 head_bytes; /* the blank line included */
	u16 present;    /* bits by enum khttpd_field */
	u16 repeated;   /* came more than once: the first is kept */
	bool has_query;
	bool http10;
	bool keep_alive;
	bool expects_continue;
	bool upgrades; /* an Upgrade came, in whatever version */
	struct khttpd_text fields[KHTTPD_FIELDS_KEPT];
};

/*
 * How far the end of a head was looked for, so that each line is looked at once however finely it
 * came.
 */
struct khttpd_search {
	u16 seen_bytes;
	u16 line_at; /* where the line begins that is not complete */
	u8 lines;
};

enum khttpd_verdict {
	KHTTPD_INCOMPLETE,
	KHTTPD_COMPLETE,
	KHTTPD_REFUSED,
};

enum khttpd_verdict khttpd_request_parse(struct khttpd_request *request,
					 struct khttpd_search *search,
					 struct khttpd_refusal *refusal, struct khttpd_text bytes);

/* --- between the files of the parser; each is false where `refusal` was written --- */

/* What the fields of one head said so far. */
struct khttpd_fields {
	struct khttpd_request *request;
	struct khttpd_text host;
	u64 length;
	bool has_host, has_length, coded, chunked_last, coding_unknown, says_close, says_keep_alive;
};

bool khttpd_fields_split(struct khttpd_text line, struct khttpd_text *name,
			 struct khttpd_text *value, struct khttpd_refusal *refusal);
/*
 * Takes the next field line from the front of a request's head, which may begin with the request line.
 * False where none is left.
 */
bool khttpd_fields_next(struct khttpd_text *head, struct khttpd_text *name, struct khttpd_text *value);
bool khttpd_fields_take(struct khttpd_fields *fields, struct khttpd_text name,
			struct khttpd_text value, struct khttpd_refusal *refusal);
bool khttpd_fields_finish(struct khttpd_fields *fields, const struct khttpd_authority *authority,
			  struct khttpd_refusal *refusal);
/*
 * `mark` is where the first '?' or '#' stands, or the target's length. `authority->host.at` is
 * NULL where none is.
 */
bool khttpd_target_parse(struct khttpd_request *request, struct khttpd_text target, size_t mark,
			 struct khttpd_authority *authority, struct khttpd_refusal *refusal);
/* False where the bytes are no `uri-host [ ":" port ]` (RFC 9110, section 7.2). */
bool khttpd_authority_parse(struct khttpd_text bytes, struct khttpd_authority *authority);

static inline bool khttpd_refuse(struct khttpd_refusal *refusal, u16 status, const char *reason)
{
	refusal->status = status;
	refusal->reason = reason;
	return false;
}

#endif
