// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * A process at /dev/khttpd. argv[1]:
 * answer N  takes N connections and answers each with what it reads of it, as the body
 * idle      holds the device open, takes nothing, until it is killed
 * die       takes one connection, says so, and ends without an answer
 * many      says whether a descriptor that cannot be had is told, and the connection still there
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handover.h"

/* The next connection, waited for. */
static int take(int device)
{
	struct pollfd wait = { .fd = device, .events = POLLIN };

	for (;;) {
		int descriptor = ioctl(device, KHTTPD_TAKE);

		if (descriptor >= 0)
			return descriptor;
		if (errno != EAGAIN) {
			perror("KHTTPD_TAKE");
			exit(1);
		}
		poll(&wait, 1, -1);
	}
}

static void answer(int connection)
{
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	char bytes[4096], head[128];
	ssize_t count;
	int length, flags = fcntl(connection, F_GETFL), closes = fcntl(connection, F_GETFD);
	int now = 0;
	socklen_t size = sizeof(now);

	getsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &now, &size);
	if (!now)
		printf("a descriptor that delays\n");
	if (!(flags & O_NONBLOCK) || !(closes & FD_CLOEXEC))
		printf("a descriptor that blocks or is inherited\n");
	/* All of it was there before the connection was taken. */
	if (poll(&wait, 1, 0) != 1)
		printf("nothing to read\n");
	count = read(connection, bytes, sizeof(bytes));
	length = snprintf(head, sizeof(head),
			  "HTTP/1.1 200 OK\r\nContent-Length: %zd\r\nConnection: close\r\n\r\n", count);
	if (write(connection, head, length) != length || write(connection, bytes, count) != count)
		printf("not written\n");
	shutdown(connection, SHUT_WR);
	while (poll(&wait, 1, 5000) == 1 && read(connection, bytes, sizeof(bytes)) > 0)
		;
	close(connection);
}

/* Has no descriptor left, then one. */
static void many(int device)
{
	struct pollfd wait = { .fd = device, .events = POLLIN };
	struct rlimit limit = { .rlim_cur = 0, .rlim_max = 1024 };
	int descriptor;

	poll(&wait, 1, -1);
	setrlimit(RLIMIT_NOFILE, &limit);
	descriptor = ioctl(device, KHTTPD_TAKE);
	printf("none left: %s\n", descriptor < 0 && errno == EMFILE ? "told" : "odd");
	limit.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &limit);
	answer(take(device));
}

int main(int argc, char **argv)
{
	int device = open("/dev/khttpd", O_RDWR | O_CLOEXEC), count = argc > 2 ? atoi(argv[2]) : 0;

	if (device < 0) {
		perror("/dev/khttpd");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("open\n");
	if (!strcmp(argv[1], "answer"))
		while (count--)
			answer(take(device));
	else if (!strcmp(argv[1], "many"))
		many(device);
	else if (!strcmp(argv[1], "die"))
		printf("took %s\n", take(device) >= 0 ? "one" : "none");
	else
		pause();
	return 0;
}
