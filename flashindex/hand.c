/* SPDX-License-Identifier: BSD-3-Clause */
/* The CLOCK hand: over the slots in the order of their buckets, then over the extents. */
#include "flashindex/flashindex.h"

#include "conf/counters.h"
#include "flashindex/index_internal.h"

/* How many slots are looked at for each live one asked for: the bound of a call in an index that is
   nearly empty. */
#define LOOKS_PER_VISIT 16
#define LOOKS_LEAST 1024

/* A live slot at zero becomes a ghost. With the stripe, as all that changes what is counted. */
static bool make_ghost(struct fidx *index, uint32_t bucket, _Atomic uint32_t *at)
{
	struct lock *lock = &bucket_stripe(index, bucket)->lock;
	bool made = false;
	uint32_t slot;

	lock_acquire(lock);
	slot = slot_load(at);
	if (!slot_is_free(index, slot) && slot_state(slot) == STATE_COLD)
		made = slot_swap(at, &slot, slot | STATE_GHOST);
	if (made)
		segment_account(index, slot_segment(&index->layout, slot), 0, 1);
	lock_release(lock);
	return made;
}

static uint64_t less(uint64_t bytes, uint64_t by)
{
	return bytes > by ? bytes - by : 0;
}

/* True when the slot was live. */
static bool hand_slot(struct fidx *index, uint64_t number, uint64_t *ghost_bytes, bool *made_ghost)
{
	uint32_t bucket = (uint32_t)(number / FIDX_BUCKET_SLOTS);
	_Atomic uint32_t *at = &index->bucket[bucket].slot[number % FIDX_BUCKET_SLOTS];
	uint32_t slot = slot_load(at);
	uint32_t segment = slot_segment(&index->layout, slot);
	unsigned state = slot_state(slot), after = state_after_hand(state, *ghost_bytes > 0);

	if (slot_is_free(index, slot) || state_is_ghost(state))
		return false;
	if (state_is_ghost(after)) {
		uint32_t mean =
			atomic_load_explicit(&index->segment[segment].mean_bytes, memory_order_relaxed);

		*made_ghost = make_ghost(index, bucket, at);
		if (*made_ghost)
			*ghost_bytes = less(*ghost_bytes, mean ? mean : 1);
	} else if (after != state) {
		slot_swap(at, &slot, (slot & ~STATE_MASK) | after);
	}
	return true;
}

uint64_t fidx_hand(struct fidx *index, uint64_t visits, uint64_t ghost_bytes, uint64_t *visited)
{
	uint64_t slots = index->buckets * FIDX_BUCKET_SLOTS;
	uint64_t turn = slots + index->extents.groups * EXTENT_WAYS;
	uint64_t looks = visits > turn / LOOKS_PER_VISIT ? turn : visits * LOOKS_PER_VISIT + LOOKS_LEAST;
	uint64_t live = 0, ghosts = 0;

	if (atomic_exchange_explicit(&index->hand_busy, true, memory_order_acquire)) {
		*visited = 0;
		return 0;
	}
	for (looks = looks < turn ? looks : turn; looks && live < visits; looks--) {
		uint64_t at = index->hand;
		bool made_ghost = false;

		if (at < slots)
			live += hand_slot(index, at, &ghost_bytes, &made_ghost);
		else
			live += extents_hand(index, at - slots, &ghost_bytes, &made_ghost);
		ghosts += made_ghost;
		index->hand = at + 1 < turn ? at + 1 : 0;
	}
	atomic_store_explicit(&index->hand_busy, false, memory_order_release);
	if (ghosts)
		ctr_add(CTR_flash_ghosts_made, ghosts);
	*visited = live;
	return ghosts;
}
