/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histograms of durations, declared once in latency.def. From its rows come the enum, "stats latency" and the
 * histograms of /metrics.
 *
 * The duration of a request runs from receiving its bytes to giving its answer to the kernel. Requests that were
 * received together are answered together, and have one duration. A worker measures it once per turn for all of them,
 * and so spends nothing on a single request (server/count/durations.h).
 *
 *   - A value may come in several receives. Its request counts from the turn of the last one, because the client's
 *     speed is not our concern.
 *   - A pipeline may take several turns (-R). Each part counts from its own turn.
 *   - A request that waits for a flash read counts from the turn that received it to the turn that finishes it. It
 *     counts no longer when its answer has to wait for an earlier answer, or for a client that doesn't read.
 *   - Gets are counted like dram_hits, flash_hits and get_misses, sets like cmd_set, in all protocols. Commands that
 *     none of these counters counts (delete, touch, incr) have no histogram.
 *
 * The duration of an I/O runs from giving it to the device to seeing its end, by the clock of segments.
 *
 * Threads: each thread records into histograms of its own, so a histogram has one writer; its values are relaxed
 * atomics. A thread's first lat_record makes its histograms, and they outlive the thread. lat_read adds them up and may
 * be a few records behind. Blocks are linked without a lock: it is safe to record under any lock.
 * Memory: a thread's histogram takes pages only where values fall, in practice some 8 KiB each.
 * Errors: none. A thread that gets no memory for its histograms ends the process.
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

/* One thread's histograms. That thread writes them; any thread may read them. */
struct lat_block {
	struct hist *hist[LAT_COUNT]; /* all made with the block */
	struct lat_block *next; /* constant once the block is linked */
};

/* This thread's block; NULL until it has recorded. Only for lat_record. */
extern _Thread_local struct lat_block *lat_self;

/* Makes this thread's block, and links it. Never NULL. Allocates; the block is never freed. */
struct lat_block *lat_attach(void);

/* Records count events that took ns nanoseconds each. Any thread, under any lock; allocates at the thread's first call
   only. */
static inline void lat_record(enum lat latency, uint64_t ns, uint64_t count)
{
	struct lat_block *block = __builtin_expect(lat_self != NULL, 1) ? lat_self : lat_attach();

	hist_record_many(block->hist[latency], ns, count);
}

/* Adds all threads' records since the start to out, which the caller owns and need not have zeroed. Any thread; doesn't
   block. */
void lat_read(enum lat latency, struct hist *out);

/* For "stats reset": lat_read_since_reset leaves out all earlier records from now on. /metrics must never go back, so
   it takes lat_read. The caller's lock admits one call of this or of lat_read_since_reset at a time. */
void lat_reset(void);

/* Adds all threads' records since the last lat_reset to out, which need not be zeroed. Under the caller's lock, see
   lat_reset. */
void lat_read_since_reset(enum lat latency, struct hist *out);

/* A row of latency.def. */
struct lat_info {
	const char *name; /* in "stats latency" */
	enum metric metric; /* the metric that it is a part of */
	const char *label; /* its value of the metric's label */
	const char *text; /* starts with a small letter, has no full stop */
};

/* Returns the row of a histogram. Static storage. */
const struct lat_info *lat_info(enum lat latency);

/* Upper bounds of the buckets in /metrics, in ns, ascending: 1, 2.5 and 5 of each power of ten from 1 us to 10 s. The
   bucket +Inf has the rest. */
#define LAT_BOUNDS 22
extern const uint64_t lat_bounds_ns[LAT_BOUNDS];

#endif
