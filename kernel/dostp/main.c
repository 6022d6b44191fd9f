// SPDX-License-Identifier: GPL-2.0
/* Parameters, load and unload. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "dostp.h"

ushort dostp_family = 19;
module_param_named(family, dostp_family, ushort, 0444);
MODULE_PARM_DESC(family, "number of the socket family (19, which no kernel since 2012 uses)");

ushort dostp_ether_type = ETH_P_802_EX1;
module_param_named(ether_type, dostp_ether_type, ushort, 0444);
MODULE_PARM_DESC(ether_type, "EtherType of frames (0x88b5)");

char *dostp_interface = "";
module_param_named(interface, dostp_interface, charp, 0444);
MODULE_PARM_DESC(interface, "net.dostp.interface of the first namespace (none)");

struct proto dostp_proto = {
	.name = "DOSTP",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct dostp_sock),
};

struct workqueue_struct *dostp_queue;

static struct net_proto_family dostp_main_family;

/* Memory; undone by dostp_main_free whatever of it was had. */
static int __init dostp_main_alloc(void)
{
	dostp_queue = alloc_workqueue("dostp", WQ_UNBOUND, 0);
	if (!dostp_queue)
		return -ENOMEM;
	return dostp_peer_init() ?: dostp_reassemble_init();
}

static void dostp_main_free(void)
{
	/* A cache that still has an object is a warning of the kernel's. */
	dostp_reassemble_exit();
	dostp_peer_exit();
	if (dostp_queue)
		destroy_workqueue(dostp_queue);
}

static int __init dostp_main_init(void)
{
	int error;

	if (!dostp_family || dostp_family >= AF_MAX || dostp_ether_type < ETH_P_802_3_MIN) {
		pr_err("family=%u ether_type=0x%x: 1 to %u, and 0x600 at least\n", dostp_family,
		       dostp_ether_type, AF_MAX - 1);
		return -EINVAL;
	}
	error = dostp_main_alloc() ?: proto_register(&dostp_proto, 1);
	if (error)
		goto no_proto;
	error = dostp_namespace_init();
	if (error)
		goto no_namespaces;
	dostp_main_family = dostp_socket_family;
	dostp_main_family.family = dostp_family;
	error = sock_register(&dostp_main_family);
	if (error) {
		pr_err("family=%u is taken (error %d); 12, 19, 22 and 25 are mostly free\n", dostp_family, error);
		goto no_family;
	}
	return 0;

no_family:
	dostp_namespace_exit();
no_namespaces:
	proto_unregister(&dostp_proto);
no_proto:
	dostp_main_free();
	return error;
}

static void __exit dostp_main_exit(void)
{
	sock_unregister(dostp_family);
	dostp_namespace_exit();
	proto_unregister(&dostp_proto);
	dostp_main_free();
}

module_init(dostp_main_init);
module_exit(dostp_main_exit);

MODULE_DESCRIPTION("DOSTP: datagrams between the nodes of one LAN, without IP");
MODULE_LICENSE("GPL");
