/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker's answers: one JSON object per line on standard output, each flushed at once.
 *
 *   {"add": [row, column, value]}    a sample of the study; null: not measured
 *   {"note": text}                   a line under its table
 *   {"progress": text}               the present step
 *   {"result": {...}}                the result of a load or of raw reads
 *
 * Threads: one. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_BENCH_REPORT_H
#define FS_TOOLS_BENCH_REPORT_H

#include <jansson.h>

#include "base/hist.h"

/* Each function prints one object. value NAN becomes null. */
void report_add(const char *row, const char *column, double value);
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_result(json_t *result); /* takes the reference */

/* Makes {"max": ns, "steps": [[bucket, count], ...]}, for merges and quantiles, with the buckets of base/hist.h. The
   caller owns it. */
json_t *report_hist(const struct hist *hist);

#endif
