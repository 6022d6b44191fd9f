/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What becomes of connections to protected ports: told by the kernel when it happens, without asking anybody.
 *
 * It owns the map of connections that wait to be read from, and is the only one that makes a client known:
 * when the kernel itself has completed the handshake. It must never change a connection.
 */
#ifndef STAUNCH_BPF_GATE_TRACKER_H
#define STAUNCH_BPF_GATE_TRACKER_H

#include "gate_verdict.h"

#define STATE_ESTABLISHED 1
#define STATE_SYN_RECV 3
#define STATE_CLOSE 7
#define STATE_LISTEN 10
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* The network namespace of the daemon, by its number. */
const volatile __u64 namespace = 0;

/* The few members of the kernel's structures that are read; where they stand is found when it is loaded. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	__u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_num;
	__u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_sock {
	__u16 inet_sport;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64[FLOWS]);
	__uint(max_entries, 1);
} flows SEC(".maps");

/* By the address of the connection: when its handshake was completed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, __u64);
	/* The loader says how many. */
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} waiting SEC(".maps");

/* Connections of a window, one a processor. */
struct burst {
	__u64 window;
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct burst);
	__uint(max_entries, 1);
} bursts SEC(".maps");

/* The daemon waits for it. A page: what is written matters to nobody. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} alarms SEC(".maps");

/* The port in the order of the host. */
static __always_inline int is_ours(const struct sock *sk, __u16 port)
{
	return ports[__builtin_bswap16(port)] && sk->__sk_common.skc_net.net->ns.inum == namespace;
}

/* A connection that is closed has given its port back; what it sent from stands on. */
static __always_inline __u16 port_of_closed(const struct sock *sk)
{
	const struct inet_sock *inet = (const struct inet_sock *)sk;
	__u16 port = 0;

	bpf_probe_read_kernel(&port, sizeof(port), &inet->inet_sport);
	return __builtin_bswap16(port);
}

static __always_inline __u64 peer_of(const struct sock *sk)
{
	const struct in6_addr *address = &sk->__sk_common.skc_v6_daddr;

	if (sk->__sk_common.skc_family == FAMILY_IPV4)
		return ipv4_key(sk->__sk_common.skc_daddr);
	if (!address->in6_u.u6_addr32[0] && !address->in6_u.u6_addr32[1] &&
	    address->in6_u.u6_addr32[2] == __builtin_bswap32(0xffff))
		return ipv4_key(address->in6_u.u6_addr32[3]);
	return ipv6_key(address->in6_u.u6_addr32[0], address->in6_u.u6_addr32[1]);
}

/* Two processors that learn at once may overwrite each other: then one client is learned next time. */
static __always_inline void learn(__u64 client, __u64 now)
{
	__u64 hash = keyed(client), *marks_there, marks_here = 0;
	__u32 index = hash & known_mask, word = index >> 2;
	struct place *place;
	int oldest = 0;

	place = bpf_map_lookup_elem(&known, &index);
	marks_there = bpf_map_lookup_elem(&marks, &word);
	if (!place || !marks_there)
		return;
#pragma unroll
	for (int i = 0; i < KNOWN_WAYS; i++) {
		if (place->key[i] == client) {
			place->learned_ns[i] = now;
			return;
		}
	}
#pragma unroll
	for (int i = 1; i < KNOWN_WAYS; i++) {
		if (place->learned_ns[i] < place->learned_ns[oldest & (KNOWN_WAYS - 1)])
			oldest = i;
	}
	oldest &= KNOWN_WAYS - 1;
	place->key[oldest] = client;
	place->learned_ns[oldest] = now;
#pragma unroll
	for (int i = 0; i < KNOWN_WAYS; i++)
		marks_here |= place->key[i] ? mark_of(keyed(place->key[i])) : 0;
	*marks_there = (*marks_there & ~(0xffffULL << (16 * (index & 3)))) | marks_here;
}

/* In which counter an age belongs: the number of its highest bit, then the two bits below. */
static __always_inline __u32 age_index(__u64 age)
{
	__u32 octave = 0, index;
	__u64 rest = age >> AGE_SHIFT;

	if (!rest)
		return 0;
#pragma unroll
	for (int shift = 32; shift; shift >>= 1) {
		if (rest >> shift) {
			rest >>= shift;
			octave += shift;
		}
	}
	index = octave * 4 + ((age >> (octave + AGE_SHIFT - 2)) & 3);
	return index < AGE_COUNT ? index : AGE_COUNT - 1;
}

/* Wakes the daemon once in a window, if as many came in it as it asked for. */
static __always_inline void count_burst(__u64 now)
{
	__u64 window = now >> ALARM_SHIFT, *order;
	struct burst *own;
	__u32 key = 0;

	order = bpf_map_lookup_elem(&orders, &key);
	own = bpf_map_lookup_elem(&bursts, &key);
	if (!order || !own || !order[ORDER_ALARM])
		return;
	if (own->window != window) {
		own->window = window;
		own->count = 0;
	}
	if (++own->count == order[ORDER_ALARM])
		bpf_ringbuf_output(&alarms, &window, sizeof(window), 0);
}

SEC("tp_btf/inet_sock_set_state")
int gate_state(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	int before = context[1], after = context[2];
	__u64 key = (__u64)sk, now, *flow;
	__u32 zero = 0;

	if (after != STATE_CLOSE && !(before == STATE_SYN_RECV && after == STATE_ESTABLISHED))
		return 0;
	if (before == STATE_LISTEN)
		return 0;
	if (!is_ours(sk, after == STATE_CLOSE ? port_of_closed(sk) : sk->__sk_common.skc_num))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &zero);
	if (!flow)
		return 0;
	if (after == STATE_CLOSE) {
		if (before != STATE_SYN_RECV)
			flow[FLOW_ENDED]++;
		if (!bpf_map_delete_elem(&waiting, &key))
			flow[FLOW_ABANDONED]++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	flow[FLOW_ESTABLISHED]++;
	if (!bpf_map_update_elem(&waiting, &key, &now, BPF_ANY))
		flow[FLOW_TRACKED]++;
	learn(peer_of(sk), now);
	count_burst(now);
	return 0;
}

/* The kernel looks at the space for what is received whenever the program has read some. */
SEC("tp_btf/tcp_rcv_space_adjust")
int gate_read(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	__u64 key = (__u64)sk, *since, *flow, age;
	__u32 zero = 0, index;

	if (!is_ours(sk, sk->__sk_common.skc_num))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &zero);
	if (!flow)
		return 0;
	flow[FLOW_READS]++;
	since = bpf_map_lookup_elem(&waiting, &key);
	if (!since)
		return 0;
	age = bpf_ktime_get_ns() - *since;
	if (bpf_map_delete_elem(&waiting, &key))
		return 0;
	flow[FLOW_BEGUN]++;
	index = age_index(age);
	if (index < AGE_COUNT)
		flow[FLOW_AGES + index]++;
	return 0;
}

#endif
