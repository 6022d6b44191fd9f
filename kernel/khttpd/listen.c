// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners. Their callback queues one work item a namespace, which accepts what waits; nothing polls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
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
		queue_delayed_work(accepting, &khttpd_namespace_of(sock_net(sk))->accept, 0);
}

/* Says 503 to one connection too many. */
static void khttpd_listen_refuse(struct socket *socket)
{
	struct kvec part = { .iov_base = (char *)full, .iov_len = sizeof(full) - 1 };
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	atomic64_inc(&khttpd.refused);
	kernel_sendmsg(socket, &message, &part, 1, part.iov_len);
	kernel_sock_shutdown(socket, SHUT_WR);
	khttpd_namespace_release(socket);
}

/* Accepts one connection. 0, -EAGAIN where none waits, or why accepting has to pause. */
static int khttpd_listen_accept_one(struct khttpd_namespace *namespace, struct socket *listener)
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
	error = khttpd_connection_make(namespace, socket);
	if (error == -EBUSY) {
		khttpd_listen_refuse(socket);
		return 0;
	}
	if (error)
		khttpd_namespace_release(socket);
	else
		atomic64_inc(&khttpd.accepted);
	return error;
}

/* Each listener in turn, with a budget of its own, so that none waits for the end of another's storm. */
static void khttpd_listen_accept_all(struct khttpd_namespace *namespace)
{
	unsigned int i, budget;
	unsigned long pause = 0;
	bool comes_again = false;
	int error;

	for (i = 0; i < namespace->listeners_count; i++) {
		budget = KHTTPD_ACCEPT_BUDGET;
		do {
			if (READ_ONCE(namespace->is_stopping))
				return;
			error = khttpd_listen_accept_one(namespace, namespace->listeners[i].socket);
		} while (!error && --budget);
		if (error && error != -EAGAIN)
			pause = msecs_to_jiffies(KHTTPD_PAUSE_MS);
		comes_again |= error != -EAGAIN;
	}
	if (comes_again)
		queue_delayed_work(accepting, &namespace->accept, pause);
}

static void khttpd_listen_accept(struct work_struct *work)
{
	struct khttpd_namespace *namespace =
		container_of(to_delayed_work(work), struct khttpd_namespace, accept);

	mutex_lock(&namespace->lock);
	khttpd_listen_accept_all(namespace);
	mutex_unlock(&namespace->lock);
}

/* Reads "[ADDRESS]:PORT" or "ADDRESS:PORT". */
static int khttpd_listen_address(struct net *net, char *text, struct sockaddr_storage *address)
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
	return inet_pton_with_scope(net, AF_UNSPEC, host, port, address);
}

/* A socket of the kernel's, and so are its connections: none of them keeps the namespace. */
static int khttpd_listen_open(struct net *net, struct khttpd_listener *listener)
{
	struct sockaddr_storage *address = &listener->address;
	struct socket *socket;
	int error = sock_create_kern(net, address->ss_family, SOCK_STREAM, IPPROTO_TCP, &socket);

	if (error)
		return error;
	sock_set_reuseaddr(socket->sk);
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

/* The listener at this address among so many, or NULL. */
static struct khttpd_listener *khttpd_listen_find(struct khttpd_listener *listeners, unsigned int count,
						  const struct sockaddr_storage *address)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!memcmp(&listeners[i].address, address, sizeof(*address)))
			return &listeners[i];
	return NULL;
}

/* Fills in one listener: one that is there already, or a new one. `text` is changed. */
static int khttpd_listen_add(struct khttpd_namespace *namespace, struct khttpd_listener *wanted,
			     unsigned int count, char *text)
{
	struct khttpd_listener *listener = &wanted[count], *present;
	int error;

	if (count == KHTTPD_LISTENERS_MAX)
		return -E2BIG;
	error = khttpd_listen_address(namespace->net, text, &listener->address);
	if (error)
		return error;
	if (khttpd_listen_find(wanted, count, &listener->address))
		return -EADDRINUSE;
	present = khttpd_listen_find(namespace->listeners, namespace->listeners_count,
				     &listener->address);
	if (!present)
		return khttpd_listen_open(namespace->net, listener);
	listener->socket = present->socket;
	return 0;
}

/* Releases those of the listeners that are not among the others, which must not be started. */
static void khttpd_listen_release(struct khttpd_listener *listeners, unsigned int count,
				  struct khttpd_listener *others, unsigned int others_count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!khttpd_listen_find(others, others_count, &listeners[i].address))
			sock_release(listeners[i].socket);
}

/* Gives the namespace these listeners in the place of its own. */
static void khttpd_listen_replace(struct khttpd_namespace *namespace, struct khttpd_listener *wanted,
				  unsigned int count)
{
	unsigned int i, had = namespace->listeners_count;

	for (i = 0; i < had; i++)
		khttpd_listen_stop(&namespace->listeners[i]);
	/* A callback that had begun has ended after this. */
	if (had)
		synchronize_net();
	khttpd_listen_release(namespace->listeners, had, wanted, count);
	memcpy(namespace->listeners, wanted, count * sizeof(*wanted));
	namespace->listeners_count = count;
	for (i = 0; i < count; i++)
		khttpd_listen_start(&namespace->listeners[i]);
	/* For what came before. */
	if (count)
		queue_delayed_work(accepting, &namespace->accept, 0);
}

/* Reads a copy of the addresses and opens what is new of them; gives their number. */
static int khttpd_listen_all(struct khttpd_namespace *namespace, struct khttpd_listener *wanted,
			     const char *addresses, char *copy)
{
	char *rest = strim(copy), *text;
	unsigned int count = 0;
	int error;

	if (!*rest)
		return 0;
	while ((text = strsep(&rest, ",")) != NULL) {
		error = khttpd_listen_add(namespace, wanted, count, text);
		if (error) {
			const char *fault = addresses + (text - copy);

			pr_err("listen=%.*s: cannot be listened on (error %d)\n",
			       (int)strcspn(fault, ",\n"), fault, error);
			khttpd_listen_release(wanted, count, namespace->listeners,
					      namespace->listeners_count);
			return error;
		}
		count++;
	}
	return count;
}

int khttpd_listen_set(struct khttpd_namespace *namespace, const char *addresses)
{
	struct khttpd_listener *wanted = kcalloc(KHTTPD_LISTENERS_MAX, sizeof(*wanted), GFP_KERNEL);
	char *copy = kstrdup(addresses, GFP_KERNEL);
	int count = -ENOMEM;

	if (wanted && copy) {
		mutex_lock(&namespace->lock);
		count = khttpd_listen_all(namespace, wanted, addresses, copy);
		if (count >= 0)
			khttpd_listen_replace(namespace, wanted, count);
		mutex_unlock(&namespace->lock);
	}
	kfree(copy);
	kfree(wanted);
	return min(count, 0);
}

void khttpd_listen_begin(struct khttpd_namespace *namespace)
{
	mutex_init(&namespace->lock);
	INIT_DELAYED_WORK(&namespace->accept, khttpd_listen_accept);
}

void khttpd_listen_end(struct khttpd_namespace *namespace)
{
	WRITE_ONCE(namespace->is_stopping, true);
	mutex_lock(&namespace->lock);
	khttpd_listen_replace(namespace, namespace->listeners, 0);
	mutex_unlock(&namespace->lock);
	/* No callback queues the work again. */
	cancel_delayed_work_sync(&namespace->accept);
}

int khttpd_listen_init(void)
{
	accepting = alloc_workqueue("khttpd_accept", WQ_UNBOUND, 1);
	return accepting ? 0 : -ENOMEM;
}

void khttpd_listen_exit(void)
{
	destroy_workqueue(accepting);
}
