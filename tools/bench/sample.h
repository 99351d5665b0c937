/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A load on a server as a row of figures, the same columns in each study that loads servers:
 *
 *   cpu_us          the server's CPU time, user and kernel, per operation (of a multiget: per key)
 *   instructions    the same, where the machine counts them
 *   ops_s           operations per second
 *   p50_us p99_us p999_us   latency of a command
 *   server_percent  of one CPU that the server's process used; 100 with one thread: it was the limit
 *   load_percent    of its CPU that the load generator used; near 100 it may have been the limit
 *   wait_percent    of the time that threads of the server could have run but had no CPU: other processes, or
 *                   more threads than CPUs. Where it is not near 0, rate and latency are the neighbours'
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_BENCH_SAMPLE_H
#define FS_TOOLS_BENCH_SAMPLE_H

#include "tools/bench/bench.h"
#include "tools/bench/load.h"

struct sample {
	double cpu_us, instructions; /* NaN: not counted here */
	double ops_s, p50_us, p99_us, p999_us;
	uint64_t operations, gets, hits;
};

/* The heads of the columns. */
void sample_columns(struct figures *figures);

/*
 * Runs the load and adds a sample to the row. Errors that the server answered and, unless expect_misses, hits
 * that were missing become notes of the study. FS_ECORRUPT, with a line on standard error: a value was wrong,
 * a hit was none, or load_run says so. out may be NULL.
 */
FS_MUST_CHECK int sample_load(const struct bench *bench, const char *study, const char *row,
			      const struct load_spec *spec, struct server *server, struct sample *out);

/* Ours over theirs, as a sample of a row of its own: cpu_ratio, instructions_ratio, ops_ratio, p50_ratio,
   p99_ratio, p999_ratio. Call it once a round. */
void sample_ratio(struct figures *figures, const char *study, const char *row, const struct sample *ours,
		  const struct sample *theirs);

/* How long a measurement takes, from a length at scale 1. */
double sample_seconds(const struct bench *bench, double seconds);

#endif
