/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a BPF program needs of the kernel's interface, and nothing else: types, the context of an XDP program,
 * functions of the kernel, and the marks a loader looks for. All of it is fixed by the kernel for ever
 * (include/uapi/linux/bpf.h), so no header of the system is needed to build.
 *
 * It must never hold anything of one program alone.
 */
#ifndef STAUNCH_BPF_KERNEL_H
#define STAUNCH_BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

/* Where a loader finds things. */
#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

/* The members of a map's definition, read by the loader from the type information. */
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_RINGBUF = 27,
};

/* Memory is taken when an entry is made, not when the map is. */
#define BPF_F_NO_PREALLOC 1
/* Put in, whether it is there or not. */
#define BPF_ANY 0
/* Put in only if it is not there. */
#define BPF_NOEXIST 1

enum xdp_action {
	XDP_ABORTED = 0,
	XDP_DROP = 1,
	XDP_PASS = 2,
	XDP_TX = 3,
	XDP_REDIRECT = 4,
};

/* The frame; `data` and `data_end` are pointers, whatever the type says. */
struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

struct tcp_sock;

/* Functions of the kernel, called by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *context, int by) = (void *)65;
/* Reads what the verifier does not know to be there. */
static long (*const bpf_probe_read_kernel)(void *into, __u32 bytes, const void *from) = (void *)113;
/* Ticks since the start: no call, but a load. Since Linux 5.5. */
static __u64 (*const bpf_jiffies64)(void) = (void *)118;
/* Wakes who waits for the ring. Since Linux 5.8. */
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 bytes, __u64 flags) = (void *)130;
/* A socket as one of TCP; none if it is something else. Since Linux 5.9. */
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
/* As bpf_ktime_get_ns, but of the last tick: several times as cheap. Since Linux 5.11. */
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
/* How long a frame is with all its pieces. Since Linux 5.18. */
static __u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *context) = (void *)188;
/* The sequence number of a SYN cookie, and in the upper half the segment size it holds. Since Linux 6.0. */
static long (*const bpf_tcp_raw_gen_syncookie_ipv4)(void *internet, void *segment, __u32 bytes) = (void *)204;
static long (*const bpf_tcp_raw_gen_syncookie_ipv6)(void *internet, void *segment, __u32 bytes) = (void *)205;

#endif
