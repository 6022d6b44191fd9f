// SPDX-License-Identifier: GPL-2.0
/*
 * Which answer a request gets.
 *
 * Owns the way from a parsed request to a head, and to the file or the folder whose bytes come
 * behind it.
 */
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "cache.h"
#include "date.h"
#include "encoding.h"
#include "gzip.h"
#include "khttpd.h"
#include "mime.h"
#include "range.h"
#include "trace.h"

static const char index_name[] = "index.html";

/* One request on its way to an answer. */
struct khttpd_replying {
	struct khttpd_connection *connection;
	const struct khttpd_request *request;
	struct khttpd_text head;
	struct khttpd_manner manner;
	struct khttpd_output *output;
	char date[KHTTPD_DATE_BYTES];
	char *path; /* decoded, with room for the index's name */
	size_t length;
	size_t asked_length; /* of what was asked for, without the index's name */
};

static void khttpd_reply_manner(struct khttpd_manner *manner, char *date)
{
	khttpd_date_write(ktime_get_real_seconds(), date);
	manner->date = date;
}

void khttpd_reply_unavailable(struct khttpd_output *output)
{
	struct khttpd_manner manner = {};
	char date[KHTTPD_DATE_BYTES];

	khttpd_reply_manner(&manner, date);
	khttpd_answer_begin(output, 503, &manner);
	khttpd_output_words(output, "Retry-After: 1\r\nContent-Length: 0\r\n\r\n");
}

void khttpd_reply_refusal(const struct khttpd_refusal *refusal, bool omit_body,
			  struct khttpd_output *output)
{
	struct khttpd_manner manner = { .omit_body = omit_body };
	char date[KHTTPD_DATE_BYTES];

	khttpd_reply_manner(&manner, date);
	khttpd_answer_refusal(output, refusal, &manner);
}

/*
 * A strong tag of what the file is: another content has another size, time of modification, or
 * time of change.
 */
static void khttpd_reply_validators(struct khttpd_validators *validators, const struct kstat *stat,
				    char *etag)
{
	s64 seconds = stat->mtime.tv_sec;
	int length = snprintf(etag, KHTTPD_ETAG_BYTES, "\"%llx-%llx-%llx-%llx\"",
			      (unsigned long long)stat->ino, (unsigned long long)stat->size,
			      timespec64_to_ns(&stat->mtime), timespec64_to_ns(&stat->ctime));

	validators->etag = (struct khttpd_text){ (u8 *)etag, min(length, KHTTPD_ETAG_BYTES - 1) };
	/*
	 * Not in the future (RFC 9110, section 8.8.2.1), nor what archives without times leave
	 * behind.
	 */
	validators->has_modified = seconds > 1 && seconds <= ktime_get_real_seconds();
	validators->modified = seconds;
}

/* Chooses and writes the head for what stands at an address; `what` says what of it is to follow. */
static unsigned int khttpd_reply_represent(const struct khttpd_request *request,
					   struct khttpd_text head,
					   const struct khttpd_manner *manner,
					   struct khttpd_represented *what,
					   struct khttpd_output *output)
{
	unsigned int status = khttpd_condition_check(request, head, &what->validators);

	if (!status) {
		status = 200;
		if (request->method == KHTTPD_GET &&
		    khttpd_condition_range(request, &what->validators))
			switch (khttpd_range_parse(request->fields[KHTTPD_RANGE], what->size,
						   &what->start, &what->end)) {
			case KHTTPD_RANGE_ONE:
				status = 206;
				break;
			case KHTTPD_RANGE_UNSATISFIABLE:
				status = 416;
				break;
			case KHTTPD_RANGE_IGNORE:
				break;
			}
	}
	if (status == 412 || status == 416) {
		khttpd_answer_problem(output, status, manner, what->size);
		what->start = what->end;
	} else {
		khttpd_answer_file(output, status, manner, what);
		if (status == 304 || request->method != KHTTPD_GET)
			what->start = what->end;
	}
	return status;
}

static void khttpd_reply_opened(struct khttpd_replying *replying, struct file *file,
				const struct kstat *stat)
{
	const struct khttpd_request *request = replying->request;
	struct khttpd_sending *sending = &replying->connection->sending;
	struct khttpd_represented what = { .size = stat->size, .end = stat->size };
	struct khttpd_text name = { (u8 *)replying->path, replying->length };
	struct khttpd_media media = khttpd_mime_of(name);
	char etag[KHTTPD_ETAG_BYTES];
	unsigned int status;

	khttpd_reply_validators(&what.validators, stat, etag);
	what.media = media.value;
	what.varies = khttpd.gzip && media.encodable && stat->size >= KHTTPD_GZIP_BYTES_MIN;
	status = khttpd_reply_represent(request, replying->head, &replying->manner, &what, replying->output);
	/* Who asks for less than all does not have the whole file read. */
	if (status == 200 && request->method == KHTTPD_GET)
		khttpd_cache_keep(khttpd_text_until(name, replying->asked_length), replying->path, file,
				  &what, stat);
	if (what.start < what.end) {
		sending->file = get_file(file);
		sending->stat = *stat;
		sending->at = what.start;
		sending->end = what.end;
	}
}

/* One of the representations that an entry holds, and where its bytes are. */
struct khttpd_kept {
	struct khttpd_represented what;
	const char *bytes;
};

static struct khttpd_kept khttpd_reply_kept(struct khttpd_entry *entry,
					    const struct khttpd_request *request, struct khttpd_text head)
{
	struct khttpd_kept kept = {
		.what = {
			.size = entry->length,
			.media = entry->media,
			.varies = entry->varies,
			.validators = entry->validators,
		},
		.bytes = entry->bytes,
	};
	const struct khttpd_encoded *gzip = NULL;

	if (entry->varies && khttpd_encoding_prefers_gzip(request, head))
		gzip = khttpd_cache_gzip(entry);
	if (gzip) {
		kept.what.size = gzip->length;
		kept.what.coding = "gzip";
		kept.what.validators.etag = khttpd_text_of(gzip->etag);
		kept.bytes = gzip->bytes;
	}
	kept.what.end = kept.what.size;
	return kept;
}

void khttpd_reply_entry(struct khttpd_entry *entry, const struct khttpd_request *request,
			struct khttpd_text head, struct khttpd_output *output,
			struct khttpd_text *body)
{
	struct khttpd_kept kept = khttpd_reply_kept(entry, request, head);
	struct khttpd_manner manner = { .keep = true, .omit_body = request->method == KHTTPD_HEAD };
	char date[KHTTPD_DATE_BYTES];

	khttpd_reply_manner(&manner, date);
	khttpd_reply_represent(request, head, &manner, &kept.what, output);
	*body = (struct khttpd_text){ (u8 *)kept.bytes + kept.what.start, kept.what.end - kept.what.start };
}

/* Answers with an entry of the cache, which is put once it is sent. */
static void khttpd_reply_with(struct khttpd_replying *replying, struct khttpd_entry *entry)
{
	struct khttpd_kept kept = khttpd_reply_kept(entry, replying->request, replying->head);
	struct khttpd_sending *sending = &replying->connection->sending;

	khttpd_reply_represent(replying->request, replying->head, &replying->manner, &kept.what,
			       replying->output);
	if (kept.what.start < kept.what.end) {
		sending->entry = entry;
		sending->bytes = kept.bytes;
		sending->at = kept.what.start;
		sending->end = kept.what.end;
	} else {
		khttpd_cache_put(entry);
	}
}

/* Answers with what the cache holds. False where it does not. */
static bool khttpd_reply_from_cache(struct khttpd_replying *replying)
{
	struct khttpd_entry *entry = khttpd_cache_find(replying->request->path, UINT_MAX);

	if (!entry) {
		trace_khttpd_miss(replying->connection);
		return false;
	}
	trace_khttpd_hit(replying->connection);
	khttpd_reply_with(replying, entry);
	return true;
}

static int khttpd_reply_file(struct khttpd_replying *replying, const struct path *path,
			     const struct kstat *stat)
{
	struct kstat opened;
	struct file *file;
	int status;

	if (!khttpd_file_is_servable(stat))
		return S_ISREG(stat->mode) ? 403 : 404;
	status = khttpd_file_open(path, &file);
	if (status)
		return status;
	status = khttpd_file_status(
		vfs_getattr(&file->f_path, &opened, STATX_BASIC_STATS, AT_STATX_SYNC_AS_STAT));
	if (!status)
		khttpd_reply_opened(replying, file, &opened);
	fput(file);
	return status;
}

/* Answers with an open folder, which its connection writes piece by piece. */
static void khttpd_reply_in_pieces(struct khttpd_replying *replying, struct khttpd_folder *folder)
{
	/* A listing to 1.0 has no other end than the connection's. */
	if (replying->request->http10)
		replying->manner.keep = false;
	khttpd_answer_listing(replying->output, &replying->manner);
	if (replying->manner.omit_body)
		khttpd_folder_close(folder);
	else
		replying->connection->folder = folder;
}

static int khttpd_reply_listing(struct khttpd_replying *replying, const struct path *path,
				const struct kstat *stat)
{
	struct khttpd_text name = { (u8 *)replying->path, replying->length };
	struct khttpd_entry *entry = NULL;
	struct khttpd_folder *folder;
	int status;

	if (!khttpd.listing || !khttpd_file_is_servable(stat))
		return 403;
	/* Who asks for less than all leaves nothing behind. */
	if (replying->request->method == KHTTPD_GET)
		entry = khttpd_cache_begin(name, replying->path, path, stat);
	status = khttpd_folder_open(path, name, !replying->request->http10, entry, &folder);
	if (!status && khttpd_folder_keep(folder)) {
		khttpd_folder_close(folder);
		khttpd_reply_with(replying, entry);
		return 0;
	}
	if (entry)
		khttpd_cache_put(entry);
	if (!status)
		khttpd_reply_in_pieces(replying, folder);
	return status;
}

/* A redirect to a decoded path. */
static int khttpd_reply_moved(struct khttpd_replying *replying, size_t length)
{
	struct khttpd_text path = { (u8 *)replying->path, length };

	khttpd_answer_moved(replying->output, &replying->manner, path, replying->request);
	return replying->output->full ? 414 : 0;
}

static int khttpd_reply_folder(struct khttpd_replying *replying, const struct path *folder,
			       const struct kstat *stat)
{
	struct kstat index_stat;
	struct path index;
	int status;

	if (replying->path[replying->length - 1] != '/') {
		replying->path[replying->length] = '/';
		return khttpd_reply_moved(replying, replying->length + 1);
	}
	memcpy(replying->path + replying->length, index_name, sizeof(index_name));
	status = khttpd_file_find(replying->path, &index, &index_stat);
	if (!status) {
		if (S_ISREG(index_stat.mode)) {
			replying->length += sizeof(index_name) - 1;
			status = khttpd_reply_file(replying, &index, &index_stat);
			path_put(&index);
			return status;
		}
		path_put(&index);
	}
	replying->path[replying->length] = 0;
	return status && status != 404 ? status : khttpd_reply_listing(replying, folder, stat);
}

/* GET or HEAD of what is no path of a file: with slashes in a row it is moved to the path with one. */
static int khttpd_reply_undecoded(struct khttpd_replying *replying, int status)
{
	struct khttpd_text raw = replying->request->path;
	struct khttpd_text single = { (u8 *)replying->path, khttpd_path_single(raw, replying->path) };
	int length;

	if (status != 404 || single.length == raw.length)
		return status;
	length = khttpd_path_decode(single, replying->path);
	return length < 0 ? 404 : khttpd_reply_moved(replying, length);
}

/* GET or HEAD of a path. 0, or the status of what cannot be served. */
static int khttpd_reply_path(struct khttpd_replying *replying)
{
	struct kstat stat;
	struct path path;
	int status = khttpd_path_decode(replying->request->path, replying->path);

	if (status < 0)
		return khttpd_reply_undecoded(replying, -status);
	replying->length = replying->asked_length = status;
	if (!khttpd_path_is_servable(replying->path, replying->length))
		return 404;
	status = khttpd_file_find(replying->path, &path, &stat);
	if (status)
		return status;
	status = S_ISDIR(stat.mode) ? khttpd_reply_folder(replying, &path, &stat)
				    : khttpd_reply_file(replying, &path, &stat);
	path_put(&path);
	return status;
}

static int khttpd_reply_content(struct khttpd_replying *replying)
{
	struct khttpd_room path = {};
	int status;

	if (khttpd_reply_from_cache(replying))
		return 0;
	if (!khttpd_memory_take(&path, replying->request->path.length + sizeof(index_name) + 1))
		return 503;
	replying->path = path.at;
	status = khttpd_reply_path(replying);
	khttpd_memory_give(&path);
	return status;
}

/* Writes the answer's head, and its body if that is short. Whether the connection stays. */
bool khttpd_reply(struct khttpd_connection *connection, const struct khttpd_request *request,
		  struct khttpd_text head, bool keep, struct khttpd_output *output)
{
	struct khttpd_replying replying = {
		.connection = connection,
		.request = request,
		.head = head,
		.output = output,
		.manner = {
			.http10 = request->http10,
			.keep = keep,
			.omit_body = request->method == KHTTPD_HEAD,
		},
	};
	size_t start = output->length;
	int status = 0;

	khttpd_reply_manner(&replying.manner, replying.date);
	if (request->method == KHTTPD_OPTIONS)
		khttpd_answer_options(output, &replying.manner);
	else if (request->method == KHTTPD_UNKNOWN)
		status = 501;
	else if (request->method == KHTTPD_CONNECT || request->method == KHTTPD_KNOWN)
		status = 405;
	else
		status = khttpd_reply_content(&replying);
	if (status) {
		output->full = false;
		output->length = start;
		khttpd_answer_problem(output, status, &replying.manner, 0);
	}
	return replying.manner.keep;
}
