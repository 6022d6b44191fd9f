// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Which media type a name has: see mime.h. The table has the common rows of the server's
 * (mime_table.h), and both answer alike for these.
 */
#include "mime.h"

static const struct {
	const char *extension;
	struct khttpd_media media;
} table[] = {
#include "mime_table.h"
};

static const struct khttpd_media binary = { "application/octet-stream", false };
static const struct khttpd_media plain = { "text/plain; charset=utf-8", true };

/* Text files that bear no extension by custom. */
static const char *const plain_names[] = {
	"README", "LICENSE", "COPYING", "AUTHORS", "CHANGELOG", "NEWS", "Makefile", "Dockerfile",
};

struct khttpd_media khttpd_mime_of(struct khttpd_text name)
{
	size_t i, dot;

	for (i = name.length; i && name.at[i - 1] != '/';)
		i--;
	name = khttpd_text_from(name, i);
	for (dot = name.length; dot && name.at[dot - 1] != '.';)
		dot--;
	if (dot < 2) {
		for (i = 0; !dot && i < sizeof(plain_names) / sizeof(plain_names[0]); i++)
			if (khttpd_text_equal(name, khttpd_text_of(plain_names[i])))
				return plain;
		return binary;
	}
	name = khttpd_text_from(name, dot);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (khttpd_text_is_word(name, table[i].extension))
			return table[i].media;
	return binary;
}
