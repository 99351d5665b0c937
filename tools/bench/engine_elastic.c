/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters of one shape as a row of figures. */
#include "tools/bench/engine.h"
#include "tools/bench/report.h"

#define GETS_OF_PAPER 1e6

int engine_elastic(const char *row, const struct elastic_shape *shape, uint64_t gets)
{
	struct elastic_cost cost;
	double scale;
	int rc;

	if (gets == 0)
		return FS_EINVAL;
	rc = elastic_run(shape, gets, &cost);
	if (rc != FS_OK)
		return rc;
	scale = GETS_OF_PAPER / (double)cost.gets;
	report_add(row, "reads", (double)cost.reads * scale);
	report_add(row, "reads_in_vain", (double)cost.in_vain * scale);
	report_add(row, "in_vain_per_miss", 2 * (double)cost.in_vain_absent / (double)cost.gets);
	report_add(row, "in_vain_per_hit", 2 * (double)(cost.in_vain - cost.in_vain_absent) / (double)cost.gets);
	report_add(row, "unit_loads", (double)cost.loads * scale);
	report_add(row, "filter_bits", cost.filter_bits);
	return FS_OK;
}
