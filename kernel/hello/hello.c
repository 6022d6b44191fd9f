// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest module, to prove the machine that modules are tested in: it is built, loaded and unloaded, and
 * with fault= it does what a module must never do, which the machine has to notice.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/slab.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "none, leak (an object outlives its cache), forget (memory) or sleep (in a softirq)");

static struct kmem_cache *cache;
static void *object;
static void *forgotten;

static void hello_sleep(struct tasklet_struct *tasklet)
{
	msleep(1);
}

static DECLARE_TASKLET(sleeper, hello_sleep);

static int __init hello_init(void)
{
	bool leaks = !strcmp(fault, "leak");
	bool sleeps = !strcmp(fault, "sleep");
	bool forgets = !strcmp(fault, "forget");

	if (!leaks && !sleeps && !forgets && strcmp(fault, "none")) {
		pr_err("fault=%s: none, leak, forget or sleep\n", fault);
		return -EINVAL;
	}
	cache = kmem_cache_create("hello", 64, 0, SLAB_POISON, NULL);
	if (!cache)
		return -ENOMEM;
	object = kmem_cache_alloc(cache, GFP_KERNEL);
	if (!object) {
		kmem_cache_destroy(cache);
		return -ENOMEM;
	}
	if (sleeps)
		tasklet_schedule(&sleeper);
	if (forgets)
		forgotten = kmalloc(100, GFP_KERNEL);
	pr_warn("loaded\n");
	return 0;
}

static void __exit hello_exit(void)
{
	tasklet_kill(&sleeper);
	if (strcmp(fault, "leak"))
		kmem_cache_free(cache, object);
	kmem_cache_destroy(cache);
}

module_init(hello_init);
module_exit(hello_exit);

MODULE_DESCRIPTION("Proves the machine that modules are tested in");
MODULE_LICENSE("GPL");
