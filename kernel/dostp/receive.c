// SPDX-License-Identifier: GPL-2.0
/* From a frame that came to a message in a socket's queue: docs/dostp.md, "What is dropped". */
#include "keys.h"

/* Whether the checksum behind the payload is right. */
static bool dostp_receive_is_sum_right(const struct sk_buff *skb, unsigned int bytes)
{
	unsigned int at = 0;
	u32 state = ~0U;
	__be32 sum;
	u8 part[64];

	while (at < bytes) {
		unsigned int length = min_t(unsigned int, bytes - at, sizeof(part));

		if (skb_copy_bits(skb, at, part, length))
			return false;
		state = dostp_sum(state, part, length);
		at += length;
	}
	return !skb_copy_bits(skb, bytes, &sum, sizeof(sum)) && ntohl(sum) == ~state;
}

/*
 * The faults of the bytes alone. Leaves the header's bytes and those of a greeting in one piece, and gives
 * where a sound frame ends.
 */
static enum dostp_fault dostp_receive_decode(const struct dostp_node *node, struct sk_buff *skb,
					     struct dostp_header *header, struct dostp_greeting *greeting,
					     unsigned int *end)
{
	enum dostp_fault fault;
	u8 key = 0;

	if (!pskb_may_pull(skb, DOSTP_HEADER_BYTES))
		return DOSTP_FAULT_SHORT;
	fault = dostp_header_decode(skb->data, node->cluster, header);
	if (fault != DOSTP_SOUND)
		return fault;
	/*
	 * A tag is over all of the frame, and a payload is decrypted where it stands. Also, a sender on this host
	 * may have mapped the bytes: none may change between one look and the next.
	 */
	if (unlikely(header->flags & DOSTP_AUTH) && node->keys && skb_linearize_cow(skb))
		return DOSTP_FAULT_ROOM;
	*end = DOSTP_HEADER_BYTES + header->length;
	if (header->flags & DOSTP_AUTH && skb_copy_bits(skb, *end, &key, 1))
		return DOSTP_FAULT_LENGTH;
	*end += dostp_header_trailer(header, key);
	if (*end > skb->len || !dostp_header_is_length_right(header))
		return DOSTP_FAULT_LENGTH;
	if (dostp_is_control(header->kind) &&
	    (!pskb_may_pull(skb, DOSTP_HEADER_BYTES + DOSTP_GREETING_BYTES) ||
	     !dostp_greeting_decode(skb->data + DOSTP_HEADER_BYTES, greeting)))
		return DOSTP_FAULT_LENGTH;
	return DOSTP_SOUND;
}

/* The faults that need no lock, of a frame whose bytes are sound. The greeting is that of a control frame. */
static enum dostp_fault dostp_receive_check(const struct dostp_node *node, const struct sk_buff *skb,
					    const struct dostp_header *header,
					    const struct dostp_greeting *greeting)
{
	if (header->destination != node->low && header->destination != DOSTP_EVERYBODY)
		return DOSTP_FAULT_FOREIGN;
	if (header->flags & DOSTP_SUM && !dostp_receive_is_sum_right(skb, DOSTP_HEADER_BYTES + header->length))
		return DOSTP_FAULT_SUM;
	/*
	 * The tag covers the link address in a greeting, not that of the frame: only together they tell where
	 * the sender is.
	 */
	if (dostp_is_control(header->kind) && memcmp(greeting->link, eth_hdr(skb)->h_source, ETH_ALEN))
		return DOSTP_FAULT_RELAYED;
	return (header->flags ^ node->flags) & DOSTP_AUTH ? DOSTP_FAULT_AUTH : DOSTP_SOUND;
}

static int dostp_receive_drop(const struct dostp_node *node, struct sk_buff *skb, enum dostp_fault fault)
{
	dostp_drop(node->net, fault);
	kfree_skb(skb);
	return NET_RX_DROP;
}

/* Finds a socket that takes what a frame carries. */
static enum dostp_fault dostp_receive_find(const struct dostp_node *node, const struct dostp_header *header,
					   u32 source, struct sock **sk)
{
	u16 port = header->destination_port, source_port = header->source_port;

	*sk = dostp_port_find(node, port, source, source_port, header->kind);
	if (likely(*sk))
		return DOSTP_SOUND;
	return dostp_port_find(node, port, source, source_port, DOSTP_DATA) ? DOSTP_FAULT_KIND : DOSTP_FAULT_CLOSED;
}

/*
 * With the lock. Gives a message and whom it is for (NULL: all sockets of the port); NULL if there
 * is none yet. A frame that is not given on is freed.
 */
static struct sk_buff *dostp_receive_take(struct dostp_node *node, struct sk_buff *skb,
					  const struct dostp_header *header,
					  const struct dostp_greeting *greeting, struct sock **sk)
{
	u32 source = (node->address & 0xffff0000) | header->source;
	bool is_control = dostp_is_control(header->kind);
	struct dostp_peer *peer = NULL;
	enum dostp_fault fault;

	greeting = is_control ? greeting : NULL;
	fault = unlikely(node->keys) ? dostp_keys_open(node, skb, header, greeting) : DOSTP_SOUND;
	if (fault != DOSTP_SOUND)
		goto drop;
	fault = dostp_heard(node, dostp_link_of(eth_hdr(skb)->h_source), header, greeting, &peer);
	if (fault != DOSTP_SOUND)
		goto drop;
	if (is_control) {
		dostp_count(node->net, control_received);
		consume_skb(skb);
		return NULL;
	}
	fault = dostp_receive_find(node, header, source, sk);
	if (fault != DOSTP_SOUND)
		goto drop;
	fault = DOSTP_FAULT_LENGTH;
	if (pskb_trim(skb, DOSTP_HEADER_BYTES + header->length))
		goto drop;
	__skb_pull(skb, DOSTP_HEADER_BYTES);
	skb->ip_summed = CHECKSUM_NONE;
	skb = dostp_reassemble(node, peer, header, skb);
	if (!skb)
		return NULL;
	dostp_from(skb)->address = source;
	dostp_from(skb)->port = header->source_port;
	dostp_from(skb)->name = (struct dostp_message_name){ .kind = header->kind, .id = header->id };
	return skb;

drop:
	dostp_drop(node->net, fault);
	kfree_skb(skb);
	return NULL;
}

/*
 * Takes a frame whose bytes are sound, and delivers the message that is complete with it. The greeting is
 * that of a control frame; joined frames are none.
 */
static int dostp_receive_sound(struct dostp_node *node, struct sk_buff *skb,
			       const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	enum dostp_fault fault = dostp_receive_check(node, skb, header, greeting);
	struct sock *sk = NULL;

	if (fault != DOSTP_SOUND)
		return dostp_receive_drop(node, skb, fault);
	/* Frames come where bottom halves are off. */
	spin_lock(&node->lock);
	skb = dostp_receive_take(node, skb, header, greeting, &sk);
	if (likely(skb_queue_empty(&node->outgoing))) {
		spin_unlock(&node->lock);
	} else {
		local_bh_disable();
		dostp_node_unlock(node);
	}
	if (!skb)
		return NET_RX_SUCCESS;
	if (header->destination == DOSTP_EVERYBODY)
		dostp_port_deliver_all(node, header->destination_port, skb);
	else
		dostp_port_deliver(node->net, sk, skb);
	return NET_RX_SUCCESS;
}

/*
 * Takes the first of joined frames out, which stand in one piece. The bytes are copied, for a socket is
 * charged for the memory that a message holds.
 */
static struct sk_buff *dostp_receive_part(struct sk_buff *skb, unsigned int bytes)
{
	struct sk_buff *part = alloc_skb(ETH_HLEN + bytes, GFP_ATOMIC | __GFP_NOWARN);

	if (!part)
		return NULL;
	skb_copy_header(part, skb);
	skb_reset_mac_header(part);
	skb_put_data(part, eth_hdr(skb), ETH_HLEN);
	__skb_pull(part, ETH_HLEN);
	skb_reset_network_header(part);
	skb_put_data(part, skb->data, bytes);
	__skb_pull(skb, bytes);
	skb_reset_network_header(skb);
	return part;
}

/*
 * Takes joined frames one after the other. The first is sound and ends at `end`; each has at least a
 * header, so their number is bounded by the bytes.
 */
static noinline int dostp_receive_joined(struct dostp_node *node, struct sk_buff *skb,
					 struct dostp_header *header, unsigned int end)
{
	enum dostp_fault fault = skb_linearize(skb) ? DOSTP_FAULT_ROOM : DOSTP_SOUND;
	struct dostp_greeting greeting;

	while (fault == DOSTP_SOUND && header->flags & DOSTP_MORE) {
		struct sk_buff *part = dostp_receive_part(skb, end);
		struct dostp_header before = *header;

		if (!part)
			return dostp_receive_drop(node, skb, DOSTP_FAULT_ROOM);
		dostp_receive_sound(node, part, header, NULL);
		fault = dostp_receive_decode(node, skb, header, &greeting, &end);
		if (fault == DOSTP_SOUND && !dostp_header_may_follow(&before, header))
			fault = DOSTP_FAULT_FLAGS;
	}
	if (fault != DOSTP_SOUND)
		return dostp_receive_drop(node, skb, fault);
	return dostp_receive_sound(node, skb, header, NULL);
}

int dostp_receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *type,
		  struct net_device *orig_dev)
{
	struct dostp_node *node = type->af_packet_priv;
	struct dostp_greeting greeting;
	struct dostp_header header;
	enum dostp_fault fault;
	unsigned int end;

	/* Frames of a VLAN that has an interface are shown here as well: they are that interface's. */
	if (skb->pkt_type == PACKET_OTHERHOST || dev != node->dev) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	dostp_count(node->net, frames_received);
	fault = dostp_receive_decode(node, skb, &header, &greeting, &end);
	if (fault != DOSTP_SOUND)
		return dostp_receive_drop(node, skb, fault);
	if (unlikely(header.flags & DOSTP_MORE))
		return dostp_receive_joined(node, skb, &header, end);
	return dostp_receive_sound(node, skb, &header, &greeting);
}
