/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histograms of durations, declared once in latency.def: from its rows come the enum, "stats latency" and
 * histograms of /metrics.
 *
 * What a request's duration is: from when its bytes were received to when its answer was given to the kernel. Requests that were
 * received together are answered together, and so have one duration: it is measured once for all of
 * them, per turn of a worker, which is what keeps it off the path of a single request (server/net/durations.h).
 *
 *   - A value that comes in several receives counts from the turn of the last one: how fast a client sends is no matter of ours.
 *   - Of a pipeline that takes several turns (-R), each part counts from its own.
 *   - What waits for a flash read counts from the turn in which it was received to the one in which it is done. An answer that
 *     has to wait for one before it, or for a client that doesn't read, isn't longer for it.
 *   - Gets are counted as dram_hits, flash_hits and get_misses are, sets as cmd_set is, in all protocols. Commands
 *     that none of these count (delete, touch, incr) have no histogram.
 *
 * I/O is measured from when it is given to the device to when its end is seen, with the clock that segments has.
 *
 * Threads: each thread records into histograms of its own (made at its first lat_record, kept after its end), without a lock:
 * one writer per histogram, relaxed atomics. lat_read adds them up and may be a few records behind. Blocks are
 * linked without a lock, so that a duration may be recorded under any lock.
 * Memory: a thread's histogram takes pages only where values fall, some 8 KiB each in practice.
 */
#ifndef FS_BASE_METRICS_LATENCY_H
#define FS_BASE_METRICS_LATENCY_H

#include <stdint.h>

#include "base/hist.h"
#include "base/metrics/metrics.h"

enum lat {
#define LATENCY(name, metric, label, text) LAT_##name,
#include "base/metrics/latency.def"
#undef LATENCY
	LAT_COUNT
};

struct lat_block {
	struct hist *hist[LAT_COUNT]; /* all made with the block */
	struct lat_block *next;
};

extern _Thread_local struct lat_block *lat_self;
struct lat_block *lat_attach(void); /* makes this thread's block; never NULL */

/* count events that took ns each. Any thread; no allocation but at the thread's first call. */
static inline void lat_record(enum lat latency, uint64_t ns, uint64_t count)
{
	struct lat_block *block = __builtin_expect(lat_self != NULL, 1) ? lat_self : lat_attach();

	hist_record_many(block->hist[latency], ns, count);
}

/* Adds all threads' records since the start into out (zeroed or not). */
void lat_read(enum lat latency, struct hist *out);
/* "stats reset": what lat_read_since_reset leaves out from then on. /metrics never goes back: it takes lat_read. */
void lat_reset(void); /* of this and the next, one at a time: the caller's lock */
void lat_read_since_reset(enum lat latency, struct hist *out);

struct lat_info {
	const char *name; /* as in "stats latency" */
	enum metric metric;
	const char *label; /* value of the metric's label */
	const char *text;
};
const struct lat_info *lat_info(enum lat latency);

/* Upper bounds of the buckets that /metrics shows, in ns, ascending; beyond the last is +Inf. 1, 2.5, 5 steps from 1 us to 10 s. */
#define LAT_BOUNDS 22
extern const uint64_t lat_bounds_ns[LAT_BOUNDS];

#endif
