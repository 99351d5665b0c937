/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the index about a key, or about a record on flash. */
#include "segments/bins.h"
#include "server/store/state/state.h"

bool flash_may_hold(struct store *store, const struct fidx_key *key, struct fidx_match *match, unsigned *matches,
		    struct fidx_extent *extent, bool *has_extent)
{
	*matches = fidx_lookup(store->index, key, match);
	*has_extent = fidx_extent_find(store->index, key, extent);
	return *matches > 0 || *has_extent;
}

bool bins_kill(struct store *store, uint64_t hash, bool written)
{
	struct frugal_key key;
	bool killed;

	frugal_key_of(store->frugal, hash, &key);
	killed = frugal_kill(store->frugal, &key, written);
	if (killed && frugal_is_crowded(store->frugal) && !atomic_exchange(&store->kills_told, true))
		store->wake(store);
	return killed;
}

bool segment_is_open(const struct store *store, uint32_t segment)
{
	uint64_t sequence = seg_sequence(store->segments, segment);

	switch (seg_kind_of(store->segments, segment)) {
	case SEG_BINS:
		return store->frugal && frugal_is_open(store->frugal, segment, sequence);
	case SEG_CHAIN:
		return store->frugal && frugal_has_chain_in(store->frugal, segment, sequence);
	default:
		return fidx_segment_is_open(store->index, segment);
	}
}

/* Is there a slot of the key whose function leads to this offset? Fills match. */
static bool slot_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
			 uint64_t offset, struct fidx_match *match)
{
	uint64_t place = fidx_place(store->index, key, segment);
	unsigned f = seg_function_at(store->segments, segment, place, offset, 0);

	for (; f < SEG_MAX_FUNCTIONS; f = seg_function_at(store->segments, segment, place, offset, f + 1)) {
		*match = (struct fidx_match){ .segment = segment, .sequence = sequence, .function = (uint8_t)f };
		if (fidx_find(store->index, key, match))
			return true;
	}
	return false;
}

bool extent_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
		    uint64_t offset, struct fidx_match *match)
{
	struct fidx_extent extent;

	if (!fidx_extent_find(store->index, key, &extent) || extent.segment != segment || extent.sequence != sequence ||
	    extent.offset != offset)
		return false;
	*match = (struct fidx_match){ .segment = segment,
				      .sequence = sequence,
				      .clock = extent.clock,
				      .ghost = extent.ghost,
				      .read_on_flash = extent.read_on_flash };
	return true;
}

bool record_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
		    uint64_t offset, bool is_extent, struct fidx_match *match)
{
	return is_extent ? extent_is_live(store, segment, sequence, key, offset, match)
			 : slot_is_live(store, segment, sequence, key, offset, match);
}
