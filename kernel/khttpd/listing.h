/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The page that lists a folder, piece by piece.
 *
 * Owns the words of the page and the escaping of names: nothing that a name holds may end an
 * element or an attribute, start a scheme, a query or a fragment, or turn the direction of the
 * text around it. Freestanding: see text.h.
 */
#ifndef KHTTPD_LISTING_H
#define KHTTPD_LISTING_H

#include "output.h"

enum khttpd_listing_limit {
	/*
	 * Room for the row of any name of 255 bytes: three bytes each in the link, eleven in the
	 * text, and the rest.
	 */
	KHTTPD_LISTING_ROW_BYTES = 255 * 3 + 255 * 11 + 256,
	/* Room for what stands before the rows: every byte of a path escaped, twice. */
	KHTTPD_LISTING_HEAD_BYTES = 4096 * 11 * 2 + 512,
	/* Room for what stands behind them. */
	KHTTPD_LISTING_END_BYTES = 128,
};

struct khttpd_listing_entry {
	struct khttpd_text name;
	bool is_folder;
	u64 size;
	s64 modified; /* seconds since 1970 */
};

/* Each writes one piece; a piece that does not fit leaves `output->full` set. */
void khttpd_listing_begin(struct khttpd_output *output, struct khttpd_text path);
void khttpd_listing_row(struct khttpd_output *output, const struct khttpd_listing_entry *entry);
/* `is_cut`: the folder has more entries than the page. */
void khttpd_listing_end(struct khttpd_output *output, bool is_cut);

/*
 * Folders first, then by the bytes of the name: below, at or above 0 as the first stands before
 * the second.
 */
int khttpd_listing_compare(const struct khttpd_listing_entry *one,
			   const struct khttpd_listing_entry *other);

#endif
