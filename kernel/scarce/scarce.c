// SPDX-License-Identifier: GPL-2.0
/*
 * Makes another module's calls for memory fail, one at a time, for tests in the emulated machine.
 *
 * The other module stays as it is shipped: probes stand at the beginning of functions of the kernel that
 * need memory, and a call counts where it returns into the other module's text. The call whose number was
 * written to `fail`, or the next one of the function whose name was written there, does not happen, and gives
 * what it gives when there is no memory.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/string.h>

static char *target = "";
module_param(target, charp, 0444);
MODULE_PARM_DESC(target, "name of the module whose calls are counted (must be given)");

/* Functions that need memory, under their names in every kernel, and what they give when there is none. */
static const struct {
	const char *name;
	long failure;
} functions[] = {
	{ "__kmalloc", 0 },
	{ "__kmalloc_noprof", 0 },
	{ "__kmalloc_cache_noprof", 0 },
	{ "__kmalloc_large_noprof", 0 },
	{ "kmalloc_trace", 0 },
	{ "kmalloc_large", 0 },
	{ "kvmalloc_node", 0 },
	{ "__kvmalloc_node_noprof", 0 },
	{ "__vmalloc", 0 },
	{ "__vmalloc_noprof", 0 },
	{ "kmem_cache_alloc", 0 },
	{ "kmem_cache_alloc_noprof", 0 },
	{ "kmem_cache_create", 0 },
	{ "__kmem_cache_create_args", 0 },
	{ "kstrdup", 0 },
	{ "kstrdup_noprof", 0 },
	{ "__alloc_percpu", 0 },
	{ "pcpu_alloc_noprof", 0 },
	{ "alloc_workqueue", 0 },
	{ "alloc_workqueue_noprof", 0 },
	{ "prepare_kernel_cred", 0 },
	{ "groups_alloc", 0 },
	{ "kthread_create_on_node", -ENOMEM },
	{ "misc_register", -ENOMEM },
	{ "sock_create", -ENOMEM },
	{ "sock_create_kern", -ENOMEM },
	{ "register_pernet_device", -ENOMEM },
	{ "proc_create_net_single_write", 0 },
	{ "kernel_bind", -ENOMEM },
	{ "kernel_listen", -ENOMEM },
	{ "kernel_accept", -ENOMEM },
	{ "kernel_sendmsg", -ENOMEM },
	{ "tcp_sendmsg_locked", -ENOMEM },
	{ "sock_sendmsg", -ENOMEM },
	{ "kernel_sendpage", -ENOMEM },
	{ "kern_path", -ENOMEM },
	{ "vfs_path_lookup", -ENOMEM },
	{ "vfs_getattr", -ENOMEM },
	{ "dentry_open", -ENOMEM },
	{ "kernel_read", -ENOMEM },
	{ "iterate_dir", -ENOMEM },
};

static struct kprobe probes[ARRAY_SIZE(functions)];
static bool called[ARRAY_SIZE(functions)];
static const struct module *watched;
static atomic_t calls;
/* The number of a call, or the name of a function; neither: no call fails. */
static unsigned int fail;
static const char *fail_name;
static const char *failed;

/* What a call that does not happen runs instead. Leaves the register with the result alone. */
static __used noinline notrace void scarce_return(void)
{
}

static int scarce_called(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long caller = *(unsigned long *)regs->sp;
	const struct module *module = READ_ONCE(watched);
	const char *name = probe->symbol_name;

	if (!module || !within_module(caller, module))
		return 0;
	WRITE_ONCE(called[probe - probes], true);
	if (atomic_inc_return(&calls) != READ_ONCE(fail) && name != READ_ONCE(fail_name))
		return 0;
	/* One call only. */
	if (cmpxchg(&failed, NULL, name))
		return 0;
	regs->ax = functions[probe - probes].failure;
	regs->ip = (unsigned long)scarce_return;
	return 1;
}

/* Tells the kernel that the probe may go on elsewhere, which it could not otherwise. */
static void scarce_after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

/* The function of this name, or NULL. */
static const char *scarce_find(const char *text)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++)
		if (sysfs_streq(text, functions[i].name))
			return functions[i].name;
	return NULL;
}

static int scarce_fail_set(const char *text, const struct kernel_param *parameter)
{
	const char *name = scarce_find(text);
	unsigned int number = 0;
	int error = name ? 0 : kstrtouint(text, 0, &number);

	if (error)
		return error;
	WRITE_ONCE(fail, 0);
	WRITE_ONCE(fail_name, NULL);
	atomic_set(&calls, 0);
	WRITE_ONCE(failed, NULL);
	WRITE_ONCE(fail, number);
	WRITE_ONCE(fail_name, name);
	return 0;
}

static const struct kernel_param_ops scarce_fail = { .set = scarce_fail_set, .get = param_get_uint };
module_param_cb(fail, &scarce_fail, &fail, 0644);
MODULE_PARM_DESC(fail, "which of the calls from now on fails, or the function whose next call does; 0: none");

static int scarce_counts_get(char *buffer, const struct kernel_param *parameter)
{
	int length = sysfs_emit(buffer, "calls %d\nfailed %s\ncalled", atomic_read(&calls),
				READ_ONCE(failed) ?: "none");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++)
		if (READ_ONCE(called[i]))
			length += sysfs_emit_at(buffer, length, " %s", functions[i].name);
	return length + sysfs_emit_at(buffer, length, "\n");
}

static const struct kernel_param_ops scarce_counts = { .get = scarce_counts_get };
module_param_cb(counts, &scarce_counts, NULL, 0444);
MODULE_PARM_DESC(counts, "read only: calls and the failed one since `fail` was set, functions ever called");

static int scarce_told(struct notifier_block *block, unsigned long state, void *data)
{
	const struct module *module = data;

	if (strcmp(module->name, target))
		return NOTIFY_DONE;
	if (state == MODULE_STATE_COMING)
		WRITE_ONCE(watched, module);
	else if (state == MODULE_STATE_GOING)
		WRITE_ONCE(watched, NULL);
	return NOTIFY_DONE;
}

static struct notifier_block scarce_notifier = { .notifier_call = scarce_told };

static void scarce_unregister(unsigned int count)
{
	while (count--)
		if (probes[count].addr)
			unregister_kprobe(&probes[count]);
}

static int __init scarce_register(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		int error;

		probes[i].symbol_name = functions[i].name;
		probes[i].pre_handler = scarce_called;
		probes[i].post_handler = scarce_after;
		error = register_kprobe(&probes[i]);
		if (!error)
			continue;
		/* Not each kernel has each name. */
		probes[i].addr = NULL;
		if (error != -ENOENT) {
			pr_err("%s: no probe can stand there (error %d)\n", functions[i].name, error);
			scarce_unregister(i);
			return error;
		}
	}
	return 0;
}

static int __init scarce_init(void)
{
	int error;

	if (!*target) {
		pr_err("target= is missing: the module whose calls are counted\n");
		return -EINVAL;
	}
	error = scarce_register();
	if (error)
		return error;
	error = register_module_notifier(&scarce_notifier);
	if (error)
		scarce_unregister(ARRAY_SIZE(functions));
	return error;
}

static void __exit scarce_exit(void)
{
	unregister_module_notifier(&scarce_notifier);
	scarce_unregister(ARRAY_SIZE(functions));
}

module_init(scarce_init);
module_exit(scarce_exit);

MODULE_DESCRIPTION("Makes another module's calls for memory fail, for tests");
MODULE_LICENSE("GPL");
