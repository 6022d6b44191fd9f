// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Bodies of requests, read only to be thrown away: see body.h. The positions are those of RFC
 * 9112, section 7.1.
 */
#include "body.h"

enum khttpd_body_position {
	NOTHING,
	LOST,
	BROKEN,
	LENGTH,
	SIZE_FIRST,
	SIZE,
	SIZE_SPACE,         /* an extension must follow */
	EXTENSION_FIRST,    /* behind a semicolon: a name must follow */
	EXTENSION_NAME,
	EXTENSION_SPACE,    /* behind a name: a sign must follow */
	EXTENSION_EQUALS,   /* a value must follow */
	EXTENSION_VALUE,
	EXTENSION_QUOTED,
	EXTENSION_ESCAPED,
	EXTENSION_END,      /* behind a quoted value */
	EXTENSION_NEXT,     /* white space behind a value: another extension must follow */
	SIZE_LINE_FEED,
	DATA,
	DATA_RETURN,
	DATA_LINE_FEED,
	TRAILER_FIRST,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LINE_FEED,
	LAST_LINE_FEED,
};

void khttpd_body_begin(struct khttpd_body *body, const struct khttpd_request *request)
{
	memset(body, 0, sizeof(*body));
	body->position = NOTHING;
	if (request->framing == KHTTPD_CHUNKED)
		body->position = SIZE_FIRST;
	if (request->framing == KHTTPD_LENGTH) {
		body->position = request->body_bytes > KHTTPD_BODY_BYTES_MAX ? LOST : LENGTH;
		body->remaining = request->body_bytes;
	}
	/*
	 * A body withheld until 100 is sent never comes: the final status is sent at once (RFC
	 * 9110, 10.1.1).
	 */
	if (request->expects_continue)
		body->position = LOST;
}

bool khttpd_body_is_lost(const struct khttpd_body *body)
{
	return body->position == LOST;
}

static bool khttpd_body_is_text(u8 byte)
{
	return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

static u8 khttpd_body_count(struct khttpd_body *body, unsigned int most, u8 next)
{
	return ++body->line <= most ? next : BROKEN;
}

/* A digit of a chunk's size, or what stands behind the last one. */
static u8 khttpd_body_size(struct khttpd_body *body, u8 byte)
{
	u8 digit = khttpd_text_hex(byte);

	if (body->position != SIZE_SPACE && digit < 16) {
		/* Compared at each digit, so it cannot overflow. */
		body->remaining = body->remaining * 16 + digit;
		if (khttpd_body_count(body, KHTTPD_CHUNK_LINE_BYTES_MAX, SIZE) == BROKEN)
			return BROKEN;
		return body->taken + body->remaining > KHTTPD_BODY_BYTES_MAX ? LOST : SIZE;
	}
	if (body->position == SIZE_FIRST)
		return BROKEN;
	if (byte == '\r' && body->position == SIZE)
		return SIZE_LINE_FEED;
	if (byte == ' ' || byte == '\t')
		return khttpd_body_count(body, KHTTPD_CHUNK_LINE_BYTES_MAX, SIZE_SPACE);
	return byte == ';' ? khttpd_body_count(body, KHTTPD_CHUNK_LINE_BYTES_MAX, EXTENSION_FIRST)
			   : BROKEN;
}

/* A byte of a quoted value, behind its first quotation mark. */
static u8 khttpd_body_quoted(u8 position, u8 byte)
{
	if (!khttpd_body_is_text(byte))
		return BROKEN;
	if (position == EXTENSION_ESCAPED)
		return EXTENSION_QUOTED;
	if (byte == '\\')
		return EXTENSION_ESCAPED;
	return byte == '"' ? EXTENSION_END : EXTENSION_QUOTED;
}

/* White space within extensions: where the next byte stands. */
static u8 khttpd_body_extension_space(u8 position)
{
	switch (position) {
	case EXTENSION_NAME:
		return EXTENSION_SPACE;
	case EXTENSION_VALUE:
	case EXTENSION_END:
		return EXTENSION_NEXT;
	default:
		return position;
	}
}

/* A byte of a name or a value that is a token, or one that ends it. */
static u8 khttpd_body_extension_token(u8 position, u8 byte)
{
	bool in_name = position == EXTENSION_FIRST || position == EXTENSION_NAME;
	bool in_value = position == EXTENSION_EQUALS || position == EXTENSION_VALUE;

	if (khttpd_text_is(byte, KHTTPD_TOKEN))
		return in_name ? EXTENSION_NAME : in_value ? EXTENSION_VALUE : BROKEN;
	if (byte == '"')
		return position == EXTENSION_EQUALS ? EXTENSION_QUOTED : BROKEN;
	if (byte == '=')
		return position == EXTENSION_NAME || position == EXTENSION_SPACE ? EXTENSION_EQUALS
										 : BROKEN;
	if (position == EXTENSION_FIRST || position == EXTENSION_EQUALS || byte != ';')
		return BROKEN;
	return EXTENSION_FIRST;
}

/*
 * A byte of a chunk's extensions: BWS ";" BWS name [ BWS "=" BWS value ], the value a token or
 * quoted (section 7.1.1). What they say concerns nobody here.
 */
static u8 khttpd_body_extension(struct khttpd_body *body, u8 byte)
{
	u8 position = body->position, next;

	if (position == EXTENSION_QUOTED || position == EXTENSION_ESCAPED)
		next = khttpd_body_quoted(position, byte);
	else if (byte == '\r')
		return position == EXTENSION_NAME || position == EXTENSION_VALUE ||
				       position == EXTENSION_END
			       ? SIZE_LINE_FEED
			       : BROKEN;
	else if (byte == ' ' || byte == '\t')
		next = khttpd_body_extension_space(position);
	else
		next = khttpd_body_extension_token(position, byte);
	return next == BROKEN ? BROKEN
			      : khttpd_body_count(body, KHTTPD_CHUNK_LINE_BYTES_MAX, next);
}

/*
 * Lines of the trailer section are field lines (sections 7.1.2 and 5); what they say concerns
 * nobody here.
 */
static u8 khttpd_body_trailer(struct khttpd_body *body, u8 byte)
{
	u8 next = BROKEN;

	if (body->position == TRAILER_FIRST && byte == '\r')
		return LAST_LINE_FEED;
	if (body->position == TRAILER_LINE_FEED)
		next = byte == '\n' ? TRAILER_FIRST : BROKEN;
	else if (body->position == TRAILER_VALUE)
		next = byte == '\r'                ? TRAILER_LINE_FEED
		       : khttpd_body_is_text(byte) ? TRAILER_VALUE
						   : BROKEN;
	else if (body->position == TRAILER_NAME && byte == ':')
		next = TRAILER_VALUE;
	else if (khttpd_text_is(byte, KHTTPD_TOKEN))
		next = TRAILER_NAME;
	return next == BROKEN ? BROKEN : khttpd_body_count(body, KHTTPD_TRAILER_BYTES_MAX, next);
}

/* One byte that is no data: where the next one stands. */
static u8 khttpd_body_step(struct khttpd_body *body, u8 byte)
{
	switch (body->position) {
	case SIZE_FIRST:
	case SIZE:
	case SIZE_SPACE:
		return khttpd_body_size(body, byte);
	case EXTENSION_FIRST:
	case EXTENSION_NAME:
	case EXTENSION_SPACE:
	case EXTENSION_EQUALS:
	case EXTENSION_VALUE:
	case EXTENSION_QUOTED:
	case EXTENSION_ESCAPED:
	case EXTENSION_END:
	case EXTENSION_NEXT:
		return khttpd_body_extension(body, byte);
	case SIZE_LINE_FEED:
		body->line = 0;
		if (byte != '\n')
			return BROKEN;
		return body->remaining ? DATA : TRAILER_FIRST;
	case DATA_RETURN:
		return byte == '\r' ? DATA_LINE_FEED : BROKEN;
	case DATA_LINE_FEED:
		return byte == '\n' ? SIZE_FIRST : BROKEN;
	case LAST_LINE_FEED:
		return byte == '\n' ? NOTHING : BROKEN;
	default:
		return khttpd_body_trailer(body, byte);
	}
}

/* Takes what is there of the body's or the chunk's data. */
static void khttpd_body_skip(struct khttpd_body *body, struct khttpd_text *input)
{
	size_t count = input->length < body->remaining ? input->length : body->remaining;

	*input = khttpd_text_from(*input, count);
	body->remaining -= count;
	body->taken += count;
	if (!body->remaining)
		body->position = body->position == DATA ? DATA_RETURN : NOTHING;
}

enum khttpd_body_progress khttpd_body_advance(struct khttpd_body *body, struct khttpd_text *input)
{
	for (;;) {
		switch (body->position) {
		case NOTHING:
			return KHTTPD_BODY_DONE;
		case LOST:
			return KHTTPD_BODY_LOST;
		case BROKEN:
			return KHTTPD_BODY_BROKEN;
		}
		if (!input->length)
			return KHTTPD_BODY_MORE;
		if (body->position == LENGTH || body->position == DATA) {
			khttpd_body_skip(body, input);
			continue;
		}
		if (++body->taken > KHTTPD_BODY_BYTES_MAX)
			body->position = LOST;
		else
			body->position = khttpd_body_step(body, input->at[0]);
		*input = khttpd_text_from(*input, 1);
	}
}

bool khttpd_body_check(const struct khttpd_request *request, struct khttpd_text behind,
		       struct khttpd_refusal *refusal)
{
	struct khttpd_body body;

	if (request->framing != KHTTPD_CHUNKED || request->expects_continue)
		return true;
	khttpd_body_begin(&body, request);
	return khttpd_body_advance(&body, &behind) != KHTTPD_BODY_BROKEN ||
	       khttpd_refuse(refusal, 400,
			     "the body is not in the chunked coding it is said to have");
}
