/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How figures are kept: arrays in the order of the first addition, searched from their start. A run has
 * some hundred rows of some ten columns.
 *
 *   figures ─┬─ about[]    name, text
 *            ├─ columns[]  name, head, decimals: of all studies; their index names them in cells
 *            ├─ studies[]  title, explanation, notes[], rows[] ── cells[] ── samples[]
 *            └─ targets[]
 *
 * Strings and arrays belong to figures. Threads: one.
 */
#ifndef FS_TOOLS_BENCH_FIGURES_INTERNAL_H
#define FS_TOOLS_BENCH_FIGURES_INTERNAL_H

#include <stddef.h>

#include "tools/bench/figures.h"

struct figures_cell {
	size_t column;
	double *samples; /* in the order of their addition: of the rounds */
	size_t count;
};

struct figures_row {
	char *name;
	struct figures_cell *cells;
	size_t cell_count;
};

struct figures_study {
	char *name, *title, *explanation; /* the latter two "" until figures_study is called */
	struct figures_row *rows;
	size_t row_count;
	char **notes;
	size_t note_count;
};

struct figures_column {
	char *name, *head;
	int decimals; /* -1: three significant digits */
};

struct figures_target {
	char *measure, *unit;
	double value, limit;
	bool has_limit;
	enum figures_bound bound;
};

struct figures_about {
	char *name, *text;
};

struct figures {
	struct figures_about *abouts;
	size_t about_count;
	struct figures_column *columns;
	size_t column_count;
	struct figures_study *studies;
	size_t study_count;
	struct figures_target *targets;
	size_t target_count;
};

/* NULL when there is none. */
struct figures_study *figures_find_study(const struct figures *figures, const char *name);
struct figures_row *figures_find_row(const struct figures_study *study, const char *name);
struct figures_cell *figures_find_cell(const struct figures_row *row, size_t column);
/* The column's index; column_count when there is none. */
size_t figures_find_column(const struct figures *figures, const char *name);

double figures_cell_median(const struct figures_cell *cell);
/* Largest less smallest sample. NaN when fewer than two are numbers: then it isn't known. */
double figures_cell_spread(const struct figures_cell *cell);

/*
 * The layout that a study's table and its comparison share. Rows with a column in common stand in one
 * block under one head; a row that has none in common with those before starts a block of its own.
 * A block that is wider than FIGURES_WIDTH is printed in slices of its columns.
 */
#define FIGURES_WIDTH 110
#define FIGURES_CELL_BYTES 40

struct figures_block {
	size_t *rows; /* indices into study->rows, ascending */
	size_t row_count;
	size_t *columns; /* indices into figures->columns, in the order of the first row that has them */
	size_t column_count;
};

struct figures_block *figures_blocks(const struct figures_study *study, size_t *count);
void figures_blocks_free(struct figures_block *blocks, size_t count);

/* What stands in a cell: the lines of a row, of which the first bears the row's name. Lines beyond the
   first have names of their own. Writes "" where there is nothing. */
struct figures_lines {
	const char *const *names; /* one per line */
	size_t count;
	void (*write)(const void *context, const struct figures_row *row, size_t column, size_t line,
		      char out[FIGURES_CELL_BYTES]);
	const void *context;
};
void figures_print_block(const struct figures *figures, const struct figures_study *study,
			 const struct figures_block *block, const struct figures_lines *lines, FILE *out);

/* A figure as a column shows it: "" for a missing one, "-" for NaN. */
void figures_text(const struct figures_column *column, const struct figures_cell *cell, char out[FIGURES_CELL_BYTES]);
/* The same of a value; decimals -1: three significant digits. */
void figures_number(double value, int decimals, char out[FIGURES_CELL_BYTES]);
/* Text broken at blanks into lines of at most FIGURES_WIDTH bytes, each after so many blanks; newlines stay. */
void figures_print_wrapped(const char *text, int indent, FILE *out);

#endif
