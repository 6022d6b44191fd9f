/*
 * The floor: what a response costs when nothing is done but the system calls it cannot do
 * without.
 *
 *   floor ADDRESS PORT FILE RESPONSES CLOSE
 *
 * A bare epoll loop that answers every readable event with fixed bytes: one recv, one send, no
 * parsing, no look-up, no timers, no limits, no log. It is not a web server. It is there so that a
 * server's cost can be told apart from the kernel's.
 *
 * FILE       is read once at the start; the answer is a short head and these bytes.
 * RESPONSES  how many copies of the answer one readable event gets. The loop does not count
 *            requests: for 16 pipelined requests, which the load tool writes in one piece, it is
 *            16; else 1.
 * CLOSE      1 closes each connection after its first answer (a connection per request), 0 keeps it.
 *
 * Choices, each measured on Linux 6.18 as CPU time per request:
 *   - level or edge triggered, recv/send or read/write, 16 or 256 or 1024 events a wait: no
 *     difference beyond the noise (5.4 to 5.9 us each). Level triggered is used: with one recv an
 *     event it needs no call that only finds the queue empty.
 *   - TCP_DEFER_ACCEPT with the first recv tried right after accept: for a connection per request
 *     16 to 19 us against 22 to 29 without, because the worker is woken once a connection instead of
 *     twice. It costs nothing for kept connections.
 *   - a closing connection whose request is already there is never registered with epoll at all.
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

enum { EVENTS_MAX = 256, RECEIVE_BYTES = 16384, HEAD_BYTES_MAX = 256, BACKLOG = 4096 };

struct answer {
	char *bytes;
	size_t length;
	int close_after;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	if (!file || fseek(file, 0, SEEK_END))
		fail(path);
	*length = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*length);
	if (!bytes || fread(bytes, 1, *length, file) != *length)
		fail(path);
	fclose(file);
	return bytes;
}

static struct answer make_answer(const char *path, int responses, int close_after)
{
	struct answer answer = { .close_after = close_after };
	char head[HEAD_BYTES_MAX];
	size_t body_length, head_length;
	char *body = read_file(path, &body_length);

	head_length = (size_t)snprintf(head, sizeof(head),
		"HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\nServer: floor\r\n"
		"Content-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n",
		body_length, close_after ? "Connection: close\r\n" : "");
	answer.bytes = malloc((head_length + body_length) * (size_t)responses);
	if (!answer.bytes)
		fail("malloc");
	for (int i = 0; i < responses; i++) {
		memcpy(answer.bytes + answer.length, head, head_length);
		memcpy(answer.bytes + answer.length + head_length, body, body_length);
		answer.length += head_length + body_length;
	}
	free(body);
	return answer;
}

static int open_listener(const char *address, int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (listener < 0 || inet_pton(AF_INET, address, &name.sin_addr) != 1)
		fail(address);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, BACKLOG))
		fail("listen");
	return listener;
}

/* Answers what stands in the socket. Returns 0 when the connection has ended and was closed. */
static int serve(int connection, const struct answer *answer)
{
	static char received[RECEIVE_BYTES];
	ssize_t length = recv(connection, received, sizeof(received), 0);

	if (length < 0 && errno == EAGAIN)
		return 1;
	if (length > 0) {
		length = send(connection, answer->bytes, answer->length, MSG_NOSIGNAL);
		if (length == (ssize_t)answer->length && !answer->close_after)
			return 1;
	}
	close(connection);
	return 0;
}

static void accept_all(int epoll, int listener, const struct answer *answer)
{
	int connection;

	while ((connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct epoll_event interest = { .events = EPOLLIN, .data.fd = connection };

		if (serve(connection, answer))
			epoll_ctl(epoll, EPOLL_CTL_ADD, connection, &interest);
	}
}

int main(int count, char **arguments)
{
	struct epoll_event events[EVENTS_MAX];

	if (count != 6) {
		fprintf(stderr, "usage: floor ADDRESS PORT FILE RESPONSES CLOSE\n");
		return 2;
	}
	struct answer answer = make_answer(arguments[3], atoi(arguments[4]), atoi(arguments[5]));
	int listener = open_listener(arguments[1], atoi(arguments[2]));
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event interest = { .events = EPOLLIN, .data.fd = listener };

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &interest))
		fail("epoll");
	for (;;) {
		int ready = epoll_wait(epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < ready; i++) {
			if (events[i].data.fd == listener)
				accept_all(epoll, listener, &answer);
			else
				serve(events[i].data.fd, &answer);
		}
	}
}
