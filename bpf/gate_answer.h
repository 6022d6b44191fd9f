/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Answers to a SYN that was shed, written over it: a reset, or a SYN-ACK with a cookie.
 *
 * It owns every byte of the answer. It must never answer a packet with options or extension headers, a part
 * of one, or one that was sent to many: those are dropped. What is behind the answer in the frame is padding.
 */
#ifndef STAUNCH_BPF_GATE_ANSWER_H
#define STAUNCH_BPF_GATE_ANSWER_H

#include "checksum.h"
#include "gate_frame.h"

/* What a SYN-ACK with a cookie offers: the option "maximum segment size" of an Ethernet, and nothing else. */
#define MSS_OPTION 0x02040000
#define MSS_IPV4 1460
#define MSS_IPV6 1440
#define MSS_OPTION_BYTES 4

/* RFC 9293, section 3.1, in words of 32 bits: ports, sequence, acknowledged, flags and window, checksum. */
struct reply {
	__u32 sequence;
	__u8 flags;
	__u16 window;
	/* The option, or 0 for none. */
	__u32 option;
};

static __always_inline void swap_link(__u8 *link)
{
	__u16 *half = (__u16 *)link;

#pragma unroll
	for (int i = 0; i < 3; i++) {
		__u16 kept = half[i];

		half[i] = half[i + 3];
		half[i + 3] = kept;
	}
}

/* The sum of the addresses does not change when they are swapped. */
static __always_inline __u64 write_ipv4(__u8 *internet, int bytes)
{
	__u32 *word = (__u32 *)internet, source = word[3];
	__u64 sum = 0;

	word[0] = __builtin_bswap32(0x45000000 | (IPV4_BYTES + bytes));
	word[1] = __builtin_bswap32(0x00004000);
	word[2] = __builtin_bswap32(64 << 24 | NEXT_TCP << 16);
	word[3] = word[4];
	word[4] = source;
#pragma unroll
	for (int i = 0; i < 5; i++)
		sum += word[i];
	*(__u16 *)(internet + 10) = fold(sum);
	return (__u64)word[3] + word[4];
}

static __always_inline __u64 write_ipv6(__u8 *internet, int bytes)
{
	__u32 *word = (__u32 *)internet;
	__u64 sum = 0;

	word[0] = __builtin_bswap32(6 << 28);
	word[1] = __builtin_bswap32(bytes << 16 | NEXT_TCP << 8 | 64);
#pragma unroll
	for (int i = 2; i < 6; i++) {
		__u32 kept = word[i];

		word[i] = word[i + 4];
		word[i + 4] = kept;
		sum += (__u64)word[i] + kept;
	}
	return sum;
}

static __always_inline void write_segment(__u8 *segment, const struct reply *reply, __u64 sum)
{
	__u32 *word = (__u32 *)segment;
	__u32 bytes = reply->option ? TCP_BYTES + MSS_OPTION_BYTES : TCP_BYTES;

	word[0] = word[0] << 16 | word[0] >> 16;
	word[2] = __builtin_bswap32(__builtin_bswap32(word[1]) + 1);
	word[1] = __builtin_bswap32(reply->sequence);
	word[3] = __builtin_bswap32(bytes << 26 | reply->flags << 16 | reply->window);
	word[4] = 0;
	if (reply->option) {
		word[5] = __builtin_bswap32(reply->option);
		sum += word[5];
	}
	sum += __builtin_bswap32(NEXT_TCP << 16 | bytes);
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum += word[i];
	*(__u16 *)(segment + 16) = fold(sum);
}

/* The kernel makes the cookie. It wants the segment with its option of the segment size, which every system
 * sends first; without one it takes the smallest that is usual. */
static __always_inline int make_cookie(const struct frame *frame, struct reply *reply)
{
	__u32 head[6], *word = (__u32 *)frame->segment;
	long cookie;

#pragma unroll
	for (int i = 0; i < 6; i++)
		head[i] = word[i];
	if ((__builtin_bswap32(head[5]) & 0xffff0000) != MSS_OPTION || frame->segment[12] >> 4 < 6)
		return 0;
	((__u8 *)head)[12] = 6 << 4;
	cookie = frame->is_ipv6 ? bpf_tcp_raw_gen_syncookie_ipv6(frame->internet, head, sizeof(head))
				: bpf_tcp_raw_gen_syncookie_ipv4(frame->internet, head, sizeof(head));
	if (cookie < 0)
		return 0;
	reply->sequence = cookie;
	reply->option = MSS_OPTION | (frame->is_ipv6 ? MSS_IPV6 : MSS_IPV4);
	return 1;
}

/* Turns the SYN into its answer. Returns 0, and has changed nothing, if there is none. */
static __always_inline int answer(struct frame *frame, int reject)
{
	struct reply reply = { .flags = TCP_RST | TCP_ACK };
	__u8 *internet = frame->internet, *segment;
	int bytes = TCP_BYTES;
	__u64 sum;

	segment = internet + (frame->is_ipv6 ? IPV6_BYTES : IPV4_BYTES);
	if (frame->is_part || segment != frame->segment || segment + TCP_BYTES + MSS_OPTION_BYTES > frame->end)
		return 0;
	frame->segment = segment;
	if (frame->link[0] & 1)
		return 0;
	if (reject == REJECT_COOKIE) {
		reply.flags = TCP_SYN | TCP_ACK;
		reply.window = 0xffff;
		bytes += MSS_OPTION_BYTES;
		if (!make_cookie(frame, &reply))
			return 0;
	}
	sum = frame->is_ipv6 ? write_ipv6(internet, bytes) : write_ipv4(internet, bytes);
	write_segment(segment, &reply, sum);
	swap_link(frame->link);
	return 1;
}

#endif
