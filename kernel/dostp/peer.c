// SPDX-License-Identifier: GPL-2.0
/* The table of peers: learnt, asked, aged. docs/dostp.md, section "Neighbours". */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "dostp.h"

/* How often peers are looked at while one is asked, and while none is. */
#define DOSTP_PEER_LOOK_ASKED (HZ / 20 ?: 1)
#define DOSTP_PEER_LOOK (5 * HZ)

static struct kmem_cache *dostp_peer_cache;

int dostp_peer_init(void)
{
	dostp_peer_cache = KMEM_CACHE(dostp_peer, 0);
	return dostp_peer_cache ? 0 : -ENOMEM;
}

void dostp_peer_exit(void)
{
	rcu_barrier();
	kmem_cache_destroy(dostp_peer_cache);
}

static void dostp_peer_free(struct rcu_head *rcu)
{
	kmem_cache_free(dostp_peer_cache, container_of(rcu, struct dostp_peer, rcu));
}

struct dostp_peer *dostp_peer_find(struct dostp_node *node, u16 address)
{
	return rcu_dereference_protected(node->table[address], lockdep_is_held(&node->lock));
}

u16 dostp_peer_mtu(const struct dostp_node *node, const struct dostp_peer *peer)
{
	u16 both = min(node->mtu, READ_ONCE(peer->mtu));

	return READ_ONCE(peer->size) == DOSTP_SIZE_LARGE ? both : min_t(u16, both, DOSTP_MTU_ETHERNET);
}

static struct dostp_peer *dostp_peer_add(struct dostp_node *node, u16 address)
{
	struct dostp_peer *peer = kmem_cache_zalloc(dostp_peer_cache, GFP_ATOMIC | __GFP_NOWARN);

	if (!peer)
		return NULL;
	peer->address = address;
	peer->mtu = DOSTP_MTU_ETHERNET;
	INIT_LIST_HEAD(&peer->messages);
	__skb_queue_head_init(&peer->parked);
	list_add_tail(&peer->all, &node->peers);
	return peer;
}

void dostp_peer_remove(struct dostp_node *node, struct dostp_peer *peer)
{
	RCU_INIT_POINTER(node->table[peer->address], NULL);
	dostp_reassemble_forget(node, peer);
	while (peer->parked_messages) {
		dostp_drop(node->net, DOSTP_FAULT_UNRESOLVED);
		peer->parked_messages--;
	}
	__skb_queue_purge(&peer->parked);
	list_del(&peer->all);
	if (peer->is_known)
		node->known--;
	else if (peer->is_stranger)
		node->strangers--;
	else
		node->asked--;
	call_rcu(&peer->rcu, dostp_peer_free);
}

/* Of a full table, gives up the stale peer heard longest ago. False: no peer is stale. */
static bool dostp_peer_make_room(struct dostp_node *node)
{
	struct dostp_peer *peer, *oldest = NULL;

	/* A flood of forged sources must not make each frame look at all peers. */
	if (time_before(jiffies, node->full_until))
		return false;
	list_for_each_entry(peer, &node->peers, all)
		if (peer->is_known && peer->is_stale && (!oldest || time_before(peer->heard, oldest->heard)))
			oldest = peer;
	if (oldest)
		dostp_peer_remove(node, oldest);
	else
		node->full_until = jiffies + DOSTP_PEER_LOOK_ASKED;
	return oldest;
}

struct dostp_peer *dostp_peer_learn(struct dostp_node *node, u16 address, dostp_link link, u16 mtu)
{
	struct dostp_peer *peer = dostp_peer_find(node, address);

	if (node->known >= DOSTP_PEERS_MAX && !dostp_peer_make_room(node))
		return NULL;
	if (peer) {
		if (peer->is_stranger)
			node->strangers--;
		else
			node->asked--;
		peer->is_stranger = false;
		peer->has_failed = false;
		/* A message waits for it: it is spoken to. */
		peer->was_spoken_to = peer->parked_messages;
		peer->spoken = jiffies;
	} else {
		peer = dostp_peer_add(node, address);
		if (!peer)
			return NULL;
	}
	node->known++;
	WRITE_ONCE(peer->link, link);
	WRITE_ONCE(peer->mtu, mtu);
	dostp_peer_size_anew(node, peer);
	dostp_peer_refresh(peer);
	/* Whoever finds it in the table finds it known, with its link address and MTU. */
	smp_store_release(&peer->is_known, true);
	rcu_assign_pointer(node->table[address], peer);
	dostp_send_parked(node, peer);
	return peer;
}

void dostp_peer_refresh(struct dostp_peer *peer)
{
	peer->heard = jiffies;
	peer->fresh_until = jiffies + DOSTP_FRESH;
	peer->is_stale = false;
	peer->has_claimant = false;
	peer->probe.challenge = 0;
}

/* Sends the question if its time has come. False: it has failed. */
static bool dostp_peer_question(struct dostp_node *node, u16 address, struct dostp_probe *probe,
				unsigned int frame_bytes)
{
	if (time_before(jiffies, probe->next))
		return true;
	if (probe->tries == DOSTP_PROBE_TRIES)
		return false;
	probe->tries++;
	probe->next = jiffies + DOSTP_PROBE_AGAIN;
	dostp_control_probe(node, address, probe, frame_bytes);
	return true;
}

static void dostp_peer_look_soon(struct dostp_node *node)
{
	node->look_at = jiffies + DOSTP_PEER_LOOK_ASKED;
	dostp_node_kick(node, DOSTP_PEER_LOOK_ASKED);
}

void dostp_peer_probe(struct dostp_node *node, struct dostp_peer *peer, dostp_link to)
{
	peer->probe = (struct dostp_probe){ .challenge = dostp_node_draw(), .to = to, .next = jiffies };
	dostp_peer_question(node, peer->address, &peer->probe, 0);
	dostp_peer_look_soon(node);
}

/* Sends the question about the size of frames if its time has come. */
static void dostp_peer_size_question(struct dostp_node *node, struct dostp_peer *peer)
{
	u16 frame_bytes = min(node->mtu, peer->mtu);

	if (dostp_peer_question(node, peer->address, &peer->size_probe, frame_bytes))
		return;
	WRITE_ONCE(peer->size, DOSTP_SIZE_ETHERNET);
	net_info_ratelimited("%s: frames of %u bytes do not reach 0x%04x, frames of %u are sent\n",
			     node->dev->name, frame_bytes, peer->address, DOSTP_MTU_ETHERNET);
}

/* After `delay` jiffies. */
static void dostp_peer_size_begin(struct dostp_node *node, struct dostp_peer *peer, unsigned long delay)
{
	WRITE_ONCE(peer->size, DOSTP_SIZE_ASKED);
	peer->size_probe = (struct dostp_probe){
		.challenge = dostp_node_draw(), .to = peer->link, .next = jiffies + delay,
	};
	dostp_peer_size_question(node, peer);
	dostp_peer_look_soon(node);
}

void dostp_peer_size_anew(struct dostp_node *node, struct dostp_peer *peer)
{
	if (min(node->mtu, peer->mtu) <= DOSTP_MTU_ETHERNET)
		WRITE_ONCE(peer->size, DOSTP_SIZE_ETHERNET);
	else if (!node->is_refused && dostp_control_may_size(node))
		dostp_peer_size_begin(node, peer, dostp_node_draw() % (DOSTP_REPLY_SPREAD + 1));
	else
		WRITE_ONCE(peer->size, DOSTP_SIZE_UNASKED);
}

void dostp_peer_size_ask(struct dostp_node *node, struct dostp_peer *peer)
{
	dostp_peer_size_begin(node, peer, 0);
}

struct dostp_peer *dostp_peer_ask(struct dostp_node *node, u16 address)
{
	struct dostp_peer *peer = dostp_peer_find(node, address);

	if (!peer) {
		if (node->asked >= DOSTP_ASKED_MAX)
			return NULL;
		peer = dostp_peer_add(node, address);
		if (!peer)
			return NULL;
		node->asked++;
		peer->link = DOSTP_LINK_EVERYBODY;
		rcu_assign_pointer(node->table[address], peer);
	} else if (peer->is_stranger) {
		if (node->asked >= DOSTP_ASKED_MAX)
			return NULL;
		node->asked++;
		node->strangers--;
		peer->is_stranger = false;
	}
	peer->has_failed = false;
	dostp_peer_probe(node, peer, DOSTP_LINK_EVERYBODY);
	return peer;
}

/* Adds a stranger at an address that the table does not have; NULL: there is no memory. */
static struct dostp_peer *dostp_peer_add_stranger(struct dostp_node *node, u16 address)
{
	struct dostp_peer *peer = dostp_peer_add(node, address);

	if (!peer)
		return NULL;
	peer->is_stranger = true;
	peer->link = DOSTP_LINK_EVERYBODY;
	node->strangers++;
	rcu_assign_pointer(node->table[address], peer);
	return peer;
}

/*
 * The challenge by which a node is asked at a link address to introduce itself, of a period of time. Nothing
 * need be held to know it again: so a recorded greeting, whose tag is right, takes no other node's place.
 */
static u64 dostp_peer_introduction(const struct dostp_node *node, u16 address, dostp_link link, u32 period)
{
	u64 generation = node->generations[address % DOSTP_GENERATIONS];

	return siphash_2u64((__force u64)link, generation << 48 | (u64)period << 16 | address,
			    &node->introductions) ?: 1;
}

static u32 dostp_peer_period(void)
{
	return (unsigned long)get_jiffies_64() / DOSTP_INTRODUCTION;
}

bool dostp_peer_is_introduced(const struct dostp_node *node, u16 address, dostp_link link, u64 echo)
{
	u32 period = dostp_peer_period();

	return echo == dostp_peer_introduction(node, address, link, period) ||
	       echo == dostp_peer_introduction(node, address, link, period - 1);
}

void dostp_peer_introduce(struct dostp_node *node, u16 address, dostp_link link, unsigned long delay,
			  bool is_proven)
{
	struct dostp_peer *peer = dostp_peer_find(node, address);
	struct dostp_probe probe = {
		.challenge = dostp_peer_introduction(node, address, link, dostp_peer_period()), .to = link,
		.tries = 1, .next = jiffies + delay + DOSTP_PROBE_AGAIN,
	};
	bool is_under_way = peer && peer->introduction.challenge;

	if (is_under_way && (peer->introduction.to == link || !is_proven))
		return;
	if (peer && !is_proven && time_before(jiffies, peer->rests_until))
		return;
	if (!peer && node->strangers >= (is_proven ? 2 : 1) * DOSTP_STRANGERS_MAX)
		return;
	/* While another one is under way this one is asked once, and not again. */
	if (!dostp_control_introduce(node, address, &probe, delay) || is_under_way)
		return;
	peer = peer ?: dostp_peer_add_stranger(node, address);
	if (!peer)
		return;
	peer->introduction = probe;
	peer->rests_until = jiffies + DOSTP_SUSPECT_REST;
	dostp_peer_look_soon(node);
}

/*
 * Removes a peer that has not answered. An introduction that is under way is kept, with a stranger in the
 * place of the peer: the node at the other link address may still answer.
 */
static void dostp_peer_give_up(struct dostp_node *node, struct dostp_peer *peer)
{
	struct dostp_probe introduction = peer->introduction;
	u16 address = peer->address;

	dostp_peer_remove(node, peer);
	if (!introduction.challenge)
		return;
	peer = dostp_peer_add_stranger(node, address);
	if (peer) {
		peer->introduction = introduction;
		peer->rests_until = jiffies + DOSTP_SUSPECT_REST;
	}
}

/* A question was not answered. */
static void dostp_peer_failed(struct dostp_node *node, struct dostp_peer *peer)
{
	if (peer->is_known) {
		if (peer->has_claimant && peer->probe.to != peer->claimant)
			dostp_peer_probe(node, peer, peer->claimant);
		else
			dostp_peer_give_up(node, peer);
		return;
	}
	while (peer->parked_messages) {
		dostp_drop(node->net, DOSTP_FAULT_UNRESOLVED);
		peer->parked_messages--;
	}
	__skb_queue_purge(&peer->parked);
	peer->parked_bytes = 0;
	peer->probe.challenge = 0;
	peer->has_failed = true;
	peer->fresh_until = jiffies + DOSTP_UNREACHABLE;
}

static void dostp_peer_look_at(struct dostp_node *node, struct dostp_peer *peer)
{
	bool is_over = time_after_eq(jiffies, peer->fresh_until);

	if (peer->is_known && !peer->is_stale && is_over) {
		peer->is_stale = true;
		if (peer->was_spoken_to && time_before(jiffies, peer->spoken + DOSTP_FRESH) &&
		    !peer->probe.challenge)
			dostp_peer_probe(node, peer, peer->link);
	}
	if (peer->size == DOSTP_SIZE_ASKED)
		dostp_peer_size_question(node, peer);
	if (peer->introduction.challenge && !dostp_peer_question(node, peer->address, &peer->introduction, 0))
		peer->introduction.challenge = 0;
	if (peer->probe.challenge) {
		if (!dostp_peer_question(node, peer->address, &peer->probe, 0))
			dostp_peer_failed(node, peer);
	} else if (peer->is_stranger) {
		if (!peer->introduction.challenge && time_after_eq(jiffies, peer->rests_until))
			dostp_peer_remove(node, peer);
	} else if (peer->is_known ? time_after_eq(jiffies, peer->heard + DOSTP_GONE) : is_over) {
		dostp_peer_remove(node, peer);
	}
}

unsigned long dostp_peer_look(struct dostp_node *node)
{
	struct dostp_peer *peer, *next;
	bool is_asked = false;

	list_for_each_entry_safe(peer, next, &node->peers, all)
		dostp_peer_look_at(node, peer);
	list_for_each_entry(peer, &node->peers, all)
		is_asked |= peer->probe.challenge || peer->introduction.challenge || !peer->is_known ||
			    peer->size == DOSTP_SIZE_ASKED;
	return is_asked ? DOSTP_PEER_LOOK_ASKED : DOSTP_PEER_LOOK;
}
