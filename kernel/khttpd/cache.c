// SPDX-License-Identifier: GPL-2.0
/*
 * Small files and listings that were served lately: see cache.h.
 *
 * Lists are read under RCU and changed under a lock. The last one to let go of an entry hands it to a work
 * item, which waits for those who still read lists, and then gives back the file and the memory: letting
 * go may happen in a softirq, giving back a file may not.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "cache.h"
#include "gzip.h"
#include "khttpd.h"
#include "pages.h"
#include "race.h"

static struct {
	struct hlist_head *lists;
	siphash_key_t secret;
	spinlock_t lock; /* guards changes of lists, `ages`, `wishes`, and charging */
	struct list_head ages, wishes;
	/* What is charged, and the part of it whose entries nobody holds any more. */
	atomic_long_t bytes, leaving;
	unsigned long bytes_max;
	u64 owed_ns; /* rest that encoding still has to take */
	struct llist_head dead;
	struct work_struct bury;
	struct delayed_work sweep, encode;
	struct workqueue_struct *queue;
} cache;

static void khttpd_cache_bury(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&cache.dead);
	struct khttpd_entry *entry, *next;

	if (!dead)
		return;
	synchronize_rcu();
	llist_for_each_entry_safe(entry, next, dead, dead) {
		/* While its folder is held the filesystem cannot go. */
		khttpd_shown_free(entry->shown);
		khttpd_place_leave(&entry->place);
		if (entry->gzip)
			kvfree(entry->gzip->bytes);
		kfree(entry->gzip);
		kvfree(entry->bytes);
		atomic_long_sub(entry->charged, &cache.leaving);
		atomic_long_sub(entry->charged, &cache.bytes);
		kfree(entry);
	}
}

void khttpd_cache_put(struct khttpd_entry *entry)
{
	if (!refcount_dec_and_test(&entry->references))
		return;
	atomic_long_add(entry->charged, &cache.leaving);
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
	khttpd_cache_put(entry);
}

/*
 * Under the lock: makes room. Who was used since is spared once, and who is held is spared, for its memory
 * would not come back.
 */
static void khttpd_cache_make_room(size_t bytes)
{
	unsigned int steps = KHTTPD_CACHE_STEPS_MAX;
	struct khttpd_entry *entry;

	while (steps-- && !list_empty(&cache.ages) &&
	       atomic_long_read(&cache.bytes) - atomic_long_read(&cache.leaving) + bytes > cache.bytes_max) {
		entry = list_first_entry(&cache.ages, struct khttpd_entry, age);
		if (READ_ONCE(entry->used) || refcount_read(&entry->references) > 1) {
			WRITE_ONCE(entry->used, false);
			list_move_tail(&entry->age, &cache.ages);
		} else {
			khttpd_cache_drop(entry);
		}
	}
}

/*
 * Charges the account for memory that an entry is about to take. False where there is no room, maybe because
 * what was dropped for it is not given back yet.
 */
static bool khttpd_cache_charge(struct khttpd_entry *entry, size_t bytes)
{
	bool fits;

	if (bytes > cache.bytes_max)
		return false;
	spin_lock_bh(&cache.lock);
	khttpd_cache_make_room(bytes);
	fits = atomic_long_read(&cache.bytes) + bytes <= cache.bytes_max;
	if (fits) {
		atomic_long_add(bytes, &cache.bytes);
		entry->charged += bytes;
	}
	spin_unlock_bh(&cache.lock);
	return fits;
}

/* Gives back what an entry was charged for and did not take. */
static void khttpd_cache_credit(struct khttpd_entry *entry, size_t bytes)
{
	entry->charged -= bytes;
	atomic_long_sub(bytes, &cache.bytes);
}

static struct hlist_head *khttpd_cache_list(u64 hash)
{
	return &cache.lists[hash % KHTTPD_CACHE_LISTS];
}

/* Whether the file or the folder stands where it stood, and the entry has not grown too old. */
static bool khttpd_cache_stands(const struct khttpd_entry *entry)
{
	return (!entry->due || time_before(jiffies, entry->due)) && khttpd_place_is_true(&entry->place);
}

/* Whether the entry has what would be sent without it. */
static bool khttpd_cache_is_true(const struct khttpd_entry *entry, unsigned int shown_max)
{
	const struct khttpd_shown *shown = entry->shown;

	return khttpd_cache_stands(entry) &&
	       (!shown || (shown->count <= shown_max && khttpd_shown_is_true(shown)));
}

/* The entry for a decoded path, held, if it is true. */
static struct khttpd_entry *khttpd_cache_look(struct khttpd_text key, unsigned int shown_max)
{
	u64 hash = siphash(key.at, key.length, &cache.secret);
	struct khttpd_entry *entry, *found = NULL;

	rcu_read_lock();
	hlist_for_each_entry_rcu(entry, khttpd_cache_list(hash), node) {
		if (entry->hash == hash && entry->key_length == key.length &&
		    !memcmp(entry->key, key.at, key.length)) {
			if (khttpd_cache_is_true(entry, shown_max) &&
			    refcount_inc_not_zero(&entry->references))
				found = entry;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* The same for a path as it was sent, which is not decoded where that would change nothing. */
static struct khttpd_entry *khttpd_cache_look_raw(struct khttpd_text raw, unsigned int shown_max)
{
	char path[KHTTPD_CACHE_RAW_BYTES + 1];
	int length;

	if (raw.length > KHTTPD_CACHE_RAW_BYTES)
		return NULL;
	length = khttpd_path_decode(raw, path);
	return length > 0 ? khttpd_cache_look((struct khttpd_text){ (u8 *)path, length }, shown_max) : NULL;
}

struct khttpd_entry *khttpd_cache_find(struct khttpd_text raw, unsigned int shown_max)
{
	struct khttpd_entry *found;

	if (!cache.bytes_max)
		return NULL;
	found = khttpd_path_is_plain(raw) ? khttpd_cache_look(raw, shown_max)
					  : khttpd_cache_look_raw(raw, shown_max);
	if (!found)
		return NULL;
	atomic64_inc(&khttpd.hits);
	if (!READ_ONCE(found->used))
		WRITE_ONCE(found->used, true);
	return found;
}

/* Lists an entry in place of the one that had its key. */
static void khttpd_cache_list_entry(struct khttpd_entry *entry)
{
	struct hlist_head *list = khttpd_cache_list(entry->hash);
	struct khttpd_entry *other;
	struct hlist_node *next;

	spin_lock_bh(&cache.lock);
	hlist_for_each_entry_safe(other, next, list, node)
		if (other->hash == entry->hash)
			khttpd_cache_drop(other);
	if (list_empty(&cache.ages))
		queue_delayed_work(cache.queue, &cache.sweep, KHTTPD_CACHE_SWEEP_S * HZ);
	entry->listed = true;
	hlist_add_head_rcu(&entry->node, list);
	list_add_tail(&entry->age, &cache.ages);
	refcount_inc(&entry->references);
	spin_unlock_bh(&cache.lock);
}

/*
 * Files that were removed do not keep their blocks for longer than until the next time. The folder of a
 * listing tells of those.
 */
static void khttpd_cache_sweep(struct work_struct *work)
{
	struct khttpd_entry *entry, *next;

	spin_lock_bh(&cache.lock);
	list_for_each_entry_safe(entry, next, &cache.ages, age)
		if (!khttpd_cache_stands(entry))
			khttpd_cache_drop(entry);
	if (!list_empty(&cache.ages) && !khttpd.is_stopping)
		queue_delayed_work(cache.queue, &cache.sweep, KHTTPD_CACHE_SWEEP_S * HZ);
	spin_unlock_bh(&cache.lock);
}

/* The tag of another representation: the same with a word behind it. */
static bool khttpd_cache_tag_gzip(const struct khttpd_entry *entry, char *etag)
{
	static const char end[] = "-gzip\"";
	size_t length = entry->validators.etag.length - 1;

	if (length + sizeof(end) > KHTTPD_ETAG_BYTES)
		return false;
	memcpy(etag, entry->etag, length);
	memcpy(etag + length, end, sizeof(end));
	return true;
}

/* Without an encoding the entry is whole, too. */
static void khttpd_cache_encode_entry(struct khttpd_entry *entry)
{
	const size_t most = sizeof(struct khttpd_encoded) + khttpd_pages_cost(entry->length);
	struct khttpd_encoded *gzip;

	if (!khttpd_cache_charge(entry, most)) {
		/* There may be room when it is asked for again. */
		WRITE_ONCE(entry->wished, false);
		return;
	}
	gzip = kzalloc(sizeof(*gzip), GFP_KERNEL | __GFP_NOWARN);
	if (gzip && khttpd_cache_tag_gzip(entry, gzip->etag))
		gzip->bytes = khttpd_gzip_encode(entry->bytes, entry->length, &gzip->length);
	if (!gzip || !gzip->bytes) {
		kfree(gzip);
		khttpd_cache_credit(entry, most);
		return;
	}
	khttpd_cache_credit(entry, most - sizeof(*gzip) - khttpd_pages_cost(gzip->length));
	atomic64_inc(&khttpd.encoded);
	/* Whoever sees it sees what it points to. */
	smp_store_release(&entry->gzip, gzip);
}

static struct khttpd_entry *khttpd_cache_next_wish(void)
{
	struct khttpd_entry *entry;

	spin_lock_bh(&cache.lock);
	entry = list_first_entry_or_null(&cache.wishes, struct khttpd_entry, wish);
	if (entry)
		list_del(&entry->wish);
	spin_unlock_bh(&cache.lock);
	return entry;
}

/* Encodes one entry, and rests for as long as that took: at most half of a processor's time goes there. */
static void khttpd_cache_encode(struct work_struct *work)
{
	struct khttpd_entry *entry = khttpd_cache_next_wish();
	u64 begin_ns = ktime_get_ns();
	unsigned long rest;

	if (!entry)
		return;
	if (READ_ONCE(entry->listed) && khttpd_cache_stands(entry))
		khttpd_cache_encode_entry(entry);
	khttpd_cache_put(entry);
	cache.owed_ns += ktime_get_ns() - begin_ns;
	rest = nsecs_to_jiffies(cache.owed_ns);
	cache.owed_ns -= jiffies_to_nsecs(rest);
	/* Wishes that came meanwhile wait as well. */
	mod_delayed_work(cache.queue, &cache.encode, rest);
}

const struct khttpd_encoded *khttpd_cache_gzip(struct khttpd_entry *entry)
{
	const struct khttpd_encoded *gzip = smp_load_acquire(&entry->gzip);

	if (gzip || READ_ONCE(entry->wished))
		return gzip;
	spin_lock_bh(&cache.lock);
	if (!entry->wished) {
		WRITE_ONCE(entry->wished, true);
		refcount_inc(&entry->references);
		list_add_tail(&entry->wish, &cache.wishes);
		queue_delayed_work(cache.queue, &cache.encode, 0);
	}
	spin_unlock_bh(&cache.lock);
	return NULL;
}

/* Reads the whole file. */
static bool khttpd_cache_fill(struct khttpd_entry *entry, struct file *file)
{
	const struct kstat *stat = &entry->place.stat;
	struct khttpd_sending whole = { .file = file, .stat = *stat, .end = stat->size };
	size_t bytes = sizeof(*entry) + entry->key_length + khttpd_pages_cost(stat->size);

	if (!khttpd_cache_charge(entry, bytes))
		return false;
	entry->bytes = khttpd_pages_make(stat->size);
	return entry->bytes && khttpd_file_read(&whole, entry->bytes, stat->size) == stat->size;
}

/* An entry without a body, which takes over the place. */
static struct khttpd_entry *khttpd_cache_make(struct khttpd_text key, const struct khttpd_represented *what,
					      const struct khttpd_place *place)
{
	struct khttpd_entry *entry = kzalloc(sizeof(*entry) + key.length, GFP_KERNEL | __GFP_NOWARN);

	if (!entry)
		return NULL;
	refcount_set(&entry->references, 1);
	entry->place = *place;
	/* Never 0, which is none. */
	if (khttpd.expire)
		entry->due = (jiffies + khttpd.expire) | 1;
	entry->validators = what->validators;
	memcpy(entry->etag, what->validators.etag.at, what->validators.etag.length);
	entry->validators.etag.at = (u8 *)entry->etag;
	entry->media = what->media;
	entry->varies = what->varies;
	entry->length = what->size;
	entry->key_length = key.length;
	memcpy(entry->key, key.at, key.length);
	entry->hash = siphash(key.at, key.length, &cache.secret);
	return entry;
}

/* Whether the path has a true entry, which another spelling or another connection has made. */
static bool khttpd_cache_has(struct khttpd_text key)
{
	struct khttpd_entry *entry = khttpd_cache_look(key, UINT_MAX);

	if (entry)
		khttpd_cache_put(entry);
	return entry;
}

void khttpd_cache_keep(struct khttpd_text key, const char *name, struct file *file,
		       const struct khttpd_represented *what, const struct kstat *stat)
{
	struct khttpd_place place;
	struct khttpd_entry *entry;

	if (!cache.bytes_max || key.length > KHTTPD_CACHE_PATH_BYTES || stat->size > KHTTPD_CACHE_BODY_BYTES ||
	    what->validators.etag.length > KHTTPD_ETAG_BYTES || khttpd_cache_has(key))
		return;
	entry = NULL;
	if (khttpd_place_note(&place, &file->f_path, stat, name) && khttpd_place_is_found(&place, name))
		entry = khttpd_cache_make(key, what, &place);
	if (!entry) {
		khttpd_place_leave(&place);
		return;
	}
	if (khttpd_cache_fill(entry, file))
		khttpd_cache_list_entry(entry);
	khttpd_cache_put(entry);
}

struct khttpd_entry *khttpd_cache_begin(struct khttpd_text key, const char *name, const struct path *path,
					const struct kstat *stat)
{
	static const struct khttpd_represented page = { .media = "text/html; charset=utf-8" };
	struct khttpd_entry *entry = NULL;
	struct khttpd_place place;

	/* What overlayfs has in memory does not tell of what is written by way of a mapping. */
	if (!cache.bytes_max || key.length > KHTTPD_CACHE_PATH_BYTES ||
	    path->dentry->d_sb->s_magic == OVERLAYFS_SUPER_MAGIC)
		return NULL;
	if (khttpd_place_note(&place, path, stat, name) && khttpd_place_is_found(&place, name))
		entry = khttpd_cache_make(key, &page, &place);
	if (!entry)
		khttpd_place_leave(&place);
	khttpd_race_asleep();
	return entry;
}

bool khttpd_cache_expect(struct khttpd_entry *entry, unsigned int count)
{
	size_t bytes = sizeof(*entry) + entry->key_length + khttpd_shown_cost(count);

	if (bytes > cache.bytes_max / KHTTPD_CACHE_LISTING_PART || !khttpd_cache_charge(entry, bytes))
		return false;
	entry->shown = khttpd_shown_make(count);
	return entry->shown;
}

bool khttpd_cache_finish(struct khttpd_entry *entry, const char *page, size_t length)
{
	size_t bytes = khttpd_pages_cost(length);

	khttpd_race_asleep();
	if (bytes > cache.bytes_max / KHTTPD_CACHE_LISTING_PART || !khttpd_cache_charge(entry, bytes))
		return false;
	entry->bytes = khttpd_pages_make(length);
	if (!entry->bytes)
		return false;
	memcpy(entry->bytes, page, length);
	entry->length = length;
	entry->varies = khttpd.gzip && length >= KHTTPD_GZIP_BYTES_MIN;
	/* Another page has another tag. */
	entry->validators.etag = (struct khttpd_text){
		(u8 *)entry->etag, snprintf(entry->etag, sizeof(entry->etag), "\"%016llx-%zx\"",
					    siphash(page, length, &cache.secret), length)
	};
	if (!khttpd_cache_is_true(entry, UINT_MAX))
		return false;
	khttpd_cache_list_entry(entry);
	return true;
}

unsigned long khttpd_cache_bytes(void)
{
	return atomic_long_read(&cache.bytes);
}

int khttpd_cache_init(unsigned long bytes_max)
{
	spin_lock_init(&cache.lock);
	INIT_LIST_HEAD(&cache.ages);
	INIT_LIST_HEAD(&cache.wishes);
	init_llist_head(&cache.dead);
	INIT_WORK(&cache.bury, khttpd_cache_bury);
	INIT_DELAYED_WORK(&cache.sweep, khttpd_cache_sweep);
	INIT_DELAYED_WORK(&cache.encode, khttpd_cache_encode);
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

/* No connection is there any more, so nobody finds, keeps or wishes anything. */
void khttpd_cache_exit(void)
{
	struct khttpd_entry *entry;

	cancel_delayed_work_sync(&cache.sweep);
	cancel_delayed_work_sync(&cache.encode);
	while ((entry = khttpd_cache_next_wish()) != NULL)
		khttpd_cache_put(entry);
	spin_lock_bh(&cache.lock);
	while (!list_empty(&cache.ages))
		khttpd_cache_drop(list_first_entry(&cache.ages, struct khttpd_entry, age));
	spin_unlock_bh(&cache.lock);
	destroy_workqueue(cache.queue);
	kvfree(cache.lists);
	WARN(khttpd_cache_bytes(), "khttpd: %lu bytes of the cache are nobody's", khttpd_cache_bytes());
}
