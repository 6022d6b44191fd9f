/*
 * A filesystem whose files change at another machine: `remote FOLDER FILE` mounts one with the file f.html,
 * whose bytes and times are those of FILE, and serves it until it is unmounted. FILE is changed behind the
 * kernel's back.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	FILE_NODE = FUSE_ROOT_ID + 1,
	REQUEST_BYTES = 128 * 1024,
};

static int device;
static const char *backing;

static void reply(const struct fuse_in_header *in, int error, const void *body, size_t length)
{
	struct fuse_out_header out = { .len = sizeof(out) + length, .error = error, .unique = in->unique };
	struct iovec parts[] = { { &out, sizeof(out) }, { (void *)body, length } };

	/* Nobody waits any more for a request that was given up. */
	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		perror("reply");
}

static struct fuse_attr attributes(unsigned long long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096, .mode = S_IFDIR | 0755 };
	struct stat stat = {};

	if (node != FILE_NODE)
		return attr;
	if (lstat(backing, &stat))
		perror(backing);
	attr.mode = S_IFREG | 0644;
	attr.size = stat.st_size;
	attr.mtime = attr.ctime = stat.st_mtim.tv_sec;
	attr.mtimensec = attr.ctimensec = stat.st_mtim.tv_nsec;
	return attr;
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE) };

	if (strcmp(name, "f.html"))
		reply(in, -ENOENT, NULL, 0);
	else
		reply(in, 0, &out, sizeof(out));
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *what)
{
	static char bytes[REQUEST_BYTES];
	size_t size = what->size < sizeof(bytes) ? what->size : sizeof(bytes);
	int file = open(backing, O_RDONLY);
	ssize_t count = pread(file, bytes, size, what->offset);

	close(file);
	reply(in, count < 0 ? -EIO : 0, bytes, count < 0 ? 0 : count);
}

static void serve(const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_readahead = 4096, .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = {};

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(in, (const char *)(in + 1));
		break;
	case FUSE_GETATTR:
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_file(in, (const void *)(in + 1));
		break;
	case FUSE_RELEASE:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

int main(int count, char **words)
{
	static char request[REQUEST_BYTES] __attribute__((aligned(8)));
	char options[100];
	ssize_t length;

	device = open("/dev/fuse", O_RDWR);
	if (count != 3 || device < 0)
		return 2;
	backing = words[2];
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (mount("remote", words[1], "fuse", MS_NODEV | MS_NOSUID, options)) {
		perror("mount");
		return 3;
	}
	puts("mounted");
	fflush(stdout);
	while ((length = read(device, request, sizeof(request))) > 0 || errno == EINTR || errno == ENOENT)
		if (length > 0)
			serve((const void *)request);
	return 0;
}
