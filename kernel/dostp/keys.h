/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys: frames that bear a tag, and what a tag proves. docs/dostp.md, section "Keys".
 *
 * Secrets belong to a namespace (secrets.c). A node that begins while its namespace has secrets has keys, of
 * one mode, until it ends; a rotation replaces the secrets and leaves the node and its mode as they are.
 */
#ifndef DOSTP_KEYS_H
#define DOSTP_KEYS_H

#include "dostp.h"

#define DOSTP_SLOTS 2
#define DOSTP_SECRET_BYTES 32
#define DOSTP_WORD_BYTES 8
#define DOSTP_TAG_MAC_BYTES 8
#define DOSTP_TAG_AEAD_BYTES 16
/* Bits of the first byte of a trailer, which names the key: the mode, and the slot of the secret. */
#define DOSTP_KEY_AEAD 0x80
#define DOSTP_KEY_SLOT 1
#define DOSTP_COUNTER_BITS 56

/*
 * Windows against replay of a node, some 200 bytes each; one sender may have a quarter of them at most.
 * A window that was not used for DOSTP_REPLAY_IDLE may be forgotten (docs/dostp.md, "Replay").
 */
#define DOSTP_REPLAY_MAX 16384
#define DOSTP_REPLAY_SENDER_MAX 4096
/* Senders that are kept: as many as windows. Beyond, a node that was not heard before is not heard. */
#define DOSTP_SENDERS_MAX DOSTP_REPLAY_MAX
#define DOSTP_REPLAY_IDLE (600 * HZ)
#define DOSTP_REPLAY_WORDS 16

/* The secrets of a cluster, the slot whose secret a node sends by, and the mode in which it sends. */
struct dostp_secrets {
	u8 slots[DOSTP_SLOTS][DOSTP_SECRET_BYTES];
	bool is_set[DOSTP_SLOTS];
	u8 sends_by;
	bool is_aead;
};

/* The keys of the frames of one node, derived from a secret: that of mode `mac`, and that of `aead`. */
struct dostp_node_key {
	u64 mac[2];
	u32 aead[8];
};

/* A window against replay of a port in a slot: its newest counter, and which of the 1 023 before it came. */
struct dostp_replay {
	struct hlist_node of_chain;
	struct list_head of_sender, of_node; /* the window unused for longest is first */
	struct dostp_sender *sender;
	u16 port;
	u8 slot;
	unsigned long used;
	u64 newest;
	u64 came[DOSTP_REPLAY_WORDS]; /* a ring: the bit of a counter is its remainder by 1 024 */
};

/*
 * What is kept of a node that has sent a message's frame with a right tag, until this node ends. It outlives
 * the peer, which is forgotten when it is silent: else recorded frames of it could be played again once the
 * peer is back.
 */
struct dostp_sender {
	u16 address;
	u64 boot; /* the boot number that windows, floors and keys belong to */
	bool has_key[DOSTP_SLOTS];
	struct dostp_node_key keys[DOSTP_SLOTS];
	u64 floors[DOSTP_SLOTS]; /* a new window begins with such a counter or a larger one */
	struct list_head windows;
	u32 windows_count;
};

/* All windows against replay that a node holds: by hash, and by time of use. */
struct dostp_replays {
	struct hlist_head chains[1024];
	struct list_head all;
	u32 count, seed;
};

/* seal.c: computes on bytes alone; uses neither a node nor a clock */
void dostp_seal_derive(const u8 *secret, u64 boot, u16 source, struct dostp_node_key *key);
/*
 * Writes the trailer behind a frame's payload, where there must be room for it; encrypts the payload
 * if the word says so.
 */
void dostp_seal(const struct dostp_node_key *key, u8 *frame, unsigned int length, u64 word);
/* Whether the tag behind the payload is right; decrypts the payload if the word says so. */
bool dostp_seal_open(const struct dostp_node_key *key, u8 *frame, unsigned int length);
u64 dostp_seal_word(const u8 *frame, unsigned int length);

/* replay.c: with the lock of the node */
/* Notes the counter of a frame whose tag is right; DOSTP_FAULT_REPLAY if it came before, or may have. */
enum dostp_fault dostp_replay_note(struct dostp_replays *replays, struct dostp_sender *sender, u16 port,
				   u8 slot, u64 counter);
/* Frees all windows of a sender, and sets its floors to 0. */
void dostp_replay_forget(struct dostp_replays *replays, struct dostp_sender *sender);

/* keys.c */
/* Makes the keys of a node with this boot number and address; NULL: there is no memory. */
struct dostp_keys *dostp_keys_begin(const struct dostp_secrets *secrets, u64 boot, u16 address);
void dostp_keys_end(struct dostp_keys *keys);
/* With RTNL: gives a node other secrets, of the same mode. */
int dostp_keys_change(struct dostp_node *node, const struct dostp_secrets *secrets);
/* Bytes of the trailer of a frame: a control frame bears a tag of mode `mac` in either mode. */
unsigned int dostp_keys_trailer(const struct dostp_keys *keys, bool is_control);
/* Under RCU, or with the lock: gives a frame, header and payload, its trailer. */
void dostp_keys_seal(const struct dostp_node *node, struct sk_buff *skb);
/*
 * With the lock: verifies a frame's tag and counter, and decrypts its payload in place. The frame must be
 * linear and not shared. `greeting`: NULL for a message's frame.
 */
enum dostp_fault dostp_keys_open(struct dostp_node *node, struct sk_buff *skb,
				 const struct dostp_header *header, const struct dostp_greeting *greeting);
/* Windows against replay that are held now. */
u32 dostp_keys_windows(const struct dostp_keys *keys);

/* secrets.c */
int dostp_secrets_show(struct seq_file *file, void *unused);
int dostp_secrets_write(struct file *file, char *text, size_t length);

#endif
