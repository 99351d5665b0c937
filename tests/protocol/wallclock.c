/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wall clock that a test sets, under an unmodified daemon (LD_PRELOAD): wallclock.py compiles it. CLOCK_REALTIME is the
 * machine's plus the seconds in the file WALLCLOCK_FILE, eight bytes that the test changes at any time. With WALLCLOCK_BOOT in
 * the environment CLOCK_BOOTTIME, by which objects expire, moves along. Other clocks are the machine's.
 * libfaketime can't be used here, as it needs malloc before it is ready, and jemalloc the time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_s;
static int moves_boot;

/* Runs before the program's first line, so that the program may drop its rights afterwards. */
static void __attribute__((constructor)) start(void)
{
	const char *path = getenv("WALLCLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped = fd >= 0 ? mmap(NULL, sizeof(*ahead_s), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (mapped == MAP_FAILED)
		_exit(127);
	ahead_s = mapped;
	moves_boot = getenv("WALLCLOCK_BOOT") != NULL;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	long result = syscall(SYS_clock_gettime, clock, out);

	if (result == 0 && (clock == CLOCK_REALTIME || (moves_boot && clock == CLOCK_BOOTTIME)) && ahead_s)
		out->tv_sec += *ahead_s;
	return (int)result;
}
