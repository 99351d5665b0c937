/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the parts of manual pages and guides that follow from the tables, for tools/check/reference.py:
 * print-reference PART. Parts are named in the table below.
 */
#include <stdbool.h>
#include <string.h>

#include "base/metrics/counters.h"
#include "base/metrics/latency.h"
#include "base/metrics/metrics.h"
#include "base/metrics/rows.h"
#include "conf/conf.h"

static const struct {
	const char *name;
	enum conf_reference part;
} conf_parts[] = {
	{ "options", CONF_REFERENCE_MD_OPTIONS },
	{ "suboptions", CONF_REFERENCE_MD_SUBOPTIONS },
	{ "extstore", CONF_REFERENCE_MD_EXTSTORE },
	{ "memcached", CONF_REFERENCE_MD_MEMCACHED },
	{ "man-options", CONF_REFERENCE_MAN_OPTIONS },
	{ "man-file", CONF_REFERENCE_MAN_FILE },
	{ "man-suboptions", CONF_REFERENCE_MAN_SUBOPTIONS },
};

static void print_counters(FILE *out, enum ctr_group group)
{
	fprintf(out, "| in `stats` | in `/metrics` | unit | what |\n|---|---|---|---|\n");
	for (int i = 0; i < CTR_COUNT; i++) {
		const struct ctr_info *info = ctr_info((enum ctr)i);

		if (info->group == group)
			fprintf(out, "| `%s` | `%s` | %s | %s |\n", info->name, metric_counter_name((enum ctr)i),
				info->unit, info->text);
	}
}

static void print_metrics(FILE *out)
{
	static const char *const types[] = {
		[METRIC_TYPE_GAUGE] = "gauge", [METRIC_TYPE_COUNTER] = "counter", [METRIC_TYPE_HISTOGRAM] = "histogram"
	};

	fprintf(out, "| metric | type | labels | what |\n|---|---|---|---|\n");
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *info = metric_info((enum metric)i);

		fprintf(out, "| `%s` | %s | %s | %s |\n", info->name, types[info->type], info->labels, info->text);
	}
}

static void print_latencies(FILE *out)
{
	fprintf(out, "| in `stats latency` | in `/metrics` | what |\n|---|---|---|\n");
	for (int i = 0; i < LAT_COUNT; i++) {
		const struct lat_info *info = lat_info((enum lat)i);
		const struct metric_info *metric = metric_info(info->metric);

		fprintf(out, "| `%s` | `%s{%s=\"%s\"}` | %s |\n", info->name, metric->name, metric->labels, info->label,
			info->text);
	}
}

/* before: what stands before the name in the report. */
static void print_rows(FILE *out, enum row_report report, const char *before)
{
	fprintf(out, "| row | unit | what |\n|---|---|---|\n");
	for (int i = 0; i < ROW_COUNT; i++) {
		const struct row_info *info = row_info((enum row)i);
		bool alone = i == ROW_APPS_apps || i == ROW_LIMITS_applications || i == ROW_LIMITS_counted;

		if (info->report == report)
			fprintf(out, "| `%s%s` | %s | %s |\n", alone ? "" : before, info->name, info->unit, info->text);
	}
}

static bool print_rows_part(FILE *out, const char *name)
{
	static const struct {
		const char *name;
		enum row_report report;
		const char *before;
	} parts[] = {
		{ "rows-flash", ROW_REPORT_FLASH, "" },
		{ "rows-classifier", ROW_REPORT_CLASSIFIER, "" },
		{ "rows-segments", ROW_REPORT_SEGMENTS, "" },
		{ "rows-memory", ROW_REPORT_MEMORY, "" },
		{ "rows-latency", ROW_REPORT_LATENCY, "KIND_" },
		{ "rows-apps", ROW_REPORT_APPS, "APPLICATION:" },
		{ "rows-limits", ROW_REPORT_LIMITS, "APPLICATION:" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(name, parts[i].name) == 0) {
			print_rows(out, parts[i].report, parts[i].before);
			return true;
		}
	}
	return false;
}

static bool print_part(FILE *out, const char *name)
{
	if (print_rows_part(out, name))
		return true;
	for (size_t i = 0; i < sizeof(conf_parts) / sizeof(conf_parts[0]); i++) {
		if (strcmp(name, conf_parts[i].name) == 0) {
			conf_print_reference(out, conf_parts[i].part);
			return true;
		}
	}
	if (strcmp(name, "counters-general") == 0)
		print_counters(out, CTR_GROUP_GENERAL);
	else if (strcmp(name, "counters-flash") == 0)
		print_counters(out, CTR_GROUP_FLASH);
	else if (strcmp(name, "counters-classifier") == 0)
		print_counters(out, CTR_GROUP_CLASSIFIER);
	else if (strcmp(name, "metrics") == 0)
		print_metrics(out);
	else if (strcmp(name, "latencies") == 0)
		print_latencies(out);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	if (argc == 2 && print_part(stdout, argv[1]))
		return fflush(stdout) == 0 ? 0 : 1;
	fprintf(stderr, "print-reference: which part?\n");
	return 1;
}
