/* SPDX-License-Identifier: BSD-3-Clause */
/* This run's medians beside an earlier one's. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/bench/figures_internal.h"

enum { LINE_BEFORE, LINE_NOW, LINE_CHANGE, LINES };
static const char *const line_names[LINES] = { "before", "now", "change" };

struct comparison {
	const struct figures *now, *before;
	const struct figures_study *study_before;
};

static const struct figures_cell *cell_before(const struct comparison *comparison, const char *row_name, size_t column)
{
	const struct figures_row *row = figures_find_row(comparison->study_before, row_name);
	const char *name = comparison->now->columns[column].name;

	return row ? figures_find_cell(row, figures_find_column(comparison->before, name)) : NULL;
}

/* More than either run's samples differ among themselves: not known of a run with a single sample. */
static bool beyond_spread(const struct figures_cell *now, const struct figures_cell *before)
{
	double change = fabs(figures_cell_median(now) - figures_cell_median(before));

	return change > figures_cell_spread(now) && change > figures_cell_spread(before);
}

static void write_change(const struct figures_cell *now, const struct figures_cell *before,
			 char out[FIGURES_CELL_BYTES])
{
	double base = figures_cell_median(before);
	double change = 100 * (figures_cell_median(now) - base) / fabs(base);

	if (!isfinite(change))
		snprintf(out, FIGURES_CELL_BYTES, "-");
	else if (fabs(change) < 0.05)
		snprintf(out, FIGURES_CELL_BYTES, "0.0%%");
	else
		snprintf(out, FIGURES_CELL_BYTES, "%s%+.*f%%", beyond_spread(now, before) ? "*" : "",
			 fabs(change) < 99.95 ? 1 : 0, change);
}

static void write_line(const void *context, const struct figures_row *row, size_t column, size_t line,
		       char out[FIGURES_CELL_BYTES])
{
	const struct comparison *comparison = context;
	const struct figures_cell *now = figures_find_cell(row, column);
	const struct figures_cell *before = cell_before(comparison, row->name, column);

	*out = 0;
	if (!now || !before)
		return;
	if (line == LINE_CHANGE)
		write_change(now, before, out);
	else
		figures_text(&comparison->now->columns[column], line == LINE_NOW ? now : before, out);
}

/* Takes rows and columns out of the block that the two runs don't have both. */
static void keep_common(const struct comparison *comparison, const struct figures_study *study,
			struct figures_block *block)
{
	bool *kept = mem_must_zalloc((block->column_count + 1) * sizeof(*kept));
	size_t rows = 0, columns = 0;

	for (size_t r = 0; r < block->row_count; r++) {
		const struct figures_row *row = &study->rows[block->rows[r]];
		bool any = false;

		for (size_t c = 0; c < block->column_count; c++)
			if (figures_find_cell(row, block->columns[c]) &&
			    cell_before(comparison, row->name, block->columns[c]))
				kept[c] = any = true;
		if (any)
			block->rows[rows++] = block->rows[r];
	}
	for (size_t c = 0; c < block->column_count; c++)
		if (kept[c])
			block->columns[columns++] = block->columns[c];
	block->row_count = rows;
	block->column_count = columns;
	mem_free(kept);
}

/* Of the figures that both runs have, how many, and how many changed beyond their spread. */
static void count_changes(const struct comparison *comparison, const struct figures_study *study, size_t *compared,
			  size_t *marked)
{
	for (size_t r = 0; r < study->row_count; r++)
		for (size_t c = 0; c < study->rows[r].cell_count; c++) {
			const struct figures_cell *now = &study->rows[r].cells[c];
			const struct figures_cell *before = cell_before(comparison, study->rows[r].name, now->column);

			if (!before)
				continue;
			(*compared)++;
			*marked += beyond_spread(now, before);
		}
}

static void compare_study(const struct comparison *comparison, const struct figures_study *study, FILE *out)
{
	const struct figures_lines lines = {
		.names = line_names, .count = LINES, .write = write_line, .context = comparison
	};
	size_t count, compared = 0, marked = 0;
	struct figures_block *blocks;

	count_changes(comparison, study, &compared, &marked);
	if (!compared)
		return;
	fprintf(out, "\n== %s: %zu of %zu figures changed by more than the samples differ ==\n", study->name, marked,
		compared);
	blocks = figures_blocks(study, &count);
	for (size_t i = 0; i < count; i++) {
		keep_common(comparison, study, &blocks[i]);
		if (blocks[i].row_count)
			figures_print_block(comparison->now, study, &blocks[i], &lines, out);
	}
	figures_blocks_free(blocks, count);
}

static void compare_abouts(const struct figures *now, const struct figures *before, FILE *out)
{
	for (size_t i = 0; i < now->about_count; i++)
		for (size_t j = 0; j < before->about_count; j++)
			if (strcmp(now->abouts[i].name, before->abouts[j].name) == 0 &&
			    strcmp(now->abouts[i].text, before->abouts[j].text) != 0)
				fprintf(out, "%s: %s\n  before: %s\n", now->abouts[i].name, now->abouts[i].text,
					before->abouts[j].text);
}

void figures_print_comparison(const struct figures *figures, const struct figures *base, FILE *out)
{
	fputs("\n== compared with an earlier run ==\n\n", out);
	compare_abouts(figures, base, out);
	fprintf(out, "\nMedians; * marks changes larger than the spread (largest less smallest sample) of "
		     "both runs;"
		     "\nwhere a run has one sample its spread isn't known, and nothing is marked.\n");
	for (size_t i = 0; i < figures->study_count; i++) {
		struct comparison comparison = { .now = figures, .before = base };

		comparison.study_before = figures_find_study(base, figures->studies[i].name);
		if (comparison.study_before)
			compare_study(&comparison, &figures->studies[i], out);
	}
	fflush(out);
}
