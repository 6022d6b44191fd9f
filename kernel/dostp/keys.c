// SPDX-License-Identifier: GPL-2.0
/* The keys by which a node seals its own frames and opens those of others; the counters of its ports. */
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/xarray.h>

#include "keys.h"

/* A counter that was not used for so long is advanced to the time since boot (docs/dostp.md, "Counter"). */
#define DOSTP_KEYS_COUNTER_IDLE HZ
/* Nanoseconds of one step of a counter. No port sends frames as fast, so no counter outruns the clock. */
#define DOSTP_KEYS_COUNTER_UNIT 16

/* The next counter of a port. It is kept when the port's sockets close, so that no counter is used twice. */
struct dostp_counter {
	atomic64_t next;
	unsigned long used;
};

/* The key that the node's own frames are sealed with, and the slot of its secret. */
struct dostp_own {
	struct dostp_node_key key;
	u8 slot;
};

struct dostp_keys {
	struct dostp_secrets secrets; /* with the lock of the node */
	bool is_aead;
	struct dostp_own __rcu *own;
	struct dostp_counter *counters; /* of every port; control frames have port 0 */
	struct xarray senders;          /* by address */
	u32 senders_count;
	struct dostp_replays replays;
};

static struct dostp_own *dostp_keys_own(const struct dostp_secrets *secrets, u64 boot, u16 address)
{
	struct dostp_own *own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);

	if (!own)
		return NULL;
	own->slot = secrets->sends_by;
	dostp_seal_derive(secrets->slots[own->slot], boot, address, &own->key);
	return own;
}

struct dostp_keys *dostp_keys_begin(const struct dostp_secrets *secrets, u64 boot, u16 address)
{
	struct dostp_keys *keys = kvzalloc(sizeof(*keys), GFP_KERNEL_ACCOUNT);
	struct dostp_own *own = dostp_keys_own(secrets, boot, address);

	if (keys)
		keys->counters = kvcalloc(1 << 16, sizeof(*keys->counters), GFP_KERNEL_ACCOUNT);
	if (!keys || !own || !keys->counters) {
		kfree_sensitive(own);
		kvfree(keys ? keys->counters : NULL);
		kvfree(keys);
		return NULL;
	}
	keys->secrets = *secrets;
	keys->is_aead = secrets->is_aead;
	RCU_INIT_POINTER(keys->own, own);
	xa_init(&keys->senders);
	INIT_LIST_HEAD(&keys->replays.all);
	keys->replays.seed = (u32)dostp_node_draw();
	return keys;
}

void dostp_keys_end(struct dostp_keys *keys)
{
	struct dostp_sender *sender;
	unsigned long address;

	if (!keys)
		return;
	xa_for_each(&keys->senders, address, sender) {
		dostp_replay_forget(&keys->replays, sender);
		kfree_sensitive(sender);
	}
	xa_destroy(&keys->senders);
	kfree_sensitive(rcu_dereference_protected(keys->own, true));
	kvfree(keys->counters);
	memzero_explicit(&keys->secrets, sizeof(keys->secrets));
	kvfree(keys);
}

/* Wipes the keys that were derived for a sender: their secret or boot number is another now. */
static void dostp_keys_forget(struct dostp_sender *sender)
{
	memset(sender->has_key, 0, sizeof(sender->has_key));
	memzero_explicit(sender->keys, sizeof(sender->keys));
}

int dostp_keys_change(struct dostp_node *node, const struct dostp_secrets *secrets)
{
	struct dostp_own *own = dostp_keys_own(secrets, node->boot, node->low), *former;
	struct dostp_keys *keys = node->keys;
	struct dostp_sender *sender;
	unsigned long address;

	if (!own)
		return -ENOMEM;
	spin_lock_bh(&node->lock);
	keys->secrets = *secrets;
	xa_for_each(&keys->senders, address, sender)
		dostp_keys_forget(sender);
	former = rcu_replace_pointer(keys->own, own, lockdep_is_held(&node->lock));
	spin_unlock_bh(&node->lock);
	synchronize_rcu();
	kfree_sensitive(former);
	return 0;
}

unsigned int dostp_keys_trailer(const struct dostp_keys *keys, bool is_control)
{
	bool is_aead = keys->is_aead && !is_control;

	return DOSTP_WORD_BYTES + (is_aead ? DOSTP_TAG_AEAD_BYTES : DOSTP_TAG_MAC_BYTES);
}

/* Takes the counter of the next frame that leaves a port. */
static u64 dostp_keys_count(struct dostp_counter *counter)
{
	s64 next = atomic64_read(&counter->next);

	if (unlikely(!next || time_after_eq(jiffies, READ_ONCE(counter->used) + DOSTP_KEYS_COUNTER_IDLE))) {
		s64 clock = ktime_get_boottime_ns() / DOSTP_KEYS_COUNTER_UNIT;

		while (next < clock && !atomic64_try_cmpxchg(&counter->next, &next, clock))
			;
	}
	WRITE_ONCE(counter->used, jiffies);
	return atomic64_fetch_inc(&counter->next) & ((1ULL << DOSTP_COUNTER_BITS) - 1);
}

void dostp_keys_seal(const struct dostp_node *node, struct sk_buff *skb)
{
	const struct dostp_keys *keys = node->keys;
	const struct dostp_own *own = rcu_dereference_check(keys->own, lockdep_is_held(&node->lock));
	unsigned int length = skb->len - DOSTP_HEADER_BYTES;
	u8 *frame = skb->data;
	u16 port = frame[6] << 8 | frame[7];
	u64 key = own->slot | (port && keys->is_aead ? DOSTP_KEY_AEAD : 0);
	u64 word = key << DOSTP_COUNTER_BITS | dostp_keys_count(&keys->counters[port]);

	skb_put(skb, dostp_keys_trailer(keys, !port));
	dostp_seal(&own->key, frame, length, word);
}

/* Adds what is kept of a node; NULL: there is no room or no memory. */
static struct dostp_sender *dostp_keys_add(struct dostp_keys *keys, u16 address)
{
	struct dostp_sender *sender;

	if (keys->senders_count >= DOSTP_SENDERS_MAX)
		return NULL;
	sender = kzalloc(sizeof(*sender), GFP_ATOMIC | __GFP_NOWARN);
	if (!sender)
		return NULL;
	sender->address = address;
	INIT_LIST_HEAD(&sender->windows);
	if (xa_err(xa_store(&keys->senders, address, sender, GFP_ATOMIC | __GFP_NOWARN))) {
		kfree(sender);
		return NULL;
	}
	keys->senders_count++;
	return sender;
}

/*
 * What is kept of a node whose frame had a right tag by this key; NULL: it cannot be kept. Keys are derived
 * from the boot number: by another one, tags of recorded frames are wrong anyway.
 */
static struct dostp_sender *dostp_keys_sender(struct dostp_keys *keys, const struct dostp_peer *peer, u8 slot,
					      const struct dostp_node_key *key)
{
	struct dostp_sender *sender = xa_load(&keys->senders, peer->address) ?: dostp_keys_add(keys, peer->address);

	if (!sender)
		return NULL;
	if (sender->boot != peer->boot) {
		dostp_replay_forget(&keys->replays, sender);
		dostp_keys_forget(sender);
		sender->boot = peer->boot;
	}
	if (!sender->has_key[slot]) {
		sender->keys[slot] = *key;
		sender->has_key[slot] = true;
	}
	return sender;
}

/*
 * Verifies and decrypts a message's frame, by the boot number of its peer, and notes its counter. Nothing is
 * kept of a sender before its tag was found right.
 */
static enum dostp_fault dostp_keys_open_message(struct dostp_keys *keys, const struct dostp_peer *peer,
						u8 *frame, const struct dostp_header *header)
{
	u64 word = dostp_seal_word(frame, header->length);
	u8 slot = word >> DOSTP_COUNTER_BITS & DOSTP_KEY_SLOT;
	struct dostp_sender *sender = xa_load(&keys->senders, peer->address);
	struct dostp_node_key derived = {};
	enum dostp_fault fault = DOSTP_FAULT_AUTH;
	bool is_kept = sender && sender->boot == peer->boot && sender->has_key[slot];
	const struct dostp_node_key *key = is_kept ? &sender->keys[slot] : &derived;

	if (!is_kept)
		dostp_seal_derive(keys->secrets.slots[slot], peer->boot, peer->address, &derived);
	if (dostp_seal_open(key, frame, header->length)) {
		sender = is_kept ? sender : dostp_keys_sender(keys, peer, slot, &derived);
		fault = !sender ? DOSTP_FAULT_ROOM :
				  dostp_replay_note(&keys->replays, sender, header->source_port, slot,
						    word & ((1ULL << DOSTP_COUNTER_BITS) - 1));
	}
	if (!is_kept)
		memzero_explicit(&derived, sizeof(derived));
	return fault;
}

/* Verifies a control frame by the boot number in its greeting. It may still be recorded: see heard.c. */
static enum dostp_fault dostp_keys_open_control(const struct dostp_keys *keys, u8 *frame,
						const struct dostp_header *header,
						const struct dostp_greeting *greeting)
{
	u8 slot = frame[DOSTP_HEADER_BYTES + header->length] & DOSTP_KEY_SLOT;
	struct dostp_node_key key;
	bool is_right;

	dostp_seal_derive(keys->secrets.slots[slot], greeting->boot, header->source, &key);
	is_right = dostp_seal_open(&key, frame, header->length);
	memzero_explicit(&key, sizeof(key));
	return is_right ? DOSTP_SOUND : DOSTP_FAULT_AUTH;
}

enum dostp_fault dostp_keys_open(struct dostp_node *node, struct sk_buff *skb,
				 const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	struct dostp_keys *keys = node->keys;
	u8 key = skb->data[DOSTP_HEADER_BYTES + header->length];
	u8 mode = keys->is_aead && !greeting ? DOSTP_KEY_AEAD : 0;
	const struct dostp_peer *peer = NULL;

	if (!greeting) {
		/* dostp_heard drops it as `own` or `conflict`, whatever its tag is. */
		if (header->source == node->low)
			return DOSTP_SOUND;
		peer = dostp_peer_find(node, header->source);
		if (!peer || !peer->is_known) {
			dostp_heard_stranger(node, dostp_link_of(eth_hdr(skb)->h_source), header);
			return DOSTP_FAULT_UNKNOWN;
		}
	}
	if ((key & ~DOSTP_KEY_SLOT) != mode || !keys->secrets.is_set[key & DOSTP_KEY_SLOT])
		return DOSTP_FAULT_AUTH;
	return greeting ? dostp_keys_open_control(keys, skb->data, header, greeting) :
			  dostp_keys_open_message(keys, peer, skb->data, header);
}

u32 dostp_keys_windows(const struct dostp_keys *keys)
{
	return READ_ONCE(keys->replays.count);
}
