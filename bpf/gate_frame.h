/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a frame is: whether it is a SYN to a protected port, and from whom.
 *
 * It owns the reading of headers: two VLAN tags, IPv4 with options, IPv6 with extension headers. It must
 * never write to a frame or judge it. What it does not understand is not a SYN.
 */
#ifndef STAUNCH_BPF_GATE_FRAME_H
#define STAUNCH_BPF_GATE_FRAME_H

#include "gate.h"

#define LINK_BYTES 14
#define TAG_BYTES 4
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20

/* Numbers as they stand in a frame, in network order. */
#define TYPE_IPV4 __builtin_bswap16(0x0800)
#define TYPE_IPV6 __builtin_bswap16(0x86dd)
#define TYPE_VLAN __builtin_bswap16(0x8100)
#define TYPE_QINQ __builtin_bswap16(0x88a8)
#define IPV4_FRAGMENT __builtin_bswap16(0x3fff)

#define NEXT_HOP_BY_HOP 0
#define NEXT_TCP 6
#define NEXT_ROUTING 43
#define NEXT_FRAGMENT 44
#define NEXT_DESTINATION 60
/* RFC 8200, section 4.1: each of the three may come once, destination options twice. */
#define EXTENSIONS_MAX 4

#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* Frames up to here are small: a request, an acknowledgement. */
#define SMALL_BYTES 128

/* One bit a port, written by the loader before the program is loaded. */
const volatile __u64 ports[1024] = {};

/* A SYN, as far as it was read. */
struct frame {
	__u8 *link;
	__u8 *internet;
	__u8 *segment;
	__u8 *end;
	int is_ipv6;
};

static __always_inline int is_protected(__u16 port)
{
	return (ports[port >> 6] >> (port & 63)) & 1;
}

static __always_inline __u16 load16(const __u8 *at)
{
	return __builtin_bswap16(*(const __u16 *)at);
}

/* A segment of TCP in a packet that has `room` bytes for it. */
static __always_inline int read_segment(struct frame *frame, __u8 *segment, int room)
{
	int bytes;

	if (segment + TCP_BYTES > frame->end)
		return COUNT_MALFORMED;
	if (!is_protected(load16(segment + 2)))
		return COUNT_OTHER;
	if ((segment[13] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return frame->end - frame->link > SMALL_BYTES ? COUNT_LARGE : COUNT_SMALL;
	bytes = (segment[12] >> 4) * 4;
	if (bytes < TCP_BYTES || bytes > room || segment + bytes > frame->end)
		return COUNT_MALFORMED;
	frame->segment = segment;
	return FRAME_SYN;
}

static __always_inline int read_ipv4(struct frame *frame, __u8 *internet)
{
	int bytes, room;

	if (internet + IPV4_BYTES > frame->end)
		return COUNT_MALFORMED;
	if (internet[9] != NEXT_TCP)
		return COUNT_OTHER;
	if (*(__u16 *)(internet + 6) & IPV4_FRAGMENT)
		return COUNT_FRAGMENT;
	bytes = (internet[0] & 15) * 4;
	room = load16(internet + 2);
	if (internet[0] >> 4 != 4 || bytes < IPV4_BYTES || room > frame->end - internet)
		return COUNT_MALFORMED;
	frame->is_ipv6 = 0;
	frame->internet = internet;
	return read_segment(frame, internet + bytes, room - bytes);
}

static __always_inline int read_ipv6(struct frame *frame, __u8 *internet)
{
	__u8 *at = internet + IPV6_BYTES;
	int room, bytes;
	__u8 next;

	if (at > frame->end)
		return COUNT_MALFORMED;
	next = internet[6];
	room = load16(internet + 4);
	if (internet[0] >> 4 != 6 || room > frame->end - at)
		return COUNT_MALFORMED;
	for (int i = 0; i < EXTENSIONS_MAX && next != NEXT_TCP; i++) {
		if (next == NEXT_FRAGMENT)
			return COUNT_FRAGMENT;
		if (next != NEXT_HOP_BY_HOP && next != NEXT_ROUTING && next != NEXT_DESTINATION)
			return COUNT_OTHER;
		if (at + 8 > frame->end)
			return COUNT_MALFORMED;
		next = at[0];
		bytes = (at[1] + 1) * 8;
		at += bytes;
		room -= bytes;
	}
	if (next != NEXT_TCP)
		return next == NEXT_FRAGMENT ? COUNT_FRAGMENT : COUNT_OTHER;
	frame->is_ipv6 = 1;
	frame->internet = internet;
	return read_segment(frame, at, room);
}

/* What the frame is: FRAME_SYN, or the counter of what else it is. */
static __always_inline int read_frame(struct frame *frame)
{
	__u8 *internet = frame->link + LINK_BYTES;
	__u16 type;

	if (internet > frame->end)
		return COUNT_MALFORMED;
	type = *(__u16 *)(internet - 2);
#pragma unroll
	for (int i = 0; i < 2 && (type == TYPE_VLAN || type == TYPE_QINQ); i++) {
		internet += TAG_BYTES;
		if (internet > frame->end)
			return COUNT_MALFORMED;
		type = *(__u16 *)(internet - 2);
	}
	if (type == TYPE_IPV4)
		return read_ipv4(frame, internet);
	if (type == TYPE_IPV6)
		return read_ipv6(frame, internet);
	return COUNT_OTHER;
}

#endif
