// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are handed over: which, and the device at which a process takes them.
 *
 * A connection that is offered stands in one list, in which it is held. Whoever takes it out of there, under
 * the lock, has its socket: the process that asked for it, or who serves the connection, when its time is
 * up or the last process has closed the device. Until then nobody touches the socket.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "handover.h"
#include "khttpd.h"

enum khttpd_handover_limit {
	KHTTPD_OFFERED_MAX = 1024,
	KHTTPD_HANDOVER_PATHS_MAX = 64,
};

static struct {
	spinlock_t lock; /* guards all below but the paths */
	struct list_head offered;
	unsigned int count;
	unsigned int users; /* that have the device open */
	wait_queue_head_t wait;
	struct khttpd_text paths[KHTTPD_HANDOVER_PATHS_MAX];
	unsigned int paths_count;
	char *text; /* of the paths */
} handover;

/* Whether a decoded path is the other one or beneath it. */
static bool khttpd_handover_is_beneath(struct khttpd_text path, struct khttpd_text above)
{
	if (path.length < above.length || memcmp(path.at, above.at, above.length))
		return false;
	return path.length == above.length || path.at[above.length] == '/' ||
	       above.at[above.length - 1] == '/';
}

static bool khttpd_handover_has(struct khttpd_text path)
{
	unsigned int i;

	for (i = 0; i < handover.paths_count; i++)
		if (khttpd_handover_is_beneath(path, handover.paths[i]))
			return true;
	return false;
}

/* What cannot be decoded is refused here, as it is there. */
static bool khttpd_handover_has_raw(struct khttpd_text raw)
{
	struct khttpd_room room = {};
	bool has = true;
	int length;

	if (khttpd_text_find(raw, '%') == raw.length && khttpd_text_find(raw, '.') == raw.length)
		return khttpd_handover_has(raw);
	/* Where there is no memory the process decides: it serves everything. */
	if (!khttpd_memory_take(&room, raw.length + 1))
		return true;
	length = khttpd_path_decode(raw, room.at);
	has = length > 0 && khttpd_handover_has((struct khttpd_text){ room.at, length });
	khttpd_memory_give(&room);
	return has;
}

bool khttpd_handover_wants(const struct khttpd_request *request)
{
	if (!khttpd.hands_over)
		return false;
	if ((request->method != KHTTPD_GET && request->method != KHTTPD_HEAD) || request->upgrades ||
	    request->framing != KHTTPD_NO_BODY)
		return true;
	return handover.paths_count && khttpd_handover_has_raw(request->path);
}

bool khttpd_handover_offer(struct khttpd_connection *connection)
{
	bool offers;

	spin_lock(&handover.lock);
	/* Whoever closes it withdraws it afterwards, and must find it here, or it must never come. */
	offers = handover.users && handover.count < KHTTPD_OFFERED_MAX &&
		 !test_bit(KHTTPD_CLOSED, &connection->flags);
	if (offers) {
		kref_get(&connection->references);
		list_add_tail(&connection->offer, &handover.offered);
		handover.count++;
	}
	spin_unlock(&handover.lock);
	if (offers)
		wake_up_interruptible_poll(&handover.wait, EPOLLIN | EPOLLRDNORM);
	return offers;
}

/* The list's reference becomes the caller's. */
static void khttpd_handover_remove(struct khttpd_connection *connection)
{
	list_del_init(&connection->offer);
	handover.count--;
}

bool khttpd_handover_withdraw(struct khttpd_connection *connection)
{
	bool is_ours;

	if (!khttpd.hands_over)
		return false;
	spin_lock(&handover.lock);
	is_ours = !list_empty(&connection->offer);
	if (is_ours)
		khttpd_handover_remove(connection);
	spin_unlock(&handover.lock);
	if (is_ours)
		khttpd_connection_put(connection);
	return is_ours;
}

/*
 * The next connection, with a reference; NULL where none waits. `abandoned`: only while nobody has the
 * device open.
 */
static struct khttpd_connection *khttpd_handover_next(bool abandoned)
{
	struct khttpd_connection *connection = NULL;

	spin_lock(&handover.lock);
	if (!abandoned || !handover.users)
		connection = list_first_entry_or_null(&handover.offered, struct khttpd_connection, offer);
	if (connection)
		khttpd_handover_remove(connection);
	spin_unlock(&handover.lock);
	return connection;
}

/* A socket that is the caller's; NULL where none waits. */
static struct socket *khttpd_handover_socket(void)
{
	struct khttpd_connection *connection = khttpd_handover_next(false);
	struct socket *socket;

	if (!connection)
		return NULL;
	socket = khttpd_connection_leave(connection);
	khttpd_connection_put(connection);
	return socket;
}

static long khttpd_handover_take(void)
{
	int descriptor = get_unused_fd_flags(O_CLOEXEC);
	struct socket *socket;
	struct file *file;

	/* First: a connection is not lost because the process may open no more. */
	if (descriptor < 0)
		return descriptor;
	socket = khttpd_handover_socket();
	if (!socket) {
		put_unused_fd(descriptor);
		return -EAGAIN;
	}
	/* Where this fails it has released the socket. */
	file = sock_alloc_file(socket, O_NONBLOCK | O_CLOEXEC, NULL);
	if (IS_ERR(file)) {
		put_unused_fd(descriptor);
		return PTR_ERR(file);
	}
	fd_install(descriptor, file);
	atomic64_inc(&khttpd.handed_over);
	return descriptor;
}

static long khttpd_handover_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return command == KHTTPD_TAKE ? khttpd_handover_take() : -ENOTTY;
}

static __poll_t khttpd_handover_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &handover.wait, table);
	return list_empty_careful(&handover.offered) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static int khttpd_handover_open(struct inode *inode, struct file *file)
{
	spin_lock(&handover.lock);
	handover.users++;
	spin_unlock(&handover.lock);
	return nonseekable_open(inode, file);
}

/* Where nobody is there any more, each connection that waits is given back to who served it. */
static void khttpd_handover_return(void)
{
	struct khttpd_connection *connection;

	while ((connection = khttpd_handover_next(true)) != NULL) {
		set_bit(KHTTPD_RETURNED, &connection->flags);
		khttpd_modes_kick(connection);
		khttpd_connection_put(connection);
	}
}

static int khttpd_handover_release(struct inode *inode, struct file *file)
{
	spin_lock(&handover.lock);
	handover.users--;
	spin_unlock(&handover.lock);
	khttpd_handover_return();
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = khttpd_handover_open,
	.release = khttpd_handover_release,
	.poll = khttpd_handover_poll,
	.unlocked_ioctl = khttpd_handover_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &operations,
	.mode = 0600,
};

static int khttpd_handover_path(char *path)
{
	if (path[0] != '/') {
		pr_err("hand_over=%s: a path begins with a slash\n", path);
		return -EINVAL;
	}
	if (handover.paths_count == KHTTPD_HANDOVER_PATHS_MAX) {
		pr_err("hand_over=%s: more than %u paths\n", path, KHTTPD_HANDOVER_PATHS_MAX);
		return -E2BIG;
	}
	handover.paths[handover.paths_count++] = khttpd_text_of(path);
	return 0;
}

int khttpd_handover_init(const char *paths)
{
	char *rest, *path;
	int error = 0;

	spin_lock_init(&handover.lock);
	INIT_LIST_HEAD(&handover.offered);
	init_waitqueue_head(&handover.wait);
	khttpd.hands_over = paths;
	if (!paths)
		return 0;
	handover.text = kstrdup(paths, GFP_KERNEL);
	if (!handover.text)
		return -ENOMEM;
	rest = strim(handover.text);
	while (!error && (path = strsep(&rest, ",")) != NULL)
		if (*path)
			error = khttpd_handover_path(path);
	if (error)
		khttpd_handover_exit();
	return error;
}

void khttpd_handover_exit(void)
{
	kfree(handover.text);
}

/* The last step of a load: what is opened keeps the module. */
int khttpd_handover_begin(void)
{
	int error = khttpd.hands_over ? misc_register(&device) : 0;

	if (error)
		pr_err("hand_over: no device (error %d)\n", error);
	return error;
}

void khttpd_handover_end(void)
{
	if (khttpd.hands_over)
		misc_deregister(&device);
}
