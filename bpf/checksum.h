/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The checksum of IP, TCP and UDP (RFC 1071).
 *
 * It owns the folding of a sum. It must never know a header.
 */
#ifndef STAUNCH_BPF_CHECKSUM_H
#define STAUNCH_BPF_CHECKSUM_H

#include "kernel.h"

/* A checksum, from the sum of all words of 16 or 32 bits as they stand in memory. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

#endif
