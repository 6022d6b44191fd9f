/*
 * What the cache of khttpd meets in cache.sh and races.sh: `cache WHAT ...`.
 *
 *	renames		renames a file of its own again and again until it is ended, and says so once it has begun
 *	holds NAME N	N connections ask for NAME1 to NAMEN and read nothing until the input ends
 *	waits NAME N	N connections ask for NAME and read nothing until the input ends
 *	moves N		N times: a file is taken out of its folder, which is removed, while it is asked for
 *	denies FILE	a list of rights that names the user nobody, and gives him none
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static void renames(void)
{
	int file = open("here", O_CREAT | O_WRONLY, 0644);
	unsigned long count;

	if (file < 0 || close(file))
		fail("here");
	for (count = 0;; count++) {
		if (rename("here", "there") || rename("there", "here"))
			fail("rename");
		if (count == 100 && (puts("renames") == EOF || fflush(stdout)))
			fail("stdout");
	}
}

static int connected(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(80),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int peer = socket(AF_INET, SOCK_STREAM, 0), room = 4096;

	/* So little is taken that nearly all of an answer waits in the module. */
	setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return peer >= 0 && !connect(peer, (void *)&to, sizeof(to)) ? peer : fail("connect");
}

static int ask(const char *name)
{
	char request[200];
	int length = snprintf(request, sizeof(request), "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", name);
	int peer = connected();

	return send(peer, request, length, 0) == length ? peer : fail("send");
}

/* Says that all have asked, and stays until the input ends. */
static int stay(const char *word)
{
	char byte;

	puts(word);
	fflush(stdout);
	return read(0, &byte, 1) == 0 ? 0 : 1;
}

/* The answers have begun, or were none. */
static int waits(const char *name, int count)
{
	char byte;

	while (count--)
		recv(ask(name), &byte, 1, 0);
	return stay("waits");
}

/* Each file is asked for in full first, so that it is kept where there is room. */
static int holds(const char *name, int count)
{
	char each[100], answer[65536];
	ssize_t heard;
	int i;

	for (i = 1; i <= count; i++) {
		int first;
		long left = 250000;

		snprintf(each, sizeof(each), "%s%d", name, i);
		first = ask(each);
		while (left > 0 && (heard = recv(first, answer, sizeof(answer), 0)) > 0)
			left -= heard;
		close(first);
		/* Its answer has begun, and is not read. */
		recv(ask(each), answer, 1, 0);
	}
	return stay("holds");
}

static unsigned long hits(void)
{
	FILE *counts = fopen("/sys/module/khttpd/parameters/counts", "r");
	unsigned long value = 0;
	char line[100];

	while (counts && fgets(line, sizeof(line), counts))
		sscanf(line, "cache_hits %lu", &value);
	if (counts)
		fclose(counts);
	return value;
}

/* The status of one answer. */
static int status(void)
{
	static const char request[] = "GET /d/f.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	char answer[4096];
	size_t length = 0;
	int peer = connected();
	ssize_t heard;

	if (send(peer, request, sizeof(request) - 1, 0) < 0)
		fail("send");
	while ((heard = recv(peer, answer + length, sizeof(answer) - 1 - length, 0)) > 0)
		length += heard;
	close(peer);
	if (heard < 0 || length < 12)
		fail("answer");
	answer[length] = 0;
	return atoi(answer + 9);
}

static void make_file(void)
{
	int file = mkdir("www/d", 0755) ? -1 : open("www/d/f.html", O_CREAT | O_WRONLY, 0644);

	if (file < 0 || write(file, "hi\n", 3) != 3 || close(file))
		fail("www/d");
}

static int moves(int count)
{
	unsigned long before;
	int turn, asker;

	for (turn = 0; turn < count; turn++) {
		make_file();
		before = hits();
		while (hits() == before)
			if (status() != 200)
				fail("status");
		asker = fork();
		if (!asker) {
			while (status() == 200)
				;
			_exit(0);
		}
		if (rename("www/d/f.html", "www/g") || rmdir("www/d") || unlink("www/g"))
			fail("move");
		waitpid(asker, NULL, 0);
	}
	printf("moved %d times\n", count);
	return 0;
}

static int denies(const char *path)
{
	/* struct posix_acl_xattr_header and entries: tag, rights, id. */
	static const struct {
		unsigned int version;
		struct {
			unsigned short tag, rights;
			unsigned int id;
		} entries[5];
	} list = { 2, { { 1, 6, -1 }, { 2, 0, 65534 }, { 4, 4, -1 }, { 16, 4, -1 }, { 32, 4, -1 } } };

	return setxattr(path, "system.posix_acl_access", &list, sizeof(list), 0) ? fail(path) : 0;
}

int main(int count, char **words)
{
	if (count == 2 && !strcmp(words[1], "renames"))
		renames();
	if (count == 4 && !strcmp(words[1], "holds"))
		return holds(words[2], atoi(words[3]));
	if (count == 4 && !strcmp(words[1], "waits"))
		return waits(words[2], atoi(words[3]));
	if (count == 3 && !strcmp(words[1], "moves"))
		return moves(atoi(words[2]));
	if (count == 3 && !strcmp(words[1], "denies"))
		return denies(words[2]);
	return 2;
}
