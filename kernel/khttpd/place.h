/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where an open file stands beneath the root, and whether a lookup would still find it there as it was.
 *
 * What is compared is read from memory: the file's size and times, whether it is open for writing, and the
 * times of every folder between it and the root. A rename changes the times of the folders that it takes from
 * and puts into, so one elsewhere on the machine changes nothing here. Filesystems that others can change
 * behind this kernel's back have no places.
 */
#ifndef KHTTPD_PLACE_H
#define KHTTPD_PLACE_H

#include <linux/fs.h>
#include <linux/path.h>
#include <linux/stat.h>
#include <linux/time64.h>

enum khttpd_place_limit {
	/* Folders between the root and a file, the root included. */
	KHTTPD_PLACE_DEPTH_MAX = 8,
	/*
	 * What was changed this recently may change again without another time: clocks of filesystems go by
	 * ticks. Some go by more, which is added.
	 */
	KHTTPD_PLACE_SETTLED_MS = 100,
};

struct khttpd_place {
	struct path path; /* held */
	struct kstat stat;
	unsigned int depth;
	struct timespec64 folders[KHTTPD_PLACE_DEPTH_MAX];
};

static inline struct timespec64 khttpd_place_ctime(const struct inode *inode)
{
#ifdef HAVE_INODE_TIMES
	return inode_get_ctime(inode);
#else
	return inode->i_ctime;
#endif
}

/*
 * Whether each change from now on gives what stands there another time of change than this one, in memory of
 * this kernel.
 */
bool khttpd_place_is_told(const struct dentry *dentry, struct timespec64 ctime);
/*
 * Notes where a file or a folder stands that was found by this decoded path, and holds it until
 * khttpd_place_leave. False where that cannot be told later without sleeping: the path leads over a link or a
 * mount, the filesystem is changed elsewhere, or the file or one of the folders was changed just now.
 */
bool khttpd_place_note(struct khttpd_place *place, const struct path *path, const struct kstat *stat,
		       const char *name);
/* Whether a lookup that begins now finds the same: what was noted holds for it. Sleeps. */
bool khttpd_place_is_found(const struct khttpd_place *place, const char *name);
/* Whether the file still stands there unchanged. Never sleeps. */
bool khttpd_place_is_true(const struct khttpd_place *place);
void khttpd_place_leave(struct khttpd_place *place);

#endif
