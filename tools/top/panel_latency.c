/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations by kind. */
#include "tools/top/panels.h"

#include <math.h>
#include <string.h>

#define NAME_COLUMNS 12

static const char *const labels[TIMINGS] = {
	[TIMING_dram_hit] = "DRAM hit", [TIMING_flash_hit] = "flash hit",   [TIMING_miss] = "miss",
	[TIMING_set] = "set",           [TIMING_flash_read] = "flash read", [TIMING_flash_write] = "flash write",
};

/* Narrow panes keep the left columns. */
static const struct column {
	const char *name;
	enum timing_part part; /* TIMING_PARTS: computed */
} columns_shown[] = {
	{ "/s", TIMING_COUNT }, { "mean now", TIMING_PARTS }, { "p50", TIMING_P50 }, { "p99", TIMING_P99 },
	{ "max", TIMING_MAX },  { "p99.9", TIMING_P999 },     { "p90", TIMING_P90 }, { "mean", TIMING_MEAN },
};
#define COLUMNS (sizeof(columns_shown) / sizeof(columns_shown[0]))
#define COLUMN_WIDTH 11

/* Without flash the flash rows are left out. */
static bool shown(const struct screen *screen, int timing)
{
	return panel_has_flash(screen) ||
	       (timing != TIMING_flash_hit && timing != TIMING_flash_read && timing != TIMING_flash_write);
}

int latency_rows(const struct screen *screen, int columns, int available)
{
	int rows = 1;

	(void)columns;
	if (!screen->texts || !screen->texts->has[REPORT_LATENCY])
		return 0;
	for (int i = 0; i < TIMINGS; i++)
		rows += shown(screen, i);
	/* Requests come first; a short pane leaves out the drive's durations. */
	return rows <= available || available < 5 ? rows : available;
}

static double value_of(const struct basis *basis, int timing, enum timing_part part)
{
	if (part == TIMING_COUNT)
		return basis->timing_rate[timing];
	/* This column counts since the last poll, the others since the server's start. */
	if (part == TIMING_PARTS)
		return basis->timing_rate[timing] > 0 ? basis->timing_time[timing] / basis->timing_rate[timing] : NAN;
	return basis->timing[timing][TIMING_COUNT] > 0 ? basis->timing[timing][part] : NAN;
}

void latency_draw(const struct screen *screen, const struct pane *pane)
{
	int row = 0;

	pane_title(pane, row++, NAME_COLUMNS, "Latency");
	for (size_t i = 0; i < COLUMNS; i++) {
		int end = NAME_COLUMNS + (int)(i + 1) * COLUMN_WIDTH;

		if (end > pane->columns)
			break;
		pane_right(pane, 0, end, STYLE_DIM, columns_shown[i].name);
	}
	for (int timing = 0; timing < TIMINGS; timing++) {
		if (!shown(screen, timing))
			continue;
		pane_text(pane, row, 0, STYLE_PLAIN, labels[timing] ? labels[timing] : "?");
		for (size_t i = 0; i < COLUMNS; i++) {
			enum timing_part part = columns_shown[i].part;
			int end = NAME_COLUMNS + (int)(i + 1) * COLUMN_WIDTH;
			char text[FIGURE_TEXT_BYTES];

			if (end <= pane->columns)
				pane_right(pane, row, end, part == TIMING_PARTS ? STYLE_STRONG : STYLE_PLAIN,
					   figure_text(part == TIMING_COUNT ? UNIT_RATE : UNIT_MICROSECONDS,
						       value_of(&screen->summary->basis, timing, part), text));
		}
		row++;
	}
}
