// SPDX-License-Identifier: GPL-2.0
/*
 * What a sound frame tells of its sender. No unproven word moves a peer that lives: the known link
 * address is asked first. docs/dostp.md, sections "Another link address" to "Conflict of addresses".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "dostp.h"

/* Whether a greeting bears a challenge that is to be answered. */
static bool dostp_heard_asks(const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	return greeting->challenge && (header->kind == DOSTP_HELLO || header->kind == DOSTP_PROBE);
}

/* Jiffies until a greeting is answered: all nodes answer one to all, so their answers are spread. */
static unsigned long dostp_heard_delay(const struct dostp_header *header)
{
	return header->destination == DOSTP_EVERYBODY ? dostp_node_draw() % (DOSTP_REPLY_SPREAD + 1) : 0;
}

static void dostp_heard_answer(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
			       const struct dostp_greeting *greeting, unsigned long delay)
{
	if (!dostp_control_reply(node, link, header->source, greeting->challenge, delay))
		dostp_drop(node->net, DOSTP_FAULT_UNANSWERED);
}

/* A node that begins and is told that its address is held gives up. */
static void dostp_heard_conflict(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
				 const struct dostp_greeting *greeting)
{
	if (node->is_refused || !dostp_node_in_trial(node) || greeting->echo != node->hello_challenge ||
	    header->destination != node->low)
		return;
	node->is_refused = true;
	node->refused_by = link;
	__skb_queue_purge(&node->replies);
	__skb_queue_purge(&node->outgoing);
	pr_err("%s: address 0x%04x is held by %pM, not taken by %pM; write net.dostp.interface to try again\n",
	       node->dev->name, node->low, &link, &node->link);
}

/* A frame with this node's own address as its source. */
static enum dostp_fault dostp_heard_own(struct dostp_node *node, dostp_link link,
					const struct dostp_header *header,
					const struct dostp_greeting *greeting)
{
	bool holds = !dostp_node_in_trial(node);

	/* No other node has drawn these 64 bits. */
	if (link == node->link || (greeting && greeting->boot == node->boot))
		return DOSTP_FAULT_OWN;
	if (!greeting)
		return DOSTP_FAULT_CONFLICT;
	if (header->kind == DOSTP_CONFLICT) {
		dostp_heard_conflict(node, link, header, greeting);
		return DOSTP_FAULT_CONFLICT;
	}
	holds |= node->boot < greeting->boot;
	if (holds && header->kind != DOSTP_BYE && greeting->challenge && !node->is_refused)
		dostp_control_conflict(node, link, greeting->challenge);
	return DOSTP_FAULT_CONFLICT;
}

/* Another link address says that it is this peer's. */
static void dostp_heard_claim(struct dostp_node *node, struct dostp_peer *peer, dostp_link link)
{
	if (peer->has_claimant)
		return;
	peer->has_claimant = true;
	peer->claimant = link;
	if (!peer->probe.challenge)
		dostp_peer_probe(node, peer, peer->link);
}

/* A greeting that is believed. */
static void dostp_heard_greeting(struct dostp_node *node, struct dostp_peer *peer, dostp_link link,
				 const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	bool has_restarted = peer->boot && peer->boot != greeting->boot;
	bool is_other = has_restarted || peer->link != link ||
			min(peer->mtu, node->mtu) != min(greeting->mtu, node->mtu);

	if (peer->link != link)
		WRITE_ONCE(peer->link, link);
	if (has_restarted) {
		dostp_reassemble_forget(node, peer);
		dostp_window_forget(node->window, peer->address);
	}
	peer->boot = greeting->boot;
	WRITE_ONCE(peer->mtu, greeting->mtu);
	if (is_other)
		dostp_peer_size_anew(node, peer);
	else if (peer->size == DOSTP_SIZE_ASKED && greeting->echo == peer->size_probe.challenge)
		WRITE_ONCE(peer->size, DOSTP_SIZE_LARGE);
	dostp_peer_refresh(peer);
	if (header->kind == DOSTP_BYE) {
		peer->fresh_until = jiffies;
		node->look_at = jiffies;
		dostp_node_kick(node, 0);
	}
}

/* Whether the frame answers a question that was sent to this link address. */
static bool dostp_heard_is_answer(const struct dostp_peer *peer, dostp_link link,
				  const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	return header->kind == DOSTP_HELLO_REPLY && greeting && peer->probe.challenge &&
	       greeting->echo == peer->probe.challenge && peer->probe.to == link;
}

/*
 * Whether a greeting answers a challenge that this node has sent to its link address. Without such an echo
 * a greeting may be a recorded one, though its tag is right.
 */
static bool dostp_heard_is_echo(const struct dostp_node *node, const struct dostp_peer *peer, dostp_link link,
				const struct dostp_header *header, const struct dostp_greeting *greeting)
{
	u64 echo = greeting->echo;

	if (header->kind != DOSTP_HELLO_REPLY || !echo)
		return false;
	if (peer && echo == peer->probe.challenge &&
	    (peer->probe.to == link || peer->probe.to == DOSTP_LINK_EVERYBODY))
		return true;
	if (dostp_peer_is_introduced(node, header->source, link, echo))
		return true;
	/* An answer to the HELLO of the start moves no known peer: a PROBE to its new link address does. */
	return echo == node->hello_challenge && time_before(jiffies, node->hello_until) &&
	       (!peer || !peer->is_known || peer->link == link);
}

/*
 * With keys: a greeting of a believed peer that is no echo. It may be a recorded one, so it ends no question
 * about the peer; where it tells another MTU the peer is asked.
 */
static void dostp_heard_repeated(struct dostp_node *node, struct dostp_peer *peer,
				 const struct dostp_header *header, const struct dostp_greeting *greeting,
				 unsigned long delay)
{
	peer->heard = jiffies;
	peer->fresh_until = jiffies + DOSTP_FRESH;
	peer->is_stale = false;
	if (header->kind == DOSTP_BYE) {
		peer->fresh_until = jiffies;
		node->look_at = jiffies;
		dostp_node_kick(node, 0);
	}
	if (min(peer->mtu, node->mtu) != min(greeting->mtu, node->mtu) && !node->is_refused)
		dostp_peer_introduce(node, peer->address, peer->link, delay, true);
}

/*
 * With keys: a greeting whose tag is right by the key of the boot number in it. The peer is learnt, moved or
 * restarted by it only if it is an echo; else its sender is probed first.
 */
static enum dostp_fault dostp_heard_claimed(struct dostp_node *node, dostp_link link,
					    const struct dostp_header *header,
					    const struct dostp_greeting *greeting, unsigned long delay)
{
	struct dostp_peer *peer = dostp_peer_find(node, header->source);
	bool is_known = peer && peer->is_known;

	if (dostp_heard_is_echo(node, peer, link, header, greeting)) {
		if (!is_known)
			peer = dostp_peer_learn(node, header->source, link, greeting->mtu);
		if (!peer)
			return DOSTP_FAULT_UNKNOWN;
		peer->introduction.challenge = 0;
		/* A second time the same echo proves nothing. */
		node->generations[header->source % DOSTP_GENERATIONS]++;
	} else if (!is_known || peer->link != link || peer->boot != greeting->boot) {
		if (!node->is_refused)
			dostp_peer_introduce(node, header->source, link, delay, true);
		return is_known ? DOSTP_FAULT_IMPOSTOR : DOSTP_FAULT_UNKNOWN;
	} else {
		dostp_heard_repeated(node, peer, header, greeting, delay);
		return DOSTP_SOUND;
	}
	dostp_heard_greeting(node, peer, link, header, greeting);
	return DOSTP_SOUND;
}

/* With keys: a frame whose tag is right; if it is a message's, its counter is new and its sender is known. */
static enum dostp_fault dostp_heard_proven(struct dostp_node *node, dostp_link link,
					   const struct dostp_header *header,
					   const struct dostp_greeting *greeting, struct dostp_peer **found)
{
	enum dostp_fault fault;

	if (greeting) {
		unsigned long delay = dostp_heard_delay(header);

		/* The PROBE goes before the answer: what the asker sends upon that finds it believed. */
		fault = dostp_heard_claimed(node, link, header, greeting, delay);
		if (dostp_heard_asks(header, greeting) && !node->is_refused)
			dostp_heard_answer(node, link, header, greeting, delay);
		return fault;
	}
	*found = dostp_peer_find(node, header->source);
	/*
	 * The sender's bytes, but another host may have passed them on: only a greeting tells where the sender
	 * is.
	 */
	if ((*found)->link == link)
		dostp_peer_refresh(*found);
	else if (!node->is_refused)
		dostp_peer_introduce(node, header->source, link, 0, true);
	return DOSTP_SOUND;
}

void dostp_heard_stranger(struct dostp_node *node, dostp_link link, const struct dostp_header *header)
{
	if (!node->is_refused)
		dostp_peer_introduce(node, header->source, link, 0, false);
}

enum dostp_fault dostp_heard(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
			     const struct dostp_greeting *greeting, struct dostp_peer **found)
{
	struct dostp_peer *peer;

	if (header->source == node->low)
		return dostp_heard_own(node, link, header, greeting);
	if (unlikely(node->keys))
		return dostp_heard_proven(node, link, header, greeting, found);
	if (greeting && dostp_heard_asks(header, greeting) && !node->is_refused)
		dostp_heard_answer(node, link, header, greeting, dostp_heard_delay(header));
	peer = dostp_peer_find(node, header->source);
	if (!peer || !peer->is_known) {
		peer = dostp_peer_learn(node, header->source, link,
					greeting ? greeting->mtu : DOSTP_MTU_ETHERNET);
		if (!peer)
			return DOSTP_FAULT_UNKNOWN;
	} else if (peer->link != link && !dostp_heard_is_answer(peer, link, header, greeting)) {
		dostp_heard_claim(node, peer, link);
		return DOSTP_FAULT_IMPOSTOR;
	}
	if (greeting)
		dostp_heard_greeting(node, peer, link, header, greeting);
	else
		dostp_peer_refresh(peer);
	*found = peer;
	return DOSTP_SOUND;
}
