/*
 * The heap and the wheel of kernel/include beside a plain array, in random order: what is due comes out, all
 * of it and nothing else, whatever was put in, taken out and put in again. Arguments: a seed and a number of
 * steps.
 */
#include <stdio.h>
#include <stdlib.h>

#include "heap.h"
#include "wheel.h"

enum { NODES = 300 };

static struct heap_node heaped[NODES], *places[NODES];
static struct wheel_node wheeled[NODES];
static struct heap heap = { .nodes = places };
static struct wheel wheel;
static unsigned long due[NODES], now;
static bool is_held[NODES];
static unsigned long long state;

static unsigned long chance(unsigned long below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static void fail(const char *what, long at)
{
	printf("%s: node %ld, now %lx\n", what, at, now);
	exit(1);
}

/* Near ticks are as frequent as far ones, and some lie behind or beyond all that the wheel spans. */
static unsigned long distance(void)
{
	unsigned long far = chance(1UL << chance(27));

	return chance(20) ? far : -far;
}

static void put(unsigned int at)
{
	is_held[at] = true;
	due[at] = heaped[at].due = wheeled[at].due = now + distance();
	heap_insert(&heap, &heaped[at]);
	wheel_insert(&wheel, &wheeled[at]);
}

static void take(unsigned int at)
{
	is_held[at] = false;
	heap_remove(&heap, &heaped[at]);
	wheel_remove(&wheel, &wheeled[at]);
}

/* The wheel looks at what was late when it came in a tick later. */
static void pass(unsigned long ticks)
{
	bool has_come[NODES] = { false };
	struct heap_node *first;
	struct wheel_node *any;
	unsigned long next;
	long at;

	now += ticks;
	while ((first = heap_pop(&heap, now)))
		has_come[first - heaped] = true;
	while ((any = wheel_pop(&wheel, now))) {
		at = any - wheeled;
		if (!has_come[at] || !is_held[at])
			fail("the wheel alone", at);
		is_held[at] = false;
	}
	for (at = 0; at < NODES; at++) {
		if (has_come[at] != ((long)(now - due[at]) >= 0 && (is_held[at] || has_come[at])))
			fail("the heap", at);
		if (has_come[at] && is_held[at])
			fail("the heap alone", at);
		if (is_held[at] && wheel_next(&wheel, &next) && (long)(due[at] - next) < 0)
			fail("later than it is due", at);
	}
	if (wheel_next(&wheel, &next) != (heap.count > 0) || wheel_is_empty(&wheel) != !heap.count)
		fail("what is left", heap.count);
}

int main(int count, char **words)
{
	unsigned long steps = count == 3 ? strtoul(words[2], NULL, 10) : 0;

	state = strtoul(words[1], NULL, 10);
	/* Ticks wrap on the way. */
	now = wheel.now = -chance(1UL << 24);
	while (steps--) {
		unsigned int at = chance(NODES);

		if (is_held[at])
			take(at);
		if (chance(3))
			put(at);
		if (!chance(4))
			pass(1 + chance(1UL << chance(20)));
	}
	printf("done\n");
	return 0;
}
