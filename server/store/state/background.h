/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that does steps of some work: one after the other while there is something to do, else one from time to
 * time, or when it is woken.
 *
 * Threads: init, start, stop and fini by one thread; background_wake by any; background_sleep by the thread itself.
 */
#ifndef FS_STORE_BACKGROUND_H
#define FS_STORE_BACKGROUND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"

struct background {
	pthread_t thread;
	bool threaded; /* it was started: constant while other threads run */
	struct lock lock; /* covers stop and woken */
	pthread_cond_t cond;
	bool stop, woken;
	_Atomic bool stopping; /* stop, for those without the lock */
	_Atomic bool awake; /* set by those who wake it, so that one signal does */
	const char *name;
	void (*begin)(void *context);
	bool (*step)(void *context);
	void *context;
};

void background_init(struct background *background);
void background_fini(struct background *background);
/* begin, if it isn't NULL, is called first; step returns whether there is more to do at once. FS_ESYS: no thread. */
int background_start(struct background *background, const char *name, void (*begin)(void *context),
		     bool (*step)(void *context), void *context);
/* Returns when the thread has ended; of one that was not started, at once. */
void background_stop(struct background *background);
void background_wake(struct background *background);
/* Sleeps up to ms, less when it is woken or stopped; not at all where there is no thread. */
void background_sleep(struct background *background, unsigned ms);

static inline bool background_is_stopping(const struct background *background)
{
	return background->threaded && atomic_load_explicit(&background->stopping, memory_order_relaxed);
}

#endif
