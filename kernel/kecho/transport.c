// SPDX-License-Identifier: GPL-2.0
/* Bytes in and out of a socket. */
#include <linux/uio.h>
#include <net/tcp.h>

#include "kecho.h"

static int kecho_transport_receive(struct kecho_connection *connection, char *bytes, size_t length, int flags)
{
	struct kvec part = { .iov_base = bytes, .iov_len = length };
	struct msghdr message = {};

	return kernel_recvmsg(connection->socket, &message, &part, 1, length, flags);
}

static int kecho_transport_send(struct kecho_connection *connection, const char *bytes, size_t length,
				int flags)
{
	struct kvec part = { .iov_base = (char *)bytes, .iov_len = length };
	struct msghdr message = { .msg_flags = flags | MSG_NOSIGNAL };

	return kernel_sendmsg(connection->socket, &message, &part, 1, length);
}

static int kecho_transport_receive_blocking(struct kecho_connection *connection, char *bytes, size_t length)
{
	return kecho_transport_receive(connection, bytes, length, 0);
}

static int kecho_transport_send_blocking(struct kecho_connection *connection, const char *bytes,
					 size_t length)
{
	return kecho_transport_send(connection, bytes, length, 0);
}

static int kecho_transport_receive_ready(struct kecho_connection *connection, char *bytes, size_t length)
{
	return kecho_transport_receive(connection, bytes, length, MSG_DONTWAIT);
}

static int kecho_transport_send_ready(struct kecho_connection *connection, const char *bytes, size_t length)
{
	return kecho_transport_send(connection, bytes, length, MSG_DONTWAIT);
}

struct kecho_transport_room {
	char *bytes;
	size_t length;
};

static int kecho_transport_take(read_descriptor_t *descriptor, struct sk_buff *skb, unsigned int offset,
				size_t length)
{
	struct kecho_transport_room *room = descriptor->arg.data;
	size_t taken = min(length, room->length);

	if (skb_copy_bits(skb, offset, room->bytes, taken))
		return -EFAULT;
	room->bytes += taken;
	room->length -= taken;
	descriptor->count = room->length;
	return taken;
}

/* The socket is locked by the caller, as it is in its callbacks. 0 is told for the peer's end only. */
static int kecho_transport_receive_locked(struct kecho_connection *connection, char *bytes, size_t length)
{
	struct kecho_transport_room room = { .bytes = bytes, .length = length };
	read_descriptor_t descriptor = { .arg.data = &room, .count = length };
	struct sock *sk = connection->socket->sk;
	int taken = tcp_read_sock(sk, &descriptor, kecho_transport_take);

	if (taken)
		return taken;
	if (sk->sk_err)
		return -sk->sk_err;
	return sk->sk_shutdown & RCV_SHUTDOWN ? 0 : -EAGAIN;
}

static int kecho_transport_send_locked(struct kecho_connection *connection, const char *bytes, size_t length)
{
	struct kvec part = { .iov_base = (char *)bytes, .iov_len = length };
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	iov_iter_kvec(&message.msg_iter, ITER_SOURCE, &part, 1, length);
	return tcp_sendmsg_locked(connection->socket->sk, &message, length);
}

const struct kecho_transport kecho_transport_blocking = {
	.receive = kecho_transport_receive_blocking,
	.send = kecho_transport_send_blocking,
};

const struct kecho_transport kecho_transport_ready = {
	.receive = kecho_transport_receive_ready,
	.send = kecho_transport_send_ready,
};

const struct kecho_transport kecho_transport_locked = {
	.receive = kecho_transport_receive_locked,
	.send = kecho_transport_send_locked,
};
