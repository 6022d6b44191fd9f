// SPDX-License-Identifier: GPL-2.0
/*
 * A connection's life: made, known, closed, freed.
 *
 * The list holds a reference until the connection is closed, and so does whoever serves it. The
 * last one to let go releases the socket; the count falls only then. Callbacks hold
 * sk_callback_lock while they use a connection, and are taken away under it: after that no
 * callback uses it.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "khttpd.h"
#include "race.h"
#include "trace.h"

static struct kmem_cache *connections;

static void khttpd_connection_free(struct kref *references)
{
	struct khttpd_connection *connection =
		container_of(references, struct khttpd_connection, references);
	struct khttpd_namespace *namespace = connection->namespace;

	khttpd_file_end(&connection->sending);
	khttpd_folder_close(connection->folder);
	khttpd_serve_forget(connection);
	if (connection->socket)
		khttpd_namespace_release(connection->socket);
	kmem_cache_free(connections, connection);
	spin_lock(&khttpd.lock);
	khttpd.count--;
	/* The namespace may be freed once nothing of it is counted. */
	if (!--namespace->count)
		wake_up_all(&khttpd.gone);
	spin_unlock(&khttpd.lock);
}

/* Never in a softirq. */
void khttpd_connection_put(struct khttpd_connection *connection)
{
	kref_put(&connection->references, khttpd_connection_free);
}

/*
 * Something happened on the socket. The connection lives: it is taken from the socket before its
 * list lets go.
 */
static void khttpd_connection_wake(struct sock *sk)
{
	struct khttpd_connection *connection;

	read_lock_bh(&sk->sk_callback_lock);
	connection = sk->sk_user_data;
	if (connection) {
		trace_khttpd_wake(connection);
		khttpd_modes_kick(connection);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Bytes have come, in mode `softirq`. Softirqs are held off by the lock. */
static void khttpd_connection_data(struct sock *sk)
{
	struct khttpd_connection *connection;

	read_lock_bh(&sk->sk_callback_lock);
	connection = sk->sk_user_data;
	if (connection) {
		trace_khttpd_wake(connection);
		if (!khttpd_softirq(connection))
			khttpd_modes_kick(connection);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void khttpd_connection_write_space(struct sock *sk)
{
	if (!sk_stream_is_writeable(sk))
		return;
	if (sk->sk_socket)
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	khttpd_connection_wake(sk);
}

void khttpd_connection_may_sleep(struct sock *sk, bool may_sleep)
{
	sk->sk_allocation = may_sleep ? GFP_KERNEL : GFP_ATOMIC;
#ifdef HAVE_TASK_FRAG
	sk->sk_use_task_frag = may_sleep;
#endif
}

/*
 * Callbacks of a socket are replaced, never called on: nobody else waits for it. Whether something had come
 * before, of which no callback tells.
 */
static bool khttpd_connection_attach(struct khttpd_connection *connection)
{
	struct sock *sk = connection->socket->sk;
	bool is_empty;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = connection;
	sk->sk_data_ready = khttpd_connection_wake;
	sk->sk_state_change = khttpd_connection_wake;
	sk->sk_write_space = khttpd_connection_write_space;
	if (khttpd.mode == KHTTPD_SOFTIRQ) {
		sk->sk_data_ready = khttpd_connection_data;
		/* Callbacks may not sleep for memory. */
		khttpd_connection_may_sleep(sk, false);
	}
	is_empty = khttpd_socket_is_empty(sk);
	write_unlock_bh(&sk->sk_callback_lock);
	return !is_empty;
}

static void khttpd_connection_detach(struct khttpd_connection *connection)
{
	struct sock *sk = connection->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = khttpd.plain.data_ready;
	sk->sk_state_change = khttpd.plain.state_change;
	sk->sk_write_space = khttpd.plain.write_space;
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * The timer is pushed back by this comparison alone: it fires at most once a deadline's length.
 */
static bool khttpd_connection_fire(struct deadline *timer, unsigned long *again)
{
	struct khttpd_connection *connection = container_of(timer, struct khttpd_connection, timer);

	*again = READ_ONCE(connection->due);
	if (time_before(jiffies, *again))
		return true;
	trace_khttpd_expire(connection, READ_ONCE(connection->deadline));
	set_bit(KHTTPD_EXPIRED, &connection->flags);
	khttpd_modes_kick(connection);
	return false;
}

void khttpd_connection_expect(struct khttpd_connection *connection, enum khttpd_deadline deadline,
			      bool again)
{
	unsigned long due;

	if (connection->deadline == deadline && !again)
		return;
	connection->deadline = deadline;
	due = jiffies + msecs_to_jiffies(khttpd.deadlines_ms[deadline]);
	WRITE_ONCE(connection->due, due);
	deadline_set(&connection->timer, due);
}

/* Counts a new connection and lists it. False where there are enough. */
static bool khttpd_connection_enter(struct khttpd_connection *connection)
{
	bool enters;

	spin_lock(&khttpd.lock);
	enters = khttpd.count < khttpd.connections_max;
	if (enters) {
		khttpd.count++;
		connection->namespace->count++;
		list_add_tail(&connection->node, &connection->namespace->connections);
	}
	spin_unlock(&khttpd.lock);
	return enters;
}

/*
 * Takes over an accepted socket, and has it served; on failure the socket stays the caller's.
 * -EBUSY: there are enough connections. -ENOMEM: no memory.
 */
int khttpd_connection_make(struct khttpd_namespace *namespace, struct socket *socket)
{
	struct khttpd_connection *connection = kmem_cache_zalloc(connections, GFP_KERNEL);
	bool has_come;

	if (!connection)
		return -ENOMEM;
	kref_init(&connection->references);
	init_waitqueue_head(&connection->wait);
	INIT_LIST_HEAD(&connection->offer);
	deadline_setup(&connection->timer);
	connection->namespace = namespace;
	connection->socket = socket;
	connection->deadline = KHTTPD_DEADLINES;
	if (!khttpd_connection_enter(connection)) {
		kmem_cache_free(connections, connection);
		return -EBUSY;
	}
	kref_get(&connection->references);
	trace_khttpd_accept(connection);
	khttpd_modes_prepare(connection);
	has_come = khttpd_connection_attach(connection);
	khttpd_connection_expect(connection, KHTTPD_HEAD_DEADLINE, true);
	if (khttpd_modes_start(connection))
		khttpd_connection_close(connection);
	else if (has_come)
		khttpd_modes_kick(connection);
	khttpd_connection_put(connection);
	return 0;
}

/* Whoever serves the connection ends, and the list lets go of it. */
static void khttpd_connection_forget(struct khttpd_connection *connection)
{
	wake_up_all(&connection->wait);
	spin_lock(&khttpd.lock);
	list_del(&connection->node);
	spin_unlock(&khttpd.lock);
	khttpd_connection_put(connection);
}

/* Any number of times, never in a softirq. */
void khttpd_connection_close(struct khttpd_connection *connection)
{
	if (test_and_set_bit(KHTTPD_CLOSED, &connection->flags))
		return;
	trace_khttpd_close(connection);
	khttpd_handover_withdraw(connection);
	khttpd_connection_detach(connection);
	deadline_end(&connection->timer);
	kernel_sock_shutdown(connection->socket, SHUT_RDWR);
	khttpd_race_asleep();
	khttpd_connection_forget(connection);
}

struct socket *khttpd_connection_leave(struct khttpd_connection *connection)
{
	struct socket *socket = connection->socket;

	/* Else the connection is closed with its namespace. */
	if (!khttpd_namespace_keep(socket) || test_and_set_bit(KHTTPD_CLOSED, &connection->flags))
		return NULL;
	trace_khttpd_leave(connection);
	khttpd_connection_detach(connection);
	deadline_end(&connection->timer);
	connection->socket = NULL;
	khttpd_connection_may_sleep(socket->sk, true);
	khttpd_connection_forget(connection);
	return socket;
}

/* The first connection that nobody closes yet, held, or NULL. Whoever closes one takes it off the list. */
static struct khttpd_connection *khttpd_connection_first(struct khttpd_namespace *namespace)
{
	struct khttpd_connection *connection, *found = NULL;

	spin_lock(&khttpd.lock);
	list_for_each_entry(connection, &namespace->connections, node) {
		if (!test_bit(KHTTPD_CLOSED, &connection->flags)) {
			kref_get(&connection->references);
			found = connection;
			break;
		}
	}
	spin_unlock(&khttpd.lock);
	return found;
}

void khttpd_connection_close_all(struct khttpd_namespace *namespace)
{
	struct khttpd_connection *connection;

	while ((connection = khttpd_connection_first(namespace)) != NULL) {
		khttpd_connection_close(connection);
		khttpd_connection_put(connection);
	}
	wait_event_idle(khttpd.gone, !READ_ONCE(namespace->count));
}

int khttpd_connection_init(void)
{
	spin_lock_init(&khttpd.lock);
	init_waitqueue_head(&khttpd.gone);
	connections = KMEM_CACHE(khttpd_connection, 0);
	if (!connections)
		return -ENOMEM;
	if (!deadline_init(khttpd.timers, khttpd.connections_max, khttpd_connection_fire))
		return 0;
	kmem_cache_destroy(connections);
	return -ENOMEM;
}

void khttpd_connection_exit(void)
{
	deadline_exit();
	kmem_cache_destroy(connections);
}
