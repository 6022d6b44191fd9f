// SPDX-License-Identifier: GPL-2.0
/*
 * What a sound frame tells of its sender. No unproven word moves a peer that lives: the known link
 * address is asked first. docs/dostp.md, sections "Another link address" to "Conflict of addresses".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "dostp.h"

static void dostp_heard_answer(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
			       const struct dostp_greeting *greeting)
{
	unsigned long delay = 0;

	if (!greeting->challenge || (header->kind != DOSTP_HELLO && header->kind != DOSTP_PROBE))
		return;
	if (header->destination == DOSTP_EVERYBODY)
		delay = (unsigned long)(dostp_node_draw() % (DOSTP_REPLY_SPREAD + 1));
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

	if (link == node->link)
		return DOSTP_FAULT_OWN;
	if (!greeting)
		return DOSTP_FAULT_CONFLICT;
	if (header->kind == DOSTP_CONFLICT) {
		dostp_heard_conflict(node, link, header, greeting);
		return DOSTP_FAULT_CONFLICT;
	}
	if (!holds)
		holds = node->boot < greeting->boot ||
			(node->boot == greeting->boot && memcmp(&node->link, &link, ETH_ALEN) < 0);
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

enum dostp_fault dostp_heard(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
			     const struct dostp_greeting *greeting, struct dostp_peer **found)
{
	struct dostp_peer *peer;

	if (header->source == node->low)
		return dostp_heard_own(node, link, header, greeting);
	if (greeting && !node->is_refused)
		dostp_heard_answer(node, link, header, greeting);
	peer = dostp_peer_find(node, header->source);
	if (!peer || !peer->is_known) {
		peer = dostp_peer_learn(node, header->source, link);
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
