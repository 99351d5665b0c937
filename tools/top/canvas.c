/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/canvas.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define EIGHTHS 8
#define HEAVY_LINE 0x2501
#define HALF_HEAVY_LINE 0x2578

/* Glyphs of each kind, for UTF-8 terminals and for others. */
static const uint32_t growing_up[EIGHTHS] = { 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588 };
static const char growing_ascii[EIGHTHS + 1] = "_.:-=+*#";
static const uint32_t part_glyphs[BAR_PARTS] = { 0x2588, 0x2593, 0x2592, 0x2591 };
static const char part_ascii[BAR_PARTS + 1] = "#+o.";

void canvas_init(struct canvas *canvas, bool utf8)
{
	*canvas = (struct canvas){ .utf8 = utf8 };
}

void canvas_fini(struct canvas *canvas)
{
	mem_free(canvas->cells);
}

static int within(int value, int low, int high)
{
	return value < low ? low : value > high ? high : value;
}

void canvas_resize(struct canvas *canvas, int rows, int columns)
{
	size_t cells;

	canvas->rows = within(rows, 1, CANVAS_MOST);
	canvas->columns = within(columns, 1, CANVAS_MOST);
	cells = (size_t)canvas->rows * (size_t)canvas->columns;
	canvas->cells = mem_realloc(canvas->cells, cells * sizeof(*canvas->cells));
	must(canvas->cells);
	for (size_t i = 0; i < cells; i++)
		canvas->cells[i] = (struct cell){ .glyph = ' ', .style = STYLE_PLAIN };
}

struct pane canvas_pane(struct canvas *canvas)
{
	return (struct pane){ .canvas = canvas, .rows = canvas->rows, .columns = canvas->columns };
}

struct pane pane_part(const struct pane *pane, int row, int column, int rows, int columns)
{
	struct pane part = { .canvas = pane->canvas };

	row = within(row, 0, pane->rows);
	column = within(column, 0, pane->columns);
	part.row = pane->row + row;
	part.column = pane->column + column;
	part.rows = within(rows, 0, pane->rows - row);
	part.columns = within(columns, 0, pane->columns - column);
	return part;
}

static void put(const struct pane *pane, int row, int column, enum style style, uint32_t glyph)
{
	struct canvas *canvas = pane->canvas;

	if (row < 0 || column < 0 || row >= pane->rows || column >= pane->columns)
		return;
	canvas->cells[(size_t)(pane->row + row) * (size_t)canvas->columns + (size_t)(pane->column + column)] =
		(struct cell){ .glyph = glyph, .style = (uint8_t)style };
}

static void put_either(const struct pane *pane, int row, int column, enum style style, uint32_t utf8, char ascii)
{
	put(pane, row, column, style, pane->canvas->utf8 ? utf8 : (uint32_t)ascii);
}

int pane_text(const struct pane *pane, int row, int column, enum style style, const char *text)
{
	for (; *text; text++)
		put(pane, row, column++, style, *text < 0x20 || *text > 0x7e ? '?' : (uint32_t)*text);
	return column;
}

void pane_right(const struct pane *pane, int row, int end, enum style style, const char *text)
{
	pane_text(pane, row, end - (int)strlen(text), style, text);
}

void pane_fill(const struct pane *pane, int row, enum style style)
{
	for (int column = 0; column < pane->columns; column++)
		put(pane, row, column, style, ' ');
}

void pane_title(const struct pane *pane, int row, int end, const char *name)
{
	int column = pane_text(pane, row, 0, STYLE_TITLE, name) + 1;

	for (; column < end; column++)
		put_either(pane, row, column, STYLE_DIM, 0x2500, '-');
}

void pane_bar(const struct pane *pane, int row, int column, int width, enum style style, double fraction)
{
	int halves = (int)lround(fmin(fmax(isnan(fraction) ? 0 : fraction, 0), 1) * width * 2);

	/* A part above 0 stays visible. */
	if (fraction > 0 && halves == 0)
		halves = 1;
	/* Lines instead of blocks keep bars below each other apart. */
	for (int i = 0; i < width; i++) {
		if (halves >= 2 * i + 2)
			put_either(pane, row, column + i, style, HEAVY_LINE, '#');
		else if (halves == 2 * i + 1)
			put_either(pane, row, column + i, style, HALF_HEAVY_LINE, i == 0 ? '#' : '-');
		else
			put_either(pane, row, column + i, STYLE_DIM, 0xb7, '.');
	}
}

void pane_part_sign(const struct pane *pane, int row, int column, unsigned number, enum style style)
{
	put_either(pane, row, column, style, part_glyphs[number], part_ascii[number]);
}

void pane_parts(const struct pane *pane, int row, int column, int width, const struct bar_part parts[BAR_PARTS])
{
	double whole = 0, before = 0;
	int at = 0;

	for (int i = 0; i < BAR_PARTS; i++)
		whole += parts[i].size > 0 ? parts[i].size : 0;
	for (unsigned i = 0; i < BAR_PARTS; i++) {
		int end;

		if (!(parts[i].size > 0))
			continue;
		before += parts[i].size;
		end = (int)lround(before / whole * width);
		for (end = end > at ? end : at + 1; at < end && at < width; at++)
			pane_part_sign(pane, row, column + at, i, parts[i].style);
	}
	for (; at < width; at++)
		put_either(pane, row, column + at, STYLE_DIM, 0xb7, '.');
}

void pane_history(const struct pane *pane, int row, int column, int width, int height, enum style style,
		  const float *values, size_t count, double most)
{
	for (int i = 0; i < width; i++) {
		size_t back = (size_t)(width - i); /* 1: the newest */
		double value = back <= count ? (double)values[count - back] : NAN;
		int eighths;

		if (isnan(value))
			continue;
		eighths = most > 0 ? (int)lround(fmin(value / most, 1) * height * EIGHTHS) : 0;
		eighths = eighths < 1 ? 1 : eighths; /* each value shows at least a base line */
		for (int line = 0; line < height; line++) {
			int here = within(eighths - line * EIGHTHS, 0, EIGHTHS);

			if (here > 0)
				put_either(pane, row + height - 1 - line, column + i, style, growing_up[here - 1],
					   growing_ascii[here - 1]);
		}
	}
}
