/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Lists of addresses: those of this host, and prefixes of clients.
 *
 * It owns their maps, which the loader fills. It must never decide what becomes of who stands there.
 */
#ifndef STAUNCH_BPF_GATE_LIST_H
#define STAUNCH_BPF_GATE_LIST_H

#include "gate_frame.h"

/* 4096 prefixes of each kind are more than anybody writes on a command line, or has local routes for. */
#define PREFIXES_MAX 4096

struct prefix4 {
	__u32 bits;
	__u32 address;
};

struct address6 {
	__u32 word[4];
};

struct prefix6 {
	__u32 bits;
	struct address6 address;
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
/* What this host has of addresses: whole prefixes, such as 127.0.0.0/8, and single ones, which are most. */
LIST(own_prefixes4, prefix4);
LIST(own_prefixes6, prefix6);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, ADDRESSES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} own4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct address6);
	__type(value, __u64);
	__uint(max_entries, ADDRESSES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} own6 SEC(".maps");

/* Where the addresses of a packet stand behind the begin of its header, that of IPv6 and of IPv4. */
static __always_inline const __u32 *source_of(const struct frame *frame)
{
	return (const __u32 *)(frame->internet + (frame->is_ipv6 ? 8 : 12));
}

static __always_inline const __u32 *target_of(const struct frame *frame)
{
	return (const __u32 *)(frame->internet + (frame->is_ipv6 ? 24 : 16));
}

static __always_inline int is_listed(int is_ipv6, const __u32 *address, void *list4, void *list6)
{
	if (is_ipv6) {
		struct prefix6 key = { .bits = 128, .address = *(const struct address6 *)address };

		return bpf_map_lookup_elem(list6, &key) != 0;
	} else {
		struct prefix4 key = { .bits = 32, .address = *address };

		return bpf_map_lookup_elem(list4, &key) != 0;
	}
}

/* Whether a packet is to this host. What it forwards, as a router or a bridge, is no business of the gate. */
static __always_inline int is_own(const struct frame *frame)
{
	const __u32 *address = target_of(frame);

	if (frame->is_ipv6) {
		struct address6 key = *(const struct address6 *)address;

		if (bpf_map_lookup_elem(&own6, &key))
			return 1;
	} else {
		__u32 key = *address;

		if (bpf_map_lookup_elem(&own4, &key))
			return 1;
	}
	return is_listed(frame->is_ipv6, address, &own_prefixes4, &own_prefixes6);
}

#endif
