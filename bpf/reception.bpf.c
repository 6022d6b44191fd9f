/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Where the buffers come from that one interface receives into, and how small its packets are: which pool of
 * the kernel has served each, and what the pools had to ask for themselves.
 *
 * It owns these counts. It must never change anything.
 */
#include "kernel.h"
#include "namespace.h"

/* The interface, by the number of its network namespace and its own; written by the loader. */
const volatile __u64 namespace = 0;
const volatile __u64 ifindex = 0;

#define ETHERNET_BYTES 14
#define SMALL_BYTES 128
/* Bits of a buffer's flags, as they stand since Linux 5.19. */
#define FLAG_FCLONE 0x0c
#define FLAG_HEAD_FRAG 0x20
#define FLAG_PP_RECYCLE 0x80
/* The softirq that receives. */
#define NET_RX 3

/* The counts, in the order of `RECEPTION_COUNTS` in crates/gate/src/program/reception.rs. */
enum count {
	RECEIVED_SMALL,
	RECEIVED_LARGE,
	SENT_SMALL,
	SENT_LARGE,
	/* Where the bytes of a received buffer lie. */
	DATA_PAGE_POOL,
	DATA_FRAGMENT,
	DATA_SMALL_HEAD,
	DATA_OTHER,
	/* Where its sk_buff comes from. */
	BUFFER_NAPI,
	BUFFER_SLAB,
	BUFFER_SENDER,
	/* Pages from the page allocator: those that page_pools took, and all while packets were received. */
	PAGES_POOL,
	PAGES_RECEIVING,
	COUNTS
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	__u32 len;
	__u8 __cloned_offset[0];
	__u32 end;
	unsigned char *head;
};

struct skb_shared_info {
	unsigned short gso_segs;
};

struct kmem_cache {
	const char *name;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, COUNTS);
} counts SEC(".maps");

/* Whether this processor runs the softirq that receives. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} receiving SEC(".maps");

/* The sk_buffs and small heads that slab gave, until they are received or freed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, __u8);
	__uint(max_entries, 65536);
} from_slab SEC(".maps");

static __always_inline void add(__u32 what, __u64 number)
{
	__u64 *count = bpf_map_lookup_elem(&counts, &what);

	if (count)
		*count += number;
}

static __always_inline int is_ours(const struct net_device *device)
{
	return (__u64)device->ifindex == ifindex && device->nd_net.net->ns.inum == namespace;
}

/* A buffer may be many packets of one connection, none of which is small. */
static __always_inline __u64 packets(const struct sk_buff *buffer)
{
	struct skb_shared_info *shared = (void *)(buffer->head + buffer->end);
	unsigned short segments = 0;

	bpf_probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	return segments > 1 ? segments : 1;
}

static __always_inline int is_from_slab(const void *what)
{
	__u64 key = (__u64)what;

	return !bpf_map_delete_elem(&from_slab, &key);
}

static __always_inline int received(const struct sk_buff *buffer)
{
	int is_buffer_slab, is_head_slab;
	__u8 flags = 0;

	if (!is_ours(buffer->dev))
		return 0;
	bpf_probe_read_kernel(&flags, sizeof(flags), buffer->__cloned_offset);
	is_buffer_slab = is_from_slab(buffer);
	is_head_slab = is_from_slab(buffer->head);
	add(buffer->len + ETHERNET_BYTES > SMALL_BYTES ? RECEIVED_LARGE : RECEIVED_SMALL, packets(buffer));
	add(flags & FLAG_PP_RECYCLE  ? DATA_PAGE_POOL
	    : flags & FLAG_HEAD_FRAG ? DATA_FRAGMENT
	    : is_head_slab	     ? DATA_SMALL_HEAD
				     : DATA_OTHER,
	    1);
	add(flags & FLAG_FCLONE ? BUFFER_SENDER : is_buffer_slab ? BUFFER_SLAB : BUFFER_NAPI, 1);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int received_by_napi(__u64 *context)
{
	return received((const struct sk_buff *)context[0]);
}

SEC("tp_btf/netif_rx_entry")
int received_by_queue(__u64 *context)
{
	return received((const struct sk_buff *)context[0]);
}

SEC("tp_btf/net_dev_start_xmit")
int sent(__u64 *context)
{
	const struct sk_buff *buffer = (const struct sk_buff *)context[0];

	if (is_ours((const struct net_device *)context[1]))
		add(buffer->len > SMALL_BYTES ? SENT_LARGE : SENT_SMALL, packets(buffer));
	return 0;
}

/* Eight bytes of a name, as a processor that has the lowest first loads them. */
#define BYTES(a, b, c, d, e, f, g, h)                                                                       \
	((__u64)a | (__u64)b << 8 | (__u64)c << 16 | (__u64)d << 24 | (__u64)e << 32 | (__u64)f << 40 |     \
	 (__u64)g << 48 | (__u64)h << 56)

/* Whether it is `skbuff_head_cache` or `skbuff_small_head`. */
static __always_inline int is_of_buffers(const struct kmem_cache *cache)
{
	const char *place = 0;
	__u64 name[2] = {};

	bpf_probe_read_kernel(&place, sizeof(place), &cache->name);
	bpf_probe_read_kernel(name, sizeof(name), place);
	if (name[0] == BYTES('s', 'k', 'b', 'u', 'f', 'f', '_', 'h'))
		return name[1] == BYTES('e', 'a', 'd', '_', 'c', 'a', 'c', 'h');
	return name[0] == BYTES('s', 'k', 'b', 'u', 'f', 'f', '_', 's') &&
	       name[1] == BYTES('m', 'a', 'l', 'l', '_', 'h', 'e', 'a');
}

/* Linux 6.12 lets no program of the kind `tp_btf` look at an argument that is `void *`. */
SEC("raw_tp/kmem_cache_alloc")
int slab_gave(__u64 *context)
{
	__u64 key = context[1];
	__u8 one = 1;

	if (is_of_buffers((const struct kmem_cache *)context[2]))
		bpf_map_update_elem(&from_slab, &key, &one, BPF_ANY);
	return 0;
}

SEC("raw_tp/kmem_cache_free")
int slab_took(__u64 *context)
{
	__u64 key = context[1];

	bpf_map_delete_elem(&from_slab, &key);
	return 0;
}

/* NAPI may keep the sk_buff for the next packet. */
SEC("tp_btf/consume_skb")
int consumed(__u64 *context)
{
	__u64 key = context[0];

	bpf_map_delete_elem(&from_slab, &key);
	return 0;
}

SEC("tp_btf/page_pool_state_hold")
int pool_took(__u64 *context)
{
	(void)context;
	add(PAGES_POOL, 1);
	return 0;
}

static __always_inline int receives(__u64 number, __u64 value)
{
	__u32 zero = 0;
	__u64 *flag = bpf_map_lookup_elem(&receiving, &zero);

	if (flag && number == NET_RX)
		*flag = value;
	return 0;
}

SEC("tp_btf/softirq_entry")
int begins_to_receive(__u64 *context)
{
	return receives((__u32)context[0], 1);
}

SEC("tp_btf/softirq_exit")
int ends_to_receive(__u64 *context)
{
	return receives((__u32)context[0], 0);
}

SEC("tp_btf/mm_page_alloc")
int page_taken(__u64 *context)
{
	__u32 zero = 0;
	__u64 *flag = bpf_map_lookup_elem(&receiving, &zero);

	(void)context;
	if (flag && *flag)
		add(PAGES_RECEIVING, 1);
	return 0;
}

char program_license[] SEC("license") = "GPL";
