// SPDX-License-Identifier: GPL-2.0
/*
 * The listener. Its callback queues one work item, which accepts what waits; nothing polls.
 */
#include <linux/in6.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "kecho.h"

#ifdef HAVE_SOCKADDR_UNSIZED
#define kecho_listen_address(address) ((struct sockaddr_unsized *)(address))
#else
#define kecho_listen_address(address) ((struct sockaddr *)(address))
#endif

static void kecho_listen_ready(struct sock *sk)
{
	/* A connection not yet accepted has this callback, too: it is inherited. */
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		queue_delayed_work(system_unbound_wq, &kecho.accept, 0);
}

static void kecho_listen_accept(struct work_struct *work)
{
	struct socket *socket;
	int budget = KECHO_ACCEPT_BUDGET;
	int error;

	while (budget--) {
		error = kernel_accept(kecho.listener, &socket, O_NONBLOCK);
		if (error == -EAGAIN || READ_ONCE(kecho.is_stopping)) {
			if (!error)
				sock_release(socket);
			return;
		}
		if (!error) {
			tcp_sock_set_nodelay(socket->sk);
			error = kecho_connection_make(socket);
		}
		if (error == -EBUSY)
			atomic64_inc(&kecho.refused);
		else if (error == -ENOMEM || error == -ENFILE || error == -ENOBUFS) {
			queue_delayed_work(system_unbound_wq, &kecho.accept, msecs_to_jiffies(KECHO_PAUSE_MS));
			return;
		} else if (!error)
			atomic64_inc(&kecho.accepted);
	}
	queue_delayed_work(system_unbound_wq, &kecho.accept, 0);
}

static int kecho_listen_bind(struct socket *socket, unsigned short port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (socket->sk->sk_family == AF_INET6)
		return kernel_bind(socket, kecho_listen_address(&v6), sizeof(v6));
	return kernel_bind(socket, kecho_listen_address(&v4), sizeof(v4));
}

/*
 * Not a socket of the kernel's (sock_create_kern): TCP stops the timers of those when they are released, so
 * that what was not acknowledged by then is never sent again, and the connection never freed. A connection
 * is of the same kind as its listener.
 */
static int kecho_listen_make(struct socket **socket)
{
	int error = sock_create(AF_INET6, SOCK_STREAM, IPPROTO_TCP, socket);

	if (error == -EAFNOSUPPORT)
		error = sock_create(AF_INET, SOCK_STREAM, IPPROTO_TCP, socket);
	return error;
}

/* Listens on every address, of IPv6 and IPv4 where the host has both. */
int kecho_listen_begin(unsigned short port, int backlog)
{
	struct socket *socket;
	struct sock *sk;
	int error;

	INIT_DELAYED_WORK(&kecho.accept, kecho_listen_accept);
	error = kecho_listen_make(&socket);
	if (error)
		return error;
	sk = socket->sk;
	sock_set_reuseaddr(sk);
	error = kecho_listen_bind(socket, port);
	if (error)
		goto release;
	kecho.listener = socket;
	kecho.listener_ready = sk->sk_data_ready;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = kecho_listen_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	error = kernel_listen(socket, backlog);
	if (!error)
		return 0;
	cancel_delayed_work_sync(&kecho.accept);
release:
	sock_release(socket);
	return error;
}

/* Accepts nobody any more. Who waited to be accepted is reset. */
void kecho_listen_end(void)
{
	struct sock *sk = kecho.listener->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = kecho.listener_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	kernel_sock_shutdown(kecho.listener, SHUT_RDWR);
	cancel_delayed_work_sync(&kecho.accept);
	sock_release(kecho.listener);
	/* Those who were never accepted have inherited the callback: one that runs ends before this does. */
	synchronize_rcu();
	cancel_delayed_work_sync(&kecho.accept);
}
