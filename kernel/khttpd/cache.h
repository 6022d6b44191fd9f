/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small files that were served lately, with what their answers need and their body in gzip: found without
 * sleeping, by the bytes of a request's path.
 *
 * An entry is never changed. Whether it still is what a lookup would find is asked at each use: the
 * file's size and times, whether it is open for writing, the times of every folder between it and the
 * root, and whether anything was renamed since. All of these are read from memory. What may have changed
 * is looked up again.
 */
#ifndef KHTTPD_CACHE_H
#define KHTTPD_CACHE_H

#include <linux/llist.h>
#include <linux/path.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <linux/stat.h>

#include "answer.h"

enum khttpd_cache_limit {
	KHTTPD_ETAG_BYTES = 64,
	/* Bytes of a path and of a body that are kept at most. */
	KHTTPD_CACHE_PATH_BYTES = 256,
	KHTTPD_CACHE_BODY_BYTES = 256 * 1024,
	/* Folders between the root and a file, the root included. */
	KHTTPD_CACHE_DEPTH_MAX = 8,
	/* Lists that entries are spread over. */
	KHTTPD_CACHE_LISTS = 4096,
	/*
	 * What was changed this recently may change again without another time: clocks of filesystems go by
	 * ticks.
	 */
	KHTTPD_CACHE_SETTLED_MS = 100,
	/* How often entries are looked for that are no longer true, while there are any. */
	KHTTPD_CACHE_SWEEP_S = 10,
};

struct khttpd_entry {
	struct hlist_node node; /* in its list, read under RCU */
	struct list_head age;   /* in the order of entering */
	struct llist_node dead;
	refcount_t references;
	bool listed;
	bool used; /* since it was last spared */
	u64 hash;
	struct path path;
	unsigned int renames;
	unsigned int depth;
	struct timespec64 folders[KHTTPD_CACHE_DEPTH_MAX];
	struct kstat stat;
	struct khttpd_validators validators;
	const char *media;
	bool varies; /* may be sent encoded */
	char *gzip;  /* the body in gzip, or NULL */
	size_t gzip_length;
	char gzip_etag[KHTTPD_ETAG_BYTES];
	size_t key_length;
	char etag[KHTTPD_ETAG_BYTES];
	char *bytes; /* the body */
	char key[];
};

int khttpd_cache_init(unsigned long bytes_max);
void khttpd_cache_exit(void);
unsigned long khttpd_cache_bytes(void);
/* The entry for the path of a request, to be put, or NULL. Never sleeps. */
struct khttpd_entry *khttpd_cache_find(struct khttpd_text key);
void khttpd_cache_put(struct khttpd_entry *entry);
/*
 * Keeps an open file, whose attributes are `stat`, for requests for `key`, if it may be kept. `name` is the
 * decoded path that it was found by. Sleeps.
 */
void khttpd_cache_keep(struct khttpd_text key, const char *name, struct file *file,
		       const struct khttpd_represented *what, const struct kstat *stat);

#endif
