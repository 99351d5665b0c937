/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define LOOK_UP_US 100000 /* at most between a look-up and what it was made for */

void rows_init(struct rows *rows, int64_t window_us)
{
	*rows = (struct rows){ .window_us = window_us, .newest_us = INT64_MIN };
	rows->ring = mem_must_zalloc(ROWS_MAX * sizeof(*rows->ring));
	rows->newest = mem_must_zalloc(ROWS_MAX * sizeof(*rows->newest));
}

void rows_fini(struct rows *rows)
{
	mem_free(rows->ring);
	mem_free(rows->newest);
}

static struct row *row_of(const struct rows *rows, uint64_t number)
{
	return &rows->ring[number & (ROWS_MAX - 1)];
}

/* The newest waiting row of the key with a number below `below`; NULL: there is none. */
static struct row *row_before(const struct rows *rows, uint64_t key, uint64_t below, uint64_t *number)
{
	uint64_t next = rows->newest[key & (ROWS_MAX - 1)];

	while (next > rows->tail) {
		struct row *row = row_of(rows, next - 1);

		if (row->key == key && next - 1 < below) {
			*number = next - 1;
			return row;
		}
		next = row->older;
	}
	return NULL;
}

static struct row *add_row(struct rows *rows, const struct event *event, enum row_op op)
{
	uint64_t *newest = &rows->newest[event->key & (ROWS_MAX - 1)];
	struct row *row = row_of(rows, rows->head);

	must(rows->head - rows->tail < ROWS_MAX);
	*row = (struct row){
		.key = event->key,
		.older = *newest,
		.time_us = rows->newest_us,
		.ttl_s = event->ttl_s,
		.size = event->size,
		.connection = event->connection,
		.op = (uint8_t)op,
		.key_size = event->key_size,
	};
	memcpy(row->app, event->app, sizeof(row->app));
	*newest = ++rows->head;
	return row;
}

static void add_get(struct rows *rows, const struct event *event)
{
	struct row *row = add_row(rows, event, ROW_GET);

	row->found = event->found;
	row->look_up = event->kind == LINE_GET && !event->tells_tier;
	row->ttl_s = 0;
	if (!event->found)
		row->size = -1;
}

/* The look-up that the server made for this event; NULL: it has none. connection -1: any. */
static struct row *look_up_of(const struct rows *rows, const struct event *event)
{
	uint64_t number = rows->head;
	struct row *row;

	while ((row = row_before(rows, event->key, number, &number))) {
		if (rows->newest_us - row->time_us > LOOK_UP_US)
			return NULL;
		if (row->look_up && !row->aside && (event->connection < 0 || row->connection == event->connection))
			return row;
	}
	return NULL;
}

/* Gives size and TTL of a set to the gets that missed before it. False if there was none. */
static bool fill_misses(struct rows *rows, const struct event *event)
{
	uint64_t number = rows->head;
	bool filled = false;
	struct row *row;

	while ((row = row_before(rows, event->key, number, &number))) {
		if (row->aside)
			continue;
		if (row->op != ROW_GET || row->found || row->left_out ||
		    rows->newest_us - row->time_us > rows->window_us)
			break;
		row->size = event->size;
		row->ttl_s = event->ttl_s;
		filled = true;
	}
	return filled;
}

static void add_store(struct rows *rows, const struct event *event)
{
	struct row *look_up = event->connection < 0 ? NULL : look_up_of(rows, event), *row;
	bool filled;

	if (look_up) {
		look_up->left_out = look_up->aside = true;
		rows->counts.look_ups++;
	}
	if (!event->found) {
		rows->counts.refused++;
		return;
	}
	filled = event->fills && !event->expired && rows->window_us > 0 && fill_misses(rows, event);
	row = add_row(rows, event, event->expired ? ROW_DELETE : ROW_SET);
	if (event->expired)
		row->size = -1;
	if (filled) {
		row->left_out = true;
		rows->counts.fills++;
	}
}

/* memcached's line for a deleted object stands behind that of its look-up. */
static void add_deleted(struct rows *rows, const struct event *event)
{
	struct row *look_up = look_up_of(rows, event);

	if (look_up) {
		look_up->left_out = look_up->aside = true;
		rows->counts.look_ups++;
	}
	add_row(rows, event, ROW_DELETE)->size = -1;
}

void rows_add(struct rows *rows, const struct event *event)
{
	if (event->time_us > rows->newest_us)
		rows->newest_us = event->time_us;
	switch ((enum line_kind)event->kind) {
	case LINE_GET:
		add_get(rows, event);
		break;
	case LINE_UPDATE:
		rows->counts.updates++;
		add_get(rows, event);
		break;
	case LINE_STORE:
		add_store(rows, event);
		break;
	case LINE_DELETED:
		add_deleted(rows, event);
		break;
	case LINE_DELETE:
		add_row(rows, event, ROW_DELETE)->size = -1;
		break;
	default:
		break;
	}
}

bool rows_next(struct rows *rows, bool all, struct row *out)
{
	int64_t wait_us = rows->window_us > LOOK_UP_US ? rows->window_us : LOOK_UP_US;

	while (rows->tail < rows->head) {
		const struct row *row = row_of(rows, rows->tail);

		if (!all && rows->head - rows->tail < ROWS_MAX && row->time_us >= rows->newest_us - wait_us)
			return false;
		rows->tail++;
		if (!row->left_out) {
			*out = *row;
			return true;
		}
	}
	return false;
}
