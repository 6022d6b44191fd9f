/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Chance: numbers that look unlike each other, made from numbers that are not.
 *
 * It must never ask the kernel for chance: a seed gives the same frames again.
 */
#ifndef STAUNCH_BPF_CHANCE_H
#define STAUNCH_BPF_CHANCE_H

#include "kernel.h"

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014): a number is a source of its own. */
static __always_inline __u64 mix(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

#endif
