// SPDX-License-Identifier: GPL-2.0
/*
 * Who serves a connection.
 *
 * kthread  a thread each, which waits for its peer
 * wq       a work item each, which waits for its peer and so keeps a worker
 * ready    a work item when something has happened; nothing waits
 * softirq  in the callback that tells that a request has come, if the cache holds the answer; the rest is
 *          done as by `ready`
 */
#include <linux/kthread.h>

#include "khttpd.h"

enum khttpd_modes_limit {
	/*
	 * Work items of an unbound queue that run at a time, in every kernel
	 * (WQ_UNBOUND_MAX_ACTIVE).
	 */
	KHTTPD_WORKERS_MAX = 512,
};

static void khttpd_modes_serve(struct khttpd_connection *connection)
{
	switch (khttpd_serve(connection)) {
	case KHTTPD_WAITS:
		break;
	case KHTTPD_SPENT:
		khttpd_modes_kick(connection);
		break;
	case KHTTPD_ENDED:
		khttpd_connection_close(connection);
	}
}

static void khttpd_modes_ready(struct work_struct *work)
{
	struct khttpd_connection *connection = container_of(work, struct khttpd_connection, work);

	if (test_and_set_bit_lock(KHTTPD_BUSY, &connection->flags)) {
		/* A softirq of another processor, which is soon done. */
		khttpd_modes_kick(connection);
	} else {
		if (!test_bit(KHTTPD_CLOSED, &connection->flags))
			khttpd_modes_serve(connection);
		clear_bit_unlock(KHTTPD_BUSY, &connection->flags);
	}
	khttpd_connection_put(connection);
}

/* Serves until the end. Waiting is idle: it counts neither as load nor as a hung task. */
static void khttpd_modes_block(struct khttpd_connection *connection)
{
	enum khttpd_served served = KHTTPD_WAITS;

	while (served != KHTTPD_ENDED && !test_bit(KHTTPD_CLOSED, &connection->flags)) {
		if (served == KHTTPD_WAITS)
			wait_event_idle(connection->wait,
					test_and_clear_bit(KHTTPD_KICKED, &connection->flags) ||
						test_bit(KHTTPD_CLOSED, &connection->flags));
		if (!test_bit(KHTTPD_CLOSED, &connection->flags))
			served = khttpd_serve(connection);
		cond_resched();
	}
	khttpd_connection_close(connection);
	khttpd_connection_put(connection);
}

static void khttpd_modes_worker(struct work_struct *work)
{
	khttpd_modes_block(container_of(work, struct khttpd_connection, work));
}

/*
 * The last step is a call that does not come back: no text of the module is in use once a thread
 * is counted gone.
 */
static int khttpd_modes_thread(void *data)
{
	khttpd_modes_block(data);
	kthread_complete_and_exit(&khttpd.thread_gone, 0);
}

static int khttpd_modes_start_thread(struct khttpd_connection *connection)
{
	struct task_struct *thread;

	while (try_wait_for_completion(&khttpd.thread_gone))
		atomic_dec(&khttpd.threads);
	kref_get(&connection->references);
	thread = kthread_run(khttpd_modes_thread, connection, "khttpd");
	if (IS_ERR(thread)) {
		khttpd_connection_put(connection);
		return PTR_ERR(thread);
	}
	atomic_inc(&khttpd.threads);
	return 0;
}

/* Before anything may kick the connection. */
void khttpd_modes_prepare(struct khttpd_connection *connection)
{
	INIT_WORK(&connection->work,
		  khttpd.mode >= KHTTPD_READY ? khttpd_modes_ready : khttpd_modes_worker);
}

/* Starts a connection's server, which does nothing before it is kicked. */
int khttpd_modes_start(struct khttpd_connection *connection)
{
	if (khttpd.mode == KHTTPD_KTHREAD)
		return khttpd_modes_start_thread(connection);
	if (khttpd.mode == KHTTPD_WQ) {
		kref_get(&connection->references);
		queue_work(khttpd.queue, &connection->work);
	}
	return 0;
}

/*
 * Something happened. In a softirq or not; the connection must be held by the caller or by its
 * list.
 */
void khttpd_modes_kick(struct khttpd_connection *connection)
{
	if (khttpd.mode < KHTTPD_READY) {
		set_bit(KHTTPD_KICKED, &connection->flags);
		wake_up(&connection->wait);
		return;
	}
	kref_get(&connection->references);
	/* Work that waits already holds a reference, so this one is never the last. */
	if (!queue_work(khttpd.queue, &connection->work))
		khttpd_connection_put(connection);
}

int khttpd_modes_init(void)
{
	int error;

	init_completion(&khttpd.thread_gone);
	atomic_set(&khttpd.threads, 0);
	if (khttpd.mode == KHTTPD_WQ)
		khttpd.connections_max =
			min_t(unsigned int, khttpd.connections_max, KHTTPD_WORKERS_MAX);
	khttpd.queue = alloc_workqueue("khttpd", WQ_UNBOUND, KHTTPD_WORKERS_MAX);
	if (!khttpd.queue)
		return -ENOMEM;
	error = khttpd.mode == KHTTPD_SOFTIRQ ? khttpd_softirq_init() : 0;
	if (error)
		destroy_workqueue(khttpd.queue);
	return error;
}

/* All connections are gone. */
void khttpd_modes_exit(void)
{
	while (atomic_dec_if_positive(&khttpd.threads) >= 0)
		wait_for_completion(&khttpd.thread_gone);
	destroy_workqueue(khttpd.queue);
	if (khttpd.mode == KHTTPD_SOFTIRQ)
		khttpd_softirq_exit();
}
