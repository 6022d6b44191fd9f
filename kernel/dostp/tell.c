// SPDX-License-Identifier: GPL-2.0
/* What people and tests can read: /proc/net/dostp/{stats,peers,sockets,keys}. */
#include <linux/proc_fs.h>
#include <linux/seq_file_net.h>

#include "keys.h"

static u64 dostp_tell_sum(const struct dostp_net *net, size_t offset)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((u8 *)per_cpu_ptr(net->counts, cpu) + offset);
	return sum;
}

static const struct {
	const char *name;
	size_t offset;
} dostp_tell_passed[] = {
	{ "frames_received", offsetof(struct dostp_counts, frames_received) },
	{ "control_received", offsetof(struct dostp_counts, control_received) },
	{ "control_sent", offsetof(struct dostp_counts, control_sent) },
	{ "messages_received", offsetof(struct dostp_counts, messages_received) },
	{ "messages_sent", offsetof(struct dostp_counts, messages_sent) },
};

/* A line for each count: its name and the number. */
static int dostp_tell_stats(struct seq_file *file, void *unused)
{
	struct dostp_net *net = dostp_net(seq_file_single_net(file));
	struct dostp_node *node;

	for (size_t i = 0; i < ARRAY_SIZE(dostp_tell_passed); i++)
		seq_printf(file, "%s %llu\n", dostp_tell_passed[i].name,
			   dostp_tell_sum(net, dostp_tell_passed[i].offset));
	for (int fault = 0; fault < DOSTP_FAULTS; fault++)
		seq_printf(file, "dropped_%s %llu\n", dostp_fault_names[fault],
			   dostp_tell_sum(net, offsetof(struct dostp_counts, drops) + fault * sizeof(u64)));
	rcu_read_lock();
	node = rcu_dereference(net->node);
	if (node) {
		seq_printf(file, "peers %u\npeers_asked %u\n", node->known, node->asked);
		seq_printf(file, "messages_under_way %u\nbytes_under_way %u\n", node->messages_count, node->bytes);
		seq_printf(file, "refused %u\n", node->is_refused);
		seq_printf(file, "replay_windows %u\n", node->keys ? dostp_keys_windows(node->keys) : 0);
	}
	rcu_read_unlock();
	return 0;
}

static void dostp_tell_peer(struct seq_file *file, const struct dostp_node *node,
			    const struct dostp_peer *peer)
{
	u32 address = (node->address & 0xffff0000) | peer->address;

	seq_printf(file, "%pI4 %pM boot 0x%016llx mtu %u heard_ms %u %s\n", &(__be32){ htonl(address) },
		   &peer->link, peer->boot, dostp_peer_mtu(node, peer), jiffies_to_msecs(jiffies - peer->heard),
		   peer->is_stale ? "stale" : "fresh");
}

/* A line for each peer. */
static int dostp_tell_peers(struct seq_file *file, void *unused)
{
	struct dostp_net *net = dostp_net(seq_file_single_net(file));
	struct dostp_peer *peer;
	struct dostp_node *node;

	rcu_read_lock();
	node = rcu_dereference(net->node);
	if (node) {
		spin_lock_bh(&node->lock);
		list_for_each_entry(peer, &node->peers, all)
			if (peer->is_known)
				dostp_tell_peer(file, node, peer);
		spin_unlock_bh(&node->lock);
	}
	rcu_read_unlock();
	return 0;
}

/* A line for each socket that is bound: its port and what waits in its queues. */
static int dostp_tell_sockets(struct seq_file *file, void *unused)
{
	struct dostp_net *net = dostp_net(seq_file_single_net(file));
	struct sock *sk;

	rcu_read_lock();
	for (int chain = 0; chain < DOSTP_PORTS_HASH; chain++)
		sk_for_each_rcu(sk, &net->ports[chain])
			seq_printf(file, "port %u receive_bytes %d send_bytes %d dropped %d\n", dostp_sk(sk)->port,
				   sk_rmem_alloc_get(sk), sk_wmem_alloc_get(sk), atomic_read(&sk->sk_drops));
	rcu_read_unlock();
	return 0;
}

int dostp_tell_init(struct net *net)
{
	struct proc_dir_entry *folder = proc_net_mkdir(net, "dostp", net->proc_net);

	if (folder && proc_create_net_single("stats", 0444, folder, dostp_tell_stats, NULL) &&
	    proc_create_net_single("peers", 0444, folder, dostp_tell_peers, NULL) &&
	    proc_create_net_single("sockets", 0444, folder, dostp_tell_sockets, NULL) &&
	    proc_create_net_single_write("keys", 0600, folder, dostp_secrets_show, dostp_secrets_write, NULL))
		return 0;
	dostp_tell_exit(net);
	return -ENOMEM;
}

void dostp_tell_exit(struct net *net)
{
	remove_proc_subtree("dostp", net->proc_net);
}
