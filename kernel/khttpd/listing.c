// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The page that lists a folder: see listing.h.
 */
#include "listing.h"

#include "date.h"

/*
 * The length of the UTF-8 character at the start, or 0 where there is none (RFC 3629, section 4).
 */
static unsigned int khttpd_listing_character(struct khttpd_text text, u32 *character)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int length, i;
	u8 first = text.at[0];

	if (first < 0x80) {
		*character = first;
		return 1;
	}
	length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (first < 0xc2 || first > 0xf4 || text.length < length)
		return 0;
	*character = first & (0xff >> (length + 1));
	for (i = 1; i < length; i++) {
		if ((text.at[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (text.at[i] & 0x3f);
	}
	if (*character < least[length] || *character > 0x10ffff ||
	    (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return length;
}

/* Characters without a shape of their own, which could make a name look like another. */
static bool khttpd_listing_is_unseen(u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
	       c == 0x200b || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);
}

static const char *khttpd_listing_entity(u32 character)
{
	switch (character) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/*
 * A name as text of an element. Bytes that are no UTF-8, and unseen characters, appear as "\xNN".
 */
static void khttpd_listing_text(struct khttpd_output *output, struct khttpd_text name)
{
	while (name.length) {
		u32 character = 0;
		unsigned int length = khttpd_listing_character(name, &character), i;
		const char *entity = length ? khttpd_listing_entity(character) : NULL;

		if (entity) {
			khttpd_output_words(output, entity);
		} else if (length && !khttpd_listing_is_unseen(character)) {
			khttpd_output_bytes(output, name.at, length);
		} else {
			for (i = 0; i < (length ? length : 1); i++) {
				khttpd_output_words(output, "<i>\\x");
				khttpd_output_hex(output, name.at[i], 2);
				khttpd_output_words(output, "</i>");
			}
		}
		name = khttpd_text_from(name, length ? length : 1);
	}
}

/*
 * A name as one segment of a relative link (RFC 3986, section 3.3): "a:b" is no scheme, "?" no
 * query.
 */
static void khttpd_listing_segment(struct khttpd_output *output, struct khttpd_text name)
{
	size_t i;

	for (i = 0; i < name.length; i++) {
		u8 byte = name.at[i];

		if (khttpd_text_is(byte, KHTTPD_SEGMENT)) {
			khttpd_output_bytes(output, &byte, 1);
			continue;
		}
		khttpd_output_words(output, "%");
		khttpd_output_bytes(output, "0123456789ABCDEF" + (byte >> 4), 1);
		khttpd_output_bytes(output, "0123456789ABCDEF" + (byte & 15), 1);
	}
}

/*
 * A title holds text only, so the marks of unseen bytes cannot stand in it: it has the name of
 * the place alone.
 */
void khttpd_listing_begin(struct khttpd_output *output, struct khttpd_text path)
{
	khttpd_output_words(
		output,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<title>Folder</title>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n</head>\n<body>\n<h1><bdi>");
	khttpd_listing_text(output, path);
	khttpd_output_words(output, "</bdi></h1>\n<table>\n"
				    "<tr><th scope=\"col\">Name</th><th scope=\"col\">Bytes</th>"
				    "<th scope=\"col\">Modified (UTC)</th></tr>\n");
	if (path.length > 1)
		khttpd_output_words(
			output,
			"<tr><td><a href=\"../\">Parent folder</a></td><td></td><td></td></tr>\n");
}

void khttpd_listing_row(struct khttpd_output *output, const struct khttpd_listing_entry *entry)
{
	struct khttpd_date date;
	size_t start = output->length;

	khttpd_output_words(output, "<tr><td><a href=\"");
	khttpd_listing_segment(output, entry->name);
	khttpd_output_words(output, entry->is_folder ? "/\"><bdi>" : "\"><bdi>");
	khttpd_listing_text(output, entry->name);
	khttpd_output_words(output, entry->is_folder ? "</bdi>/</a></td><td></td><td>"
						     : "</bdi></a></td><td>");
	if (!entry->is_folder) {
		khttpd_output_number(output, entry->size);
		khttpd_output_words(output, "</td><td>");
	}
	/* Years beyond these have no form in four digits (RFC 3339, section 5.6). */
	if (entry->modified >= 0 && entry->modified < 253402300800LL) {
		khttpd_date_of(entry->modified, &date);
		khttpd_output_number(output, date.year);
		khttpd_output_words(output, date.month < 10 ? "-0" : "-");
		khttpd_output_number(output, date.month);
		khttpd_output_words(output, date.day < 10 ? "-0" : "-");
		khttpd_output_number(output, date.day);
		khttpd_output_words(output, date.hour < 10 ? " 0" : " ");
		khttpd_output_number(output, date.hour);
		khttpd_output_words(output, date.minute < 10 ? ":0" : ":");
		khttpd_output_number(output, date.minute);
	}
	khttpd_output_words(output, "</td></tr>\n");
	if (output->full)
		output->length = start;
}

void khttpd_listing_end(struct khttpd_output *output, bool is_cut)
{
	khttpd_output_words(output, "</table>\n");
	if (is_cut)
		khttpd_output_words(output, "<p>This folder has more entries than are listed here.</p>\n");
	khttpd_output_words(output, "</body>\n</html>\n");
}

int khttpd_listing_compare(const struct khttpd_listing_entry *one,
			   const struct khttpd_listing_entry *other)
{
	size_t shorter = one->name.length < other->name.length ? one->name.length
							       : other->name.length;
	int order;

	if (one->is_folder != other->is_folder)
		return one->is_folder ? -1 : 1;
	order = memcmp(one->name.at, other->name.at, shorter);
	if (order || one->name.length == other->name.length)
		return order;
	return one->name.length < other->name.length ? -1 : 1;
}
