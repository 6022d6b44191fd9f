// SPDX-License-Identifier: Apache-2.0
/*
 * SYN segments with forged sources, made where frames are made: the kernel hands this program one frame after
 * the other (BPF_PROG_TEST_RUN with live frames), and it sends each out by an interface when it is due.
 *
 * It owns the pacing and the counts, and writes every byte of a frame: pages come back from the receiver, who
 * may have changed them. It must never send before the time, after the end, or by another interface than that
 * given.
 *
 * crates/loadgen/src/flood/frame.rs writes the same frames; a test compares them byte by byte.
 */
#include "chance.h"
#include "checksum.h"
#include "kernel.h"

/* Time is counted in parts of a nanosecond, so that an interval of 1/3 us does not drift. */
#define TIME_SHIFT 10
/* What may be made up for after the thread was not running; what is beyond is given up, and counted. */
#define BEHIND_NS_MAX 100000000ULL

/* Looks at the clock while a frame is not due: some 30 us. */
#define LOOKS_MAX 1000

/* The plan, written by the loader before the program is loaded. */
const volatile __u32 ifindex = 0;
const volatile __u32 is_ipv6 = 0;
/* Between two frames, in 1/1024 ns. 0: as fast as it goes. */
const volatile __u64 interval = 0;
const volatile __u64 duration_ns = 0;
const volatile __u64 seed = 0;
/* IPv4: how many sources, and the first one, in the processor's order. */
const volatile __u32 source_count = 1;
const volatile __u32 source_first = 0;
/* IPv6: the low half of the prefix as it stands in memory, and which of its bits vary. */
const volatile __u64 source_low = 0;
const volatile __u64 source_mask = 0;
/* Sums of all that does not vary. */
const volatile __u32 internet_sum = 0;
const volatile __u32 segment_sum = 0;
/* The frame with zeros where it varies, and its last eight bytes once more. */
const volatile __u64 frame[10] = {};
const volatile __u64 frame_tail = 0;

/* Read by the other side while the program runs; the order is known to live.rs. */
struct progress {
	__u64 started_ns;
	__u64 due;
	__u64 sent;
	__u64 given_up;
	__u64 seen_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct progress);
	__uint(max_entries, 1);
} progress SEC(".maps");

/* RFC 793: source port, sequence number and checksum stand 0, 4 and 16 bytes into the segment. */
static __always_inline void write_segment(__u8 *segment, __u64 chance, __u64 sum)
{
	__u16 port = __builtin_bswap16(1024 + (((chance & 0xffff) * 64512) >> 16));
	__u32 sequence = chance >> 16;

	*(__u16 *)segment = port;
	*(__u32 *)(segment + 4) = sequence;
	*(__u16 *)(segment + 16) = fold(sum + port + sequence);
}

static __always_inline int write_ipv4(__u8 *data, __u8 *end, __u64 number)
{
	__u64 place = mix(number), chance = mix(place);
	__u32 host = ((place >> 32) * source_count) >> 32;
	__u32 source = __builtin_bswap32(source_first + host);

	if (data + 66 > end)
		return 0;
#pragma unroll
	for (int i = 0; i < 8; i++)
		((__u64 *)data)[i] = frame[i];
	*(__u64 *)(data + 58) = frame_tail;
	*(__u32 *)(data + 26) = source;
	*(__u16 *)(data + 24) = fold((__u64)internet_sum + source);
	write_segment(data + 34, chance, (__u64)segment_sum + source);
	return 1;
}

static __always_inline int write_ipv6(__u8 *data, __u8 *end, __u64 number)
{
	__u64 place = mix(number), chance = mix(place);
	__u64 source = source_low | (place & source_mask);

	if (data + 86 > end)
		return 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		((__u64 *)data)[i] = frame[i];
	*(__u64 *)(data + 78) = frame_tail;
	*(__u64 *)(data + 30) = source;
	write_segment(data + 54, chance, (__u64)segment_sum + (source & 0xffffffff) + (source >> 32));
	return 1;
}

/* Whether a frame may be sent now. Moves the schedule on if so. */
static __always_inline int is_due(struct progress *progress, __u64 now_ns)
{
	__u64 now, behind_max = BEHIND_NS_MAX << TIME_SHIFT;

	if (!progress->started_ns)
		progress->started_ns = now_ns;
	progress->seen_ns = now_ns;
	if (now_ns - progress->started_ns >= duration_ns)
		return 0;
	if (!interval)
		return 1;
	now = (now_ns - progress->started_ns) << TIME_SHIFT;
	if (now < progress->due)
		return 0;
	if (now - progress->due > behind_max) {
		__u64 count = (now - progress->due - behind_max) / interval;

		progress->given_up += count;
		progress->due += count * interval;
	}
	progress->due += interval;
	return 1;
}

/* Waits for the time of a frame, not long. To give the frame back instead, and to be handed it again and
 * again, would take the lock of the pool of pages each time, which the receiver needs for what it gives
 * back. */
static __always_inline int is_due_soon(struct progress *progress)
{
	for (int i = 0; i < LOOKS_MAX; i++) {
		if (is_due(progress, bpf_ktime_get_ns()))
			return 1;
	}
	return 0;
}

SEC("xdp")
int flood(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;
	struct progress *state;
	__u32 key = 0;
	__u64 number;

	state = bpf_map_lookup_elem(&progress, &key);
	if (!state || !is_due_soon(state))
		return XDP_DROP;
	number = seed + (state->sent + 1) * 0x9e3779b97f4a7c15ULL;
	if (is_ipv6 ? !write_ipv6(data, end, number) : !write_ipv4(data, end, number))
		return XDP_DROP;
	state->sent++;
	return bpf_redirect(ifindex, 0);
}

char program_license[] SEC("license") = "Apache-2.0";
