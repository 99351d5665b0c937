/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index over a kill: tables, extents and rows of segments lie in the region as the killed process has left them.
 * fidx_attach reads and judges head and rows, and changes nothing. fidx_repair finishes what is known by the head. Both
 * take a time that follows from the number of segments alone. Slots and extents are judged when they are looked up, and
 * finished with by the recount (recount.c), while the index is used.
 *
 *   was killed in ...            is left                                   is repaired by
 *   a change of a slot           one 32-bit store: the old slot or the new one
 *   a relocation                 the slot twice, as the head tells         fidx_repair: the first one is emptied
 *   a change of an extent        an empty entry; or, as the hash comes last, one under an older hash, which leads
 *                                that key to a foreign record, a miss
 *   a move of extents            both tables in use; an entry in both      the recount: the rest is moved, the second one
 *                                                                          dropped. Lookups and clears look in both
 *   adding a table               a table that is not live                  fidx_repair: its memory is given back
 *   dropping a table             the same                                  the same
 *   a commit                     an open segment with some of its slots
 *   a reclaim, during the walk   an open segment with the rest of its slots
 *   a reclaim, after the close   a closed segment with some slots, which   the recount: they are emptied before a segment
 *                                clients no longer cleared                 can be opened. Until then a lookup finds none of
 *                                                                          a closed segment
 *   a recount                    what it had found, or less of it          the next recount
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/error.h"
#include "flashindex/extents_internal.h"

/* ---- judging ----------------------------------------------------------------------------------- */

static int judge_head(const struct fidx *index, uint64_t seed)
{
	const struct region_index *kept = index->kept;
	uint32_t live = atomic_load(&kept->live);

	if (kept->segments != index->segments || kept->functions != index->functions ||
	    kept->tag_bits != index->layout.tag_bits || kept->clock_mode != (uint32_t)index->clock_mode ||
	    kept->seed != seed)
		return FS_EINVAL;
	if (live == 0 || live >> FIDX_TABLES || atomic_load(&kept->extents_current) >= EXTENT_TABLES)
		return FS_ECORRUPT;
	return FS_OK;
}

static int attach_tables(struct fidx *index)
{
	const struct region_index *kept = index->kept;
	uint32_t live = atomic_load(&kept->live);
	int result = FS_OK;

	index->next_table_id = atomic_load(&kept->next_table_id);
	for (uint32_t left = live; left && result == FS_OK; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);
		uint64_t buckets = atomic_load(&kept->table[t].buckets), id = atomic_load(&kept->table[t].id);

		if (buckets < 2 || buckets > index->buckets_most || id >= index->next_table_id)
			return FS_ECORRUPT;
		result = region_commit(index->region, table_area(t), buckets * sizeof(struct bucket));
		if (result == FS_OK)
			table_set(&index->table[t], buckets, (uint32_t)id);
	}
	if (result == FS_OK)
		tables_publish(index, live);
	return result;
}

static int attach_extent_tables(struct fidx *index)
{
	const struct region_index *kept = index->kept;
	int result = FS_OK;

	for (unsigned t = 0; t < EXTENT_TABLES && result == FS_OK; t++) {
		uint64_t groups = atomic_load(&kept->extent_groups[t]);
		enum region_area area = (enum region_area)(REGION_EXTENTS_0 + t);

		if (groups == 0)
			continue;
		if (groups > region_most(index->region, area) / sizeof(struct extent_group))
			return FS_ECORRUPT;
		result = region_commit(index->region, area, groups * sizeof(struct extent_group));
		if (result == FS_OK)
			extent_store(&index->extents.table[t].groups, groups);
	}
	atomic_store(&index->extents.current, atomic_load(&kept->extents_current));
	return result;
}

/* Opens the segments that both tables have as open, in this process alone. */
static int attach_segments(struct fidx *index, const uint64_t *sequences)
{
	for (uint32_t s = 0; s < index->segments; s++) {
		const struct region_segment *kept = &index->kept->segment[s];
		uint64_t sequence = atomic_load(&kept->sequence);
		uint32_t table = atomic_load(&kept->table);

		if (sequence == 0)
			continue;
		if (sequence != sequences[s] || table >= FIDX_TABLES || !(tables_live(index) >> table & 1))
			return FS_ECORRUPT;
		segment_begin(index, s, table, sequence, atomic_load(&kept->mean_bytes), NULL);
	}
	return FS_OK;
}

int fidx_attach(struct fidx **out, const struct fidx_config *config, struct region *region, const uint64_t *sequences,
		uint64_t segment_bytes)
{
	struct fidx *index;
	int result = index_create(&index, config, region);

	*out = NULL;
	if (result != FS_OK)
		return result;
	result = judge_head(index, config->seed);
	if (result == FS_OK)
		result = attach_tables(index);
	if (result == FS_OK)
		result = attach_extent_tables(index);
	if (result == FS_OK)
		result = attach_segments(index, sequences);
	if (result == FS_OK)
		result = recount_begin(index);
	index->segment_bytes = segment_bytes;
	if (result == FS_OK)
		*out = index;
	else
		fidx_destroy(index);
	return result;
}

/* ---- repair ------------------------------------------------------------------------------------ */

/* Returns the slot of a bucket with this segment, tag and function; NULL: there is none. */
static _Atomic uint32_t *slot_with_name(const struct fidx *index, const struct table *table, uint32_t bucket,
					uint32_t slot)
{
	const uint32_t state = STATE_MASK;

	for (unsigned i = 0; bucket < table_buckets(table) && i < FIDX_BUCKET_SLOTS; i++) {
		_Atomic uint32_t *at = &table->bucket[bucket].slot[i];

		if (((slot_load(at) ^ slot) & ~state) == 0 && !slot_is_free(index, slot_load(at)))
			return at;
	}
	return NULL;
}

/* Two slots of one name in a pair lead to one record: a second one is left over from a move. */
static void finish_relocation(struct fidx *index)
{
	struct region_move *move = &index->kept->move;
	uint32_t slot = atomic_load(&move->slot), t = atomic_load(&move->table);
	_Atomic uint32_t *from;

	if (slot != SLOT_EMPTY && t < FIDX_TABLES && tables_live(index) >> t & 1) {
		const struct table *table = &index->table[t];

		from = slot_with_name(index, table, atomic_load(&move->from), slot);
		if (from && atomic_load(&move->from) != atomic_load(&move->to) &&
		    slot_with_name(index, table, atomic_load(&move->to), slot))
			atomic_store(from, SLOT_EMPTY);
	}
	atomic_store(&move->slot, SLOT_EMPTY);
}

void fidx_repair(struct fidx *index)
{
	finish_relocation(index);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		if (!(tables_live(index) >> t & 1))
			region_decommit(index->region, table_area(t));
	for (unsigned t = 0; t < EXTENT_TABLES; t++)
		if (extent_groups(&index->extents.table[t]) == 0)
			region_decommit(index->region, (enum region_area)(REGION_EXTENTS_0 + t));
}

bool fidx_segment_is_open(const struct fidx *index, uint32_t segment)
{
	must(segment < index->segments);
	return segment_sequence(index, segment) != SEGMENT_CLOSED;
}
