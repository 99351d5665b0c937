/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest slow requests of the chosen server, or of all servers together. */
#include "tools/top/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIME_COLUMNS 9
#define PART_WIDTH 9
#define WORDS_COLUMNS 24 /* command, status and tier */
#define KEY_LEAST 20
#define PEER_COLUMNS 24
#define LINES (SLOW_REQUESTS * SERVERS_MAX)
#define AT_MOST 1e11 /* a time beyond that is damaged */

/* The newest first; those of one second in the order in which their servers have them. */
static int compare(const void *first, const void *second)
{
	const struct slow_request *a = *(const struct slow_request *const *)first,
				  *b = *(const struct slow_request *const *)second;

	if (a->at != b->at)
		return a->at < b->at ? 1 : -1;
	return a < b ? -1 : a > b;
}

static unsigned gather(const struct screen *screen, const struct slow_request *lines[LINES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < screen->model->count; i++) {
		const struct sample *sample = &screen->model->servers[i].track.now;

		for (unsigned n = 0; panel_is_chosen(screen, i) && n < sample->slow_count; n++)
			lines[count++] = &sample->slow[n];
	}
	qsort(lines, count, sizeof(const struct slow_request *), compare);
	return count;
}

int slow_rows(const struct screen *screen, int columns, int available)
{
	(void)screen;
	(void)columns;
	return available;
}

/* Narrow panes keep the first ones. */
static const struct column {
	const char *name;
	enum slow_part part;
} columns_shown[SLOW_PARTS] = {
	{ "total", SLOW_TOTAL }, { "flash", SLOW_FLASH }, { "run", SLOW_RUN },
	{ "queue", SLOW_QUEUE }, { "send", SLOW_SEND },
};

static int columns_of(const struct pane *pane)
{
	int count = (pane->columns - TIME_COLUMNS - WORDS_COLUMNS - KEY_LEAST) / PART_WIDTH;

	return count < 1 ? 1 : count > SLOW_PARTS ? SLOW_PARTS : count;
}

static void head(const struct pane *pane)
{
	int column = TIME_COLUMNS;

	pane_title(pane, 0, TIME_COLUMNS - 1, "Slow");
	for (int i = 0; i < columns_of(pane); i++, column += PART_WIDTH)
		pane_right(pane, 0, column + PART_WIDTH - 1, i == 0 ? STYLE_STRONG : STYLE_DIM, columns_shown[i].name);
	pane_text(pane, 0, column, STYLE_DIM, "request");
	pane_text(pane, 0, column + WORDS_COLUMNS, STYLE_DIM, "key");
}

/* Draws the key, and the client where there is room for both. */
static void draw_names(const struct pane *pane, int row, int column, const struct slow_request *request)
{
	int left = pane->columns - column, width = left > KEY_LEAST + PEER_COLUMNS ? left - PEER_COLUMNS : left;
	struct pane part = pane_part(pane, row, column, 1, width);
	char text[HOT_KEY_BYTES + 40];

	if (request->together > 1)
		snprintf(text, sizeof(text), "%.0f with %s", request->together, request->name);
	else
		snprintf(text, sizeof(text), "%s", request->name);
	pane_text(&part, 0, 0, STYLE_PLAIN, text);
	if (width < left)
		pane_text(pane, row, column + width + 1, STYLE_DIM, request->peer);
}

static void draw_line(const struct pane *pane, int row, const struct slow_request *request)
{
	time_t at = request->at > 0 && request->at < AT_MOST ? (time_t)request->at : 0;
	int column = TIME_COLUMNS;
	char text[80] = "-";
	struct tm local;
	struct pane part;

	if (at > 0 && localtime_r(&at, &local))
		strftime(text, sizeof(text), "%H:%M:%S", &local);
	pane_text(pane, row, 0, STYLE_DIM, text);
	for (int i = 0; i < columns_of(pane); i++, column += PART_WIDTH) {
		char figure[FIGURE_TEXT_BYTES];

		pane_right(pane, row, column + PART_WIDTH - 1, i == 0 ? STYLE_STRONG : STYLE_PLAIN,
			   figure_text(UNIT_MICROSECONDS, request->us[columns_shown[i].part], figure));
	}
	snprintf(text, sizeof(text), "%s %s %s", request->command, request->status, request->tier);
	part = pane_part(pane, row, column, 1, WORDS_COLUMNS - 1);
	pane_text(&part, 0, 0, STYLE_PLAIN, text);
	draw_names(pane, row, column + WORDS_COLUMNS, request);
}

static const char *none_text(const struct screen *screen)
{
	for (unsigned i = 0; i < screen->model->count; i++)
		if (panel_is_chosen(screen, i) && screen->model->servers[i].track.now.has[REPORT_SLOW])
			return "none was slow, or --slow-log-threshold is 0";
	return "the server tells nothing of slow requests";
}

void slow_draw(const struct screen *screen, const struct pane *pane)
{
	const struct slow_request *lines[LINES] = { NULL };
	unsigned count = gather(screen, lines), shown = pane->rows > 1 ? (unsigned)pane->rows - 1 : 0;

	head(pane);
	if (count == 0)
		pane_text(pane, 1, 0, STYLE_DIM, none_text(screen));
	for (unsigned i = 0; i < count && i < shown; i++)
		draw_line(pane, (int)i + 1, lines[i]);
}
