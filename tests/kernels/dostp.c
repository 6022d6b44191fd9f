// SPDX-License-Identifier: Apache-2.0
/*
 * The program that dostp.sh and dostp_keys.sh run in the emulated machine. Its commands for sockets stand
 * here and in dostp_shared.c, those for frames in dostp_frames.c and dostp_hostile.c, those for keys in
 * dostp_keys.c. A command ends with 0 if all was as it had to be, and says in a line what it has found.
 *
 *   echo PORT                answers every datagram, until it is told the word "end"
 *   ask ADDRESS PORT NUMBER BYTES   sends so many and compares what comes back
 *   count NUMBER BYTES       the time of a round trip, by UDP and by the module, from here (10.0.0.8) to the
 *                            namespace `far` (10.0.0.7) and back, in one thread; counted over so many,
 *                            twice and thrice as many
 *   calls                    what a program of UDP calls, one by one
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "dostp_guest.h"

#define AF_DOSTP 19
/* So often it is waited for quiet, and a round is counted anew. */
#define TRIES_MAX 20
/* A message of so many bytes goes in one frame, whatever its keys. */
#define FRAME_BYTES_MAX 1400

char buffer[MESSAGE_MAX + 1];

void fail(const char *format, ...)
{
	va_list rest;

	__builtin_va_start(rest, format);
	vprintf(format, rest);
	__builtin_va_end(rest);
	printf(" (errno %d, %s)\n", errno, strerror(errno));
	exit(1);
}

static int dostp_socket(void)
{
	int fd = socket(AF_DOSTP, SOCK_DGRAM, 0);

	if (fd < 0)
		fail("socket");
	return fd;
}

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, host, &name.sin_addr) != 1)
		fail("%s", host);
	return name;
}

int bound_socket(int port)
{
	struct sockaddr_in name = address("0.0.0.0", port);
	int fd = dostp_socket();

	if (bind(fd, (void *)&name, sizeof(name)))
		fail("bind %d", port);
	return fd;
}

static int echo(int port)
{
	int fd = bound_socket(port);

	printf("echo: ready\n");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t length = recvfrom(fd, buffer, sizeof(buffer), 0, (void *)&from, &size);

		if (length < 0 && errno != ENETDOWN)
			fail("receive");
		if (length == 3 && !memcmp(buffer, "end", 3))
			return 0;
		if (length >= 0 && sendto(fd, buffer, length, 0, (void *)&from, size) != length)
			printf("echo: %s\n", strerror(errno));
	}
}

/*
 * A message of many frames is lost where its last comes a second after its first, as it may on a busy
 * machine: that one is sent again. An answer that comes when it was given up is an older message's.
 */
static bool ask_once(int fd, const char *sent, size_t length, bool *may_be_late)
{
	int tries = length > FRAME_BYTES_MAX ? 10 : 1;

	for (; tries > 0; tries--) {
		ssize_t got;

		if (send(fd, sent, length, 0) != (ssize_t)length)
			fail("send");
		do {
			got = recv(fd, buffer, sizeof(buffer), 0);
			if (got == (ssize_t)length && !memcmp(sent, buffer, length))
				return true;
		} while (got >= 0 && *may_be_late);
		if (got >= 0)
			return false;
		*may_be_late = true;
	}
	fail("an answer of %zu bytes", length);
}

static int ask(const char *host, int port, int number, size_t length)
{
	static char sent[MESSAGE_MAX];
	struct sockaddr_in to = address(host, port);
	int fd = dostp_socket(), came = 0;
	bool may_be_late = false;
	struct timeval patience = { .tv_sec = 20 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (void *)&to, sizeof(to)))
		fail("connect");
	for (int i = 0; i < number; i++) {
		for (size_t at = 0; at < length; at++)
			sent[at] = (char)(at * 7 + i);
		came += ask_once(fd, sent, length, &may_be_late);
	}
	printf("ask: %d of %d answers of %zu bytes\n", came, number, length);
	return came != number;
}

/* The ends of a conversation: here and in the other namespace. */
struct ends {
	int here, there;
	struct sockaddr_in here_name, there_name;
	bool connected;
};

static void open_ends(struct ends *ends, int family, bool connected)
{
	int own = open("/proc/self/ns/net", O_RDONLY), far = open("/run/netns/far", O_RDONLY);

	ends->connected = connected;
	ends->here_name = address("10.0.0.8", 4000);
	ends->there_name = address("10.0.0.7", 4000);
	ends->here = socket(family, SOCK_DGRAM, 0);
	if (own < 0 || far < 0 || setns(far, 0))
		fail("the other namespace");
	ends->there = socket(family, SOCK_DGRAM, 0);
	if (setns(own, 0) || bind(ends->here, (void *)&ends->here_name, sizeof(ends->here_name)) ||
	    bind(ends->there, (void *)&ends->there_name, sizeof(ends->there_name)))
		fail("sockets");
	if (connected && (connect(ends->here, (void *)&ends->there_name, sizeof(ends->there_name)) ||
			  connect(ends->there, (void *)&ends->here_name, sizeof(ends->here_name))))
		fail("connect");
	close(own);
	close(far);
}

static void one_way(int from, int to, const struct sockaddr_in *name, bool connected, size_t length)
{
	struct sockaddr_in source;
	socklen_t size = sizeof(source);
	ssize_t got;

	size = connected ? 0 : sizeof(source);
	if (sendto(from, buffer, length, 0, connected ? NULL : (const void *)name, size) < 0)
		fail("send");
	got = connected ? recv(to, buffer, sizeof(buffer), 0) :
			  recvfrom(to, buffer, sizeof(buffer), 0, (void *)&source, &size);
	if (got != (ssize_t)length)
		fail("receive");
}

static uint64_t nanoseconds(const struct timespec *begin, const struct timespec *end)
{
	return (end->tv_sec - begin->tv_sec) * 1000000000ULL + end->tv_nsec - begin->tv_nsec;
}

/* Nanoseconds of so many round trips. */
static uint64_t round_trips(const struct ends *ends, int number, size_t length)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < number; i++) {
		one_way(ends->here, ends->there, &ends->there_name, ends->connected, length);
		one_way(ends->there, ends->here, &ends->here_name, ends->connected, length);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return nanoseconds(&begin, &end);
}

/* Nanoseconds of a loop that always has as many instructions: what is beside them ran beside it. */
static uint64_t canary(void)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (volatile int i = 0; i < 1000000; i++)
		;
	clock_gettime(CLOCK_MONOTONIC, &end);
	return nanoseconds(&begin, &end);
}

/* Whether canaries cost by less than 2 % more than the least: the kernel's clock ticks in them, too. */
static bool is_quiet(void)
{
	static uint64_t least = UINT64_MAX;
	bool quiet = true;

	for (int i = 0; i < 3; i++) {
		uint64_t cost = canary();

		if (cost < least)
			least = cost;
		quiet = quiet && cost - least < least / 50;
	}
	return quiet;
}

static void await_quiet(void)
{
	for (int tries = 0; !is_quiet(); tries++) {
		if (tries == TRIES_MAX)
			fail("something runs beside what is counted");
		usleep(10000);
	}
}

/*
 * The cost of a round trip: a slope, so that what happens once does not count. What was counted is counted
 * anew if something ran beside it: canaries tell, or two slopes that differ by more than 2 %.
 */
static uint64_t undisturbed_slope(const struct ends *ends, int number, size_t length)
{
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		int64_t once, twice, thrice, apart;

		await_quiet();
		once = round_trips(ends, number, length);
		twice = round_trips(ends, 2 * number, length);
		thrice = round_trips(ends, 3 * number, length);
		apart = llabs((thrice - twice) - (twice - once));
		if (is_quiet() && apart * 50 < thrice - twice)
			return (thrice - once) / (2 * number);
	}
	fail("something ran beside each of %d rounds", TRIES_MAX);
}

static int count_round_trips(int number, size_t length)
{
	static const char *const names[] = { "udp", "udp connected", "dostp", "dostp connected" };

	for (int kind = 0; kind < 4; kind++) {
		struct ends ends;

		open_ends(&ends, kind < 2 ? AF_INET : AF_DOSTP, kind % 2);
		round_trips(&ends, number, length);
		printf("count: %s %zu bytes: %llu\n", names[kind], length,
		       (unsigned long long)undisturbed_slope(&ends, number, length));
		close(ends.here);
		close(ends.there);
	}
	return 0;
}

#define MUST(what) do { errno = 0; if (!(what)) fail("%s", #what); } while (0)

/* Where a socket's calls differ from UDP's, a program of UDP would notice. */
static int calls(void)
{
	struct sockaddr_in own = address("10.0.0.8", 3000), other = address("10.0.0.9", 3000), name;
	struct sockaddr_in low = address("10.0.0.8", 80), wrong = address("10.9.0.7", 1);
	struct sockaddr_in all = address("255.255.255.255", 3000);
	socklen_t size = sizeof(name);
	int fd = dostp_socket(), again = dostp_socket(), one = 1, waiting = -1;
	struct pollfd ready = { .events = POLLIN | POLLOUT };

	MUST(socket(AF_DOSTP, SOCK_STREAM, 0) < 0 && errno == ESOCKTNOSUPPORT);
	MUST(bind(fd, (void *)&other, sizeof(other)) < 0 && errno == EADDRNOTAVAIL);
	MUST(!bind(fd, (void *)&own, sizeof(own)));
	MUST(bind(again, (void *)&own, sizeof(own)) < 0 && errno == EADDRINUSE);
	MUST(!bind(again, (void *)&low, sizeof(low)));
	MUST(!getsockname(fd, (void *)&name, &size) && name.sin_port == own.sin_port && name.sin_family == AF_INET);
	MUST(getpeername(fd, (void *)&name, &size) < 0 && errno == ENOTCONN);
	MUST(send(fd, "a", 1, 0) < 0 && errno == EDESTADDRREQ);
	MUST(sendto(fd, "a", 1, 0, (void *)&wrong, sizeof(wrong)) < 0 && errno == EADDRNOTAVAIL);
	MUST(sendto(fd, "a", 1, 0, (void *)&all, sizeof(all)) < 0 && errno == EACCES);
	MUST(!setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)));
	MUST(sendto(fd, "a", 1, 0, (void *)&all, sizeof(all)) == 1);
	MUST(sendto(fd, buffer, MESSAGE_MAX + 1, 0, (void *)&other, sizeof(other)) < 0 && errno == EMSGSIZE);
	MUST(recv(fd, buffer, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	MUST(!ioctl(fd, FIONREAD, &waiting) && waiting == 0);
	MUST(!connect(fd, (void *)&other, sizeof(other)));
	MUST(!getpeername(fd, (void *)&name, &size) && name.sin_port == other.sin_port);
	name.sin_family = AF_UNSPEC;
	MUST(!connect(fd, (void *)&name, sizeof(name)));
	MUST(getpeername(fd, (void *)&name, &size) < 0 && errno == ENOTCONN);
	ready.fd = fd;
	MUST(poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT);
	MUST(shutdown(fd, SHUT_RD) < 0 && errno == ENOTCONN);
	MUST(recv(fd, buffer, 1, 0) == 0);
	MUST(listen(fd, 1) < 0 && errno == EOPNOTSUPP);
	MUST(!close(fd) && !close(again));
	printf("calls: as UDP's\n");
	return 0;
}

int main(int count, char **word)
{
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count >= 2 && ((status = play_frames(count, word)) >= 0 || (status = play_hostile(count, word)) >= 0 ||
			   (status = play_shared(count, word)) >= 0 || (status = keep_keys(count, word)) >= 0))
		return status;
	if (count == 3 && !strcmp(word[1], "echo"))
		return echo(atoi(word[2]));
	if (count == 6 && !strcmp(word[1], "ask"))
		return ask(word[2], atoi(word[3]), atoi(word[4]), strtoul(word[5], NULL, 10));
	if (count == 4 && !strcmp(word[1], "count"))
		return count_round_trips(atoi(word[2]), strtoul(word[3], NULL, 10));
	if (count == 2 && !strcmp(word[1], "calls"))
		return calls();
	fail("%s: see the first comment", word[0]);
}
