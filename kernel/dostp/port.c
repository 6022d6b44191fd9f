// SPDX-License-Identifier: GPL-2.0
/* Ports of a namespace and the sockets that have them. */
#include <net/busy_poll.h>

#include "dostp.h"

/* Ports for sockets that ask for none: RFC 6335, section 6. */
#define DOSTP_PORT_EPHEMERAL 49152

static struct hlist_head *dostp_port_chain(struct dostp_net *net, u16 port)
{
	return &net->ports[port % DOSTP_PORTS_HASH];
}

/* With the lock of ports: whether a socket may have the port beside those that do. */
static bool dostp_port_is_free(struct dostp_net *net, const struct sock *sk, u16 port)
{
	struct sock *other;

	sk_for_each(other, dostp_port_chain(net, port))
		if (dostp_sk(other)->port == port && !(other->sk_reuse && sk->sk_reuse))
			return false;
	return true;
}

int dostp_port_bind(struct dostp_net *net, struct sock *sk, u16 port)
{
	bool is_free;

	spin_lock_bh(&net->ports_lock);
	if (port) {
		is_free = dostp_port_is_free(net, sk, port);
	} else {
		for (int tries = 0; tries < 0x10000 - DOSTP_PORT_EPHEMERAL; tries++) {
			port = net->next_port++ | DOSTP_PORT_EPHEMERAL;
			is_free = true;
			struct sock *other;

			sk_for_each(other, dostp_port_chain(net, port))
				is_free &= dostp_sk(other)->port != port;
			if (is_free)
				break;
		}
	}
	if (is_free) {
		dostp_sk(sk)->port = port;
		sk_add_node_rcu(sk, dostp_port_chain(net, port));
	}
	spin_unlock_bh(&net->ports_lock);
	return is_free ? 0 : -EADDRINUSE;
}

void dostp_port_release(struct dostp_net *net, struct sock *sk)
{
	spin_lock_bh(&net->ports_lock);
	sk_del_node_init_rcu(sk);
	spin_unlock_bh(&net->ports_lock);
}

/* Whether a socket takes what came by the node's interface for this port. */
static bool dostp_port_takes(const struct sock *sk, const struct dostp_node *node, u16 port, u32 source,
			     u16 source_port, u8 kind)
{
	const struct dostp_sock *dsk = dostp_sk(sk);
	struct dostp_end peer = dostp_end_read(&dsk->peer);
	int bound_to = READ_ONCE(sk->sk_bound_dev_if);

	return dsk->port == port && (!peer.port || (peer.port == source_port && peer.host == source)) &&
	       (!bound_to || bound_to == node->dev->ifindex) &&
	       (kind == DOSTP_DATA || READ_ONCE(dsk->takes_transactions));
}

struct sock *dostp_port_find(const struct dostp_node *node, u16 port, u32 source, u16 source_port, u8 kind)
{
	struct sock *sk, *found = NULL;

	sk_for_each_rcu(sk, dostp_port_chain(node->net, port)) {
		if (!dostp_port_takes(sk, node, port, source, source_port, kind))
			continue;
		/* Of several that share a port the connected one comes first, then the newest. */
		if (READ_ONCE(dostp_sk(sk)->peer))
			return sk;
		found = found ?: sk;
	}
	return found;
}

void dostp_port_deliver(struct dostp_net *net, struct sock *sk, struct sk_buff *skb)
{
	sk_mark_napi_id(sk, skb);
	if (sock_queue_rcv_skb(sk, skb) < 0) {
		dostp_drop(net, DOSTP_FAULT_QUEUE);
		kfree_skb(skb);
		return;
	}
	dostp_count(net, messages_received);
}

void dostp_port_deliver_all(const struct dostp_node *node, u16 port, struct sk_buff *skb)
{
	struct dostp_net *net = node->net;
	struct dostp_from from = *dostp_from(skb);
	struct sock *sk;

	sk_for_each_rcu(sk, dostp_port_chain(net, port)) {
		struct sk_buff *copy;

		/* As by UDP, a socket that is bound to the node's address does not hear what is for all. */
		if (READ_ONCE(dostp_sk(sk)->address) ||
		    !dostp_port_takes(sk, node, port, from.address, from.port, from.name.kind))
			continue;
		copy = skb_clone(skb, GFP_ATOMIC);
		if (copy)
			dostp_port_deliver(net, sk, copy);
		else
			dostp_drop(net, DOSTP_FAULT_QUEUE);
	}
	consume_skb(skb);
}

void dostp_port_tell_down(struct dostp_net *net)
{
	struct sock *sk;

	spin_lock_bh(&net->ports_lock);
	for (int chain = 0; chain < DOSTP_PORTS_HASH; chain++) {
		sk_for_each(sk, &net->ports[chain]) {
			WRITE_ONCE(sk->sk_err, ENETDOWN);
			sk_error_report(sk);
		}
	}
	spin_unlock_bh(&net->ports_lock);
}
