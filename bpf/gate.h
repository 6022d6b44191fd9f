/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the gate's programs and their loader agree on: numbers of outcomes and counters, and the words of the
 * maps. crates/gate/src/layout.rs says the same in Rust; a test compares the two.
 *
 * It must never hold a map or a function.
 */
#ifndef STAUNCH_BPF_GATE_H
#define STAUNCH_BPF_GATE_H

#include "kernel.h"

/* What happens to a SYN that was shed. */
#define REJECT_DROP 0
#define REJECT_RESET 1
#define REJECT_COOKIE 2

/* Clients, in the order in which they are served. */
#define CLASS_KNOWN 0
#define CLASS_VERIFIED 1
#define CLASS_UNKNOWN 2
#define CLASS_COUNT 3

/* What became of a SYN. */
#define OUTCOME_PASSED 0
#define OUTCOME_SHED_CREDIT 1
#define OUTCOME_SHED_FAIR 2
#define OUTCOME_SHED_DENY 3
#define OUTCOME_ALLOWED 4
#define OUTCOME_LEASE_OVER 5
#define OUTCOME_COUNT 6

/* Lines of people, one for each protected port: the maps of orders, credits, counters and connections have an
 * entry for each, and a port tells its line. */
#define LINES_MAX 64

/* Counters, one set a processor and line; frames that are no SYN, and the clock, stand in the first alone.
 * First what a frame may be; a SYN that is judged comes last and is counted by
 * class and outcome instead. */
#define COUNT_OTHER 0
#define COUNT_SMALL 1
#define COUNT_LARGE 2
#define COUNT_FRAGMENT 3
#define COUNT_MALFORMED 4
#define FRAME_SYN 5
/* Wrapped so often that it is not read to its end; counted as malformed. */
#define FRAME_WRAPPED 6
/* Prefixes seen for the first time in a window. */
#define COUNT_PREFIXES 5
/* Let in only because it is a dry run. */
#define COUNT_DRY 6
/* Answered by a reset or a cookie. */
#define COUNT_ANSWERED 7
/* SYN to addresses that are not this host's. */
#define COUNT_ELSEWHERE 8
#define COUNT_OUTCOMES 9
/* Behind them the clock of the processor. */
#define CLOCK_JIFFY (COUNT_OUTCOMES + CLASS_COUNT * OUTCOME_COUNT)
#define CLOCK_NS (CLOCK_JIFFY + 1)
#define CLOCK_TICK (CLOCK_JIFFY + 2)
#define COUNTERS (CLOCK_JIFFY + 3)

/* Single addresses of this host, of each family. */
#define ADDRESSES_MAX 16384

/* Clients that share a place in `known`: their keys, then when each was learned. */
#define KNOWN_WAYS 4

/* Orders: one entry of an array for each line, written by the daemon alone. */
#define ORDER_HEARTBEAT_NS 0
#define ORDER_SHEDDING 1
#define ORDER_VERIFY 2
#define ORDER_WINDOW 3
#define ORDER_PREFIX_LIMIT 4
/* Connections that come in one window of ALARM_SHIFT by which the daemon is woken; 0: never. */
#define ORDER_ALARM 5
/* Whether the server speaks first: its clients wait from the handshake on, and say nothing before. */
#define ORDER_SPEAKS_FIRST 6
#define ORDER_GRANTED 7
#define ORDERS (ORDER_GRANTED + CLASS_COUNT)

/* Credits spent: each class on a cache line of its own, for every processor adds to it. */
#define SPENT_STRIDE 8
#define SPENT (CLASS_COUNT * SPENT_STRIDE)

/* What became of connections, one set a processor. A connection that is tracked is silent until its first
 * bytes come. Then it waits, and is counted as asked, until the server begins with it: begun. */
#define FLOW_ESTABLISHED 0
#define FLOW_TRACKED 1
#define FLOW_ASKED 2
#define FLOW_BEGUN 3
/* Begun by a server that spoke within SPEAK_NS, before anything had come. */
#define FLOW_SPOKEN 4
/* Ended before the server began: while it was silent, and while it waited. */
#define FLOW_LEFT_SILENT 5
#define FLOW_LEFT_WAITING 6
#define FLOW_ENDED 7
#define FLOW_READS 8
#define FLOW_AGES 9
/* Ages are counted by quarters of an octave, the first from 16 us, the last from a second. */
#define AGE_COUNT 64
#define AGE_SHIFT 14
#define FLOWS (FLOW_AGES + AGE_COUNT)

/* A server that says something later than this without being asked does not greet: it has waited enough. */
#define SPEAK_NS 1000000000ULL
/* Windows in which connections are counted for the alarm: 2^23 ns, 8.4 ms. */
#define ALARM_SHIFT 23
/* Orders hold for so long after the heartbeat; then everything is let in. */
#define LEASE_NS 900000000ULL
/* SYNs that were shed are remembered by 21 bits each, three in a word, in a part of the table for each tick
 * of 160 ms. After eight of them the first is used again. */
#define LANE_BITS 21
#define AGAIN_WORDS 2
#define TICK_NS 160000000ULL
#define TICK_BITS 3
/* Who sends a SYN again after a second waits for an answer (RFC 6298, section 2). Kernels round the second
 * up, Linux by 80 ms at most. Who comes 0.96 to 1.12 s after comes so many ticks after, always. */
#define AGAIN_TICKS_MIN 6
#define AGAIN_TICKS_MAX 7

#endif
