// SPDX-License-Identifier: GPL-2.0
/* Control frames: built, bounded, sent at their time. */
#include "keys.h"

/* How often answers that wait are looked at. */
#define DOSTP_CONTROL_LOOK (HZ / 100 ?: 1)

static bool dostp_control_allows(struct dostp_rate *rate, u32 per_second_max)
{
	if (!rate->count || time_after_eq(jiffies, rate->began + HZ)) {
		rate->began = jiffies;
		rate->count = 0;
	}
	return rate->count++ < per_second_max;
}

/* `frame_bytes`: the size to which a PROBE is padded; 0: not padded. */
static struct sk_buff *dostp_control_frame(struct dostp_node *node, enum dostp_kind kind, dostp_link to,
					   u16 destination, u64 challenge, u64 echo,
					   unsigned int frame_bytes)
{
	unsigned int trailer = node->keys ? dostp_keys_trailer(node->keys, true) : node->trailer;
	unsigned int bytes = max_t(unsigned int, DOSTP_HEADER_BYTES + DOSTP_GREETING_BYTES + trailer,
				   frame_bytes) - trailer;
	struct dostp_greeting greeting = {
		.boot = node->boot, .challenge = challenge, .echo = echo, .mtu = node->mtu,
	};
	struct dostp_header header = {
		.kind = kind,
		.flags = DOSTP_WHOLE | node->flags,
		.source = node->low,
		.destination = destination,
		.length = bytes - DOSTP_HEADER_BYTES,
	};
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(node->dev) + bytes + trailer +
					node->dev->needed_tailroom, GFP_ATOMIC | __GFP_NOWARN);
	u8 *at;

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_RESERVED_SPACE(node->dev));
	at = skb_put_zero(skb, bytes);
	memcpy(greeting.link, &node->link, ETH_ALEN);
	dostp_header_encode(&header, node->cluster, at);
	dostp_greeting_encode(&greeting, at + DOSTP_HEADER_BYTES);
	if (node->flags & DOSTP_SUM) {
		__be32 sum = htonl(~dostp_sum(~0U, at, bytes));

		skb_put_data(skb, &sum, sizeof(sum));
	}
	dostp_send_finish(node, skb, to);
	return skb;
}

/* The frame leaves when the lock is given back; without memory for it there is none. */
static void dostp_control_queue(struct dostp_node *node, struct sk_buff *skb)
{
	if (!skb)
		return;
	__skb_queue_tail(&node->outgoing, skb);
	dostp_count(node->net, control_sent);
}

void dostp_control_push(struct dostp_node *node, enum dostp_kind kind, dostp_link to, u16 destination,
			u64 challenge, u64 echo)
{
	dostp_control_queue(node, dostp_control_frame(node, kind, to, destination, challenge, echo, 0));
}

void dostp_control_probe(struct dostp_node *node, u16 destination, const struct dostp_probe *probe,
			 unsigned int frame_bytes)
{
	dostp_control_queue(node, dostp_control_frame(node, DOSTP_PROBE, probe->to, destination,
						      probe->challenge, 0, frame_bytes));
}

/* Whether the bounds allow one more frame in answer to a received one: a HELLO-REPLY, or a PROBE. */
static bool dostp_control_may_answer(struct dostp_node *node)
{
	return skb_queue_len(&node->replies) < DOSTP_REPLIES_WAITING_MAX &&
	       dostp_control_allows(&node->replies_rate, DOSTP_REPLIES_PER_SECOND_MAX);
}

/*
 * Sends a frame after `delay` jiffies; frames of one delay leave in the order in which they were given.
 * False: there was no memory, or no room, for the frame (NULL).
 */
static bool dostp_control_delay(struct dostp_node *node, struct sk_buff *skb, unsigned long delay)
{
	if (!skb)
		return false;
	if (!delay) {
		dostp_control_queue(node, skb);
		return true;
	}
	dostp_due(skb)->at = jiffies + delay;
	__skb_queue_tail(&node->replies, skb);
	dostp_node_kick(node, DOSTP_CONTROL_LOOK);
	return true;
}

bool dostp_control_reply(struct dostp_node *node, dostp_link to, u16 destination, u64 echo,
			 unsigned long delay)
{
	struct sk_buff *skb = NULL;

	if (dostp_control_may_answer(node))
		skb = dostp_control_frame(node, DOSTP_HELLO_REPLY, to, destination, 0, echo, 0);
	return dostp_control_delay(node, skb, delay);
}

bool dostp_control_introduce(struct dostp_node *node, u16 destination, const struct dostp_probe *probe,
			     unsigned long delay)
{
	struct sk_buff *skb = NULL;

	if (dostp_control_may_answer(node))
		skb = dostp_control_frame(node, DOSTP_PROBE, probe->to, destination, probe->challenge, 0, 0);
	return dostp_control_delay(node, skb, delay);
}

bool dostp_control_may_size(struct dostp_node *node)
{
	return dostp_control_allows(&node->sizes_rate, DOSTP_SIZES_PER_SECOND_MAX);
}

void dostp_control_conflict(struct dostp_node *node, dostp_link to, u64 echo)
{
	if (dostp_control_allows(&node->conflicts_rate, DOSTP_CONFLICTS_PER_SECOND_MAX))
		dostp_control_push(node, DOSTP_CONFLICT, to, node->low, 0, echo);
}

void dostp_control_hello(struct dostp_node *node, u64 challenge)
{
	dostp_control_push(node, DOSTP_HELLO, DOSTP_LINK_EVERYBODY, DOSTP_EVERYBODY, challenge, 0);
	node->announce_at = jiffies + DOSTP_FRESH + (unsigned long)(dostp_node_draw() % DOSTP_ANNOUNCE_SPREAD);
}

unsigned long dostp_control_look(struct dostp_node *node)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&node->replies, skb, next) {
		if (time_before(jiffies, dostp_due(skb)->at))
			continue;
		__skb_unlink(skb, &node->replies);
		memset(skb->cb, 0, sizeof(skb->cb));
		__skb_queue_tail(&node->outgoing, skb);
		dostp_count(node->net, control_sent);
	}
	return skb_queue_empty(&node->replies) ? DOSTP_FRESH : DOSTP_CONTROL_LOOK;
}
