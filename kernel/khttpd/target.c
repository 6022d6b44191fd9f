// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The target of a request, and the authority that it or Host names.
 *
 * Owns RFC 9112, section 3.2, and RFC 3986, section 3.2, without user information, which RFC
 * 9110, section 4.2.4, tells to treat as an error. Never resolves a name. Freestanding: see
 * text.h.
 */
#include "request.h"

/*
 * The length of a percent-encoded byte that may stand in a name (RFC 3986, section 3.2.2), or 0.
 * Encoded delimiters and control characters would be another host to whoever decodes.
 */
static size_t khttpd_authority_encoded(struct khttpd_text bytes)
{
	u8 high, low, byte;

	if (bytes.length < 3 || bytes.at[0] != '%')
		return 0;
	high = khttpd_text_hex(bytes.at[1]);
	low = khttpd_text_hex(bytes.at[2]);
	if (high > 15 || low > 15)
		return 0;
	byte = high * 16 + low;
	return byte >= 0x80 || khttpd_text_is(byte, KHTTPD_NAME) ? 3 : 0;
}

/* Four decimal numbers below 256 without leading zeros, for the tail of an IPv6 address. */
static bool khttpd_authority_is_ipv4(struct khttpd_text text)
{
	unsigned int part;

	for (part = 0; part < 4; part++) {
		unsigned int number = 0, digits = 0;

		while (digits < text.length && digits < 4 && text.at[digits] >= '0' &&
		       text.at[digits] <= '9')
			number = number * 10 + text.at[digits++] - '0';
		if (!digits || digits > 3 || number > 255 || (digits > 1 && text.at[0] == '0'))
			return false;
		text = khttpd_text_from(text, digits);
		if (part == 3)
			return !text.length;
		if (!text.length || text.at[0] != '.')
			return false;
		text = khttpd_text_from(text, 1);
	}
	return false;
}

/*
 * RFC 4291, section 2.2: eight groups, one run of them replaced by "::", the last two perhaps as
 * IPv4.
 */
static bool khttpd_authority_is_ipv6(struct khttpd_text text)
{
	unsigned int groups = 0;
	bool gap = false;

	if (text.length >= 2 && text.at[0] == ':' && text.at[1] == ':') {
		gap = true;
		text = khttpd_text_from(text, 2);
	}
	while (text.length) {
		unsigned int digits = 0;

		while (digits < text.length && digits < 5 && khttpd_text_hex(text.at[digits]) < 16)
			digits++;
		if (groups <= 6 && digits < text.length && text.at[digits] == '.')
			return khttpd_authority_is_ipv4(text) && (gap ? groups < 6 : groups == 6);
		if (!digits || digits > 4 || ++groups > 8)
			return false;
		text = khttpd_text_from(text, digits);
		if (!text.length)
			break;
		if (text.at[0] != ':' || text.length == 1)
			return false;
		text = khttpd_text_from(text, 1);
		if (text.at[0] == ':') {
			if (gap)
				return false;
			gap = true;
			text = khttpd_text_from(text, 1);
		}
	}
	return gap ? groups < 8 : groups == 8;
}

/*
 * Where the registered name, the IPv4 address or the bracketed IPv6 address ends; false where it
 * is none.
 */
static bool khttpd_authority_host_end(struct khttpd_text bytes, size_t *end)
{
	size_t at = 0;

	if (bytes.length && bytes.at[0] == '[') {
		at = khttpd_text_find(bytes, ']');
		*end = at + 1;
		return at < bytes.length &&
		       khttpd_authority_is_ipv6((struct khttpd_text){ bytes.at + 1, at - 1 });
	}
	while (at < bytes.length && bytes.at[at] != ':') {
		size_t step = khttpd_text_is(bytes.at[at], KHTTPD_NAME)
				      ? 1
				      : khttpd_authority_encoded(khttpd_text_from(bytes, at));

		if (!step)
			return false;
		at += step;
	}
	*end = at;
	return true;
}

bool khttpd_authority_parse(struct khttpd_text bytes, struct khttpd_authority *authority)
{
	struct khttpd_text digits;
	u64 port = 0;
	size_t end;

	if (!khttpd_authority_host_end(bytes, &end))
		return false;
	authority->host = khttpd_text_until(bytes, end);
	authority->port = 0;
	if (end == bytes.length)
		return true;
	if (bytes.at[end] != ':')
		return false;
	digits = khttpd_text_from(bytes, end + 1);
	if (!digits.length)
		return true;
	if (digits.length > 5 || !khttpd_text_decimal(digits, &port) || port > 65535)
		return false;
	authority->port = port;
	return true;
}

/*
 * Splits at the '?' that stands at `mark`. An empty path of an absolute URI is "/" (RFC 9110,
 * section 4.2.3).
 */
static void khttpd_target_split(struct khttpd_request *request, struct khttpd_text target,
				size_t mark)
{
	request->path = mark ? khttpd_text_until(target, mark) : khttpd_text_of("/");
	request->has_query = mark < target.length;
	if (request->has_query)
		request->query = khttpd_text_from(target, mark + 1);
}

/* RFC 9112, section 3.2.3; RFC 9110, section 9.3.6: an empty or invalid port is an error. */
static bool khttpd_target_connect(struct khttpd_request *request, struct khttpd_text target,
				  struct khttpd_authority *authority,
				  struct khttpd_refusal *refusal)
{
	if (!khttpd_authority_parse(target, authority) || !authority->port ||
	    !authority->host.length)
		return khttpd_refuse(refusal, 400,
				     "the target of CONNECT is not a host and a port");
	request->path = khttpd_text_of("*");
	return true;
}

/* The length of "http://" or "https://" in any case (RFC 9112, section 3.2.2), or 0. */
static size_t khttpd_target_scheme(struct khttpd_text target)
{
	if (target.length >= 7 && khttpd_text_is_word(khttpd_text_until(target, 7), "http://"))
		return 7;
	if (target.length >= 8 && khttpd_text_is_word(khttpd_text_until(target, 8), "https://"))
		return 8;
	return 0;
}

static bool khttpd_target_absolute(struct khttpd_request *request, struct khttpd_text target,
				   struct khttpd_authority *authority,
				   struct khttpd_refusal *refusal)
{
	size_t scheme = khttpd_target_scheme(target), end = 0;
	struct khttpd_text rest = khttpd_text_from(target, scheme);

	if (!scheme)
		return khttpd_refuse(refusal, 400, "the target is neither a path nor an http URI");
	while (end < rest.length && rest.at[end] != '/' && rest.at[end] != '?')
		end++;
	/* RFC 9110, section 4.2.1: an http URI with an empty host is invalid. */
	if (!khttpd_authority_parse(khttpd_text_until(rest, end), authority) ||
	    !authority->host.length)
		return khttpd_refuse(refusal, 400, "the host in the target is not valid");
	rest = khttpd_text_from(rest, end);
	if (!rest.length && request->method == KHTTPD_OPTIONS) {
		request->path = khttpd_text_of("*");
		return true;
	}
	khttpd_target_split(request, rest, khttpd_text_find(rest, '?'));
	return true;
}

bool khttpd_target_parse(struct khttpd_request *request, struct khttpd_text target, size_t mark,
			 struct khttpd_authority *authority, struct khttpd_refusal *refusal)
{
	struct khttpd_text behind = khttpd_text_from(target, mark);

	if (khttpd_text_find(behind, '#') < behind.length)
		return khttpd_refuse(refusal, 400, "a fragment in the target");
	if (request->method == KHTTPD_CONNECT)
		return khttpd_target_connect(request, target, authority, refusal);
	if (target.at[0] == '/') {
		khttpd_target_split(request, target, mark);
		return true;
	}
	if (target.length != 1 || target.at[0] != '*')
		return khttpd_target_absolute(request, target, authority, refusal);
	/* RFC 9112, section 3.2.4. */
	if (request->method != KHTTPD_OPTIONS)
		return khttpd_refuse(refusal, 400, "the target * is for OPTIONS only");
	request->path = target;
	return true;
}
