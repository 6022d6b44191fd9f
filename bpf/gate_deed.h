/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What is done with a frame: counted, and let pass, dropped or answered.
 *
 * Every frame that is no SYN, or is one with ACK or to another host, or that is not understood, passes, but
 * for what is wrapped as nobody does who has nothing to hide. It must never drop another.
 */
#ifndef STAUNCH_BPF_GATE_DEED_H
#define STAUNCH_BPF_GATE_DEED_H

#include "gate_answer.h"
#include "gate_verdict.h"

/* Written by the loader before the program is loaded. */
const volatile __u32 reject = REJECT_DROP;
const volatile __u32 dry_run = 0;

static __always_inline int gate(struct xdp_md *context)
{
	struct frame frame = { .link = (__u8 *)(long)context->data, .end = (__u8 *)(long)context->data_end,
			       .context = context };
	__u32 line = 0, kind;
	int outcome, class;
	__u64 *counts;

	counts = bpf_map_lookup_elem(&counters, &line);
	if (!counts)
		return XDP_PASS;
	kind = read_frame(&frame, context);
	if (kind == FRAME_WRAPPED) {
		counts[COUNT_MALFORMED]++;
		return is_unwanted(counts) && !dry_run ? XDP_DROP : XDP_PASS;
	}
	if (kind != FRAME_SYN) {
		counts[kind]++;
		return XDP_PASS;
	}
	if (!is_own(&frame)) {
		counts[COUNT_ELSEWHERE]++;
		return XDP_PASS;
	}
	if (has_lines)
		line = line_of(*(const __u16 *)(frame.segment + 2));
	outcome = verdict(&frame, &line, counts, &class);
	if (has_lines) {
		counts = bpf_map_lookup_elem(&counters, &line);
		if (!counts)
			return XDP_PASS;
	}
	counts[COUNT_OUTCOMES + class * OUTCOME_COUNT + outcome]++;
	if (!is_shed(outcome))
		return XDP_PASS;
	if (dry_run) {
		counts[COUNT_DRY]++;
		return XDP_PASS;
	}
	if (reject == REJECT_DROP || !answer(&frame, reject))
		return XDP_DROP;
	counts[COUNT_ANSWERED]++;
	return XDP_TX;
}

#endif
