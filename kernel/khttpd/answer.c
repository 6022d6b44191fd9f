// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The head of an answer, and the small answers that have no file behind them: see answer.h.
 */
#include "answer.h"

#include "date.h"

static const struct {
	u16 status;
	const char *reason;
	const char *sentence; /* for a page, where the status has one */
} statuses[] = {
	{ 200, "OK", "" },
	{ 204, "No Content", "" },
	{ 206, "Partial Content", "" },
	{ 301, "Moved Permanently", "This has another address now." },
	{ 304, "Not Modified", "" },
	{ 400, "Bad Request", "The address is not one that can be understood." },
	{ 403, "Forbidden", "What stands at this address may not be shown." },
	{ 404, "Not Found", "There is nothing at this address." },
	{ 405, "Method Not Allowed", "Here things can be read, not changed." },
	{ 408, "Request Timeout", "" },
	{ 412, "Precondition Failed", "The content is not what the request expected it to be." },
	{ 414, "URI Too Long", "" },
	{ 416, "Range Not Satisfiable",
	  "The part of the content that was asked for does not exist." },
	{ 417, "Expectation Failed", "" },
	{ 431, "Request Header Fields Too Large", "" },
	{ 500, "Internal Server Error", "The content could not be read." },
	{ 501, "Not Implemented", "This server does not know the method." },
	{ 503, "Service Unavailable", "Too much at once. Please try again in a moment." },
	{ 505, "HTTP Version Not Supported", "" },
};

/*
 * The place of a status in the table. A status that is not in it is a fault of ours and answered
 * as 500.
 */
static size_t khttpd_answer_place(unsigned int status)
{
	size_t i, ours = 0;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].status == status)
			return i;
		if (statuses[i].status == 500)
			ours = i;
	}
	return ours;
}

static void khttpd_answer_status(struct khttpd_output *output, size_t place)
{
	khttpd_output_number(output, statuses[place].status);
	khttpd_output_words(output, " ");
	khttpd_output_words(output, statuses[place].reason);
}

void khttpd_answer_begin(struct khttpd_output *output, unsigned int status,
			 const struct khttpd_manner *manner)
{
	khttpd_output_words(output, "HTTP/1.1 ");
	khttpd_answer_status(output, khttpd_answer_place(status));
	khttpd_output_words(output, "\r\nServer: staunch\r\nDate: ");
	khttpd_output_bytes(output, manner->date, KHTTPD_DATE_BYTES);
	if (!manner->keep)
		khttpd_output_words(output, "\r\nConnection: close");
	else if (manner->http10)
		khttpd_output_words(output, "\r\nConnection: keep-alive");
	khttpd_output_words(output, "\r\n");
}

static void khttpd_answer_modified(struct khttpd_output *output,
				   const struct khttpd_validators *validators)
{
	char date[KHTTPD_DATE_BYTES];

	if (!validators->has_modified)
		return;
	khttpd_date_write(validators->modified, date);
	khttpd_output_words(output, "Last-Modified: ");
	khttpd_output_bytes(output, date, sizeof(date));
	khttpd_output_words(output, "\r\n");
}

/* A 304 has only what a cache needs to choose by (RFC 9110, section 15.4.5). */
void khttpd_answer_file(struct khttpd_output *output, unsigned int status,
			const struct khttpd_manner *manner, const struct khttpd_represented *file)
{
	khttpd_answer_begin(output, status, manner);
	if (status != 304) {
		khttpd_output_words(output, "Content-Length: ");
		khttpd_output_number(output, file->end - file->start);
		khttpd_output_words(output, "\r\nContent-Type: ");
		khttpd_output_words(output, file->media);
		khttpd_output_words(output, "\r\n");
		if (file->coding) {
			khttpd_output_words(output, "Content-Encoding: ");
			khttpd_output_words(output, file->coding);
			khttpd_output_words(output, "\r\n");
		}
		khttpd_answer_modified(output, &file->validators);
		khttpd_output_words(output,
				    "Accept-Ranges: bytes\r\nX-Content-Type-Options: nosniff\r\n");
	}
	if (status == 206) {
		khttpd_output_words(output, "Content-Range: bytes ");
		khttpd_output_number(output, file->start);
		khttpd_output_words(output, "-");
		khttpd_output_number(output, file->end - 1);
		khttpd_output_words(output, "/");
		khttpd_output_number(output, file->size);
		khttpd_output_words(output, "\r\n");
	}
	if (file->varies)
		khttpd_output_words(output, "Vary: Accept-Encoding\r\n");
	khttpd_output_words(output, "Cache-Control: no-cache\r\nETag: ");
	khttpd_output_bytes(output, file->validators.etag.at, file->validators.etag.length);
	khttpd_output_words(output, "\r\n\r\n");
}

void khttpd_answer_listing(struct khttpd_output *output, const struct khttpd_manner *manner)
{
	khttpd_answer_begin(output, 200, manner);
	khttpd_output_words(
		output,
		"Content-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
		"Cache-Control: no-cache\r\n");
	khttpd_output_words(output, manner->http10 ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
}

/* The page of a status: what stands before, in, and behind its sentence. */
static void khttpd_answer_page(struct khttpd_output *output, size_t place)
{
	khttpd_output_words(
		output, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
	khttpd_answer_status(output, place);
	khttpd_output_words(output, "</title>\n<h1>");
	khttpd_answer_status(output, place);
	khttpd_output_words(output, "</h1>\n<p>");
	khttpd_output_words(output, statuses[place].sentence);
	khttpd_output_words(output, "</p>\n</html>\n");
}

/* Appends length, type and page; `more` are further field lines. */
static void khttpd_answer_body(struct khttpd_output *output, unsigned int status,
			       const struct khttpd_manner *manner)
{
	size_t place = khttpd_answer_place(status);
	char page[512];
	struct khttpd_output body = { .at = page, .room = sizeof(page) };

	khttpd_answer_page(&body, place);
	khttpd_output_words(
		output,
		"Content-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
		"Cache-Control: no-cache\r\nContent-Length: ");
	khttpd_output_number(output, body.length);
	khttpd_output_words(output, "\r\n\r\n");
	if (!manner->omit_body)
		khttpd_output_bytes(output, page, body.length);
}

void khttpd_answer_problem(struct khttpd_output *output, unsigned int status,
			   const struct khttpd_manner *manner, u64 size)
{
	khttpd_answer_begin(output, status, manner);
	if (status == 405 || status == 501)
		khttpd_output_words(output, "Allow: GET, HEAD, OPTIONS\r\n");
	if (status == 503)
		khttpd_output_words(output, "Retry-After: 1\r\n");
	if (status == 416) {
		khttpd_output_words(output, "Content-Range: bytes */");
		khttpd_output_number(output, size);
		khttpd_output_words(output, "\r\n");
	}
	khttpd_answer_body(output, status, manner);
}

void khttpd_answer_refusal(struct khttpd_output *output, const struct khttpd_refusal *refusal,
			   const struct khttpd_manner *manner)
{
	size_t place = khttpd_answer_place(refusal->status);
	size_t length = 3 + 1 + strlen(statuses[place].reason) + 2 + strlen(refusal->reason) + 1;

	khttpd_answer_begin(output, refusal->status, manner);
	khttpd_output_words(output, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
	khttpd_output_number(output, length);
	khttpd_output_words(output, "\r\n\r\n");
	if (manner->omit_body)
		return;
	khttpd_answer_status(output, place);
	khttpd_output_words(output, ": ");
	khttpd_output_words(output, refusal->reason);
	khttpd_output_words(output, "\n");
}

void khttpd_answer_options(struct khttpd_output *output, const struct khttpd_manner *manner)
{
	khttpd_answer_begin(output, 204, manner);
	khttpd_output_words(output, "Allow: GET, HEAD, OPTIONS\r\n\r\n");
}

/*
 * Bytes without a place in an address, and those that could end a field or name another host, are
 * encoded.
 */
static void khttpd_answer_encode(struct khttpd_output *output, struct khttpd_text text,
				 const char *plain)
{
	size_t i;

	for (i = 0; i < text.length; i++) {
		u8 byte = text.at[i];

		if (khttpd_text_is(byte, KHTTPD_SEGMENT) || (byte && strchr(plain, byte))) {
			khttpd_output_bytes(output, &byte, 1);
		} else {
			khttpd_output_words(output, "%");
			khttpd_output_bytes(output, "0123456789ABCDEF" + (byte >> 4), 1);
			khttpd_output_bytes(output, "0123456789ABCDEF" + (byte & 15), 1);
		}
	}
}

void khttpd_answer_moved(struct khttpd_output *output, const struct khttpd_manner *manner,
			 struct khttpd_text path, const struct khttpd_request *request)
{
	khttpd_answer_begin(output, 301, manner);
	khttpd_output_words(output, "Location: ");
	/*
	 * A decoded path has no empty segment but the last, so it cannot begin with "//" and name
	 * another host.
	 */
	khttpd_answer_encode(output, path, "/!$()*+,;=@");
	if (request->has_query) {
		khttpd_output_words(output, "?");
		khttpd_answer_encode(output, request->query, "/!$%&'()*+,;=:@?[]");
	}
	khttpd_output_words(output, "\r\n");
	khttpd_answer_body(output, 301, manner);
}
