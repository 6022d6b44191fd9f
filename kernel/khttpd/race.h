/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places between two steps where another processor, or another thread, may come in between. A build for
 * tests (KHTTPD_WIDENED, see kernel/README.md) stays there for long, so that what may happen there does
 * happen. Every other build has nothing there.
 */
#ifndef KHTTPD_RACE_H
#define KHTTPD_RACE_H

#ifdef KHTTPD_WIDENED
#include <linux/delay.h>

enum khttpd_race_limit {
	/* Longer than a folder is emptied and removed in. */
	KHTTPD_RACE_MS = 3,
	/* Longer than a scheduler's turn. */
	KHTTPD_RACE_SLEEP_MS = 60,
};

/* Where nothing may sleep. */
static inline void khttpd_race(void)
{
	mdelay(KHTTPD_RACE_MS);
}

static inline void khttpd_race_asleep(void)
{
	msleep(KHTTPD_RACE_SLEEP_MS);
}
#else
static inline void khttpd_race(void)
{
}

static inline void khttpd_race_asleep(void)
{
}
#endif

#endif
