// SPDX-License-Identifier: Apache-2.0
/*
 * The files of kernel/dostp that call nothing of the kernel, in user space: a question a line on standard
 * input, an answer a line on standard output.
 *
 *   f CLUSTER HEX          a frame: its first fault, or its header, the header encoded again, its sum
 *                          and its greeting encoded again ("-" where there is none)
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
			      struct dostp_header *header, struct dostp_greeting *greeting)
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
	return DOSTP_SOUND;
}

static void frame(const char *digits, uint8_t cluster)
{
	size_t length = strcmp(digits, "-") ? strlen(digits) / 2 : 0;
	uint8_t *bytes = malloc(length ? length : 1), encoded[DOSTP_GREETING_BYTES];
	struct dostp_greeting greeting;
	struct dostp_header header;
	enum dostp_fault fault;

	for (size_t i = 0; i < length; i++)
		sscanf(digits + 2 * i, "%2hhx", &bytes[i]);
	fault = judge(bytes, length, cluster, &header, &greeting);
	if (fault != DOSTP_SOUND) {
		printf("refuse %s\n", dostp_fault_names[fault]);
		free(bytes);
		return;
	}
	printf("accept %u %u %u %u %u %u %u %u %u", header.kind, header.flags, header.source, header.destination,
	       header.source_port, header.destination_port, header.id, header.length, header.sequence);
	dostp_header_encode(&header, cluster, encoded);
	print_hex(encoded, DOSTP_HEADER_BYTES);
	printf(" %08x", ~dostp_sum(~0U, bytes, DOSTP_HEADER_BYTES + header.length));
	if (dostp_is_control(header.kind)) {
		dostp_greeting_encode(&greeting, encoded);
		print_hex(encoded, DOSTP_GREETING_BYTES);
	} else {
		printf(" -");
	}
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
			frame(digits, cluster);
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
