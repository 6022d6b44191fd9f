// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Which content coding a peer prefers: see encoding.h. The rules are the server's
 * (crates/server/src/content/negotiate.rs).
 */
#include "encoding.h"

enum khttpd_encoding_weight {
	KHTTPD_WEIGHT_MAX = 1000,
	/* The plain body where the peer does not name it: acceptable, behind all that it asked for. */
	KHTTPD_WEIGHT_UNNAMED = 1,
	KHTTPD_WEIGHT_NONE = -1,
};

/* Weights in thousandths, as the peer gave them. */
struct khttpd_encoding_asked {
	int gzip, identity, others;
};

/* `q=0.123` (RFC 9110, section 12.4.2); KHTTPD_WEIGHT_NONE if it is none. */
static int khttpd_encoding_weight(struct khttpd_text parameter)
{
	int weight = 0;
	size_t i;

	if (parameter.length < 3 || khttpd_text_lower(parameter.at[0]) != 'q' || parameter.at[1] != '=' ||
	    parameter.length > 7 || (parameter.length > 3 && parameter.at[3] != '.'))
		return KHTTPD_WEIGHT_NONE;
	for (i = 4; i < 7; i++) {
		u8 digit = i < parameter.length ? parameter.at[i] - '0' : 0;

		if (digit > 9)
			return KHTTPD_WEIGHT_NONE;
		weight = weight * 10 + digit;
	}
	if (parameter.at[2] == '0')
		return weight;
	return parameter.at[2] == '1' && !weight ? KHTTPD_WEIGHT_MAX : KHTTPD_WEIGHT_NONE;
}

/* One element of the list; what cannot be understood counts as absent. */
static void khttpd_encoding_read(struct khttpd_encoding_asked *asked, struct khttpd_text element)
{
	size_t end = khttpd_text_find(element, ';');
	struct khttpd_text coding = khttpd_text_trim(khttpd_text_until(element, end));
	int weight = KHTTPD_WEIGHT_MAX;

	if (end < element.length) {
		element = khttpd_text_from(element, end + 1);
		element = khttpd_text_until(element, khttpd_text_find(element, ';'));
		weight = khttpd_encoding_weight(khttpd_text_trim(element));
	}
	if (weight == KHTTPD_WEIGHT_NONE)
		return;
	/* x-gzip is gzip (RFC 9110, section 8.4.1.3). */
	if (khttpd_text_is_word(coding, "gzip") || khttpd_text_is_word(coding, "x-gzip"))
		asked->gzip = weight;
	else if (khttpd_text_is_word(coding, "identity"))
		asked->identity = weight;
	else if (khttpd_text_is_word(coding, "*"))
		asked->others = weight;
}

static void khttpd_encoding_read_value(struct khttpd_encoding_asked *asked, struct khttpd_text value)
{
	struct khttpd_text element;
	bool more = true;

	while (khttpd_text_member(&value, &more, &element))
		khttpd_encoding_read(asked, element);
}

static int khttpd_encoding_or(int weight, int otherwise)
{
	return weight == KHTTPD_WEIGHT_NONE ? otherwise : weight;
}

bool khttpd_encoding_prefers_gzip(const struct khttpd_request *request, struct khttpd_text head)
{
	struct khttpd_encoding_asked asked = { KHTTPD_WEIGHT_NONE, KHTTPD_WEIGHT_NONE, KHTTPD_WEIGHT_NONE };
	struct khttpd_text name, value;
	int gzip;

	if (!(request->present & (1 << KHTTPD_ACCEPT_ENCODING)))
		return false;
	if (!(request->repeated & (1 << KHTTPD_ACCEPT_ENCODING)))
		khttpd_encoding_read_value(&asked, request->fields[KHTTPD_ACCEPT_ENCODING]);
	else
		while (khttpd_fields_next(&head, &name, &value))
			if (khttpd_text_is_word(name, "accept-encoding"))
				khttpd_encoding_read_value(&asked, value);
	gzip = khttpd_encoding_or(asked.gzip, khttpd_encoding_or(asked.others, 0));
	return gzip > 0 && gzip >= khttpd_encoding_or(asked.identity,
						      khttpd_encoding_or(asked.others, KHTTPD_WEIGHT_UNNAMED));
}
