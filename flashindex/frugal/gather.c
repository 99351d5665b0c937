/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A partition's cells of several bundles, and its old chain record, become one cell: the columns one behind the other, the
 * newest first, without those that are of no use, and the kills with the numbers of the columns in the result.
 *
 * A column goes when its segment is gone and no older one is open. A kill goes when a newer one of the same key is about the same
 * columns, or, where the result has everything that is older, when no older column has its fingerprint.
 */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

/* Returns the columns of a source; the last source is the old chain, if there is one. */
static uint32_t source_columns(const struct gathering *gathering, unsigned source)
{
	return source < gathering->bundles ? gathering->bundle[source]->columns : gathering->chain->columns;
}

static const struct column *source_column(const struct gathering *gathering, unsigned source)
{
	return source < gathering->bundles ? gathering->bundle[source]->column : gathering->chain->column;
}

static unsigned sources_of(const struct gathering *gathering)
{
	return gathering->bundles + (gathering->chain ? 1 : 0);
}

/* Chooses the columns of the result. */
static void choose_columns(struct gathering *gathering)
{
	const struct frugal *frugal = gathering->frugal;
	uint64_t oldest = segments_oldest(frugal);
	uint32_t at = 0;

	for (unsigned s = 0; s < sources_of(gathering); s++) {
		const struct column *column = source_column(gathering, s);

		for (uint32_t c = 0; c < source_columns(gathering, s); c++, at++) {
			gathering->before[at] = gathering->columns;
			gathering->keeps[at] = column[c].sequence >= oldest && gathering->columns < COLUMNS_MOST;
			if (gathering->keeps[at])
				gathering->column[gathering->columns++] = column[c];
		}
		gathering->before[at++] = gathering->columns;
	}
}

int gathering_begin(struct gathering *gathering, const struct frugal *frugal, unsigned first, unsigned count,
		    bool with_chain)
{
	uint64_t columns = 0;

	*gathering = (struct gathering){ .frugal = frugal,
					 .bundles = count,
					 .chain = with_chain ? frugal->chain : NULL,
					 .filters_kills = with_chain };
	must(first + count <= frugal->bundles);
	memcpy(gathering->bundle, frugal->bundle + first, count * sizeof(gathering->bundle[0]));
	for (unsigned s = 0; s < sources_of(gathering); s++)
		columns += source_columns(gathering, s) + 1;
	gathering->before = mem_alloc((columns + 1) * sizeof(*gathering->before));
	gathering->keeps = mem_zalloc(columns + 1);
	gathering->column = mem_alloc((columns + 1) * sizeof(*gathering->column));
	gathering->counts = mem_alloc((columns + 1) * sizeof(*gathering->counts));
	if (!gathering->before || !gathering->keeps || !gathering->column || !gathering->counts) {
		gathering_end(gathering);
		return FS_ENOMEM;
	}
	choose_columns(gathering);
	return FS_OK;
}

void gathering_end(struct gathering *gathering)
{
	mem_free(gathering->before);
	mem_free(gathering->keeps);
	mem_free(gathering->column);
	mem_free(gathering->counts);
	mem_free(gathering->values);
	mem_free(gathering->kills);
	memset(gathering, 0, sizeof(*gathering));
}

/* ---- a cell ---------------------------------------------------------------------------------- */

static FS_MUST_CHECK bool make_room(struct gathering *gathering, uint64_t values, uint64_t kills)
{
	if (gathering->value_count + values > gathering->value_room) {
		uint64_t room = 2 * (gathering->value_count + values);
		uint16_t *more = mem_realloc(gathering->values, room * sizeof(*more));

		if (!more)
			return false;
		gathering->values = more;
		gathering->value_room = room;
	}
	if (gathering->kill_count + kills > gathering->kill_room) {
		uint64_t room = 2 * (gathering->kill_count + kills);
		struct gathered_kill *more = mem_realloc(gathering->kills, room * sizeof(*more));

		if (!more)
			return false;
		gathering->kills = more;
		gathering->kill_room = room;
	}
	return true;
}

static bool has_kill(const struct gathering *gathering, uint32_t kill)
{
	for (uint64_t i = 0; i < gathering->kill_count; i++)
		if (gathering->kills[i].kill == kill)
			return true;
	return false;
}

/* Adds a source's kills. Those of newer sources are there: of two for one key the newer one is about more columns. */
static void add_kills(struct gathering *gathering, const struct cell *cell, const uint32_t *before, uint32_t columns)
{
	for (uint64_t i = 0; i < cell->kill_count; i++) {
		uint32_t from = cell->kill_columns[i] < columns ? cell->kill_columns[i] : columns;

		if (!has_kill(gathering, cell->kills[i]))
			gathering->kills[gathering->kill_count++] =
				(struct gathered_kill){ .kill = cell->kills[i], .column = (uint16_t)before[from] };
	}
}

static void add_columns(struct gathering *gathering, const struct cell *cell, uint32_t at, uint32_t columns)
{
	struct lists_reader reader = { .lists = cell->lists, .at = cell->range.bit, .values = cell->range.first };
	uint64_t left = cell->range.end - cell->range.first;
	const uint16_t *from = cell->values + cell->range.first;

	for (uint32_t c = 0; c < columns; c++) {
		uint32_t count = lists_read(&reader);

		if (count > left)
			count = (uint32_t)left;
		left -= count;
		if (gathering->keeps[at + c]) {
			gathering->counts[gathering->before[at + c]] = count;
			if (count)
				memcpy(gathering->values + gathering->value_count, from, count * sizeof(*from));
			gathering->value_count += count;
		}
		from += count;
	}
}

/* Drops kills of keys whose fingerprint is in none of the columns that they are about. */
static void filter_kills(struct gathering *gathering)
{
	uint64_t kept = 0, value = 0;
	uint32_t column = 0;

	/* Kills are in order of their columns. */
	for (uint64_t i = 0; i < gathering->kill_count; i++) {
		struct gathered_kill kill = gathering->kills[i];

		for (; column < kill.column; column++)
			value += gathering->counts[column];
		if (values16_find(gathering->values, value, gathering->value_count, (uint16_t)kill.kill) <
		    gathering->value_count)
			gathering->kills[kept++] = kill;
	}
	gathering->kill_count = kept;
}

int gathering_cell(struct gathering *gathering, uint32_t partition, const struct chain_record *old)
{
	uint32_t at = 0;

	gathering->value_count = gathering->kill_count = 0;
	memset(gathering->counts, 0, gathering->columns * sizeof(*gathering->counts));
	for (unsigned s = 0; s < sources_of(gathering); s++) {
		uint32_t columns = source_columns(gathering, s);
		struct cell cell = { 0 };

		if (s < gathering->bundles)
			cell = bundle_cell(gathering->bundle[s], partition);
		else if (old)
			cell = old->cell;
		if (!make_room(gathering, cell.range.end - cell.range.first, cell.kill_count))
			return FS_ENOMEM;
		add_kills(gathering, &cell, gathering->before + at, columns);
		if (cell.lists && columns > 0)
			add_columns(gathering, &cell, at, columns);
		at += columns + 1;
	}
	if (gathering->filters_kills)
		filter_kills(gathering);
	return FS_OK;
}
