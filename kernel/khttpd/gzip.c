// SPDX-License-Identifier: GPL-2.0
/*
 * Bodies in gzip: see gzip.h. The kernel's zlib makes the stream; the frame around it is made here.
 */
#include <linux/crc32.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
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
};

struct khttpd_gzip_desk {
	struct mutex lock;
	void *workspace;
};

static struct khttpd_gzip_desk __percpu *desks;

/* Method deflate, no time, best ratio, made on Unix (RFC 1952, section 2.3). */
static const u8 head[KHTTPD_GZIP_HEAD_BYTES] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3 };

/* The raw stream into `room`; 0 where it does not fit. */
static size_t khttpd_gzip_deflate(void *workspace, const char *bytes, size_t length, char *room, size_t size)
{
	struct z_stream_s stream = {
		.workspace = workspace,
		.next_in = (const u8 *)bytes,
		.avail_in = length,
		.next_out = (u8 *)room,
		.avail_out = size,
	};
	size_t written = 0;

	if (zlib_deflateInit2(&stream, KHTTPD_GZIP_LEVEL, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			      Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	if (zlib_deflate(&stream, Z_FINISH) == Z_STREAM_END)
		written = stream.total_out;
	zlib_deflateEnd(&stream);
	return written;
}

/* By the workspace of the processor on which it begins; it may end on another one. */
static size_t khttpd_gzip_deflate_alone(const char *bytes, size_t length, char *room, size_t size)
{
	struct khttpd_gzip_desk *desk = raw_cpu_ptr(desks);
	size_t written = 0;

	mutex_lock(&desk->lock);
	if (!desk->workspace)
		desk->workspace = kvmalloc(zlib_deflate_workspacesize(-MAX_WBITS, MAX_MEM_LEVEL),
					   GFP_KERNEL | __GFP_NOWARN);
	if (desk->workspace)
		written = khttpd_gzip_deflate(desk->workspace, bytes, length, room, size);
	mutex_unlock(&desk->lock);
	return written;
}

/* Writes the whole body into `room`; 0 where it does not fit. */
static size_t khttpd_gzip_write(const char *bytes, size_t length, char *room, size_t size)
{
	const size_t frame = KHTTPD_GZIP_HEAD_BYTES + KHTTPD_GZIP_TAIL_BYTES;
	size_t written = khttpd_gzip_deflate_alone(bytes, length, room + sizeof(head), size - frame);
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

int khttpd_gzip_init(void)
{
	int processor;

	desks = alloc_percpu(struct khttpd_gzip_desk);
	if (!desks)
		return -ENOMEM;
	for_each_possible_cpu(processor)
		mutex_init(&per_cpu_ptr(desks, processor)->lock);
	return 0;
}

void khttpd_gzip_exit(void)
{
	int processor;

	for_each_possible_cpu(processor)
		kvfree(per_cpu_ptr(desks, processor)->workspace);
	free_percpu(desks);
}
