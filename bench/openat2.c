/*
 * What the valgrind of Debian 12 lacks: openat2, which it does not know and refuses.
 *
 * Preloaded into the driver whose instructions are counted, and into nothing else: the driver opens two
 * files of its own making before anything is counted. It is NO confinement: a plain openat that follows
 * no link in the last place stands in for it. The driver is built so that its system calls go through
 * the C library's syscall(), which is taken over here and passed on for every other number.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { ARGUMENTS_MAX = 6 };

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long values[ARGUMENTS_MAX];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS_MAX; i++)
		values[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat2) {
		const struct open_how *how = (const struct open_how *)(uintptr_t)values[2];

		return openat((int)values[0], (const char *)(uintptr_t)values[1], (int)how->flags | O_NOFOLLOW);
	}
	if (!next)
		next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	return next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
