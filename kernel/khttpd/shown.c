// SPDX-License-Identifier: GPL-2.0
/*
 * What a listing shows of a folder's entries: see shown.h.
 *
 * An entry is held, and whoever is held keeps its inode: to remove a held file takes only its name away.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "khttpd.h"
#include "place.h"
#include "shown.h"

size_t khttpd_shown_cost(unsigned int room)
{
	return sizeof(struct khttpd_shown) +
	       room * (sizeof(struct khttpd_shown_entry) + KHTTPD_SHOWN_HELD_BYTES);
}

struct khttpd_shown *khttpd_shown_make(unsigned int room)
{
	struct khttpd_shown *shown;

	shown = kvzalloc(struct_size(shown, entries, room), GFP_KERNEL | __GFP_NOWARN);
	if (shown)
		shown->room = room;
	return shown;
}

/* Whether the folder has it by this very name: no link led there. */
static bool khttpd_shown_is_named(struct dentry *dentry, const struct dentry *folder, const char *name)
{
	bool is_named;

	spin_lock(&dentry->d_lock);
	is_named = dentry->d_parent == folder && dentry->d_name.len == strlen(name) &&
		   !memcmp(dentry->d_name.name, name, dentry->d_name.len);
	spin_unlock(&dentry->d_lock);
	return is_named;
}

/*
 * The time of change tells of every other change, of rights and of the time of modification. A long write has
 * its time at its beginning, so the size is compared as well.
 */
bool khttpd_shown_note(struct khttpd_shown *shown, const struct dentry *folder, const char *name,
		       const struct path *path, const struct kstat *stat)
{
	if (shown->count == shown->room || path->mnt != khttpd.root.mnt ||
	    !khttpd_place_is_told(path->dentry, stat->ctime) ||
	    !khttpd_shown_is_named(path->dentry, folder, name))
		return false;
	shown->entries[shown->count++] = (struct khttpd_shown_entry){
		.dentry = dget(path->dentry),
		.size = stat->size,
		.seconds = stat->ctime.tv_sec,
		.nanoseconds = stat->ctime.tv_nsec,
	};
	return true;
}

static bool khttpd_shown_entry_is_true(const struct khttpd_shown_entry *entry)
{
	const struct inode *inode = READ_ONCE(entry->dentry->d_inode);
	struct timespec64 ctime;

	if (!inode || d_mountpoint(entry->dentry))
		return false;
	ctime = khttpd_place_ctime(inode);
	return i_size_read(inode) == entry->size && ctime.tv_sec == entry->seconds &&
	       ctime.tv_nsec == entry->nanoseconds;
}

bool khttpd_shown_is_true(const struct khttpd_shown *shown)
{
	unsigned int i;

	for (i = 0; i < shown->count; i++)
		if (!khttpd_shown_entry_is_true(&shown->entries[i]))
			return false;
	return true;
}

void khttpd_shown_free(struct khttpd_shown *shown)
{
	if (!shown)
		return;
	while (shown->count) {
		dput(shown->entries[--shown->count].dentry);
		cond_resched();
	}
	kvfree(shown);
}
