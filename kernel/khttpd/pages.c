// SPDX-License-Identifier: GPL-2.0
/*
 * Bodies that are sent by reference: see pages.h.
 */
#include <linux/bvec.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "pages.h"

char *khttpd_pages_make(size_t length)
{
	if (length < KHTTPD_PAGES_BYTES_MIN)
		return kmalloc(length, GFP_KERNEL | __GFP_NOWARN);
	return __vmalloc(length, GFP_KERNEL | __GFP_NOWARN);
}

/* The bytes of one page. */
static size_t khttpd_pages_first(const char *bytes, size_t length)
{
	return min_t(size_t, length, PAGE_SIZE - offset_in_page(bytes));
}

#ifdef HAVE_SENDPAGE

int khttpd_pages_send(struct socket *socket, const char *bytes, size_t length, bool more)
{
	size_t sent = 0, part;
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	unsigned int i;
	int took = 0;

	for (i = 0; i < KHTTPD_PAGES_MAX && sent < length; i++) {
		part = khttpd_pages_first(bytes + sent, length - sent);
		took = kernel_sendpage(socket, vmalloc_to_page(bytes + sent), offset_in_page(bytes + sent), part,
				       more || sent + part < length ? flags | MSG_MORE : flags);
		if (took <= 0)
			break;
		sent += took;
	}
	return sent ?: took;
}

#else

int khttpd_pages_send(struct socket *socket, const char *bytes, size_t length, bool more)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_SPLICE_PAGES };
	struct bio_vec parts[KHTTPD_PAGES_MAX];
	size_t count = 0, part;
	unsigned int i;

	for (i = 0; i < KHTTPD_PAGES_MAX && count < length; i++) {
		part = khttpd_pages_first(bytes + count, length - count);
		bvec_set_page(&parts[i], vmalloc_to_page(bytes + count), part, offset_in_page(bytes + count));
		count += part;
	}
	if (more || count < length)
		message.msg_flags |= MSG_MORE;
	iov_iter_bvec(&message.msg_iter, ITER_SOURCE, parts, i, count);
	return sock_sendmsg(socket, &message);
}

#endif
