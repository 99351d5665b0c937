/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/screen.h"

#include <stdio.h>
#include <string.h>

#include "conf/units.h"
#include "tools/common/text.h"
#include "tools/top/panels.h"

#define COLUMN_FROM 96 /* a column of panels is at least this wide, where there are several */
#define COLUMN_GAP 3
#define AIRY_ROWS 30 /* from this height on panels stand apart */
#define LEAST_ROWS 2
#define LEAST_TABS 80 /* columns that names of views take ... */
#define WIDE_TABS 98 /* ... and with all blanks */

struct panel {
	panel_rows *rows;
	panel_draw *draw;
	bool breaks; /* begins the second column where there is one */
};

#define PANEL(name) \
	{ \
		name##_rows, name##_draw, false \
	}
#define BREAK(name) \
	{ \
		name##_rows, name##_draw, true \
	}
#define VIEW_PANELS 12

static const struct {
	const char *name;
	struct panel panels[VIEW_PANELS];
} views[VIEWS] = {
	[VIEW_OVERVIEW] = { "Overview",
			    { PANEL(traffic), PANEL(memory), PANEL(flash), PANEL(latency), PANEL(servers),
			      PANEL(segments), PANEL(objects), BREAK(model), PANEL(history), PANEL(apps) } },
	[VIEW_FLASH] = { "Flash", { PANEL(memory), PANEL(flash), PANEL(segments), PANEL(objects), BREAK(history) } },
	[VIEW_MODEL] = { "Model", { PANEL(model), PANEL(objects), BREAK(history) } },
	[VIEW_LATENCY] = { "Latency", { PANEL(latency), PANEL(traffic), BREAK(history) } },
	[VIEW_APPS] = { "Apps", { PANEL(apps) } },
	[VIEW_SERVERS] = { "Servers", { PANEL(servers), PANEL(history) } },
	[VIEW_KEYS] = { "Keys", { PANEL(hot_requests), PANEL(hot_bytes), BREAK(hot_reads) } },
	[VIEW_SLOW] = { "Slow", { PANEL(slow) } },
	[VIEW_CONTENTS] = { "Contents", { PANEL(histograms), PANEL(contents) } },
	[VIEW_LIMITS] = { "Limits", { PANEL(limits) } },
};

/* ---- the edges --------------------------------------------------------------------------------- */

static const char *chosen_name(const struct screen *screen, char text[TEXT_BYTES + 16])
{
	const struct model *model = screen->model;

	if (screen->display->chosen > 0)
		return model->servers[screen->display->chosen - 1].peer.address;
	if (model->count == 1)
		return model->servers[0].peer.address;
	snprintf(text, TEXT_BYTES + 16, "all of %u servers", model->count);
	return text;
}

static void head(const struct screen *screen, const struct pane *pane)
{
	char count[TEXT_BYTES + 16], version[80] = "", uptime[FIGURE_TEXT_BYTES], interval[UNITS_TEXT_BYTES],
				     right[UNITS_TEXT_BYTES + 64];
	const struct sample *texts = screen->texts;
	struct pane left;

	if (texts)
		snprintf(version, sizeof(version), "%s %s   up %s", texts->flashield[0] ? "flashield" : "memcached",
			 texts->flashield[0] ? texts->flashield : texts->version,
			 figure_text(UNIT_SECONDS, screen->figures[FIG_uptime_seconds], uptime));
	snprintf(right, sizeof(right), "%s   every %s   %s ", screen->display->paused ? "PAUSED" : "",
		 units_format_time((uint64_t)screen->display->interval_us, interval), screen->clock);
	pane_fill(pane, 0, STYLE_EDGE);
	left = pane_part(pane, 0, 1, 1, pane->columns - 1);
	int column = pane_text(&left, 0, 0, STYLE_EDGE, chosen_name(screen, count));

	column = pane_text(&left, 0, column + 3, STYLE_EDGE, version) + 2;
	if (column + (int)strlen(right) < pane->columns)
		pane_right(pane, 0, pane->columns, STYLE_EDGE, right);
	else if (screen->display->paused)
		pane_right(pane, 0, pane->columns, STYLE_EDGE, " PAUSED ");
}

static void tabs(const struct screen *screen, const struct pane *pane, int row)
{
	int column = 1, gap = pane->columns >= WIDE_TABS ? 2 : 1;

	for (int i = 0; i < VIEWS; i++) {
		bool chosen = i == (int)screen->display->view;
		char text[32];

		/* Names without room lose the blank before them, or become numbers. */
		if (chosen || pane->columns >= LEAST_TABS)
			snprintf(text, sizeof(text), "%d%s%s", (i + 1) % KEYS_OF_VIEWS,
				 pane->columns >= WIDE_TABS ? " " : "", views[i].name);
		else
			snprintf(text, sizeof(text), "%d", (i + 1) % KEYS_OF_VIEWS);
		column = pane_text(pane, row, column, chosen ? STYLE_CHOSEN : STYLE_DIM, text) + gap;
	}
}

/* The fault of the first chosen server that has one, if any. */
static const struct server *troubled(const struct screen *screen)
{
	const struct model *model = screen->model;

	for (unsigned i = 0; i < model->count; i++)
		if ((screen->display->chosen == 0 || screen->display->chosen == i + 1) &&
		    model->servers[i].peer.error[0])
			return &model->servers[i];
	return NULL;
}

static void foot(const struct screen *screen, const struct pane *pane, int row)
{
	const struct server *bad = troubled(screen);
	struct pane line = pane_part(pane, row, 0, 1, pane->columns);
	char text[400];

	if (bad) {
		int64_t left_us = bad->peer.deadline_us - screen->now_us;

		if (bad->peer.state == PEER_DOWN && left_us > 0)
			snprintf(text, sizeof(text), " %s: %s; again in %lld s", bad->peer.address, bad->peer.error,
				 (long long)(left_us + 999999) / 1000000);
		else
			snprintf(text, sizeof(text), " %s: %s; trying again", bad->peer.address, bad->peer.error);
		pane_fill(&line, 0, STYLE_BAD);
		pane_text(&line, 0, 0, STYLE_BAD, text);
		return;
	}
	pane_fill(&line, 0, STYLE_EDGE);
	snprintf(text, sizeof(text), " q quit  h help  Tab view  p pause  +/- interval  r reset%s%s%s",
		 screen->model->count > 1 ? "  n server" : "", screen->display->view == VIEW_APPS ? "  s sort" : "",
		 screen->display->view == VIEW_KEYS ? "  w window" : "");
	pane_text(&line, 0, 0, STYLE_EDGE, text);
}

/* ---- between them ------------------------------------------------------------------------------ */

/* Draws panels one below the other, then in the next column. A panel without room in the last column is left out. */
static void flow(const struct screen *screen, const struct pane *pane)
{
	int count = pane->columns >= 2 * COLUMN_FROM + COLUMN_GAP ? 2 : 1;
	int width = (pane->columns - (count - 1) * COLUMN_GAP) / count;
	int gap = pane->rows >= AIRY_ROWS ? 1 : 0, row = 0, column = 0;

	for (int i = 0; i < VIEW_PANELS; i++) {
		const struct panel *panel = &views[screen->display->view].panels[i];
		int rows = panel->rows ? panel->rows(screen, width, pane->rows - row) : 0;
		struct pane part;

		if (rows > 0 && (rows > pane->rows - row || panel->breaks) && row > 0 && column + 1 < count) {
			column++;
			row = 0;
			rows = panel->rows(screen, width, pane->rows);
		}
		if (rows == 0 || pane->rows - row < LEAST_ROWS)
			continue;
		part = pane_part(pane, row, column * (width + COLUMN_GAP), rows, width);
		panel->draw(screen, &part);
		row += rows + gap;
	}
}

static void help(const struct pane *pane)
{
	static const char *const lines[] = {
		"q           quit",
		"1 ... 9     a view; Tab and Shift-Tab: the next, the one before",
		"n           the next server, then all of them (with several servers)",
		"p           pause and go on: nothing is asked for meanwhile",
		"+ -         a longer, a shorter interval",
		"r           totals count from now on; the server's own counters stay",
		"s           sort applications by the next column (marked *)",
		"Up Down     scroll applications; PgUp PgDn a page",
		"w           hot keys of the last minute, or of the last ten minutes",
		"h ?         this help; any key leaves it",
		"",
		"now         since the last poll; \"-\" is not known",
		"total       since the server's start or its \"stats reset\"",
		"CLWA        bytes written to the drive per byte that clients wrote",
		"ghosts      objects on flash that go with their segment unless they are read",
		"candidates  objects in DRAM that the model finds worth flash",
		"mean now    of requests since the last poll; other durations since the start",
		"several servers: sums; of durations, CLWA and the model the worst one",
	};

	pane_title(pane, 0, pane->columns, "Help");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		pane_text(pane, (int)i + 1, 0, STYLE_PLAIN, lines[i]);
}

static void choose(struct screen *screen)
{
	const struct model *model = screen->model;
	unsigned chosen = screen->display->chosen;

	screen->summary = &model->all;
	if (chosen > 0) {
		screen->summary = &model->servers[chosen - 1].summary;
		if (model->servers[chosen - 1].track.has_now)
			screen->texts = &model->servers[chosen - 1].track.now;
	}
	for (unsigned i = 0; chosen == 0 && i < model->count && !screen->texts; i++)
		if (server_answers(&model->servers[i]) || (model->count == 1 && model->servers[i].track.has_now))
			screen->texts = &model->servers[i].track.now;
	screen->figures = screen->summary->figures;
}

void screen_draw(struct canvas *canvas, const struct model *model, const struct display *display, int64_t now_us,
		 const char *clock)
{
	struct screen screen = { .model = model, .display = display, .now_us = now_us, .clock = clock };
	struct pane all = canvas_pane(canvas), middle = pane_part(&all, 2, 1, all.rows - 3, all.columns - 2);

	choose(&screen);
	head(&screen, &all);
	tabs(&screen, &all, 1);
	if (display->help)
		help(&middle);
	else if (screen.texts || model->count > 1)
		flow(&screen, &middle);
	else
		pane_text(&middle, 0, 0, STYLE_DIM, "no answer yet");
	foot(&screen, &all, all.rows - 1);
}
