// SPDX-License-Identifier: GPL-2.0
/*
 * The account of what peers make the module hold. Whatever a peer can make larger is taken from
 * here, or from the account of the cache (cache.h), and nothing is given once the sum has reached its bound.
 */
#include <linux/mm.h>
#include <linux/percpu.h>

#include "khttpd.h"

/*
 * Rooms of the two usual sizes that were given back: a processor keeps one of each, outside of the account,
 * for whoever needs one next. The kernel fills new memory with zeros (init_on_alloc), 18 KiB for each request
 * that way. Not where KASAN looks for the use of what was given back.
 */
struct khttpd_memory_kept {
	void *input, *output;
};

static DEFINE_PER_CPU(struct khttpd_memory_kept, khttpd_memory_kept);

static void *khttpd_memory_take_kept(size_t size)
{
	if (size == KHTTPD_INPUT_BYTES)
		return this_cpu_xchg(khttpd_memory_kept.input, NULL);
	if (size == KHTTPD_OUTPUT_BYTES)
		return this_cpu_xchg(khttpd_memory_kept.output, NULL);
	return NULL;
}

/* Keeps a room in place of the one kept before, which is given. */
static void *khttpd_memory_keep(void *at, size_t size)
{
	if (IS_ENABLED(CONFIG_KASAN))
		return at;
	if (size == KHTTPD_INPUT_BYTES)
		return this_cpu_xchg(khttpd_memory_kept.input, at);
	if (size == KHTTPD_OUTPUT_BYTES)
		return this_cpu_xchg(khttpd_memory_kept.output, at);
	return at;
}

void khttpd_memory_exit(void)
{
	int processor;

	for_each_possible_cpu(processor) {
		struct khttpd_memory_kept *kept = per_cpu_ptr(&khttpd_memory_kept, processor);

		kvfree(kept->input);
		kvfree(kept->output);
	}
}

/* Counts the bytes of a room. Whether they fit; they are counted in any case. */
static bool khttpd_memory_count(const struct khttpd_room *room, size_t size)
{
	bool fits = atomic_long_add_return(size, &khttpd.memory) <= khttpd.memory_max;

	if (room->is_listing &&
	    atomic_long_add_return(size, &khttpd.listings) > khttpd.memory_max / KHTTPD_LISTINGS_PART)
		fits = false;
	return fits;
}

static void khttpd_memory_discount(const struct khttpd_room *room, size_t size)
{
	atomic_long_sub(size, &khttpd.memory);
	if (room->is_listing)
		atomic_long_sub(size, &khttpd.listings);
}

static bool khttpd_memory_enter(struct khttpd_room *room, size_t size, void *(*make)(size_t size))
{
	if (khttpd_memory_count(room, size))
		room->at = khttpd_memory_take_kept(size) ?: make(size);
	else
		room->at = NULL;
	if (!room->at) {
		khttpd_memory_discount(room, size);
		return false;
	}
	room->size = size;
	return true;
}

static void *khttpd_memory_make(size_t size)
{
	return kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
}

bool khttpd_memory_take(struct khttpd_room *room, size_t size)
{
	return khttpd_memory_enter(room, size, khttpd_memory_make);
}

static void *khttpd_memory_make_now(size_t size)
{
	return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
}

bool khttpd_memory_take_now(struct khttpd_room *room, size_t size)
{
	return khttpd_memory_enter(room, size, khttpd_memory_make_now);
}

bool khttpd_memory_grow(struct khttpd_room *room, size_t size, size_t used)
{
	struct khttpd_room larger = { .is_listing = room->is_listing };

	if (!khttpd_memory_take(&larger, size))
		return false;
	memcpy(larger.at, room->at, used);
	khttpd_memory_give(room);
	*room = larger;
	return true;
}

void khttpd_memory_give(struct khttpd_room *room)
{
	khttpd_memory_discount(room, room->size);
	kvfree(khttpd_memory_keep(room->at, room->size));
	room->at = NULL;
	room->size = 0;
}
