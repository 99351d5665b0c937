/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures: what studies measured, as samples under (study, row, column).
 *
 *   study "ops"          columns:  cpu_us    ops_s    p50_us ...
 *     row "get 257 B flashield"      1.93     201k      44       <- median of the samples added
 *
 * The same three names added again are a further sample (another round). A column's name carries
 * its unit and is the same in the JSON, in the table's head and in comparisons with an earlier run.
 *
 * Threads: one. Ownership: texts are copied. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_BENCH_FIGURES_H
#define FS_TOOLS_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct figures;

struct figures *figures_create(void);
void figures_destroy(struct figures *figures);

/* A title and an explanation that is printed under the table (units, sizes, options used).
   Call it before the study's first figure; later calls replace. */
void figures_study(struct figures *figures, const char *study, const char *title, const char *explanation);

/* A sample. NaN is allowed and means "not measured here". */
void figures_add(struct figures *figures, const char *study, const char *row, const char *column, double value);

/* A column's printed head, e.g. "cpu_us" as "us CPU/op"; decimals: digits after the point, or -1 for
   three significant ones. Columns without one are headed by their names. */
void figures_column(struct figures *figures, const char *column, const char *head, int decimals);

/* A plain line under the study's table. The same text is kept once. */
void figures_note(struct figures *figures, const char *study, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Median of the samples; NaN when there is none. */
double figures_median(const struct figures *figures, const char *study, const char *row, const char *column);
/* Median of ratios of the samples pairwise in order of addition (round by round). NaN without any. */
double figures_ratio(const struct figures *figures, const char *study, const char *row, const char *other_row,
		     const char *column);

/* A promise and what was measured: printed as one table at the end, "reached" or "missed by ...". */
enum figures_bound { FIGURES_AT_MOST, FIGURES_AT_LEAST };
void figures_target(struct figures *figures, const char *measure, double value, enum figures_bound bound, double limit,
		    const char *unit);
/* A measured value without a limit, for the same table (the paper's or extstore's figure beside ours). */
void figures_beside(struct figures *figures, const char *measure, double value, const char *unit);

/* A fact about the run (machine, kernel, versions, time, options): kept and printed first. */
void figures_about(struct figures *figures, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Everything, in the order of the first addition. */
void figures_print_about(const struct figures *figures, FILE *out);
void figures_print_study(const struct figures *figures, const char *study, FILE *out);
void figures_print_targets(const struct figures *figures, FILE *out);
/* Against an earlier run: per study the medians of both and the change in %, only rows and columns that
   both have; changes larger than the spread of both runs' samples are marked. */
void figures_print_comparison(const struct figures *figures, const struct figures *base, FILE *out);

/* 0, or -1 with errno set. Reads back what it wrote: all samples. path "-": standard output. */
int figures_write_json(const struct figures *figures, const char *path);
/* NULL, and a message for the user in error, when the file is none of ours. */
struct figures *figures_read_json(const char *path, char error[256]);

#endif
