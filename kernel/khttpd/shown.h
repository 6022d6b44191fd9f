/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a listing shows of a folder's entries, and whether they still are as they were shown.
 *
 * The times of the folder tell which names it has, and nothing of what stands behind them: a file that grows,
 * or whose rights change, changes no folder. So each entry that was looked at is held, also one that was left
 * out of the page, for it may be shown after a change of its rights. What is compared is read from memory.
 */
#ifndef KHTTPD_SHOWN_H
#define KHTTPD_SHOWN_H

#include <linux/path.h>
#include <linux/stat.h>

enum khttpd_shown_limit {
	/*
	 * About what the kernel's caches have of an entry (a dentry and an inode of ext4), which memory that is
	 * short could not take back while it is held.
	 */
	KHTTPD_SHOWN_HELD_BYTES = 192 + 1088,
};

struct khttpd_shown_entry {
	struct dentry *dentry; /* held */
	s64 size;
	s64 seconds; /* of the time of change */
	long nanoseconds;
};

struct khttpd_shown {
	unsigned int count, room;
	struct khttpd_shown_entry entries[];
};

/* Bytes of memory that so many entries take and hold. */
size_t khttpd_shown_cost(unsigned int room);
/* Room for so many entries, or NULL where there is no memory. */
struct khttpd_shown *khttpd_shown_make(unsigned int room);
/*
 * Notes what was found by `name` in the folder. False where a change of it could not be told: `name` is a
 * link or a mount, its filesystem is changed elsewhere, or it was changed just now.
 */
bool khttpd_shown_note(struct khttpd_shown *shown, const struct dentry *folder, const char *name,
		       const struct path *path, const struct kstat *stat);
/* Whether each entry is what it was. Never sleeps. */
bool khttpd_shown_is_true(const struct khttpd_shown *shown);
/* Before the folder is let go of. Sleeps. */
void khttpd_shown_free(struct khttpd_shown *shown);

#endif
