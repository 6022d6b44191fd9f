// SPDX-License-Identifier: GPL-2.0
/*
 * Three ways to keep deadlines: see deadlines.h. A file of the module includes this one.
 *
 * Heap and wheel have one lock, which is held while an owner is told: who has ended a deadline under it knows
 * that nobody is being told of it.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "deadlines.h"

enum deadline_limit {
	/* Deadlines that are told of before other softirqs have their turn. */
	DEADLINE_BUDGET = 1024,
};

const char *const deadline_names[DEADLINE_KINDS] = {
	[DEADLINE_KERNEL] = "kernel",
	[DEADLINE_HEAP] = "heap",
	[DEADLINE_WHEEL] = "wheel",
};

enum deadline_kind deadline_chosen __read_mostly;

static struct {
	deadline_fire *fire;
	spinlock_t lock;
	struct timer_list driver; /* for the next deadline of the heap or the wheel */
	struct heap heap;
	struct wheel *wheel;
} timers;

static void deadline_tell_of_timer(struct timer_list *timer)
{
	unsigned long again;

	if (timers.fire(container_of(timer, struct deadline, timer), &again))
		mod_timer(timer, again);
}

static void deadline_insert(struct deadline *entry, unsigned long due)
{
	unsigned long next = due;

	entry->is_held = true;
	if (deadline_chosen == DEADLINE_HEAP) {
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

static void deadline_remove(struct deadline *entry)
{
	if (!entry->is_held)
		return;
	entry->is_held = false;
	if (deadline_chosen == DEADLINE_HEAP)
		heap_remove(&timers.heap, &entry->heap);
	else
		wheel_remove(timers.wheel, &entry->wheel);
}

static struct deadline *deadline_pop(void)
{
	if (deadline_chosen == DEADLINE_HEAP) {
		struct heap_node *node = heap_pop(&timers.heap, jiffies);

		return node ? container_of(node, struct deadline, heap) : NULL;
	} else {
		struct wheel_node *node = wheel_pop(timers.wheel, jiffies);

		return node ? container_of(node, struct deadline, wheel) : NULL;
	}
}

/* When to look again. False where nothing is held. */
static bool deadline_next(unsigned long *next)
{
	if (deadline_chosen == DEADLINE_WHEEL)
		return wheel_next(timers.wheel, next);
	if (timers.heap.count)
		*next = timers.heap.nodes[0]->due;
	return timers.heap.count;
}

static void deadline_turn(struct timer_list *driver)
{
	struct deadline *entry;
	int budget = DEADLINE_BUDGET;
	unsigned long again;

	spin_lock(&timers.lock);
	while (budget-- && (entry = deadline_pop())) {
		WRITE_ONCE(entry->is_held, false);
		/* Before the deadline is read: see deadline_set_held. */
		smp_mb();
		if (timers.fire(entry, &again))
			deadline_insert(entry, again);
	}
	if (deadline_next(&again) &&
	    (!timer_pending(driver) || time_before(again, driver->expires)))
		mod_timer(driver, again);
	spin_unlock(&timers.lock);
}

int deadline_init(enum deadline_kind kind, unsigned int most, deadline_fire *fire)
{
	deadline_chosen = kind;
	timers.fire = fire;
	spin_lock_init(&timers.lock);
	timer_setup(&timers.driver, deadline_turn, 0);
	if (kind == DEADLINE_HEAP) {
		timers.heap.nodes = kvmalloc_array(most, sizeof(*timers.heap.nodes), GFP_KERNEL);
		return timers.heap.nodes ? 0 : -ENOMEM;
	}
	if (kind == DEADLINE_WHEEL) {
		timers.wheel = kzalloc(sizeof(*timers.wheel), GFP_KERNEL);
		return timers.wheel ? 0 : -ENOMEM;
	}
	return 0;
}

void deadline_exit(void)
{
	timer_shutdown_sync(&timers.driver);
	kvfree(timers.heap.nodes);
	kfree(timers.wheel);
	timers.heap.nodes = NULL;
	timers.wheel = NULL;
}

void deadline_setup(struct deadline *entry)
{
	entry->is_held = entry->has_ended = false;
	if (deadline_chosen == DEADLINE_KERNEL)
		timer_setup(&entry->timer, deadline_tell_of_timer, 0);
}

/* Where the deadline is held it comes early enough mostly, which is seen without the lock. */
static bool deadline_comes_by(const struct deadline *entry, unsigned long due)
{
	unsigned long held = deadline_chosen == DEADLINE_HEAP ? READ_ONCE(entry->heap.due)
							 : READ_ONCE(entry->wheel.due);

	return READ_ONCE(entry->is_held) && !time_after(held, due);
}

void deadline_set_held(struct deadline *entry, unsigned long due)
{
	/*
	 * The caller has written its deadline; the turn marks an entry as held no more, and reads
	 * the deadline. Either that sees the new one, or this sees the mark.
	 */
	smp_mb();
	if (deadline_comes_by(entry, due))
		return;
	spin_lock_bh(&timers.lock);
	if (!entry->has_ended && !deadline_comes_by(entry, due)) {
		deadline_remove(entry);
		deadline_insert(entry, due);
	}
	spin_unlock_bh(&timers.lock);
}

void deadline_end(struct deadline *entry)
{
	if (deadline_chosen == DEADLINE_KERNEL) {
		timer_shutdown_sync(&entry->timer);
		return;
	}
	spin_lock_bh(&timers.lock);
	deadline_remove(entry);
	entry->has_ended = true;
	spin_unlock_bh(&timers.lock);
}
