/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats latency": how long requests and I/O have taken since the start, or since "stats reset". */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/lock.h"
#include "base/metrics/latency.h"

#define FINE_NS 10000u /* below this a whole microsecond is too coarse */

/* Covers the snapshots of the last reset. */
static struct lock lock = LOCK_INITIALIZER(LOCK_LEAF);

static void duration_row(struct stats_out *out, enum lat latency, const char *what, double ns)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s_us", lat_info(latency)->name, what);
	stats_add(out, name, "%.*f", ns < FINE_NS ? 3 : 0, ns / 1000);
}

static void quantile_row(struct stats_out *out, enum lat latency, const struct hist *hist, const char *what,
			 double part)
{
	duration_row(out, latency, what, (double)hist_quantile(hist, part));
}

static void latency_rows(struct stats_out *out, enum lat latency, const struct hist *hist)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_count", lat_info(latency)->name);
	stats_add(out, name, "%" PRIu64, atomic_load_explicit(&hist->count, memory_order_relaxed));
	/* The mean has so many digits that mean times count is the sum. A program that polls can compute the mean of
	   the time between two answers. */
	snprintf(name, sizeof(name), "%s_mean_us", lat_info(latency)->name);
	stats_add(out, name, "%.6f", hist_mean(hist) / 1000);
	quantile_row(out, latency, hist, "p50", 0.5);
	quantile_row(out, latency, hist, "p90", 0.9);
	quantile_row(out, latency, hist, "p99", 0.99);
	quantile_row(out, latency, hist, "p999", 0.999);
	quantile_row(out, latency, hist, "max", 1);
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
