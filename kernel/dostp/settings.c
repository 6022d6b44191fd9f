// SPDX-License-Identifier: GPL-2.0
/* Settings of a namespace: /proc/sys/net/dostp. Writing one begins the node anew. */
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "dostp.h"

static int dostp_settings_zero;
static int dostp_settings_one = 1;
static int dostp_settings_cluster_max = 255;
static int dostp_settings_nobody = -1;

static int dostp_settings_renew(struct dostp_net *net)
{
	int error;

	rtnl_lock();
	error = dostp_namespace_renew(net);
	rtnl_unlock();
	return error;
}

static int dostp_settings_interface(dostp_table *table, int write, void *buffer, size_t *length,
				    loff_t *position)
{
	struct dostp_net *net = table->extra1;
	char name[IFNAMSIZ];
	struct ctl_table copy = { .data = name, .maxlen = sizeof(name) };
	int error;

	rtnl_lock();
	strscpy(name, net->interface, sizeof(name));
	rtnl_unlock();
	error = proc_dostring(&copy, write, buffer, length, position);
	if (error || !write)
		return error;
	rtnl_lock();
	strscpy(net->interface, name, sizeof(net->interface));
	error = dostp_namespace_renew(net);
	rtnl_unlock();
	return error;
}

static int dostp_settings_number(dostp_table *table, int write, void *buffer, size_t *length,
				 loff_t *position)
{
	int error = proc_dointvec_minmax(table, write, buffer, length, position);

	if (!error && write)
		error = dostp_settings_renew(table->data - (table->procname[0] == 'c' ?
							    offsetof(struct dostp_net, cluster) :
							    offsetof(struct dostp_net, sum)));
	return error;
}

/* Each entry's `data` is that of one namespace: filled in below. */
static const struct ctl_table dostp_settings_template[] = {
	{ .procname = "interface", .maxlen = IFNAMSIZ, .mode = 0644, .proc_handler = dostp_settings_interface },
	{ .procname = "cluster", .maxlen = sizeof(int), .mode = 0644, .proc_handler = dostp_settings_number,
	  .extra1 = &dostp_settings_zero, .extra2 = &dostp_settings_cluster_max },
	{ .procname = "sum", .maxlen = sizeof(int), .mode = 0644, .proc_handler = dostp_settings_number,
	  .extra1 = &dostp_settings_zero, .extra2 = &dostp_settings_one },
	{ .procname = "group", .maxlen = sizeof(int), .mode = 0644, .proc_handler = proc_dointvec_minmax,
	  .extra1 = &dostp_settings_nobody },
	{ }
};

int dostp_settings_init(struct dostp_net *net)
{
	struct ctl_table *table =
		kmemdup(dostp_settings_template, sizeof(dostp_settings_template), GFP_KERNEL);

	if (!table)
		return -ENOMEM;
	table[0].data = net->interface;
	table[0].extra1 = net;
	table[1].data = &net->cluster;
	table[2].data = &net->sum;
	table[3].data = &net->group;
	net->settings = table;
#ifdef HAVE_SIZED_TABLE
	net->settings_header = register_net_sysctl_sz(net->net, "net/dostp", table,
						      ARRAY_SIZE(dostp_settings_template) - 1);
#else
	net->settings_header = register_net_sysctl(net->net, "net/dostp", table);
#endif
	if (net->settings_header)
		return 0;
	kfree(table);
	return -ENOMEM;
}

void dostp_settings_exit(struct dostp_net *net)
{
	unregister_net_sysctl_table(net->settings_header);
	kfree(net->settings);
}
