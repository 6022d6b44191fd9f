// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of a socket, as a program of UDP makes them.
 *
 * Addresses are those of AF_INET (struct sockaddr_in). In the field of the family the number of
 * this family is taken as well; AF_INET is given back, so that libraries can read it.
 */
#include <linux/module.h>
#include <net/compat.h>
#include <asm/ioctls.h>

#include "dostp.h"

#define DOSTP_SOCKET_PORT_FREE 1024 /* ports below need CAP_NET_BIND_SERVICE */

int dostp_socket_autobind(struct sock *sk)
{
	int error = 0;

	if (likely(READ_ONCE(dostp_sk(sk)->port)))
		return 0;
	lock_sock(sk);
	if (!dostp_sk(sk)->port)
		error = dostp_port_bind(dostp_net(sock_net(sk)), sk, 0);
	release_sock(sk);
	return error;
}

/* Reads an address of a program's. As by UDP, the family may be left out. */
static int dostp_socket_read(const struct sockaddr_in *address, int length)
{
	if (length < (int)sizeof(*address))
		return -EINVAL;
	if (address->sin_family != AF_INET && address->sin_family != dostp_family &&
	    address->sin_family != AF_UNSPEC)
		return -EAFNOSUPPORT;
	return 0;
}

static void dostp_socket_write(struct sockaddr_in *address, u32 host, u16 port)
{
	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(host);
	address->sin_port = htons(port);
}

static int dostp_socket_bind(struct socket *sock, dostp_sockaddr *name, int length)
{
	const struct sockaddr_in *address = (struct sockaddr_in *)name;
	struct sock *sk = sock->sk;
	struct dostp_net *net = dostp_net(sock_net(sk));
	int error = dostp_socket_read(address, length);
	struct dostp_node *node;
	u32 host;
	u16 port;

	if (error)
		return error;
	host = ntohl(address->sin_addr.s_addr);
	port = ntohs(address->sin_port);
	if (address->sin_family == AF_UNSPEC && host != INADDR_ANY)
		return -EAFNOSUPPORT;
	if (port && port < DOSTP_SOCKET_PORT_FREE && !ns_capable(sock_net(sk)->user_ns, CAP_NET_BIND_SERVICE))
		return -EACCES;
	if (host != INADDR_ANY) {
		rcu_read_lock();
		node = rcu_dereference(net->node);
		error = node && node->address == host ? 0 : -EADDRNOTAVAIL;
		rcu_read_unlock();
		if (error)
			return error;
	}
	lock_sock(sk);
	error = dostp_sk(sk)->port ? -EINVAL : 0;
	if (!error)
		error = dostp_port_bind(net, sk, port);
	if (!error)
		dostp_sk(sk)->address = host;
	release_sock(sk);
	return error;
}

static int dostp_socket_connect(struct socket *sock, dostp_sockaddr *name, int length, int flags)
{
	const struct sockaddr_in *address = (struct sockaddr_in *)name;
	struct sock *sk = sock->sk;
	struct dostp_sock *dsk = dostp_sk(sk);
	int error;

	if (length < (int)sizeof(address->sin_family))
		return -EINVAL;
	if (address->sin_family == AF_UNSPEC) {
		WRITE_ONCE(dsk->peer, 0);
		return 0;
	}
	error = dostp_socket_read(address, length);
	if (error)
		return error;
	if (!address->sin_port)
		return -EINVAL;
	error = dostp_socket_autobind(sk);
	if (error)
		return error;
	WRITE_ONCE(dsk->peer, dostp_end_pack(ntohl(address->sin_addr.s_addr), ntohs(address->sin_port)));
	return 0;
}

static int dostp_socket_getname(struct socket *sock, struct sockaddr *name, int of_peer)
{
	struct dostp_sock *dsk = dostp_sk(sock->sk);
	struct sockaddr_in *address = (struct sockaddr_in *)name;
	struct dostp_end peer = dostp_end_read(&dsk->peer);
	struct dostp_node *node;
	u32 host = dsk->address;

	if (of_peer) {
		if (!peer.port)
			return -ENOTCONN;
		dostp_socket_write(address, peer.host, peer.port);
		return sizeof(*address);
	}
	if (!host && peer.port) {
		/* As UDP, a connected socket tells the address that it sends from. */
		rcu_read_lock();
		node = rcu_dereference(dostp_net(sock_net(sock->sk))->node);
		host = node ? node->address : 0;
		rcu_read_unlock();
	}
	dostp_socket_write(address, host, dsk->port);
	return sizeof(*address);
}

static int dostp_socket_setsockopt(struct socket *sock, int level, int option, sockptr_t value,
				   unsigned int length)
{
	int on;

	if (level != SOL_DOSTP || option != DOSTP_TRANSACTIONS)
		return -ENOPROTOOPT;
	if (length < sizeof(on))
		return -EINVAL;
	if (copy_from_sockptr(&on, value, sizeof(on)))
		return -EFAULT;
	WRITE_ONCE(dostp_sk(sock->sk)->takes_transactions, on);
	return 0;
}

static int dostp_socket_getsockopt(struct socket *sock, int level, int option, char __user *value,
				   int __user *length)
{
	int on = READ_ONCE(dostp_sk(sock->sk)->takes_transactions), room;

	if (level != SOL_DOSTP || option != DOSTP_TRANSACTIONS)
		return -ENOPROTOOPT;
	if (get_user(room, length))
		return -EFAULT;
	if (room < (int)sizeof(on))
		return -EINVAL;
	if (put_user((int)sizeof(on), length) || copy_to_user(value, &on, sizeof(on)))
		return -EFAULT;
	return 0;
}

/* Reads which kind a message is of that a program sends, and its id. */
static int dostp_socket_read_name(const struct sock *sk, struct msghdr *msg, size_t length,
				  struct dostp_message_name *name)
{
	struct cmsghdr *control;

	for_each_cmsghdr(control, msg) {
		if (!CMSG_OK(msg, control))
			return -EINVAL;
		if (control->cmsg_level != SOL_DOSTP)
			continue;
		if (control->cmsg_type != DOSTP_MESSAGE_NAME || control->cmsg_len != CMSG_LEN(sizeof(*name)))
			return -EINVAL;
		memcpy(name, CMSG_DATA(control), sizeof(*name));
	}
	if (name->kind == DOSTP_DATA && !name->unused)
		return 0;
	if (name->kind < DOSTP_REQUEST || name->kind > DOSTP_ACK || name->unused ||
	    (name->kind == DOSTP_ACK && length))
		return -EINVAL;
	return READ_ONCE(dostp_sk(sk)->takes_transactions) ? 0 : -EOPNOTSUPP;
}

static int dostp_socket_sendmsg(struct socket *sock, struct msghdr *msg, size_t length)
{
	const struct sockaddr_in *address = msg->msg_name;
	struct sock *sk = sock->sk;
	struct dostp_sock *dsk = dostp_sk(sk);
	struct dostp_end to = dostp_end_read(&dsk->peer);
	struct dostp_message_name name = { .kind = DOSTP_DATA };
	int error;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	error = unlikely(msg->msg_controllen) ? dostp_socket_read_name(sk, msg, length, &name) : 0;
	if (error)
		return error;
	if (address) {
		error = dostp_socket_read(address, msg->msg_namelen);
		if (error)
			return error;
		to = (struct dostp_end){ ntohl(address->sin_addr.s_addr), ntohs(address->sin_port) };
		if (!to.port)
			return -EINVAL;
	} else if (!to.port) {
		return -EDESTADDRREQ;
	}
	error = dostp_socket_autobind(sk);
	if (!error)
		error = dostp_send(sk, msg, length, to.host, to.port, &name);
	return error ?: length;
}

static int dostp_socket_recvmsg(struct socket *sock, struct msghdr *msg, size_t length, int flags)
{
	struct sock *sk = sock->sk;
	struct dostp_from from;
	struct sk_buff *skb;
	size_t copied;
	int error;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	/* Errors are told by calls alone; a message is none. */
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN;
	skb = skb_recv_datagram(sk, flags, &error);
	if (!skb)
		return error;
	copied = min_t(size_t, length, skb->len);
	if (copied < skb->len)
		msg->msg_flags |= MSG_TRUNC;
	from = *dostp_from(skb);
	error = skb_copy_datagram_msg(skb, 0, msg, copied);
	if (error)
		goto free;
	sock_recv_cmsgs(msg, sk, skb);
	/* A message of a transaction is told from a datagram also when the option was switched off since. */
	if (unlikely(READ_ONCE(dostp_sk(sk)->takes_transactions) || from.name.kind != DOSTP_DATA))
		put_cmsg(msg, SOL_DOSTP, DOSTP_MESSAGE_NAME, sizeof(from.name), &from.name);
	if (msg->msg_name) {
		dostp_socket_write(msg->msg_name, from.address, from.port);
		msg->msg_namelen = sizeof(struct sockaddr_in);
	}
	error = flags & MSG_TRUNC ? skb->len : copied;
free:
	skb_free_datagram(sk, skb);
	return error;
}

static int dostp_socket_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	lock_sock(sk);
	sk->sk_shutdown |= how + 1;
	sk->sk_state_change(sk);
	release_sock(sk);
	return READ_ONCE(dostp_sk(sk)->peer) ? 0 : -ENOTCONN;
}

static int dostp_socket_ioctl(struct socket *sock, unsigned int command, unsigned long argument)
{
	struct sock *sk = sock->sk;
	struct sk_buff *skb;
	int bytes = 0;

	switch (command) {
	case SIOCOUTQ:
		bytes = sk_wmem_alloc_get(sk);
		break;
	case SIOCINQ:
		spin_lock_bh(&sk->sk_receive_queue.lock);
		skb = skb_peek(&sk->sk_receive_queue);
		bytes = skb ? skb->len : 0;
		spin_unlock_bh(&sk->sk_receive_queue.lock);
		break;
	default:
		return -ENOIOCTLCMD;
	}
	return put_user(bytes, (int __user *)argument);
}

static int dostp_socket_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	dostp_port_release(dostp_net(sock_net(sk)), sk);
	lock_sock(sk);
	sock_orphan(sk);
	sk->sk_shutdown = SHUTDOWN_MASK;
	release_sock(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

/* The last that may have put a message into the queue is gone. */
static void dostp_socket_destruct(struct sock *sk)
{
	__skb_queue_purge(&sk->sk_receive_queue);
}

static const struct proto_ops dostp_socket_operations = {
	.owner = THIS_MODULE,
	.release = dostp_socket_release,
	.bind = dostp_socket_bind,
	.connect = dostp_socket_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = dostp_socket_getname,
	.poll = datagram_poll,
	.ioctl = dostp_socket_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = dostp_socket_shutdown,
	.setsockopt = dostp_socket_setsockopt,
	.getsockopt = dostp_socket_getsockopt,
	.sendmsg = dostp_socket_sendmsg,
	.recvmsg = dostp_socket_recvmsg,
	.mmap = sock_no_mmap,
};

/* Raw frames leave by such a socket: not everybody may have one. */
static bool dostp_socket_is_allowed(struct net *of)
{
	int group = READ_ONCE(dostp_net(of)->group);

	if (ns_capable(of->user_ns, CAP_NET_RAW))
		return true;
	return group >= 0 && in_egroup_p(make_kgid(of->user_ns, group));
}

static int dostp_socket_create(struct net *of, struct socket *sock, int protocol, int kern)
{
	struct sock *sk;

	if (sock->type != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != IPPROTO_UDP)
		return -EPROTONOSUPPORT;
	if (!kern && !dostp_socket_is_allowed(of))
		return -EPERM;
	sk = sk_alloc(of, dostp_family, GFP_KERNEL, &dostp_proto, kern);
	if (!sk)
		return -ENOBUFS;
	sock->ops = &dostp_socket_operations;
	sock_init_data(sock, sk);
	sk->sk_protocol = IPPROTO_UDP; /* what programs of UDP ask for (SO_PROTOCOL) */
	sock_set_flag(sk, SOCK_RCU_FREE);
	sk->sk_destruct = dostp_socket_destruct;
	sk_set_txhash(sk);
	atomic_set(&dostp_sk(sk)->next_id, (u16)dostp_node_draw());
	return 0;
}

const struct net_proto_family dostp_socket_family = {
	.create = dostp_socket_create,
	.owner = THIS_MODULE,
};
