/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/khttpd: connections that the module does not serve itself, for a process that does.
 *
 * Readable while one waits. KHTTPD_TAKE gives the descriptor of its socket, which does not block, has
 * TCP_NODELAY and is closed on exec; the request is unread in it. EAGAIN where none waits.
 */
#ifndef KHTTPD_HANDOVER_H
#define KHTTPD_HANDOVER_H

#include <linux/ioctl.h>

#define KHTTPD_TAKE _IO(0xE8, 0)

#endif
