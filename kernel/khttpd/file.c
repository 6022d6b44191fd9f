// SPDX-License-Identifier: GPL-2.0
/*
 * Names looked up beneath the root, and files read.
 *
 * Owns the confinement: each lookup starts at the root with LOOKUP_BENEATH, so neither "..", a
 * symbolic link nor a race leads out, and has the rights of nobody. Only what the whole world may
 * read is served, and only regular files and folders (the rule of TUX: nothing executable,
 * nothing sticky).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/init_task.h>
#include <linux/namei.h>

#include "cache.h"
#include "khttpd.h"

enum khttpd_file_nobody {
	KHTTPD_NOBODY = 65534, /* the user and group without rights, by custom */
};

/* Exported by every kernel from 6.1 on; 6.1 declares it in no header that modules see. */
int vfs_path_lookup(struct dentry *dentry, struct vfsmount *mnt, const char *name,
		    unsigned int flags, struct path *path);

int khttpd_file_status(int error)
{
	switch (error) {
	case 0:
		return 0;
	case -EACCES:
	case -EPERM:
		return 403;
	case -ENOMEM:
	case -ENFILE:
	case -EMFILE:
	case -EAGAIN:
		return 503;
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -EXDEV:
	case -ENAMETOOLONG:
	case -EINVAL:
		return 404;
	default:
		return 500;
	}
}

/* The rights of nobody: no capability, no group. */
static const struct cred *khttpd_file_nobody(void)
{
	struct cred *cred = prepare_kernel_cred(&init_task);
	struct group_info *groups = groups_alloc(0);

	if (!cred || !groups) {
		if (cred)
			abort_creds(cred);
		if (groups)
			put_group_info(groups);
		return NULL;
	}
	cred->uid = cred->euid = cred->suid = cred->fsuid = KUIDT_INIT(KHTTPD_NOBODY);
	cred->gid = cred->egid = cred->sgid = cred->fsgid = KGIDT_INIT(KHTTPD_NOBODY);
	cap_clear(cred->cap_inheritable);
	cap_clear(cred->cap_permitted);
	cap_clear(cred->cap_effective);
	cap_clear(cred->cap_ambient);
	set_groups(cred, groups);
	put_group_info(groups);
	return cred;
}

int khttpd_file_init(const char *root)
{
	int error;

	if (!root || !*root) {
		pr_err("root= is missing: the folder to serve\n");
		return -EINVAL;
	}
	khttpd.cred = khttpd_file_nobody();
	if (!khttpd.cred)
		return -ENOMEM;
	error = kern_path(root, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &khttpd.root);
	if (error) {
		pr_err("root=%s: not a folder that can be opened (error %d)\n", root, error);
		put_cred(khttpd.cred);
	}
	return error;
}

void khttpd_file_exit(void)
{
	path_put(&khttpd.root);
	put_cred(khttpd.cred);
}

/* What stands at a decoded path (with its leading slash) beneath the root. */
int khttpd_file_find(const char *name, struct path *path, struct kstat *stat)
{
	unsigned int flags = LOOKUP_FOLLOW | LOOKUP_BENEATH | LOOKUP_NO_MAGICLINKS;
	const struct cred *before = override_creds(khttpd.cred);
	int tries = KHTTPD_TRIES_MAX, error;

	do {
		error = vfs_path_lookup(khttpd.root.dentry, khttpd.root.mnt,
					name[1] ? name + 1 : ".", flags, path);
	} while (error == -EAGAIN && --tries);
	if (!error) {
		error = vfs_getattr(path, stat, STATX_BASIC_STATS, AT_STATX_SYNC_AS_STAT);
		if (error)
			path_put(path);
	}
	revert_creds(before);
	return khttpd_file_status(error);
}

bool khttpd_file_is_servable(const struct kstat *stat)
{
	if (S_ISDIR(stat->mode))
		return stat->mode & 0004;
	return S_ISREG(stat->mode) && (stat->mode & 0004) && !(stat->mode & 01111);
}

/* The mode is not all: a list of rights may name nobody, too. What opens a file for the kernel asks none. */
int khttpd_file_open(const struct path *path, struct file **file)
{
	const struct cred *before = override_creds(khttpd.cred);
	int error = path_permission(path, MAY_READ);

	if (!error) {
		*file = dentry_open(path, O_RDONLY | O_NONBLOCK | O_LARGEFILE, khttpd.cred);
		error = PTR_ERR_OR_ZERO(*file);
	}
	revert_creds(before);
	return khttpd_file_status(error);
}

bool khttpd_file_may_be_read(const struct path *path)
{
	const struct cred *before = override_creds(khttpd.cred);
	int error = path_permission(path, MAY_READ);

	revert_creds(before);
	return !error;
}

/*
 * Whether the bytes are the same. The time of change tells nothing of them: it also changes with the file's
 * name, its links and its mode, and a file that another one has taken the place of is sent to its end.
 */
static bool khttpd_file_is_same(const struct kstat *one, const struct kstat *other)
{
	return one->size == other->size && one->ino == other->ino &&
	       timespec64_equal(&one->mtime, &other->mtime);
}

/* The file is looked at behind each read: what is sent has been of one and the same content. */
ssize_t khttpd_file_read(struct khttpd_sending *sending, char *room, size_t length)
{
	size_t wanted = min_t(u64, length, sending->end - sending->at), got = 0;
	struct kstat stat;
	ssize_t count;

	if (sending->entry) {
		memcpy(room, sending->bytes + sending->at, wanted);
		sending->at += wanted;
		return wanted;
	}
	while (got < wanted) {
		count = kernel_read(sending->file, room + got, wanted - got, &sending->at);
		if (count <= 0)
			return count ? count : -EIO;
		got += count;
	}
	if (vfs_getattr(&sending->file->f_path, &stat, STATX_BASIC_STATS, AT_STATX_SYNC_AS_STAT) ||
	    !khttpd_file_is_same(&stat, &sending->stat))
		return -ESTALE;
	return got;
}

void khttpd_file_end(struct khttpd_sending *sending)
{
	if (sending->file)
		fput(sending->file);
	sending->file = NULL;
	if (sending->entry)
		khttpd_cache_put(sending->entry);
	sending->entry = NULL;
}
