/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small files and listings that were served lately, with what their answers need: found without sleeping, by
 * the decoded path of a request, so that a file has one entry however its path is spelled.
 *
 * What an entry holds never changes, but that its body in gzip comes later: a worker makes it once, when
 * somebody has asked for it. At each use an entry is asked whether it still is what a lookup would find
 * (place.h), and a listing whether all that it shows is as it was (shown.h); what may have changed, or is
 * older than `expire_s`, is looked up again.
 *
 * The account `cache_kib` is charged for an entry before its memory is taken, and until that is given back,
 * whether the entry is still found or only held by those who are sent it.
 */
#ifndef KHTTPD_CACHE_H
#define KHTTPD_CACHE_H

#include <linux/llist.h>
#include <linux/rculist.h>
#include <linux/refcount.h>

#include "answer.h"
#include "place.h"
#include "shown.h"

enum khttpd_cache_limit {
	KHTTPD_ETAG_BYTES = 64,
	/* Bytes of a decoded path, of one as it is sent, and of a body that are kept or looked for at most. */
	KHTTPD_CACHE_PATH_BYTES = 256,
	KHTTPD_CACHE_RAW_BYTES = 512,
	KHTTPD_CACHE_BODY_BYTES = 256 * 1024,
	/* The part of the cache that a listing, and what is held for it, may have: others are left room. */
	KHTTPD_CACHE_LISTING_PART = 8,
	/* Lists that entries are spread over. */
	KHTTPD_CACHE_LISTS = 4096,
	/* Entries that are looked at to make room for one, with softirqs held off. */
	KHTTPD_CACHE_STEPS_MAX = 64,
	/* How often entries are looked for that are no longer true, while there are any. */
	KHTTPD_CACHE_SWEEP_S = 10,
};

/* A body in gzip. */
struct khttpd_encoded {
	size_t length;
	char etag[KHTTPD_ETAG_BYTES];
	char *bytes;
};

struct khttpd_entry {
	struct hlist_node node; /* in its list, read under RCU */
	struct list_head age;   /* in the order of entering */
	struct list_head wish;  /* in the line of those to be encoded */
	struct llist_node dead;
	refcount_t references;
	bool listed;
	bool used; /* since it was last spared */
	bool wished; /* its gzip was asked for once */
	u64 hash;
	size_t charged; /* bytes of the account */
	unsigned long due;      /* jiffies after which it is not used any more; 0: never */
	struct khttpd_place place;
	struct khttpd_shown *shown; /* by a listing; NULL for a file */
	struct khttpd_validators validators;
	const char *media;
	bool varies; /* may be sent encoded */
	const struct khttpd_encoded *gzip; /* NULL, and set once */
	size_t key_length;
	char etag[KHTTPD_ETAG_BYTES];
	size_t length;
	char *bytes; /* the body */
	char key[];
};

int khttpd_cache_init(unsigned long bytes_max);
void khttpd_cache_exit(void);
unsigned long khttpd_cache_bytes(void);
/*
 * The entry for the path of a request as it was sent, to be put, or NULL. A listing of more entries than
 * `shown_max` is not found: each of them is looked at. Never sleeps.
 */
struct khttpd_entry *khttpd_cache_find(struct khttpd_text raw, unsigned int shown_max);
void khttpd_cache_put(struct khttpd_entry *entry);
/* The entry's body in gzip, or NULL: then it is made soon, if it can be. Never sleeps. */
const struct khttpd_encoded *khttpd_cache_gzip(struct khttpd_entry *entry);
/*
 * Keeps an open file, whose attributes are `stat`, for requests for the decoded path `key`, if it may be
 * kept. `name` is the decoded path that it was found by. Sleeps.
 */
void khttpd_cache_keep(struct khttpd_text key, const char *name, struct file *file,
		       const struct khttpd_represented *what, const struct kstat *stat);

/*
 * A listing is kept in steps, each of which may find that it cannot be: then the entry is put. All sleep.
 *
 * Begins an entry for the listing of a folder, found by the decoded path `key`, before its names are read.
 */
struct khttpd_entry *khttpd_cache_begin(struct khttpd_text key, const char *name, const struct path *path,
					const struct kstat *stat);
/* Makes room for what is shown: so many entries, each of which is noted in `entry->shown`. */
bool khttpd_cache_expect(struct khttpd_entry *entry, unsigned int count);
/* Takes the page, and lists the entry. */
bool khttpd_cache_finish(struct khttpd_entry *entry, const char *page, size_t length);

#endif
