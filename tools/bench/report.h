/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the worker answers: one JSON object per line on standard output, each flushed at once.
 *
 *   {"add": [row, column, value]}    a sample of the study; null: not measured
 *   {"note": text}                   a line under its table
 *   {"progress": text}               what is going on
 *   {"result": {...}}                what a load or raw reads came to
 *
 * Threads: one. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_BENCH_REPORT_H
#define FS_TOOLS_BENCH_REPORT_H

#include <jansson.h>

#include "base/hist.h"

void report_add(const char *row, const char *column, double value);
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_result(json_t *result); /* takes the reference */

/* {"max": ns, "steps": [[bucket, count], ...]}, buckets as in base/hist.h: what merges and quantiles need. */
json_t *report_hist(const struct hist *hist);

#endif
