/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which content coding a peer prefers (RFC 9110, section 12.5.3): the one that is made here, or none.
 * Freestanding.
 */
#ifndef KHTTPD_ENCODING_H
#define KHTTPD_ENCODING_H

#include "request.h"

/* `head` is the request's head: Accept-Encoding may stand in several lines of it. */
bool khttpd_encoding_prefers_gzip(const struct khttpd_request *request, struct khttpd_text head);

#endif
