/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine calls of libc and the kernel, answered by the scheduler: threads, locks, conditions, clocks, sleeps, event
 * and timer descriptors, random bytes. The linker puts these in place of the real ones (--wrap; the Makefile lists them).
 *
 * Threads: fibers. A lock is free again when it was released, and any of its waiters may get it, or somebody else.
 */
#ifndef FS_TESTS_SCHED_WRAPS_H
#define FS_TESTS_SCHED_WRAPS_H

#include <stdbool.h>
#include <stdint.h>

struct wraps_options {
	uint64_t seed; /* of what the kernel's random bytes are */
	uint64_t boot_ns; /* the run's time at which the machine was booted */
	unsigned spurious; /* of 1000 waits for a condition that end for no reason */
};

/* Once, before the engine is called. */
void wraps_begin(const struct wraps_options *options);

/* Adds to the count of an event descriptor, as the kernel does for a completion. */
void wraps_signal(int fd);
/* Waits until one of the two descriptors is readable, or until that time. Takes what an event descriptor has counted. */
void wraps_wait_fds(int events_fd, int timer_fd, uint64_t until_ns);

#endif
