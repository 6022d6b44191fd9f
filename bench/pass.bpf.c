/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * An XDP program that lets everything pass. A veth takes frames answered by XDP at the other end only while
 * it has a program of its own (Linux 6.18, drivers/net/veth.c, veth_xdp_flush).
 */
#define XDP_PASS 2

__attribute__((section("xdp"), used)) int pass(void *context)
{
	return XDP_PASS;
}
