/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every unit test: a program that has started a thread says so at its end, in a comment of TAP. The run of
 * all unit tests (tools/testrun/units.py) finds by it that the list of what ThreadSanitizer runs is complete. Threads of
 * shared libraries are not seen.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static atomic_bool started;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	atomic_store_explicit(&started, true, memory_order_relaxed);
	return __real_pthread_create(thread, attributes, run, argument);
}

__attribute__((destructor)) static void tell(void)
{
	if (atomic_load_explicit(&started, memory_order_relaxed))
		puts("# it starts threads");
}
