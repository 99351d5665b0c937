/* SPDX-License-Identifier: BSD-3-Clause */
/* A random live object, for samples of what is on flash. */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/hash.h"
#include "flashindex/extents_internal.h"
#include "flashindex/index_internal.h"

/* A slot that isn't counted yet after a warm start may be anything: no more is believed of it than a lookup does. */
static bool pick_slot(struct fidx *index, unsigned number, uint64_t at, struct fidx_picked *out)
{
	const struct table *table = &index->table[number];
	uint32_t bucket = (uint32_t)(at / FIDX_BUCKET_SLOTS);
	uint32_t slot = slot_load(&table->bucket[bucket].slot[at % FIDX_BUCKET_SLOTS]);
	uint32_t segment = slot_segment(&index->layout, slot), tag = slot_tag(&index->layout, slot);
	unsigned state = slot_state(slot), function = slot_function(slot);
	uint32_t pair[2];

	if (slot_is_free(index, slot) || state_is_ghost(state) || function >= index->functions ||
	    segment_table(index, segment) != number)
		return false;
	pair[0] = bucket;
	pair[1] = bucket_partner(index, table_buckets(table), bucket, tag);
	*out = (struct fidx_picked){
		.match = { .sequence = segment_sequence(index, segment),
			   .place = place_of(atomic_load_explicit(&table->id, memory_order_relaxed), pair, tag),
			   .segment = segment,
			   .function = (uint8_t)function,
			   .clock = state_clock(state) & CLOCK_MAX,
			   .read_on_flash = state_is_read(state) }
	};
	return out->match.sequence != SEGMENT_CLOSED;
}

bool fidx_pick(struct fidx *index, uint64_t random, struct fidx_picked *out)
{
	uint64_t all = extents_ways(index), at;

	for (uint32_t left = tables_live(index); left; left &= left - 1)
		all += table_buckets(&index->table[__builtin_ctz(left)]) * FIDX_BUCKET_SLOTS;
	if (all == 0)
		return false;
	at = reduce64(random, all);
	for (uint32_t left = tables_live(index); left; left &= left - 1) {
		unsigned number = (unsigned)__builtin_ctz(left);
		uint64_t slots = table_buckets(&index->table[number]) * FIDX_BUCKET_SLOTS;

		if (at < slots)
			return pick_slot(index, number, at, out);
		at -= slots;
	}
	return extents_pick(index, at, out);
}
