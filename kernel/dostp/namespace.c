// SPDX-License-Identifier: GPL-2.0
/* What each namespace has, and what happens to its interfaces. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "keys.h"

static unsigned int dostp_namespace_id;
/* The module goes: the notifier is told that every interface does, and no node may begin. */
static bool dostp_namespace_leaves;

struct dostp_net *dostp_net(const struct net *net)
{
	return net_generic(net, dostp_namespace_id);
}

/* The interface's first address; false if it has none that a node can have. */
static bool dostp_namespace_address(struct net_device *dev, u32 *address, u32 *netmask)
{
	struct in_device *in_dev = __in_dev_get_rtnl(dev);
	const struct in_ifaddr *first = in_dev ? rtnl_dereference(in_dev->ifa_list) : NULL;
	u16 low;

	if (!first)
		return false;
	*address = ntohl(first->ifa_local);
	*netmask = ntohl(first->ifa_mask);
	low = *address & 0xffff;
	return low && low != DOSTP_EVERYBODY;
}

/* What the former node held, and from when on. All 0: there was none, or it was refused its address. */
struct dostp_holding {
	const struct net_device *dev;
	dostp_link link;
	u32 address;
	u8 cluster;
	bool has_keys;
	unsigned long since;
};

/* Whether a node there would hold what the former one held. A claim reaches its cluster and keys alone. */
static bool dostp_namespace_is_held(const struct dostp_net *net, const struct dostp_holding *held,
				    const struct net_device *dev, u32 address)
{
	return held->dev == dev && held->link == dostp_link_of(dev->dev_addr) && held->address == address &&
	       held->cluster == net->cluster && held->has_keys == !!net->secrets;
}

/*
 * Begins a node, if settings and interface allow one; an error is that of its begin. If the node holds what
 * the former one held, its trial counts from the begin of that one: a holder does not become a newcomer by a
 * new MTU.
 */
static int dostp_namespace_start(struct dostp_net *net, const struct dostp_holding *held)
{
	unsigned long since = jiffies;
	struct net_device *dev;
	u32 address, netmask;
	int error;

	dev = net->interface[0] ? __dev_get_by_name(net->net, net->interface) : NULL;
	if (!dev || !netif_running(dev) || !netif_carrier_ok(dev))
		return 0;
	if (dev->type != ARPHRD_ETHER || dev->mtu < DOSTP_MTU_MIN) {
		pr_err("%s: no Ethernet, or its MTU is below %u\n", dev->name, DOSTP_MTU_MIN);
		return 0;
	}
	if (!dostp_namespace_address(dev, &address, &netmask)) {
		pr_notice("%s: waits for an IPv4 address whose low 16 bits are not 0 or all ones\n", dev->name);
		return 0;
	}
	if (dostp_namespace_is_held(net, held, dev, address))
		since = held->since;
	error = dostp_node_start(net, dev, address, netmask, since);
	if (error)
		pr_err("%s: no node (error %d)\n", dev->name, error);
	return error;
}

int dostp_namespace_renew(struct dostp_net *net)
{
	const struct dostp_node *node = rtnl_dereference(net->node);
	struct dostp_holding held = {};
	bool had_one = node;
	int error;

	if (node && !node->is_refused) {
		held.dev = node->dev;
		held.link = node->link;
		held.address = node->address;
		held.cluster = node->cluster;
		held.has_keys = node->keys;
		held.since = node->started;
	}
	dostp_node_end(net, true);
	error = dostp_namespace_start(net, &held);
	if (had_one && !rtnl_dereference(net->node))
		dostp_port_tell_down(net);
	return error;
}

/* With RTNL: the interface goes. */
static void dostp_namespace_down(struct dostp_net *net, struct net_device *dev, bool says_bye)
{
	struct dostp_node *node = rtnl_dereference(net->node);

	if (!node || node->dev != dev)
		return;
	dostp_node_end(net, says_bye);
	dostp_port_tell_down(net);
}

/* With RTNL: whether the node is not what interface and address would make it now. */
static bool dostp_namespace_has_changed(struct dostp_net *net, struct net_device *dev)
{
	struct dostp_node *node = rtnl_dereference(net->node);
	bool can_be = netif_running(dev) && netif_carrier_ok(dev);
	u32 address, netmask;

	if (!dostp_namespace_address(dev, &address, &netmask))
		return node;
	if (!node || !can_be)
		return node || can_be;
	return node->address != address || node->netmask != netmask ||
	       node->mtu != dostp_node_mtu(dev) || node->link != dostp_link_of(dev->dev_addr);
}

static int dostp_namespace_device(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct dostp_net *net = dostp_net(dev_net(dev));

	switch (event) {
	case NETDEV_GOING_DOWN:
		dostp_namespace_down(net, dev, true);
		break;
	case NETDEV_DOWN:
	case NETDEV_UNREGISTER:
	case NETDEV_CHANGENAME:
		dostp_namespace_down(net, dev, false);
		fallthrough;
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEADDR:
	case NETDEV_CHANGEMTU:
		if (event != NETDEV_UNREGISTER && !dostp_namespace_leaves &&
		    !strcmp(dev->name, net->interface) && dostp_namespace_has_changed(net, dev))
			dostp_namespace_renew(net);
	}
	return NOTIFY_DONE;
}

static int dostp_namespace_inet(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = ((struct in_ifaddr *)info)->ifa_dev->dev;
	struct dostp_net *net = dostp_net(dev_net(dev));

	if (!strcmp(dev->name, net->interface) && dostp_namespace_has_changed(net, dev))
		dostp_namespace_renew(net);
	return NOTIFY_DONE;
}

static struct notifier_block dostp_namespace_devices = { .notifier_call = dostp_namespace_device };
static struct notifier_block dostp_namespace_inets = { .notifier_call = dostp_namespace_inet };

static int __net_init dostp_namespace_begin(struct net *of)
{
	struct dostp_net *net = dostp_net(of);
	int error;

	net->net = of;
	net->group = -1;
	if (net_eq(of, &init_net))
		strscpy(net->interface, dostp_interface, sizeof(net->interface));
	spin_lock_init(&net->ports_lock);
	net->next_port = (u16)dostp_node_draw();
	net->counts = alloc_percpu(struct dostp_counts);
	if (!net->counts)
		return -ENOMEM;
	error = dostp_tell_init(of);
	if (error)
		goto no_files;
	error = dostp_settings_init(net);
	if (error)
		goto no_settings;
	return 0;

no_settings:
	dostp_tell_exit(of);
no_files:
	free_percpu(net->counts);
	return error;
}

static void __net_exit dostp_namespace_end(struct net *of)
{
	struct dostp_net *net = dostp_net(of);

	dostp_settings_exit(net);
	dostp_tell_exit(of);
	rtnl_lock();
	dostp_node_end(net, true);
	rtnl_unlock();
	kfree_sensitive(net->secrets);
	free_percpu(net->counts);
}

static struct pernet_operations dostp_namespace_operations = {
	.init = dostp_namespace_begin,
	.exit = dostp_namespace_end,
	.id = &dostp_namespace_id,
	.size = sizeof(struct dostp_net),
};

int dostp_namespace_init(void)
{
	int error = register_pernet_subsys(&dostp_namespace_operations);

	if (error)
		return error;
	error = register_netdevice_notifier(&dostp_namespace_devices);
	if (error)
		goto no_devices;
	error = register_inetaddr_notifier(&dostp_namespace_inets);
	if (error)
		goto no_inets;
	return 0;

no_inets:
	unregister_netdevice_notifier(&dostp_namespace_devices);
no_devices:
	unregister_pernet_subsys(&dostp_namespace_operations);
	return error;
}

void dostp_namespace_exit(void)
{
	unregister_inetaddr_notifier(&dostp_namespace_inets);
	rtnl_lock();
	dostp_namespace_leaves = true;
	rtnl_unlock();
	unregister_netdevice_notifier(&dostp_namespace_devices);
	unregister_pernet_subsys(&dostp_namespace_operations);
}
