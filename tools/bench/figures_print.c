/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as tables of at most FIGURES_WIDTH columns, for people. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/bench/figures_internal.h"

#define GAP 2 /* blanks between columns */
#define HEAD_LINES 2 /* a column's head may be broken in two */

/* ---- numbers and text ------------------------------------------------------------------------ */

/* Three significant digits; from ten thousand on in k, M, G. */
static void three_digits(double value, char out[FIGURES_CELL_BYTES])
{
	static const char *const units[] = { "", "k", "M", "G", "T" };
	double shown = value;
	int unit = 0, decimals;

	if (fabs(value) >= 9999.5)
		for (; unit < 4 && fabs(shown) >= 999.5; unit++)
			shown /= 1000;
	decimals = fabs(shown) < 9.995 ? 2 : fabs(shown) < 99.95 ? 1 : 0;
	for (double edge = 0.9995; decimals >= 2 && decimals < 6 && fabs(shown) < edge; edge /= 10)
		decimals++;
	if (shown == floor(shown) && unit == 0)
		decimals = 0;
	snprintf(out, FIGURES_CELL_BYTES, "%.*f%s", decimals, shown, units[unit]);
}

void figures_number(double value, int decimals, char out[FIGURES_CELL_BYTES])
{
	if (isnan(value))
		snprintf(out, FIGURES_CELL_BYTES, "-");
	else if (decimals < 0)
		three_digits(value, out);
	else
		snprintf(out, FIGURES_CELL_BYTES, "%.*f", decimals, value);
}

void figures_text(const struct figures_column *column, const struct figures_cell *cell, char out[FIGURES_CELL_BYTES])
{
	*out = 0;
	if (cell)
		figures_number(figures_cell_median(cell), column->decimals, out);
}

void figures_print_wrapped(const char *text, int indent, FILE *out)
{
	int room = FIGURES_WIDTH - indent;

	while (*text) {
		int length = (int)strcspn(text, "\n"), cut = length, shown;

		if (length > room) {
			for (cut = room; cut > 0 && text[cut] != ' ';)
				cut--;
			if (cut == 0)
				cut = (int)strcspn(text, " \n");
		}
		for (shown = cut; shown > 0 && text[shown - 1] == ' ';)
			shown--;
		fprintf(out, "%*s%.*s\n", shown ? indent : 0, "", shown, text);
		text += cut;
		if (*text)
			text++;
	}
}

/* ---- the layout ------------------------------------------------------------------------------ */

static bool block_has(const struct figures_block *block, size_t column)
{
	for (size_t i = 0; i < block->column_count; i++)
		if (block->columns[i] == column)
			return true;
	return false;
}

static bool block_shares(const struct figures_block *block, const struct figures_row *row)
{
	for (size_t c = 0; c < row->cell_count; c++)
		if (block_has(block, row->cells[c].column))
			return true;
	return false;
}

struct figures_block *figures_blocks(const struct figures_study *study, size_t *count)
{
	struct figures_block *blocks = mem_must_zalloc((study->row_count + 1) * sizeof(*blocks));
	size_t widest = 0;

	for (size_t r = 0; r < study->row_count; r++)
		widest += study->rows[r].cell_count;
	*count = 0;
	for (size_t r = 0; r < study->row_count; r++) {
		const struct figures_row *row = &study->rows[r];
		struct figures_block *block = blocks;

		while (block < blocks + *count && !block_shares(block, row))
			block++;
		if (block == blocks + *count) {
			(*count)++;
			block->rows = mem_must_zalloc(study->row_count * sizeof(*block->rows));
			block->columns = mem_must_zalloc((widest + 1) * sizeof(*block->columns));
		}
		block->rows[block->row_count++] = r;
		for (size_t c = 0; c < row->cell_count; c++)
			if (!block_has(block, row->cells[c].column))
				block->columns[block->column_count++] = row->cells[c].column;
	}
	return blocks;
}

void figures_blocks_free(struct figures_block *blocks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		mem_free(blocks[i].rows);
		mem_free(blocks[i].columns);
	}
	mem_free(blocks);
}

/* ---- a block --------------------------------------------------------------------------------- */

/* A head in one or two lines, broken at the blank that makes it narrowest. Returns its width. */
static int break_head(const char *head, const char *line[HEAD_LINES], int length[HEAD_LINES])
{
	int whole = (int)strlen(head), best = whole;

	line[0] = "";
	length[0] = 0;
	line[1] = head;
	length[1] = whole;
	for (int i = 1; i < whole - 1; i++) {
		int width = i > whole - i - 1 ? i : whole - i - 1;

		if (head[i] != ' ' || width >= best)
			continue;
		best = width;
		line[0] = head;
		length[0] = i;
		line[1] = head + i + 1;
		length[1] = whole - i - 1;
	}
	return best;
}

static int column_width(const struct figures *figures, const struct figures_study *study,
			const struct figures_block *block, const struct figures_lines *lines, size_t column)
{
	const char *line[HEAD_LINES];
	char text[FIGURES_CELL_BYTES];
	int length[HEAD_LINES], width = break_head(figures->columns[column].head, line, length);

	for (size_t r = 0; r < block->row_count; r++)
		for (size_t l = 0; l < lines->count; l++) {
			lines->write(lines->context, &study->rows[block->rows[r]], column, l, text);
			if ((int)strlen(text) > width)
				width = (int)strlen(text);
		}
	return width;
}

static int label_width(const struct figures_study *study, const struct figures_block *block)
{
	int width = 0;

	for (size_t r = 0; r < block->row_count; r++) {
		int length = (int)strlen(study->rows[block->rows[r]].name);

		if (length > width)
			width = length;
	}
	return width;
}

/* The columns first .. end - 1 of a block. */
struct slice {
	size_t first, end;
	const int *widths; /* of all columns of the block */
	int label_width, line_width; /* of the rows' names and, 0 for none, of the lines' */
};

static void print_heads(const struct figures *figures, const struct figures_block *block, const struct slice *slice,
			FILE *out)
{
	for (int l = 0; l < HEAD_LINES; l++) {
		int blanks = slice->label_width + (slice->line_width ? GAP + slice->line_width : 0);
		bool any = false;

		for (size_t c = slice->first; c < slice->end; c++) {
			const char *line[HEAD_LINES];
			int length[HEAD_LINES];

			break_head(figures->columns[block->columns[c]].head, line, length);
			blanks += GAP + slice->widths[c];
			if (!length[l])
				continue;
			fprintf(out, "%*s%.*s", blanks - length[l], "", length[l], line[l]);
			blanks = 0;
			any = true;
		}
		if (any)
			fputc('\n', out);
	}
}

/* Rows that have nothing in this slice are left out. */
static bool row_in_slice(const struct figures_row *row, const struct figures_block *block, const struct slice *slice)
{
	for (size_t c = slice->first; c < slice->end; c++)
		if (figures_find_cell(row, block->columns[c]))
			return true;
	return false;
}

static void print_row(const struct figures_row *row, const struct figures_block *block, const struct slice *slice,
		      const struct figures_lines *lines, FILE *out)
{
	char text[FIGURES_CELL_BYTES];

	for (size_t l = 0; l < lines->count; l++) {
		int blanks = 0; /* not yet printed: no line ends in blanks */

		fprintf(out, "%-*s", slice->label_width, l == 0 ? row->name : "");
		if (slice->line_width)
			fprintf(out, "%*s%-*s", GAP, "", slice->line_width, lines->names[l]);
		for (size_t c = slice->first; c < slice->end; c++) {
			lines->write(lines->context, row, block->columns[c], l, text);
			blanks += GAP + slice->widths[c];
			if (!*text)
				continue;
			fprintf(out, "%*s", blanks, text);
			blanks = 0;
		}
		fputc('\n', out);
	}
}

void figures_print_block(const struct figures *figures, const struct figures_study *study,
			 const struct figures_block *block, const struct figures_lines *lines, FILE *out)
{
	int *widths = mem_must_zalloc((block->column_count + 1) * sizeof(*widths));
	struct slice slice = { .widths = widths, .label_width = label_width(study, block) };

	for (size_t l = 0; l < lines->count; l++)
		if ((int)strlen(lines->names[l]) > slice.line_width)
			slice.line_width = (int)strlen(lines->names[l]);
	for (size_t c = 0; c < block->column_count; c++)
		widths[c] = column_width(figures, study, block, lines, block->columns[c]);
	for (slice.first = 0; slice.first < block->column_count; slice.first = slice.end) {
		int width = slice.label_width + GAP + slice.line_width;

		for (slice.end = slice.first; slice.end < block->column_count; slice.end++) {
			width += GAP + widths[slice.end];
			if (width > FIGURES_WIDTH && slice.end > slice.first)
				break;
		}
		fputc('\n', out);
		print_heads(figures, block, &slice, out);
		for (size_t r = 0; r < block->row_count; r++)
			if (row_in_slice(&study->rows[block->rows[r]], block, &slice))
				print_row(&study->rows[block->rows[r]], block, &slice, lines, out);
	}
	mem_free(widths);
}

/* ---- what is printed ------------------------------------------------------------------------- */

void figures_print_about(const struct figures *figures, FILE *out)
{
	int width = 0;

	for (size_t i = 0; i < figures->about_count; i++)
		if ((int)strlen(figures->abouts[i].name) > width)
			width = (int)strlen(figures->abouts[i].name);
	for (size_t i = 0; i < figures->about_count; i++)
		fprintf(out, "%-*s  %s\n", width, figures->abouts[i].name, figures->abouts[i].text);
}

static void write_median(const void *context, const struct figures_row *row, size_t column, size_t line,
			 char out[FIGURES_CELL_BYTES])
{
	const struct figures *figures = context;

	(void)line;
	figures_text(&figures->columns[column], figures_find_cell(row, column), out);
}

void figures_print_study(const struct figures *figures, const char *name, FILE *out)
{
	static const char *const names[] = { "" };
	const struct figures_lines lines = { .names = names, .count = 1, .write = write_median, .context = figures };
	const struct figures_study *study = figures_find_study(figures, name);
	struct figures_block *blocks;
	size_t count;

	if (!study)
		return;
	fprintf(out, "\n== %s%s%s ==\n", study->name, *study->title ? ": " : "", study->title);
	blocks = figures_blocks(study, &count);
	for (size_t i = 0; i < count; i++)
		figures_print_block(figures, study, &blocks[i], &lines, out);
	figures_blocks_free(blocks, count);
	if (*study->explanation || study->note_count)
		fputc('\n', out);
	figures_print_wrapped(study->explanation, 0, out);
	for (size_t i = 0; i < study->note_count; i++)
		figures_print_wrapped(study->notes[i], 0, out);
	fflush(out);
}

/* ---- targets --------------------------------------------------------------------------------- */

static void print_verdict(const struct figures_target *target, FILE *out)
{
	bool reached =
		target->bound == FIGURES_AT_MOST ? target->value <= target->limit : target->value >= target->limit;
	double beyond = fabs(target->value / target->limit - 1);

	if (!target->has_limit)
		fputs("", out);
	else if (isnan(target->value))
		fputs("  not measured", out);
	else if (reached)
		fputs("  reached", out);
	else if (target->limit == 0)
		fputs("  missed", out);
	else
		fprintf(out, "  missed by %.*f %%", beyond < 0.0995 ? 1 : 0, 100 * beyond);
	fputc('\n', out);
}

void figures_print_targets(const struct figures *figures, FILE *out)
{
	char text[FIGURES_CELL_BYTES], with_unit[FIGURES_CELL_BYTES + 64];
	int width = (int)strlen("measure");

	if (!figures->target_count)
		return;
	for (size_t i = 0; i < figures->target_count; i++)
		if ((int)strlen(figures->targets[i].measure) > width)
			width = (int)strlen(figures->targets[i].measure);
	fprintf(out, "\n== targets ==\n\n%-*s  %14s  %16s\n", width, "measure", "measured", "target");
	for (size_t i = 0; i < figures->target_count; i++) {
		const struct figures_target *target = &figures->targets[i];
		const char *blank = *target->unit ? " " : "";

		figures_number(target->value, -1, text);
		snprintf(with_unit, sizeof(with_unit), "%s%s%s", text, blank, target->unit);
		fprintf(out, "%-*s  %14s", width, target->measure, with_unit);
		figures_number(target->limit, -1, text);
		snprintf(with_unit, sizeof(with_unit), "%s %s%s%s",
			 target->bound == FIGURES_AT_MOST ? "<=" : ">=", text, blank, target->unit);
		if (target->has_limit)
			fprintf(out, "  %16s", with_unit);
		print_verdict(target, out);
	}
	fflush(out);
}
