// SPDX-License-Identifier: GPL-2.0
/*
 * Listings: the names of a folder are read, sorted, and written piece by piece.
 *
 * Owns what a listing may hold in memory. Hidden names, and what would not be served, are left
 * out.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "khttpd.h"

struct khttpd_folder {
	struct dir_context context;
	struct khttpd_room names; /* each behind the other, ended by NUL */
	size_t names_length;
	struct khttpd_room entries; /* of struct khttpd_listing_entry */
	unsigned int count, written;
	struct khttpd_room path; /* of the folder, with its slash */
	size_t path_length;
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
	entries = folder->entries.at;
	memcpy(whole, folder->path.at, folder->path_length);
	for (i = 0; i < folder->count; i++, name += strlen(name) + 1) {
		if (strscpy(whole + folder->path_length, name, 256) < 0)
			continue;
		status = khttpd_file_find(whole, &path, &stat);
		/* A page without some of the names would look whole. */
		if (status == 503)
			break;
		if (status)
			continue;
		may_be_read = khttpd_file_is_servable(&stat) && khttpd_file_may_be_read(&path);
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
		       struct khttpd_folder **opened)
{
	struct khttpd_folder *folder = kzalloc(sizeof(*folder), GFP_KERNEL);
	struct khttpd_folder begun = {
		.context.actor = khttpd_folder_take,
		.chunked = chunked,
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

void khttpd_folder_close(struct khttpd_folder *folder)
{
	if (!folder)
		return;
	khttpd_memory_give(&folder->names);
	khttpd_memory_give(&folder->entries);
	khttpd_memory_give(&folder->path);
	kfree(folder);
}
