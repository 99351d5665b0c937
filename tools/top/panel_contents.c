/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in the cache, estimated: shares of the objects of each tier by size, age, time to live and idle time, and the
   applications; of the chosen server, or of all servers together. */
#include "tools/top/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMNS 16
#define COLUMN_WIDTH 11
#define GROUP_LEAST 19 /* columns of a histogram: a name and two shares */
#define GROUP_MOST 40
#define SHARE_COLUMNS 6
#define LEAST_ROWS 4
#define LINES (APPS_MAX * SERVERS_MAX)

/* ---- histograms -------------------------------------------------------------------------------- */

static const char *const measure_titles[CONTENT_MEASURES] = {
	[CONTENT_SIZE] = "Size", [CONTENT_AGE] = "Age", [CONTENT_TTL] = "TTL", [CONTENT_IDLE] = "Idle"
};

/* A row for each bucket that a server has, in the order of the first one that has it. */
struct rows {
	struct {
		const char *name;
		double objects[TIERS];
	} row[CONTENT_BUCKETS];
	unsigned count;
	double all[TIERS];
};

static void add_bucket(struct rows *rows, enum tier tier, const struct histogram_bucket *bucket)
{
	unsigned i = 0;

	while (i < rows->count && strcmp(rows->row[i].name, bucket->name) != 0)
		i++;
	if (i == CONTENT_BUCKETS)
		return;
	if (i == rows->count)
		rows->row[rows->count++].name = bucket->name;
	rows->row[i].objects[tier] += bucket->objects;
	rows->all[tier] += bucket->objects;
}

static void gather_rows(const struct screen *screen, enum content_measure measure, struct rows *rows)
{
	memset(rows, 0, sizeof(*rows));
	for (unsigned i = 0; i < screen->model->count; i++)
		for (enum tier tier = 0; tier < TIERS && panel_is_chosen(screen, i); tier++) {
			const struct histogram *histogram =
				&screen->model->servers[i].track.now.histograms[tier][measure];

			for (unsigned n = 0; n < histogram->count; n++)
				add_bucket(rows, tier, &histogram->bucket[n]);
		}
}

int histograms_rows(const struct screen *screen, int columns, int available)
{
	unsigned most = 0;

	(void)columns;
	(void)available;
	for (enum content_measure measure = 0; measure < CONTENT_MEASURES; measure++) {
		struct rows rows;

		gather_rows(screen, measure, &rows);
		most = rows.count > most ? rows.count : most;
	}
	return most > 0 ? (int)most + 1 : 0;
}

static void draw_share(const struct pane *pane, int row, int end, double objects, double all, enum style style)
{
	char text[FIGURE_TEXT_BYTES];

	if (!(all > 0))
		pane_right(pane, row, end, STYLE_DIM, "-");
	else if (objects > 0) {
		snprintf(text, sizeof(text), "%.*f %%", objects / all < 0.0995 ? 1 : 0, 100 * fmin(objects / all, 1));
		pane_right(pane, row, end, style, text);
	}
}

static void draw_measure(const struct screen *screen, const struct pane *pane, enum content_measure measure)
{
	int flash = pane->columns - 1, dram = flash - SHARE_COLUMNS - 1;
	struct rows rows;

	gather_rows(screen, measure, &rows);
	pane_title(pane, 0, dram - SHARE_COLUMNS, measure_titles[measure]);
	pane_right(pane, 0, dram, STYLE_DIM, "DRAM");
	pane_right(pane, 0, flash, STYLE_DIM, "flash");
	for (unsigned i = 0; i < rows.count; i++) {
		pane_text(pane, (int)i + 1, 0, STYLE_PLAIN, rows.row[i].name);
		draw_share(pane, (int)i + 1, dram, rows.row[i].objects[TIER_DRAM], rows.all[TIER_DRAM], STYLE_DRAM);
		draw_share(pane, (int)i + 1, flash, rows.row[i].objects[TIER_FLASH], rows.all[TIER_FLASH], STYLE_FLASH);
	}
}

void histograms_draw(const struct screen *screen, const struct pane *pane)
{
	int groups = pane->columns / GROUP_LEAST, width;

	groups = groups < 1 ? 1 : groups > CONTENT_MEASURES ? CONTENT_MEASURES : groups;
	width = pane->columns / groups < GROUP_MOST ? pane->columns / groups : GROUP_MOST;
	for (int i = 0; i < groups; i++) {
		struct pane part = pane_part(pane, 0, i * width, pane->rows, width);

		draw_measure(screen, &part, (enum content_measure)i);
	}
}

/* ---- applications ------------------------------------------------------------------------------ */

struct line {
	const char *name;
	double amount[TIERS][CONTENT_AMOUNTS];
};

/* The sums over all first, then those with the most bytes in both tiers. */
static int compare(const void *first, const void *second)
{
	const struct line *a = first, *b = second;
	bool all_a = strcmp(a->name, CONTENT_ALL) == 0, all_b = strcmp(b->name, CONTENT_ALL) == 0;
	double x = a->amount[TIER_DRAM][CONTENT_BYTES] + a->amount[TIER_FLASH][CONTENT_BYTES];
	double y = b->amount[TIER_DRAM][CONTENT_BYTES] + b->amount[TIER_FLASH][CONTENT_BYTES];

	if (all_a != all_b)
		return all_a ? -1 : 1;
	return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

static void add_content(struct line lines[LINES], unsigned *count, const struct content *content)
{
	unsigned i = 0;

	while (i < *count && strcmp(lines[i].name, content->name) != 0)
		i++;
	if (i == *count)
		lines[(*count)++] = (struct line){ .name = content->name };
	for (int tier = 0; tier < TIERS; tier++)
		for (int a = 0; a < CONTENT_AMOUNTS; a++)
			if (!isnan(content->amount[tier][a]))
				lines[i].amount[tier][a] += content->amount[tier][a];
}

static unsigned gather(const struct screen *screen, struct line lines[LINES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < screen->model->count; i++) {
		const struct sample *sample = &screen->model->servers[i].track.now;

		for (unsigned n = 0; panel_is_chosen(screen, i) && n < sample->content_count; n++)
			add_content(lines, &count, &sample->contents[n]);
	}
	qsort(lines, count, sizeof(lines[0]), compare);
	return count;
}

int contents_rows(const struct screen *screen, int columns, int available)
{
	static struct line lines[LINES];
	int wanted = (int)gather(screen, lines) + 1;

	(void)columns;
	if (wanted == 1)
		return 2;
	return wanted <= available || available < LEAST_ROWS ? wanted : available;
}

/* Narrow panes keep the first ones. */
static const struct column {
	const char *name;
	enum tier tier;
	enum content_amount amount;
	enum unit unit;
} columns_shown[] = {
	{ "DRAM", TIER_DRAM, CONTENT_BYTES, UNIT_BYTES },
	{ "objects", TIER_DRAM, CONTENT_OBJECTS, UNIT_COUNT },
	{ "flash", TIER_FLASH, CONTENT_BYTES, UNIT_BYTES },
	{ "objects", TIER_FLASH, CONTENT_OBJECTS, UNIT_COUNT },
};
#define COLUMNS (int)(sizeof(columns_shown) / sizeof(columns_shown[0]))

static void draw_line(const struct pane *pane, int row, const struct line *line)
{
	struct pane name = pane_part(pane, row, 0, 1, NAME_COLUMNS);

	pane_text(&name, 0, 0, STYLE_PLAIN, line->name);
	for (int i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns_shown[i];
		int end = NAME_COLUMNS + (i + 1) * COLUMN_WIDTH;
		char text[FIGURE_TEXT_BYTES];

		if (end <= pane->columns)
			pane_right(pane, row, end, column->amount == CONTENT_BYTES ? STYLE_STRONG : STYLE_PLAIN,
				   figure_text(column->unit, line->amount[column->tier][column->amount], text));
	}
}

static const char *none_text(const struct screen *screen)
{
	for (unsigned i = 0; i < screen->model->count; i++)
		if (panel_is_chosen(screen, i) && screen->model->servers[i].track.now.flashield[0])
			return "no samples yet, or --sample-contents=off";
	return "the server tells nothing of its contents";
}

void contents_draw(const struct screen *screen, const struct pane *pane)
{
	static struct line lines[LINES];
	unsigned count = gather(screen, lines);

	pane_title(pane, 0, NAME_COLUMNS, "Contents, about");
	for (int i = 0; i < COLUMNS; i++) {
		int end = NAME_COLUMNS + (i + 1) * COLUMN_WIDTH;

		if (end <= pane->columns)
			pane_right(pane, 0, end, STYLE_DIM, columns_shown[i].name);
	}
	if (count == 0)
		pane_text(pane, 1, 0, STYLE_DIM, none_text(screen));
	for (unsigned i = 0; i < count && (int)i + 1 < pane->rows; i++)
		draw_line(pane, (int)i + 1, &lines[i]);
}
