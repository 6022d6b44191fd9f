// SPDX-License-Identifier: GPL-2.0
/*
 * Small files that were served lately: see cache.h.
 *
 * Lists are read under RCU and changed under a lock. The last one to let go of an entry hands it to a work
 * item, which waits for those who still read lists, and then gives back the file and the memory: letting
 * go may happen in a softirq, giving back a file may not.
 */
#include <linux/atomic.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "cache.h"
#include "gzip.h"
#include "khttpd.h"
#include "pages.h"

static struct {
	struct hlist_head *lists;
	siphash_key_t secret;
	spinlock_t lock; /* guards changes of lists, `ages` and `bytes` */
	struct list_head ages;
	unsigned long bytes, bytes_max;
	struct llist_head dead;
	struct work_struct bury;
	struct delayed_work sweep;
	struct workqueue_struct *queue;
} cache;

static struct timespec64 khttpd_cache_ctime(const struct inode *inode)
{
#ifdef HAVE_INODE_TIMES
	return inode_get_ctime(inode);
#else
	return inode->i_ctime;
#endif
}

static struct timespec64 khttpd_cache_mtime(const struct inode *inode)
{
#ifdef HAVE_INODE_TIMES
	return inode_get_mtime(inode);
#else
	return inode->i_mtime;
#endif
}

/* How many renames there have been; odd while there is one. Not waited for: a softirq may have cut in. */
static unsigned int khttpd_cache_renames(void)
{
	return raw_read_seqcount(&rename_lock.seqcount);
}

static bool khttpd_cache_is_true(const struct khttpd_entry *entry)
{
	const struct dentry *dentry = entry->path.dentry;
	const struct inode *inode = d_inode(dentry);
	struct timespec64 mtime = khttpd_cache_mtime(inode), ctime = khttpd_cache_ctime(inode);
	unsigned int i;

	if (khttpd_cache_renames() != entry->renames || i_size_read(inode) != entry->stat.size ||
	    !timespec64_equal(&mtime, &entry->stat.mtime) || !timespec64_equal(&ctime, &entry->stat.ctime) ||
	    atomic_read(&inode->i_writecount) > 0 || d_mountpoint(dentry))
		return false;
	for (i = 0; i < entry->depth; i++) {
		dentry = READ_ONCE(dentry->d_parent);
		ctime = khttpd_cache_ctime(d_inode(dentry));
		if (!timespec64_equal(&ctime, &entry->folders[i]))
			return false;
		/* What is mounted on the root itself was there before, or is not seen from it. */
		if (i + 1 < entry->depth && d_mountpoint(dentry))
			return false;
	}
	return true;
}

static size_t khttpd_cache_cost(const struct khttpd_entry *entry)
{
	return sizeof(*entry) + entry->stat.size + entry->key_length + entry->gzip_length;
}

static void khttpd_cache_bury(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&cache.dead);
	struct khttpd_entry *entry, *next;

	if (!dead)
		return;
	synchronize_rcu();
	llist_for_each_entry_safe(entry, next, dead, dead) {
		path_put(&entry->path);
		kvfree(entry->gzip);
		kvfree(entry->bytes);
		kfree(entry);
	}
}

void khttpd_cache_put(struct khttpd_entry *entry)
{
	if (!refcount_dec_and_test(&entry->references))
		return;
	llist_add(&entry->dead, &cache.dead);
	queue_work(cache.queue, &cache.bury);
}

/* Under the lock: requests do not find the entry any more. */
static void khttpd_cache_drop(struct khttpd_entry *entry)
{
	if (!entry->listed)
		return;
	entry->listed = false;
	hlist_del_rcu(&entry->node);
	list_del(&entry->age);
	cache.bytes -= khttpd_cache_cost(entry);
	khttpd_cache_put(entry);
}

static struct hlist_head *khttpd_cache_list(u64 hash)
{
	return &cache.lists[hash % KHTTPD_CACHE_LISTS];
}

struct khttpd_entry *khttpd_cache_find(struct khttpd_text key)
{
	struct khttpd_entry *entry, *found = NULL;
	u64 hash;

	if (!cache.bytes_max || key.length > KHTTPD_CACHE_PATH_BYTES)
		return NULL;
	hash = siphash(key.at, key.length, &cache.secret);
	rcu_read_lock();
	hlist_for_each_entry_rcu(entry, khttpd_cache_list(hash), node) {
		if (entry->hash == hash && entry->key_length == key.length &&
		    !memcmp(entry->key, key.at, key.length)) {
			if (khttpd_cache_is_true(entry) && refcount_inc_not_zero(&entry->references))
				found = entry;
			break;
		}
	}
	rcu_read_unlock();
	if (!found)
		return NULL;
	atomic64_inc(&khttpd.hits);
	if (!READ_ONCE(found->used))
		WRITE_ONCE(found->used, true);
	return found;
}

/* Under the lock: makes room. Who was used since is spared once. */
static void khttpd_cache_make_room(size_t bytes)
{
	struct khttpd_entry *entry;

	while (cache.bytes + bytes > cache.bytes_max && !list_empty(&cache.ages)) {
		entry = list_first_entry(&cache.ages, struct khttpd_entry, age);
		if (READ_ONCE(entry->used)) {
			WRITE_ONCE(entry->used, false);
			list_move_tail(&entry->age, &cache.ages);
		} else {
			khttpd_cache_drop(entry);
		}
	}
}

/* Lists an entry in place of the one that had its key. */
static void khttpd_cache_list_entry(struct khttpd_entry *entry)
{
	struct hlist_head *list = khttpd_cache_list(entry->hash);
	struct khttpd_entry *other;
	struct hlist_node *next;

	if (khttpd_cache_cost(entry) > cache.bytes_max)
		return;
	spin_lock_bh(&cache.lock);
	hlist_for_each_entry_safe(other, next, list, node)
		if (other->hash == entry->hash)
			khttpd_cache_drop(other);
	khttpd_cache_make_room(khttpd_cache_cost(entry));
	if (cache.bytes + khttpd_cache_cost(entry) <= cache.bytes_max) {
		if (list_empty(&cache.ages))
			queue_delayed_work(cache.queue, &cache.sweep, KHTTPD_CACHE_SWEEP_S * HZ);
		entry->listed = true;
		cache.bytes += khttpd_cache_cost(entry);
		hlist_add_head_rcu(&entry->node, list);
		list_add_tail(&entry->age, &cache.ages);
		refcount_inc(&entry->references);
	}
	spin_unlock_bh(&cache.lock);
}

/* Files that were removed do not keep their blocks for longer than until the next time. */
static void khttpd_cache_sweep(struct work_struct *work)
{
	struct khttpd_entry *entry, *next;

	spin_lock_bh(&cache.lock);
	list_for_each_entry_safe(entry, next, &cache.ages, age)
		if (!khttpd_cache_is_true(entry))
			khttpd_cache_drop(entry);
	if (!list_empty(&cache.ages) && !khttpd.is_stopping)
		queue_delayed_work(cache.queue, &cache.sweep, KHTTPD_CACHE_SWEEP_S * HZ);
	spin_unlock_bh(&cache.lock);
}

static bool khttpd_cache_is_settled(struct timespec64 changed)
{
	struct timespec64 now;

	ktime_get_real_ts64(&now);
	return timespec64_to_ns(&now) - timespec64_to_ns(&changed) > KHTTPD_CACHE_SETTLED_MS * NSEC_PER_MSEC;
}

/* Whether the dentry has the name that ends in front of `*end`, which then stands in front of it. */
static bool khttpd_cache_has_name(struct dentry *dentry, const char *name, size_t *end)
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

/*
 * Notes the folders between the file and the root. False where the path leads over a link or a mount, or one
 * of the folders was changed just now.
 */
static bool khttpd_cache_note_folders(struct khttpd_entry *entry, const char *name)
{
	struct dentry *dentry = entry->path.dentry;
	size_t end = strlen(name);

	if (entry->path.mnt != khttpd.root.mnt)
		return false;
	while (dentry != khttpd.root.dentry) {
		if (entry->depth == KHTTPD_CACHE_DEPTH_MAX || dentry == dentry->d_parent ||
		    !khttpd_cache_has_name(dentry, name, &end))
			return false;
		dentry = dentry->d_parent;
		entry->folders[entry->depth] = khttpd_cache_ctime(d_inode(dentry));
		if (!khttpd_cache_is_settled(entry->folders[entry->depth++]))
			return false;
	}
	return !end;
}

/* Whether a lookup that begins now finds the same file: what was noted before holds for it. */
static bool khttpd_cache_is_found(const struct khttpd_entry *entry, const char *name)
{
	struct kstat stat;
	struct path path;
	bool same;

	if (khttpd_file_find(name, &path, &stat))
		return false;
	same = path.dentry == entry->path.dentry && path.mnt == entry->path.mnt && khttpd_file_is_servable(&stat);
	path_put(&path);
	return same && khttpd_cache_is_true(entry);
}

/* Reads the whole file. */
static bool khttpd_cache_fill(struct khttpd_entry *entry, struct file *file)
{
	struct khttpd_sending whole = { .file = file, .stat = entry->stat, .end = entry->stat.size };

	return khttpd_file_read(&whole, entry->bytes, entry->stat.size) == entry->stat.size;
}

/* The tag of another representation: the same with a word behind it. */
static bool khttpd_cache_tag_gzip(struct khttpd_entry *entry)
{
	static const char end[] = "-gzip\"";
	size_t length = entry->validators.etag.length - 1;

	if (length + sizeof(end) > KHTTPD_ETAG_BYTES)
		return false;
	memcpy(entry->gzip_etag, entry->etag, length);
	memcpy(entry->gzip_etag + length, end, sizeof(end));
	return true;
}

/* Without an encoding the entry is whole, too. */
static void khttpd_cache_encode(struct khttpd_entry *entry)
{
	if (entry->varies && khttpd_cache_tag_gzip(entry))
		entry->gzip = khttpd_gzip_encode(entry->bytes, entry->stat.size, &entry->gzip_length);
}

void khttpd_cache_keep(struct khttpd_text key, const char *name, struct file *file,
		       const struct khttpd_represented *what, const struct kstat *stat)
{
	struct khttpd_entry *entry;

	if (!cache.bytes_max || key.length > KHTTPD_CACHE_PATH_BYTES || stat->size > KHTTPD_CACHE_BODY_BYTES ||
	    !khttpd_cache_is_settled(stat->ctime) || !khttpd_cache_is_settled(stat->mtime) ||
	    what->validators.etag.length > KHTTPD_ETAG_BYTES)
		return;
	entry = kzalloc(sizeof(*entry) + key.length, GFP_KERNEL | __GFP_NOWARN);
	if (!entry)
		return;
	entry->bytes = khttpd_pages_make(stat->size);
	if (!entry->bytes) {
		kfree(entry);
		return;
	}
	refcount_set(&entry->references, 1);
	entry->path = file->f_path;
	path_get(&entry->path);
	entry->renames = khttpd_cache_renames();
	entry->stat = *stat;
	entry->validators = what->validators;
	memcpy(entry->etag, what->validators.etag.at, what->validators.etag.length);
	entry->validators.etag.at = (u8 *)entry->etag;
	entry->media = what->media;
	entry->varies = what->varies;
	entry->key_length = key.length;
	memcpy(entry->key, key.at, key.length);
	entry->hash = siphash(key.at, key.length, &cache.secret);
	if (!(entry->renames & 1) && khttpd_cache_note_folders(entry, name) &&
	    khttpd_cache_is_found(entry, name) && khttpd_cache_fill(entry, file)) {
		khttpd_cache_encode(entry);
		khttpd_cache_list_entry(entry);
	}
	khttpd_cache_put(entry);
}

unsigned long khttpd_cache_bytes(void)
{
	return READ_ONCE(cache.bytes);
}

int khttpd_cache_init(unsigned long bytes_max)
{
	spin_lock_init(&cache.lock);
	INIT_LIST_HEAD(&cache.ages);
	init_llist_head(&cache.dead);
	INIT_WORK(&cache.bury, khttpd_cache_bury);
	INIT_DELAYED_WORK(&cache.sweep, khttpd_cache_sweep);
	get_random_bytes(&cache.secret, sizeof(cache.secret));
	cache.bytes_max = bytes_max;
	cache.lists = kvcalloc(KHTTPD_CACHE_LISTS, sizeof(*cache.lists), GFP_KERNEL);
	if (!cache.lists)
		return -ENOMEM;
	cache.queue = alloc_workqueue("khttpd_cache", WQ_UNBOUND, 0);
	if (cache.queue)
		return 0;
	kvfree(cache.lists);
	return -ENOMEM;
}

/* No connection is there any more, so nobody finds or keeps anything. */
void khttpd_cache_exit(void)
{
	cancel_delayed_work_sync(&cache.sweep);
	spin_lock_bh(&cache.lock);
	while (!list_empty(&cache.ages))
		khttpd_cache_drop(list_first_entry(&cache.ages, struct khttpd_entry, age));
	spin_unlock_bh(&cache.lock);
	destroy_workqueue(cache.queue);
	kvfree(cache.lists);
	WARN(cache.bytes, "khttpd: %lu bytes of the cache are nobody's", cache.bytes);
}
