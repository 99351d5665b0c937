/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long requests take, without work for each of them.
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
 * Threads: the worker's.
 */
#ifndef FS_SERVER_COUNT_DURATIONS_H
#define FS_SERVER_COUNT_DURATIONS_H

#include <stdint.h>

#include "base/metrics/latency.h"

#define DURATIONS_LATE 64u

struct store_worker;

struct durations {
	uint64_t since_ns; /* what is executed now was received then */
	uint64_t dram_hits, misses, sets,
		flash_hits; /* the thread's counters: up to these all is recorded, or is in late */
	unsigned late_count;
	struct {
		uint64_t since_ns;
		enum lat kind;
	} late[DURATIONS_LATE]; /* done, and about to be sent */
};

/* All answers to what was executed since the last call are sent: records their durations. Reads the clock if there were
   any. */
void durations_sent(struct durations *durations, const struct store_worker *store);
/* A request that was received at since_ns (of the store's clock) has just been done, and the store has counted it. */
void durations_done(struct durations *durations, const struct store_worker *store, uint64_t since_ns);

#endif
