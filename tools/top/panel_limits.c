/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications with limits: what they have and may have in memory and on flash; of the chosen server, or of all servers
   together. */
#include "tools/top/panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMNS 14
#define COLUMN_WIDTH 9
#define LEAST_ROWS 4
#define LINES (LIMITED_MAX * SERVERS_MAX)

/* Those with the most bytes in memory first. */
static int compare(const void *first, const void *second)
{
	const struct limited_app *a = first, *b = second;
	double x = isnan(a->amount[LIMIT_DRAM]) ? 0 : a->amount[LIMIT_DRAM];
	double y = isnan(b->amount[LIMIT_DRAM]) ? 0 : b->amount[LIMIT_DRAM];

	return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

/* Adds the amounts of a further server. Where one of them has no such limit, the sum has none either. */
static void add_app(struct limited_app lines[LINES], unsigned *count, const struct limited_app *app)
{
	unsigned i = 0;

	while (i < *count && strcmp(lines[i].name, app->name) != 0)
		i++;
	if (i == *count) {
		lines[(*count)++] = *app;
		return;
	}
	for (int n = 0; n < LIMIT_AMOUNTS; n++)
		lines[i].amount[n] += app->amount[n];
}

static unsigned gather(const struct screen *screen, struct limited_app lines[LINES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < screen->model->count; i++) {
		const struct sample *sample = &screen->model->servers[i].track.now;

		for (unsigned n = 0; panel_is_chosen(screen, i) && n < sample->limited_count; n++)
			add_app(lines, &count, &sample->limited[n]);
	}
	qsort(lines, count, sizeof(lines[0]), compare);
	return count;
}

int limits_rows(const struct screen *screen, int columns, int available)
{
	static struct limited_app lines[LINES];
	int wanted = (int)gather(screen, lines) + 1;

	(void)columns;
	if (wanted == 1)
		return 2;
	return wanted <= available || available < LEAST_ROWS ? wanted : available;
}

/* Narrow panes keep the first ones. */
static const struct column {
	const char *name;
	enum limit_amount amount;
	enum unit unit;
} columns_shown[] = {
	{ "DRAM", LIMIT_DRAM, UNIT_BYTES },
	{ "floor", LIMIT_DRAM_FLOOR, UNIT_BYTES },
	{ "ceiling", LIMIT_DRAM_CEILING, UNIT_BYTES },
	{ "evicted", LIMIT_EVICTIONS, UNIT_COUNT },
	{ "flash", LIMIT_FLASH, UNIT_BYTES },
	{ "floor", LIMIT_FLASH_FLOOR, UNIT_BYTES },
	{ "ceiling", LIMIT_FLASH_CEILING, UNIT_BYTES },
	{ "write/s", LIMIT_WRITE, UNIT_BYTES },
	{ "written", LIMIT_WRITTEN, UNIT_BYTES },
	{ "refused", LIMIT_REFUSALS, UNIT_COUNT },
};
#define COLUMNS (int)(sizeof(columns_shown) / sizeof(columns_shown[0]))

static enum style style_of(const struct limited_app *app, enum limit_amount amount)
{
	if (amount == LIMIT_DRAM)
		return panel_load_style(app->amount[LIMIT_DRAM] / app->amount[LIMIT_DRAM_CEILING], STYLE_STRONG);
	if (amount == LIMIT_FLASH)
		return panel_load_style(app->amount[LIMIT_FLASH] / app->amount[LIMIT_FLASH_CEILING], STYLE_STRONG);
	return STYLE_PLAIN;
}

static void draw_line(const struct pane *pane, int row, const struct limited_app *app)
{
	struct pane name = pane_part(pane, row, 0, 1, NAME_COLUMNS - 1);

	pane_text(&name, 0, 0, STYLE_PLAIN, app->name);
	for (int i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns_shown[i];
		int end = NAME_COLUMNS + (i + 1) * COLUMN_WIDTH;
		char text[FIGURE_TEXT_BYTES];

		if (end <= pane->columns)
			pane_right(pane, row, end, style_of(app, column->amount),
				   figure_text(column->unit, app->amount[column->amount], text));
	}
}

void limits_draw(const struct screen *screen, const struct pane *pane)
{
	static struct limited_app lines[LINES];
	unsigned count = gather(screen, lines);

	pane_title(pane, 0, NAME_COLUMNS, "Limits");
	for (int i = 0; i < COLUMNS; i++) {
		int end = NAME_COLUMNS + (i + 1) * COLUMN_WIDTH;

		if (end <= pane->columns)
			pane_right(pane, 0, end, STYLE_DIM, columns_shown[i].name);
	}
	if (count == 0)
		pane_text(pane, 1, 0, STYLE_DIM, "no application has limits (--app-limit)");
	for (unsigned i = 0; i < count && (int)i + 1 < pane->rows; i++)
		draw_line(pane, (int)i + 1, &lines[i]);
}
