// SPDX-License-Identifier: GPL-2.0
/*
 * Listings: the names of a folder are read, sorted, and written piece by piece, or as one page for the cache.
 *
 * Owns what a listing may hold in memory. Hidden names, and what would not be served, are left
 * out.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "cache.h"
#include "khttpd.h"

enum khttpd_folder_limit {
	/* First room for a page beside its rows, and for a row beside its name. It grows. */
	KHTTPD_FOLDER_PAGE_BYTES = 2 * KHTTPD_LISTING_ROW_BYTES,
	KHTTPD_FOLDER_ROW_BYTES = 112,
};

struct khttpd_folder {
	struct dir_context context;
	struct khttpd_room names; /* each behind the other, ended by NUL */
	size_t names_length;
	struct khttpd_room entries; /* of struct khttpd_listing_entry */
	unsigned int count, written;
	struct khttpd_room path; /* of the folder, with its slash */
	size_t path_length;
	struct khttpd_entry *keeping; /* of the cache, or NULL */
	bool chunked, begun, ended;
	bool is_cut; /* it has more entries than are listed */
	bool short_of_memory; /* not every name could be taken */
};

/* Takes one name. False ends the reading. */
static bool khttpd_folder_take(struct dir_context *context, const char *name, int length,
			       loff_t offset, u64 inode, unsigned int type)
{
	struct khttpd_folder *folder = container_of(context, struct khttpd_folder, context);
	size_t wanted = folder->names_length + length + 1;

	if (length <= 0 || name[0] == '.')
		return true;
	if (folder->count == KHTTPD_ENTRIES_MAX || wanted > KHTTPD_NAMES_BYTES_MAX) {
		folder->is_cut = true;
		return false;
	}
	if (wanted > folder->names.size &&
	    !khttpd_memory_grow(&folder->names, max(2 * folder->names.size, wanted),
				folder->names_length)) {
		folder->short_of_memory = true;
		return false;
	}
	memcpy(folder->names.at + folder->names_length, name, length);
	((char *)folder->names.at)[wanted - 1] = 0;
	folder->names_length = wanted;
	folder->count++;
	return true;
}

static int khttpd_folder_compare(const void *one, const void *other)
{
	return khttpd_listing_compare(one, other);
}

/* Notes an entry for the cache. Where an index has come in between, the next request has that. */
static bool khttpd_folder_note(struct khttpd_folder *folder, const char *name, const struct path *path,
			       const struct kstat *stat)
{
	struct khttpd_entry *keeping = folder->keeping;

	return (strcmp(name, "index.html") || !S_ISREG(stat->mode)) &&
	       khttpd_shown_note(keeping->shown, keeping->place.path.dentry, name, path, stat);
}

/* Looks at each name as a request for it would. */
static int khttpd_folder_look(struct khttpd_folder *folder)
{
	struct khttpd_listing_entry *entries;
	char *whole = kmalloc(folder->path_length + 256, GFP_KERNEL), *name = folder->names.at;
	unsigned int i, kept = 0;
	struct kstat stat;
	struct path path;
	bool may_be_read;
	int status = 0;

	if (!whole ||
	    !khttpd_memory_take(&folder->entries, max(folder->count, 1u) * sizeof(*entries))) {
		kfree(whole);
		return 503;
	}
	if (folder->keeping && !khttpd_cache_expect(folder->keeping, folder->count))
		folder->keeping = NULL;
	entries = folder->entries.at;
	memcpy(whole, folder->path.at, folder->path_length);
	for (i = 0; i < folder->count; i++, name += strlen(name) + 1) {
		status = strscpy(whole + folder->path_length, name, 256) < 0
				 ? 404
				 : khttpd_file_find(whole, &path, &stat);
		/* A page without some of the names would look whole. */
		if (status == 503)
			break;
		if (status) {
			/* Nothing is there to be held, and something may come. */
			folder->keeping = NULL;
			continue;
		}
		may_be_read = khttpd_file_is_servable(&stat) && khttpd_file_may_be_read(&path);
		if (folder->keeping && !khttpd_folder_note(folder, name, &path, &stat))
			folder->keeping = NULL;
		path_put(&path);
		if (!may_be_read)
			continue;
		entries[kept++] = (struct khttpd_listing_entry){
			.name = khttpd_text_of(name),
			.is_folder = S_ISDIR(stat.mode),
			.size = stat.size,
			.modified = stat.mtime.tv_sec,
		};
	}
	kfree(whole);
	if (status == 503)
		return status;
	folder->count = kept;
	sort(entries, kept, sizeof(*entries), khttpd_folder_compare, NULL);
	return 0;
}

static int khttpd_folder_read(struct khttpd_folder *folder, const struct path *path)
{
	struct file *file;
	int status = khttpd_file_open(path, &file);

	if (status)
		return status;
	status = khttpd_file_status(iterate_dir(file, &folder->context));
	if (folder->short_of_memory)
		status = 503;
	fput(file);
	return status;
}

int khttpd_folder_open(const struct path *path, struct khttpd_text name, bool chunked,
		       struct khttpd_entry *keeping, struct khttpd_folder **opened)
{
	struct khttpd_folder *folder = kzalloc(sizeof(*folder), GFP_KERNEL);
	struct khttpd_folder begun = {
		.context.actor = khttpd_folder_take,
		.chunked = chunked,
		.keeping = keeping,
		.names.is_listing = true,
		.entries.is_listing = true,
		.path.is_listing = true,
	};
	int status = 503;

	if (!folder)
		return 503;
	memcpy(folder, &begun, sizeof(begun));
	if (khttpd_memory_take(&folder->names, 1024) &&
	    khttpd_memory_take(&folder->path, name.length)) {
		memcpy(folder->path.at, name.at, name.length);
		folder->path_length = name.length;
		status = khttpd_folder_read(folder, path);
		if (!status)
			status = khttpd_folder_look(folder);
	}
	if (status)
		khttpd_folder_close(folder);
	else
		*opened = folder;
	return status;
}

/* What fits of the page, without framing. */
static void khttpd_folder_fill(struct khttpd_folder *folder, struct khttpd_output *output)
{
	struct khttpd_listing_entry *entries = folder->entries.at;
	size_t before = output->length;

	if (!folder->begun) {
		khttpd_listing_begin(output,
				     (struct khttpd_text){ folder->path.at, folder->path_length });
		/* A path whose escaped form is longer than a piece is named by no page. */
		if (output->full) {
			output->full = false;
			output->length = before;
			khttpd_listing_begin(output, khttpd_text_of("/..."));
		}
		folder->begun = true;
	}
	while (folder->written < folder->count) {
		if (output->room - output->length < KHTTPD_LISTING_ROW_BYTES)
			return;
		khttpd_listing_row(output, &entries[folder->written++]);
	}
	if (output->room - output->length < KHTTPD_LISTING_END_BYTES)
		return;
	khttpd_listing_end(output, folder->is_cut);
	folder->ended = true;
}

/*
 * A piece is one chunk (RFC 9112, section 7.1): a size of four digits, the rows, and the line's
 * end.
 */
bool khttpd_folder_write(struct khttpd_folder *folder, struct khttpd_output *output)
{
	static const char last[] = "0\r\n\r\n";
	size_t start = output->length + (folder->chunked ? 6 : 0);
	struct khttpd_output piece = {
		.at = output->at,
		.length = start,
		.room = output->room - (folder->chunked ? 2 + sizeof(last) - 1 : 0),
	};

	khttpd_folder_fill(folder, &piece);
	if (folder->chunked && piece.length > start) {
		khttpd_output_hex(output, piece.length - start, 4);
		khttpd_output_words(output, "\r\n");
		output->length = piece.length;
		khttpd_output_words(output, "\r\n");
		if (folder->ended)
			khttpd_output_words(output, last);
	} else if (!folder->chunked) {
		output->length = piece.length;
	}
	return !folder->ended;
}

/* The page in one piece. False where there is no room for it. */
static bool khttpd_folder_page(struct khttpd_folder *folder, struct khttpd_room *page, size_t *length)
{
	size_t rows = 2 * folder->names_length + folder->count * KHTTPD_FOLDER_ROW_BYTES;
	bool has_room = khttpd_memory_take(page, KHTTPD_FOLDER_PAGE_BYTES + rows);
	struct khttpd_output output = {};

	while (has_room && !folder->ended) {
		output.at = page->at;
		output.room = page->size;
		khttpd_folder_fill(folder, &output);
		if (!folder->ended)
			has_room = khttpd_memory_grow(page, 2 * page->size, output.length);
	}
	*length = output.length;
	return has_room;
}

bool khttpd_folder_keep(struct khttpd_folder *folder)
{
	struct khttpd_room page = { .is_listing = true };
	size_t length;
	bool kept;

	if (!folder->keeping)
		return false;
	kept = khttpd_folder_page(folder, &page, &length) &&
	       khttpd_cache_finish(folder->keeping, page.at, length);
	khttpd_memory_give(&page);
	/* Else it is written from its beginning. */
	folder->begun = folder->ended = false;
	folder->written = 0;
	return kept;
}

void khttpd_folder_close(struct khttpd_folder *folder)
{
	if (!folder)
		return;
	khttpd_memory_give(&folder->names);
	khttpd_memory_give(&folder->entries);
	khttpd_memory_give(&folder->path);
	kfree(folder);
}
