/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A wheel of deadlines with 4 levels of 64 slots: a node stands in the level that its distance asks for, and
 * comes down a level when the time of its slot has come: O(1). Bits tell which slots hold something, so that
 * time passes from one of them to the next and not tick by tick.
 *
 * Freestanding, and without a lock: the caller has one. Times are ticks that wrap.
 */
#ifndef STAUNCH_WHEEL_H
#define STAUNCH_WHEEL_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint64_t u64;
#endif

enum wheel_limit {
	WHEEL_LEVELS = 4,
	WHEEL_BITS = 6,
	WHEEL_SLOTS = 1 << WHEEL_BITS,
};

struct wheel_node {
	unsigned long due;
	struct wheel_node *next;
	struct wheel_node **at; /* what points here */
};

struct wheel {
	unsigned long now; /* all slots up to this tick were looked at */
	u64 pending[WHEEL_LEVELS];
	struct wheel_node *slots[WHEEL_LEVELS][WHEEL_SLOTS];
	struct wheel_node *expired;
};

static inline bool wheel_is_empty(const struct wheel *wheel)
{
	return !(wheel->pending[0] | wheel->pending[1] | wheel->pending[2] | wheel->pending[3]) &&
	       !wheel->expired;
}

static inline void wheel_link(struct wheel_node **at, struct wheel_node *node)
{
	node->next = *at;
	node->at = at;
	if (node->next)
		node->next->at = &node->next;
	*at = node;
}

static inline void wheel_remove(struct wheel *wheel, struct wheel_node *node)
{
	size_t slot = node->at - &wheel->slots[0][0];

	*node->at = node->next;
	if (node->next)
		node->next->at = node->at;
	else if (slot < WHEEL_LEVELS * WHEEL_SLOTS)
		wheel->pending[slot / WHEEL_SLOTS] &= ~(1ULL << slot % WHEEL_SLOTS);
}

/* Puts a node into its slot; the tick at which the slot has to be looked at. */
static inline unsigned long wheel_insert(struct wheel *wheel, struct wheel_node *node)
{
	const unsigned long span = 1UL << WHEEL_LEVELS * WHEEL_BITS;
	unsigned long distance = node->due - wheel->now, when = node->due;
	unsigned int level, slot;

	if ((long)distance <= 0)
		when = wheel->now + (distance = 1);
	else if (distance >= span)
		when = wheel->now + (distance = span - 1);
	level = (sizeof(long) * 8 - 1 - __builtin_clzl(distance)) / WHEEL_BITS;
	slot = when >> level * WHEEL_BITS & (WHEEL_SLOTS - 1);
	wheel_link(&wheel->slots[level][slot], node);
	wheel->pending[level] |= 1ULL << slot;
	return when >> level * WHEEL_BITS << level * WHEEL_BITS;
}

/* The next tick at which a slot of this level that holds something has to be looked at. */
static inline unsigned long wheel_next_of(const struct wheel *wheel, unsigned int level)
{
	unsigned long turn = (wheel->now >> level * WHEEL_BITS) + 1;
	unsigned int shift = turn & (WHEEL_SLOTS - 1);
	u64 ahead = wheel->pending[level] >> shift | wheel->pending[level] << (-shift & (WHEEL_SLOTS - 1));

	return (turn + __builtin_ctzll(ahead)) << level * WHEEL_BITS;
}

/* The next tick at which something may be due. False where nothing is held. */
static inline bool wheel_next(const struct wheel *wheel, unsigned long *next)
{
	bool is_held = wheel->expired;
	unsigned int level;

	*next = wheel->now;
	for (level = 0; level < WHEEL_LEVELS && !wheel->expired; level++) {
		unsigned long at;

		if (!wheel->pending[level])
			continue;
		at = wheel_next_of(wheel, level);
		if (!is_held || (long)(at - *next) < 0)
			*next = at;
		is_held = true;
	}
	return is_held;
}

/* Empties a slot whose time has come: what is due expires, all else comes down. */
static inline void wheel_empty(struct wheel *wheel, unsigned int level)
{
	unsigned int slot = wheel->now >> level * WHEEL_BITS & (WHEEL_SLOTS - 1);
	struct wheel_node *node = wheel->slots[level][slot], *next;

	wheel->slots[level][slot] = NULL;
	wheel->pending[level] &= ~(1ULL << slot);
	for (; node; node = next) {
		next = node->next;
		if ((long)(wheel->now - node->due) >= 0)
			wheel_link(&wheel->expired, node);
		else
			wheel_insert(wheel, node);
	}
}

/* Takes out a node whose time has come; NULL where there is none. */
static inline struct wheel_node *wheel_pop(struct wheel *wheel, unsigned long now)
{
	struct wheel_node *first;
	unsigned long next;
	unsigned int level;

	while (!wheel->expired) {
		if (!wheel_next(wheel, &next) || (long)(now - next) < 0) {
			wheel->now = now;
			return NULL;
		}
		wheel->now = next;
		for (level = WHEEL_LEVELS; level-- > 0;)
			if (!(next & ((1UL << level * WHEEL_BITS) - 1)))
				wheel_empty(wheel, level);
	}
	first = wheel->expired;
	wheel_remove(wheel, first);
	return first;
}

#endif
