/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bodies in gzip (RFC 1952), by the kernel's zlib at its best level.
 *
 * One caller at a time, for there is one workspace, made when it is first needed. Sleeps.
 */
#ifndef KHTTPD_GZIP_H
#define KHTTPD_GZIP_H

#include <linux/types.h>

enum khttpd_gzip_limit {
	/* The server's own (crates/server/src/limits.rs): smaller bodies are not worth an encoding. */
	KHTTPD_GZIP_BYTES_MIN = 200,
	/* An encoding is kept only if it saves at least so many bytes: about the cost of its fields. */
	KHTTPD_GZIP_GAIN_BYTES_MIN = 64,
};

void khttpd_gzip_exit(void);
/*
 * The encoded body in memory to be freed by kvfree, or NULL where it is not small enough or there is no
 * memory.
 */
char *khttpd_gzip_encode(const char *bytes, size_t length, size_t *encoded_length);

#endif
