/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Searches, from the newest column to the oldest. A kill ends a search, and so do a watermark, a column whose segment is
 * gone, and the end of the chain. Only the first step of a search looks into the table of kills: what comes there later
 * is no answer to what was asked before. A bundle doesn't tell when its kills came, so those end a search that is under way, too.
 */
#include "flashindex/frugal/frugal_internal.h"

/* One search. */
struct search {
	const struct frugal *frugal;
	uint64_t below; /* sequences from there on are passed over */
	uint64_t watermark;
	uint16_t fingerprint;
	uint32_t kill;
};

/* What a cell says about the key. */
enum cell_says { CELL_NOTHING, CELL_MATCH, CELL_END };

static struct search search_of(const struct frugal *frugal, const struct frugal_key *key, uint64_t below)
{
	return (struct search){ .frugal = frugal,
				.below = below,
				.watermark = watermark_of(frugal, key->partition),
				.fingerprint = fingerprint_of(key->x),
				.kill = kill_of(key->x) };
}

/* Is the column to be read? What is older than one that can't be is hidden. */
static enum cell_says judge(const struct search *search, const struct column *column, struct frugal_found *out)
{
	if (column->sequence >= search->below)
		return CELL_NOTHING;
	if (column->sequence <= search->watermark || !column_is_open(search->frugal, column))
		return CELL_END;
	*out = (struct frugal_found){ .segment = column->segment, .sequence = column->sequence };
	return CELL_MATCH;
}

static enum cell_says search_cell(const struct search *search, const struct cell *cell, const struct column *columns,
				  struct frugal_found *out)
{
	uint32_t killed_from = cell_killed_from(cell, search->kill), column;
	uint64_t at = cell->range.first;

	while (cell->lists && cell_find(cell, search->fingerprint, &at, &column)) {
		enum cell_says says = column < killed_from ? judge(search, &columns[column], out) : CELL_END;

		if (says != CELL_NOTHING)
			return says;
	}
	return killed_from == NEVER_KILLED ? CELL_NOTHING : CELL_END;
}

static enum cell_says search_bundles(const struct search *search, const struct view *view, uint32_t partition,
				     struct frugal_found *out)
{
	for (unsigned b = 0; b < view->bundles; b++) {
		const struct bundle *bundle = view->bundle[b];
		struct cell cell = bundle_cell(bundle, partition);
		enum cell_says says = search_cell(search, &cell, bundle->column, out);

		if (says != CELL_NOTHING)
			return says;
	}
	return CELL_NOTHING;
}

/* May the key be in the chain, as far as sequences tell? */
static bool chain_may_have(const struct search *search, const struct chain *chain)
{
	return chain && chain->columns > 0 && chain->column[0].sequence > search->watermark &&
	       chain->column[chain->columns - 1].sequence < search->below;
}

void frugal_now(const struct frugal *frugal, struct frugal_since *out)
{
	const struct view *view = view_of(frugal);

	*out = (struct frugal_since){ .newest = view->newest, .chain = view->chain ? view->chain->number : 0 };
}

static bool view_may_hold(const struct view *view, const struct frugal_key *key)
{
	return view->newest != 0 && prefilter_passes(view->prefilter, key->partition, fingerprint_of(key->x));
}

bool frugal_may_hold(const struct frugal *frugal, const struct frugal_key *key)
{
	return !kills_has(frugal, key) && view_may_hold(view_of(frugal), key);
}

enum frugal_answer frugal_find(const struct frugal *frugal, const struct frugal_key *key, uint64_t below,
			       struct frugal_found *out)
{
	struct search search = search_of(frugal, key, below);
	const struct view *view = view_of(frugal);
	bool begins = below == UINT64_MAX;

	if ((begins && kills_has(frugal, key)) || !view_may_hold(view, key))
		return FRUGAL_NOTHING;
	switch (search_bundles(&search, view, key->partition, out)) {
	case CELL_MATCH:
		return FRUGAL_MATCH;
	case CELL_END:
		return FRUGAL_NOTHING;
	case CELL_NOTHING:
		break;
	}
	return chain_may_have(&search, view->chain) && chain_place(frugal, view->chain, key->partition, out)
		       ? FRUGAL_CHAIN
		       : FRUGAL_NOTHING;
}

static bool is_same_place(const struct frugal_found *a, const struct frugal_found *b)
{
	return a->segment == b->segment && a->sequence == b->sequence && a->offset == b->offset;
}

enum frugal_answer frugal_find_in(const struct frugal *frugal, const struct frugal_key *key, uint64_t below,
				  const struct frugal_found *place, const void *value, uint64_t length,
				  struct frugal_found *out)
{
	struct search search = search_of(frugal, key, below);
	const struct chain *chain = view_of(frugal)->chain;
	struct chain_record record;
	struct frugal_found now;

	if (!chain || !chain_place(frugal, chain, key->partition, &now) || !is_same_place(&now, place))
		return FRUGAL_AGAIN;
	if (!chain_record_read(value, length, chain->columns, &record))
		return FRUGAL_DAMAGED;
	return search_cell(&search, &record.cell, chain->column, out) == CELL_MATCH ? FRUGAL_MATCH : FRUGAL_NOTHING;
}

/* ---- is a result still true? ------------------------------------------------------------------- */

/* Is the newest thing that is known of the key this record? A column that was there when the search began, and is newer than
   the record, was read in vain. */
static bool is_record_newest(struct search *search, const struct view *view, uint32_t partition,
			     const struct frugal_found *record, const struct frugal_since *since)
{
	const struct chain *chain = view->chain;
	struct frugal_found found;

	for (;;) {
		enum cell_says says = search_bundles(search, view, partition, &found);

		if (says == CELL_NOTHING) /* it is in the chain, where nothing has changed */
			return chain && chain->number == since->chain && chain->columns > 0 &&
			       chain->column[0].sequence >= record->sequence;
		if (says == CELL_END || found.sequence < record->sequence || found.sequence > since->newest)
			return false;
		if (found.sequence == record->sequence)
			return true;
		search->below = found.sequence;
	}
}

bool frugal_is_true(const struct frugal *frugal, const struct frugal_key *key, const struct frugal_found *record,
		    const struct frugal_since *since)
{
	struct search search = search_of(frugal, key, UINT64_MAX);
	const struct view *view;
	struct frugal_found found;

	if (kills_has(frugal, key))
		return !record;
	view = view_of(frugal);
	if (record)
		return record->sequence > search.watermark &&
		       frugal_is_open(frugal, record->segment, record->sequence) &&
		       is_record_newest(&search, view, key->partition, record, since);
	/* Nothing was found. Columns that came since then may have the key. */
	if (view->chain && view->chain->columns > 0 && view->chain->column[0].sequence > since->newest)
		return false;
	return view->newest <= since->newest || !frugal_may_hold(frugal, key) ||
	       search_bundles(&search, view, key->partition, &found) != CELL_MATCH || found.sequence <= since->newest;
}
