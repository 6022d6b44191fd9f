// SPDX-License-Identifier: GPL-2.0
/* From a message to frames on their way. */
#if __has_include(<linux/unaligned.h>)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#include "keys.h"

/* Where fields stand in a frame: those that are read without the others. */
#define DOSTP_FLAGS_AT 1
#define DOSTP_LENGTH_AT 12

/* What all frames of a message have in common. */
struct dostp_route {
	dostp_link link;
	u64 boot; /* of the node that frames are built for; another node must not send them */
	u16 source, destination, mtu;
	u8 cluster, flags, trailer;
	bool is_parked;
	unsigned int headroom, tailroom;
};

void dostp_send_finish(struct dostp_node *node, struct sk_buff *skb, dostp_link to)
{
	struct ethhdr *head;

	if (unlikely(node->keys))
		dostp_keys_seal(node, skb);
	skb_reset_network_header(skb);
	head = skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
	memcpy(head->h_dest, &to, ETH_ALEN);
	memcpy(head->h_source, &node->link, ETH_ALEN);
	head->h_proto = node->packet_type.type;
	skb->protocol = node->packet_type.type;
	skb->dev = node->dev;
}

/*
 * A message to a peer that was silent for long is sent, and the peer is asked; so it is where larger
 * frames might reach the peer.
 */
static void dostp_send_ask(struct dostp_node *node, struct dostp_peer *peer)
{
	spin_lock_bh(&node->lock);
	if (dostp_peer_find(node, peer->address) == peer) {
		if (peer->is_stale && !peer->probe.challenge)
			dostp_peer_probe(node, peer, peer->link);
		if (peer->size == DOSTP_SIZE_UNASKED)
			dostp_peer_size_ask(node, peer);
	}
	dostp_node_unlock(node);
}

/* A peer that is in the table. */
static void dostp_send_to_peer(struct dostp_node *node, struct dostp_peer *peer, struct dostp_route *route)
{
	route->link = READ_ONCE(peer->link);
	route->mtu = dostp_peer_mtu(node, peer);
	WRITE_ONCE(peer->spoken, jiffies);
	WRITE_ONCE(peer->was_spoken_to, true);
	if (unlikely(READ_ONCE(peer->is_stale) || READ_ONCE(peer->size) == DOSTP_SIZE_UNASKED))
		dostp_send_ask(node, peer);
}

/* The broadcast address of the interface; networks of one or two addresses have none (RFC 3021, 2.1). */
static bool dostp_send_is_broadcast(const struct dostp_node *node, u32 address)
{
	u32 host = ~node->netmask;

	return host > 1 && address == (node->address | host);
}

/* Under RCU: where a message to this address goes. */
static int dostp_send_route(struct sock *sk, struct dostp_node *node, u32 address, struct dostp_route *route)
{
	struct dostp_sock *dsk = dostp_sk(sk);
	struct dostp_peer *peer;
	u16 low = address & 0xffff;

	if (unlikely(node->is_refused))
		return -EADDRINUSE;
	if (sk->sk_bound_dev_if && sk->sk_bound_dev_if != node->dev->ifindex)
		return -ENODEV;
	if (dsk->address && dsk->address != node->address)
		return -EADDRNOTAVAIL;
	route->source = node->low;
	route->destination = low;
	route->cluster = node->cluster;
	route->boot = node->boot;
	route->flags = node->flags;
	route->trailer = node->trailer;
	route->headroom = LL_RESERVED_SPACE(node->dev);
	route->tailroom = node->dev->needed_tailroom;
	route->is_parked = false;
	if (address == INADDR_BROADCAST || dostp_send_is_broadcast(node, address)) {
		route->destination = DOSTP_EVERYBODY;
		route->link = DOSTP_LINK_EVERYBODY;
		route->mtu = min_t(u16, node->mtu, DOSTP_MTU_ETHERNET);
		return sock_flag(sk, SOCK_BROADCAST) ? 0 : -EACCES;
	}
	if (!low || low == DOSTP_EVERYBODY || (address ^ node->address) >> 16)
		return -EADDRNOTAVAIL;
	if (low == node->low)
		return -EHOSTUNREACH;
	peer = rcu_dereference(node->table[low]);
	if (likely(peer && smp_load_acquire(&peer->is_known))) {
		dostp_send_to_peer(node, peer, route);
		return 0;
	}
	route->is_parked = true;
	route->mtu = min_t(u16, node->mtu, DOSTP_MTU_ETHERNET);
	return 0;
}

/* Puts the checksum behind a frame. */
static void dostp_send_sum(struct sk_buff *skb)
{
	__be32 sum = htonl(~dostp_sum(~0U, skb->data, skb->len));

	skb_put_data(skb, &sum, sizeof(sum));
}

/*
 * Memory of a message's next frame, from the socket's account. Whether there is room is asked for the first
 * frame alone, where the message must not be left in part (a call that does not wait), or where its own
 * frames fill the account until its address is found: so it is exceeded by a message at most, as by UDP.
 */
static struct sk_buff *dostp_send_alloc(struct sock *sk, const struct msghdr *msg,
					const struct dostp_route *route, const struct dostp_header *header,
					unsigned int bytes, int *error)
{
	unsigned int size = route->headroom + bytes + route->trailer + route->tailroom;
	bool must_not_wait = msg->msg_flags & MSG_DONTWAIT;
	struct sk_buff *skb;

	if (!header->sequence || (!must_not_wait && !route->is_parked))
		return sock_alloc_send_skb(sk, size, must_not_wait, error);
	skb = sock_wmalloc(sk, size, 1, sk->sk_allocation);
	*error = skb ? 0 : -ENOBUFS;
	return skb;
}

/* Builds the next frame of a message, but for its tag and its Ethernet header. */
static struct sk_buff *dostp_send_build(struct sock *sk, struct msghdr *msg, const struct dostp_route *route,
					struct dostp_header *header, int *error)
{
	unsigned int bytes = DOSTP_HEADER_BYTES + header->length;
	struct sk_buff *skb = dostp_send_alloc(sk, msg, route, header, bytes, error);
	u8 *at;

	if (!skb)
		return NULL;
	skb_reserve(skb, route->headroom);
	at = skb_put(skb, bytes);
	dostp_header_encode(header, route->cluster, at);
	*error = memcpy_from_msg(at + DOSTP_HEADER_BYTES, msg, header->length);
	if (*error) {
		kfree_skb(skb);
		return NULL;
	}
	if (route->flags & DOSTP_SUM)
		dostp_send_sum(skb);
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
	/* All frames of a socket go by one queue, so that they stay in order. */
	skb_set_hash_from_sk(skb, sk);
	return skb;
}

/* Sends one frame. Since the route was chosen the node may have ended, and another one may have begun. */
static int dostp_send_frame(struct dostp_net *net, struct sk_buff *skb, const struct dostp_route *route)
{
	struct dostp_node *node;
	int error = -ENETDOWN;

	rcu_read_lock();
	node = rcu_dereference(net->node);
	if (node && node->boot == route->boot && skb_headroom(skb) >= LL_RESERVED_SPACE(node->dev)) {
		dostp_send_finish(node, skb, route->link);
		error = dev_queue_xmit(skb);
		error = error > 0 ? net_xmit_errno(error) : error;
	} else {
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return error;
}

/* Takes so many bytes of payload from the frames of a message; `offset` bytes of the first are used up. */
static void dostp_send_take(struct sk_buff_head *frames, unsigned int *offset, u8 *to, unsigned int bytes)
{
	while (bytes) {
		struct sk_buff *first = skb_peek(frames);
		unsigned int left = get_unaligned_be16(first->data + DOSTP_LENGTH_AT) - *offset;
		unsigned int taken = min(left, bytes);

		memcpy(to, first->data + DOSTP_HEADER_BYTES + *offset, taken);
		to += taken;
		bytes -= taken;
		*offset += taken;
		if (taken == left && !skb_queue_is_last(frames, first)) {
			__skb_unlink(first, frames);
			kfree_skb(first);
			*offset = 0;
		}
	}
}

/*
 * Cuts a message that waited once more, into frames that its receiver takes. False: it needs too many of
 * them, or there is no memory; what was cut before is sent in vain.
 */
static bool dostp_send_cut(struct dostp_node *node, struct dostp_peer *peer, struct sk_buff_head *frames,
			   size_t left)
{
	unsigned int piece = dostp_peer_mtu(node, peer) - DOSTP_HEADER_BYTES - node->trailer, offset = 0;
	struct dostp_header header;
	struct sk_buff *skb;
	u8 flags;

	if (left > (size_t)piece * DOSTP_FRAGMENTS_MAX ||
	    dostp_header_decode(skb_peek(frames)->data, node->cluster, &header) != DOSTP_SOUND)
		return false;
	flags = header.flags & ~(DOSTP_FIRST | DOSTP_FINAL);
	header.flags = flags | DOSTP_FIRST;
	do {
		struct sk_buff *from = skb_peek(frames);

		header.length = min_t(size_t, left, piece);
		left -= header.length;
		header.flags |= left ? 0 : DOSTP_FINAL;
		skb = alloc_skb(LL_RESERVED_SPACE(node->dev) + DOSTP_HEADER_BYTES + header.length + node->trailer +
				node->dev->needed_tailroom, GFP_ATOMIC | __GFP_NOWARN);
		if (!skb)
			return false;
		skb_reserve(skb, LL_RESERVED_SPACE(node->dev));
		skb_put(skb, DOSTP_HEADER_BYTES + header.length);
		dostp_header_encode(&header, node->cluster, skb->data);
		skb->priority = from->priority;
		skb->mark = from->mark;
		skb_copy_hash(skb, from);
		skb_set_owner_w(skb, from->sk);
		dostp_send_take(frames, &offset, skb->data + DOSTP_HEADER_BYTES, header.length);
		if (flags & DOSTP_SUM)
			dostp_send_sum(skb);
		dostp_send_finish(node, skb, peer->link);
		__skb_queue_tail(&node->outgoing, skb);
		header.flags = flags;
		header.sequence++;
	} while (left);
	return true;
}

/* Sends the frames of a message that waited. Those that its receiver does not take are cut once more. */
static void dostp_send_waited(struct dostp_node *node, struct dostp_peer *peer, struct sk_buff_head *frames)
{
	/* Frames wait without a tag, which they get here. */
	unsigned int bytes_max = dostp_peer_mtu(node, peer) - (node->keys ? node->trailer : 0);
	bool fits = true;
	struct sk_buff *skb;
	size_t bytes = 0;

	skb_queue_walk(frames, skb) {
		bytes += get_unaligned_be16(skb->data + DOSTP_LENGTH_AT);
		fits &= skb->len <= bytes_max && skb_headroom(skb) >= LL_RESERVED_SPACE(node->dev);
	}
	if (!fits && !dostp_send_cut(node, peer, frames, bytes))
		dostp_drop(node->net, DOSTP_FAULT_UNRESOLVED);
	while (fits && (skb = __skb_dequeue(frames))) {
		dostp_send_finish(node, skb, peer->link);
		__skb_queue_tail(&node->outgoing, skb);
	}
	__skb_queue_purge(frames);
}

void dostp_send_parked(struct dostp_node *node, struct dostp_peer *peer)
{
	struct sk_buff_head message;
	struct sk_buff *skb;

	peer->parked_messages = 0;
	peer->parked_bytes = 0;
	__skb_queue_head_init(&message);
	while ((skb = __skb_dequeue(&peer->parked))) {
		bool is_final = skb->data[DOSTP_FLAGS_AT] & DOSTP_FINAL;

		__skb_queue_tail(&message, skb);
		if (is_final)
			dostp_send_waited(node, peer, &message);
	}
	/* Every message was kept whole. */
	__skb_queue_purge(&message);
}

/* With the lock: keeps a message's frames until the address is found. */
static int dostp_send_keep(struct dostp_node *node, u16 address, struct sk_buff_head *frames, size_t length)
{
	struct dostp_peer *peer = dostp_peer_find(node, address);

	if (peer && peer->has_failed && time_before(jiffies, peer->fresh_until))
		return -EHOSTUNREACH;
	if (!peer || peer->has_failed || peer->is_stranger)
		peer = dostp_peer_ask(node, address);
	if (!peer)
		return -EHOSTUNREACH;
	if (peer->parked_messages && (peer->parked_messages >= DOSTP_PARKED_MESSAGES_MAX ||
				      peer->parked_bytes + length > DOSTP_PARKED_BYTES_MAX))
		return -ENOBUFS;
	skb_queue_splice_tail_init(frames, &peer->parked);
	if (peer->is_known) {
		dostp_send_parked(node, peer);
		return 0;
	}
	peer->parked_messages++;
	peer->parked_bytes += length;
	return 0;
}

static int dostp_send_park(struct dostp_net *net, const struct dostp_route *route,
			   struct sk_buff_head *frames, size_t length)
{
	struct dostp_node *node;
	int error = -ENETDOWN;

	rcu_read_lock();
	node = rcu_dereference(net->node);
	if (node && node->boot == route->boot) {
		spin_lock_bh(&node->lock);
		error = dostp_send_keep(node, route->destination, frames, length);
		dostp_node_unlock(node);
	}
	rcu_read_unlock();
	return error;
}

/* Builds the frames of a message one after the other; each goes before the next is built. */
static int dostp_send_frames(struct sock *sk, struct msghdr *msg, size_t length, struct dostp_route *route,
			     struct dostp_header *header, struct sk_buff_head *parked)
{
	unsigned int piece = route->mtu - DOSTP_HEADER_BYTES - route->trailer;
	struct dostp_net *net = dostp_net(sock_net(sk));
	u8 flags = header->flags;
	struct sk_buff *skb;
	size_t left = length;
	int error = 0;

	if (length > (size_t)piece * DOSTP_FRAGMENTS_MAX)
		return -EMSGSIZE;
	do {
		header->length = min_t(size_t, left, piece);
		header->flags = flags | (left == length ? DOSTP_FIRST : 0);
		left -= header->length;
		header->flags |= left ? 0 : DOSTP_FINAL;
		skb = dostp_send_build(sk, msg, route, header, &error);
		if (!skb)
			return error;
		header->sequence++;
		if (route->is_parked)
			__skb_queue_tail(parked, skb);
		else
			error = dostp_send_frame(net, skb, route);
	} while (left && !error);
	/* A frame that the interface's queue has dropped is lost, as a datagram of UDP is. */
	return error == -ENOBUFS ? 0 : error;
}

int dostp_send(struct sock *sk, struct msghdr *msg, size_t length, u32 address, u16 port,
	       const struct dostp_message_name *name)
{
	struct dostp_net *net = dostp_net(sock_net(sk));
	struct dostp_sock *dsk = dostp_sk(sk);
	struct dostp_header header = { .kind = name->kind, .id = name->id, .destination_port = port };
	struct sk_buff_head parked;
	struct dostp_route route;
	struct dostp_node *node;
	int error;

	if (length > DOSTP_MESSAGE_BYTES_MAX)
		return -EMSGSIZE;
	rcu_read_lock();
	node = rcu_dereference(net->node);
	error = node ? dostp_send_route(sk, node, address, &route) : -ENETDOWN;
	rcu_read_unlock();
	if (error)
		return error;
	if (header.kind != DOSTP_DATA && route.destination == DOSTP_EVERYBODY)
		return -EINVAL;
	if (route.is_parked && length > DOSTP_PARKED_BYTES_MAX)
		return -ENOBUFS;
	header.source = route.source;
	header.destination = route.destination;
	header.source_port = dsk->port;
	if (header.kind == DOSTP_DATA)
		header.id = (u16)atomic_inc_return(&dsk->next_id);
	header.flags = route.flags;
	if (READ_ONCE(sk->sk_priority) >= TC_PRIO_INTERACTIVE)
		header.flags |= DOSTP_PRIORITY;
	__skb_queue_head_init(&parked);
	error = dostp_send_frames(sk, msg, length, &route, &header, &parked);
	if (!error && route.is_parked)
		error = dostp_send_park(net, &route, &parked, length);
	__skb_queue_purge(&parked);
	if (error)
		return error;
	dostp_count(net, messages_sent);
	return 0;
}
