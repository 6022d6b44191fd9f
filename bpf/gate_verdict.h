/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The verdict on a SYN: let in, or shed, and why.
 *
 * It owns the maps of orders, credits, lists, clients and prefixes. It must never look at another frame,
 * hold a rate or decide how many are let in: that is ordered. In doubt it lets in.
 */
#ifndef STAUNCH_BPF_GATE_VERDICT_H
#define STAUNCH_BPF_GATE_VERDICT_H

#include "gate_frame.h"

/* Written by the loader before the program is loaded. */
const volatile __u64 secret[2] = {};
const volatile __u32 has_allow = 0;
const volatile __u32 has_deny = 0;
/* Places in the tables, less one: powers of two. */
const volatile __u32 again_mask = 0;
const volatile __u32 known_mask = 0;

/* 4096 prefixes of each kind are more than anybody writes on a command line. */
#define PREFIXES_MAX 4096
/* Prefixes counted in a window: a table of 512 KB stays in the second cache; two of 65 536 that meet in one
 * place share what one may have. */
#define SHARES_SHIFT 16

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64[COUNTERS]);
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

/* The clock of a processor: the kernel's coarse one changes with every tick, and asking it costs a call. */
struct clock {
	__u64 tick;
	__u64 now_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct clock);
	__uint(max_entries, 1);
} clock SEC(".maps");

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

struct prefix4 {
	__u32 bits;
	__u32 address;
};

struct prefix6 {
	__u32 bits;
	__u32 address[4];
};

#define LIST(name, prefix)                           \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE); \
		__type(key, struct prefix);          \
		__type(value, __u64);                \
		__uint(max_entries, PREFIXES_MAX);   \
		__uint(map_flags, BPF_F_NO_PREALLOC);\
	} name SEC(".maps")

LIST(allow4, prefix4);
LIST(allow6, prefix6);
LIST(deny4, prefix4);
LIST(deny6, prefix6);

/* A SYN, as far as a verdict needs it. */
struct client {
	/* IPv6: the upper half of the address. IPv4: the address below ones, which no sender's /64 has. */
	__u64 key;
	/* /48 or /24. */
	__u64 prefix;
	/* Address, ports and sequence number, hashed. */
	__u64 hash;
	__u32 address[4];
};

static __always_inline __u64 ipv4_key(__u32 address)
{
	return 0xffffffff00000000ULL | __builtin_bswap32(address);
}

static __always_inline __u64 ipv6_key(__u32 first, __u32 second)
{
	return (__u64)__builtin_bswap32(first) << 32 | __builtin_bswap32(second);
}

/* Nobody outside learns the secrets or sees a hash, so two rounds of multiplication suffice. */
static __always_inline __u64 keyed(__u64 word, __u64 other)
{
	word = (word ^ secret[0]) * 0x9e3779b97f4a7c15ULL;
	word = (word ^ (word >> 32) ^ other ^ secret[1]) * 0xd6e8feb86659fd93ULL;
	return word ^ (word >> 32);
}

static __always_inline void read_client(const struct frame *frame, struct client *client)
{
	const __u32 *address = (const __u32 *)(frame->internet + (frame->is_ipv6 ? 8 : 12));
	__u64 word, number;

	client->address[0] = address[0];
	if (frame->is_ipv6) {
		client->address[1] = address[1];
		client->address[2] = address[2];
		client->address[3] = address[3];
		client->key = ipv6_key(address[0], address[1]);
		client->prefix = client->key >> 16;
		word = client->key ^ ((__u64)address[2] << 32 | address[3]) * 0xa0761d6478bd642fULL;
	} else {
		client->key = ipv4_key(address[0]);
		client->prefix = client->key >> 8;
		word = client->key;
	}
	number = *(const __u32 *)frame->segment;
	client->hash = keyed(word, number << 32 | *(const __u32 *)(frame->segment + 4));
}

static __always_inline int is_listed(const struct frame *frame, const struct client *client, void *list4,
				     void *list6)
{
	if (frame->is_ipv6) {
		struct prefix6 key = { .bits = 128 };

		key.address[0] = client->address[0];
		key.address[1] = client->address[1];
		key.address[2] = client->address[2];
		key.address[3] = client->address[3];
		return bpf_map_lookup_elem(list6, &key) != 0;
	} else {
		struct prefix4 key = { .bits = 32, .address = client->address[0] };

		return bpf_map_lookup_elem(list4, &key) != 0;
	}
}

/* The bit that stands for a key among the marks of its place. */
static __always_inline __u64 mark_of(__u64 hash)
{
	return 1ULL << (hash >> 60) << (16 * (hash & 3));
}

static __always_inline int is_known(__u64 key)
{
	__u64 hash = keyed(key, 0), *marks_there;
	__u32 index = hash & known_mask, word = index >> 2;
	const struct place *place;

	marks_there = bpf_map_lookup_elem(&marks, &word);
	if (!marks_there || !(*marks_there & mark_of(hash)))
		return 0;
	place = bpf_map_lookup_elem(&known, &index);
	/* No client has the key 0: it stands for an empty place, and ::/64 holds no sender. */
	return place && key && (place->key[0] == key || place->key[1] == key ||
				place->key[2] == key || place->key[3] == key);
}

static __always_inline __u64 coarse_now(void)
{
	__u64 tick = bpf_jiffies64();
	struct clock *own;
	__u32 key = 0;

	own = bpf_map_lookup_elem(&clock, &key);
	if (!own)
		return bpf_ktime_get_coarse_ns();
	if (own->tick != tick) {
		own->now_ns = bpf_ktime_get_coarse_ns();
		own->tick = tick;
	}
	return own->now_ns;
}

/* The lowest bit of each of the three lanes of a word, and the highest. */
#define LANES (1ULL | 1ULL << LANE_BITS | 1ULL << (2 * LANE_BITS))
#define LANE_TOPS (LANES << (LANE_BITS - 1))
#define LANE_MASK ((1ULL << LANE_BITS) - 1)

/* Whether a lane is zero (Hacker's Delight, 6-1, for lanes of 21 bits). */
static __always_inline int has_zero_lane(__u64 word)
{
	return (~(((word & ~LANE_TOPS) + (LANE_TOPS - LANES)) | word) & LANE_TOPS) != 0;
}

/* What is remembered of a SYN that came in a tick. The turn's number keeps those of former turns apart. */
static __always_inline __u64 entry_of(__u64 hash, __u64 tick)
{
	return ((hash >> (64 - LANE_BITS)) + (tick >> TICK_BITS)) & LANE_MASK;
}

static __always_inline struct set *set_of(__u64 hash, __u64 tick)
{
	__u32 part = tick & ((1 << TICK_BITS) - 1);
	__u32 index = part * (again_mask + 1) + (hash & again_mask);

	return bpf_map_lookup_elem(&again, &index);
}

/* Whether a SYN came a second ago. */
static __always_inline int came_before(__u64 hash, __u64 tick)
{
	int found = 0;

#pragma unroll
	for (int ago = AGAIN_TICKS_MIN; ago <= AGAIN_TICKS_MAX; ago++) {
		__u64 entries = entry_of(hash, tick - ago) * LANES;
		const struct set *set = set_of(hash, tick - ago);

		if (!set)
			return 0;
		found |= has_zero_lane(set->word[0] ^ entries) | has_zero_lane(set->word[1] ^ entries);
	}
	return found;
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
					 __u64 *counts)
{
	__u64 window = order[ORDER_WINDOW] << 32, *share;
	__u32 key = keyed(client->prefix, class == CLASS_KNOWN) >> (64 - SHARES_SHIFT);

	share = bpf_map_lookup_elem(&shares, &key);
	if (!share)
		return 0;
	if ((*share ^ window) >> 32) {
		*share = window | 1;
		counts[COUNT_PREFIXES]++;
		return 0;
	}
	if (order[ORDER_PREFIX_LIMIT] && (*share & 0xffffffff) >= order[ORDER_PREFIX_LIMIT])
		return 1;
	++*share;
	return 0;
}

static __always_inline __u64 *credits_spent(int class)
{
	__u64 *used;
	__u32 key = 0;

	used = bpf_map_lookup_elem(&spent, &key);
	return used ? used + class * SPENT_STRIDE : 0;
}

/* Whether a credit of the class is left. Processors that look at once may take one each too many; the next
 * grant is that much smaller. */
static __always_inline int has_credit(const __u64 *order, int class)
{
	volatile __u64 *used = credits_spent(class);

	return !used || *used < order[ORDER_GRANTED + class];
}

static __always_inline void take_credit(int class)
{
	__u64 *used = credits_spent(class);

	if (used)
		__sync_fetch_and_add(used, 1);
}

/* While connections are shed: of which class it is, and whether it gets in. */
static __always_inline int ration(const __u64 *order, const struct client *client, int *class,
				  __u64 tick, __u64 *counts)
{
	int outcome = OUTCOME_PASSED, is_asked = *class == CLASS_UNKNOWN && order[ORDER_VERIFY];

	if (is_asked && came_before(client->hash, tick))
		*class = CLASS_VERIFIED;
	if (!has_credit(order, *class))
		outcome = OUTCOME_SHED_CREDIT;
	else if (has_its_share(order, client, *class, counts))
		outcome = OUTCOME_SHED_FAIR;
	else
		take_credit(*class);
	if (is_asked && outcome != OUTCOME_PASSED)
		remember(client->hash, tick);
	return outcome;
}

/* What becomes of a SYN, and of which class it is. */
static __always_inline int verdict(const struct frame *frame, __u64 *counts, int *class)
{
	__u64 now = coarse_now(), *order;
	struct client client;
	__u32 key = 0;

	*class = CLASS_UNKNOWN;
	order = bpf_map_lookup_elem(&orders, &key);
	if (!order || order[ORDER_HEARTBEAT_NS] + LEASE_NS < now)
		return OUTCOME_LEASE_OVER;
	read_client(frame, &client);
	if (has_allow && is_listed(frame, &client, &allow4, &allow6))
		return OUTCOME_ALLOWED;
	if (has_deny && is_listed(frame, &client, &deny4, &deny6))
		return OUTCOME_SHED_DENY;
	if (is_known(client.key))
		*class = CLASS_KNOWN;
	if (!order[ORDER_SHEDDING])
		return OUTCOME_PASSED;
	return ration(order, &client, class, now >> TICK_SHIFT, counts);
}

static __always_inline int is_shed(int outcome)
{
	return outcome == OUTCOME_SHED_CREDIT || outcome == OUTCOME_SHED_FAIR || outcome == OUTCOME_SHED_DENY;
}

#endif
