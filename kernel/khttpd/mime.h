/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which media type a name has. Never looks into content. Freestanding: see text.h.
 */
#ifndef KHTTPD_MIME_H
#define KHTTPD_MIME_H

#include "text.h"

/* The value of Content-Type for a file of this name, by its extension in any case. */
const char *khttpd_mime_of(struct khttpd_text name);

#endif
