/* A program of UDP that knows nothing of DOSTP.
 *
 *   udp server HOW PORT                      sends back what comes, until an empty message
 *   udp client HOW ADDRESS PORT COUNT        sends COUNT messages and waits for each to come back
 *   udp lonely HOW ADDRESS PORT COUNT        the same where messages may be lost: sends until COUNT came back
 *   udp parent HOW PORT                      binds, leaves that to a child, and ends; the child ends as its
 *                                            input does
 *
 * HOW is a word for the calls it is made of: from, connected, message, many, poll, select, epoll, fork.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 65536, LIMIT_MS = 30000 };

static char bytes[ROOM];
static const char *how;
static int fd, watch = -1;

static int is(const char *word)
{
	return strcmp(how, word) == 0;
}

static void check(int right, const char *what)
{
	if (!right) {
		perror(what);
		exit(1);
	}
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	check(inet_pton(AF_INET, ip, &to.sin_addr) == 1, ip);
	return to;
}

/* Until the socket can be read, in the way that is asked for. */
static void await(void)
{
	if (is("poll")) {
		struct pollfd entry = { .fd = fd, .events = POLLIN };

		check(poll(&entry, 1, LIMIT_MS) == 1 && entry.revents == POLLIN, "poll");
	} else if (is("select")) {
		struct timeval limit = { .tv_sec = LIMIT_MS / 1000 };
		fd_set set;

		FD_ZERO(&set);
		FD_SET(fd, &set);
		check(select(fd + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(fd, &set), "select");
	} else if (is("epoll")) {
		struct epoll_event event;

		check(epoll_wait(watch, &event, 1, LIMIT_MS) == 1 && event.data.u32 == 7, "epoll");
	}
}

static ssize_t receive(struct sockaddr_in *from)
{
	struct iovec vectors[2] = { { bytes, 10 }, { bytes + 10, ROOM - 10 } };
	struct mmsghdr message = { .msg_hdr = { .msg_name = from, .msg_namelen = sizeof(*from),
						.msg_iov = vectors, .msg_iovlen = 2 } };
	socklen_t length = sizeof(*from);

	await();
	if (is("connected"))
		return read(fd, bytes, ROOM);
	if (is("message"))
		return recvmsg(fd, &message.msg_hdr, 0);
	if (is("many")) {
		check(recvmmsg(fd, &message, 1, 0, NULL) == 1, "recvmmsg");
		return message.msg_len;
	}
	return recvfrom(fd, bytes, ROOM, 0, (struct sockaddr *)from, &length);
}

static ssize_t give(size_t length, struct sockaddr_in *to)
{
	struct iovec vectors[2] = { { bytes, length / 2 }, { bytes + length / 2, length - length / 2 } };
	struct mmsghdr message = { .msg_hdr = { .msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = vectors,
						.msg_iovlen = 2 } };

	if (is("connected"))
		return write(fd, bytes, length);
	if (is("message"))
		return sendmsg(fd, &message.msg_hdr, 0);
	if (is("many")) {
		check(sendmmsg(fd, &message, 1, 0) == 1, "sendmmsg");
		return message.msg_len;
	}
	return sendto(fd, bytes, length, 0, (struct sockaddr *)to, sizeof(*to));
}

static void serve(const char *port)
{
	struct sockaddr_in own = address("0.0.0.0", port);

	check(bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0, "bind");
	puts("bound");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		ssize_t length = receive(&from);

		check(length >= 0, "receive");
		if (length == 0)
			return;
		check(give(length, &from) == length, "send");
	}
}

static void one(size_t length, unsigned int number, struct sockaddr_in *to)
{
	struct sockaddr_in from = *to;

	for (size_t place = 0; place < length; place++)
		bytes[place] = place * 7 + number;
	check(give(length, to) == (ssize_t)length, "send");
	memset(bytes, 0, length);
	check(receive(&from) == (ssize_t)length, "receive");
	for (size_t place = 0; place < length; place++)
		check(bytes[place] == (char)(place * 7 + number), "the same bytes");
	check(from.sin_addr.s_addr == to->sin_addr.s_addr && from.sin_port == to->sin_port, "the sender");
}

/* FIONREAD and shutdown of a connected socket. */
static void end(struct sockaddr_in *to)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	int waiting = 0;

	check(give(100, to) == 100, "send");
	check(poll(&entry, 1, LIMIT_MS) == 1, "poll");
	check(ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 100, "FIONREAD");
	check(read(fd, bytes, ROOM) == 100, "receive");
	check(shutdown(fd, SHUT_RDWR) == 0, "shutdown");
	check(send(fd, bytes, 1, MSG_NOSIGNAL) < 0 && errno == EPIPE, "a send behind it");
	check(recv(fd, bytes, ROOM, 0) == 0, "a receive behind it");
}

static void ask(const char *ip, const char *port, unsigned int count)
{
	static const size_t lengths[] = { 1, 64, 1472, 4000, 60000 };
	struct timeval limit = { .tv_sec = LIMIT_MS / 1000 };
	struct sockaddr_in to = address(ip, port), peer;
	socklen_t length = sizeof(peer);

	check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0, "SO_RCVTIMEO");
	if (is("connected")) {
		check(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "connect");
		check(getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_port == to.sin_port,
		      "getpeername");
	}
	for (unsigned int number = 0; number < count; number++)
		one(lengths[number % 5], number, &to);
	if (is("fork")) {
		pid_t child = fork();
		int status = 1;

		if (child == 0) {
			one(64, 1, &to);
			exit(0);
		}
		check(waitpid(child, &status, 0) == child && status == 0, "the child");
	}
	/* Nothing is there any more, and a call that must not wait says so. */
	check(recv(fd, bytes, ROOM, MSG_DONTWAIT) < 0 && errno == EAGAIN, "nothing");
	if (is("connected"))
		end(&to);
	printf("%u came back\n", count);
}

/* Asks until enough has come back: no call may fail for which UDP had no reason. */
static void ask_again(const char *ip, const char *port, unsigned int count)
{
	struct timeval limit = { .tv_usec = 100000 };
	struct sockaddr_in to = address(ip, port);
	unsigned int came = 0;

	check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0, "SO_RCVTIMEO");
	if (is("connected"))
		check(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "connect");
	for (int tries = 0; came < count && tries < 300; tries++) {
		struct sockaddr_in from;

		check(give(64, &to) == 64, "send");
		came += receive(&from) == 64;
	}
	printf("%u came back\n", came);
}

/* As every program that binds before it becomes a daemon. */
static void leave_to_a_child(const char *port)
{
	struct sockaddr_in own = address("0.0.0.0", port);
	pid_t child;

	check(bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0, "bind");
	child = fork();
	check(child >= 0, "fork");
	if (child == 0)
		while (read(0, bytes, ROOM) > 0)
			;
	else
		puts("left");
}

int main(int count, char **words)
{
	if (count < 4)
		return 2;
	how = words[2];
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	check(fd >= 0, "socket");
	if (is("epoll")) {
		struct epoll_event event = { .events = EPOLLIN, .data = { .u32 = 7 } };

		watch = epoll_create1(0);
		check(epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
	}
	if (strcmp(words[1], "server") == 0)
		serve(words[3]);
	else if (strcmp(words[1], "parent") == 0)
		leave_to_a_child(words[3]);
	else if (strcmp(words[1], "lonely") == 0)
		ask_again(words[3], words[4], atoi(words[5]));
	else
		ask(words[3], words[4], atoi(words[5]));
	close(fd);
	return 0;
}
