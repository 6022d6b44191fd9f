// SPDX-License-Identifier: Apache-2.0
/*
 * The freestanding files of khttpd behind a pipe, so that a test can ask them without unsafe
 * code.
 *
 * Owns the frames: one letter, a length of four bytes (little endian) and the input come in; a
 * length and the answer, a line of text, go out. Each input stands in memory of exactly its size,
 * so that the sanitizers see a byte read too many.
 */
#include <stdio.h>
#include <stdlib.h>

#include "answer.h"
#include "body.h"
#include "date.h"
#include "encoding.h"
#include "listing.h"
#include "mime.h"
#include "path.h"
#include "piece.h"
#include "range.h"

static char reply[1 << 20];
static struct khttpd_output out = { .at = reply, .room = sizeof(reply) };

static void say(const char *words)
{
	khttpd_output_words(&out, words);
}

static void say_number(const char *name, u64 number)
{
	say(name);
	khttpd_output_number(&out, number);
}

static void say_text(const char *name, struct khttpd_text text)
{
	say(name);
	for (size_t i = 0; i < text.length; i++)
		khttpd_output_hex(&out, text.at[i], 2);
}

static u64 number_at(struct khttpd_text *input, unsigned int bytes)
{
	u64 number = 0;

	for (unsigned int i = 0; i < bytes; i++)
		number |= (u64)input->at[i] << (8 * i);
	*input = khttpd_text_from(*input, bytes);
	return number;
}

/* The first `length` bytes in memory of their own. */
static struct khttpd_text copy(struct khttpd_text text, size_t length)
{
	u8 *bytes = malloc(length ? length : 1);

	memcpy(bytes, text.at, length);
	return (struct khttpd_text){ bytes, length };
}

static void tell_refusal(const struct khttpd_refusal *refusal)
{
	say_number("refused ", refusal->status);
	say(" ");
	say(refusal->reason);
}

static void tell_request(const struct khttpd_request *request, struct khttpd_text behind)
{
	struct khttpd_body body;

	khttpd_body_begin(&body, request);
	say_number("complete method=", request->method);
	say_text(" path=", request->path);
	say_text(request->has_query ? " query=?" : " query=", request->query);
	say_text(" host=", request->host);
	say_number(" head=", request->head_bytes);
	say_number(" http10=", request->http10);
	say_number(" keep=", request->keep_alive && !khttpd_body_is_lost(&body));
	say_number(" framing=", request->framing);
	say_number(" bytes=", request->framing == KHTTPD_LENGTH ? request->body_bytes : 0);
	for (int i = 0; i < KHTTPD_FIELDS_KEPT; i++)
		say_text(request->present & (1 << i) ? " +" : " -", request->fields[i]);
	say_number(" progress=", khttpd_body_advance(&body, &behind));
	say_number(" behind=", behind.length);
}

/* Four bytes say in pieces of which size the rest comes; 0 is all at once. */
static void ask_request(struct khttpd_text input)
{
	size_t step = number_at(&input, 4),
	       length = step && step < input.length ? step : input.length;
	enum khttpd_verdict verdict;
	struct khttpd_search search = {};
	struct khttpd_refusal refusal;
	struct khttpd_request request;

	for (;;) {
		struct khttpd_text bytes = copy(input, length);

		verdict = khttpd_request_parse(&request, &search, &refusal, bytes);
		if (verdict == KHTTPD_COMPLETE) {
			struct khttpd_text behind = khttpd_text_from(bytes, request.head_bytes);

			if (khttpd_body_check(&request, behind, &refusal))
				tell_request(&request, behind);
			else
				verdict = KHTTPD_REFUSED;
		}
		if (verdict == KHTTPD_REFUSED)
			tell_refusal(&refusal);
		free((void *)bytes.at);
		if (verdict != KHTTPD_INCOMPLETE)
			return;
		if (length == input.length) {
			say("incomplete");
			return;
		}
		length = length + step < input.length ? length + step : input.length;
	}
}

static void ask_path(struct khttpd_text input)
{
	char *path = malloc(input.length + 1);
	int length = khttpd_path_decode(input, path);

	if (length < 0) {
		say_number("error ", -length);
		if (khttpd_path_is_plain(input))
			say(" but was told to be plain");
	} else {
		say_number("path ", khttpd_path_is_servable(path, length));
		say_text(" ", (struct khttpd_text){ (u8 *)path, length });
		if (path[length])
			say(" and no NUL behind it");
		if (khttpd_path_is_plain(input) && ((size_t)length != input.length || memcmp(path, input.at, length)))
			say(" but was told to be plain");
	}
	free(path);
}

/* A path with slashes in a row: decoded where it stands, with one in the place of each row. */
static void ask_single(struct khttpd_text input)
{
	char *path = malloc(input.length + 1);
	struct khttpd_text single = { (u8 *)path, khttpd_path_single(input, path) };
	int length = khttpd_path_decode(single, path);

	if (length < 0)
		say_number("error ", -length);
	else
		say_text("", (struct khttpd_text){ (u8 *)path, length });
	free(path);
}

static void ask_range(struct khttpd_text input)
{
	u64 length = number_at(&input, 8), start = 0, end = 0;

	switch (khttpd_range_parse(input, length, &start, &end)) {
	case KHTTPD_RANGE_IGNORE:
		say("ignore");
		break;
	case KHTTPD_RANGE_UNSATISFIABLE:
		say("unsatisfiable");
		break;
	case KHTTPD_RANGE_ONE:
		say_number("one ", start);
		say_number(" ", end);
	}
}

/* A head of a request, seen against the tag "a" and Sun, 06 Nov 1994 08:49:37 GMT. */
static void ask_condition(struct khttpd_text input)
{
	struct khttpd_validators validators = {
		.etag = khttpd_text_of("\"a\""),
		.has_modified = true,
		.modified = 784111777,
	};
	struct khttpd_search search = {};
	struct khttpd_refusal refusal;
	struct khttpd_request request;

	if (khttpd_request_parse(&request, &search, &refusal, input) != KHTTPD_COMPLETE) {
		say("no request");
		return;
	}
	say_number("", khttpd_condition_check(&request, input, &validators));
	say_number(" ", khttpd_condition_range(&request, &validators));
}

/* A head of a request: whether it prefers gzip. */
static void ask_encoding(struct khttpd_text input)
{
	struct khttpd_search search = {};
	struct khttpd_refusal refusal;
	struct khttpd_request request;

	if (khttpd_request_parse(&request, &search, &refusal, input) != KHTTPD_COMPLETE)
		say("no request");
	else
		say(khttpd_encoding_prefers_gzip(&request, input) ? "gzip" : "plain");
}

static void ask_date(struct khttpd_text input)
{
	s64 seconds;
	char date[KHTTPD_DATE_BYTES];

	if (!khttpd_date_read(input, &seconds)) {
		say("none");
		return;
	}
	khttpd_date_write(seconds, date);
	say_number("", seconds);
	say(" ");
	khttpd_output_bytes(&out, date, sizeof(date));
}

static void ask_row(struct khttpd_text input)
{
	char *room = malloc(KHTTPD_LISTING_ROW_BYTES);
	struct khttpd_output row = { .at = room, .room = KHTTPD_LISTING_ROW_BYTES };
	struct khttpd_listing_entry entry = { .is_folder = number_at(&input, 1), .size = 12 };

	entry.modified = number_at(&input, 8);
	entry.name = input;
	khttpd_listing_row(&row, &entry);
	if (row.full)
		say("full");
	khttpd_output_bytes(&out, row.at, row.length);
	free(room);
}

static void ask_listing(struct khttpd_text input)
{
	char *room = malloc(KHTTPD_LISTING_HEAD_BYTES);
	struct khttpd_output page = { .at = room, .room = KHTTPD_LISTING_HEAD_BYTES };
	bool is_cut = number_at(&input, 1);

	khttpd_listing_begin(&page, input);
	khttpd_listing_end(&page, is_cut);
	if (page.full)
		say("full");
	khttpd_output_bytes(&out, page.at, page.length);
	free(room);
}

/*
 * An answer of each kind; the first byte chooses, two more are a status, one says how the
 * connection is.
 */
static void ask_answer(struct khttpd_text input)
{
	unsigned int kind = number_at(&input, 1), status = number_at(&input, 2),
		     bits = number_at(&input, 1);
	struct khttpd_manner manner = {
		.date = "Sun, 06 Nov 1994 08:49:37 GMT",
		.http10 = bits & 1,
		.keep = bits & 2,
		.omit_body = bits & 4,
	};
	struct khttpd_represented file = {
		.size = 13,
		.start = 2,
		.end = 7,
		.media = "text/plain; charset=utf-8",
		.coding = bits & 16 ? "gzip" : NULL,
		.varies = bits & 16,
		.validators = { khttpd_text_of("\"a\""), true, 784111777 },
	};
	struct khttpd_refusal refusal = { status, "the head is larger than 32 KiB" };
	struct khttpd_request request = { .has_query = bits & 8, .query = input };
	size_t room = kind == 4 ? KHTTPD_ANSWER_BYTES + 6 * input.length : KHTTPD_ANSWER_BYTES;
	struct khttpd_output answer = { .at = malloc(room), .room = room };

	switch (kind) {
	case 0:
		khttpd_answer_file(&answer, status, &manner, &file);
		break;
	case 1:
		khttpd_answer_problem(&answer, status, &manner, 13);
		break;
	case 2:
		khttpd_answer_refusal(&answer, &refusal, &manner);
		break;
	case 3:
		khttpd_answer_options(&answer, &manner);
		break;
	case 4:
		khttpd_answer_moved(&answer, &manner, input, &request);
		break;
	default:
		khttpd_answer_listing(&answer, &manner);
	}
	if (answer.full)
		say("full");
	khttpd_output_bytes(&out, answer.at, answer.length);
	free(answer.at);
}

static void ask(int letter, struct khttpd_text input)
{
	switch (letter) {
	case 'q':
		ask_request(input);
		break;
	case 'p':
		ask_path(input);
		break;
	case 'u':
		ask_single(input);
		break;
	case 'P':
		say(khttpd_path_is_plain(input) ? "plain" : "other");
		break;
	case 'r':
		ask_range(input);
		break;
	case 'c':
		ask_condition(input);
		break;
	case 'g':
		ask_encoding(input);
		break;
	case 'd':
		ask_date(input);
		break;
	case 'm':
		say(khttpd_mime_of(input).value);
		break;
	case 'e':
		ask_row(input);
		break;
	case 'l':
		ask_listing(input);
		break;
	case 'a':
		ask_answer(input);
		break;
	case 's':
		say_number("", khttpd_piece_length((const char *)input.at, input.length));
		break;
	default:
		/* The canary: the sanitizer must end the program here. */
		reply[0] = input.at[input.length];
	}
}

int main(void)
{
	u8 head[5];

	while (fread(head, sizeof(head), 1, stdin) == 1) {
		size_t length = head[1] | head[2] << 8 | head[3] << 16 | (size_t)head[4] << 24;
		u8 *bytes = malloc(length ? length : 1), size[4];

		if (length && fread(bytes, length, 1, stdin) != 1)
			return 1;
		out.length = 0;
		ask(head[0], (struct khttpd_text){ bytes, length });
		free(bytes);
		if (out.full)
			return 2;
		for (int i = 0; i < 4; i++)
			size[i] = out.length >> (8 * i);
		fwrite(size, sizeof(size), 1, stdout);
		fwrite(reply, out.length, 1, stdout);
		fflush(stdout);
	}
	return 0;
}
