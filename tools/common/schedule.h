/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which the copies' requests are played. Copy c of N starts c/N of the span into the
 * trace and wraps round. So all copies are under way from start to end, each at another hour.
 *
 * Threads: each worker has a schedule of its own over the same spool, steps through all requests,
 * and plays those whose key is on its connections. So no request crosses a thread.
 */
#ifndef FS_TOOLS_COMMON_SCHEDULE_H
#define FS_TOOLS_COMMON_SCHEDULE_H

#include <stdint.h>

#include "base/error.h"
#include "tools/common/spool.h"

struct schedule_item {
	const struct spool_record *record;
	int64_t time_us; /* since the start of the replay, in trace time */
	uint64_t number; /* of the request, from 0, all copies counted */
	uint32_t copy;
};

struct schedule_cursor {
	int64_t time_us; /* of its next request, in replay time */
	int64_t shift_us; /* replay time = trace time + shift */
	uint64_t index;
	uint64_t left; /* records to go */
	uint32_t repeat; /* of the next record, times played already */
	uint32_t copy;
};

struct schedule {
	const struct spool *spool;
	struct schedule_cursor *heap; /* earliest first; ties by copy */
	uint32_t heap_size;
	uint64_t number;
	uint64_t limit;
};

/* init aborts when memory is out; fini frees. limit: requests to play, UINT64_MAX for all. */
void schedule_init(struct schedule *schedule, const struct spool *spool, uint32_t copies, uint64_t limit);
void schedule_fini(struct schedule *schedule);

/* Returns the number of requests that a schedule gives from start to end. */
uint64_t schedule_total(const struct spool *spool, uint32_t copies, uint64_t limit);

/* Passes over the next requests, at most so many. */
void schedule_skip(struct schedule *schedule, uint64_t requests);

/* Fills in the next request, or returns false at the end. */
FS_MUST_CHECK bool schedule_next(struct schedule *schedule, struct schedule_item *item);

#endif
