/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The verdict on a SYN: let in, or shed, and why.
 *
 * It owns the maps of orders, credits, lists, clients and prefixes. It must never look at another frame,
 * hold a rate or decide how many are let in: that is ordered. In doubt it lets in.
 */
#ifndef STAUNCH_BPF_GATE_VERDICT_H
#define STAUNCH_BPF_GATE_VERDICT_H

#include "gate_list.h"

/* Written by the loader before the program is loaded. */
const volatile __u64 secret[2] = {};
const volatile __u32 has_allow = 0;
const volatile __u32 has_deny = 0;
/* Places in the tables, less one: powers of two. */
const volatile __u32 again_mask = 0;
const volatile __u32 known_mask = 0;

/* Prefixes counted in a window: a table of 512 KB stays in the second cache; two of 65 536 that meet in one
 * place share what one may have. */
#define SHARES_SHIFT 16

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64[COUNTERS]);
	/* One for each line, as the loader says; so have `orders` and `spent`. */
	__uint(max_entries, 1);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64[ORDERS]);
	__uint(max_entries, 1);
} orders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64[SPENT]);
	__uint(max_entries, 1);
} spent SEC(".maps");

/* Clients the kernel completed a handshake with, written by the tracker alone. Some share a place, found by a
 * hash; who was learned longest ago gives way. A kernel's own LRU would cost a call for every SYN of a
 * flood. */
struct place {
	__u64 key[KNOWN_WAYS];
	__u64 learned_ns[KNOWN_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct place);
	/* The loader says how many. */
	__uint(max_entries, 1);
} known SEC(".maps");

/* For each place of `known` 16 bits, of which each key there has set one; four places in a word. A SYN of a
 * flood is seen to be of no known client by these, which stay in the second cache. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	/* The loader says how many. */
	__uint(max_entries, 1);
} marks SEC(".maps");

/* SYNs that were shed, by the time they came and then by a hash. At any moment a flood writes to one part and
 * is looked for in four others, which stay in the second cache, however large the whole is. */
struct set {
	__u64 word[AGAIN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct set);
	/* The loader says how many. */
	__uint(max_entries, 1);
} again SEC(".maps");

/* SYNs of a prefix in a window: the window's number in the upper half. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1 << SHARES_SHIFT);
} shares SEC(".maps");

/* A SYN, as far as a verdict needs it. */
struct client {
	/* IPv6: the upper half of the address. IPv4: the address behind 16 ones, which no sender's /64 begins
	 * with. Without the lowest 16 bits it is the /48 or the /24. */
	__u64 key;
	/* The key, hashed. */
	__u64 key_hash;
	/* Address, ports and sequence number, hashed. */
	__u64 hash;
};

static __always_inline __u64 ipv4_key(__u32 address)
{
	return 0xffffULL << 48 | (__u64)__builtin_bswap32(address) << 8;
}

static __always_inline __u64 ipv6_key(__u32 first, __u32 second)
{
	return (__u64)__builtin_bswap32(first) << 32 | __builtin_bswap32(second);
}

/* Nobody outside learns the secrets or sees a hash, so two rounds of multiplication suffice. */
static __always_inline __u64 first_round(__u64 word)
{
	word = (word ^ secret[0]) * 0x9e3779b97f4a7c15ULL;
	return word ^ (word >> 32) ^ secret[1];
}

static __always_inline __u64 second_round(__u64 word)
{
	word *= 0xd6e8feb86659fd93ULL;
	return word ^ (word >> 32);
}

static __always_inline __u64 keyed(__u64 word)
{
	return second_round(first_round(word));
}

static __always_inline void read_client(const struct frame *frame, struct client *client)
{
	const __u32 *address = source_of(frame);
	__u64 low = 0, first;

	if (frame->is_ipv6) {
		client->key = ipv6_key(address[0], address[1]);
		low = *(const __u64 *)(address + 2) * 0xa0761d6478bd642fULL;
	} else {
		client->key = ipv4_key(address[0]);
	}
	first = first_round(client->key);
	client->key_hash = second_round(first);
	client->hash = second_round(first ^ low ^ *(const __u64 *)frame->segment);
}

/* Places in which the clients of a /48, or of a /24, meet, one behind another: whoever has a whole one, as
 * everybody may by a tunnel, pushes out nobody in the other places. */
#define NEIGHBOURS 256

/* The place of a client, by its key and the hash of it. */
static __always_inline __u32 place_of(__u64 key, __u64 hash)
{
	return (keyed(key >> 16) + (hash & (NEIGHBOURS - 1))) & known_mask;
}

/* The bit that stands for a key among the marks of its place. */
static __always_inline __u64 mark_of(__u64 hash, __u32 place)
{
	return 1ULL << (hash >> 60) << (16 * (place & 3));
}

static __always_inline int is_known(__u64 key, __u64 hash)
{
	__u64 *marks_there;
	__u32 index = place_of(key, hash), word = index >> 2;
	const struct place *place;

	marks_there = bpf_map_lookup_elem(&marks, &word);
	if (!marks_there || !(*marks_there & mark_of(hash, index)))
		return 0;
	place = bpf_map_lookup_elem(&known, &index);
	/* No client has the key 0: it stands for an empty place, and ::/64 holds no sender. */
	return place && key && (place->key[0] == key || place->key[1] == key ||
				place->key[2] == key || place->key[3] == key);
}

/* The kernel's coarse clock changes with every jiffy, and asking it costs a call: each processor keeps what
 * it said, and the tick that is. */
static __always_inline void look_at_clock(__u64 *counts)
{
	__u64 jiffy = bpf_jiffies64();

	if (counts[CLOCK_JIFFY] == jiffy)
		return;
	counts[CLOCK_JIFFY] = jiffy;
	counts[CLOCK_NS] = bpf_ktime_get_coarse_ns();
	counts[CLOCK_TICK] = counts[CLOCK_NS] / TICK_NS;
}

/* The lowest bit of each of the three lanes of a word, and the highest. */
#define LANES (1ULL | 1ULL << LANE_BITS | 1ULL << (2 * LANE_BITS))
#define LANE_TOPS (LANES << (LANE_BITS - 1))
#define LANE_MASK ((1ULL << LANE_BITS) - 1)

/* Not zero if a lane is: the lowest that is zero is told by its highest bit (Hacker's Delight, 6-1). */
static __always_inline __u64 zero_lanes(__u64 word)
{
	return (word - LANES) & ~word & LANE_TOPS;
}

/* What is remembered of a SYN that came in a tick, by which those of other turns differ. */
static __always_inline __u64 entry_of(__u64 hash, __u64 tick)
{
	return ((hash >> (64 - LANE_BITS)) + tick) & LANE_MASK;
}

static __always_inline struct set *set_of(__u64 hash, __u64 tick)
{
	__u32 mask = again_mask, part = tick & ((1 << TICK_BITS) - 1);
	__u32 index = part * (mask + 1) + (hash & mask);

	return bpf_map_lookup_elem(&again, &index);
}

/* Whether a SYN came a second ago. */
static __always_inline int came_before(__u64 hash, __u64 tick)
{
	__u64 found = 0;

#pragma unroll
	for (int ago = AGAIN_TICKS_MIN; ago <= AGAIN_TICKS_MAX; ago++) {
		__u64 entries = entry_of(hash, tick - ago) * LANES;
		const struct set *set = set_of(hash, tick - ago);

		if (set)
			found |= zero_lanes(set->word[0] ^ entries) | zero_lanes(set->word[1] ^ entries);
	}
	return found != 0;
}

/* Puts a SYN before the others of its set; the sixth is forgotten. */
static __always_inline void remember(__u64 hash, __u64 tick)
{
	struct set *set = set_of(hash, tick);
	__u64 first;

	if (!set)
		return;
	first = set->word[0];
	set->word[0] = first << LANE_BITS | entry_of(hash, tick);
	set->word[1] = set->word[1] << LANE_BITS | (first >> (2 * LANE_BITS) & LANE_MASK);
}

/* Whether the prefix has had its share of this window. Clients that are known are counted apart, or others
 * who forge addresses beside theirs would use up their share. */
static __always_inline int has_its_share(const __u64 *order, const struct client *client, int class,
					 const __u32 *line, __u64 *counts)
{
	__u64 window = order[ORDER_WINDOW] << 32, *share;
	__u64 prefix = client->key >> 16 << 1 | (class == CLASS_KNOWN);
	__u32 key;

	/* A prefix has 49 bits. */
	if (has_lines)
		prefix |= (__u64)*line << 49;
	key = keyed(prefix) >> (64 - SHARES_SHIFT);
	share = bpf_map_lookup_elem(&shares, &key);
	if (!share)
		return 0;
	if ((*share ^ window) >> 32) {
		*share = window | 1;
		if (has_lines) {
			counts = bpf_map_lookup_elem(&counters, line);
			if (!counts)
				return 0;
		}
		counts[COUNT_PREFIXES]++;
		return 0;
	}
	if (order[ORDER_PREFIX_LIMIT] && (*share & 0xffffffff) >= order[ORDER_PREFIX_LIMIT])
		return 1;
	++*share;
	return 0;
}

static __always_inline __u64 *credits_spent(const __u32 *line, int class)
{
	__u64 *used = bpf_map_lookup_elem(&spent, line);

	return used ? used + class * SPENT_STRIDE : 0;
}

/* Whether a credit of the class is left. Processors that look at once may take one each too many; the next
 * grant is that much smaller. */
static __always_inline int has_credit(const __u64 *order, const __u32 *line, int class)
{
	volatile __u64 *used = credits_spent(line, class);

	return !used || *used < order[ORDER_GRANTED + class];
}

static __always_inline void take_credit(const __u32 *line, int class)
{
	__u64 *used = credits_spent(line, class);

	if (used)
		__sync_fetch_and_add(used, 1);
}

/* While connections are shed: of which class it is, and whether it gets in. */
static __always_inline int ration(const __u64 *order, const struct client *client, int *class,
				  const __u32 *line, __u64 *counts)
{
	int outcome = OUTCOME_PASSED, is_asked = *class == CLASS_UNKNOWN && order[ORDER_VERIFY];
	__u64 tick = counts[CLOCK_TICK];

	if (is_asked && came_before(client->hash, tick))
		*class = CLASS_VERIFIED;
	if (!has_credit(order, line, *class))
		outcome = OUTCOME_SHED_CREDIT;
	else if (has_its_share(order, client, *class, line, counts))
		outcome = OUTCOME_SHED_FAIR;
	else
		take_credit(line, *class);
	if (is_asked && outcome != OUTCOME_PASSED)
		remember(client->hash, tick);
	return outcome;
}

/* Whether the daemon was not heard of for so long that its orders do not hold any more. */
static __always_inline int is_over(const __u64 *order, const __u64 *counts)
{
	return order[ORDER_HEARTBEAT_NS] + LEASE_NS < counts[CLOCK_NS];
}

/* Whether a frame is dropped that is wrapped so often that nobody knows whose it is: while there is a list of
 * those who never come in, or a line sheds. */
static __always_inline int is_unwanted(__u64 *counts)
{
	look_at_clock(counts);
	for (__u32 line = 0; line < (has_lines ? LINES_MAX : 1); line++) {
		/* A key is memory that Linux 6.12 thinks a call has changed, so it cannot be what bounds a loop. */
		__u32 key = line;
		const __u64 *order = bpf_map_lookup_elem(&orders, &key);

		if (!order || is_over(order, counts))
			return 0;
		if (has_deny || order[ORDER_SHEDDING])
			return 1;
	}
	return 0;
}

/* What becomes of a SYN in a line, and of which class it is. */
static __always_inline int verdict(const struct frame *frame, const __u32 *line, __u64 *counts, int *class)
{
	struct client client;
	__u64 *order;

	*class = CLASS_UNKNOWN;
	look_at_clock(counts);
	order = bpf_map_lookup_elem(&orders, line);
	if (!order || is_over(order, counts))
		return OUTCOME_LEASE_OVER;
	if (has_allow && is_listed(frame->is_ipv6, source_of(frame), &allow4, &allow6))
		return OUTCOME_ALLOWED;
	if (has_deny && is_listed(frame->is_ipv6, source_of(frame), &deny4, &deny6))
		return OUTCOME_SHED_DENY;
	read_client(frame, &client);
	if (is_known(client.key, client.key_hash))
		*class = CLASS_KNOWN;
	if (!order[ORDER_SHEDDING])
		return OUTCOME_PASSED;
	return ration(order, &client, class, line, counts);
}

static __always_inline int is_shed(int outcome)
{
	return outcome == OUTCOME_SHED_CREDIT || outcome == OUTCOME_SHED_FAIR || outcome == OUTCOME_SHED_DENY;
}

#endif
