// SPDX-License-Identifier: GPL-2.0
/*
 * Counts what deadlines cost by the three ways of ../include/deadlines.h, in a machine whose clock counts
 * instructions. Loading it counts, says a line for each way and number of deadlines, and fails with
 * ECANCELED: nothing stays.
 *
 * set      a new deadline, as of a connection that is accepted
 * put off  it is to come later, as at each request of a connection that is kept
 * forward  it is to come earlier, as when a connection ends
 * end      it is over
 * lone     it comes, is put off meanwhile, and is alone in its tick
 * come     the same, of one among many in a tick
 *
 * What ticks cost is told by the gaps that they leave in a loop that reads the clock: the middle one of all
 * ticks in which nothing was due is taken from each.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sort.h>

#include "../include/deadlines.c"

enum ticking_limit {
	TICKING_MOST = 100000,
	/* Ticks that are watched, and how long a deadline lasts: both make a wheel use its second level. */
	TICKING_TICKS = 130,
	TICKING_PERIOD = 100,
	/* A gap is longer than this; a turn of the loop is not. */
	TICKING_GAP_NS = 600,
};

struct ticking_gap {
	u64 ns;
	unsigned int fires;
};

static struct deadline *entries;
static struct ticking_gap *gaps;
static u64 *chosen;
static unsigned int fires, state;

/* Each deadline comes again after the same time. */
static bool ticking_fire(struct deadline *entry, unsigned long *again)
{
	fires++;
	*again = jiffies + TICKING_PERIOD;
	return true;
}

static unsigned int ticking_chance(unsigned int below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

static int ticking_compare(const void *one, const void *other)
{
	return *(const u64 *)one < *(const u64 *)other ? -1 : *(const u64 *)one > *(const u64 *)other;
}

/* The middle gap of the ticks with at least and at most so many deadlines, for each of them; 0 of none. */
static u64 ticking_middle(unsigned int count, unsigned int least, unsigned int most, u64 without)
{
	unsigned int i, taken = 0;

	for (i = 0; i < count; i++)
		if (gaps[i].fires >= least && gaps[i].fires <= most)
			chosen[taken++] = (gaps[i].ns - min(gaps[i].ns, without)) / max(gaps[i].fires, 1u);
	sort(chosen, taken, sizeof(*chosen), ticking_compare, NULL);
	return taken ? chosen[taken / 2] : 0;
}

/* Watches ticks; how many gaps there were. */
static unsigned int ticking_watch(void)
{
	unsigned long end = jiffies + TICKING_TICKS;
	unsigned int count = 0, before = fires;
	u64 last = ktime_get_ns(), now;

	while (time_before(jiffies, end) && count < TICKING_TICKS) {
		now = ktime_get_ns();
		if (now - last > TICKING_GAP_NS) {
			gaps[count++] = (struct ticking_gap){ now - last, fires - before };
			before = fires;
			cond_resched();
			now = ktime_get_ns();
		}
		last = now;
	}
	return count;
}

/* Sets a deadline of each of them anew: so many ticks from now, and a few that chance adds. */
static u64 ticking_set(unsigned int count, unsigned long from, unsigned int spread)
{
	u64 begin = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < count; i++)
		deadline_set(&entries[i], from + ticking_chance(spread));
	return ktime_get_ns() - begin;
}

static void ticking_end(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		deadline_end(&entries[i]);
}

static void ticking_begin(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		deadline_setup(&entries[i]);
}

static int ticking_count(enum deadline_kind kind, unsigned int count)
{
	unsigned long far = 3600 * HZ;
	u64 set, off, forward, end, without;
	unsigned int gaps_count;
	int error = deadline_init(kind, count, ticking_fire);

	if (error)
		return error;
	ticking_begin(count);
	set = ticking_set(count, jiffies + 3 * far, far);
	off = ticking_set(count, jiffies + 5 * far, far);
	forward = ticking_set(count, jiffies + far, far);
	end = ktime_get_ns();
	ticking_end(count);
	end = ktime_get_ns() - end;
	ticking_begin(count);
	ticking_set(count, jiffies + 2, TICKING_PERIOD);
	gaps_count = ticking_watch();
	ticking_end(count);
	deadline_exit();
	without = ticking_middle(gaps_count, 0, 0, 0);
	pr_info("%s %u: set %llu put off %llu forward %llu end %llu lone %llu come %llu tick %llu\n",
		deadline_names[kind], count, div_u64(set, count), div_u64(off, count), div_u64(forward, count),
		div_u64(end, count), ticking_middle(gaps_count, 1, 1, without),
		ticking_middle(gaps_count, 2, UINT_MAX, without), without);
	return 0;
}

static int __init ticking_init(void)
{
	static const unsigned int counts[] = { 10, 1000, 10000, TICKING_MOST };
	int error = -ENOMEM, kind, i;

	entries = kvcalloc(TICKING_MOST, sizeof(*entries), GFP_KERNEL);
	gaps = kvcalloc(TICKING_TICKS, sizeof(*gaps), GFP_KERNEL);
	chosen = kvcalloc(TICKING_TICKS, sizeof(*chosen), GFP_KERNEL);
	if (entries && gaps && chosen)
		error = 0;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		for (kind = 0; kind < DEADLINE_KINDS; kind++)
			error = error ?: ticking_count(kind, counts[i]);
	kvfree(entries);
	kvfree(gaps);
	kvfree(chosen);
	return error ?: -ECANCELED;
}

module_init(ticking_init);

MODULE_DESCRIPTION("What deadlines cost, counted");
MODULE_LICENSE("GPL");
