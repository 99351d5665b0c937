/* SPDX-License-Identifier: BSD-3-Clause */
/* A form of the records of a chain as a row of figures. */
#include "tools/bench/engine.h"
#include "tools/bench/report.h"

int engine_chain(const char *row, const struct chain_shape *shape, uint64_t searches)
{
	struct chain_cost cost;
	int rc = chain_run(shape, searches, &cost);

	if (rc != FS_OK)
		return rc;
	report_add(row, "bits_per_key", cost.bits_per_key);
	report_add(row, "in_vain_per_miss", cost.in_vain_per_miss);
	report_add(row, "in_vain_per_hit", cost.in_vain_per_hit);
	report_add(row, "miss_ns", cost.miss_ns);
	report_add(row, "hit_ns", cost.hit_ns);
	return FS_OK;
}
