/* SPDX-License-Identifier: BSD-3-Clause */
/* Hit ratios with their history, and beside or below them the requests by kind. */
#include "tools/top/panels.h"

#define BESIDE_COLUMNS 68 /* from this width on the two halves stand beside each other */
#define REQUESTS_COLUMNS 34
#define HALF_ROWS 6
#define LABEL_END 11
#define VALUE_COLUMNS 9

int traffic_rows(const struct screen *screen, int columns, int available)
{
	(void)screen;
	(void)available;
	return columns >= BESIDE_COLUMNS ? HALF_ROWS : 2 * HALF_ROWS;
}

static void ratio(const struct screen *screen, const struct pane *pane, int row, const char *label, enum figure now,
		  enum figure total, enum style style)
{
	char text[FIGURE_TEXT_BYTES];
	int values = pane->columns - 2 * VALUE_COLUMNS;

	pane_text(pane, row, 0, STYLE_PLAIN, label);
	if (values - 1 > LABEL_END)
		pane_bar(pane, row, LABEL_END, values - 1 - LABEL_END, style, screen->figures[now]);
	pane_right(pane, row, values + VALUE_COLUMNS, STYLE_STRONG,
		   figure_text(UNIT_RATIO, screen->figures[now], text));
	pane_right(pane, row, values + 2 * VALUE_COLUMNS, STYLE_PLAIN,
		   figure_text(UNIT_RATIO, screen->figures[total], text));
}

static void hits(const struct screen *screen, const struct pane *pane)
{
	bool flash = panel_has_flash(screen);
	int rows = flash ? 4 : 2, width = pane->columns - LABEL_END;
	const struct history *history = &screen->summary->history;

	pane_title(pane, 0, pane->columns - 2 * VALUE_COLUMNS, "Hit ratio");
	pane_right(pane, 0, pane->columns - VALUE_COLUMNS, STYLE_DIM, "now");
	pane_right(pane, 0, pane->columns, STYLE_DIM, screen->model->based ? "since r" : "total");
	ratio(screen, pane, 1, "all", FIG_hit_ratio_now, FIG_hit_ratio, STYLE_GOOD);
	if (flash) {
		ratio(screen, pane, 2, "from DRAM", FIG_dram_hit_ratio_now, FIG_dram_hit_ratio, STYLE_DRAM);
		ratio(screen, pane, 3, "from flash", FIG_flash_hit_ratio_now, FIG_flash_hit_ratio, STYLE_FLASH);
	}
	pane_text(pane, rows, 0, STYLE_PLAIN, "history");
	pane_history(pane, rows, LABEL_END, width, HALF_ROWS - rows, STYLE_GOOD, history->values[SERIES_HITS],
		     history->count, 1);
}

static void requests(const struct screen *screen, const struct pane *pane)
{
	int middle = (pane->columns - 2) / 2 - 1, right = middle + 3;

	pane_title(pane, 0, middle - 3, "Requests");
	pane_right(pane, 0, middle, STYLE_DIM, "/s");
	panel_figure(screen, pane, 1, 0, middle, "get", FIG_gets_per_second);
	panel_figure(screen, pane, 2, 0, middle, "set", FIG_sets_per_second);
	panel_figure(screen, pane, 3, 0, middle, "delete", FIG_deletes_per_second);
	panel_figure(screen, pane, 4, 0, middle, "incr/decr", FIG_arithmetic_per_second);
	panel_figure(screen, pane, 5, 0, middle, "touch", FIG_touches_per_second);
	panel_figure(screen, pane, 1, right, pane->columns, "in", FIG_received_bytes_per_second);
	panel_figure(screen, pane, 2, right, pane->columns, "out", FIG_sent_bytes_per_second);
	panel_figure(screen, pane, 3, right, pane->columns, "clients", FIG_connections);
	panel_figure(screen, pane, 4, right, pane->columns, "new/s", FIG_new_connections_per_second);
	panel_figure(screen, pane, 5, right, pane->columns, "cores", FIG_cpu_cores_used);
}

void traffic_draw(const struct screen *screen, const struct pane *pane)
{
	bool beside = pane->columns >= BESIDE_COLUMNS;
	int column = beside ? pane->columns - REQUESTS_COLUMNS : 0;
	struct pane first = pane_part(pane, 0, 0, HALF_ROWS, beside ? column - 2 : pane->columns);
	struct pane second = pane_part(pane, beside ? 0 : HALF_ROWS, column, HALF_ROWS, pane->columns);

	hits(screen, &first);
	requests(screen, &second);
}
