/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A binary heap of deadlines: the earliest one stands at its root. Each node knows its place, so that it can
 * be taken out from wherever it stands: O(log n).
 *
 * Freestanding, and without a lock: the caller has one. Times are ticks that wrap.
 */
#ifndef STAUNCH_HEAP_H
#define STAUNCH_HEAP_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#endif

struct heap_node {
	unsigned long due;
	unsigned int place;
};

struct heap {
	struct heap_node **nodes; /* the caller's, with room for all there may be */
	unsigned int count;
};

static inline bool heap_is_before(const struct heap_node *one, const struct heap_node *other)
{
	return (long)(one->due - other->due) < 0;
}

static inline void heap_put(struct heap *heap, unsigned int place, struct heap_node *node)
{
	heap->nodes[place] = node;
	node->place = place;
}

/* Moves the hole at this place up to where the node may stand, and puts it there. */
static inline void heap_rise(struct heap *heap, unsigned int place, struct heap_node *node)
{
	while (place && heap_is_before(node, heap->nodes[(place - 1) / 2])) {
		heap_put(heap, place, heap->nodes[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	heap_put(heap, place, node);
}

/* Moves the hole down. */
static inline void heap_sink(struct heap *heap, unsigned int place, struct heap_node *node)
{
	unsigned int child;

	while ((child = 2 * place + 1) < heap->count) {
		if (child + 1 < heap->count && heap_is_before(heap->nodes[child + 1], heap->nodes[child]))
			child++;
		if (!heap_is_before(heap->nodes[child], node))
			break;
		heap_put(heap, place, heap->nodes[child]);
		place = child;
	}
	heap_put(heap, place, node);
}

static inline void heap_insert(struct heap *heap, struct heap_node *node)
{
	heap_rise(heap, heap->count++, node);
}

static inline void heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *last = heap->nodes[--heap->count];
	unsigned int place = node->place;

	if (last == node)
		return;
	if (place && heap_is_before(last, heap->nodes[(place - 1) / 2]))
		heap_rise(heap, place, last);
	else
		heap_sink(heap, place, last);
}

/* Takes out the earliest node whose time has come; NULL where there is none. */
static inline struct heap_node *heap_pop(struct heap *heap, unsigned long now)
{
	struct heap_node *first = heap->count ? heap->nodes[0] : NULL;

	if (!first || (long)(now - first->due) < 0)
		return NULL;
	heap_remove(heap, first);
	return first;
}

#endif
