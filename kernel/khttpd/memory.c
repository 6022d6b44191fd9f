// SPDX-License-Identifier: GPL-2.0
/*
 * The account of what peers make the module hold. Whatever a peer can make larger is taken from
 * here, and nothing is given once the sum has reached its bound.
 */
#include <linux/mm.h>

#include "khttpd.h"

static bool khttpd_memory_enter(struct khttpd_room *room, size_t size, void *(*make)(size_t size))
{
	if (atomic_long_add_return(size, &khttpd.memory) <= khttpd.memory_max)
		room->at = make(size);
	else
		room->at = NULL;
	if (!room->at) {
		atomic_long_sub(size, &khttpd.memory);
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
	struct khttpd_room larger;

	if (!khttpd_memory_take(&larger, size))
		return false;
	memcpy(larger.at, room->at, used);
	khttpd_memory_give(room);
	*room = larger;
	return true;
}

void khttpd_memory_give(struct khttpd_room *room)
{
	atomic_long_sub(room->size, &khttpd.memory);
	kvfree(room->at);
	room->at = NULL;
	room->size = 0;
}
