/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of khttpd: a server of files in the kernel.
 *
 * main.c       parameters, load and unload
 * namespace.c  one instance a network namespace: its file in proc, its beginning and its end
 * listen.c     listeners: accept in a work item, driven by their callback
 * connection.c a connection's life: made, known, closed, freed; its callbacks and its deadline
 * modes.c      who serves a connection: a thread, a work item that blocks, work on demand, the softirq
 * serve.c      the order of things on a connection: receive, understand, answer, send; never blocks
 * softirq.c    requests answered in the callback that tells that they have come
 * reply.c      which answer a request gets
 * cache.c      small files and listings that were served lately
 * place.c      where a file stands, and whether it still does
 * shown.c      what a listing shows, and whether it still is so
 * gzip.c       their bodies in gzip
 * pages.c      bodies sent by reference
 * file.c       names looked up beneath the root, files read
 * folder.c     listings, made piece by piece
 * handover.c   connections that are handed over to a process
 * memory.c     the account of what peers make the module hold
 * deadlines.c     how deadlines are kept: by the kernel, in a heap or in a wheel (../include/deadlines.h)
 * trace.c      trace points of the life of a connection
 *
 * All other files are freestanding: see text.h.
 */
#ifndef KHTTPD_H
#define KHTTPD_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/path.h>
#include <linux/spinlock.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "../include/deadlines.h"
#include "answer.h"
#include "body.h"
#include "listing.h"
#include "path.h"

enum khttpd_limit {
	KHTTPD_LISTENERS_MAX = 8,
	/* Connections of one listener accepted before others have their turn. */
	KHTTPD_ACCEPT_BUDGET = 64,
	/* Accepting pauses so long when memory is short. */
	KHTTPD_PAUSE_MS = 100,
	/* Sends and receptions of one connection before others have their turn. */
	KHTTPD_SERVE_BUDGET = 32,
	/* First room for what a peer sends; browsers send less than this. */
	KHTTPD_INPUT_BYTES = 2048,
	/* Most bytes of a peer that are kept: a whole head, and what was pipelined behind it. */
	KHTTPD_INPUT_BYTES_MAX = KHTTPD_HEAD_BYTES_MAX + 16 * 1024,
	/*
	 * Room for answers that wait to be sent: small files and what is pipelined go in one
	 * send.
	 */
	KHTTPD_OUTPUT_BYTES = 16 * 1024,
	/*
	 * The part of the account that all listings together may have: peers that read them slowly leave the
	 * rest to others.
	 */
	KHTTPD_LISTINGS_PART = 4,
	/* Most entries of a folder that are listed, and bytes of their names. */
	KHTTPD_ENTRIES_MAX = 10000,
	KHTTPD_NAMES_BYTES_MAX = 1024 * 1024,
	/* How long the peer's own close is waited for after the last answer. */
	KHTTPD_LINGER_MS = 2000,
	/* How long a connection that is offered waits for a process to take it. */
	KHTTPD_OFFER_MS = 10000,
	/* How often a lookup is tried again that a rename elsewhere has disturbed. */
	KHTTPD_TRIES_MAX = 16,
};

enum khttpd_mode {
	KHTTPD_KTHREAD,
	KHTTPD_WQ,
	KHTTPD_READY,
	KHTTPD_SOFTIRQ,
};

/* The one deadline of a connection at any time. */
enum khttpd_deadline {
	KHTTPD_HEAD_DEADLINE, /* absolute: bytes that trickle in do not move it */
	KHTTPD_IDLE_DEADLINE,
	KHTTPD_BODY_DEADLINE,
	KHTTPD_SEND_DEADLINE, /* since the last byte that the peer took */
	KHTTPD_LINGER_DEADLINE,
	KHTTPD_OFFER_DEADLINE,
	KHTTPD_DEADLINES,
};

enum khttpd_flag {
	KHTTPD_CLOSED,  /* known no more: about to be freed */
	KHTTPD_KICKED,  /* something happened since a blocking server looked */
	KHTTPD_EXPIRED, /* the deadline has passed */
	KHTTPD_RETURNED, /* was offered, and no process has taken it */
	KHTTPD_BUSY,    /* served now: softirq and work item are never in it together */
};

/* Who has the word on a connection. */
enum khttpd_phase {
	KHTTPD_READS,    /* the peer, with a head */
	KHTTPD_DISCARDS, /* the peer, with a body */
	KHTTPD_LEAVES,   /* nobody: its next request is for a process */
	KHTTPD_OFFERED,  /* whoever takes it */
	KHTTPD_LAST,     /* the last answer is being sent */
	KHTTPD_LINGERS,  /* all was sent; the peer's close is waited for */
};

/* Bytes in an account. */
struct khttpd_room {
	void *at;
	size_t size;
	bool is_listing; /* counts among those of listings as well */
};

struct khttpd_entry;

/* A file, or an entry of the cache, whose bytes are the rest of an answer. */
struct khttpd_sending {
	struct file *file;
	struct khttpd_entry *entry;
	const char *bytes; /* of the entry */
	struct kstat stat; /* what it was when its head was written */
	loff_t at;
	loff_t end;
};

static inline bool khttpd_file_is_sending(const struct khttpd_sending *sending)
{
	return sending->file || sending->entry;
}

struct khttpd_folder;

struct khttpd_connection {
	struct kref references;
	struct khttpd_namespace *namespace;
	struct list_head node;
	struct list_head offer; /* to a process */
	struct socket *socket;  /* NULL once a process has it */
	struct work_struct work;
	struct deadline timer;
	wait_queue_head_t wait;
	unsigned long flags;
	unsigned long due;   /* jiffies at which the deadline ends */
	unsigned long since; /* jiffies at which it began */
	enum khttpd_deadline deadline;
	enum khttpd_phase phase;
	bool peer_ended;
	bool broken; /* an answer begun cannot be completed as it was promised */
	bool empty_line_skipped;
	bool peer_asks_no_more; /* it said so in its last request, which has no body */
	struct khttpd_search search;
	struct khttpd_body body;
	struct khttpd_room input;
	size_t input_length; /* where connections are handed over, all of it is in the socket still */
	struct khttpd_room output;
	size_t output_length;
	size_t output_sent;
	struct khttpd_sending sending;
	struct khttpd_folder *folder;
};

/* Whether there is nothing to read in a socket: no bytes, no end, no error. */
static inline bool khttpd_socket_is_empty(const struct sock *sk)
{
	return skb_queue_empty_lockless(&sk->sk_receive_queue) &&
	       !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) && !READ_ONCE(sk->sk_err);
}

struct khttpd_listener {
	struct socket *socket;
	struct sockaddr_storage address;
};

/* What listens and is connected in one network namespace. */
struct khttpd_namespace {
	struct net *net;
	struct mutex lock; /* guards the listeners */
	struct khttpd_listener listeners[KHTTPD_LISTENERS_MAX];
	unsigned int listeners_count;
	struct delayed_work accept;
	bool is_stopping;
	struct list_head connections; /* guarded by the server's lock, as their count is */
	unsigned int count;
};

struct khttpd_server {
	enum khttpd_mode mode;
	enum deadline_kind timers;
	struct path root;
	const struct cred *cred;
	bool listing;
	bool gzip;
	bool hands_over;
	bool in_pieces; /* each line of an answer is sent by itself, to be compared */
	unsigned int connections_max;
	unsigned int deadlines_ms[KHTTPD_DEADLINES];
	long memory_max;
	unsigned long expire; /* jiffies that an entry of the cache is used; 0: no end */
	bool is_stopping;
	/*
	 * What TCP had put where our callbacks stand; a connection inherits it from its listener.
	 */
	struct {
		void (*data_ready)(struct sock *sk);
		void (*write_space)(struct sock *sk);
		void (*state_change)(struct sock *sk);
	} plain;
	struct workqueue_struct *queue;
	struct completion thread_gone;
	atomic_t threads;
	spinlock_t lock; /* guards the namespaces' lists and all counts of connections */
	unsigned int count;
	wait_queue_head_t gone;
	atomic_long_t memory, listings; /* bytes of the account, and those of listings in it */
	atomic64_t accepted, refused, requests, hits, encoded, handed_over;
};

extern struct khttpd_server khttpd;

/* namespace.c */
/* Listens at these addresses in the caller's namespace, and lets each other one have its own. */
int khttpd_namespace_init(const char *addresses);
/* Ends all that listens and is connected. */
void khttpd_namespace_exit(void);
struct khttpd_namespace *khttpd_namespace_of(const struct net *net);
/*
 * From now on the socket keeps its namespace, as one of a process does. False where the namespace is going.
 */
bool khttpd_namespace_keep(struct socket *socket);
/* Releases the socket of a connection. Never in a softirq. */
void khttpd_namespace_release(struct socket *socket);

/* listen.c */
int khttpd_listen_init(void);
void khttpd_listen_exit(void);
void khttpd_listen_begin(struct khttpd_namespace *namespace);
/* Listens at these addresses and nowhere else; where one cannot be had, all stays as it was. */
int khttpd_listen_set(struct khttpd_namespace *namespace, const char *addresses);
void khttpd_listen_end(struct khttpd_namespace *namespace);

/* connection.c */
int khttpd_connection_init(void);
void khttpd_connection_exit(void);
int khttpd_connection_make(struct khttpd_namespace *namespace, struct socket *socket);
/* Whether sending waits for memory. Only for a socket that is locked, or by which no other sends. */
void khttpd_connection_may_sleep(struct sock *sk, bool may_sleep);
void khttpd_connection_close(struct khttpd_connection *connection);
/* Closes every connection of a namespace, and waits until each is freed. None is made any more. */
void khttpd_connection_close_all(struct khttpd_namespace *namespace);
/* Takes the socket out of a connection, which is known no more. NULL where it is closed. */
struct socket *khttpd_connection_leave(struct khttpd_connection *connection);
void khttpd_connection_put(struct khttpd_connection *connection);
/*
 * Starts this deadline anew; one of the same kind that already runs is left alone unless `again`.
 */
void khttpd_connection_expect(struct khttpd_connection *connection, enum khttpd_deadline deadline,
			      bool again);

/* modes.c */
int khttpd_modes_init(void);
void khttpd_modes_exit(void);
void khttpd_modes_prepare(struct khttpd_connection *connection);
int khttpd_modes_start(struct khttpd_connection *connection);
void khttpd_modes_kick(struct khttpd_connection *connection);

/* serve.c */
enum khttpd_served {
	KHTTPD_WAITS, /* for the peer */
	KHTTPD_SPENT, /* its budget; there is more to do */
	KHTTPD_ENDED,
};
enum khttpd_served khttpd_serve(struct khttpd_connection *connection);
/* Frees what an idle connection does not need. */
void khttpd_serve_forget(struct khttpd_connection *connection);

/* softirq.c: each is only for KHTTPD_SOFTIRQ */
int khttpd_softirq_init(void);
void khttpd_softirq_exit(void);
/*
 * With the socket locked by the caller, and the processor's softirqs held off. Whether nothing is left to
 * do.
 */
bool khttpd_softirq(struct khttpd_connection *connection);

/* reply.c */
bool khttpd_reply(struct khttpd_connection *connection, const struct khttpd_request *request,
		  struct khttpd_text head, bool keep, struct khttpd_output *output);
/*
 * Writes the head of an answer from the cache on a connection that stays, and gives its body. Never
 * sleeps.
 */
void khttpd_reply_entry(struct khttpd_entry *entry, const struct khttpd_request *request,
			struct khttpd_text head, struct khttpd_output *output,
			struct khttpd_text *body);
/* A whole 503 that ends the connection: no process is there to answer. */
void khttpd_reply_unavailable(struct khttpd_output *output);
void khttpd_reply_refusal(const struct khttpd_refusal *refusal, bool omit_body,
			  struct khttpd_output *output);

/* file.c: each gives 0 or the status to answer with, and what is open must be let go of. */
int khttpd_file_init(const char *root);
void khttpd_file_exit(void);
/* The status that tells of an error, 0 for none. */
int khttpd_file_status(int error);
int khttpd_file_find(const char *name, struct path *path, struct kstat *stat);
int khttpd_file_open(const struct path *path, struct file **file);
bool khttpd_file_is_servable(const struct kstat *stat);
/* Whether the user nobody has the right to read what stands there. */
bool khttpd_file_may_be_read(const struct path *path);
/* Reads on in the file; minus an errno where it is not any more what its head says. */
ssize_t khttpd_file_read(struct khttpd_sending *sending, char *room, size_t length);
void khttpd_file_end(struct khttpd_sending *sending);

/* folder.c */
/* What the page shows is noted in the entry `keeping`, if there is one and all of it can be. */
int khttpd_folder_open(const struct path *path, struct khttpd_text name, bool chunked,
		       struct khttpd_entry *keeping, struct khttpd_folder **folder);
/*
 * Keeps the whole page in that entry, which then is what the cache has. False where that cannot be: then it
 * is written piece by piece.
 */
bool khttpd_folder_keep(struct khttpd_folder *folder);
/* Writes the next piece of the page. False where it was the last: TCP would wait for more behind it. */
bool khttpd_folder_write(struct khttpd_folder *folder, struct khttpd_output *output);
void khttpd_folder_close(struct khttpd_folder *folder);

/* handover.c */
int khttpd_handover_init(const char *paths);
void khttpd_handover_exit(void);
int khttpd_handover_begin(void);
void khttpd_handover_end(void);
/* Whether a request is for a process. */
bool khttpd_handover_wants(const struct khttpd_request *request);
/* Offers the connection, whose socket must not be touched after this. False where nobody is there. */
bool khttpd_handover_offer(struct khttpd_connection *connection);
/* Whether the offer could be taken back: no process has the connection. */
bool khttpd_handover_withdraw(struct khttpd_connection *connection);

/* memory.c */
bool khttpd_memory_take(struct khttpd_room *room, size_t size);
/* The same from a softirq. */
bool khttpd_memory_take_now(struct khttpd_room *room, size_t size);
bool khttpd_memory_grow(struct khttpd_room *room, size_t size, size_t used);
void khttpd_memory_give(struct khttpd_room *room);
/* When no room is taken any more. */
void khttpd_memory_exit(void);

#endif
