// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners. Their callback queues one work item, which accepts what waits; nothing polls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <net/tcp.h>

#include "khttpd.h"

static const char full[] =
	"HTTP/1.1 503 Service Unavailable\r\nServer: staunch\r\nRetry-After: 1\r\n"
	"Content-Length: 0\r\nConnection: close\r\n\r\n";

/* Of its own, because workers that block may take all of the other queue's. */
static struct workqueue_struct *accepting;

static void khttpd_listen_ready(struct sock *sk)
{
	/* A connection that is not accepted yet has inherited this callback. */
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		queue_delayed_work(accepting, &khttpd.accept, 0);
}

/* Says 503 to one connection too many. */
static void khttpd_listen_refuse(struct socket *socket)
{
	struct kvec part = { .iov_base = (char *)full, .iov_len = sizeof(full) - 1 };
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	atomic64_inc(&khttpd.refused);
	kernel_sendmsg(socket, &message, &part, 1, part.iov_len);
	kernel_sock_shutdown(socket, SHUT_WR);
	sock_release(socket);
}

/* Accepts one connection. 0, -EAGAIN where none waits, or why accepting has to pause. */
static int khttpd_listen_accept_one(struct socket *listener)
{
	struct socket *socket;
	int error = kernel_accept(listener, &socket, O_NONBLOCK);

	if (error == -EAGAIN || error == -ENOMEM || error == -ENOBUFS || error == -ENFILE)
		return error;
	/* The peer was faster to leave: the next one may wait. */
	if (error)
		return 0;
	/* The callback of the listener is nothing for a connection. */
	write_lock_bh(&socket->sk->sk_callback_lock);
	socket->sk->sk_data_ready = khttpd.plain.data_ready;
	write_unlock_bh(&socket->sk->sk_callback_lock);
	tcp_sock_set_nodelay(socket->sk);
	error = khttpd_connection_make(socket);
	if (error == -EBUSY) {
		khttpd_listen_refuse(socket);
		return 0;
	}
	if (error)
		sock_release(socket);
	else
		atomic64_inc(&khttpd.accepted);
	return error;
}

static void khttpd_listen_accept(struct work_struct *work)
{
	unsigned int i, budget = KHTTPD_ACCEPT_BUDGET;
	int error = 0;

	for (i = 0; i < khttpd.listeners_count; i++) {
		do {
			if (READ_ONCE(khttpd.is_stopping))
				return;
			error = khttpd_listen_accept_one(khttpd.listeners[i].socket);
		} while (!error && --budget);
		if (!budget) {
			queue_delayed_work(accepting, &khttpd.accept, 0);
			return;
		}
		if (error != -EAGAIN)
			queue_delayed_work(accepting, &khttpd.accept,
					   msecs_to_jiffies(KHTTPD_PAUSE_MS));
	}
}

/* Reads "[ADDRESS]:PORT" or "ADDRESS:PORT". */
static int khttpd_listen_address(char *text, struct sockaddr_storage *address)
{
	char *port = strrchr(text, ':'), *host = text;

	if (!port)
		return -EINVAL;
	*port++ = 0;
	if (host[0] == '[') {
		host++;
		if (port - 2 <= host || port[-2] != ']')
			return -EINVAL;
		port[-2] = 0;
	}
	return inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, host, port, address);
}

static int khttpd_listen_open(struct khttpd_listener *listener, struct sockaddr_storage *address)
{
	struct socket *socket;
	struct sock *sk;
	/*
	 * Not a socket of the kernel's: TCP stops the timers of those when they are released, so that what
	 * was not acknowledged by then is never sent again, and the connection never freed. A connection
	 * is of the same kind as its listener.
	 */
	int error = sock_create(address->ss_family, SOCK_STREAM, IPPROTO_TCP, &socket);

	if (error)
		return error;
	sk = socket->sk;
	sock_set_reuseaddr(sk);
	/* The type of this pointer differs between kernels; one to void fits all. */
	error = kernel_bind(socket, (void *)address, sizeof(*address));
	if (!error)
		error = kernel_listen(socket, SOMAXCONN);
	if (error) {
		sock_release(socket);
		return error;
	}
	listener->socket = socket;
	return 0;
}

/* From here on connections are accepted. */
static void khttpd_listen_start(struct khttpd_listener *listener)
{
	struct sock *sk = listener->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	khttpd.plain.data_ready = sk->sk_data_ready;
	khttpd.plain.write_space = sk->sk_write_space;
	khttpd.plain.state_change = sk->sk_state_change;
	sk->sk_data_ready = khttpd_listen_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void khttpd_listen_stop(struct khttpd_listener *listener)
{
	struct sock *sk = listener->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = khttpd.plain.data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void khttpd_listen_release(void)
{
	while (khttpd.listeners_count)
		sock_release(khttpd.listeners[--khttpd.listeners_count].socket);
	destroy_workqueue(accepting);
}

/* Opens one listener; `text` is an address and is not kept. */
static int khttpd_listen_add(const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL);
	struct sockaddr_storage address;
	int error = -ENOMEM;

	if (copy && khttpd.listeners_count == KHTTPD_LISTENERS_MAX)
		error = -E2BIG;
	else if (copy)
		error = khttpd_listen_address(copy, &address);
	kfree(copy);
	if (!error)
		error = khttpd_listen_open(&khttpd.listeners[khttpd.listeners_count], &address);
	if (error)
		pr_err("listen=%s: cannot be listened on (error %d)\n", text, error);
	else
		khttpd.listeners_count++;
	return error;
}

int khttpd_listen_begin(const char *addresses)
{
	char *copy = kstrdup(addresses, GFP_KERNEL), *rest = copy, *text;
	unsigned int i;
	int error = copy ? 0 : -ENOMEM;

	INIT_DELAYED_WORK(&khttpd.accept, khttpd_listen_accept);
	accepting = alloc_workqueue("khttpd_accept", WQ_UNBOUND, 1);
	if (!accepting) {
		kfree(copy);
		return -ENOMEM;
	}
	while (!error && (text = strsep(&rest, ",")) != NULL)
		error = khttpd_listen_add(text);
	kfree(copy);
	if (error) {
		khttpd_listen_release();
		return error;
	}
	for (i = 0; i < khttpd.listeners_count; i++)
		khttpd_listen_start(&khttpd.listeners[i]);
	/* For what came before. */
	queue_delayed_work(accepting, &khttpd.accept, 0);
	return 0;
}

void khttpd_listen_end(void)
{
	unsigned int i;

	for (i = 0; i < khttpd.listeners_count; i++)
		khttpd_listen_stop(&khttpd.listeners[i]);
	/* A callback that had begun has ended after this; none queues the work again. */
	synchronize_net();
	cancel_delayed_work_sync(&khttpd.accept);
	khttpd_listen_release();
}
