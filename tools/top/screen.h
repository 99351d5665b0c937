/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The screen: an edge at the top and at the bottom, and between them the panels of the view.
 *
 *   ┌ flashield-top  127.0.0.1:11211  ...            14:02:11 ┐
 *   │ 1 Overview  2 Flash  ...                                │
 *   │ panel ─────────────────    panel ───────────────────    │   a column for each 96 columns of the terminal
 *   │ ...                        ...                          │
 *   └ q quit  p pause  ...                                    ┘
 *
 * A panel says how many rows it wants and draws into a pane of at most as many; the pane cuts the rest. A new panel is
 * a row in the tables of screen.c.
 *
 * Threads: one owner; nothing here reads a socket or a terminal.
 */
#ifndef FS_TOOLS_TOP_SCREEN_H
#define FS_TOOLS_TOP_SCREEN_H

#include "tools/top/canvas.h"
#include "tools/top/model.h"

enum view {
	VIEW_OVERVIEW,
	VIEW_FLASH,
	VIEW_MODEL,
	VIEW_LATENCY,
	VIEW_APPS,
	VIEW_SERVERS,
	VIEW_KEYS,
	VIEW_SLOW,
	VIEW_CONTENTS,
	VIEW_LIMITS,
	VIEWS
};

#define KEYS_OF_VIEWS 10 /* 1 to 9, and 0 for the tenth */
_Static_assert(VIEWS == KEYS_OF_VIEWS, "each digit is the key of a view");

/* Columns of the applications' table that it can be sorted by. */
enum app_column {
	COLUMN_NAME,
	COLUMN_GETS,
	COLUMN_SETS,
	COLUMN_HITS,
	COLUMN_DRAM,
	COLUMN_FLASH,
	COLUMN_READ,
	COLUMN_WRITTEN,
	APP_COLUMNS
};

/* The choices of the user. */
struct display {
	enum view view;
	unsigned chosen; /* 0: all servers; else one of them, from 1 */
	enum app_column sort;
	unsigned scroll; /* first row of a table that is shown */
	enum hot_window window; /* of the hottest keys */
	bool paused, help;
	int64_t interval_us;
};

/* The data that panels draw. */
struct screen {
	const struct model *model;
	const struct display *display;
	const struct summary *summary; /* of the chosen server, or of all */
	const double *figures;
	const struct sample *texts; /* of the chosen server, or the first that answers; NULL: of none yet */
	int64_t now_us;
	const char *clock; /* time of day */
};

/* Draws the whole screen. clock: the time of day as text. */
void screen_draw(struct canvas *canvas, const struct model *model, const struct display *display, int64_t now_us,
		 const char *clock);

#endif
