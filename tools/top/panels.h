/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The panels. _rows returns the number of rows that the panel wants at this width, at most `available`; 0 means that it
 * has nothing to show for this server. _draw draws into a pane of at most as many rows.
 */
#ifndef FS_TOOLS_TOP_PANELS_H
#define FS_TOOLS_TOP_PANELS_H

#include "tools/top/screen.h"

typedef int panel_rows(const struct screen *screen, int columns, int available);
typedef void panel_draw(const struct screen *screen, const struct pane *pane);

panel_rows traffic_rows, memory_rows, flash_rows, segments_rows, objects_rows, latency_rows, model_rows, apps_rows,
	servers_rows, history_rows, hot_requests_rows, hot_bytes_rows, hot_reads_rows, slow_rows, histograms_rows,
	contents_rows, limits_rows;
panel_draw traffic_draw, memory_draw, flash_draw, segments_draw, objects_draw, latency_draw, model_draw, apps_draw,
	servers_draw, history_draw, hot_requests_draw, hot_bytes_draw, hot_reads_draw, slow_draw, histograms_draw,
	contents_draw, limits_draw;

/* Draws a label from `column` on, and the figure ending before `end`. */
void panel_figure(const struct screen *screen, const struct pane *pane, int row, int column, int end, const char *label,
		  enum figure figure);
/* Draws "label figure   " as words in a line. Returns the column of the next word. */
int panel_words(const struct screen *screen, const struct pane *pane, int row, int column, const char *label,
		enum figure figure);
/* Returns whether the figure is known. */
bool panel_knows(const struct screen *screen, enum figure figure);
/* Returns whether this server of the model, which has answered once, is shown: it is the chosen one, or all are. */
bool panel_is_chosen(const struct screen *screen, unsigned server);
/* Returns whether the server, or one of the servers, has a flash. */
bool panel_has_flash(const struct screen *screen);
/* Returns the colour for the used part of a limit: `below` under 0.9, WARN from there on, BAD from 1 on. */
enum style panel_load_style(double load, enum style below);

#endif
