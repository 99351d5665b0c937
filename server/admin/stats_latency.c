/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats latency": how long requests and I/O have taken since the start, or since "stats reset". */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/lock.h"
#include "base/metrics/latency.h"
#include "base/metrics/rows.h"

#define FINE_NS 10000u /* below this a whole microsecond is too coarse */

/* Covers the snapshots of the last reset. */
static struct lock lock = LOCK_INITIALIZER(LOCK_LEAF);

static void latency_row_name(enum lat latency, enum row row, char name[64])
{
	snprintf(name, 64, "%s_%s", lat_info(latency)->name, row_info(row)->name);
}

/* The quantile of no durations is "nan", and so is their mean. */
static void quantile_row(struct stats_out *out, enum lat latency, const struct hist *hist, enum row row, double part)
{
	double ns = (double)hist_quantile(hist, part);
	char name[64];

	latency_row_name(latency, row, name);
	if (atomic_load_explicit(&hist->count, memory_order_relaxed) == 0)
		stats_add(out, name, "nan");
	else
		stats_add(out, name, "%.*f", ns < FINE_NS ? 3 : 0, ns / 1000);
}

static void latency_rows(struct stats_out *out, enum lat latency, const struct hist *hist)
{
	uint64_t count = atomic_load_explicit(&hist->count, memory_order_relaxed);
	char name[64];

	latency_row_name(latency, ROW_LATENCY_count, name);
	stats_add(out, name, "%" PRIu64, count);
	/* The mean has so many digits that mean times count is the sum. A program that polls can compute the mean of
	   the time between two answers. */
	latency_row_name(latency, ROW_LATENCY_mean_us, name);
	if (count == 0)
		stats_add(out, name, "nan");
	else
		stats_add(out, name, "%.6f", hist_mean(hist) / 1000);
	quantile_row(out, latency, hist, ROW_LATENCY_p50_us, 0.5);
	quantile_row(out, latency, hist, ROW_LATENCY_p90_us, 0.9);
	quantile_row(out, latency, hist, ROW_LATENCY_p99_us, 0.99);
	quantile_row(out, latency, hist, ROW_LATENCY_p999_us, 0.999);
	quantile_row(out, latency, hist, ROW_LATENCY_max_us, 1);
}

void stats_latency(const struct server *server, struct stats_out *out)
{
	struct hist *hist = hist_create();

	(void)server;
	for (enum lat latency = 0; latency < LAT_COUNT; latency++) {
		hist_reset(hist);
		lock_acquire(&lock);
		lat_read_since_reset(latency, hist);
		lock_release(&lock);
		latency_rows(out, latency, hist);
	}
	hist_destroy(hist);
}

void stats_latency_reset(void)
{
	lock_acquire(&lock);
	lat_reset();
	lock_release(&lock);
}
