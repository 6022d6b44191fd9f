/*
 * The floor of fan-out: what an update costs when nothing is done but one send(2) for each reader.
 *
 *   fan ADDRESS PORT
 *
 * GET anything makes a reader: it gets the head of a stream of events, and is kept. POST anything
 * publishes: the body is the data of an event, which is made once and sent to each reader in turn.
 * One process, one epoll loop; no topics, no resuming, no limits, no heartbeat. A reader that
 * cannot take a whole event at once is closed, so no byte is kept for anybody. It is not a server.
 * It is there so that a server's cost of a delivery can be told apart from the kernel's.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, REQUEST_BYTES_MAX = 65536, FRAME_BYTES = 64, BACKLOG = 4096 };

static const char STREAM[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			     "Cache-Control: no-cache\r\nConnection: close\r\n\r\n";
static const char TAKEN[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct loop {
	int epoll;
	int listener;
	int *readers;
	size_t readers_count, readers_room;
	unsigned long long number;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_on(const char *address, const char *port)
{
	int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	if (listener < 0 || inet_pton(AF_INET, address, &name.sin_addr) != 1)
		fail("address");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, BACKLOG))
		fail("listen");
	return listener;
}

static void watch(struct loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl");
}

static void accept_all(struct loop *loop)
{
	int on = 1, fd;

	while ((fd = accept4(loop->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		watch(loop, fd);
	}
	if (errno != EAGAIN && errno != ECONNABORTED)
		fail("accept");
}

static void forget(struct loop *loop, int fd)
{
	for (size_t at = 0; at < loop->readers_count; at++) {
		if (loop->readers[at] == fd) {
			loop->readers[at] = loop->readers[--loop->readers_count];
			break;
		}
	}
	close(fd);
}

static void join(struct loop *loop, int fd)
{
	if (send(fd, STREAM, sizeof(STREAM) - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof(STREAM) - 1)) {
		close(fd);
		return;
	}
	if (loop->readers_count == loop->readers_room) {
		loop->readers_room = loop->readers_room ? loop->readers_room * 2 : 1024;
		loop->readers = realloc(loop->readers, loop->readers_room * sizeof(int));
		if (!loop->readers)
			fail("realloc");
	}
	loop->readers[loop->readers_count++] = fd;
}

static void publish(struct loop *loop, const char *data, size_t length)
{
	static char frame[REQUEST_BYTES_MAX + FRAME_BYTES];
	size_t used = (size_t)snprintf(frame, FRAME_BYTES, "id: %llu\ndata: ", ++loop->number);

	memcpy(frame + used, data, length);
	memcpy(frame + used + length, "\n\n", 2);
	used += length + 2;
	for (size_t at = 0; at < loop->readers_count;) {
		ssize_t sent = send(loop->readers[at], frame, used, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent == (ssize_t)used) {
			at++;
			continue;
		}
		close(loop->readers[at]);
		loop->readers[at] = loop->readers[--loop->readers_count];
	}
}

/* A request that does not come in one piece ends its connection: the generator's do. */
static void take(struct loop *loop, int fd)
{
	static char request[REQUEST_BYTES_MAX + 1];
	ssize_t length = recv(fd, request, REQUEST_BYTES_MAX, 0);
	char *body, *field;
	size_t body_length;

	if (length <= 0) {
		if (length == 0 || (errno != EAGAIN && errno != EINTR))
			forget(loop, fd);
		return;
	}
	request[length] = 0;
	body = strstr(request, "\r\n\r\n");
	if (!body) {
		forget(loop, fd);
		return;
	}
	if (!strncmp(request, "GET ", 4)) {
		join(loop, fd);
		return;
	}
	body += 4;
	field = strcasestr(request, "\r\ncontent-length:");
	body_length = field ? strtoul(field + 17, NULL, 10) : 0;
	if (body_length != (size_t)(request + length - body) || memchr(body, '\n', body_length)) {
		forget(loop, fd);
		return;
	}
	publish(loop, body, body_length);
	if (send(fd, TAKEN, sizeof(TAKEN) - 1, MSG_NOSIGNAL) < 0)
		forget(loop, fd);
}

int main(int count, char **words)
{
	struct epoll_event events[EVENTS_MAX];
	struct loop loop = { 0 };

	if (count != 3) {
		fprintf(stderr, "usage: fan ADDRESS PORT\n");
		return 2;
	}
	loop.listener = listen_on(words[1], words[2]);
	loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epoll < 0)
		fail("epoll_create1");
	watch(&loop, loop.listener);
	for (;;) {
		int ready = epoll_wait(loop.epoll, events, EVENTS_MAX, -1);

		if (ready < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int at = 0; at < ready; at++) {
			if (events[at].data.fd == loop.listener)
				accept_all(&loop);
			else
				take(&loop, events[at].data.fd);
		}
	}
}
