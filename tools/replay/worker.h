/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker threads. Each is an epoll loop over its connections, which takes the requests of its keys from a schedule of
 * its own.
 *
 * Threads: the run is shared. Each field that changes is atomic, or under its lock, or written before
 * the workers start. Workers keep within WORKER_LEAD requests of each other.
 */
#ifndef FS_TOOLS_REPLAY_WORKER_H
#define FS_TOOLS_REPLAY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/replay/play.h"
#include "tools/replay/server_stats.h"

#define WORKER_LEAD 65536u

struct run {
	const struct replay_options *options;
	const struct spool *spool;
	uint32_t *keys;
	uint64_t start_ns;
	uint64_t end; /* the number of the first request that isn't played any more */
	uint64_t total; /* requests from start to end */
	int64_t first_us; /* trace time of the first of them */
	uint64_t warmup_requests;
	int64_t warmup_us; /* behind first_us */

	pthread_mutex_t lock;
	_Atomic bool window_open; /* set under lock; the first measured request opens it */
	uint64_t window_ns; /* lock; the time of that request */
	struct server_stats *before; /* lock; the server's stats at that time */
	char error[320]; /* lock; the first reason why the run failed */
	_Atomic bool failed;
	_Atomic bool stop; /* the workers send no more requests, await their answers and end */
};

struct worker {
	struct run *run;
	pthread_t thread;
	struct player player;
	struct schedule schedule;
	struct conn *conns; /* connection i of the run is conns[i / threads] of worker i % threads */
	uint32_t conn_count;
	uint32_t number;
	struct schedule_item next;
	bool has_next;
	bool measuring;
	int epoll_fd;
	uint64_t checked_timeouts_ns;
	int64_t behind_ns; /* paced: the farthest it fell behind */
	struct worker *all; /* the run's workers, options->threads of them */
	_Atomic uint64_t position; /* requests stepped over; UINT64_MAX at the end */
	_Atomic uint64_t answered;
};

/* Returns monotonic time in nanoseconds. */
uint64_t worker_now_ns(void);

/* Makes options->threads workers and connects them. Returns 0, or a negative error with a message in error. start runs
   their threads, join waits for their end, destroy frees them. */
int workers_create(struct run *run, struct worker **workers, char error[256]) FS_MUST_CHECK;
void workers_start(struct worker *workers);
void workers_join(struct worker *workers);
void workers_destroy(struct worker *workers);

/* Return whether all workers have ended, and the number of requests with an answer so far. Any thread may call both. */
bool workers_done(const struct worker *workers);
uint64_t workers_answered(const struct worker *workers);

#endif
