/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The proof by numbers: frames of random structure are made in the kernel and shown to the gate, a hundred
 * million in some seconds, while nobody has a credit. Whoever makes a frame knows what it is without reading
 * it, so every wrong deed is counted.
 *
 * It owns the making and the counts. It must never read a frame to know what it is, or use what the gate uses
 * for that. For tests only; it is never attached.
 */
#include "chance.h"
#include "gate_deed.h"

/* Room for the longest frame that is made, and a power of two. */
#define FRAME_BYTES 256
#define FRAME_MASK (FRAME_BYTES - 1)

const volatile __u64 seed = 0;

/* The order is known to storm.rs. */
struct count {
	__u64 made;
	__u64 syn;
	__u64 dropped_wrongly;
	__u64 passed_wrongly;
	__u64 first_wrong;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct count);
	__uint(max_entries, 1);
} storm SEC(".maps");

/* Takes some bits of chance. */
static __always_inline __u32 take(__u64 *chance, int bits)
{
	__u32 taken = *chance & ((1ULL << bits) - 1);

	*chance = *chance >> bits | *chance << (64 - bits);
	return taken;
}

/* Functions of their own, so that each is verified once, and reads both ends of the frame anew. */
__attribute__((noinline)) int put(struct xdp_md *context, __u32 at, __u8 value)
{
	__u8 *data = (__u8 *)(long)context->data, *end = (__u8 *)(long)context->data_end;

	at &= FRAME_MASK;
	if (data + at + 1 > end)
		return -1;
	data[at] = value;
	return 0;
}

static __always_inline void put2(struct xdp_md *context, __u32 at, __u16 value)
{
	put(context, at, value >> 8);
	put(context, at + 1, value);
}

/* What was made: where it ends, and whether it may be shed. */
#define MADE(length, is_syn) ((length) | (is_syn) << 16)

/* A segment behind headers of `at` bytes. Its length is told to the header before by the caller. */
__attribute__((noinline)) int make_segment(struct xdp_md *context, __u32 at, __u64 chance)
{
	__u32 words = 5 + take(&chance, 3), port, flags = take(&chance, 8);
	int is_syn = 1;

	if (!take(&chance, 3)) {
		words = take(&chance, 2);
		is_syn = 0;
	}
	switch (take(&chance, 2)) {
	case 0:
		port = take(&chance, 16);
		break;
	case 1:
		port = 443;
		break;
	default:
		port = 80;
	}
	if (take(&chance, 1))
		flags = (flags & ~0x10) | 0x02;
	if (port != 80 && port != 443)
		is_syn = 0;
	if (!(flags & 0x02) || flags & 0x10)
		is_syn = 0;
	put2(context, at + 2, port);
	put(context, at + 12, words << 4 | take(&chance, 4));
	put(context, at + 13, flags);
	return MADE(at + (words < 5 ? 20 : words * 4), is_syn);
}

/* What is behind a header of IP: TCP six times of eight. */
static __always_inline __u8 choose_protocol(__u64 *chance)
{
	switch (take(chance, 3)) {
	case 0:
		return 17;
	case 1:
		return 58;
	default:
		return 6;
	}
}

__attribute__((noinline)) int make_ipv4(struct xdp_md *context, __u32 at, __u64 chance)
{
	__u32 words = 5 + take(&chance, 3), protocol = choose_protocol(&chance), part = 0, length;
	int made = make_segment(context, at + words * 4, mix(chance)), is_syn = made >> 16;

	length = (made & 0xffff) - at;
	if (protocol != 6)
		is_syn = 0;
	if (!take(&chance, 3)) {
		/* A later part; what a first one may be, the table of verdicts says. */
		part = 1 | take(&chance, 13);
		is_syn = 0;
	}
	/* Do not fragment, and the bit that is reserved. */
	part |= take(&chance, 2) << 14;
	switch (take(&chance, 4)) {
	case 0:
		/* Not even the header of TCP is inside. */
		length = words * 4 + take(&chance, 4);
		is_syn = 0;
		break;
	case 1:
		/* More than there is. */
		length += FRAME_BYTES + take(&chance, 8);
		is_syn = 0;
	}
	put(context, at, 0x40 | words);
	if (!take(&chance, 4)) {
		put(context, at, take(&chance, 1) ? 0x50 | words : 0x40 | take(&chance, 2));
		is_syn = 0;
	}
	put2(context, at + 2, length);
	put2(context, at + 6, part);
	put(context, at + 9, protocol);
	return MADE(made & 0xffff, is_syn);
}

/* The header of a fragment of IPv6 behind its first two bytes. Whether the packet is whole all the same. */
static __always_inline int put_fragment(struct xdp_md *context, __u32 at, __u64 *chance)
{
	if (take(chance, 1)) {
		/* Two bits are reserved. */
		put2(context, at, take(chance, 2) << 1);
		return 1;
	}
	put2(context, at, (1 | take(chance, 13)) << 3 | take(chance, 3));
	return 0;
}

/* Up to three extension headers, of which the last may be that of a fragment. */
__attribute__((noinline)) int make_ipv6(struct xdp_md *context, __u32 at, __u64 chance)
{
	__u32 extensions = take(&chance, 2), next_at = at + 6, place = at + 40, length, size;
	__u32 fragment = extensions && !take(&chance, 2), protocol;
	int made, is_syn, is_whole = 1;

	for (__u32 i = 0; i < extensions && i < 3; i++) {
		__u32 kind = take(&chance, 2);

		put(context, next_at, kind == 0 ? 0 : kind == 1 ? 43 : 60);
		size = take(&chance, 1);
		if (fragment && i + 1 == extensions) {
			put(context, next_at, 44);
			size = 0;
			is_whole = put_fragment(context, place + 2, &chance);
		}
		next_at = place;
		put(context, place + 1, size);
		place += 8 + size * 8;
	}
	made = make_segment(context, place, mix(chance));
	protocol = choose_protocol(&chance);
	put(context, next_at, protocol);
	is_syn = made >> 16 && protocol == 6 && is_whole;
	length = (made & 0xffff) - at - 40;
	switch (take(&chance, 4)) {
	case 0:
		length = place - at - 40 + take(&chance, 4);
		is_syn = 0;
		break;
	case 1:
		length += FRAME_BYTES + take(&chance, 8);
		is_syn = 0;
	}
	put(context, at, 0x60 | take(&chance, 4));
	if (!take(&chance, 4)) {
		put(context, at, 0x40 | take(&chance, 4));
		is_syn = 0;
	}
	put2(context, at + 4, length);
	return MADE(made & 0xffff, is_syn);
}

/* A whole frame, of at most FRAME_BYTES: every byte is random but those that make it what it is. */
__attribute__((noinline)) int make_frame(struct xdp_md *context, __u64 chance)
{
	__u64 *data = (__u64 *)(long)context->data, word = chance;
	__u32 at = 12, tags, kind, length;
	int made, is_syn;

	if ((__u8 *)data + FRAME_BYTES > (__u8 *)(long)context->data_end)
		return -1;
	for (int i = 0; i < FRAME_BYTES / 8; i++)
		data[i] = word = word * 0xd1342543de82ef95ULL + 1;
	tags = take(&chance, 3);
	tags = tags < 4 ? tags : 0;
	for (__u32 i = 0; i < tags && i < 3; i++) {
		put2(context, at, take(&chance, 1) ? 0x8100 : 0x88a8);
		at += 4;
	}
	kind = take(&chance, 3);
	put2(context, at, kind == 7 ? 0x0806 : kind > 3 ? 0x86dd : 0x0800);
	made = kind > 3 ? make_ipv6(context, at + 2, mix(chance)) : make_ipv4(context, at + 2, mix(chance));
	is_syn = made >> 16 && kind != 7;
	length = made & 0xffff;
	if (!take(&chance, 2)) {
		length = 14 + take(&chance, 8) % (length - 14);
		is_syn = 0;
	} else {
		/* Ethernet fills up short frames. */
		length += take(&chance, 4);
	}
	return MADE(length, is_syn);
}

__attribute__((noinline)) int show(struct xdp_md *context)
{
	return gate(context);
}

/* The frame becomes so long, counted from its end as it is. */
static __always_inline long resize(struct xdp_md *context, __u32 length)
{
	const __u8 *data = (const __u8 *)(long)context->data, *end = (const __u8 *)(long)context->data_end;
	__u64 bytes = end - data;

	/* Keeps the compiler from taking pointers apart in 32 bits, which the verifier forbids. */
	asm volatile("" : "+r"(bytes));
	return bpf_xdp_adjust_tail(context, (int)(length - bytes));
}

SEC("xdp")
int staunch_storm(struct xdp_md *context)
{
	struct count *count;
	int made, deed, is_syn;
	__u32 zero = 0;
	__u64 chance;

	count = bpf_map_lookup_elem(&storm, &zero);
	if (!count)
		return XDP_ABORTED;
	chance = mix(seed + (count->made + 1) * 0x9e3779b97f4a7c15ULL);
	if (resize(context, FRAME_BYTES))
		return XDP_ABORTED;
	made = make_frame(context, chance);
	if (made < 0 || resize(context, made & FRAME_MASK))
		return XDP_ABORTED;
	is_syn = made >> 16 & 1;
	deed = show(context);
	count->made++;
	count->syn += is_syn;
	if ((deed == XDP_PASS) == !is_syn)
		return XDP_PASS;
	if (is_syn)
		count->passed_wrongly++;
	else
		count->dropped_wrongly++;
	if (!count->first_wrong)
		count->first_wrong = count->made;
	return XDP_PASS;
}

char program_license[] SEC("license") = "GPL";
