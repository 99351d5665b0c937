/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The durations of requests, measured without work for each request.
 *
 *   received ---- executed ---- sent: the clock is read once, and what the worker's counters have gained since the
 *      |                         |   last time is recorded with that one duration
 *   since_ns ------------------> durations_sent
 *
 * A worker records the requests that its counters dram_hits, get_misses and cmd_set count, whatever protocol and
 * transport they came by. A batch begins with the turn of the worker, or when the batch before it in the same turn was
 * sent. A request that waited for a flash read is recorded by itself (durations_done), with the time since its batch
 * began, when the answers of the turn in which it was done are sent.
 *
 * The slow log (slow.h) is told of turns and answers too, while it is on.
 *
 * Threads: the worker's.
 */
#ifndef FS_SERVER_COUNT_DURATIONS_H
#define FS_SERVER_COUNT_DURATIONS_H

#include <stdint.h>

#include "base/metrics/latency.h"
#include "server/count/slow.h"

#define DURATIONS_LATE 64u

struct store_worker;

struct durations {
	uint64_t since_ns; /* the requests that are executed now were received then */
	/* The thread's counters: up to these values all requests are recorded, or are in late. */
	uint64_t dram_hits, misses, sets, flash_hits;
	unsigned late_count;
	struct {
		uint64_t since_ns;
		enum lat kind;
	} late[DURATIONS_LATE]; /* done, and about to be sent */
};

/* A turn of the worker begins: what is executed next was received at now_ns of the store's clock. */
static inline void durations_turn(struct durations *durations, uint64_t now_ns)
{
	durations->since_ns = now_ns;
	if (__builtin_expect(slow_is_on(), 0))
		slow_turn(now_ns);
}

/* Records the durations of all requests that were executed since the last call, as their answers are sent now. Reads
   the clock if there were any. */
void durations_sent(struct durations *durations, const struct store_worker *store);
/* Notes that a request, which was received at since_ns (of the store's clock), has just been done, and that the store
   has counted it. */
void durations_done(struct durations *durations, const struct store_worker *store, uint64_t since_ns);

#endif
