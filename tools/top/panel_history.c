/* SPDX-License-Identifier: BSD-3-Clause */
/* The histories, as tall as the room allows. */
#include "tools/top/panels.h"

#include <stdio.h>

#define LABEL_END 11
#define LEAST_ROWS 2
#define MOST_ROWS 8

static const struct chart {
	const char *name;
	enum series series;
	enum unit unit;
	enum style style;
	bool of_flash;
} charts[] = {
	{ "hit ratio", SERIES_HITS, UNIT_RATIO, STYLE_GOOD, false },
	{ "requests/s", SERIES_REQUESTS, UNIT_RATE, STYLE_DRAM, false },
	{ "written", SERIES_WRITTEN, UNIT_SPEED, STYLE_FLASH, true },
	{ "read", SERIES_READ, UNIT_SPEED, STYLE_FLASH, true },
};

static int chart_count(const struct screen *screen)
{
	return panel_has_flash(screen) ? 4 : 2;
}

int history_rows(const struct screen *screen, int columns, int available)
{
	int count = chart_count(screen), each = (available - 1) / count;

	(void)columns;
	each = each > MOST_ROWS ? MOST_ROWS : each;
	return each >= LEAST_ROWS ? 1 + count * each : 0;
}

static void chart_draw(const struct screen *screen, const struct pane *pane, const struct chart *chart)
{
	const struct history *history = &screen->summary->history;
	int width = pane->columns - LABEL_END;
	/* A ratio ends at 1; the scale of other series ends at the largest value in view. */
	double most = chart->unit == UNIT_RATIO ? 1 : history_most(history, chart->series, width);
	char text[FIGURE_TEXT_BYTES];

	pane_text(pane, 0, 0, STYLE_PLAIN, chart->name);
	if (chart->unit != UNIT_RATIO && pane->rows > 1)
		pane_text(pane, 1, 0, STYLE_DIM, figure_text(chart->unit, most, text));
	pane_history(pane, 0, LABEL_END + 1, width - 1, pane->rows, chart->style, history->values[chart->series],
		     history->count, most);
}

void history_draw(const struct screen *screen, const struct pane *pane)
{
	int count = chart_count(screen), each = (pane->rows - 1) / count;

	pane_title(pane, 0, pane->columns, "History");
	for (int i = 0; i < count; i++) {
		/* A free row between tall charts. */
		struct pane part = pane_part(pane, 1 + i * each, 0, each > 3 ? each - 1 : each, pane->columns);

		chart_draw(screen, &part, &charts[i]);
	}
}
