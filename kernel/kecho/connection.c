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
		if (!kecho.count++)
			mod_delayed_work(system_unbound_wq, &kecho.sweep, kecho.idle_jiffies);
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
	kecho_talk_begin(&connection->talk, kecho.language);
	if (!kecho_connection_enter(connection)) {
		sock_release(socket);
		kmem_cache_free(connections, connection);
		return -EBUSY;
	}
	kref_get(&connection->references);
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
	kernel_sock_shutdown(connection->socket, SHUT_RDWR);
	spin_lock(&kecho.lock);
	list_del_init(&connection->node);
	spin_unlock(&kecho.lock);
	kecho_connection_put(connection);
}

/* The first connection that `is_meant`, with a reference to it, or NULL. */
static struct kecho_connection *kecho_connection_find(bool (*is_meant)(const struct kecho_connection *))
{
	struct kecho_connection *connection, *found = NULL;

	spin_lock(&kecho.lock);
	list_for_each_entry(connection, &kecho.connections, node) {
		if (is_meant(connection) && kref_get_unless_zero(&connection->references)) {
			found = connection;
			break;
		}
	}
	spin_unlock(&kecho.lock);
	return found;
}

static void kecho_connection_close_those(bool (*is_meant)(const struct kecho_connection *),
					 atomic64_t *counter)
{
	struct kecho_connection *connection;

	while ((connection = kecho_connection_find(is_meant))) {
		kecho_connection_close(connection);
		kecho_connection_put(connection);
		if (counter)
			atomic64_inc(counter);
	}
}

static bool kecho_connection_is_any(const struct kecho_connection *connection)
{
	return !test_bit(KECHO_CLOSED, &connection->flags);
}

static bool kecho_connection_is_silent(const struct kecho_connection *connection)
{
	return kecho_connection_is_any(connection) &&
	       time_after(jiffies, READ_ONCE(connection->active) + kecho.idle_jiffies);
}

/* Closes all, and waits until they are gone. */
void kecho_connection_close_all(void)
{
	cancel_delayed_work_sync(&kecho.sweep);
	kecho_connection_close_those(kecho_connection_is_any, NULL);
	wait_event(kecho.gone, !READ_ONCE(kecho.count));
	/* Whoever made it 0 has let go of the lock. */
	spin_lock(&kecho.lock);
	spin_unlock(&kecho.lock);
}

/* Closes who was silent too long, and comes again while there is anybody. */
static void kecho_connection_sweep(struct work_struct *work)
{
	kecho_connection_close_those(kecho_connection_is_silent, &kecho.expired);
	spin_lock(&kecho.lock);
	if (kecho.count && !kecho.is_stopping)
		mod_delayed_work(system_unbound_wq, &kecho.sweep, max(kecho.idle_jiffies / 4, 1ul));
	spin_unlock(&kecho.lock);
}

int __init kecho_connection_init(void)
{
	INIT_DELAYED_WORK(&kecho.sweep, kecho_connection_sweep);
	connections = kmem_cache_create("kecho_connection", sizeof(struct kecho_connection), 0,
					SLAB_HWCACHE_ALIGN, NULL);
	return connections ? 0 : -ENOMEM;
}

void kecho_connection_exit(void)
{
	kmem_cache_destroy(connections);
}
