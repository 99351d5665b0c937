/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /metrics for Prometheus, by prometheus-cpp, which is seen in metrics.cc alone.
 *
 *   Prometheus --HTTP--> prometheus-cpp's threads --> metrics.cc --> collect.c --> counters, store_get_status, ...
 *
 * collect.c says what there is, through a sink, in C and without the library: tests read it without HTTP.
 *
 * Threads: scrapes run in the library's own threads, never in a worker, and read what any thread may (counters' sums,
 * store_get_status, net_get_status, hist snapshots); several at a time may. The daemon is up before metrics_start and
 * still up when metrics_stop returns.
 */
#ifndef FS_SERVER_METRICS_METRICS_H
#define FS_SERVER_METRICS_METRICS_H

#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct metrics;
struct server;

/* Serves http://address/metrics. address is "ADDR:PORT" or "[ADDR]:PORT" as --metrics-listen has it; "off": *out is NULL.
   FS_ESYS with a reason, the address in it, when it can't be bound: then *out is NULL too, and the daemon goes on
   without. Its threads block all signals. Main thread. */
FS_MUST_CHECK int metrics_start(struct metrics **out, const struct server *server, const char *address,
				char reason[256]);
/* Scrapes under way are finished first, which is waited for, for 1 s at most. NULL is nothing. Main thread, before anything that a scrape reads goes. */
void metrics_stop(struct metrics *metrics);

/* ---- what is shown (collect.c) ---------------------------------------------------------------- */

/* base/metrics/metrics.h's enum metric_type, for C++, which can't read the atomics of its headers. */
enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };

/* One family after the other: begin(), then its samples. Texts are valid during the call only. */
struct metrics_sink {
	void *context;
	/* type: enum metrics_type. */
	void (*begin)(void *context, const char *name, int type, const char *help);
	/* names: labels separated by commas, as in metrics.def; values: one for each. */
	void (*sample)(void *context, const char *names, const char *const *values, double value);
	/* cumulative[i] counts what took up to bounds_seconds[i], ascending; count is all of them. */
	void (*histogram)(void *context, const char *names, const char *const *values, const double *bounds_seconds,
			  const uint64_t *cumulative, unsigned bounds, uint64_t count, double sum_seconds);
};

void metrics_collect(const struct server *server, const struct metrics_sink *sink);

#ifdef __cplusplus
}
#endif

#endif
