/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats hotkeys [COUNT]": the keys that get the most requests, move the most bytes and cost the most flash reads, over the
 * last minute and the last ten minutes. A row's name is MEASURE:WINDOW:RANK.
 */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/events.h"
#include "server/count/hotkeys.h"
#include "server/store/store.h"

#define ROWS_DEFAULT 20u
#define NAME_BYTES 32

static const char *const shown_words[] = {
	[HOTKEYS_KEYS] = "keys", [HOTKEYS_HASHES] = "hashes", [HOTKEYS_OFF] = "off"
};

static const char *const measures[HEAVY_MEASURES] = {
	[HEAVY_REQUESTS] = "requests", [HEAVY_BYTES] = "bytes", [HEAVY_READS] = "reads"
};

static const char *const windows[HOTKEYS_WINDOWS] = { [HOTKEYS_MINUTE] = "1m", [HOTKEYS_TEN_MINUTES] = "10m" };

static void add_figure(struct stats_out *out, enum heavy_measure by, enum hotkeys_window window, const char *figure,
		       uint64_t value)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s:%s:%s", measures[by], windows[window], figure);
	stats_add(out, name, "%" PRIu64, value);
}

/* The text is in the heap, which core dumps leave out: a stack keeps the keys of a report for long. */
struct row_text {
	char text[3 * STORE_KEY_MAX + 256];
};

static void add_key(struct stats_out *out, const char *name, const struct heavy_row *row, struct row_text *value)
{
	size_t at = 0;

	if (row->key && row->key[0] <= STORE_KEY_MAX) {
		memcpy(value->text, "key=", 4);
		events_key((const char *)row->key + 1, row->key[0], value->text + 4);
		at = strlen(value->text);
		value->text[at++] = ' ';
	}
	snprintf(value->text + at, sizeof(value->text) - at,
		 "hash=%016" PRIx64 " requests=%" PRIu64 " bytes=%" PRIu64 " reads=%" PRIu64 " error=%" PRIu64
		 " since=%" PRId64,
		 row->shown, row->amount[HEAVY_REQUESTS], row->amount[HEAVY_BYTES], row->amount[HEAVY_READS],
		 row->error, row->since);
	out->row(out, name, value->text);
}

static void add_window(struct stats_out *out, enum heavy_measure by, enum hotkeys_window window, unsigned most)
{
	struct heavy_list *list = hotkeys_read(by, window, most);
	struct row_text *value = mem_alloc(sizeof(*value));
	int64_t now = clk_wall_seconds();
	char name[NAME_BYTES];

	if (list && value) {
		add_figure(out, by, window, "seconds", now > list->since ? (uint64_t)(now - list->since) : 0);
		add_figure(out, by, window, "total", list->total);
		for (unsigned i = 0; i < list->count; i++) {
			snprintf(name, sizeof(name), "%s:%s:%u", measures[by], windows[window], i + 1);
			add_key(out, name, &list->rows[i], value);
		}
	}
	mem_free(value);
	heavy_list_free(list);
}

const char *stats_hotkeys(const struct server *server, const char *words, struct stats_out *out)
{
	char *rest;
	unsigned long most = *words ? strtoul(words, &rest, 10) : ROWS_DEFAULT;

	(void)server;
	if (*words && (*words < '0' || *words > '9' || *rest || most == 0 || most > HOTKEYS_MOST))
		return "CLIENT_ERROR usage: stats hotkeys [1 to 100]\r\n";
	stats_add(out, "shown", "%s", shown_words[hotkeys_are_shown()]);
	stats_add(out, "sampled_each", "%u", HOTKEYS_EACH);
	stats_add(out, "reads_sampled_each", "%u", HOTKEYS_READS_EACH);
	for (enum heavy_measure by = 0; by < HEAVY_MEASURES; by++)
		for (enum hotkeys_window window = 0; window < HOTKEYS_WINDOWS; window++)
			add_window(out, by, window, (unsigned)most);
	return STATS_END;
}
