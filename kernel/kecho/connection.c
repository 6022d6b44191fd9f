// SPDX-License-Identifier: GPL-2.0
/*
 * A connection's life. The list holds a reference until the connection is closed, and so does whoever
 * serves it until it is served; the last one to let go releases the socket. `count` falls only then, so a
 * module that has waited for it to be 0 owns no connection any more.
 */
#include <linux/slab.h>

#include "kecho.h"

static struct kmem_cache *connections;

static void kecho_connection_free(struct kref *references)
{
	struct kecho_connection *connection = container_of(references, struct kecho_connection, references);

	sock_release(connection->socket);
	kmem_cache_free(connections, connection);
	spin_lock(&kecho.lock);
	if (!--kecho.count)
		wake_up_all(&kecho.gone);
	spin_unlock(&kecho.lock);
}

void kecho_connection_put(struct kecho_connection *connection)
{
	kref_put(&connection->references, kecho_connection_free);
}

/* Counts a new connection and lists it. False where there are enough, or none is wanted any more. */
static bool kecho_connection_enter(struct kecho_connection *connection)
{
	bool enters;

	spin_lock(&kecho.lock);
	enters = !kecho.is_stopping && kecho.count < kecho.connections_max;
	if (enters) {
		kecho.count++;
		list_add_tail(&connection->node, &kecho.connections);
	}
	spin_unlock(&kecho.lock);
	return enters;
}

/*
 * Takes over an accepted socket, and has it served. The socket is closed on failure.
 * -EBUSY: there are enough connections; -ENOMEM: no memory, or no thread.
 */
int kecho_connection_make(struct socket *socket)
{
	struct kecho_connection *connection = kmem_cache_zalloc(connections, GFP_KERNEL);
	int error;

	if (!connection) {
		sock_release(socket);
		return -ENOMEM;
	}
	kref_init(&connection->references);
	connection->socket = socket;
	connection->active = jiffies;
	deadline_setup(&connection->timer);
	kecho_talk_begin(&connection->talk, kecho.language);
	if (!kecho_connection_enter(connection)) {
		sock_release(socket);
		kmem_cache_free(connections, connection);
		return -EBUSY;
	}
	kref_get(&connection->references);
	deadline_set(&connection->timer, connection->active + kecho.idle_jiffies);
	error = kecho_modes_start(connection);
	if (error)
		kecho_connection_close(connection);
	kecho_connection_put(connection);
	return error;
}

/*
 * Takes the connection off the list and wakes whoever waits for its bytes. Any number of times, never
 * in a softirq.
 */
void kecho_connection_close(struct kecho_connection *connection)
{
	if (test_and_set_bit(KECHO_CLOSED, &connection->flags))
		return;
	kecho_modes_detach(connection);
	deadline_end(&connection->timer);
	kernel_sock_shutdown(connection->socket, SHUT_RDWR);
	spin_lock(&kecho.lock);
	list_del_init(&connection->node);
	spin_unlock(&kecho.lock);
	kecho_connection_put(connection);
}

/* The first connection that nobody closes yet, with a reference to it, or NULL. */
static struct kecho_connection *kecho_connection_first(void)
{
	struct kecho_connection *connection, *found = NULL;

	spin_lock(&kecho.lock);
	list_for_each_entry(connection, &kecho.connections, node) {
		if (!test_bit(KECHO_CLOSED, &connection->flags) &&
		    kref_get_unless_zero(&connection->references)) {
			found = connection;
			break;
		}
	}
	spin_unlock(&kecho.lock);
	return found;
}

/* Closes all, and waits until they are gone. */
void kecho_connection_close_all(void)
{
	struct kecho_connection *connection;

	while ((connection = kecho_connection_first())) {
		kecho_connection_close(connection);
		kecho_connection_put(connection);
	}
	wait_event(kecho.gone, !READ_ONCE(kecho.count));
	/* Whoever made it 0 has let go of the lock. */
	spin_lock(&kecho.lock);
	spin_unlock(&kecho.lock);
}

/*
 * In a softirq, which may not close. A byte that came meanwhile has put the deadline off; else it does not
 * come again, so the connection is listed once.
 */
static bool kecho_connection_fire(struct deadline *timer, unsigned long *again)
{
	struct kecho_connection *connection = container_of(timer, struct kecho_connection, timer);

	*again = READ_ONCE(connection->active) + kecho.idle_jiffies;
	if (time_before(jiffies, *again))
		return true;
	kref_get(&connection->references);
	if (llist_add(&connection->silent, &kecho.silent))
		queue_work(system_unbound_wq, &kecho.expire);
	return false;
}

static void kecho_connection_expire(struct work_struct *work)
{
	struct kecho_connection *connection, *next;

	llist_for_each_entry_safe(connection, next, llist_del_all(&kecho.silent), silent) {
		if (!test_bit(KECHO_CLOSED, &connection->flags))
			atomic64_inc(&kecho.expired);
		kecho_connection_close(connection);
		kecho_connection_put(connection);
	}
}

int __init kecho_connection_init(void)
{
	INIT_WORK(&kecho.expire, kecho_connection_expire);
	connections = kmem_cache_create("kecho_connection", sizeof(struct kecho_connection), 0,
					SLAB_HWCACHE_ALIGN, NULL);
	if (!connections)
		return -ENOMEM;
	if (!deadline_init(kecho.timers, kecho.connections_max, kecho_connection_fire))
		return 0;
	kmem_cache_destroy(connections);
	return -ENOMEM;
}

void kecho_connection_exit(void)
{
	deadline_exit();
	cancel_work_sync(&kecho.expire);
	kmem_cache_destroy(connections);
}
