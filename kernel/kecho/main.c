// SPDX-License-Identifier: GPL-2.0
/* Parameters, load and unload. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "kecho.h"

static ushort port = 12345;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "TCP port, on every address (12345)");

static int backlog = 4096;
module_param(backlog, int, 0444);
MODULE_PARM_DESC(backlog, "connections that may wait to be accepted (4096)");

static char *mode = "ready";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "kthread, wq-percpu, wq-unbound, ready or softirq (ready)");

static char *timers = "kernel";
module_param(timers, charp, 0444);
MODULE_PARM_DESC(timers, "how deadlines are kept: kernel, heap or wheel (kernel)");

static char *speaks = "echo";
module_param(speaks, charp, 0444);
MODULE_PARM_DESC(speaks, "echo, or lab: a number and a newline, or GET /N, ask for so many bytes (echo)");

static uint connections_max = 16384;
module_param(connections_max, uint, 0444);
MODULE_PARM_DESC(connections_max, "connections at once; further ones are closed (16384)");

static uint idle_s = 60;
module_param(idle_s, uint, 0444);
MODULE_PARM_DESC(idle_s, "seconds without a byte after which a connection is closed, 1 to 86400 (60)");

struct kecho_server kecho = {
	.lock = __SPIN_LOCK_UNLOCKED(kecho.lock),
	.connections = LIST_HEAD_INIT(kecho.connections),
	.gone = __WAIT_QUEUE_HEAD_INITIALIZER(kecho.gone),
};

static int kecho_main_counts_get(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "connections %u\naccepted %lld\nrefused %lld\nexpired %lld\n",
			  READ_ONCE(kecho.count), atomic64_read(&kecho.accepted), atomic64_read(&kecho.refused),
			  atomic64_read(&kecho.expired));
}

static const struct kernel_param_ops kecho_main_counts = { .get = kecho_main_counts_get };
module_param_cb(counts, &kecho_main_counts, NULL, 0444);
MODULE_PARM_DESC(counts, "read only: connections now, accepted, refused and expired ones");

static const char *const modes[] = {
	[KECHO_KTHREAD] = "kthread", [KECHO_WQ_PERCPU] = "wq-percpu", [KECHO_WQ_UNBOUND] = "wq-unbound",
	[KECHO_READY] = "ready",     [KECHO_SOFTIRQ] = "softirq",
};

static const char *const languages[] = { [KECHO_TALK_ECHO] = "echo", [KECHO_TALK_LABORATORY] = "lab" };

/* Understands the parameters, or says which one is wrong. */
static int __init kecho_main_read(void)
{
	int chosen = match_string(modes, ARRAY_SIZE(modes), mode);
	int kind = match_string(deadline_names, DEADLINE_KINDS, timers);
	int language = match_string(languages, ARRAY_SIZE(languages), speaks);

	if (chosen < 0) {
		pr_err("mode=%s: kthread, wq-percpu, wq-unbound, ready or softirq\n", mode);
		return -EINVAL;
	}
	if (kind < 0) {
		pr_err("timers=%s: kernel, heap or wheel\n", timers);
		return -EINVAL;
	}
	if (language < 0) {
		pr_err("speaks=%s: echo or lab\n", speaks);
		return -EINVAL;
	}
	if (!idle_s || idle_s > 86400) {
		pr_err("idle_s=%u: 1 to 86400\n", idle_s);
		return -EINVAL;
	}
	if (!connections_max || connections_max > 1000000) {
		pr_err("connections_max=%u: 1 to 1000000\n", connections_max);
		return -EINVAL;
	}
	if (backlog < 1) {
		pr_err("backlog=%d: at least 1\n", backlog);
		return -EINVAL;
	}
	kecho.mode = chosen;
	kecho.timers = kind;
	kecho.language = language;
	kecho.connections_max = connections_max;
	kecho.idle_jiffies = idle_s * HZ;
	return 0;
}

static int __init kecho_main_init(void)
{
	int error = kecho_main_read();

	if (error)
		return error;
	error = kecho_connection_init();
	if (error)
		return error;
	error = kecho_modes_init();
	if (error)
		goto no_modes;
	error = kecho_listen_begin(port, backlog);
	if (error) {
		pr_err("port=%u: cannot listen (error %d)\n", port, error);
		goto no_listener;
	}
	pr_info("port %u, %s\n", port, mode);
	return 0;

no_listener:
	kecho_modes_exit();
no_modes:
	kecho_connection_exit();
	return error;
}

static void __exit kecho_main_exit(void)
{
	spin_lock(&kecho.lock);
	kecho.is_stopping = true;
	spin_unlock(&kecho.lock);
	kecho_listen_end();
	kecho_connection_close_all();
	kecho_modes_exit();
	kecho_connection_exit();
}

module_init(kecho_main_init);
module_exit(kecho_main_exit);

MODULE_DESCRIPTION("Echo server in the kernel, in five ways");
MODULE_LICENSE("GPL");
