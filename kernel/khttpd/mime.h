/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which media type a name has. Never looks into content. Freestanding: see text.h.
 */
#ifndef KHTTPD_MIME_H
#define KHTTPD_MIME_H

#include "text.h"

struct khttpd_media {
	const char *value; /* of Content-Type */
	bool encodable;    /* whether encodings make it smaller */
};

/* The type of a file of this name, by its extension in any case. */
struct khttpd_media khttpd_mime_of(struct khttpd_text name);

#endif
