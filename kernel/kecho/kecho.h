/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of kecho: an echo server in the kernel, in five ways.
 *
 * main.c       parameters, load and unload
 * listen.c     the listener: accepts in a work item, driven by its callback
 * connection.c a connection's life: made, known, closed, freed; counted until it is gone
 * modes.c      who serves a connection: a thread, a work item that blocks, work on demand, the softirq
 * deadlines.c     how deadlines are kept: by the kernel, in a heap or in a wheel (../include/deadlines.h)
 * transport.c  bytes in and out, waiting or not, with the socket locked or not
 * talk.c       what the bytes mean (freestanding)
 */
#ifndef KECHO_H
#define KECHO_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/net.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "../include/deadlines.h"
#include "talk.h"

enum kecho_limits {
	/* Connections accepted before other work has its turn. */
	KECHO_ACCEPT_BUDGET = 64,
	/* Receptions of one connection before others have their turn. */
	KECHO_SERVE_BUDGET = 16,
	/* The same in a softirq, which holds up the network. */
	KECHO_SOFTIRQ_BUDGET = 4,
	/* Accepting pauses so long when memory is short. */
	KECHO_PAUSE_MS = 100,
	/* Work items of an unbound queue that run at a time: what each kernel allows (WQ_UNBOUND_MAX_ACTIVE). */
	KECHO_UNBOUND_WORKERS_MAX = 512,
	/* Those of a queue with a processor's own workers, for each processor (WQ_DFL_ACTIVE of 6.1). */
	KECHO_PERCPU_WORKERS_MAX = 256,
};

enum kecho_mode {
	KECHO_KTHREAD,
	KECHO_WQ_PERCPU,
	KECHO_WQ_UNBOUND,
	KECHO_READY,
	KECHO_SOFTIRQ,
};

enum kecho_flag {
	/* Known no more: it is about to be freed. */
	KECHO_CLOSED,
	/* Somebody serves it: softirq and work item are never in it together. */
	KECHO_BUSY,
	/* Something came while it was served. */
	KECHO_AGAIN,
};

struct kecho_connection {
	struct kref references;
	/* in `connections`, until it is closed: by its thread, for its silence, or at unload */
	struct list_head node;
	/* in `ended`, once its thread has ended, which may be before it has left the other list */
	struct list_head ended;
	struct socket *socket;
	struct work_struct work;
	struct task_struct *thread;
	unsigned long flags;
	/* jiffies of the last byte in or out */
	unsigned long active;
	struct deadline timer;
	/* in `silent`, once it was silent too long */
	struct llist_node silent;
	struct kecho_talk talk;
};

struct kecho_server {
	enum kecho_mode mode;
	enum kecho_talk_language language;
	unsigned int connections_max;
	unsigned long idle_jiffies;
	bool is_stopping;
	struct socket *listener;
	void (*listener_ready)(struct sock *sk);
	struct workqueue_struct *queue;
	struct delayed_work accept;
	enum deadline_kind timers;
	/* Closes who was silent too long: those in `silent`, each with a reference. */
	struct work_struct expire;
	struct llist_head silent;
	/* Threads that have ended, to be joined. */
	struct work_struct reap;
	struct list_head ended;
	spinlock_t lock; /* guards the two lists and `count` */
	struct list_head connections;
	unsigned int count;
	wait_queue_head_t gone;
	atomic64_t accepted;
	atomic64_t refused;
	atomic64_t expired;
};

extern struct kecho_server kecho;

/* What serving has come to. */
enum kecho_served {
	KECHO_WAITS,
	KECHO_SPENT,
	KECHO_ENDED,
};

/* How bytes are moved. A result is a count of bytes, 0 at the peer's end, or an error. */
struct kecho_transport {
	int (*receive)(struct kecho_connection *connection, char *bytes, size_t length);
	int (*send)(struct kecho_connection *connection, const char *bytes, size_t length);
};

extern const struct kecho_transport kecho_transport_blocking;
extern const struct kecho_transport kecho_transport_ready;
extern const struct kecho_transport kecho_transport_locked;

int kecho_listen_begin(unsigned short port, int backlog);
void kecho_listen_end(void);

int kecho_connection_make(struct socket *socket);
void kecho_connection_close(struct kecho_connection *connection);
void kecho_connection_put(struct kecho_connection *connection);
void kecho_connection_close_all(void);
int kecho_connection_init(void);
void kecho_connection_exit(void);

int kecho_modes_init(void);
void kecho_modes_exit(void);
int kecho_modes_start(struct kecho_connection *connection);
void kecho_modes_detach(struct kecho_connection *connection);

#endif
