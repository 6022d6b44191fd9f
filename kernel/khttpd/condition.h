/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Conditional requests (RFC 9110, section 13): a request and validators in, a status out.
 * Freestanding.
 */
#ifndef KHTTPD_CONDITION_H
#define KHTTPD_CONDITION_H

#include "request.h"

/* What is known of a representation. */
struct khttpd_validators {
	struct khttpd_text etag; /* strong, with its quotes */
	bool has_modified;
	s64 modified; /* the Last-Modified that is sent, in seconds since 1970 */
};

/*
 * For GET and HEAD, in the order of section 13.2.2: 0 to go on, else 304 or 412. `head` is the
 * request's head: the lists of entity tags may stand in several lines of it.
 */
int khttpd_condition_check(const struct khttpd_request *request, struct khttpd_text head,
			   const struct khttpd_validators *validators);

/*
 * Whether Range is to be obeyed: it came once, and If-Range, if it came, holds (section 13.1.5).
 */
bool khttpd_condition_range(const struct khttpd_request *request,
			    const struct khttpd_validators *validators);

#endif
