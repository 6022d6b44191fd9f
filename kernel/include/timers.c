// SPDX-License-Identifier: GPL-2.0
/*
 * Three ways to keep deadlines: see timers.h. A file of the module includes this one.
 *
 * Heap and wheel have one lock, which is held while an owner is told: who has ended a deadline under it knows
 * that nobody is being told of it.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "timers.h"

enum timers_limit {
	/* Deadlines that are told of before other softirqs have their turn. */
	TIMERS_BUDGET = 1024,
};

const char *const timers_names[TIMERS_KINDS] = {
	[TIMERS_KERNEL] = "kernel",
	[TIMERS_HEAP] = "heap",
	[TIMERS_WHEEL] = "wheel",
};

enum timers_kind timers_chosen __read_mostly;

static struct {
	timers_fire *fire;
	spinlock_t lock;
	struct timer_list driver; /* for the next deadline of the heap or the wheel */
	struct heap heap;
	struct wheel *wheel;
} timers;

static void timers_tell_of_timer(struct timer_list *timer)
{
	unsigned long again;

	if (timers.fire(container_of(timer, struct timers_entry, timer), &again))
		mod_timer(timer, again);
}

static void timers_insert(struct timers_entry *entry, unsigned long due)
{
	unsigned long next = due;

	entry->is_held = true;
	if (timers_chosen == TIMERS_HEAP) {
		entry->heap.due = due;
		heap_insert(&timers.heap, &entry->heap);
	} else {
		if (wheel_is_empty(timers.wheel))
			timers.wheel->now = jiffies;
		entry->wheel.due = due;
		next = wheel_insert(timers.wheel, &entry->wheel);
	}
	if (!timer_pending(&timers.driver) || time_before(next, timers.driver.expires))
		mod_timer(&timers.driver, next);
}

static void timers_remove(struct timers_entry *entry)
{
	if (!entry->is_held)
		return;
	entry->is_held = false;
	if (timers_chosen == TIMERS_HEAP)
		heap_remove(&timers.heap, &entry->heap);
	else
		wheel_remove(timers.wheel, &entry->wheel);
}

static struct timers_entry *timers_pop(void)
{
	if (timers_chosen == TIMERS_HEAP) {
		struct heap_node *node = heap_pop(&timers.heap, jiffies);

		return node ? container_of(node, struct timers_entry, heap) : NULL;
	} else {
		struct wheel_node *node = wheel_pop(timers.wheel, jiffies);

		return node ? container_of(node, struct timers_entry, wheel) : NULL;
	}
}

/* When to look again. False where nothing is held. */
static bool timers_next(unsigned long *next)
{
	if (timers_chosen == TIMERS_WHEEL)
		return wheel_next(timers.wheel, next);
	if (timers.heap.count)
		*next = timers.heap.nodes[0]->due;
	return timers.heap.count;
}

static void timers_turn(struct timer_list *driver)
{
	struct timers_entry *entry;
	int budget = TIMERS_BUDGET;
	unsigned long again;

	spin_lock(&timers.lock);
	while (budget-- && (entry = timers_pop())) {
		WRITE_ONCE(entry->is_held, false);
		/* Before the deadline is read: see timers_set_held. */
		smp_mb();
		if (timers.fire(entry, &again))
			timers_insert(entry, again);
	}
	if (timers_next(&again) &&
	    (!timer_pending(driver) || time_before(again, driver->expires)))
		mod_timer(driver, again);
	spin_unlock(&timers.lock);
}

int timers_init(enum timers_kind kind, unsigned int most, timers_fire *fire)
{
	timers_chosen = kind;
	timers.fire = fire;
	spin_lock_init(&timers.lock);
	timer_setup(&timers.driver, timers_turn, 0);
	if (kind == TIMERS_HEAP) {
		timers.heap.nodes = kvmalloc_array(most, sizeof(*timers.heap.nodes), GFP_KERNEL);
		return timers.heap.nodes ? 0 : -ENOMEM;
	}
	if (kind == TIMERS_WHEEL) {
		timers.wheel = kzalloc(sizeof(*timers.wheel), GFP_KERNEL);
		return timers.wheel ? 0 : -ENOMEM;
	}
	return 0;
}

void timers_exit(void)
{
	timer_shutdown_sync(&timers.driver);
	kvfree(timers.heap.nodes);
	kfree(timers.wheel);
	timers.heap.nodes = NULL;
	timers.wheel = NULL;
}

void timers_setup(struct timers_entry *entry)
{
	entry->is_held = entry->has_ended = false;
	if (timers_chosen == TIMERS_KERNEL)
		timer_setup(&entry->timer, timers_tell_of_timer, 0);
}

/* Where the deadline is held it comes early enough mostly, which is seen without the lock. */
static bool timers_comes_by(const struct timers_entry *entry, unsigned long due)
{
	unsigned long held = timers_chosen == TIMERS_HEAP ? READ_ONCE(entry->heap.due)
							 : READ_ONCE(entry->wheel.due);

	return READ_ONCE(entry->is_held) && !time_after(held, due);
}

void timers_set_held(struct timers_entry *entry, unsigned long due)
{
	/*
	 * The caller has written its deadline; the turn marks an entry as held no more, and reads
	 * the deadline. Either that sees the new one, or this sees the mark.
	 */
	smp_mb();
	if (timers_comes_by(entry, due))
		return;
	spin_lock_bh(&timers.lock);
	if (!entry->has_ended && !timers_comes_by(entry, due)) {
		timers_remove(entry);
		timers_insert(entry, due);
	}
	spin_unlock_bh(&timers.lock);
}

void timers_end(struct timers_entry *entry)
{
	if (timers_chosen == TIMERS_KERNEL) {
		timer_shutdown_sync(&entry->timer);
		return;
	}
	spin_lock_bh(&timers.lock);
	timers_remove(entry);
	entry->has_ended = true;
	spin_unlock_bh(&timers.lock);
}
