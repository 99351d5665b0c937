/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels for the contents of memory and flash, the traffic to the drive, and the fate of objects there. */
#include "tools/top/panels.h"

#include <stdio.h>
#include <string.h>

#define LABEL_END 9
#define NOTE_COLUMNS 24 /* behind a bar: how much of what */
#define SECOND_NOTE_COLUMNS 34 /* behind that, where there is room */
#define SECOND_NOTE_FROM 76

/* ---- memory, flash, index ---------------------------------------------------------------------- */

int memory_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	(void)available;
	return panel_has_flash(screen) ? (panel_knows(screen, FIG_index_load) ? 4 : 3) : 2;
}

static void load_row(const struct pane *pane, int row, const char *label, double load, enum style style,
		     const char *note, const char *second)
{
	bool wide = pane->columns >= SECOND_NOTE_FROM;
	int notes = pane->columns - NOTE_COLUMNS - (wide ? SECOND_NOTE_COLUMNS : 0);

	pane_text(pane, row, 0, STYLE_PLAIN, label);
	if (notes - 1 > LABEL_END)
		pane_bar(pane, row, LABEL_END, notes - 1 - LABEL_END, style, load);
	pane_text(pane, row, notes > LABEL_END ? notes : LABEL_END, STYLE_STRONG, note);
	if (wide)
		pane_right(pane, row, pane->columns, STYLE_PLAIN, second);
}

static void dram_row(const struct screen *screen, const struct pane *pane)
{
	const double *figures = screen->figures;
	char note[160], second[160], used[FIGURE_TEXT_BYTES], limit[FIGURE_TEXT_BYTES], items[FIGURE_TEXT_BYTES];
	char evicted[FIGURE_TEXT_BYTES];

	snprintf(note, sizeof(note), "%s of %s", figure_text(UNIT_BYTES, figures[FIG_memory_used_bytes], used),
		 figure_text(UNIT_BYTES, figures[FIG_memory_limit_bytes], limit));
	snprintf(second, sizeof(second), "%s items  %s evicted/s", figure_text(UNIT_COUNT, figures[FIG_items], items),
		 figure_text(UNIT_RATE, figures[FIG_evictions_per_second], evicted));
	load_row(pane, 1, "DRAM", figures[FIG_memory_load], STYLE_DRAM, note, second);
}

static void flash_row(const struct screen *screen, const struct pane *pane)
{
	const double *figures = screen->figures;
	char note[160], second[160], size[FIGURE_TEXT_BYTES], items[FIGURE_TEXT_BYTES], ghosts[FIGURE_TEXT_BYTES];
	char used[FIGURE_TEXT_BYTES];
	double bytes = figures[FIG_flash_load] * figures[FIG_flash_size_bytes];

	snprintf(note, sizeof(note), "%s of %s", figure_text(UNIT_BYTES, bytes, used),
		 figure_text(UNIT_BYTES, figures[FIG_flash_size_bytes], size));
	snprintf(second, sizeof(second), "%s items  %s ghosts",
		 figure_text(UNIT_COUNT, figures[FIG_flash_items], items),
		 figure_text(UNIT_COUNT, figures[FIG_flash_ghosts], ghosts));
	load_row(pane, 2, "flash", figures[FIG_flash_load], STYLE_FLASH, note, second);
}

static void index_row(const struct screen *screen, const struct pane *pane)
{
	const double *figures = screen->figures;
	char note[160], second[160], load[FIGURE_TEXT_BYTES], bytes[FIGURE_TEXT_BYTES], each[FIGURE_TEXT_BYTES];

	snprintf(note, sizeof(note), "%s of %s", figure_text(UNIT_RATIO, figures[FIG_index_load], load),
		 figure_text(UNIT_BYTES, figures[FIG_index_bytes], bytes));
	snprintf(second, sizeof(second), "%s bytes DRAM per item",
		 figure_text(UNIT_FACTOR, figures[FIG_dram_bytes_per_flash_item], each));
	load_row(pane, 3, "index", figures[FIG_index_load], panel_load_style(figures[FIG_index_load], STYLE_PLAIN),
		 note, second);
}

void memory_draw(const struct screen *screen, const struct pane *pane)
{
	pane_title(pane, 0, pane->columns, panel_has_flash(screen) ? "Memory and flash" : "Memory");
	dram_row(screen, pane);
	if (!panel_has_flash(screen))
		return;
	flash_row(screen, pane);
	if (panel_knows(screen, FIG_index_load))
		index_row(screen, pane);
}

/* ---- traffic ----------------------------------------------------------------------------------- */

int flash_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	(void)available;
	return panel_has_flash(screen) ? 5 : 0;
}

/* What holds writes back, in words for a row of stats flash. An older daemon and memcached have no such row. */
static const char *hold_text(const struct screen *screen)
{
	static const struct {
		const char *row, *text;
	} texts[] = {
		{ "offline", "offline" },
		{ "rebuild", "the index is rebuilt first" },
		{ "late", "objects are lost, the cleaner is late" },
		{ "memory", "memory has room" },
		{ "limit", "held back by the limit" },
		{ "ratio", "held back by the ratio" },
		{ "filling", "empty segments are filled" },
		{ "candidates", "few objects are worth flash" },
		{ "nothing", "nothing holds writes back" },
	};

	for (size_t i = 0; screen->texts && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].row, screen->texts->held_by) == 0)
			return texts[i].text;
	return "no limit is set";
}

static void written_row(const struct screen *screen, const struct pane *pane)
{
	double used = screen->figures[FIG_flash_write_limit_used];
	char text[FIGURE_TEXT_BYTES], note[80];
	int from = LABEL_END + 15;

	panel_figure(screen, pane, 1, 0, LABEL_END + 12, "written", FIG_flash_write_rate_bytes_per_second);
	if (!panel_knows(screen, FIG_flash_write_limit_bytes_per_second)) {
		pane_text(pane, 1, from, STYLE_DIM, hold_text(screen));
		return;
	}
	snprintf(note, sizeof(note), "limit %s",
		 figure_text(UNIT_SPEED, screen->figures[FIG_flash_write_limit_bytes_per_second], text));
	pane_bar(pane, 1, from, pane->columns - from - 18, panel_load_style(used, STYLE_FLASH), used);
	pane_right(pane, 1, pane->columns, STYLE_PLAIN, note);
}

void flash_draw(const struct screen *screen, const struct pane *pane)
{
	const struct history *history = &screen->summary->history;
	int width = pane->columns - LABEL_END, column;

	pane_title(pane, 0, pane->columns, "Flash traffic");
	if (screen->figures[FIG_flash_offline] > 0)
		pane_text(pane, 0, 15, STYLE_BAD, " OFFLINE ");
	written_row(screen, pane);
	panel_figure(screen, pane, 2, 0, LABEL_END + 12, "read", FIG_flash_read_bytes_per_second);
	column = panel_words(screen, pane, 2, LABEL_END + 15, "reads per hit", FIG_reads_per_hit);
	panel_words(screen, pane, 2, column, "per miss", FIG_reads_per_miss);
	pane_text(pane, 3, 0, STYLE_PLAIN, "CLWA");
	column = panel_words(screen, pane, 3, LABEL_END, "now", FIG_clwa_now);
	column = panel_words(screen, pane, 3, column, "5 min", FIG_clwa_5m);
	column = panel_words(screen, pane, 3, column, "1 h", FIG_clwa_1h);
	column = panel_words(screen, pane, 3, column, "1 day", FIG_clwa_1d);
	panel_words(screen, pane, 3, column, screen->model->based ? "since r" : "total", FIG_clwa);
	pane_text(pane, 4, 0, STYLE_PLAIN, "writes");
	pane_history(pane, 4, LABEL_END, width, 1, STYLE_FLASH, history->values[SERIES_WRITTEN], history->count,
		     history_most(history, SERIES_WRITTEN, width));
}

/* ---- segments ---------------------------------------------------------------------------------- */

int segments_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	(void)available;
	return panel_has_flash(screen) ? 4 : 0;
}

void segments_draw(const struct screen *screen, const struct pane *pane)
{
	static const struct {
		const char *name;
		enum figure figure;
		enum style style;
	} states[BAR_PARTS] = {
		{ "live", FIG_segments_live, STYLE_FLASH },
		{ "busy", FIG_segments_busy, STYLE_WARN },
		{ "retired", FIG_segments_retired, STYLE_BAD },
		{ "free", FIG_segments_free, STYLE_DIM },
	};
	struct bar_part parts[BAR_PARTS];
	int column = 0;

	pane_title(pane, 0, pane->columns, "Segments");
	for (unsigned i = 0; i < BAR_PARTS; i++)
		parts[i] = (struct bar_part){ screen->figures[states[i].figure], states[i].style };
	pane_parts(pane, 1, 0, pane->columns, parts);
	for (unsigned i = 0; i < BAR_PARTS; i++) {
		pane_part_sign(pane, 2, column, i, states[i].style);
		column = panel_words(screen, pane, 2, column + 2, states[i].name, states[i].figure);
	}
	panel_words(screen, pane, 2, column, "of", FIG_segment_bytes);
	column = panel_words(screen, pane, 3, 0, "fill", FIG_segment_fill);
	column = panel_words(screen, pane, 3, column, "on flash for", FIG_segment_residence_seconds);
	column = panel_words(screen, pane, 3, column, "written/s", FIG_segments_written_per_second);
	panel_words(screen, pane, 3, column, "reclaimed/s", FIG_segments_reclaimed_per_second);
}

/* ---- objects ----------------------------------------------------------------------------------- */

int objects_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	(void)available;
	return panel_has_flash(screen) ? 5 : 0;
}

static void error_row(const struct screen *screen, const struct pane *pane, int row)
{
	static const struct {
		const char *name;
		enum figure figure;
	} errors[] = {
		{ "I/O errors", FIG_flash_errors },
		{ "bad records", FIG_flash_checksum_errors },
		{ "too slow", FIG_flash_read_timeouts },
		{ "too many", FIG_flash_reads_shed },
	};
	int column = 0;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int begin = column;
		char text[FIGURE_TEXT_BYTES];

		column = panel_words(screen, pane, row, column, errors[i].name, errors[i].figure);
		if (screen->figures[errors[i].figure] > 0)
			pane_text(pane, row, begin + (int)strlen(errors[i].name) + 1, STYLE_BAD,
				  figure_text(UNIT_COUNT, screen->figures[errors[i].figure], text));
	}
	if (screen->figures[FIG_flash_offline] > 0 && screen->texts)
		pane_text(pane, row, column, STYLE_BAD, screen->texts->offline_reason);
}

void objects_draw(const struct screen *screen, const struct pane *pane)
{
	int half = (pane->columns - 3) / 2, right = half + 3;

	pane_title(pane, 0, pane->columns, "Objects on flash");
	pane_right(pane, 0, half, STYLE_DIM, " /s ");
	panel_figure(screen, pane, 1, 0, half, "written", FIG_flash_objects_written_per_second);
	panel_figure(screen, pane, 2, 0, half, "taken back", FIG_flash_objects_reinserted_per_second);
	panel_figure(screen, pane, 3, 0, half, "given up", FIG_flash_objects_dropped_per_second);
	panel_figure(screen, pane, 1, right, pane->columns, "candidates", FIG_candidates);
	panel_figure(screen, pane, 2, right, pane->columns, "ghosts made/s", FIG_flash_ghosts_made_per_second);
	panel_figure(screen, pane, 3, right, pane->columns, "ghosts read/s", FIG_flash_ghosts_revived_per_second);
	error_row(screen, pane, 4);
}
