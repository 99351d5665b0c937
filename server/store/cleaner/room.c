/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for a segment: a free segment on flash, and a table of the index for its slots. */
#include <math.h>

#include "segments/bins.h"
#include "server/store/cleaner/cleaner_internal.h"

#define ITEMS_AHEAD 10u
#define STEP_OBJECTS 32u /* between looks at the time */

/* ---- on flash -------------------------------------------------------------------------------- */

/* Where no object is given up, only a segment without live objects is written anew. In one of bins, or of the chain, there may
   be some as long as it is open. */
static bool may_reclaim(const struct store *store, uint32_t segment)
{
	if (cleaner_gives_up(store))
		return true;
	return seg_kind_of(store->segments, segment) == SEG_SLOTS ? fidx_segment_slots(store->index, segment) == 0
								  : !segment_is_open(store, segment);
}

bool room_on_flash(struct store *store, uint32_t *segment)
{
	enum seg_state state;
	int result = seg_next(store->segments, segment, &state);

	if (result == FS_OK && state == SEG_LIVE && may_reclaim(store, *segment) && reclaim_segment(store, *segment))
		result = seg_next(store->segments, segment, &state);
	if (result == FS_OK && state == SEG_FREE)
		return true;
	/* Candidates for a segment would be gathered in vain at each step. */
	atomic_store(&store->cleaner->offline_until_ms, clk_now_ms(store->clock) + 1000);
	return false;
}

/* ---- the index ------------------------------------------------------------------------------- */

/* The most slots that a segment of these candidates can take. */
static uint64_t gathered_slots(const struct store *store, const struct gathered *gathered)
{
	double share = fmin((double)store->segment_bytes / (double)gathered->bytes, 1);

	return (uint64_t)((double)(gathered->count - gathered->extents) * share);
}

/* Computes the candidates' places for this table. */
static void gathered_place_anew(struct store *store, struct gathered *gathered, unsigned table)
{
	for (uint32_t i = 0; i < gathered->count; i++) {
		struct seg_candidate *candidate = &gathered->candidates[i];
		const struct item *item = candidate->item;
		struct fidx_key key;

		if (i + ITEMS_AHEAD < gathered->count)
			item_prefetch(gathered->candidates[i + ITEMS_AHEAD].item);
		if (i % STEP_OBJECTS == 0)
			pace_step(store);
		fidx_key_of(store->index, store_hash(store, item_key(item), item->key_length), &key);
		candidate->place = fidx_place_in(store->index, &key, table);
	}
	gathered->table_id = fidx_table_id(store->index, table);
}

/*
 * A table for the slots. If none has room and none can be added, the oldest segments are reclaimed before their turn,
 * as if the flash were full: an insert into a full table is a long search, and drops some object in the end.
 */
bool room_in_index(struct store *store, struct gathered *gathered)
{
	struct index_sizing *sizing = &store->cleaner->sizing;
	uint32_t oldest;

	while (!tables_choose(store, gathered_slots(store, gathered), &sizing->table)) {
		sizing->was_full = true;
		sizing->calm = 0;
		if (!cleaner_gives_up(store) || !seg_oldest(store->segments, &oldest) ||
		    !reclaim_segment(store, oldest))
			return false;
	}
	if (fidx_table_id(store->index, sizing->table) != gathered->table_id)
		gathered_place_anew(store, gathered, sizing->table);
	return true;
}
