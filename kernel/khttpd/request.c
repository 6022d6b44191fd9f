// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The head of a request: where it ends, and its first line.
 *
 * Never kind: what two readers could understand in two ways is refused. A head that came in one
 * piece takes one pass, eight bytes at a time. Any other is searched for its blank line first;
 * what is wrong with a line by itself is told as soon as the line is complete, because a peer
 * that errs may never send the blank line. Freestanding: see text.h.
 */
#include "request.h"

#define EACH_BYTE 0x0101010101010101ULL

static const char too_many[] = "more than 100 header fields";
static const char line_too_long[] = "the request line is longer than 8 KiB";

static bool khttpd_request_is_control(u8 byte)
{
	return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

/*
 * The high bit of each byte that is a control character, tabs too. Those behind the first may be
 * marked wrongly.
 */
static u64 khttpd_request_controls(u64 word)
{
	u64 below_space = (word - EACH_BYTE * 0x20) & ~word;
	u64 delete = word ^ (EACH_BYTE * 0x7f);

	return (below_space | ((delete - EACH_BYTE) & ~delete)) & (EACH_BYTE * 0x80);
}

/*
 * How many bytes stand before the first control character that is no tab: in a good head, the CR
 * of a line.
 */
static size_t khttpd_request_line_bytes(struct khttpd_text bytes)
{
	size_t at = 0;
	u64 word;

	while (at + sizeof(word) <= bytes.length) {
		memcpy(&word, bytes.at + at, sizeof(word));
		if (khttpd_request_controls(word)) {
			size_t end = at + sizeof(word);

			while (at < end && !khttpd_request_is_control(bytes.at[at]))
				at++;
			if (at < end)
				return at;
		} else {
			at += sizeof(word);
		}
	}
	while (at < bytes.length && !khttpd_request_is_control(bytes.at[at]))
		at++;
	return at;
}

/* Takes a line that ends with CR and LF from `rest`. */
static bool khttpd_request_line(struct khttpd_text *rest, struct khttpd_text *line)
{
	size_t end = khttpd_request_line_bytes(*rest);

	if (end + 1 >= rest->length || rest->at[end] != '\r' || rest->at[end + 1] != '\n')
		return false;
	*line = khttpd_text_until(*rest, end);
	*rest = khttpd_text_from(*rest, end + 2);
	return true;
}

/* Methods are case-sensitive (RFC 9110, section 9.1); the registry is that of section 16.1. */
static enum khttpd_method khttpd_request_method(struct khttpd_text name)
{
	static const char *const known[] = {
		"POST",
		"PUT",
		"PATCH",
		"DELETE",
		"TRACE",
		"QUERY",
		"PRI",
		"ACL",
		"BASELINE-CONTROL",
		"BIND",
		"CHECKIN",
		"CHECKOUT",
		"COPY",
		"LABEL",
		"LINK",
		"LOCK",
		"MERGE",
		"MKACTIVITY",
		"MKCALENDAR",
		"MKCOL",
		"MKREDIRECTREF",
		"MKWORKSPACE",
		"MOVE",
		"ORDERPATCH",
		"PROPFIND",
		"PROPPATCH",
		"REBIND",
		"REPORT",
		"SEARCH",
		"UNBIND",
		"UNCHECKOUT",
		"UNLINK",
		"UNLOCK",
		"UPDATE",
		"UPDATEREDIRECTREF",
		"VERSION-CONTROL",
	};
	size_t i;

	if (khttpd_text_equal(name, khttpd_text_of("GET")))
		return KHTTPD_GET;
	if (khttpd_text_equal(name, khttpd_text_of("HEAD")))
		return KHTTPD_HEAD;
	if (khttpd_text_equal(name, khttpd_text_of("OPTIONS")))
		return KHTTPD_OPTIONS;
	if (khttpd_text_equal(name, khttpd_text_of("CONNECT")))
		return KHTTPD_CONNECT;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (khttpd_text_equal(name, khttpd_text_of(known[i])))
			return KHTTPD_KNOWN;
	return KHTTPD_UNKNOWN;
}

/*
 * ` HTTP/1.x` with the space before it (RFC 9112, section 2.3). Later minor versions are spoken
 * to as 1.1 (RFC 9110, section 2.5).
 */
static bool khttpd_request_version(struct khttpd_text words, bool *http10,
				   struct khttpd_refusal *refusal)
{
	static const char form[] = " HTTP/";
	u8 major, minor;

	if (words.length != 9 || memcmp(words.at, form, 6) || words.at[7] != '.')
		return khttpd_refuse(refusal, 400, "the request line does not end with HTTP/1.1");
	major = words.at[6] - '0';
	minor = words.at[8] - '0';
	if (major > 9 || minor > 9)
		return khttpd_refuse(refusal, 400, "the request line does not end with HTTP/1.1");
	if (major != 1)
		return khttpd_refuse(refusal, 505, "this server speaks HTTP/1.0 and HTTP/1.1");
	*http10 = !minor;
	return true;
}

/*
 * `method SP request-target SP HTTP-version`, with exactly these two spaces (RFC 9112, section
 * 3).
 */
static bool khttpd_request_first_line(struct khttpd_request *request, struct khttpd_text line,
				      struct khttpd_authority *authority,
				      struct khttpd_refusal *refusal)
{
	struct khttpd_text rest, target;
	size_t method = 0, space = 0, mark;

	while (method < line.length && khttpd_text_is(line.at[method], KHTTPD_TOKEN))
		method++;
	if (method == line.length || line.at[method] != ' ')
		return khttpd_refuse(
			refusal, 400,
			line.length ? "the request line does not begin with a method and a space"
				    : "the request line is empty");
	rest = khttpd_text_from(line, method + 1);
	for (mark = rest.length; space < rest.length; space++) {
		u8 byte = rest.at[space];

		if (byte == ' ' || byte == '\t')
			break;
		if (mark == rest.length && (byte == '?' || byte == '#'))
			mark = space;
	}
	if (space == rest.length)
		return khttpd_refuse(refusal, 400, "the request line has no version");
	if (!space || !method)
		return khttpd_refuse(refusal, 400, "the request line has an empty part");
	if (!khttpd_request_version(khttpd_text_from(rest, space), &request->http10, refusal))
		return false;
	request->method = khttpd_request_method(khttpd_text_until(line, method));
	target = khttpd_text_until(rest, space);
	return khttpd_target_parse(request, target, mark < space ? mark : space, authority,
				   refusal);
}

/* Parses up to the blank line: false without a refusal where that has not come. */
static bool khttpd_request_lines(struct khttpd_request *request, struct khttpd_text bytes,
				 struct khttpd_refusal *refusal)
{
	struct khttpd_authority authority = {};
	struct khttpd_fields fields = { .request = request };
	struct khttpd_text rest = bytes, line, name, value;
	unsigned int count = 0;

	memset(request, 0, sizeof(*request));
	if (!khttpd_request_line(&rest, &line))
		return false;
	if (line.length > KHTTPD_LINE_BYTES_MAX)
		return khttpd_refuse(refusal, 414, line_too_long);
	if (!khttpd_request_first_line(request, line, &authority, refusal))
		return false;
	for (;;) {
		if (!khttpd_request_line(&rest, &line))
			return false;
		if (!line.length)
			break;
		if (++count > KHTTPD_FIELDS_MAX)
			return khttpd_refuse(refusal, 431, too_many);
		if (!khttpd_fields_split(line, &name, &value, refusal) ||
		    !khttpd_fields_take(&fields, name, value, refusal))
			return false;
	}
	request->head_bytes = bytes.length - rest.length;
	return khttpd_fields_finish(&fields, &authority, refusal);
}

/*
 * A line given without its LF, cut before its CR. Refuses control characters (RFC 9110, section
 * 5.5).
 */
static bool khttpd_request_checked(struct khttpd_text *line, struct khttpd_refusal *refusal)
{
	if (!line->length || line->at[line->length - 1] != '\r')
		return khttpd_refuse(refusal, 400, "bare LF in the head");
	line->length--;
	if (khttpd_request_line_bytes(*line) == line->length)
		return true;
	if (khttpd_text_find(*line, 0) < line->length)
		return khttpd_refuse(refusal, 400, "NUL in the head");
	if (khttpd_text_find(*line, '\r') < line->length)
		return khttpd_refuse(refusal, 400, "bare CR in the head");
	return khttpd_refuse(refusal, 400, "a control character in the head");
}

/* Looks at one complete line by itself. `end` becomes true at the blank line. */
static bool khttpd_request_look(struct khttpd_text line, unsigned int number, bool *end,
				struct khttpd_refusal *refusal)
{
	struct khttpd_authority authority = {};
	struct khttpd_request request = {};
	struct khttpd_text name, value;

	if (!number) {
		if (line.length > KHTTPD_LINE_BYTES_MAX + 1)
			return khttpd_refuse(refusal, 414, line_too_long);
		return khttpd_request_checked(&line, refusal) &&
		       khttpd_request_first_line(&request, line, &authority, refusal);
	}
	*end = line.length == 1 && line.at[0] == '\r';
	if (*end)
		return true;
	if (number > KHTTPD_FIELDS_MAX)
		return khttpd_refuse(refusal, 431, too_many);
	return khttpd_request_checked(&line, refusal) &&
	       khttpd_fields_split(line, &name, &value, refusal);
}

/*
 * Looks at the lines not seen yet. Lines end with CR and LF; LF alone is where smugglers' readers
 * disagree.
 */
static enum khttpd_verdict khttpd_request_search(struct khttpd_search *search,
						 struct khttpd_refusal *refusal,
						 struct khttpd_text *bytes)
{
	size_t window = bytes->length < KHTTPD_HEAD_BYTES_MAX ? bytes->length
							      : KHTTPD_HEAD_BYTES_MAX;
	struct khttpd_text rest =
		khttpd_text_from(khttpd_text_until(*bytes, window), search->line_at);
	size_t skip = search->seen_bytes - search->line_at;
	bool end = false;

	for (;;) {
		size_t feed = skip + khttpd_text_find(khttpd_text_from(rest, skip), '\n');

		if (feed == rest.length)
			break;
		if (!khttpd_request_look(khttpd_text_until(rest, feed), search->lines, &end,
					 refusal))
			return KHTTPD_REFUSED;
		rest = khttpd_text_from(rest, feed + 1);
		skip = 0;
		if (end) {
			bytes->length = window - rest.length;
			return KHTTPD_COMPLETE;
		}
		search->lines++;
	}
	search->line_at = window - rest.length;
	search->seen_bytes = window;
	if (!search->lines && window >= KHTTPD_LINE_BYTES_MAX + 2)
		khttpd_refuse(refusal, 414, line_too_long);
	else if (window == KHTTPD_HEAD_BYTES_MAX)
		khttpd_refuse(refusal, 431, "the head is larger than 32 KiB");
	else
		return KHTTPD_INCOMPLETE;
	return KHTTPD_REFUSED;
}

enum khttpd_verdict khttpd_request_parse(struct khttpd_request *request,
					 struct khttpd_search *search,
					 struct khttpd_refusal *refusal, struct khttpd_text bytes)
{
	struct khttpd_text window = bytes;
	enum khttpd_verdict verdict;

	if (!bytes.length)
		return KHTTPD_INCOMPLETE;
	if (window.length > KHTTPD_HEAD_BYTES_MAX)
		window.length = KHTTPD_HEAD_BYTES_MAX;
	if (!search->seen_bytes && khttpd_request_lines(request, window, refusal))
		return KHTTPD_COMPLETE;
	verdict = khttpd_request_search(search, refusal, &bytes);
	if (verdict != KHTTPD_COMPLETE)
		return verdict;
	memset(search, 0, sizeof(*search));
	return khttpd_request_lines(request, bytes, refusal) ? KHTTPD_COMPLETE : KHTTPD_REFUSED;
}
