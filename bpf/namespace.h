/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A network namespace as the kernel's structures name it: by its number. Where the members stand is found
 * when a program is loaded.
 */
#ifndef STAUNCH_BPF_NAMESPACE_H
#define STAUNCH_BPF_NAMESPACE_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	__u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;
#pragma clang attribute pop

#endif
