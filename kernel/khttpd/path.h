/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The path of a target, decoded once, for use beneath a root folder. Never looks at a file
 * system. Freestanding.
 */
#ifndef KHTTPD_PATH_H
#define KHTTPD_PATH_H

#include "text.h"

enum khttpd_path_limit {
	KHTTPD_PATH_BYTES_MAX = 4095, /* PATH_MAX with its NUL */
};

/*
 * Writes the decoded path and a NUL to `out`, which has room for raw.length + 1 bytes and may be
 * where it stands already. Gives its length, or minus the status to answer with: 400 for no path by
 * the rules, 404 for a path of nothing that a folder can hold. The result begins with '/' and holds
 * no NUL and no segment "." or "..", nor an empty one except behind a slash at the end: no two
 * results name one file, none leads out of the root. Dot segments go after decoding (RFC 3986, 5.2.4
 * and 6.2.2).
 */
int khttpd_path_decode(struct khttpd_text raw, char *out);

/*
 * Writes a path with one slash in the place of each row of slashes to `out`, which has room for
 * raw.length bytes. Gives its length.
 */
size_t khttpd_path_single(struct khttpd_text raw, char *out);

/*
 * Whether a path is decoded already: khttpd_path_decode would give the same bytes. False where it only may
 * be.
 */
bool khttpd_path_is_plain(struct khttpd_text raw);

/*
 * Whether a decoded path may be looked up: not too long, no hidden name but /.well-known/ (RFC
 * 8615).
 */
bool khttpd_path_is_servable(const char *path, size_t length);

#endif
