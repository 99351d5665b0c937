/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of our own reports that show a state instead of a count. rows.def declares them once: the reports take their names
 * from here, and the guide their texts.
 *
 * Threads: any. The data is constant.
 */
#ifndef FS_BASE_METRICS_ROWS_H
#define FS_BASE_METRICS_ROWS_H

enum row_report {
	ROW_REPORT_FLASH,
	ROW_REPORT_CLASSIFIER,
	ROW_REPORT_SEGMENTS,
	ROW_REPORT_MEMORY,
	ROW_REPORT_LATENCY,
	ROW_REPORT_APPS,
	ROW_REPORT_LIMITS
};

/* ROW_FLASH_dram_items, ... */
enum row {
#define ROW(report, name, unit, text) ROW_##report##_##name,
#include "base/metrics/rows.def"
#undef ROW
	ROW_COUNT
};

/* A row of rows.def. */
struct row_info {
	enum row_report report;
	const char *name; /* in the report, as far as it is constant (rows.def) */
	const char *unit; /* "" for none; "text" for words */
	const char *text; /* Markdown; starts with a small letter, has no full stop */
};

/* Returns the row. Static storage. */
const struct row_info *row_info(enum row row);

#endif
