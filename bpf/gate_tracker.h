/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What becomes of connections to protected ports: told by the kernel when it happens, without asking anybody.
 *
 * It owns the map of connections with which the server has not begun, and is the only one that makes a client
 * known: when the kernel itself has completed the handshake. It must never change a connection.
 */
#ifndef STAUNCH_BPF_GATE_TRACKER_H
#define STAUNCH_BPF_GATE_TRACKER_H

#include "gate_verdict.h"
#include "namespace.h"

#define STATE_ESTABLISHED 1
#define STATE_SYN_RECV 3
#define STATE_CLOSE 7
#define STATE_CLOSE_WAIT 8
#define STATE_LISTEN 10
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* The network namespace of the daemon, by its number. */
const volatile __u64 namespace = 0;

/* The few members of the kernel's structures that are read; where they stand is found when it is loaded. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_num;
	__u16 skc_family;
	volatile __u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_sock {
	__u16 inet_sport;
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 data_segs_in;
	__u32 data_segs_out;
	__u32 srtt_us;
	__u64 bytes_received;
};

struct sk_buff {
	__u32 len;
	__u8 *data;
};

struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64[FLOWS]);
	/* One for each line, as the loader says; so has `bursts`. */
	__uint(max_entries, 1);
} flows SEC(".maps");

/* A connection with which the server has not begun. */
struct visit {
	/* When its handshake was completed. */
	__u64 since_ns;
	/* When its first bytes came; 0: none yet. */
	__u64 asked_ns;
};

/* By the address of the connection. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, struct visit);
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

/* The line of a port in the order of the host. */
static __always_inline __u32 line_of_port(__u16 port)
{
	return line_of(__builtin_bswap16(port));
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
	__u32 index = place_of(client, hash), word = index >> 2;
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
		marks_here |= place->key[i] ? mark_of(keyed(place->key[i]), index) : 0;
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
static __always_inline void count_burst(const __u64 *order, __u32 line, __u64 now)
{
	__u64 window = now >> ALARM_SHIFT;
	struct burst *own;

	own = bpf_map_lookup_elem(&bursts, &line);
	if (!own || !order[ORDER_ALARM])
		return;
	if (own->window != window) {
		own->window = window;
		own->count = 0;
	}
	if (++own->count == order[ORDER_ALARM])
		bpf_ringbuf_output(&alarms, &window, sizeof(window), 0);
}

static __always_inline __u64 *flow_words(__u32 line)
{
	return bpf_map_lookup_elem(&flows, &line);
}

/* Reception may come between a program that reads and the word it counts in: what gauges are made of is
 * counted in one piece. */
static __always_inline void count(__u64 *flow, int word)
{
	__sync_fetch_and_add(flow + word, 1);
}

/* The server has begun with a connection that waited so long. */
static __always_inline void begin(__u64 *flow, __u64 age)
{
	__u32 index = age_index(age);

	count(flow, FLOW_BEGUN);
	if (index < AGE_COUNT)
		flow[FLOW_AGES + index]++;
}

static __always_inline void begin_to_wait(__u64 *flow, const __u64 *order, __u32 line,
						  struct visit *visit, __u64 now)
{
	visit->asked_ns = now;
	count(flow, FLOW_ASKED);
	if (order)
		count_burst(order, line, now);
}

/* A handshake was completed. The segment that completed it may have brought the first bytes, as always where
 * the server has TCP_DEFER_ACCEPT: the kernel has counted it. By TCP Fast Open they may be read already. */
static __always_inline void enter(__u64 *flow, const struct sock *sk, __u32 line, __u64 key, __u64 now)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)sk);
	struct visit visit = { .since_ns = now };
	__u64 *order;

	flow[FLOW_ESTABLISHED]++;
	if (!tcp || (tcp->bytes_received && tcp->copied_seq == tcp->rcv_nxt))
		return;
	order = bpf_map_lookup_elem(&orders, &line);
	if (tcp->data_segs_in || (order && order[ORDER_SPEAKS_FIRST]))
		visit.asked_ns = now;
	if (bpf_map_update_elem(&waiting, &key, &visit, BPF_ANY))
		return;
	count(flow, FLOW_TRACKED);
	if (visit.asked_ns)
		begin_to_wait(flow, order, line, &visit, now);
}

/* A connection is over. A server that answered without reading has begun with it all the same. */
static __always_inline void leave(__u64 *flow, const struct sock *sk, __u64 key)
{
	struct visit *visit = bpf_map_lookup_elem(&waiting, &key);
	struct tcp_sock *tcp;
	__u64 asked_ns;

	if (!visit)
		return;
	asked_ns = visit->asked_ns;
	if (bpf_map_delete_elem(&waiting, &key))
		return;
	tcp = bpf_skc_to_tcp_sock((void *)sk);
	if (!asked_ns)
		count(flow, FLOW_LEFT_SILENT);
	else if (tcp && tcp->data_segs_out)
		begin(flow, bpf_ktime_get_ns() - asked_ns);
	else
		count(flow, FLOW_LEFT_WAITING);
}

SEC("tp_btf/inet_sock_set_state")
int gate_state(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	int before = context[1], after = context[2];
	__u64 now, *flow;
	__u32 line;
	__u16 port;

	if (after != STATE_CLOSE && !(before == STATE_SYN_RECV && after == STATE_ESTABLISHED))
		return 0;
	if (before == STATE_LISTEN)
		return 0;
	port = after == STATE_CLOSE ? port_of_closed(sk) : sk->__sk_common.skc_num;
	if (!is_ours(sk, port))
		return 0;
	line = line_of_port(port);
	flow = flow_words(line);
	if (!flow)
		return 0;
	if (after == STATE_CLOSE) {
		if (before != STATE_SYN_RECV)
			flow[FLOW_ENDED]++;
		leave(flow, sk, (__u64)sk);
		return 0;
	}
	now = bpf_ktime_get_ns();
	enter(flow, sk, line, (__u64)sk, now);
	learn(peer_of(sk), now);
	return 0;
}

static __always_inline int has_payload(const struct sk_buff *segment)
{
	__u8 offset = 0;

	bpf_probe_read_kernel(&offset, sizeof(offset), segment->data + 12);
	return segment->len > (offset >> 4) * 4u;
}

/* A segment has come on a connection that stands. Only before its first bytes there is anything to do: they
 * begin the wait. If the server has sent something before them, it speaks first, and has begun a round trip
 * before its client's answer. */
SEC("tp_btf/tcp_probe")
int gate_segment(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	const struct sk_buff *segment = (const struct sk_buff *)context[1];
	__u64 key = (__u64)sk, now, age, way, *flow, *order;
	struct visit *visit;
	struct tcp_sock *tcp;
	__u32 line;

	if (!is_ours(sk, sk->__sk_common.skc_num))
		return 0;
	tcp = bpf_skc_to_tcp_sock((void *)sk);
	if (!tcp || tcp->bytes_received)
		return 0;
	line = line_of_port(sk->__sk_common.skc_num);
	visit = bpf_map_lookup_elem(&waiting, &key);
	flow = flow_words(line);
	if (!visit || !flow)
		return 0;
	now = bpf_ktime_get_ns();
	order = bpf_map_lookup_elem(&orders, &line);
	if (tcp->data_segs_out) {
		age = now - visit->since_ns;
		way = (__u64)(tcp->srtt_us >> 3) * 1000;
		age = age > way ? age - way : 0;
		if (!visit->asked_ns)
			begin_to_wait(flow, order, line, visit, now);
		if (bpf_map_delete_elem(&waiting, &key))
			return 0;
		begin(flow, age);
		if (age < SPEAK_NS)
			flow[FLOW_SPOKEN]++;
	} else if (!visit->asked_ns && has_payload(segment)) {
		begin_to_wait(flow, order, line, visit, now);
	}
	return 0;
}

/* The kernel looks at the space for what is received whenever the program has read some. */
SEC("tp_btf/tcp_rcv_space_adjust")
int gate_read(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	__u64 key = (__u64)sk, asked_ns, *flow;
	struct visit *visit;

	if (!is_ours(sk, sk->__sk_common.skc_num))
		return 0;
	flow = flow_words(line_of_port(sk->__sk_common.skc_num));
	if (!flow)
		return 0;
	flow[FLOW_READS]++;
	visit = bpf_map_lookup_elem(&waiting, &key);
	if (!visit)
		return 0;
	if (!visit->asked_ns)
		begin_to_wait(flow, 0, 0, visit, visit->since_ns);
	asked_ns = visit->asked_ns;
	if (bpf_map_delete_elem(&waiting, &key))
		return 0;
	begin(flow, bpf_ktime_get_ns() - asked_ns);
	return 0;
}

/* Connections that stood before the tracker: told by the kernel one after another, while the loader reads.
 * Who has sent something of which nothing was read waits, from now on as far as is known. */
SEC("iter/tcp")
int gate_found(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct visit visit = {};
	struct tcp_sock *tcp;
	__u64 key, *flow;
	__u32 line;

	if (!common || !ports[__builtin_bswap16(common->skc_num)])
		return 0;
	line = line_of_port(common->skc_num);
	tcp = bpf_skc_to_tcp_sock(common);
	flow = flow_words(line);
	if (!tcp || !flow || common->skc_net.net->ns.inum != namespace)
		return 0;
	if (common->skc_state != STATE_ESTABLISHED && common->skc_state != STATE_CLOSE_WAIT)
		return 0;
	if (tcp->data_segs_out || tcp->rcv_nxt - tcp->copied_seq != tcp->bytes_received)
		return 0;
	key = (__u64)tcp;
	visit.since_ns = bpf_ktime_get_ns();
	/* The end of what a client sends counts as a byte. */
	if (tcp->bytes_received > (common->skc_state == STATE_CLOSE_WAIT))
		visit.asked_ns = visit.since_ns;
	if (bpf_map_update_elem(&waiting, &key, &visit, BPF_NOEXIST))
		return 0;
	count(flow, FLOW_TRACKED);
	if (visit.asked_ns)
		count(flow, FLOW_ASKED);
	return 0;
}

#endif
