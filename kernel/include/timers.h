/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deadlines of connections, kept in one of three ways: a timer of the kernel each, or a heap or a wheel of
 * all with one timer of the kernel for the next of them. A module includes timers.c in one of its files.
 *
 * A deadline that is put off costs nothing here: the owner notes its new time, and is asked for it when the
 * former one has come.
 */
#ifndef STAUNCH_TIMERS_H
#define STAUNCH_TIMERS_H

#include <linux/jiffies.h>
#include <linux/timer.h>

#include "heap.h"
#include "wheel.h"

enum timers_kind {
	TIMERS_KERNEL,
	TIMERS_HEAP,
	TIMERS_WHEEL,
	TIMERS_KINDS,
};

/* A deadline. */
struct timers_entry {
	union {
		struct timer_list timer;
		struct heap_node heap;
		struct wheel_node wheel;
	};
	bool is_held;  /* in the heap or the wheel */
	bool has_ended;
};

/* The way that was chosen. */
extern enum timers_kind timers_chosen;
/* Names of the three ways, as a parameter has them. */
extern const char *const timers_names[TIMERS_KINDS];

/*
 * Told in a softirq that a deadline has come, and gives whether it is to come again, and when. It must not
 * call anything of this header.
 */
typedef bool timers_fire(struct timers_entry *entry, unsigned long *again);

/* So many deadlines there may be at a time. -ENOMEM: there is no memory for them. */
int timers_init(enum timers_kind kind, unsigned int most, timers_fire *fire);
/* Every deadline has ended. */
void timers_exit(void);
void timers_setup(struct timers_entry *entry);
/* timers_set for the heap and the wheel. */
void timers_set_held(struct timers_entry *entry, unsigned long due);

/* The deadline comes at this tick, or earlier if it was to come earlier. Not after its end. */
static inline void timers_set(struct timers_entry *entry, unsigned long due)
{
	if (timers_chosen != TIMERS_KERNEL)
		timers_set_held(entry, due);
	else if (!timer_pending(&entry->timer) || time_after(entry->timer.expires, due))
		mod_timer(&entry->timer, due);
}

/* The deadline does not come any more, and nobody is being told of it. Never in a softirq. */
void timers_end(struct timers_entry *entry);

#endif
