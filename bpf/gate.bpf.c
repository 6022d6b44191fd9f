/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The gate: a SYN to a protected port that cannot be served is shed before the kernel has done anything for
 * it.
 *
 * Built twice: with TRACKER, and for kernels that cannot take that without. It must never hold anything but
 * where the programs are attached. The kernel gives the cookies, and shows its structures, only to programs
 * that may be used under the GPL.
 */
#ifdef TRACKER
/* Frames come in several pieces only to a program that says it takes them. */
#define PIECES
#endif
#include "gate_deed.h"

#ifdef TRACKER
#include "gate_tracker.h"
/* Frames in several pieces too: an interface with large ones takes no other program. */
#define XDP_SECTION "xdp.frags"
#else
#define XDP_SECTION "xdp"
#endif

SEC(XDP_SECTION)
int staunch_gate(struct xdp_md *context)
{
	return gate(context);
}

char program_license[] SEC("license") = "GPL";
