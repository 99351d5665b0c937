/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metrics/rows.h"

#include "base/assert.h"

static const struct row_info infos[ROW_COUNT] = {
#define ROW(report, name, unit, text) { ROW_REPORT_##report, #name, unit, text },
#include "base/metrics/rows.def"
#undef ROW
};

const struct row_info *row_info(enum row row)
{
	must(row < ROW_COUNT);
	return &infos[row];
}
