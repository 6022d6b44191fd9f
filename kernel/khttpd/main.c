// SPDX-License-Identifier: GPL-2.0
/*
 * khttpd, a server of files in the kernel: parameters, load and unload.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>

#include "cache.h"
#include "gzip.h"
#include "khttpd.h"

struct khttpd_server khttpd;

static char *root;
module_param(root, charp, 0444);
MODULE_PARM_DESC(root, "folder to serve (must be given)");

static char *listen = "[::]:80";
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen,
		 "addresses with ports in the namespace that loads the module, separated by commas ([::]:80)");

static char *mode = "ready";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "who serves a connection: kthread, wq, ready or softirq (ready)");

static char *send = "whole";
module_param(send, charp, 0444);
MODULE_PARM_DESC(send,
		 "how an answer is sent: whole, or in pieces, a call for each line, to be compared (whole)");

static char *timers = "kernel";
module_param(timers, charp, 0444);
MODULE_PARM_DESC(timers, "how deadlines are kept: kernel, heap or wheel (kernel)");

static bool listing;
module_param(listing, bool, 0444);
MODULE_PARM_DESC(listing, "list folders that have no index.html (N)");

static bool gzip = true;
module_param(gzip, bool, 0444);
MODULE_PARM_DESC(gzip, "keep text in gzip as well, for peers that take it (Y)");

static char *hand_over;
module_param(hand_over, charp, 0444);
MODULE_PARM_DESC(hand_over,
		 "have a process at /dev/khttpd take what is not served here, and these paths, "
		 "separated by commas (not given)");

static unsigned int connections = 4096;
module_param(connections, uint, 0444);
MODULE_PARM_DESC(connections,
		 "most connections at a time, 1 to 1000000; in mode wq at most 512 (4096)");

static unsigned int memory_mib = 64;
module_param(memory_mib, uint, 0444);
MODULE_PARM_DESC(memory_mib, "most memory for what peers send and are sent, 1 to 65536 (64)");

static unsigned int cache_kib = 16384;
module_param(cache_kib, uint, 0444);
MODULE_PARM_DESC(cache_kib,
		 "most memory for small files and listings that were served lately, 0 to 67108864 (16384)");

static unsigned int expire_s;
module_param(expire_s, uint, 0444);
MODULE_PARM_DESC(expire_s,
		 "how long what was kept is used at most, 1 to 31536000; 0: until it changes (0)");

static unsigned int head_ms = 10000;
module_param(head_ms, uint, 0444);
MODULE_PARM_DESC(head_ms, "how long the head of a request may take, 100 to 3600000 (10000)");

static unsigned int idle_ms = 15000;
module_param(idle_ms, uint, 0444);
MODULE_PARM_DESC(idle_ms, "how long a connection may be idle, 100 to 3600000 (15000)");

static unsigned int write_ms = 30000;
module_param(write_ms, uint, 0444);
MODULE_PARM_DESC(write_ms, "how long a peer may take nothing of an answer, 100 to 3600000 (30000)");

static int khttpd_main_counts(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer,
			  "connections %u\naccepted %lld\nrefused %lld\nanswered %lld\ncache_hits %lld\n"
			  "encoded %lld\nhanded_over %lld\nmemory_bytes %ld\ncache_bytes %lu\n",
			  READ_ONCE(khttpd.count), atomic64_read(&khttpd.accepted),
			  atomic64_read(&khttpd.refused), atomic64_read(&khttpd.requests),
			  atomic64_read(&khttpd.hits), atomic64_read(&khttpd.encoded),
			  atomic64_read(&khttpd.handed_over), atomic_long_read(&khttpd.memory),
			  khttpd_cache_bytes());
}

static const struct kernel_param_ops counts = { .get = khttpd_main_counts };
module_param_cb(counts, &counts, NULL, 0444);
MODULE_PARM_DESC(counts, "read only: connections now; accepted, refused and answered so far; bytes held");

static const char *const modes[] = {
	[KHTTPD_KTHREAD] = "kthread",
	[KHTTPD_WQ] = "wq",
	[KHTTPD_READY] = "ready",
	[KHTTPD_SOFTIRQ] = "softirq",
};

static int __init khttpd_main_in_range(const char *name, unsigned int value, unsigned int least,
				       unsigned int most)
{
	if (value >= least && value <= most)
		return 0;
	pr_err("%s=%u: not within %u and %u\n", name, value, least, most);
	return -ERANGE;
}

static int __init khttpd_main_mode(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		khttpd.mode = i;
		if (sysfs_streq(modes[i], mode))
			return 0;
	}
	pr_err("mode=%s: not one of kthread, wq, ready, softirq\n", mode);
	return -EINVAL;
}

static int __init khttpd_main_timers(void)
{
	int kind = match_string(deadline_names, DEADLINE_KINDS, timers);

	if (kind < 0)
		pr_err("timers=%s: not one of kernel, heap, wheel\n", timers);
	else
		khttpd.timers = kind;
	return min(kind, 0);
}

/* Pieces are sent by whoever may go on later, which a softirq may not. */
static int __init khttpd_main_send(void)
{
	khttpd.in_pieces = sysfs_streq(send, "pieces");
	if (!khttpd.in_pieces && !sysfs_streq(send, "whole")) {
		pr_err("send=%s: not one of whole, pieces\n", send);
		return -EINVAL;
	}
	if (khttpd.in_pieces && khttpd.mode == KHTTPD_SOFTIRQ) {
		pr_err("send=%s: not in mode softirq\n", send);
		return -EINVAL;
	}
	return 0;
}

static int __init khttpd_main_parameters(void)
{
	int error = khttpd_main_mode();

	error = error ?: khttpd_main_send();
	error = error ?: khttpd_main_timers();
	if (error)
		return error;
	khttpd.listing = listing;
	khttpd.gzip = gzip;
	khttpd.connections_max = connections;
	khttpd.memory_max = (long)memory_mib << 20;
	khttpd.expire = (unsigned long)expire_s * HZ;
	khttpd.deadlines_ms[KHTTPD_HEAD_DEADLINE] = head_ms;
	khttpd.deadlines_ms[KHTTPD_IDLE_DEADLINE] = idle_ms;
	khttpd.deadlines_ms[KHTTPD_BODY_DEADLINE] = idle_ms;
	khttpd.deadlines_ms[KHTTPD_SEND_DEADLINE] = write_ms;
	khttpd.deadlines_ms[KHTTPD_LINGER_DEADLINE] = KHTTPD_LINGER_MS;
	khttpd.deadlines_ms[KHTTPD_OFFER_DEADLINE] = KHTTPD_OFFER_MS;
	error = khttpd_main_in_range("connections", connections, 1, 1000000);
	error = error ?: khttpd_main_in_range("memory_mib", memory_mib, 1, 65536);
	error = error ?: khttpd_main_in_range("cache_kib", cache_kib, 0, 67108864);
	error = error ?: khttpd_main_in_range("expire_s", expire_s, 0, 31536000);
	error = error ?: khttpd_main_in_range("head_ms", head_ms, 100, 3600000);
	error = error ?: khttpd_main_in_range("idle_ms", idle_ms, 100, 3600000);
	return error ?: khttpd_main_in_range("write_ms", write_ms, 100, 3600000);
}

/*
 * No connection is accepted any more, then every one is closed and freed, then those who served
 * are gone, then every callback that had begun has ended. Only then may the text go.
 */
static void khttpd_main_stop(void)
{
	WRITE_ONCE(khttpd.is_stopping, true);
	khttpd_namespace_exit();
	khttpd_listen_exit();
	khttpd_modes_exit();
	synchronize_net();
	khttpd_connection_exit();
	khttpd_cache_exit();
	khttpd_gzip_exit();
	khttpd_handover_exit();
	khttpd_file_exit();
	khttpd_memory_exit();
	WARN(atomic_long_read(&khttpd.memory), "khttpd: %ld bytes are in nobody's account",
	     atomic_long_read(&khttpd.memory));
}

static int __init khttpd_main_start(void)
{
	int error = khttpd_file_init(root);

	if (error)
		return error;
	error = khttpd_handover_init(hand_over);
	if (error)
		goto file;
	error = khttpd_cache_init((unsigned long)cache_kib << 10);
	if (error)
		goto handover;
	error = khttpd_connection_init();
	if (error)
		goto cache;
	error = khttpd_modes_init();
	if (error)
		goto connection;
	error = khttpd_listen_init();
	if (error)
		goto modes;
	error = khttpd_namespace_init(listen);
	if (!error)
		return 0;
	khttpd_listen_exit();
modes:
	khttpd_modes_exit();
connection:
	khttpd_connection_exit();
	khttpd_memory_exit();
cache:
	khttpd_cache_exit();
handover:
	khttpd_handover_exit();
file:
	khttpd_file_exit();
	return error;
}

static int __init khttpd_main_init(void)
{
	int error = khttpd_main_parameters();

	error = error ?: khttpd_main_start();
	if (error)
		return error;
	error = khttpd_handover_begin();
	if (error) {
		khttpd_main_stop();
		return error;
	}
	pr_info("serves %s on %s\n", root, modes[khttpd.mode]);
	return 0;
}

static void __exit khttpd_main_exit(void)
{
	khttpd_handover_end();
	khttpd_main_stop();
	pr_info("accepted %lld, refused %lld, answered %lld\n", atomic64_read(&khttpd.accepted),
		atomic64_read(&khttpd.refused), atomic64_read(&khttpd.requests));
}

module_init(khttpd_main_init);
module_exit(khttpd_main_exit);

MODULE_DESCRIPTION("Server of files");
MODULE_LICENSE("GPL");
