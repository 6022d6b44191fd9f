// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The path of a target, decoded once: see path.h.
 */
#include "path.h"

/* Decodes one segment to `out`. Gives its length, or minus a status. */
static int khttpd_path_segment(struct khttpd_text segment, char *out)
{
	int length = 0;
	size_t i;

	for (i = 0; i < segment.length; i++) {
		u8 byte = segment.at[i];

		if (byte == '%') {
			u8 high = i + 1 < segment.length ? khttpd_text_hex(segment.at[i + 1]) : 16;
			u8 low = i + 2 < segment.length ? khttpd_text_hex(segment.at[i + 2]) : 16;

			if (high > 15 || low > 15)
				return -400;
			byte = high * 16 + low;
			i += 2;
		}
		if (!byte)
			return -400;
		if (byte == '/')
			return -404;
		out[length++] = byte;
	}
	return length;
}

/*
 * The length without its last segment, whose slash at the end is passed over; 0 beyond the root.
 */
static size_t khttpd_path_above(const char *path, size_t length)
{
	if (length < 2)
		return 0;
	for (length--; length && path[length - 1] != '/';)
		length--;
	return length;
}

int khttpd_path_decode(struct khttpd_text raw, char *out)
{
	struct khttpd_text rest = raw;
	size_t length = 1;

	if (!raw.length || raw.at[0] != '/')
		return -400;
	out[0] = '/';
	rest = khttpd_text_from(raw, 1);
	for (;;) {
		size_t slash = khttpd_text_find(rest, '/');
		bool is_last = slash == rest.length;
		int count = khttpd_path_segment(khttpd_text_until(rest, slash), out + length);

		if (count < 0)
			return count;
		if (!count && !is_last)
			return -404;
		if (count == 2 && out[length] == '.' && out[length + 1] == '.') {
			length = khttpd_path_above(out, length);
			if (!length)
				return -400;
		} else if (count != 1 || out[length] != '.') {
			length += count;
			if (count && !is_last)
				out[length++] = '/';
		}
		if (is_last)
			break;
		rest = khttpd_text_from(rest, slash + 1);
	}
	out[length] = 0;
	return length;
}

size_t khttpd_path_single(struct khttpd_text raw, char *out)
{
	size_t i, length = 0;

	for (i = 0; i < raw.length; i++)
		if (!i || raw.at[i] != '/' || raw.at[i - 1] != '/')
			out[length++] = raw.at[i];
	return length;
}

bool khttpd_path_is_plain(struct khttpd_text raw)
{
	size_t i;

	if (!raw.length || raw.at[0] != '/')
		return false;
	for (i = 1; i < raw.length; i++)
		if (!raw.at[i] || raw.at[i] == '%' ||
		    (raw.at[i - 1] == '/' && (raw.at[i] == '/' || raw.at[i] == '.')))
			return false;
	return true;
}

bool khttpd_path_is_servable(const char *path, size_t length)
{
	static const char well_known[] = "/.well-known";
	const size_t bytes = sizeof(well_known) - 1;
	size_t i;

	if (!length || length > KHTTPD_PATH_BYTES_MAX || path[0] != '/')
		return false;
	for (i = 1; i < length; i++) {
		bool is_known = i == 1 && length >= bytes && !memcmp(path, well_known, bytes) &&
				(length == bytes || path[bytes] == '/');

		if (path[i - 1] == '/' && (path[i] == '/' || (path[i] == '.' && !is_known)))
			return false;
	}
	return true;
}
