/* SPDX-License-Identifier: BSD-3-Clause */
/* The hottest keys by requests, by bytes and by flash reads: those of the chosen server, or of all servers together. */
#include "tools/top/panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_WIDTH 11
#define COLUMNS 4
#define KEY_LEAST 16
#define PANELS 3 /* in this view */
#define LEAST_ROWS 3

/* A key with its rates, and what server it is from. */
struct line {
	const struct hot_key *key;
	double rate[HOT_MEASURES]; /* per second */
	double share; /* of all, by the measure that ranks */
	enum hot_measure by;
};

static int compare(const void *first, const void *second)
{
	const struct line *a = first, *b = second;
	double x = a->rate[a->by], y = b->rate[b->by];

	return x < y ? 1 : x > y ? -1 : strcmp(a->key->name, b->key->name);
}

/* Fills lines with the keys of all chosen servers, the hottest first. Returns their number, at most HOT_KEYS x SERVERS_MAX. */
static unsigned gather(const struct screen *screen, enum hot_measure by, struct line *lines)
{
	unsigned count = 0;
	double all = 0; /* per second, of all chosen servers */

	for (unsigned i = 0; i < screen->model->count; i++) {
		const struct hot_keys *keys = &screen->model->servers[i].track.now.hot[by][screen->display->window];
		double seconds = fmax(keys->seconds, 1);

		if (!panel_is_chosen(screen, i) || isnan(keys->total))
			continue;
		all += keys->total / seconds;
		for (unsigned rank = 0; rank < HOT_KEYS; rank++) {
			struct line *line = &lines[count];

			if (!keys->key[rank].name[0])
				continue;
			*line = (struct line){ .key = &keys->key[rank], .by = by };
			for (int m = 0; m < HOT_MEASURES; m++)
				line->rate[m] = keys->key[rank].amount[m] / seconds;
			count++;
		}
	}
	for (unsigned i = 0; i < count; i++)
		lines[i].share = all > 0 ? fmin(lines[i].rate[by] / all, 1) : NAN;
	qsort(lines, count, sizeof(lines[0]), compare);
	return count;
}

static bool is_told(const struct screen *screen)
{
	for (unsigned i = 0; i < screen->model->count; i++)
		if (panel_is_chosen(screen, i) && screen->model->servers[i].track.now.has[REPORT_HOTKEYS])
			return true;
	return false;
}

/* left: panels that are to come, this one included. */
static int rows_of(const struct screen *screen, enum hot_measure by, int left, int available)
{
	struct line lines[HOT_KEYS * SERVERS_MAX];
	int wanted = (int)gather(screen, by, lines) + 1, share = available / left;

	if (wanted == 1)
		return by == HOT_REQUESTS ? 2 : 0;
	if (wanted > (int)HOT_KEYS + 1)
		wanted = HOT_KEYS + 1;
	share = share > LEAST_ROWS ? share : LEAST_ROWS;
	return wanted < share ? wanted : share;
}

static void draw_of(const struct screen *screen, const struct pane *pane, enum hot_measure by, const char *title)
{
	static const char *const heads[COLUMNS] = { "request/s", "bytes", "read/s", "share" };
	static const enum unit units[COLUMNS] = { UNIT_RATE, UNIT_SPEED, UNIT_RATE, UNIT_RATIO };
	struct line lines[HOT_KEYS * SERVERS_MAX];
	unsigned count = gather(screen, by, lines), columns = COLUMNS;
	int width;

	while (columns > 0 && pane->columns - (int)columns * COLUMN_WIDTH < KEY_LEAST)
		columns--;
	width = pane->columns - (int)columns * COLUMN_WIDTH;
	pane_title(pane, 0, width, title);
	for (unsigned c = 0; c < columns; c++)
		pane_right(pane, 0, width + (int)(c + 1) * COLUMN_WIDTH, c == by ? STYLE_STRONG : STYLE_DIM, heads[c]);
	if (count == 0)
		pane_text(pane, 1, 0, STYLE_DIM,
			  is_told(screen) ? "none were asked for" : "the server tells nothing of hot keys");
	for (unsigned i = 0; i < count && (int)i + 1 < pane->rows; i++) {
		const struct line *line = &lines[i];
		const double values[COLUMNS] = { line->rate[HOT_REQUESTS], line->rate[HOT_BYTES], line->rate[HOT_READS],
						 line->share };
		struct pane name = pane_part(pane, (int)i + 1, 0, 1, width);
		char text[FIGURE_TEXT_BYTES];

		pane_text(&name, 0, 0, STYLE_PLAIN, line->key->name);
		for (unsigned c = 0; c < columns; c++)
			pane_right(pane, (int)i + 1, width + (int)(c + 1) * COLUMN_WIDTH,
				   c == by ? STYLE_STRONG : STYLE_PLAIN, figure_text(units[c], values[c], text));
	}
}

static const char *title_of(const struct screen *screen, const char *minute, const char *ten)
{
	return screen->display->window == HOT_MINUTE ? minute : ten;
}

int hot_requests_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	return rows_of(screen, HOT_REQUESTS, PANELS, available);
}

int hot_bytes_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	return rows_of(screen, HOT_BYTES, PANELS - 1, available);
}

int hot_reads_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	return rows_of(screen, HOT_READS, PANELS - 2, available);
}

void hot_requests_draw(const struct screen *screen, const struct pane *pane)
{
	draw_of(screen, pane, HOT_REQUESTS,
		title_of(screen, "Keys by requests, last minute", "Keys by requests, last 10 minutes"));
}

void hot_bytes_draw(const struct screen *screen, const struct pane *pane)
{
	draw_of(screen, pane, HOT_BYTES,
		title_of(screen, "Keys by bytes, last minute", "Keys by bytes, last 10 minutes"));
}

void hot_reads_draw(const struct screen *screen, const struct pane *pane)
{
	draw_of(screen, pane, HOT_READS,
		title_of(screen, "Keys by flash reads, last minute", "Keys by flash reads, last 10 minutes"));
}
