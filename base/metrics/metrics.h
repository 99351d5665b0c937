/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metrics of /metrics that are no counters of counters.def. metrics.def declares them once, with name, type, labels
 * and help. This header also has the names of the counters in /metrics.
 *
 * Threads: any. The data is constant; the first call of metric_counter_name makes the counters' names.
 */
#ifndef FS_BASE_METRICS_METRICS_H
#define FS_BASE_METRICS_METRICS_H

#include <stddef.h>

#include "base/metrics/counters.h"

enum metric_type { METRIC_TYPE_GAUGE, METRIC_TYPE_COUNTER, METRIC_TYPE_HISTOGRAM };

enum metric {
#define METRIC(name, type, labels, text) METRIC_##name,
#include "base/metrics/metrics.def"
#undef METRIC
	METRIC_COUNT
};

/* A row of metrics.def. */
struct metric_info {
	const char *name; /* with "flashield_" */
	enum metric_type type;
	const char *labels; /* names separated by commas, "" for none */
	const char *text; /* the help; starts with a small letter, has no full stop */
};

/* Returns the row of a metric. Static storage. */
const struct metric_info *metric_info(enum metric metric);

/* Returns a counter's name in /metrics: "flashield_get_hits_total" for get_hits. Static storage. */
const char *metric_counter_name(enum ctr counter);

#endif
