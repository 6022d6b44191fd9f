// SPDX-License-Identifier: GPL-2.0
/*
 * Five ways to serve a connection.
 *
 * kthread     a thread each, which waits for its bytes
 * wq-percpu,  a work item each, which waits for its bytes and so keeps a worker: a queue with a processor's
 * wq-unbound  workers has 256, and the 257th connection is not served before another one ends; the other
 *             kind has 512 for all processors
 * ready       a work item when something has come; nothing waits
 * softirq     in the callback that tells that something has come; the rest is done as by `ready`
 *
 * Callbacks hold sk_callback_lock while they use a connection, and `detach` takes them away under it: after
 * that no callback uses the connection.
 */
#include <linux/kthread.h>
#include <net/tcp.h>

#include "kecho.h"

/* Sends and receives until nothing more comes, so many receptions are done, or the connection is to end. */
static enum kecho_served kecho_modes_serve(struct kecho_connection *connection,
					   const struct kecho_transport *transport, int budget)
{
	struct kecho_talk *talk = &connection->talk;
	const char *piece;
	char *room;
	size_t length;
	int moved;

	for (;;) {
		while (piece = kecho_talk_piece(talk, &length), length) {
			moved = transport->send(connection, piece, length);
			if (moved <= 0)
				return moved == -EAGAIN ? KECHO_WAITS : KECHO_ENDED;
			kecho_talk_sent(talk, moved);
			WRITE_ONCE(connection->active, jiffies);
		}
		if (kecho_talk_is_over(talk))
			return KECHO_ENDED;
		if (!budget--)
			return KECHO_SPENT;
		room = kecho_talk_room(talk, &length);
		moved = transport->receive(connection, room, length);
		if (moved <= 0)
			return moved == -EAGAIN ? KECHO_WAITS : KECHO_ENDED;
		kecho_talk_heard(talk, moved);
		WRITE_ONCE(connection->active, jiffies);
	}
}

static void kecho_modes_serve_blocking(struct kecho_connection *connection)
{
	while (!test_bit(KECHO_CLOSED, &connection->flags) &&
	       kecho_modes_serve(connection, &kecho_transport_blocking, INT_MAX) == KECHO_SPENT)
		;
	kecho_connection_close(connection);
}

/* A thread. It is joined by `reap`, which then lets go of the connection: until then its text is in use. */
static int kecho_modes_thread(void *data)
{
	struct kecho_connection *connection = data;

	kecho_modes_serve_blocking(connection);
	spin_lock(&kecho.lock);
	list_add_tail(&connection->ended, &kecho.ended);
	spin_unlock(&kecho.lock);
	queue_work(kecho.queue, &kecho.reap);
	return 0;
}

static void kecho_modes_reap(struct work_struct *work)
{
	struct kecho_connection *connection, *next;
	LIST_HEAD(ended);

	spin_lock(&kecho.lock);
	list_splice_init(&kecho.ended, &ended);
	spin_unlock(&kecho.lock);
	list_for_each_entry_safe(connection, next, &ended, ended) {
		kthread_stop(connection->thread);
		put_task_struct(connection->thread);
		kecho_connection_put(connection);
	}
}

static int kecho_modes_start_thread(struct kecho_connection *connection)
{
	struct task_struct *thread = kthread_create(kecho_modes_thread, connection, "kecho");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	get_task_struct(thread);
	connection->thread = thread;
	kref_get(&connection->references);
	wake_up_process(thread);
	return 0;
}

static void kecho_modes_work_blocking(struct work_struct *work)
{
	struct kecho_connection *connection = container_of(work, struct kecho_connection, work);

	kecho_modes_serve_blocking(connection);
	kecho_connection_put(connection);
}

static void kecho_modes_queue(struct kecho_connection *connection)
{
	kref_get(&connection->references);
	if (!queue_work(kecho.queue, &connection->work))
		kecho_connection_put(connection);
}

/* Serves as the one who is BUSY: whoever comes meanwhile says AGAIN. Gives what is left to do. */
static enum kecho_served kecho_modes_serve_alone(struct kecho_connection *connection,
						 const struct kecho_transport *transport, int budget)
{
	enum kecho_served served;

	do {
		if (test_and_set_bit_lock(KECHO_BUSY, &connection->flags)) {
			set_bit(KECHO_AGAIN, &connection->flags);
			smp_mb__after_atomic();
			if (test_and_set_bit_lock(KECHO_BUSY, &connection->flags))
				return KECHO_WAITS;
		}
		clear_bit(KECHO_AGAIN, &connection->flags);
		smp_mb__after_atomic();
		served = kecho_modes_serve(connection, transport, budget);
		clear_bit_unlock(KECHO_BUSY, &connection->flags);
		smp_mb__after_atomic();
	} while (served == KECHO_WAITS && test_bit(KECHO_AGAIN, &connection->flags));
	return served;
}

static void kecho_modes_work_ready(struct work_struct *work)
{
	struct kecho_connection *connection = container_of(work, struct kecho_connection, work);
	enum kecho_served served = KECHO_ENDED;

	if (!test_bit(KECHO_CLOSED, &connection->flags))
		served = kecho_modes_serve_alone(connection, &kecho_transport_ready, KECHO_SERVE_BUDGET);
	if (served == KECHO_SPENT)
		kecho_modes_queue(connection);
	else if (served == KECHO_ENDED)
		kecho_connection_close(connection);
	kecho_connection_put(connection);
}

/* Something has come, there is room to send, or the state has changed. */
static void kecho_modes_tell(struct sock *sk)
{
	struct kecho_connection *connection;

	read_lock_bh(&sk->sk_callback_lock);
	connection = sk->sk_user_data;
	if (connection)
		kecho_modes_queue(connection);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void kecho_modes_tell_room(struct sock *sk)
{
	/* Without this the socket would tell of no room again. */
	if (sk->sk_socket)
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	kecho_modes_tell(sk);
}

static void kecho_modes_softirq(struct sock *sk)
{
	struct kecho_connection *connection;

	read_lock_bh(&sk->sk_callback_lock);
	connection = sk->sk_user_data;
	if (connection && kecho_modes_serve_alone(connection, &kecho_transport_locked,
						  KECHO_SOFTIRQ_BUDGET) != KECHO_WAITS)
		kecho_modes_queue(connection);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void kecho_modes_attach(struct kecho_connection *connection)
{
	struct sock *sk = connection->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = connection;
	sk->sk_data_ready = kecho.mode == KECHO_SOFTIRQ ? kecho_modes_softirq : kecho_modes_tell;
	sk->sk_write_space = kecho_modes_tell_room;
	sk->sk_state_change = kecho_modes_tell;
	if (kecho.mode == KECHO_SOFTIRQ) {
		/* The callbacks may not sleep for memory. */
		sk->sk_allocation = GFP_ATOMIC;
#ifdef HAVE_TASK_FRAG
		sk->sk_use_task_frag = false;
#endif
	}
	write_unlock_bh(&sk->sk_callback_lock);
}

static void kecho_modes_ignore(struct sock *sk)
{
}

/* No callback uses the connection any more. */
void kecho_modes_detach(struct kecho_connection *connection)
{
	struct sock *sk = connection->socket->sk;

	if (kecho.mode < KECHO_READY)
		return;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = kecho_modes_ignore;
	sk->sk_write_space = kecho_modes_ignore;
	sk->sk_state_change = kecho_modes_ignore;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* Has a connection served. The caller holds a reference. */
int kecho_modes_start(struct kecho_connection *connection)
{
	struct sock *sk = connection->socket->sk;

	if (kecho.mode < KECHO_READY) {
		/* The callback of the listener was inherited. */
		write_lock_bh(&sk->sk_callback_lock);
		sk->sk_user_data = NULL;
		sk->sk_data_ready = kecho.listener_ready;
		write_unlock_bh(&sk->sk_callback_lock);
		sk->sk_rcvtimeo = kecho.idle_jiffies;
		sk->sk_sndtimeo = kecho.idle_jiffies;
	}
	switch (kecho.mode) {
	case KECHO_KTHREAD:
		return kecho_modes_start_thread(connection);
	case KECHO_WQ_PERCPU:
	case KECHO_WQ_UNBOUND:
		INIT_WORK(&connection->work, kecho_modes_work_blocking);
		break;
	case KECHO_READY:
	case KECHO_SOFTIRQ:
		INIT_WORK(&connection->work, kecho_modes_work_ready);
		kecho_modes_attach(connection);
		break;
	}
	/* What has come before is told by nobody. */
	kecho_modes_queue(connection);
	return 0;
}

int __init kecho_modes_init(void)
{
	bool percpu = kecho.mode == KECHO_WQ_PERCPU;
	int workers = percpu ? KECHO_PERCPU_WORKERS_MAX : KECHO_UNBOUND_WORKERS_MAX;
	unsigned int kind = WQ_UNBOUND;

	if (percpu)
#ifdef HAVE_WQ_PERCPU
		kind = WQ_PERCPU;
#else
		kind = 0;
#endif
	INIT_WORK(&kecho.reap, kecho_modes_reap);
	INIT_LIST_HEAD(&kecho.ended);
	kecho.queue = alloc_workqueue("kecho", kind, workers);
	return kecho.queue ? 0 : -ENOMEM;
}

void kecho_modes_exit(void)
{
	destroy_workqueue(kecho.queue);
}
