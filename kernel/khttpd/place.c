// SPDX-License-Identifier: GPL-2.0
/*
 * Where a file stands: see place.h.
 *
 * The file is held, and so are the folders above it, but only as long as they are that: whatever is read of a
 * folder is read under RCU, and a folder that was left by the file may be none any more.
 */
#include <linux/atomic.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/rcupdate.h>
#include <linux/timekeeping.h>

#include "khttpd.h"
#include "place.h"
#include "race.h"

static struct timespec64 khttpd_place_mtime(const struct inode *inode)
{
#ifdef HAVE_INODE_TIMES
	return inode_get_mtime(inode);
#else
	return inode->i_mtime;
#endif
}

static bool khttpd_place_is_file(const struct khttpd_place *place, const struct inode *inode)
{
	const struct kstat *stat = &place->stat;
	struct timespec64 mtime, ctime;

	if (!inode)
		return false;
	mtime = khttpd_place_mtime(inode);
	ctime = khttpd_place_ctime(inode);
	return i_size_read(inode) == stat->size && timespec64_equal(&mtime, &stat->mtime) &&
	       timespec64_equal(&ctime, &stat->ctime) && atomic_read(&inode->i_writecount) <= 0;
}

static bool khttpd_place_is_folder(const struct inode *inode, const struct timespec64 *noted)
{
	struct timespec64 ctime;

	if (!inode)
		return false;
	ctime = khttpd_place_ctime(inode);
	return timespec64_equal(&ctime, noted);
}

bool khttpd_place_is_true(const struct khttpd_place *place)
{
	const struct dentry *dentry = place->path.dentry;
	unsigned int i;
	bool is_true;

	rcu_read_lock();
	is_true = khttpd_place_is_file(place, d_inode_rcu(dentry)) && !d_mountpoint(dentry);
	for (i = 0; is_true && i < place->depth; i++) {
		dentry = READ_ONCE(dentry->d_parent);
		khttpd_race();
		is_true = khttpd_place_is_folder(d_inode_rcu(dentry), &place->folders[i]);
		/* What is mounted on the root itself was there before, or is not seen from it. */
		if (i + 1 < place->depth && d_mountpoint(dentry))
			is_true = false;
	}
	rcu_read_unlock();
	return is_true;
}

/*
 * Whether only this kernel changes what stands there. Others are asked by d_revalidate, which may sleep;
 * those that need not be asked are filesystems on a device, and those in memory.
 */
static bool khttpd_place_is_own(const struct dentry *dentry)
{
	const struct super_block *sb = dentry->d_sb;

	if (READ_ONCE(dentry->d_flags) & (DCACHE_OP_REVALIDATE | DCACHE_OP_WEAK_REVALIDATE))
		return false;
	return sb->s_type->fs_flags & FS_REQUIRES_DEV || sb->s_magic == TMPFS_MAGIC ||
	       sb->s_magic == RAMFS_MAGIC || sb->s_magic == OVERLAYFS_SUPER_MAGIC;
}

static bool khttpd_place_is_settled(const struct dentry *dentry, struct timespec64 changed)
{
	const s64 settled_ns = (s64)KHTTPD_PLACE_SETTLED_MS * NSEC_PER_MSEC + dentry->d_sb->s_time_gran;
	struct timespec64 now;

	ktime_get_real_ts64(&now);
	return timespec64_to_ns(&now) - timespec64_to_ns(&changed) > settled_ns;
}

bool khttpd_place_is_told(const struct dentry *dentry, struct timespec64 ctime)
{
	return khttpd_place_is_own(dentry) && khttpd_place_is_settled(dentry, ctime);
}

/* Whether the dentry has the name that ends in front of `*end`, which then stands in front of it. */
static bool khttpd_place_has_name(struct dentry *dentry, const char *name, size_t *end)
{
	size_t length;
	bool has;

	spin_lock(&dentry->d_lock);
	length = dentry->d_name.len;
	has = *end > length && name[*end - length - 1] == '/' &&
	      !memcmp(name + *end - length, dentry->d_name.name, length);
	spin_unlock(&dentry->d_lock);
	if (has)
		*end -= length + 1;
	return has;
}

/* Notes one folder. False where it is none any more, or not one to rely on. */
static bool khttpd_place_note_folder(struct khttpd_place *place, const struct dentry *dentry)
{
	const struct inode *inode = d_inode_rcu(dentry);
	struct timespec64 *ctime = &place->folders[place->depth];

	if (!inode || !khttpd_place_is_own(dentry))
		return false;
	*ctime = khttpd_place_ctime(inode);
	place->depth++;
	return khttpd_place_is_settled(dentry, *ctime);
}

/* Notes the folders between the file and the root, under RCU. */
static bool khttpd_place_note_folders(struct khttpd_place *place, const char *name)
{
	struct dentry *dentry = place->path.dentry, *above;
	size_t end = strlen(name);

	/* The path of a folder ends with a slash. */
	if (end && name[end - 1] == '/')
		end--;
	while (dentry != khttpd.root.dentry) {
		above = READ_ONCE(dentry->d_parent);
		khttpd_race();
		if (place->depth == KHTTPD_PLACE_DEPTH_MAX || dentry == above ||
		    !khttpd_place_has_name(dentry, name, &end) || !khttpd_place_note_folder(place, above))
			return false;
		dentry = above;
	}
	return !end;
}

bool khttpd_place_note(struct khttpd_place *place, const struct path *path, const struct kstat *stat,
		       const char *name)
{
	bool notes;

	place->path = *path;
	path_get(&place->path);
	place->stat = *stat;
	place->depth = 0;
	if (path->mnt != khttpd.root.mnt || !khttpd_place_is_told(path->dentry, stat->ctime) ||
	    !khttpd_place_is_settled(path->dentry, stat->mtime))
		return false;
	rcu_read_lock();
	notes = khttpd_place_note_folders(place, name);
	rcu_read_unlock();
	return notes;
}

bool khttpd_place_is_found(const struct khttpd_place *place, const char *name)
{
	struct kstat stat;
	struct path path;
	bool same;

	if (khttpd_file_find(name, &path, &stat))
		return false;
	same = path.dentry == place->path.dentry && path.mnt == place->path.mnt &&
	       khttpd_file_is_servable(&stat);
	path_put(&path);
	return same && khttpd_place_is_true(place);
}

void khttpd_place_leave(struct khttpd_place *place)
{
	path_put(&place->path);
}
