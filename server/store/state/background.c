/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/background.h"

#include <errno.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define IDLE_MS 20

void background_init(struct background *background)
{
	pthread_condattr_t attributes;

	*background = (struct background){ .threaded = false };
	lock_init(&background->lock, LOCK_LEAF);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&background->cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

void background_fini(struct background *background)
{
	must(!background->threaded);
	pthread_cond_destroy(&background->cond);
	lock_fini(&background->lock);
}

static void *background_run(void *context)
{
	struct background *background = context;

	pthread_setname_np(pthread_self(), background->name);
	if (background->begin)
		background->begin(background->context);
	while (!atomic_load(&background->stopping)) {
		bool busy = background->step(background->context);

		atomic_fetch_add_explicit(busy ? &background->busy_steps : &background->idle_steps, 1,
					  memory_order_relaxed);
		if (!busy)
			background_sleep(background, IDLE_MS);
	}
	return NULL;
}

int background_start(struct background *background, const char *name, void (*begin)(void *context),
		     bool (*step)(void *context), void *context)
{
	must(!background->threaded);
	background->stop = false;
	atomic_store(&background->stopping, false);
	background->name = name;
	background->begin = begin;
	background->step = step;
	background->context = context;
	background->threaded = true;
	errno = thread_start(&background->thread, background_run, background);
	if (errno == 0)
		return FS_OK;
	background->threaded = false;
	return FS_ESYS;
}

void background_stop(struct background *background)
{
	if (!background->threaded)
		return;
	atomic_store(&background->stopping, true);
	lock_acquire(&background->lock);
	background->stop = true;
	pthread_cond_signal(&background->cond);
	lock_release(&background->lock);
	pthread_join(background->thread, NULL);
	background->threaded = false;
}

void background_wake(struct background *background)
{
	if (!background->threaded || atomic_load_explicit(&background->awake, memory_order_relaxed) ||
	    atomic_exchange(&background->awake, true))
		return;
	lock_acquire(&background->lock);
	background->woken = true;
	pthread_cond_signal(&background->cond);
	lock_release(&background->lock);
}

void background_sleep(struct background *background, unsigned ms)
{
	struct timespec until;

	if (!background->threaded)
		return;
	until = clk_monotonic_after(ms);
	lock_acquire(&background->lock);
	while (!background->stop && !background->woken &&
	       pthread_cond_timedwait(&background->cond, &background->lock.mutex, &until) == 0)
		;
	background->woken = false;
	lock_release(&background->lock);
	atomic_store(&background->awake, false);
}
