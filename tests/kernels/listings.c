/*
 * What the listings that khttpd keeps meet in listings.sh and races.sh: `listings N`.
 *
 * N times each change of a folder that its listing has to tell of, made once the listing is kept, while
 * others ask for it all the time. The first answer behind a change has to show it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
	ASKERS = 2,
	/* Nothing here takes so long. */
	PATIENCE_S = 1800,
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The whole answer, as a string. */
static const char *ask(void)
{
	static const char request[] = "GET /l/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	static char answer[65536];
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(80),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int peer = socket(AF_INET, SOCK_STREAM, 0);
	size_t length = 0;
	ssize_t heard;

	if (peer < 0 || connect(peer, (void *)&to, sizeof(to)) ||
	    send(peer, request, sizeof(request) - 1, 0) < 0)
		fail("ask");
	while ((heard = recv(peer, answer + length, sizeof(answer) - 1 - length, 0)) > 0)
		length += heard;
	close(peer);
	if (heard < 0 || length < 12)
		fail("answer");
	answer[length] = 0;
	return answer;
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

static int append(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

	return file < 0 || write(file, "abc", 3) != 3 || close(file);
}

static int dated(const char *path, time_t seconds)
{
	struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	return utimensat(AT_FDCWD, path, times, 0);
}

static int denied(const char *path)
{
	/* struct posix_acl_xattr_header and entries: tag, rights, id. */
	static const struct {
		unsigned int version;
		struct {
			unsigned short tag, rights;
			unsigned int id;
		} entries[5];
	} list = { 2, { { 1, 6, -1 }, { 2, 0, 65534 }, { 4, 4, -1 }, { 16, 4, -1 }, { 32, 4, -1 } } };

	return setxattr(path, "system.posix_acl_access", &list, sizeof(list), 0);
}

static int makes(void) { return append("www/l/f"); }
static int grows(void) { return append("www/l/f"); }
static int ages(void) { return dated("www/l/f", 978307200); }
static int hides(void) { return chmod("www/l/f", 0600); }
static int shows(void) { return chmod("www/l/f", 0644); }
static int runs(void) { return chmod("www/l/f", 0755); }
static int owns(void) { return chown("www/l/f", 65534, 0) || chmod("www/l/f", 0044); }
static int disowns(void) { return chown("www/l/f", 0, 0) || chmod("www/l/f", 0644); }
static int grows_elsewhere(void) { return link("www/l/f", "www/g") || append("www/g") || unlink("www/g"); }
static int renames(void) { return rename("www/l/f", "www/l/h"); }
static int denies(void) { return denied("www/l/h"); }
static int permits(void) { return removexattr("www/l/h", "system.posix_acl_access"); }
static int replaces(void) { return append("www/g") || rename("www/g", "www/l/h"); }
static int adds_folder(void) { return mkdir("www/l/s", 0755) || dated("www/l/s", 978307200); }
static int fills_folder(void) { return append("www/l/s/x"); }
static int mounts(void) { return mount("none", "www/l/s", "tmpfs", 0, "mode=700"); }
static int unmounts(void) { return umount("www/l/s"); }
static int removes_folder(void) { return unlink("www/l/s/x") || rmdir("www/l/s"); }
static int adds_index(void) { return append("www/l/index.html"); }
static int removes_index(void) { return unlink("www/l/index.html"); }
static int links(void) { return append("www/g") || symlink("../g", "www/l/k"); }
static int grows_behind(void) { return append("www/g"); }
static int unlinks(void) { return unlink("www/l/k") || unlink("www/g"); }
static int closes(void) { return chmod("www/l", 0700); }
static int opens(void) { return chmod("www/l", 0755); }
static int moves(void) { return rename("www/l", "www/m") || mkdir("www/l", 0755); }
static int returns(void) { return rmdir("www/l") || rename("www/m", "www/l"); }
static int removes(void) { return unlink("www/l/h"); }

/* A change, what the answer has to have and must not have, and whether it is kept. */
static const struct {
	const char *words;
	int (*change)(void);
	const char *has, *lacks;
	int is_kept;
} changes[] = {
	{ "a new file", makes, ">f</bdi></a></td><td>3</td>", "2001-01-01", 1 },
	{ "a file that grows", grows, ">f</bdi></a></td><td>6</td>", "<td>3</td>", 1 },
	{ "another time", ages, "<td>2001-01-01 00:00</td>", ">h<", 1 },
	{ "another mode", hides, "200 OK", ">f<", 1 },
	{ "the mode it had", shows, ">f<", ">h<", 1 },
	{ "a program", runs, "200 OK", ">f<", 1 },
	{ "a file again", shows, ">f<", ">h<", 1 },
	{ "rights of its owner", owns, "200 OK", ">f<", 1 },
	{ "another owner", disowns, ">f<", ">h<", 1 },
	{ "growth by another name", grows_elsewhere, ">f</bdi></a></td><td>9</td>", "2001-01-01", 1 },
	{ "a new name", renames, ">h</bdi></a></td><td>9</td>", ">f<", 1 },
	{ "a list of rights", denies, "200 OK", ">h<", 1 },
	{ "no list of rights", permits, ">h<", ">f<", 1 },
	{ "another file", replaces, ">h</bdi></a></td><td>3</td>", "<td>9</td>", 1 },
	{ "a new folder", adds_folder, ">s</bdi>/</a></td><td></td><td>2001-01-01 00:00", ">f<", 1 },
	{ "a folder that changes", fills_folder, ">s</bdi>/", "2001-01-01", 1 },
	{ "a mount", mounts, "200 OK", ">s<", 0 },
	{ "no mount", unmounts, ">s</bdi>/", ">f<", 1 },
	{ "no folder", removes_folder, "200 OK", ">s<", 1 },
	{ "an index", adds_index, "\r\n\r\nabc", "<table>", 1 },
	{ "no index", removes_index, "<table>", "index.html", 1 },
	{ "a link", links, ">k</bdi></a></td><td>3</td>", ">f<", 0 },
	{ "growth behind a link", grows_behind, ">k</bdi></a></td><td>6</td>", ">f<", 0 },
	{ "no link", unlinks, "200 OK", ">k<", 1 },
	{ "a closed folder", closes, "HTTP/1.1 403 ", "<table>", 0 },
	{ "an open folder", opens, ">h<", ">f<", 1 },
	{ "another folder", moves, "<table>", ">h<", 1 },
	{ "the folder it was", returns, ">h<", ">f<", 1 },
	{ "no file", removes, "<table>", ">h<", 1 },
};

static void expect(unsigned int number)
{
	const char *answer = ask();

	if (strstr(answer, changes[number].has) && !strstr(answer, changes[number].lacks))
		return;
	printf("%s: %s\n", changes[number].words, answer);
	exit(1);
}

/* Each answer until one comes from the cache has to show the change. */
static void until_kept(unsigned int number)
{
	unsigned long before = hits();

	do
		expect(number);
	while (hits() == before);
}

int main(int count, char **words)
{
	int turns = count == 2 ? atoi(words[1]) : 0, turn;
	unsigned int i, number = sizeof(changes) / sizeof(changes[0]);
	pid_t askers[ASKERS];

	if (!turns || mkdir("www/l", 0755))
		fail("www/l");
	for (i = 0; i < ASKERS; i++) {
		askers[i] = fork();
		if (!askers[i])
			for (;;)
				ask();
	}
	for (turn = 0; turn < turns; turn++) {
		for (i = 0; i < number; i++) {
			alarm(PATIENCE_S);
			if (changes[i].change())
				fail(changes[i].words);
			expect(i);
			if (changes[i].is_kept)
				until_kept(i);
		}
	}
	for (i = 0; i < ASKERS; i++) {
		kill(askers[i], SIGKILL);
		waitpid(askers[i], NULL, 0);
	}
	printf("%u changes shown\n", turns * number);
	return rmdir("www/l");
}
