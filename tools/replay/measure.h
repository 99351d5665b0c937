/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counts of a worker. Threads: each worker writes its own; they are merged after the workers have ended. All counts
 * are of the measured window (without the warm-up), except for the verdicts on values, which count from the first
 * request.
 */
#ifndef FS_TOOLS_REPLAY_MEASURE_H
#define FS_TOOLS_REPLAY_MEASURE_H

#include <stdint.h>

#include "base/hist.h"

enum latency_kind { LATENCY_HIT, LATENCY_MISS, LATENCY_SET, LATENCY_DELETE, LATENCY_KINDS };

extern const char *const latency_names[LATENCY_KINDS];

struct app_counts {
	uint64_t requests; /* of the trace: fills are not among them */
	uint64_t gets;
	uint64_t hits;
	uint64_t sets; /* fills among them */
};

struct measure {
	struct hist *latency[LATENCY_KINDS]; /* nanoseconds */
	struct app_counts *apps;
	struct app_counts all;
	uint32_t app_count;
	uint64_t fills;
	uint64_t deletes;
	uint64_t not_stored; /* adds of a present key */
	uint64_t too_large; /* values over the server's item limit */
	uint64_t out_of_memory; /* sets that the server had no memory for */
	uint64_t server_errors; /* other SERVER_ERROR lines */
	uint64_t client_errors; /* ERROR and CLIENT_ERROR lines */
	uint64_t bytes_read; /* values of hits */
	uint64_t bytes_set; /* keys and values of sets */
	uint64_t long_keys; /* keys that needed more than the trace's key size */
	/* Over the whole run: */
	uint64_t older; /* hits with a value that had been overwritten or deleted */
	uint64_t wrong; /* hits with a value that is not this key's, or is damaged */
	uint64_t checked; /* hits that were proved right */
	uint64_t from_before; /* of these, of keys that this run had not written yet */
};

/* init aborts when memory is out; fini frees. merge adds the counts of `from`. */
void measure_init(struct measure *measure, uint32_t apps);
void measure_fini(struct measure *measure);
void measure_merge(struct measure *into, const struct measure *from);

#endif
