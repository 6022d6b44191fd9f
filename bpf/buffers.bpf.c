/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * How many buffers (sk_buff) the network stack is given by one interface: the proof that a SYN which is shed
 * takes none.
 *
 * It owns that count. It must never change anything.
 */
#include "kernel.h"
#include "namespace.h"

/* The interface, by the number of its network namespace and its own; written by the loader. */
const volatile __u64 namespace = 0;
const volatile __u64 ifindex = 0;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} buffers SEC(".maps");

SEC("tp_btf/netif_receive_skb")
int gate_buffers(__u64 *context)
{
	const struct sk_buff *buffer = (const struct sk_buff *)context[0];
	const struct net_device *device = buffer->dev;
	__u64 *count;
	__u32 zero = 0;

	if ((__u64)device->ifindex != ifindex || device->nd_net.net->ns.inum != namespace)
		return 0;
	count = bpf_map_lookup_elem(&buffers, &zero);
	if (count)
		++*count;
	return 0;
}

char program_license[] SEC("license") = "GPL";
