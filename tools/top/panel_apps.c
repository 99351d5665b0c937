/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications, sorted by a column. */
#include "tools/top/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMNS 16
#define COLUMN_WIDTH 11
#define LEAST_ROWS 4

static const struct column {
	const char *name;
	enum unit unit;
} columns_shown[APP_COLUMNS] = {
	[COLUMN_NAME] = { "application", UNIT_COUNT }, [COLUMN_GETS] = { "get/s", UNIT_RATE },
	[COLUMN_SETS] = { "set/s", UNIT_RATE },        [COLUMN_HITS] = { "hits", UNIT_RATIO },
	[COLUMN_DRAM] = { "DRAM", UNIT_RATIO },        [COLUMN_FLASH] = { "flash", UNIT_RATIO },
	[COLUMN_READ] = { "read", UNIT_SPEED },        [COLUMN_WRITTEN] = { "written", UNIT_SPEED },
};

struct line {
	const char *name;
	double value[APP_COLUMNS];
	enum app_column sort;
};

static double part(double some, double whole)
{
	return whole > 0 ? fmin(some / whole, 1) : NAN;
}

/* Ratios are since the start or the base: an application may be quiet for some polls. */
static void fill(struct line *line, const struct app *rate, const struct app *total, enum app_column sort)
{
	double gets = total->count[APP_GETS], flash = total->count[APP_FLASH_HITS];

	*line = (struct line){ .name = rate->name, .sort = sort };
	line->value[COLUMN_GETS] = rate->count[APP_GETS];
	line->value[COLUMN_SETS] = rate->count[APP_SETS];
	line->value[COLUMN_HITS] = part(total->count[APP_HITS], gets);
	line->value[COLUMN_DRAM] = part(fmax(total->count[APP_HITS] - flash, 0), gets);
	line->value[COLUMN_FLASH] = part(flash, gets);
	line->value[COLUMN_READ] = rate->count[APP_BYTES_READ];
	line->value[COLUMN_WRITTEN] = rate->count[APP_BYTES_WRITTEN];
}

/* Sorts the largest values first, names by the alphabet, and unknown values last. */
static int compare(const void *first, const void *second)
{
	const struct line *a = first, *b = second;
	double x = a->value[a->sort], y = b->value[b->sort];

	x = isnan(x) ? -1 : x;
	y = isnan(y) ? -1 : y;
	if (a->sort != COLUMN_NAME && x != y)
		return x < y ? 1 : -1;
	return strcmp(a->name, b->name);
}

/* Our daemon always has a row for requests without an application. */
static bool is_empty(const struct app *total)
{
	return strcmp(total->name, "(none)") == 0 && !(total->count[APP_GETS] > 0) && !(total->count[APP_SETS] > 0);
}

static unsigned line_count(const struct basis *basis)
{
	unsigned count = 0;

	for (unsigned i = 0; i < basis->app_count; i++)
		count += !is_empty(&basis->app_total[i]);
	return count;
}

int apps_rows(const struct screen *screen, int columns, int available)
{
	int wanted = (int)line_count(&screen->summary->basis) + 1;

	(void)columns;
	if (wanted == 1)
		return screen->display->view == VIEW_APPS ? 2 : 0;
	return wanted <= available || available < LEAST_ROWS ? wanted : available;
}

static void head(const struct screen *screen, const struct pane *pane)
{
	pane_title(pane, 0, NAME_COLUMNS, "Applications");
	for (int i = 1; i < APP_COLUMNS; i++) {
		const char *name = columns_shown[i].name;
		int end = NAME_COLUMNS + i * COLUMN_WIDTH;
		char text[24];

		if (end > pane->columns)
			break;
		snprintf(text, sizeof(text), "%s%s", name, i == (int)screen->display->sort ? "*" : "");
		pane_right(pane, 0, end, i == (int)screen->display->sort ? STYLE_STRONG : STYLE_DIM, text);
	}
	if (screen->display->sort == COLUMN_NAME)
		pane_text(pane, 0, (int)strlen("Applications"), STYLE_STRONG, "*");
}

static void row_draw(const struct pane *pane, int row, const struct line *line)
{
	struct pane name = pane_part(pane, row, 0, 1, NAME_COLUMNS);

	pane_text(&name, 0, 0, STYLE_PLAIN, line->name);
	for (int i = 1; i < APP_COLUMNS; i++) {
		int end = NAME_COLUMNS + i * COLUMN_WIDTH;
		char text[FIGURE_TEXT_BYTES];

		if (end > pane->columns)
			break;
		pane_right(pane, row, end, i == COLUMN_HITS ? STYLE_STRONG : STYLE_PLAIN,
			   figure_text(columns_shown[i].unit, line->value[i], text));
	}
}

void apps_draw(const struct screen *screen, const struct pane *pane)
{
	const struct basis *basis = &screen->summary->basis;
	struct line lines[APPS_MAX];
	unsigned count = 0, shown = pane->rows > 1 ? (unsigned)pane->rows - 1 : 0;
	unsigned first = screen->display->view == VIEW_APPS ? screen->display->scroll : 0;

	head(screen, pane);
	for (unsigned i = 0; i < basis->app_count; i++)
		if (!is_empty(&basis->app_total[i]))
			fill(&lines[count++], &basis->app_rate[i], &basis->app_total[i], screen->display->sort);
	if (count == 0) {
		pane_text(pane, 1, 0, STYLE_DIM, "the server tells nothing of applications");
		return;
	}
	qsort(lines, count, sizeof(lines[0]), compare);
	if (first + shown > count)
		first = count > shown ? count - shown : 0;
	for (unsigned i = 0; i < shown && first + i < count; i++)
		row_draw(pane, (int)i + 1, &lines[first + i]);
}
