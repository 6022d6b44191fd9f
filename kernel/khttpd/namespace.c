// SPDX-License-Identifier: GPL-2.0
/*
 * One instance a network namespace. Its file /proc/net/khttpd says where khttpd listens there, and whoever
 * writes addresses to it has khttpd listen there.
 *
 * Neither a listener nor a connection keeps its namespace: both end with it. A connection that is closed
 * before keeps it from then on, because TCP stops the timers of a socket that does not: what a packet that
 * was lost had brought would never be sent again, and the connection never be freed. So does one that a
 * process takes, as any socket of a process.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "khttpd.h"

static unsigned int id;

struct khttpd_namespace *khttpd_namespace_of(const struct net *net)
{
	return net_generic(net, id);
}

bool khttpd_namespace_keep(struct socket *socket)
{
	struct sock *sk = socket->sk;
	struct net *net = sock_net(sk);

	if (sk->sk_net_refcnt)
		return true;
	if (!maybe_get_net(net))
		return false;
	/* The flag shares its byte with options of the socket. */
	lock_sock(sk);
#ifdef HAVE_NET_REFCNT_UPGRADE
	sk_net_refcnt_upgrade(sk);
	release_sock(sk);
	put_net(net);
#else
	sk->sk_net_refcnt = 1;
	release_sock(sk);
	netns_tracker_alloc(net, &sk->ns_tracker, GFP_KERNEL);
	sock_inuse_add(net, 1);
#endif
	return true;
}

void khttpd_namespace_release(struct socket *socket)
{
	/* What has no time left is reset. */
	if (!khttpd_namespace_keep(socket))
		sock_no_linger(socket->sk);
	sock_release(socket);
}

static int khttpd_namespace_show(struct seq_file *file, void *data)
{
	struct khttpd_namespace *namespace = khttpd_namespace_of(seq_file_single_net(file));
	unsigned int i;

	seq_puts(file, "listen ");
	mutex_lock(&namespace->lock);
	for (i = 0; i < namespace->listeners_count; i++)
		seq_printf(file, "%s%pISpc", i ? "," : "", &namespace->listeners[i].address);
	mutex_unlock(&namespace->lock);
	seq_printf(file, "\nconnections %u\n", READ_ONCE(namespace->count));
	return 0;
}

/*
 * The folder is the machine's, whatever the namespace: root of a user namespace alone may not give it away.
 */
static int khttpd_namespace_write(struct file *file, char *text, size_t length)
{
	struct seq_file *open = file->private_data;

	if (!file_ns_capable(file, &init_user_ns, CAP_NET_ADMIN))
		return -EPERM;
	return khttpd_listen_set(khttpd_namespace_of(seq_file_single_net(open)), text);
}

static int __net_init khttpd_namespace_begin(struct net *net)
{
	struct khttpd_namespace *namespace = khttpd_namespace_of(net);

	namespace->net = net;
	INIT_LIST_HEAD(&namespace->connections);
	khttpd_listen_begin(namespace);
	return proc_create_net_single_write(KBUILD_MODNAME, 0644, net->proc_net, khttpd_namespace_show,
					    khttpd_namespace_write, NULL) ?
		       0 :
		       -ENOMEM;
}

/*
 * Closes what khttpd has in the namespace, before anything of the namespace is taken away, so that peers can
 * still be told: newer kernels take its routes away before they call any `exit`.
 */
static void __net_exit khttpd_namespace_end(struct net *net)
{
	struct khttpd_namespace *namespace = khttpd_namespace_of(net);

	/* Waits for those that read and write. */
	remove_proc_entry(KBUILD_MODNAME, net->proc_net);
	khttpd_listen_end(namespace);
	khttpd_connection_close_all(namespace);
}

/* Registered as operations of a device: those end before all others of the network. */
static struct pernet_operations operations = {
	.init = khttpd_namespace_begin,
	.pre_exit = khttpd_namespace_end,
	.id = &id,
	.size = sizeof(struct khttpd_namespace),
};

int khttpd_namespace_init(const char *addresses)
{
	int error = register_pernet_device(&operations);

	if (error)
		return error;
	error = khttpd_listen_set(khttpd_namespace_of(current->nsproxy->net_ns), addresses);
	if (error)
		unregister_pernet_device(&operations);
	return error;
}

void khttpd_namespace_exit(void)
{
	unregister_pernet_device(&operations);
}
