/* A program that knows of DOSTP: it attaches its socket, says how it speaks, and gets its own words back.
 *
 *   knowing INTERFACE ADDRESS PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "dostp.h"

int main(int count, char **words)
{
	struct timeval limit = { .tv_sec = 30 };
	struct sockaddr_in to = { .sin_family = AF_INET };
	char answer[16] = "";
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (count != 4 || fd < 0)
		return 2;
	to.sin_port = htons(atoi(words[3]));
	if (inet_pton(AF_INET, words[2], &to.sin_addr) != 1 || dostp_backend(fd))
		return 2;
	if (dostp_attach(fd, "nothing") == 0 || errno != ENODEV || dostp_attach(0, words[1]) == 0) {
		perror("a wrong word");
		return 1;
	}
	if (dostp_attach(fd, words[1]) < 0) {
		perror("dostp_attach");
		return 1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (sendto(fd, "words", 5, 0, (struct sockaddr *)&to, sizeof(to)) != 5 ||
	    recv(fd, answer, sizeof(answer), 0) != 5 || memcmp(answer, "words", 5)) {
		perror("words");
		return 1;
	}
	printf("by %s\n", dostp_backend(fd));
	return dostp_attach(fd, words[1]) < 0 && errno == EALREADY ? 0 : 1;
}
