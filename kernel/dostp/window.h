/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which messages came before, so that none is delivered twice: docs/dostp.md, "Never twice".
 *
 * Freestanding: the caller says the time, in any unit, and keeps others out meanwhile.
 */
#ifndef DOSTP_WINDOW_H
#define DOSTP_WINDOW_H

#include "header.h"

#define DOSTP_WINDOW_SETS 256
#define DOSTP_WINDOW_WAYS 4

/* One sender's port and one port here. */
struct dostp_flow {
	u64 key;            /* addresses and ports; 0: no flow */
	u64 came;           /* bit n: the id n before the newest */
	unsigned long used; /* when a message of it was noted last */
	u16 newest;
};

/* All flows to a node: a table that never grows; the flow unused for longest gives way. */
struct dostp_window {
	struct dostp_flow flows[DOSTP_WINDOW_SETS][DOSTP_WINDOW_WAYS];
	u64 seed; /* secret, so that strangers cannot choose flows of one set */
	unsigned long age; /* how long a silent flow is remembered */
};

/* Whether a message with this header's id came before. Notes nothing. */
bool dostp_window_has(const struct dostp_window *window, const struct dostp_header *header,
		      unsigned long now);
/* Notes a message, and says whether it is new. */
bool dostp_window_note(struct dostp_window *window, const struct dostp_header *header,
		       unsigned long now);
/* Forgets all flows of a source. */
void dostp_window_forget(struct dostp_window *window, u16 source);

#endif
