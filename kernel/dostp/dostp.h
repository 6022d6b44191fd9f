/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module share. The format and the rules are those of docs/dostp.md.
 *
 * A namespace has one node at most: that of the interface it was told. The node comes and goes with
 * the link, under the lock of interfaces (RTNL); readers find it under RCU. All that a node knows
 * of others changes under its spinlock. Frames that it decides to send meanwhile wait in
 * `outgoing` and leave when the lock is given back (dostp_node_unlock), so no device is entered
 * with it.
 */
#ifndef DOSTP_H
#define DOSTP_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/netdevice.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "header.h"
#include "transact.h"
#include "window.h"

#ifndef CONFIG_64BIT
#error "a link address is read and written as one word of 64 bits"
#endif

/* Bounds of docs/dostp.md; times in jiffies. */
#define DOSTP_PEERS_MAX 4096
#define DOSTP_ASKED_MAX 256
/*
 * Strangers (see struct dostp_peer) that frames without proof may add. Greetings with a right tag may add
 * strangers up to twice that, so that a flood of forged frames leaves room for nodes that have the secret.
 */
#define DOSTP_STRANGERS_MAX 256
#define DOSTP_PARKED_MESSAGES_MAX 16
#define DOSTP_PARKED_BYTES_MAX (64 << 10)
#define DOSTP_MESSAGE_BYTES_MAX (256 << 10)
#define DOSTP_SOURCE_BYTES_MAX (256 << 10)
#define DOSTP_SOURCE_MESSAGES_MAX 64
#define DOSTP_NODE_BYTES_MAX (4 << 20)
#define DOSTP_NODE_MESSAGES_MAX 4096
#define DOSTP_MESSAGE_AGE HZ
#define DOSTP_FRESH (450 * HZ)
#define DOSTP_GONE (2 * DOSTP_FRESH)
#define DOSTP_ANNOUNCE_SPREAD (45 * HZ)
#define DOSTP_HELLO_AGAIN (HZ / 2)
#define DOSTP_TRIAL HZ
#define DOSTP_REPLY_SPREAD (HZ / 5)
#define DOSTP_PROBE_AGAIN (3 * HZ / 10)
#define DOSTP_PROBE_TRIES 3
#define DOSTP_UNREACHABLE HZ
/* How long a challenge to an unknown node is the same; its echo is taken for as long again. */
#define DOSTP_INTRODUCTION (2 * HZ)
#define DOSTP_GENERATIONS 512
#define DOSTP_SUSPECT_REST HZ /* between two introductions that frames without proof begin, for an address */
#define DOSTP_REPLIES_PER_SECOND_MAX 1000
#define DOSTP_REPLIES_WAITING_MAX 1024
#define DOSTP_CONFLICTS_PER_SECOND_MAX 10
/* PROBEs of a large size that a greeting makes be sent: each is 140 times as long. */
#define DOSTP_SIZES_PER_SECOND_MAX 100

#define DOSTP_MTU_ETHERNET 1500
/* The largest frame that is told and sent: a frame is one piece of memory. */
#define DOSTP_MTU_MAX 9216
#define DOSTP_PORTS_HASH 256

/* A link address as it stands in the first six bytes of a word. */
typedef u64 dostp_link;
#define DOSTP_LINK_EVERYBODY cpu_to_le64(0xffffffffffffULL)

static inline dostp_link dostp_link_of(const u8 *bytes)
{
	dostp_link link = 0;

	memcpy(&link, bytes, ETH_ALEN);
	return link;
}

#ifdef HAVE_SOCKADDR_UNSIZED
typedef struct sockaddr_unsized dostp_sockaddr;
#else
typedef struct sockaddr dostp_sockaddr;
#endif
#ifdef HAVE_CONST_TABLE
typedef const struct ctl_table dostp_table;
#else
typedef struct ctl_table dostp_table;
#endif

/* A question to one node, repeated until it is answered or has failed. */
struct dostp_probe {
	u64 challenge; /* 0: nothing is asked */
	dostp_link to;
	unsigned long next;
	u8 tries;
};

/* Whether larger frames than every Ethernet's reach a peer. */
enum dostp_size {
	DOSTP_SIZE_ETHERNET, /* they do not, or one of both nodes takes none */
	DOSTP_SIZE_UNASKED,  /* too many are asked: the next message to the peer begins to ask */
	DOSTP_SIZE_ASKED,
	DOSTP_SIZE_LARGE,
};

/* Another node, or an address that is asked for. */
struct dostp_peer {
	u16 address;
	bool is_known;     /* else the address is asked for */
	bool is_stranger;  /* with keys: neither known nor asked for; a frame with its address came */
	bool is_stale;
	bool has_failed;   /* nobody answered at the address; until `fresh_until` it is not asked again */
	bool has_claimant;
	bool was_spoken_to;
	u16 mtu;           /* as it told it */
	u16 messages_count;
	u32 bytes;         /* held by its messages */
	dostp_link link, claimant;
	u64 boot;          /* 0: not known */
	unsigned long heard, fresh_until, spoken;
	struct dostp_probe probe, size_probe;
	/*
	 * With keys: the PROBE to the link address of a frame whose sender is not believed: its boot number
	 * or link address is another one than the peer's, or none is known.
	 */
	struct dostp_probe introduction;
	unsigned long rests_until; /* frames without proof begin no introduction before that */
	u8 size;           /* enum dostp_size */
	struct list_head all, messages;
	struct sk_buff_head parked; /* frames that wait until the address is found */
	u32 parked_messages, parked_bytes;
	struct rcu_head rcu;
};

/* A message of which fragments are missing. */
struct dostp_message {
	struct list_head of_node, of_peer; /* oldest first */
	struct dostp_peer *peer;
	struct sk_buff *skb;
	u64 name;
	u8 kind, next_sequence;
	u32 bytes, held, room; /* room: free bytes of the last page fragment */
	unsigned long begun;
};

/* So many in a second. */
struct dostp_rate {
	unsigned long began;
	u32 count;
};

struct dostp_node {
	struct dostp_net *net;
	struct net_device *dev;
	struct packet_type packet_type;
	u32 address; /* IPv4, host order */
	u32 netmask;
	u16 low, mtu;
	u8 cluster, flags, trailer; /* flags: DOSTP_AUTH or DOSTP_SUM; bytes of a message's trailer */
	struct dostp_keys *keys;    /* NULL: frames bear no tag */
	u64 boot;
	dostp_link link;
	spinlock_t lock;
	struct dostp_peer __rcu **table; /* by address */
	struct list_head peers, messages;
	u32 known, asked, strangers, messages_count, bytes;
	struct dostp_window *window;
	struct sk_buff_head outgoing, replies;
	struct dostp_rate replies_rate, conflicts_rate, sizes_rate;
	u64 hello_challenge;
	siphash_key_t introductions; /* of the challenges to nodes that are not believed */
	u16 generations[DOSTP_GENERATIONS]; /* echoes that were believed, by address: challenges depend on it */
	unsigned long hello_until; /* with keys: an echo of hello_challenge proves its sender until then */
	unsigned long full_until; /* no peer is stale until then */
	unsigned long started, announce_at, hello_again_at, look_at, tick_at;
	bool hello_again, is_refused, has_tick;
	dostp_link refused_by;
	struct delayed_work tick;
};

/* What passed, by processor. */
struct dostp_counts {
	u64 drops[DOSTP_FAULTS];
	u64 frames_received, control_received, messages_received, messages_sent, control_sent;
};

/* A namespace. */
struct dostp_net {
	struct net *net;
	struct dostp_node __rcu *node;
	struct hlist_head ports[DOSTP_PORTS_HASH];
	spinlock_t ports_lock;
	struct dostp_counts __percpu *counts;
	char interface[IFNAMSIZ];
	int cluster, sum, group;
	u16 next_port;
	struct dostp_secrets *secrets; /* with RTNL; NULL: no keys */
	struct ctl_table *settings;
	struct ctl_table_header *settings_header;
};

struct dostp_sock {
	struct sock sk; /* first */
	u16 port;       /* 0: not bound */
	bool takes_transactions;
	atomic_t next_id;
	u32 address;    /* bound to, host order; 0: any */
	u64 peer;       /* struct dostp_end in one word, for it is read without a lock; 0: not connected */
};

/* A node's address in host order, and a port. */
struct dostp_end {
	u32 host;
	u16 port;
};

static inline u64 dostp_end_pack(u32 host, u16 port)
{
	return (u64)host << 16 | port;
}

static inline struct dostp_end dostp_end_read(const u64 *word)
{
	u64 end = READ_ONCE(*word);

	return (struct dostp_end){ .host = end >> 16, .port = end };
}

/* Of a message in a socket's queue. */
struct dostp_from {
	u32 address;
	u16 port;
	struct dostp_message_name name;
};

/* Of an answer that waits for its time. */
struct dostp_due {
	unsigned long at;
};

static inline struct dostp_sock *dostp_sk(const struct sock *sk)
{
	return (struct dostp_sock *)sk;
}

static inline struct dostp_from *dostp_from(struct sk_buff *skb)
{
	return (struct dostp_from *)skb->cb;
}

static inline struct dostp_due *dostp_due(struct sk_buff *skb)
{
	return (struct dostp_due *)skb->cb;
}

#define dostp_count(net, name) this_cpu_inc((net)->counts->name)

static inline void dostp_drop(struct dostp_net *net, enum dostp_fault fault)
{
	this_cpu_inc(net->counts->drops[fault]);
}

/* main.c */
extern ushort dostp_family, dostp_ether_type;
extern char *dostp_interface;
extern struct proto dostp_proto;
extern struct workqueue_struct *dostp_queue;

/* namespace.c */
int dostp_namespace_init(void);
void dostp_namespace_exit(void);
struct dostp_net *dostp_net(const struct net *net);
/*
 * With RTNL: starts, ends or begins anew the node, as settings and interface are now. An error: there could
 * be a node, but for what was lacking.
 */
int dostp_namespace_renew(struct dostp_net *net);

/* settings.c */
int dostp_settings_init(struct dostp_net *net);
void dostp_settings_exit(struct dostp_net *net);

/* node.c */
/* The largest frame that this interface takes of a node. */
u16 dostp_node_mtu(const struct net_device *dev);
/* `since`: the time in jiffies from which on the address is held; the trial of the node counts from there. */
int dostp_node_start(struct dostp_net *net, struct net_device *dev, u32 address, u32 netmask,
		     unsigned long since);
void dostp_node_end(struct dostp_net *net, bool says_bye);
/* Gives the lock back and sends what was decided to be sent. */
void dostp_node_unlock(struct dostp_node *node);
/* With the lock: time is to be looked at after so many jiffies. */
void dostp_node_kick(struct dostp_node *node, unsigned long delay);
bool dostp_node_in_trial(const struct dostp_node *node);
u64 dostp_node_draw(void);

/* peer.c; all but the first two with the lock */
int dostp_peer_init(void);
void dostp_peer_exit(void);
struct dostp_peer *dostp_peer_find(struct dostp_node *node, u16 address);
/* `mtu`: as the peer told it. What waited for its address is sent. */
struct dostp_peer *dostp_peer_learn(struct dostp_node *node, u16 address, dostp_link link, u16 mtu);
/*
 * With keys: a frame of a sender that is not believed came from this link address. Sends a PROBE there;
 * only its answer makes the sender believed. `is_proven`: the tag of the frame is right.
 */
void dostp_peer_introduce(struct dostp_node *node, u16 address, dostp_link link, unsigned long delay,
			  bool is_proven);
/* Whether this echo answers such a PROBE, to this link address, of now or of the time before. */
bool dostp_peer_is_introduced(const struct dostp_node *node, u16 address, dostp_link link, u64 echo);
/* Begins to ask for an address; NULL if too many are asked for. */
struct dostp_peer *dostp_peer_ask(struct dostp_node *node, u16 address);
void dostp_peer_remove(struct dostp_node *node, struct dostp_peer *peer);
void dostp_peer_refresh(struct dostp_peer *peer);
void dostp_peer_probe(struct dostp_node *node, struct dostp_peer *peer, dostp_link to);
/* Asks anew whether larger frames reach the peer: the first message to it is cut as the later ones. */
void dostp_peer_size_anew(struct dostp_node *node, struct dostp_peer *peer);
/* Begins to ask whether larger frames reach the peer. */
void dostp_peer_size_ask(struct dostp_node *node, struct dostp_peer *peer);
/* Looks at all peers; gives the jiffies until the next look. */
unsigned long dostp_peer_look(struct dostp_node *node);
u16 dostp_peer_mtu(const struct dostp_node *node, const struct dostp_peer *peer);

/* heard.c: with the lock; what a sound frame tells of its sender */
enum dostp_fault dostp_heard(struct dostp_node *node, dostp_link link, const struct dostp_header *header,
			     const struct dostp_greeting *greeting, struct dostp_peer **peer);
/* With keys: a message's frame cannot be verified, as no boot number of its sender is believed. */
void dostp_heard_stranger(struct dostp_node *node, dostp_link link, const struct dostp_header *header);

/* control.c: with the lock */
void dostp_control_push(struct dostp_node *node, enum dostp_kind kind, dostp_link to, u16 destination,
			u64 challenge, u64 echo);
/* A PROBE, padded to a frame of so many bytes; 0: not padded. */
void dostp_control_probe(struct dostp_node *node, u16 destination, const struct dostp_probe *probe,
			 unsigned int frame_bytes);
bool dostp_control_reply(struct dostp_node *node, dostp_link to, u16 destination, u64 echo,
			 unsigned long delay);
/* Sends a PROBE to a sender that is not believed, after `delay` jiffies; false if there are too many. */
bool dostp_control_introduce(struct dostp_node *node, u16 destination, const struct dostp_probe *probe,
			     unsigned long delay);
/* Whether a greeting may make a PROBE of a large size be sent. */
bool dostp_control_may_size(struct dostp_node *node);
void dostp_control_conflict(struct dostp_node *node, dostp_link to, u64 echo);
void dostp_control_hello(struct dostp_node *node, u64 challenge);
/* Answers whose time has come; gives the jiffies until the next look. */
unsigned long dostp_control_look(struct dostp_node *node);

/* port.c */
int dostp_port_bind(struct dostp_net *net, struct sock *sk, u16 port);
void dostp_port_release(struct dostp_net *net, struct sock *sk);
/* Under RCU: whom a message of this kind is for; NULL if nobody. */
struct sock *dostp_port_find(const struct dostp_node *node, u16 port, u32 source, u16 source_port, u8 kind);
/* Under RCU: the message to all sockets of the port. */
void dostp_port_deliver_all(const struct dostp_node *node, u16 port, struct sk_buff *skb);
void dostp_port_deliver(struct dostp_net *net, struct sock *sk, struct sk_buff *skb);
/* Tells every socket that there is no node any more. */
void dostp_port_tell_down(struct dostp_net *net);

/* socket.c */
extern const struct net_proto_family dostp_socket_family;
int dostp_socket_autobind(struct sock *sk);

/* send.c */
/* `name`: the kind; with a kind of transactions, the id as well. */
int dostp_send(struct sock *sk, struct msghdr *msg, size_t length, u32 address, u16 port,
	       const struct dostp_message_name *name);
/* Under RCU, or with the lock: gives a frame its tag, if there are keys, and its Ethernet header. */
void dostp_send_finish(struct dostp_node *node, struct sk_buff *skb, dostp_link to);
/* With the lock: what waited for this peer's address may go. */
void dostp_send_parked(struct dostp_node *node, struct dostp_peer *peer);

/* receive.c */
int dostp_receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *type,
		  struct net_device *orig_dev);

/* reassemble.c; all but the first two with the lock */
int dostp_reassemble_init(void);
void dostp_reassemble_exit(void);
/*
 * Takes a frame of a message, without header and trailer. Gives the whole message, or NULL: the
 * frame waits, or was dropped and counted. The frame is used up.
 */
struct sk_buff *dostp_reassemble(struct dostp_node *node, struct dostp_peer *peer,
				 const struct dostp_header *header, struct sk_buff *skb);
void dostp_reassemble_expire(struct dostp_node *node);
void dostp_reassemble_forget(struct dostp_node *node, struct dostp_peer *peer);

/* tell.c */
int dostp_tell_init(struct net *net);
void dostp_tell_exit(struct net *net);

#endif
