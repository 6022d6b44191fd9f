// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The fields of a request's head: what they say about the connection, the body, and the answer.
 *
 * Owns RFC 9112, sections 5 and 6, where a mistake lets one request hide inside another: framing
 * that is not plain is refused. Freestanding: see text.h.
 */
#include "request.h"

/* `field-name ":" OWS field-value OWS` (RFC 9112, section 5). */
bool khttpd_fields_split(struct khttpd_text line, struct khttpd_text *name,
			 struct khttpd_text *value, struct khttpd_refusal *refusal)
{
	size_t end = 0;
	u8 byte;

	while (end < line.length && khttpd_text_is(line.at[end], KHTTPD_TOKEN))
		end++;
	if (end && end < line.length && line.at[end] == ':') {
		*name = khttpd_text_until(line, end);
		*value = khttpd_text_trim(khttpd_text_from(line, end + 1));
		return true;
	}
	byte = end < line.length ? line.at[end] : 0;
	if (byte == ' ' || byte == '\t')
		return khttpd_refuse(refusal, 400,
				     end ? "white space between a field name and its colon"
					 : "a header line begins with white space");
	if (!end && byte == ':')
		return khttpd_refuse(refusal, 400, "a header line has no name");
	if (end == line.length)
		return khttpd_refuse(refusal, 400, "a header line without a colon");
	return khttpd_refuse(refusal, 400, "a field name is not a token");
}

bool khttpd_fields_next(struct khttpd_text *head, struct khttpd_text *name, struct khttpd_text *value)
{
	struct khttpd_refusal refusal;

	while (head->length) {
		size_t feed = khttpd_text_find(*head, '\n');
		struct khttpd_text line;

		if (!feed || feed == head->length)
			break;
		line = khttpd_text_until(*head, feed - 1);
		*head = khttpd_text_from(*head, feed + 1);
		if (khttpd_fields_split(line, name, value, &refusal))
			return true;
	}
	return false;
}

/* A list of equal numbers counts as one number (RFC 9110, section 8.6). */
static bool khttpd_fields_length(struct khttpd_fields *fields, struct khttpd_text value,
				 struct khttpd_refusal *refusal)
{
	struct khttpd_text member;
	bool more = true;
	u64 number;

	while (khttpd_text_member(&value, &more, &member)) {
		if (!khttpd_text_decimal(member, &number))
			return khttpd_refuse(refusal, 400,
					     "Content-Length is not a number of bytes");
		if (fields->has_length && fields->length != number)
			return khttpd_refuse(refusal, 400,
					     "two different values of Content-Length");
		fields->has_length = true;
		fields->length = number;
	}
	return true;
}

/* Several lines are one list; chunked is applied once, and last (RFC 9112, section 6.1). */
static bool khttpd_fields_coding(struct khttpd_fields *fields, struct khttpd_text value,
				 struct khttpd_refusal *refusal)
{
	struct khttpd_text member;
	bool more = true;

	fields->coded = true;
	while (khttpd_text_member(&value, &more, &member)) {
		if (!member.length)
			continue;
		if (fields->chunked_last)
			return khttpd_refuse(refusal, 400,
					     "chunked is not the only last transfer coding");
		fields->chunked_last = khttpd_text_is_word(member, "chunked");
		fields->coding_unknown |= !fields->chunked_last;
	}
	return true;
}

static void khttpd_fields_connection(struct khttpd_fields *fields, struct khttpd_text value)
{
	struct khttpd_text member;
	bool more = true;

	while (khttpd_text_member(&value, &more, &member)) {
		fields->says_close |= khttpd_text_is_word(member, "close");
		fields->says_keep_alive |= khttpd_text_is_word(member, "keep-alive");
	}
}

/* RFC 9110, section 10.1.1. HTTP/1.0 has no expectations. */
static bool khttpd_fields_expect(struct khttpd_fields *fields, struct khttpd_text value,
				 struct khttpd_refusal *refusal)
{
	struct khttpd_text member;
	bool more = true;

	if (fields->request->http10)
		return true;
	while (khttpd_text_member(&value, &more, &member))
		if (member.length && !khttpd_text_is_word(member, "100-continue"))
			return khttpd_refuse(refusal, 417,
					     "the only expectation known is 100-continue");
	fields->request->expects_continue = true;
	return true;
}

static void khttpd_fields_keep(struct khttpd_fields *fields, enum khttpd_field field,
			       struct khttpd_text value)
{
	struct khttpd_request *request = fields->request;

	if (request->present & (1 << field)) {
		request->repeated |= 1 << field;
		return;
	}
	request->present |= 1 << field;
	request->fields[field] = value;
}

/*
 * The fields of the answer; sorted by length, so that an unknown name costs a comparison of
 * numbers.
 */
static void khttpd_fields_keep_known(struct khttpd_fields *fields, struct khttpd_text name,
				     struct khttpd_text value)
{
	static const struct {
		u8 length;
		u8 field;
		const char *name;
	} known[] = {
		{ 5, KHTTPD_RANGE, "range" },
		{ 8, KHTTPD_IF_MATCH, "if-match" },
		{ 8, KHTTPD_IF_RANGE, "if-range" },
		{ 13, KHTTPD_IF_NONE_MATCH, "if-none-match" },
		{ 15, KHTTPD_ACCEPT_ENCODING, "accept-encoding" },
		{ 17, KHTTPD_IF_MODIFIED_SINCE, "if-modified-since" },
		{ 19, KHTTPD_IF_UNMODIFIED_SINCE, "if-unmodified-since" },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]) && known[i].length <= name.length; i++)
		if (known[i].length == name.length && khttpd_text_is_word(name, known[i].name))
			khttpd_fields_keep(fields, known[i].field, value);
}

bool khttpd_fields_take(struct khttpd_fields *fields, struct khttpd_text name,
			struct khttpd_text value, struct khttpd_refusal *refusal)
{
	switch (khttpd_text_lower(name.at[0])) {
	case 'h':
		if (!khttpd_text_is_word(name, "host"))
			return true;
		/* RFC 9112, section 3.2: more than one Host is 400, in every version. */
		if (fields->has_host)
			return khttpd_refuse(refusal, 400, "more than one Host");
		fields->has_host = true;
		fields->host = value;
		return true;
	case 'c':
		if (khttpd_text_is_word(name, "connection"))
			khttpd_fields_connection(fields, value);
		else if (khttpd_text_is_word(name, "content-length"))
			return khttpd_fields_length(fields, value, refusal);
		return true;
	case 't':
		return !khttpd_text_is_word(name, "transfer-encoding") ||
		       khttpd_fields_coding(fields, value, refusal);
	case 'e':
		return !khttpd_text_is_word(name, "expect") ||
		       khttpd_fields_expect(fields, value, refusal);
	case 'u':
		fields->request->upgrades |= khttpd_text_is_word(name, "upgrade");
		return true;
	case 'a':
	case 'i':
	case 'r':
		khttpd_fields_keep_known(fields, name, value);
		return true;
	default:
		return true;
	}
}

/* RFC 9112, section 6.3. */
static bool khttpd_fields_framing(struct khttpd_fields *fields, struct khttpd_refusal *refusal)
{
	struct khttpd_request *request = fields->request;

	if (!fields->coded) {
		request->framing = fields->has_length && fields->length ? KHTTPD_LENGTH
									: KHTTPD_NO_BODY;
		request->body_bytes = fields->length;
		return true;
	}
	if (fields->has_length)
		return khttpd_refuse(refusal, 400, "both Content-Length and Transfer-Encoding");
	if (request->http10)
		return khttpd_refuse(refusal, 400, "Transfer-Encoding in HTTP/1.0");
	if (!fields->chunked_last)
		return khttpd_refuse(refusal, 400, "the last transfer coding is not chunked");
	if (fields->coding_unknown)
		return khttpd_refuse(refusal, 501, "the only transfer coding known is chunked");
	request->framing = KHTTPD_CHUNKED;
	return true;
}

bool khttpd_fields_finish(struct khttpd_fields *fields, const struct khttpd_authority *authority,
			  struct khttpd_refusal *refusal)
{
	struct khttpd_request *request = fields->request;
	struct khttpd_authority host = {};
	bool is_star = request->path.length == 1 && request->path.at[0] == '*';

	/*
	 * RFC 9112, section 3.2: Host must be there in 1.1, and valid always, even if the target
	 * overrides it.
	 */
	if (!fields->has_host && !request->http10)
		return khttpd_refuse(refusal, 400, "no Host in HTTP/1.1");
	if (fields->has_host && !khttpd_authority_parse(fields->host, &host))
		return khttpd_refuse(refusal, 400, "Host is not valid");
	/*
	 * RFC 9110, section 4.2.1: an http URI with an empty host is refused; "*" names no
	 * resource.
	 */
	if (!host.host.length && !request->http10 && !authority->host.at && !is_star)
		return khttpd_refuse(refusal, 400, "Host is empty");
	request->host = authority->host.at ? authority->host : host.host;
	if (!khttpd_fields_framing(fields, refusal))
		return false;
	request->keep_alive = !fields->says_close &&
			      (!request->http10 || fields->says_keep_alive) &&
			      request->method != KHTTPD_CONNECT;
	request->expects_continue &= request->framing != KHTTPD_NO_BODY;
	return true;
}
