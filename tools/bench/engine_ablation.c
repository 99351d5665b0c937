/* SPDX-License-Identifier: BSD-3-Clause */
/* One kind of index as a row of figures, after the flash has turned over. */
#include "tools/bench/engine.h"
#include "tools/bench/report.h"

static void report_lookups(const struct ablation_run *run, const char *row, bool hits, unsigned rounds,
			   uint64_t lookups)
{
	for (unsigned round = 0; round < rounds; round++) {
		struct ablation_cost cost;

		ablation_run_measure(run, hits, round, lookups, &cost);
		report_add(row, hits ? "reads_per_hit" : "reads_per_miss", cost.reads);
		report_add(row, hits ? "hit_ns" : "miss_ns", cost.ns);
		if (!hits) {
			report_add(row, "filters_per_miss", cost.filters_asked);
			continue;
		}
		report_add(row, "lost_pct", 100 * cost.lost);
		report_add(row, "bytes_per_object", ablation_run_bytes_per_key(run, cost.lost));
	}
}

int engine_ablation(const char *row, const struct ablation_shape *shape, unsigned turns, unsigned rounds,
		    uint64_t lookups)
{
	struct ablation_run run;
	int rc;

	if (lookups == 0 || turns == 0)
		return FS_EINVAL;
	rc = ablation_run_init(&run, shape);
	if (rc != FS_OK)
		return rc;
	/* The first turn fills the flash. */
	rc = ablation_run_write(&run, (uint64_t)shape->segments * (1 + turns));
	if (rc == FS_OK) {
		report_lookups(&run, row, true, rounds, lookups);
		report_lookups(&run, row, false, rounds, lookups);
	}
	ablation_run_fini(&run);
	return rc;
}
