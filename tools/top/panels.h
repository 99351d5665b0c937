/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The panels. _rows: how many rows the panel wants at this width, of at most `available`; 0: it has nothing to show of this
 * server. _draw: into a pane of at most as many.
 */
#ifndef FS_TOOLS_TOP_PANELS_H
#define FS_TOOLS_TOP_PANELS_H

#include "tools/top/screen.h"

typedef int panel_rows(const struct screen *screen, int columns, int available);
typedef void panel_draw(const struct screen *screen, const struct pane *pane);

panel_rows traffic_rows, memory_rows, flash_rows, segments_rows, objects_rows, latency_rows, model_rows, apps_rows,
	servers_rows, history_rows;
panel_draw traffic_draw, memory_draw, flash_draw, segments_draw, objects_draw, latency_draw, model_draw, apps_draw,
	servers_draw, history_draw;

/* A label from `column` on, and the figure ending before `end`. */
void panel_figure(const struct screen *screen, const struct pane *pane, int row, int column, int end, const char *label,
		  enum figure figure);
/* The same as words in a line: "label figure   "; returns the column of the next. */
int panel_words(const struct screen *screen, const struct pane *pane, int row, int column, const char *label,
		enum figure figure);
/* Is the figure known? */
bool panel_knows(const struct screen *screen, enum figure figure);
/* Has the server (or one of them) a flash? */
bool panel_has_flash(const struct screen *screen);
/* How much of a limit is used, as a colour: the style given below 0.9, then WARN, from 1 on BAD. */
enum style panel_load_style(double load, enum style below);

#endif
