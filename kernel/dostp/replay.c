// SPDX-License-Identifier: GPL-2.0
/*
 * Windows against replay, one for each sender, source port and slot: docs/dostp.md, "Replay". A window must
 * never be forgotten without raising its sender's floor, except together with the sender's boot number.
 */
#include <linux/jhash.h>
#include <linux/slab.h>

#include "keys.h"

#define DOSTP_REPLAY_BITS (DOSTP_REPLAY_WORDS * 64)

static struct hlist_head *dostp_replay_chain(struct dostp_replays *replays, const struct dostp_sender *sender,
					     u16 port, u8 slot)
{
	u32 mixed = jhash_2words((u32)sender->address << 16 | port, slot, replays->seed);

	return &replays->chains[mixed % ARRAY_SIZE(replays->chains)];
}

static void dostp_replay_free(struct dostp_replays *replays, struct dostp_replay *window)
{
	hlist_del(&window->of_chain);
	list_del(&window->of_sender);
	list_del(&window->of_node);
	window->sender->windows_count--;
	replays->count--;
	kfree(window);
}

/* Frees a window that was not used for DOSTP_REPLAY_IDLE, and raises the floor. False: it is in use. */
static bool dostp_replay_retire(struct dostp_replays *replays, struct dostp_replay *window)
{
	u64 *floor = &window->sender->floors[window->slot];

	if (time_before(jiffies, window->used + DOSTP_REPLAY_IDLE))
		return false;
	*floor = max(*floor, window->newest + 1);
	dostp_replay_free(replays, window);
	return true;
}

/* Whether the sender may have one more window; at a bound, one that is out of use is freed for it. */
static bool dostp_replay_has_room(struct dostp_replays *replays, struct dostp_sender *sender)
{
	struct dostp_replay *oldest = NULL;

	if (sender->windows_count >= DOSTP_REPLAY_SENDER_MAX)
		oldest = list_first_entry(&sender->windows, struct dostp_replay, of_sender);
	else if (replays->count >= DOSTP_REPLAY_MAX)
		oldest = list_first_entry(&replays->all, struct dostp_replay, of_node);
	return !oldest || dostp_replay_retire(replays, oldest);
}

/* Marks a counter within the window as one that came. */
static void dostp_replay_mark(struct dostp_replay *window, u64 counter)
{
	window->came[counter % DOSTP_REPLAY_BITS / 64] |= 1ULL << counter % 64;
}

/* The first counter of a port in a slot: begins a window with it. */
static enum dostp_fault dostp_replay_begin(struct dostp_replays *replays, struct dostp_sender *sender,
					   u16 port, u8 slot, u64 counter, struct hlist_head *chain)
{
	struct dostp_replay *window;

	if (!dostp_replay_has_room(replays, sender) || counter < sender->floors[slot])
		return DOSTP_FAULT_REPLAY;
	window = kzalloc(sizeof(*window), GFP_ATOMIC | __GFP_NOWARN);
	if (!window)
		return DOSTP_FAULT_ROOM;
	window->sender = sender;
	window->port = port;
	window->slot = slot;
	window->used = jiffies;
	window->newest = counter;
	dostp_replay_mark(window, counter);
	hlist_add_head(&window->of_chain, chain);
	list_add_tail(&window->of_sender, &sender->windows);
	list_add_tail(&window->of_node, &replays->all);
	sender->windows_count++;
	replays->count++;
	return DOSTP_SOUND;
}

/* Whether the counter did not come before. Moves the window on if it is the newest. */
static bool dostp_replay_advance(struct dostp_replay *window, u64 counter)
{
	if (counter <= window->newest)
		return window->newest - counter < DOSTP_REPLAY_BITS &&
		       !(window->came[counter % DOSTP_REPLAY_BITS / 64] >> counter % 64 & 1);
	if (counter - window->newest >= DOSTP_REPLAY_BITS)
		memset(window->came, 0, sizeof(window->came));
	else
		for (u64 skipped = window->newest + 1; skipped < counter; skipped++)
			window->came[skipped % DOSTP_REPLAY_BITS / 64] &= ~(1ULL << skipped % 64);
	window->newest = counter;
	return true;
}

enum dostp_fault dostp_replay_note(struct dostp_replays *replays, struct dostp_sender *sender, u16 port,
				   u8 slot, u64 counter)
{
	struct hlist_head *chain = dostp_replay_chain(replays, sender, port, slot);
	struct dostp_replay *window;

	hlist_for_each_entry(window, chain, of_chain) {
		if (window->sender != sender || window->port != port || window->slot != slot)
			continue;
		if (!dostp_replay_advance(window, counter))
			return DOSTP_FAULT_REPLAY;
		dostp_replay_mark(window, counter);
		window->used = jiffies;
		list_move_tail(&window->of_sender, &sender->windows);
		list_move_tail(&window->of_node, &replays->all);
		return DOSTP_SOUND;
	}
	return dostp_replay_begin(replays, sender, port, slot, counter, chain);
}

void dostp_replay_forget(struct dostp_replays *replays, struct dostp_sender *sender)
{
	struct dostp_replay *window, *next;

	list_for_each_entry_safe(window, next, &sender->windows, of_sender)
		dostp_replay_free(replays, window);
	memset(sender->floors, 0, sizeof(sender->floors));
}
