// SPDX-License-Identifier: GPL-2.0
/* A node: its begin, its end, and what time brings. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/slab.h>

#include "keys.h"

/* How long nothing need be looked at where nothing is under way. */
#define DOSTP_NODE_IDLE (5 * HZ)

u64 dostp_node_draw(void)
{
	return get_random_u64() ?: 1;
}

u16 dostp_node_mtu(const struct net_device *dev)
{
	return min_t(u32, READ_ONCE(dev->mtu), DOSTP_MTU_MAX);
}

bool dostp_node_in_trial(const struct dostp_node *node)
{
	return time_before(jiffies, node->started + DOSTP_TRIAL);
}

void dostp_node_kick(struct dostp_node *node, unsigned long delay)
{
	if (!time_before(jiffies + delay, node->tick_at))
		return;
	node->tick_at = jiffies + delay;
	if (node->has_tick)
		mod_delayed_work(dostp_queue, &node->tick, delay);
}

void dostp_node_unlock(struct dostp_node *node)
{
	struct sk_buff_head frames;
	struct sk_buff *skb;

	if (skb_queue_empty(&node->outgoing)) {
		spin_unlock_bh(&node->lock);
		return;
	}
	__skb_queue_head_init(&frames);
	skb_queue_splice_init(&node->outgoing, &frames);
	spin_unlock_bh(&node->lock);
	while ((skb = __skb_dequeue(&frames)))
		dev_queue_xmit(skb);
}

static void dostp_node_tick(struct work_struct *work)
{
	struct dostp_node *node = container_of(to_delayed_work(work), struct dostp_node, tick);
	unsigned long now = jiffies, next = DOSTP_NODE_IDLE;

	spin_lock_bh(&node->lock);
	if (node->is_refused)
		goto unlock;
	if (node->hello_again && time_after_eq(now, node->hello_again_at)) {
		node->hello_again = false;
		dostp_control_hello(node, node->hello_challenge);
	} else if (time_after_eq(now, node->announce_at)) {
		dostp_control_hello(node, 0);
	}
	dostp_reassemble_expire(node);
	next = min(next, dostp_control_look(node));
	if (time_after_eq(now, node->look_at))
		node->look_at = now + dostp_peer_look(node);
	next = min(next, node->look_at - now);
	if (node->hello_again)
		next = min(next, node->hello_again_at - now);
	if (!list_empty(&node->messages))
		next = min_t(unsigned long, next, DOSTP_MESSAGE_AGE);
unlock:
	node->tick_at = jiffies + next;
	if (node->has_tick)
		mod_delayed_work(dostp_queue, &node->tick, next);
	dostp_node_unlock(node);
}

static void dostp_node_free(struct dostp_node *node)
{
	dostp_keys_end(node->keys);
	kvfree(node->table);
	kvfree(node->window);
	kfree(node);
}

/* Memory of a node, in the account of whoever makes it begin; NULL if there is none. */
static struct dostp_node *dostp_node_alloc(void)
{
	struct dostp_node *node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);

	if (!node)
		return NULL;
	node->table = kvcalloc(1 << 16, sizeof(*node->table), GFP_KERNEL_ACCOUNT);
	node->window = kvzalloc(sizeof(*node->window), GFP_KERNEL_ACCOUNT);
	if (node->table && node->window)
		return node;
	dostp_node_free(node);
	return NULL;
}

/* Sets up what protects the node's frames: keys, a checksum, or nothing. False: no memory for keys. */
static bool dostp_node_protect(const struct dostp_net *net, struct dostp_node *node)
{
	if (net->secrets) {
		node->keys = dostp_keys_begin(net->secrets, node->boot, node->low);
		if (!node->keys)
			return false;
		node->flags = DOSTP_AUTH;
		node->trailer = dostp_keys_trailer(node->keys, false);
	} else if (net->sum) {
		node->flags = DOSTP_SUM;
		node->trailer = DOSTP_SUM_BYTES;
	}
	return true;
}

int dostp_node_start(struct dostp_net *net, struct net_device *dev, u32 address, u32 netmask,
		     unsigned long since)
{
	struct dostp_node *node = dostp_node_alloc();

	if (!node)
		return -ENOMEM;
	node->boot = dostp_node_draw();
	node->low = address & 0xffff;
	if (!dostp_node_protect(net, node)) {
		dostp_node_free(node);
		return -ENOMEM;
	}
	node->net = net;
	node->dev = dev;
	dev_hold(dev);
	node->address = address;
	node->netmask = netmask;
	node->mtu = dostp_node_mtu(dev);
	node->cluster = net->cluster;
	node->link = dostp_link_of(dev->dev_addr);
	node->window->seed = dostp_node_draw();
	node->window->age = HZ;
	spin_lock_init(&node->lock);
	INIT_LIST_HEAD(&node->peers);
	INIT_LIST_HEAD(&node->messages);
	__skb_queue_head_init(&node->outgoing);
	__skb_queue_head_init(&node->replies);
	node->started = since;
	node->full_until = jiffies;
	/* The HELLO of the start is sent twice, and the answers to it are spread over time. */
	node->hello_until = jiffies + 2 * DOSTP_TRIAL;
	node->look_at = jiffies + DOSTP_NODE_IDLE;
	node->tick_at = jiffies + DOSTP_NODE_IDLE;
	INIT_DELAYED_WORK(&node->tick, dostp_node_tick);
	node->packet_type.type = htons(dostp_ether_type);
	node->packet_type.dev = dev;
	node->packet_type.func = dostp_receive;
	node->packet_type.af_packet_priv = node;

	node->has_tick = true;
	dev_add_pack(&node->packet_type);
	spin_lock_bh(&node->lock);
	node->hello_challenge = dostp_node_draw();
	get_random_bytes(&node->introductions, sizeof(node->introductions));
	node->hello_again = true;
	node->hello_again_at = jiffies + DOSTP_HELLO_AGAIN;
	dostp_control_hello(node, node->hello_challenge);
	dostp_node_kick(node, DOSTP_HELLO_AGAIN);
	dostp_node_unlock(node);
	rcu_assign_pointer(net->node, node);
	pr_info("%s: address %pI4, low bits 0x%04x\n", dev->name, &(__be32){ htonl(address) }, node->low);
	return 0;
}

void dostp_node_end(struct dostp_net *net, bool says_bye)
{
	struct dostp_node *node = rcu_dereference_protected(net->node, lockdep_rtnl_is_held());
	struct dostp_peer *peer, *next;

	if (!node)
		return;
	rcu_assign_pointer(net->node, NULL);
	dev_remove_pack(&node->packet_type); /* nobody receives any more, and no sender has the node */
	spin_lock_bh(&node->lock);
	node->has_tick = false;
	spin_unlock_bh(&node->lock);
	cancel_delayed_work_sync(&node->tick);
	spin_lock_bh(&node->lock);
	__skb_queue_purge(&node->replies);
	__skb_queue_purge(&node->outgoing);
	if (says_bye && !node->is_refused)
		dostp_control_push(node, DOSTP_BYE, DOSTP_LINK_EVERYBODY, DOSTP_EVERYBODY, 0, 0);
	list_for_each_entry_safe(peer, next, &node->peers, all)
		dostp_peer_remove(node, peer);
	dostp_node_unlock(node);
	dev_put(node->dev);
	dostp_node_free(node);
}
