/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/bench/figures_internal.h"

/* The array with room for one element more, zeroed, at its end. Grows whenever count is a power of two. */
static void *grown(void *array, size_t count, size_t bytes)
{
	if ((count & (count - 1)) == 0) {
		array = mem_realloc(array, (count ? count * 2 : 1) * bytes);
		must(array);
	}
	memset((char *)array + count * bytes, 0, bytes);
	return array;
}

static char *copy(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *out = mem_must_zalloc(bytes);

	memcpy(out, text, bytes);
	return out;
}

static void replace(char **text, const char *by)
{
	char *old = *text;

	*text = copy(by);
	mem_free(old);
}

struct figures *figures_create(void)
{
	return mem_must_zalloc(sizeof(struct figures));
}

static void free_study(struct figures_study *study)
{
	for (size_t r = 0; r < study->row_count; r++) {
		struct figures_row *row = &study->rows[r];

		for (size_t c = 0; c < row->cell_count; c++)
			mem_free(row->cells[c].samples);
		mem_free(row->cells);
		mem_free(row->name);
	}
	for (size_t n = 0; n < study->note_count; n++)
		mem_free(study->notes[n]);
	mem_free(study->rows);
	mem_free(study->notes);
	mem_free(study->name);
	mem_free(study->title);
	mem_free(study->explanation);
}

void figures_destroy(struct figures *figures)
{
	if (!figures)
		return;
	for (size_t i = 0; i < figures->about_count; i++) {
		mem_free(figures->abouts[i].name);
		mem_free(figures->abouts[i].text);
	}
	for (size_t i = 0; i < figures->column_count; i++) {
		mem_free(figures->columns[i].name);
		mem_free(figures->columns[i].head);
	}
	for (size_t i = 0; i < figures->study_count; i++)
		free_study(&figures->studies[i]);
	for (size_t i = 0; i < figures->target_count; i++) {
		mem_free(figures->targets[i].measure);
		mem_free(figures->targets[i].unit);
	}
	mem_free(figures->abouts);
	mem_free(figures->columns);
	mem_free(figures->studies);
	mem_free(figures->targets);
	mem_free(figures);
}

struct figures_study *figures_find_study(const struct figures *figures, const char *name)
{
	for (size_t i = 0; i < figures->study_count; i++)
		if (strcmp(figures->studies[i].name, name) == 0)
			return &figures->studies[i];
	return NULL;
}

struct figures_row *figures_find_row(const struct figures_study *study, const char *name)
{
	for (size_t i = 0; i < study->row_count; i++)
		if (strcmp(study->rows[i].name, name) == 0)
			return &study->rows[i];
	return NULL;
}

struct figures_cell *figures_find_cell(const struct figures_row *row, size_t column)
{
	for (size_t i = 0; i < row->cell_count; i++)
		if (row->cells[i].column == column)
			return &row->cells[i];
	return NULL;
}

size_t figures_find_column(const struct figures *figures, const char *name)
{
	size_t i = 0;

	while (i < figures->column_count && strcmp(figures->columns[i].name, name) != 0)
		i++;
	return i;
}

static struct figures_study *the_study(struct figures *figures, const char *name)
{
	struct figures_study *study = figures_find_study(figures, name);

	if (!study) {
		figures->studies = grown(figures->studies, figures->study_count, sizeof(*study));
		study = &figures->studies[figures->study_count++];
		study->name = copy(name);
		study->title = copy("");
		study->explanation = copy("");
	}
	return study;
}

static size_t the_column(struct figures *figures, const char *name)
{
	size_t index = figures_find_column(figures, name);
	struct figures_column *column;

	if (index == figures->column_count) {
		figures->columns = grown(figures->columns, figures->column_count, sizeof(*column));
		column = &figures->columns[figures->column_count++];
		*column = (struct figures_column){ .name = copy(name), .head = copy(name), .decimals = -1 };
	}
	return index;
}

void figures_study(struct figures *figures, const char *name, const char *title, const char *explanation)
{
	struct figures_study *study = the_study(figures, name);

	replace(&study->title, title);
	replace(&study->explanation, explanation);
}

void figures_add(struct figures *figures, const char *study_name, const char *row_name, const char *column_name,
		 double value)
{
	struct figures_study *study = the_study(figures, study_name);
	struct figures_row *row = figures_find_row(study, row_name);
	size_t column = the_column(figures, column_name);
	struct figures_cell *cell;

	if (!row) {
		study->rows = grown(study->rows, study->row_count, sizeof(*row));
		row = &study->rows[study->row_count++];
		row->name = copy(row_name);
	}
	cell = figures_find_cell(row, column);
	if (!cell) {
		row->cells = grown(row->cells, row->cell_count, sizeof(*cell));
		cell = &row->cells[row->cell_count++];
		cell->column = column;
	}
	cell->samples = grown(cell->samples, cell->count, sizeof(value));
	cell->samples[cell->count++] = value;
}

void figures_column(struct figures *figures, const char *name, const char *head, int decimals)
{
	size_t index = the_column(figures, name); /* may move the columns */
	struct figures_column *column = &figures->columns[index];

	replace(&column->head, head);
	column->decimals = decimals;
}

void figures_note(struct figures *figures, const char *study_name, const char *format, ...)
{
	struct figures_study *study = the_study(figures, study_name);
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < study->note_count; i++)
		if (strcmp(study->notes[i], text) == 0)
			return;
	study->notes = grown(study->notes, study->note_count, sizeof(*study->notes));
	study->notes[study->note_count++] = copy(text);
}

static struct figures_target *add_target(struct figures *figures, const char *measure, double value, const char *unit)
{
	struct figures_target *target;

	figures->targets = grown(figures->targets, figures->target_count, sizeof(*target));
	target = &figures->targets[figures->target_count++];
	*target = (struct figures_target){ .measure = copy(measure), .unit = copy(unit), .value = value };
	return target;
}

void figures_target(struct figures *figures, const char *measure, double value, enum figures_bound bound, double limit,
		    const char *unit)
{
	struct figures_target *target = add_target(figures, measure, value, unit);

	target->has_limit = true;
	target->bound = bound;
	target->limit = limit;
}

void figures_beside(struct figures *figures, const char *measure, double value, const char *unit)
{
	add_target(figures, measure, value, unit);
}

void figures_about(struct figures *figures, const char *name, const char *format, ...)
{
	struct figures_about *about = NULL;
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < figures->about_count && !about; i++)
		if (strcmp(figures->abouts[i].name, name) == 0)
			about = &figures->abouts[i];
	if (!about) {
		figures->abouts = grown(figures->abouts, figures->about_count, sizeof(*about));
		about = &figures->abouts[figures->about_count++];
		about->name = copy(name);
		about->text = copy("");
	}
	replace(&about->text, text);
}

/* ---- medians --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of those that are numbers. Sorts in place. */
static double median(double *values, size_t count)
{
	size_t numbers = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			values[numbers++] = values[i];
	if (numbers == 0)
		return NAN;
	qsort(values, numbers, sizeof(*values), by_value);
	return numbers % 2 ? values[numbers / 2] : (values[numbers / 2 - 1] + values[numbers / 2]) / 2;
}

double figures_cell_median(const struct figures_cell *cell)
{
	double *values = mem_must_zalloc(cell->count * sizeof(*values) + 1);
	double result;

	memcpy(values, cell->samples, cell->count * sizeof(*values));
	result = median(values, cell->count);
	mem_free(values);
	return result;
}

double figures_cell_spread(const struct figures_cell *cell)
{
	double low = INFINITY, high = -INFINITY;
	size_t numbers = 0;

	for (size_t i = 0; i < cell->count; i++) {
		if (isnan(cell->samples[i]))
			continue;
		numbers++;
		low = fmin(low, cell->samples[i]);
		high = fmax(high, cell->samples[i]);
	}
	return numbers < 2 ? NAN : high - low;
}

static const struct figures_cell *the_cell(const struct figures *figures, const char *study_name, const char *row_name,
					   const char *column)
{
	const struct figures_study *study = figures_find_study(figures, study_name);
	const struct figures_row *row = study ? figures_find_row(study, row_name) : NULL;

	return row ? figures_find_cell(row, figures_find_column(figures, column)) : NULL;
}

double figures_median(const struct figures *figures, const char *study, const char *row, const char *column)
{
	const struct figures_cell *cell = the_cell(figures, study, row, column);

	return cell ? figures_cell_median(cell) : NAN;
}

double figures_ratio(const struct figures *figures, const char *study, const char *row, const char *other_row,
		     const char *column)
{
	const struct figures_cell *of = the_cell(figures, study, row, column);
	const struct figures_cell *to = the_cell(figures, study, other_row, column);
	size_t count = !of || !to ? 0 : of->count < to->count ? of->count : to->count;
	double *ratios = mem_must_zalloc(count * sizeof(*ratios) + 1);
	double result;

	for (size_t i = 0; i < count; i++)
		ratios[i] = to->samples[i] != 0 ? of->samples[i] / to->samples[i] : NAN;
	result = median(ratios, count);
	mem_free(ratios);
	return result;
}
