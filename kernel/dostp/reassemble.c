// SPDX-License-Identifier: GPL-2.0
/*
 * Messages under way, within bounds of memory: docs/dostp.md, "Messages".
 *
 * The bytes of fragments are copied into pages of the message, so what is held is what is counted,
 * whatever memory a driver receives into. Of a whole message nothing is copied.
 */
#include <linux/slab.h>

#include "dostp.h"

/*
 * Pages of a message, by their order: 4 KiB, 4, 8, 16, then 32 each. The longest message fills them
 * to the last byte.
 */
static const u8 dostp_reassemble_orders[] = { 0, 0, 1, 2, 3 };

static struct kmem_cache *dostp_reassemble_cache;

int dostp_reassemble_init(void)
{
	dostp_reassemble_cache = KMEM_CACHE(dostp_message, 0);
	return dostp_reassemble_cache ? 0 : -ENOMEM;
}

void dostp_reassemble_exit(void)
{
	kmem_cache_destroy(dostp_reassemble_cache);
}

static u64 dostp_reassemble_name(const struct dostp_header *header)
{
	return (u64)header->destination << 48 | (u64)header->source_port << 32 |
	       (u32)header->destination_port << 16 | header->id;
}

static struct dostp_message *dostp_reassemble_find(struct dostp_peer *peer, const struct dostp_header *header)
{
	u64 name = dostp_reassemble_name(header);
	struct dostp_message *message;

	list_for_each_entry(message, &peer->messages, of_peer)
		if (message->name == name && message->kind == header->kind)
			return message;
	return NULL;
}

/* Ends a message; gives its bytes. */
static struct sk_buff *dostp_reassemble_end(struct dostp_node *node, struct dostp_message *message)
{
	struct sk_buff *skb = message->skb;

	list_del(&message->of_node);
	list_del(&message->of_peer);
	message->peer->messages_count--;
	message->peer->bytes -= message->held;
	node->messages_count--;
	node->bytes -= message->held;
	kmem_cache_free(dostp_reassemble_cache, message);
	return skb;
}

static void dostp_reassemble_drop(struct dostp_node *node, struct dostp_message *message,
				  enum dostp_fault fault)
{
	kfree_skb(dostp_reassemble_end(node, message));
	dostp_drop(node->net, fault);
}

void dostp_reassemble_expire(struct dostp_node *node)
{
	struct dostp_message *message, *next;

	list_for_each_entry_safe(message, next, &node->messages, of_node) {
		if (time_before(jiffies, message->begun + DOSTP_MESSAGE_AGE))
			break;
		dostp_reassemble_drop(node, message, DOSTP_FAULT_EXPIRED);
	}
}

void dostp_reassemble_forget(struct dostp_node *node, struct dostp_peer *peer)
{
	struct dostp_message *message, *next;

	list_for_each_entry_safe(message, next, &peer->messages, of_peer)
		kfree_skb(dostp_reassemble_end(node, message));
}

/* Drops the oldest messages until all bounds hold. False: this message was among them. */
static bool dostp_reassemble_make_room(struct dostp_node *node, struct dostp_message *of)
{
	struct dostp_peer *peer = of->peer;
	struct dostp_message *oldest = NULL;

	while (oldest != of) {
		if (peer->bytes > DOSTP_SOURCE_BYTES_MAX || peer->messages_count > DOSTP_SOURCE_MESSAGES_MAX)
			oldest = list_first_entry(&peer->messages, struct dostp_message, of_peer);
		else if (node->bytes > DOSTP_NODE_BYTES_MAX || node->messages_count > DOSTP_NODE_MESSAGES_MAX)
			oldest = list_first_entry(&node->messages, struct dostp_message, of_node);
		else
			return true;
		dostp_reassemble_drop(node, oldest, DOSTP_FAULT_ROOM);
	}
	return false;
}

/*
 * Whether a message that is complete has not come before, which is noted. Whoever serves a transaction has to
 * know its repetitions by itself.
 */
static bool dostp_reassemble_is_new(struct dostp_node *node, const struct dostp_header *header)
{
	return header->kind != DOSTP_DATA || dostp_window_note(node->window, header, jiffies);
}

/* Adds pages. False: there are none. */
static bool dostp_reassemble_grow(struct dostp_node *node, struct dostp_message *message)
{
	int count = skb_shinfo(message->skb)->nr_frags;
	u8 order = dostp_reassemble_orders[min_t(int, count, ARRAY_SIZE(dostp_reassemble_orders) - 1)];
	u32 bytes = PAGE_SIZE << order;
	struct page *page;

	if (count == MAX_SKB_FRAGS)
		return false;
	page = alloc_pages(GFP_ATOMIC | __GFP_NOWARN | (order ? __GFP_COMP : 0), order);
	if (!page)
		return false;
	skb_fill_page_desc(message->skb, count, page, 0, 0);
	message->skb->truesize += bytes;
	message->room = bytes;
	message->held += bytes;
	message->peer->bytes += bytes;
	node->bytes += bytes;
	return true;
}

static enum dostp_fault dostp_reassemble_append(struct dostp_node *node, struct dostp_message *message,
						const struct sk_buff *from)
{
	struct sk_buff *skb = message->skb;
	unsigned int at = 0;

	if (message->bytes + from->len > DOSTP_MESSAGE_BYTES_MAX)
		return DOSTP_FAULT_SIZE;
	while (at < from->len) {
		unsigned int length;
		skb_frag_t *last;

		if (!message->room && !dostp_reassemble_grow(node, message))
			return DOSTP_FAULT_ROOM;
		length = min(from->len - at, message->room);
		last = &skb_shinfo(skb)->frags[skb_shinfo(skb)->nr_frags - 1];
		if (skb_copy_bits(from, at, skb_frag_address(last) + skb_frag_size(last), length))
			return DOSTP_FAULT_LENGTH;
		skb_frag_size_add(last, length);
		skb->len += length;
		skb->data_len += length;
		message->room -= length;
		message->bytes += length;
		at += length;
	}
	message->next_sequence++;
	return DOSTP_SOUND;
}

static struct dostp_message *dostp_reassemble_begin(struct dostp_node *node, struct dostp_peer *peer,
						    const struct dostp_header *header,
						    const struct sk_buff *first)
{
	struct dostp_message *message = kmem_cache_zalloc(dostp_reassemble_cache,
							  GFP_ATOMIC | __GFP_NOWARN);

	if (!message)
		return NULL;
	message->skb = alloc_skb(0, GFP_ATOMIC | __GFP_NOWARN);
	if (!message->skb) {
		kmem_cache_free(dostp_reassemble_cache, message);
		return NULL;
	}
	message->skb->dev = first->dev;
	message->skb->tstamp = first->tstamp;
	message->skb->priority = first->priority;
	message->peer = peer;
	message->name = dostp_reassemble_name(header);
	message->kind = header->kind;
	message->begun = jiffies;
	list_add_tail(&message->of_node, &node->messages);
	list_add_tail(&message->of_peer, &peer->messages);
	peer->messages_count++;
	node->messages_count++;
	dostp_node_kick(node, DOSTP_MESSAGE_AGE);
	return message;
}

/* Takes a fragment. A fault counts the fragment; that of its message was counted already. */
static struct sk_buff *dostp_reassemble_add(struct dostp_node *node, struct dostp_peer *peer,
					    const struct dostp_header *header, const struct sk_buff *from)
{
	struct dostp_message *message = dostp_reassemble_find(peer, header);
	enum dostp_fault fault;

	if (header->flags & DOSTP_FIRST) {
		if (message)
			dostp_reassemble_drop(node, message, DOSTP_FAULT_ORDER);
		message = dostp_reassemble_begin(node, peer, header, from);
		if (!message) {
			dostp_drop(node->net, DOSTP_FAULT_ROOM);
			return NULL;
		}
	} else if (!message) {
		dostp_drop(node->net, DOSTP_FAULT_ORPHAN);
		return NULL;
	}
	fault = message->next_sequence == header->sequence ? dostp_reassemble_append(node, message, from) :
							     DOSTP_FAULT_ORDER;
	if (fault != DOSTP_SOUND) {
		dostp_reassemble_drop(node, message, fault);
		return NULL;
	}
	if (!dostp_reassemble_make_room(node, message))
		return NULL;
	return header->flags & DOSTP_FINAL ? dostp_reassemble_end(node, message) : NULL;
}

struct sk_buff *dostp_reassemble(struct dostp_node *node, struct dostp_peer *peer,
				 const struct dostp_header *header, struct sk_buff *skb)
{
	struct dostp_message *message;
	struct sk_buff *fragment = skb;

	if ((header->flags & DOSTP_WHOLE) == DOSTP_WHOLE) {
		if (!dostp_reassemble_is_new(node, header))
			goto duplicate;
		message = dostp_reassemble_find(peer, header);
		if (unlikely(message))
			dostp_reassemble_drop(node, message, DOSTP_FAULT_ORDER);
		return skb;
	}
	dostp_reassemble_expire(node);
	if (header->kind == DOSTP_DATA && header->flags & DOSTP_FIRST &&
	    dostp_window_has(node->window, header, jiffies))
		goto duplicate;
	skb = dostp_reassemble_add(node, peer, header, fragment);
	consume_skb(fragment);
	if (!skb || dostp_reassemble_is_new(node, header))
		return skb;

duplicate:
	dostp_drop(node->net, DOSTP_FAULT_DUPLICATE);
	kfree_skb(skb);
	return NULL;
}
