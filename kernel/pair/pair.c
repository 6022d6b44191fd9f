// SPDX-License-Identifier: GPL-2.0
/*
 * Two Ethernet interfaces, pair0 and pair1, joined by a cable: what one sends, the other receives.
 *
 * For tests in the emulated machine, which has no network but its loopback. An interface may be moved
 * into another namespace. Without the other one being up, there is no carrier.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

static struct net_device *ends[2];

static struct net_device *pair_other(const struct net_device *dev)
{
	return dev == ends[0] ? ends[1] : ends[0];
}

static netdev_tx_t pair_transmit(struct sk_buff *skb, struct net_device *dev)
{
	unsigned int bytes = skb->len;

	skb_tx_timestamp(skb);
	if (dev_forward_skb(pair_other(dev), skb) == NET_RX_SUCCESS)
		dev_sw_netstats_tx_add(dev, 1, bytes);
	else
		dev->stats.tx_dropped++;
	return NETDEV_TX_OK;
}

static int pair_open(struct net_device *dev)
{
	struct net_device *other = pair_other(dev);

	if (netif_running(other)) {
		netif_carrier_on(dev);
		netif_carrier_on(other);
	}
	return 0;
}

static int pair_stop(struct net_device *dev)
{
	netif_carrier_off(dev);
	netif_carrier_off(pair_other(dev));
	return 0;
}

static int pair_init(struct net_device *dev)
{
	dev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	return dev->tstats ? 0 : -ENOMEM;
}

static void pair_uninit(struct net_device *dev)
{
	free_percpu(dev->tstats);
}

static const struct net_device_ops pair_operations = {
	.ndo_init = pair_init,
	.ndo_uninit = pair_uninit,
	.ndo_open = pair_open,
	.ndo_stop = pair_stop,
	.ndo_start_xmit = pair_transmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_get_stats64 = dev_get_tstats64,
};

static void pair_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &pair_operations;
	dev->max_mtu = ETH_MAX_MTU;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	eth_hw_addr_random(dev);
}

static int __init pair_load(void)
{
	int error = 0;

	for (int end = 0; end < 2; end++) {
		ends[end] = alloc_netdev(0, "pair%d", NET_NAME_ENUM, pair_setup);
		if (!ends[end])
			goto free;
	}
	rtnl_lock();
	for (int end = 0; end < 2 && !error; end++) {
		error = register_netdevice(ends[end]);
		if (error && end)
			unregister_netdevice(ends[0]);
		netif_carrier_off(ends[end]);
	}
	rtnl_unlock();
	if (!error)
		return 0;
free:
	for (int end = 0; end < 2; end++)
		if (ends[end])
			free_netdev(ends[end]);
	return error ?: -ENOMEM;
}

static void __exit pair_unload(void)
{
	rtnl_lock();
	/* Both are down before one is gone: nothing is forwarded to it any more. */
	dev_close(ends[0]);
	dev_close(ends[1]);
	unregister_netdevice(ends[0]);
	unregister_netdevice(ends[1]);
	rtnl_unlock();
	free_netdev(ends[0]);
	free_netdev(ends[1]);
}

module_init(pair_load);
module_exit(pair_unload);

MODULE_DESCRIPTION("Two Ethernet interfaces joined by a cable, for tests");
MODULE_LICENSE("GPL");
