/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a frame is: whether it is a SYN to a protected port, and from whom.
 *
 * It owns the reading of headers: VLAN tags, IPv4 with options, IPv6 with extension headers, and the first
 * part of a packet that comes in parts. A frame is what Linux will make of it: else a SYN that is wrapped
 * would not be shed. It must never write to a frame or judge it. What it does not understand is not a SYN.
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
#define IPV4_OFFSET __builtin_bswap16(0x1fff)
/* Of the header that makes a part of a packet of IPv6. */
#define IPV6_OFFSET __builtin_bswap16(0xfff8)
#define IPV6_MORE __builtin_bswap16(0x0001)
/* The word of type and version, and for IPv4 without options the length of the header. */
#define PLAIN_IPV4 __builtin_bswap32(0x08004500)
#define PLAIN_IPV4_MASK __builtin_bswap32(0xffffff00)
#define PLAIN_IPV6 __builtin_bswap32(0x86dd6000)
#define PLAIN_IPV6_MASK __builtin_bswap32(0xfffff000)

#define NEXT_HOP_BY_HOP 0
#define NEXT_TCP 6
#define NEXT_ROUTING 43
#define NEXT_FRAGMENT 44
#define NEXT_DESTINATION 60
/* Linux reads as many extension headers as there are, and takes off as many tags. RFC 8200, section 4.1, has
 * five, and networks have two tags: whoever sends more than these means to hide something. */
#define EXTENSIONS_MAX 8
#define TAGS_MAX 4
/* Of a segment: what a part of it has at least, as parts have a multiple of it, and up to its flags. */
#define PART_BYTES 8
#define FLAGS_BYTES 14

#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* Frames up to here are small: a request, an acknowledgement. */
#define SMALL_BYTES 128

/* The line of a port and one more, by its number as it stands in a frame; 0: it is not protected. Written by
 * the loader before the program is loaded. A byte each: bits would cost six instructions more for each
 * frame. */
const volatile __u8 ports[1 << 16] = {};
/* Whether there are several lines. Where there is one the kernel leaves out all that this asks for, when it
 * verifies the program. */
const volatile __u32 has_lines = 0;

/* A SYN, as far as it was read. */
struct frame {
	__u8 *link;
	__u8 *internet;
	__u8 *segment;
	__u8 *end;
	/* All its pieces, of which the first ends there. */
	struct xdp_md *context;
	int is_ipv6;
	/* Only the first part of it is here. */
	int is_part;
};

/* The line of a protected port, as it stands in a frame. */
static __always_inline __u32 line_of(__u16 port)
{
	return has_lines ? ports[port] - 1 : 0;
}

static __always_inline __u16 load16(const __u8 *at)
{
	return __builtin_bswap16(*(const __u16 *)at);
}

/* Whether so many bytes from a place in the first piece on are there, in this one or in those behind it. */
static __always_inline int is_there(const struct frame *frame, const __u8 *from, int bytes)
{
	if (bytes <= frame->end - from)
		return 1;
#ifdef PIECES
	return bytes + (from - frame->link) <= (long)bpf_xdp_get_buff_len(frame->context);
#else
	return 0;
#endif
}

/* A segment of TCP in a packet that has `room` bytes for it. */
static __always_inline __u32 read_segment(struct frame *frame, __u8 *segment, int room)
{
	int bytes;

	if (segment + TCP_BYTES > frame->end)
		return COUNT_MALFORMED;
	if (!ports[*(const __u16 *)(segment + 2)])
		return COUNT_OTHER;
	if ((segment[13] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return frame->end - frame->link > SMALL_BYTES ? COUNT_LARGE : COUNT_SMALL;
	bytes = (segment[12] >> 4) * 4;
	if (bytes < TCP_BYTES || bytes > room || segment + bytes > frame->end)
		return COUNT_MALFORMED;
	frame->segment = segment;
	return FRAME_SYN;
}

/* The beginning of a segment in the first part of a packet, with so many bytes of it. Without this part the
 * others are never put together. No honest sender cuts before the flags: then it may be a SYN. */
static __always_inline __u32 read_part(struct frame *frame, __u8 *segment, int room)
{
	if (segment + PART_BYTES > frame->end || room < PART_BYTES || !ports[*(const __u16 *)(segment + 2)])
		return COUNT_FRAGMENT;
	if (room >= FLAGS_BYTES && segment + FLAGS_BYTES <= frame->end &&
	    (segment[FLAGS_BYTES - 1] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return COUNT_FRAGMENT;
	frame->segment = segment;
	frame->is_part = 1;
	return FRAME_SYN;
}

/* TCP in a packet of so many bytes, behind headers of so many. */
static __always_inline __u32 read_tcp(struct frame *frame, __u8 *internet, int headers, int length)
{
	if (!is_there(frame, internet, length))
		return COUNT_MALFORMED;
	frame->internet = internet;
	return read_segment(frame, internet + headers, length - headers);
}

/* IPv4 with so many bytes of headers; none: with a version or a length that cannot be. */
static __always_inline __u32 read_ipv4(struct frame *frame, __u8 *internet, int headers)
{
	if (internet[9] != NEXT_TCP)
		return COUNT_OTHER;
	if (*(__u16 *)(internet + 6) & IPV4_OFFSET)
		return COUNT_FRAGMENT;
	if (headers < IPV4_BYTES)
		return COUNT_MALFORMED;
	frame->is_ipv6 = 0;
	if (*(__u16 *)(internet + 6) & IPV4_FRAGMENT) {
		frame->internet = internet;
		return read_part(frame, internet + headers, load16(internet + 2) - headers);
	}
	return read_tcp(frame, internet, headers, load16(internet + 2));
}

static __always_inline int is_extension(__u8 next)
{
	return next == NEXT_HOP_BY_HOP || next == NEXT_ROUTING || next == NEXT_DESTINATION ||
	       next == NEXT_FRAGMENT;
}

static __always_inline __u32 read_ipv6(struct frame *frame, __u8 *internet)
{
	__u8 *at = internet + IPV6_BYTES;
	int room, bytes, is_part = 0;
	__u8 next;

	if (at > frame->end)
		return COUNT_MALFORMED;
	next = internet[6];
	room = load16(internet + 4);
	/* Behind such a header Linux takes all there is (ip6_rcv_core), whether it is a jumbogram or not. */
	if (!room && next == NEXT_HOP_BY_HOP)
		room = frame->end - at;
	if (internet[0] >> 4 != 6 || !is_there(frame, at, room))
		return COUNT_MALFORMED;
	for (int i = 0; i < EXTENSIONS_MAX && is_extension(next); i++) {
		if (at + 8 > frame->end || room < 8)
			return COUNT_MALFORMED;
		bytes = (at[1] + 1) * 8;
		if (next == NEXT_FRAGMENT) {
			__u16 part = *(const __u16 *)(at + 2);

			if (part & IPV6_OFFSET)
				return COUNT_FRAGMENT;
			is_part |= part & IPV6_MORE;
			bytes = 8;
		}
		if (room < bytes)
			return COUNT_MALFORMED;
		next = at[0];
		at += bytes;
		room -= bytes;
	}
	if (next != NEXT_TCP)
		return is_extension(next) ? FRAME_WRAPPED : COUNT_OTHER;
	frame->is_ipv6 = 1;
	frame->internet = internet;
	return is_part ? read_part(frame, at, room) : read_segment(frame, at, room);
}

static __always_inline int is_tag(__u16 type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ;
}

/* Behind tags, with options or extension headers, cut short. */
static __always_inline __u32 read_wrapped(struct frame *frame)
{
	__u8 *internet = frame->link + LINK_BYTES;
	__u16 type;

	if (internet > frame->end)
		return COUNT_MALFORMED;
	type = *(__u16 *)(internet - 2);
	for (int i = 0; i < TAGS_MAX && is_tag(type); i++) {
		internet += TAG_BYTES;
		if (internet > frame->end)
			return COUNT_MALFORMED;
		type = *(__u16 *)(internet - 2);
	}
	if (type == TYPE_IPV6)
		return read_ipv6(frame, internet);
	if (type != TYPE_IPV4)
		return is_tag(type) ? FRAME_WRAPPED : COUNT_OTHER;
	if (internet + IPV4_BYTES > frame->end)
		return COUNT_MALFORMED;
	return read_ipv4(frame, internet, internet[0] >> 4 == 4 ? (internet[0] & 15) * 4 : 0);
}

/* What `find` gives: a kind, where the headers of IP and TCP stand, and what they are. */
#define FOUND_KIND_MASK 7
#define FOUND_INTERNET_SHIFT 8
#define FOUND_SEGMENT_SHIFT 16
#define FOUND_IPV6_SHIFT 32
#define FOUND_PART_SHIFT 33
/* Offsets: of IP from the frame's begin, behind all tags; of TCP from that of IP, behind all headers. */
#define INTERNET_MASK 0x3f
#define SEGMENT_MASK 0x7fff

/* Any frame, without pointers. A function of its own, which the kernel verifies once: else it would go
 * through all that follows for each end of a loop. */
__attribute__((noinline)) __u64 find(struct xdp_md *context)
{
	struct frame frame = { .link = (__u8 *)(long)context->data, .end = (__u8 *)(long)context->data_end,
			       .context = context };
	__u64 kind = read_wrapped(&frame);

	if (kind != FRAME_SYN)
		return kind;
	return kind | (__u64)(frame.internet - frame.link) << FOUND_INTERNET_SHIFT |
	       (__u64)(frame.segment - frame.internet) << FOUND_SEGMENT_SHIFT |
	       (__u64)frame.is_ipv6 << FOUND_IPV6_SHIFT | (__u64)frame.is_part << FOUND_PART_SHIFT;
}

static __always_inline __u32 read_any(struct frame *frame, struct xdp_md *context)
{
	__u64 found = find(context);
	__u32 kind = found & FOUND_KIND_MASK;

	if (kind != FRAME_SYN)
		return kind;
	frame->is_ipv6 = found >> FOUND_IPV6_SHIFT & 1;
	frame->is_part = found >> FOUND_PART_SHIFT & 1;
	frame->internet = frame->link + (found >> FOUND_INTERNET_SHIFT & INTERNET_MASK);
	frame->segment = frame->internet + (found >> FOUND_SEGMENT_SHIFT & SEGMENT_MASK);
	/* It is so; the kernel wants to see it. */
	if (frame->link + LINK_BYTES > frame->end)
		return COUNT_MALFORMED;
	if (frame->internet + IPV4_BYTES > frame->end || frame->segment + PART_BYTES > frame->end)
		return COUNT_MALFORMED;
	if (frame->is_ipv6 && frame->internet + IPV6_BYTES > frame->end)
		return COUNT_MALFORMED;
	return FRAME_SYN;
}

/* What the frame is: FRAME_SYN, or the counter of what else it is. Most are read here, by fewer instructions:
 * IPv4 without options and TCP in IPv6 without extension headers, known by the word of type and version. */
static __always_inline __u32 read_frame(struct frame *frame, struct xdp_md *context)
{
	__u8 *internet = frame->link + LINK_BYTES;

	if (internet + IPV4_BYTES + TCP_BYTES <= frame->end) {
		__u32 word = *(const __u32 *)(internet - 2);

		if ((word & PLAIN_IPV4_MASK) == PLAIN_IPV4)
			return read_ipv4(frame, internet, IPV4_BYTES);
		if ((word & PLAIN_IPV6_MASK) == PLAIN_IPV6 && internet[6] == NEXT_TCP) {
			frame->is_ipv6 = 1;
			return read_tcp(frame, internet, IPV6_BYTES, IPV6_BYTES + load16(internet + 4));
		}
	}
	return read_any(frame, context);
}

#endif
