/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deadlines of connections, kept in one of three ways: a timer of the kernel each, or a heap or a wheel of
 * all with one timer of the kernel for the next of them. A module includes deadlines.c in one of its files.
 *
 * A deadline that is put off costs nothing here: the owner notes its new time, and is asked for it when the
 * former one has come.
 */
#ifndef STAUNCH_DEADLINES_H
#define STAUNCH_DEADLINES_H

#include <linux/jiffies.h>
#include <linux/timer.h>

#include "heap.h"
#include "wheel.h"

enum deadline_kind {
	DEADLINE_KERNEL,
	DEADLINE_HEAP,
	DEADLINE_WHEEL,
	DEADLINE_KINDS,
};

/* A deadline. */
struct deadline {
	union {
		struct timer_list timer;
		struct heap_node heap;
		struct wheel_node wheel;
	};
	bool is_held;  /* in the heap or the wheel */
	bool has_ended;
};

/* The way that was chosen. */
extern enum deadline_kind deadline_chosen;
/* Names of the three ways, as a parameter has them. */
extern const char *const deadline_names[DEADLINE_KINDS];

/*
 * Told in a softirq that a deadline has come, and gives whether it is to come again, and when. It must not
 * call anything of this header.
 */
typedef bool deadline_fire(struct deadline *entry, unsigned long *again);

/* So many deadlines there may be at a time. -ENOMEM: there is no memory for them. */
int deadline_init(enum deadline_kind kind, unsigned int most, deadline_fire *fire);
/* Every deadline has ended. */
void deadline_exit(void);
void deadline_setup(struct deadline *entry);
/* deadline_set for the heap and the wheel. */
void deadline_set_held(struct deadline *entry, unsigned long due);

/* The deadline comes at this tick, or earlier if it was to come earlier. Not after its end. */
static inline void deadline_set(struct deadline *entry, unsigned long due)
{
	if (deadline_chosen != DEADLINE_KERNEL)
		deadline_set_held(entry, due);
	else if (!timer_pending(&entry->timer) || time_after(entry->timer.expires, due))
		mod_timer(&entry->timer, due);
}

/* The deadline does not come any more, and nobody is being told of it. Never in a softirq. */
void deadline_end(struct deadline *entry);

#endif
