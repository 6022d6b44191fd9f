// SPDX-License-Identifier: Apache-2.0
/*
 * The files of kernel/dostp that call nothing of the kernel, in user space: a question a line on standard
 * input, an answer a line on standard output.
 *
 *   f CLUSTER HEX          a frame: its first fault, or its header, the header encoded again, its sum
 *                          and its greeting encoded again ("-" where there is none); and behind " + " each
 *                          frame that is joined to it
 *   m SOURCE PORT ID NOW   a message comes: whether one of its id came before, and whether it is new
 *   x SOURCE               a source is forgotten
 *
 * Each frame stands in memory of exactly its size, so that the sanitizers see a byte read too many.
 */
#include <stdio.h>
#include <stdlib.h>

#include "window.h"

static struct dostp_window window = { .seed = 0x0123456789abcdefULL, .age = 1000 };

static void print_hex(const uint8_t *bytes, size_t length)
{
	putchar(' ');
	for (size_t i = 0; i < length; i++)
		printf("%02x", bytes[i]);
}

/* What the module does with the bytes of a frame: see dostp_receive_decode. */
static enum dostp_fault judge(const uint8_t *bytes, size_t length, uint8_t cluster,
			      struct dostp_header *header, struct dostp_greeting *greeting, size_t *end_of)
{
	enum dostp_fault fault;
	size_t end;

	if (length < DOSTP_HEADER_BYTES)
		return DOSTP_FAULT_SHORT;
	fault = dostp_header_decode(bytes, cluster, header);
	if (fault != DOSTP_SOUND)
		return fault;
	end = DOSTP_HEADER_BYTES + header->length;
	if (header->flags & DOSTP_AUTH && length <= end)
		return DOSTP_FAULT_LENGTH;
	end += dostp_header_trailer(header, header->flags & DOSTP_AUTH ? bytes[end] : 0);
	if (end > length || !dostp_header_is_length_right(header))
		return DOSTP_FAULT_LENGTH;
	if (dostp_is_control(header->kind) && !dostp_greeting_decode(bytes + DOSTP_HEADER_BYTES, greeting))
		return DOSTP_FAULT_LENGTH;
	*end_of = end;
	return DOSTP_SOUND;
}

static void print_frame(const uint8_t *bytes, uint8_t cluster, const struct dostp_header *header,
			const struct dostp_greeting *greeting)
{
	uint8_t encoded[DOSTP_GREETING_BYTES];

	printf("accept %u %u %u %u %u %u %u %u %u", header->kind, header->flags, header->source,
	       header->destination, header->source_port, header->destination_port, header->id, header->length,
	       header->sequence);
	dostp_header_encode(header, cluster, encoded);
	print_hex(encoded, DOSTP_HEADER_BYTES);
	printf(" %08x", ~dostp_sum(~0U, bytes, DOSTP_HEADER_BYTES + header->length));
	if (dostp_is_control(header->kind)) {
		dostp_greeting_encode(greeting, encoded);
		print_hex(encoded, DOSTP_GREETING_BYTES);
	} else {
		printf(" -");
	}
}

static void frames(const char *digits, uint8_t cluster)
{
	size_t length = strcmp(digits, "-") ? strlen(digits) / 2 : 0, at = 0;
	uint8_t *bytes = malloc(length ? length : 1);
	struct dostp_header header = {}, before;
	struct dostp_greeting greeting;
	enum dostp_fault fault;

	for (size_t i = 0; i < length; i++)
		sscanf(digits + 2 * i, "%2hhx", &bytes[i]);
	do {
		size_t end = 0, begin = at;

		before = header;
		fault = judge(bytes + begin, length - begin, cluster, &header, &greeting, &end);
		at += end;
		if (fault == DOSTP_SOUND && begin && !dostp_header_may_follow(&before, &header))
			fault = DOSTP_FAULT_FLAGS;
		if (begin)
			printf(" + ");
		if (fault == DOSTP_SOUND)
			print_frame(bytes + begin, cluster, &header, &greeting);
		else
			printf("refuse %s", dostp_fault_names[fault]);
	} while (fault == DOSTP_SOUND && header.flags & DOSTP_MORE);
	printf("\n");
	free(bytes);
}

int main(void)
{
	static char line[1 << 18], digits[1 << 18];

	while (fgets(line, sizeof(line), stdin)) {
		struct dostp_header header = { .destination_port = 1 };
		unsigned long now;
		uint8_t cluster;

		if (sscanf(line, "f %hhu %s", &cluster, digits) == 2) {
			frames(digits, cluster);
		} else if (sscanf(line, "m %hu %hu %hu %lu", &header.source, &header.source_port, &header.id,
				  &now) == 4) {
			bool came = dostp_window_has(&window, &header, now);

			printf("%d %d\n", came, dostp_window_note(&window, &header, now));
		} else if (sscanf(line, "x %hu", &header.source) == 1) {
			dostp_window_forget(&window, header.source);
		} else {
			return 2;
		}
	}
	return 0;
}
