/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bodies that are sent by reference: TCP takes the pages they stand in, and copies nothing.
 *
 * A body's bytes never change. Whoever frees it lets go of its pages; TCP lets go of them when they are
 * acknowledged.
 */
#ifndef KHTTPD_PAGES_H
#define KHTTPD_PAGES_H

#include <linux/mm.h>
#include <linux/net.h>

enum khttpd_pages_limit {
	/* A smaller body is cheaper to copy. */
	KHTTPD_PAGES_BYTES_MIN = 4096,
	/* Pages in one send. */
	KHTTPD_PAGES_MAX = 16,
};

/* Bytes of memory that a body of so many takes. */
static inline size_t khttpd_pages_cost(size_t length)
{
	return length < KHTTPD_PAGES_BYTES_MIN ? length : PAGE_ALIGN(length);
}

/* Memory for a body, to be freed by kvfree; NULL where there is none. */
char *khttpd_pages_make(size_t length);

/* Whether memory of khttpd_pages_make can be sent by reference. */
static inline bool khttpd_pages_can_be_sent(const char *bytes)
{
	return is_vmalloc_addr(bytes);
}

/*
 * Sends a beginning of these bytes, without waiting; `more` comes behind them. How many were taken, or minus
 * an errno.
 */
int khttpd_pages_send(struct socket *socket, const char *bytes, size_t length, bool more);

#endif
