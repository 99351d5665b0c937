/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that does steps of some work: one after the other while there is something to do, otherwise one every 20 ms,
 * or when another thread wakes it.
 *
 * Threads: one thread calls init, start, stop and fini; any thread may call background_wake; the thread itself calls
 * background_sleep. Each takes the leaf lock inside for a moment, and none does I/O.
 */
#ifndef FS_STORE_BACKGROUND_H
#define FS_STORE_BACKGROUND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/lock.h"

struct background {
	pthread_t thread;
	bool threaded; /* the thread was started; constant while other threads run */
	struct lock lock; /* a leaf; covers stop and woken */
	pthread_cond_t cond;
	bool stop, woken;
	_Atomic bool stopping; /* like stop, for readers without the lock */
	_Atomic bool awake; /* set by the first thread that wakes it, so that one signal is enough */
	_Atomic uint64_t idle_steps, busy_steps; /* since the start, without and with something to do */
	const char *name; /* this and the next three: constant after start */
	void (*begin)(void *context);
	bool (*step)(void *context);
	void *context;
};

/* Makes lock and condition; no thread runs yet. */
void background_init(struct background *background);
/* Frees them. The thread was never started, or is stopped. */
void background_fini(struct background *background);
/* Starts the thread. It calls begin first, unless begin is NULL, and then step again and again; step returns whether
   there is more to do at once. name stays valid, at most 15 characters. FS_OK; FS_ESYS (errno): no thread, and it may be
   started again. */
FS_MUST_CHECK int background_start(struct background *background, const char *name, void (*begin)(void *context),
				   bool (*step)(void *context), void *context);
/* Returns when the thread has ended its step; at once if it was not started. */
void background_stop(struct background *background);
/* Makes the thread end its sleep, or not begin the next one. Any thread, with any lock but a leaf held. A call while the
   thread is on its way to sleep may be lost, because the first look at awake is relaxed: the work then waits until that
   sleep is over. */
void background_wake(struct background *background);
/* Sleeps up to ms, less when the thread is woken or stopped; not at all when no thread was started. */
void background_sleep(struct background *background, unsigned ms);

/* Is the thread to end soon? For long steps, which return early then. */
static inline bool background_is_stopping(const struct background *background)
{
	return background->threaded && atomic_load_explicit(&background->stopping, memory_order_relaxed);
}

#endif
