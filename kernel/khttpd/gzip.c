// SPDX-License-Identifier: GPL-2.0
/*
 * Bodies in gzip: see gzip.h. The kernel's zlib makes the stream; the frame around it is made here.
 */
#include <linux/crc32.h>
#include <linux/mm.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/zlib.h>
#ifdef HAVE_UNALIGNED
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#include "gzip.h"
#include "pages.h"

enum khttpd_gzip_frame {
	KHTTPD_GZIP_LEVEL = 9,
	KHTTPD_GZIP_HEAD_BYTES = 10,
	KHTTPD_GZIP_TAIL_BYTES = 8,
	/* Bytes that are deflated before others have their turn: about a millisecond's work. */
	KHTTPD_GZIP_PIECE_BYTES = 16 * 1024,
};

static void *workspace;

/* Method deflate, no time, best ratio, made on Unix (RFC 1952, section 2.3). */
static const u8 head[KHTTPD_GZIP_HEAD_BYTES] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3 };

/* Deflates all of it piece by piece, between which others have their turn. Z_STREAM_END where it fits. */
static int khttpd_gzip_deflate_pieces(struct z_stream_s *stream, size_t length)
{
	int said = Z_OK;

	while (said == Z_OK && (length || stream->avail_in)) {
		size_t piece = min_t(size_t, length, KHTTPD_GZIP_PIECE_BYTES);

		stream->avail_in += piece;
		length -= piece;
		said = zlib_deflate(stream, length ? Z_NO_FLUSH : Z_FINISH);
		cond_resched();
	}
	return said;
}

/* The raw stream into `room`; 0 where it does not fit. */
static size_t khttpd_gzip_deflate(const char *bytes, size_t length, char *room, size_t size)
{
	struct z_stream_s stream = {
		.workspace = workspace,
		.next_in = (const u8 *)bytes,
		.next_out = (u8 *)room,
		.avail_out = size,
	};
	size_t written = 0;

	if (zlib_deflateInit2(&stream, KHTTPD_GZIP_LEVEL, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			      Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	if (khttpd_gzip_deflate_pieces(&stream, length) == Z_STREAM_END)
		written = stream.total_out;
	zlib_deflateEnd(&stream);
	return written;
}

/* Writes the whole body into `room`; 0 where it does not fit. */
static size_t khttpd_gzip_write(const char *bytes, size_t length, char *room, size_t size)
{
	const size_t frame = KHTTPD_GZIP_HEAD_BYTES + KHTTPD_GZIP_TAIL_BYTES;
	size_t written = khttpd_gzip_deflate(bytes, length, room + sizeof(head), size - frame);
	u8 *tail = (u8 *)room + sizeof(head) + written;

	if (!written)
		return 0;
	memcpy(room, head, sizeof(head));
	put_unaligned_le32(~crc32_le(~0, (const u8 *)bytes, length), tail);
	put_unaligned_le32(length, tail + 4);
	return frame + written;
}

char *khttpd_gzip_encode(const char *bytes, size_t length, size_t *encoded_length)
{
	size_t size = length - KHTTPD_GZIP_GAIN_BYTES_MIN, written;
	char *room, *encoded = NULL;

	if (length < KHTTPD_GZIP_BYTES_MIN)
		return NULL;
	if (!workspace)
		workspace = kvmalloc(zlib_deflate_workspacesize(-MAX_WBITS, MAX_MEM_LEVEL),
				     GFP_KERNEL | __GFP_NOWARN);
	if (!workspace)
		return NULL;
	room = kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!room)
		return NULL;
	written = khttpd_gzip_write(bytes, length, room, size);
	if (written)
		encoded = khttpd_pages_make(written);
	if (encoded) {
		memcpy(encoded, room, written);
		*encoded_length = written;
	}
	kvfree(room);
	return encoded;
}

void khttpd_gzip_exit(void)
{
	kvfree(workspace);
}
