/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The submitter: one thread, shared by all readers, for the requests that would block a worker.
 * It submits them again to their own queue without NOWAIT, where they complete like any other; when
 * that fails, it reads in place and hands the result back. It also holds requests back for a while, for the
 * fault point device_read_slow alone.
 */
#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/thread.h"
#include "segments/segments_internal.h"

struct submitter {
	struct lock lock; /* a leaf; covers all below */
	pthread_cond_t wake;
	pthread_t thread;
	bool started, stop;
	struct dev_io *first, *last;
	struct dev_io *held; /* in order of arrival, which is also that of their times, as all wait equally long */
	struct dev_io *held_last;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void submit_blocking(struct dev_io *io)
{
	struct dev *device = io->device;

	io->nowait = false;
	/* A request that was taken may complete and its reader be gone: it is not touched again. */
	if (device->ops->submit(io->queue, &io, 1) == 1)
		return;
	io->result = device->ops->read(device, io->buffer, io->bytes, io->offset);
	if (io->result == 0)
		io->result = (int64_t)io->bytes;
	io->handed_back(io);
}

static struct dev_io *submitter_next(struct submitter *submitter)
{
	struct dev_io *io = submitter->first;

	if (io) {
		submitter->first = io->next;
		if (!submitter->first)
			submitter->last = NULL;
	}
	return io;
}

static struct dev_io *submitter_next_due(struct submitter *submitter)
{
	struct dev_io *io = submitter->held;

	if (!io || (now_ms() < io->native[0] && !submitter->stop))
		return NULL;
	submitter->held = io->next;
	if (!submitter->held)
		submitter->held_last = NULL;
	return io;
}

static void submitter_wait(struct submitter *submitter)
{
	struct timespec until;

	if (!submitter->held) {
		must(pthread_cond_wait(&submitter->wake, &submitter->lock.mutex) == 0);
		return;
	}
	until.tv_sec = (time_t)(submitter->held->native[0] / 1000);
	until.tv_nsec = (long)(submitter->held->native[0] % 1000 * 1000000);
	pthread_cond_timedwait(&submitter->wake, &submitter->lock.mutex, &until);
}

static void *submitter_run(void *context)
{
	struct submitter *submitter = context;

	lock_acquire(&submitter->lock);
	for (;;) {
		struct dev_io *due = submitter_next_due(submitter);
		struct dev_io *io = due ? NULL : submitter_next(submitter);

		if (!due && !io) {
			if (submitter->stop)
				break;
			submitter_wait(submitter);
			continue;
		}
		lock_release(&submitter->lock);
		if (due)
			due->handed_back(due);
		else
			submit_blocking(io);
		lock_acquire(&submitter->lock);
	}
	lock_release(&submitter->lock);
	return NULL;
}

struct submitter *submitter_create(void)
{
	struct submitter *submitter = mem_zalloc(sizeof(*submitter));
	pthread_condattr_t attributes;

	if (!submitter)
		return NULL;
	lock_init(&submitter->lock, LOCK_LEAF);
	must(pthread_condattr_init(&attributes) == 0);
	must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&submitter->wake, &attributes) == 0);
	pthread_condattr_destroy(&attributes);
	return submitter;
}

void submitter_destroy(struct submitter *submitter)
{
	bool started;

	if (!submitter)
		return;
	lock_acquire(&submitter->lock);
	submitter->stop = true;
	started = submitter->started;
	pthread_cond_signal(&submitter->wake);
	lock_release(&submitter->lock);
	if (started)
		pthread_join(submitter->thread, NULL);
	must(!submitter->first && !submitter->held);
	pthread_cond_destroy(&submitter->wake);
	lock_fini(&submitter->lock);
	mem_free(submitter);
}

static void submitter_append(struct dev_io **first, struct dev_io **last, struct dev_io *io)
{
	io->next = NULL;
	if (*last)
		(*last)->next = io;
	else
		*first = io;
	*last = io;
}

void submitter_take(struct submitter *submitter, struct dev_io *io, unsigned hold_ms)
{
	bool alone = false;

	must(io->magic == DEV_IO_MAGIC);
	lock_acquire(&submitter->lock);
	must(!submitter->stop);
	if (hold_ms) {
		io->native[0] = now_ms() + hold_ms;
		submitter_append(&submitter->held, &submitter->held_last, io);
	} else {
		submitter_append(&submitter->first, &submitter->last, io);
	}
	if (!submitter->started)
		submitter->started = thread_start(&submitter->thread, submitter_run, submitter) == 0;
	if (!submitter->started) {
		log_warn("flash: no submitter thread could be started; a worker waits for the device instead");
		alone = true;
		submitter_next(submitter);
	}
	pthread_cond_signal(&submitter->wake);
	lock_release(&submitter->lock);
	if (alone && !hold_ms)
		submit_blocking(io);
}
