/* SPDX-License-Identifier: BSD-3-Clause */
/* The CLOCK hand: over the slots in the order of their buckets, then over the extents. */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "flashindex/index_internal.h"

/* The most slots that the hand looks at for each live one: the bound of a call in a nearly empty index. */
#define LOOKS_PER_VISIT 16
#define LOOKS_LEAST 1024

/* Makes a ghost of a live slot at zero, with the stripe, as for every change of a count. False: it has changed. */
static bool make_ghost(struct fidx *index, const struct table *table, uint32_t bucket, _Atomic uint32_t *at)
{
	struct lock *lock = &bucket_stripe(index, table, bucket)->lock;
	bool made = false;
	uint32_t slot;

	lock_acquire(lock);
	slot = slot_load(at);
	if (!slot_is_free(index, slot) && slot_state(slot) == STATE_COLD)
		made = slot_swap(at, &slot, slot | STATE_GHOST);
	if (made)
		slot_account(index, table, at, slot_segment(&index->layout, slot), 0, 1);
	lock_release(lock);
	return made;
}

static uint64_t bytes_less(uint64_t bytes, uint64_t by)
{
	return bytes > by ? bytes - by : 0;
}

/* True when the slot was live. */
static bool hand_slot(struct fidx *index, const struct table *table, uint64_t number, uint64_t *ghost_bytes,
		      bool *made_ghost)
{
	uint32_t bucket = (uint32_t)(number / FIDX_BUCKET_SLOTS);
	_Atomic uint32_t *at = &table->bucket[bucket].slot[number % FIDX_BUCKET_SLOTS];
	uint32_t slot = slot_load(at);
	uint32_t segment = slot_segment(&index->layout, slot);
	unsigned state = slot_state(slot), after = state_after_hand(state, *ghost_bytes > 0);

	if (slot_is_free(index, slot) || state_is_ghost(state))
		return false;
	if (state_is_ghost(after)) {
		uint32_t mean = atomic_load_explicit(&segment_at(index, segment)->mean_bytes, memory_order_relaxed);

		*made_ghost = make_ghost(index, table, bucket, at);
		if (*made_ghost)
			*ghost_bytes = bytes_less(*ghost_bytes, mean ? mean : 1);
	} else if (after != state) {
		(void)slot_swap(at, &slot, (slot & ~STATE_MASK) | after); /* a hit meanwhile counts more */
	}
	return true;
}

/* The number of slots of the hand's table, 0 when it isn't live, or the number of extents. */
static uint64_t hand_positions(const struct fidx *index)
{
	if (index->hand_table == FIDX_TABLES)
		return extents_ways(index);
	return tables_live(index) >> index->hand_table & 1
		       ? table_buckets(&index->table[index->hand_table]) * FIDX_BUCKET_SLOTS
		       : 0;
}

/* Moves the hand on to a slot or extent that exists. */
static void settle_hand(struct fidx *index)
{
	while (index->hand >= hand_positions(index)) {
		index->hand = 0;
		index->hand_table = index->hand_table < FIDX_TABLES ? index->hand_table + 1 : 0;
	}
}

/* All slots and extents: at least the slots of one table. */
static uint64_t turn_of(const struct fidx *index)
{
	uint64_t turn = extents_ways(index);

	for (uint32_t left = tables_live(index); left; left &= left - 1)
		turn += table_buckets(&index->table[__builtin_ctz(left)]) * FIDX_BUCKET_SLOTS;
	return turn;
}

struct turn {
	uint64_t visits, looks; /* left */
	uint64_t ghost_bytes, live, ghosts;
};

/* Moves the hand to the end of its table or of the extents, or until the turn is over. */
static void turn_here(struct fidx *index, struct turn *turn)
{
	uint64_t end = hand_positions(index);

	must(index->hand_table <= FIDX_TABLES); /* extents may have become fewer since the hand settled */
	for (; index->hand < end && turn->looks > 0 && turn->live < turn->visits; index->hand++, turn->looks--) {
		bool made_ghost = false;

		if (index->hand_table < FIDX_TABLES)
			turn->live += hand_slot(index, &index->table[index->hand_table], index->hand,
						&turn->ghost_bytes, &made_ghost);
		else
			turn->live += extents_hand(index, index->hand, &turn->ghost_bytes, &made_ghost);
		turn->ghosts += made_ghost;
	}
}

bool hand_take(struct fidx *index)
{
	return !atomic_exchange_explicit(&index->hand_busy, true, memory_order_acquire);
}

void hand_give(struct fidx *index)
{
	must(atomic_exchange_explicit(&index->hand_busy, false, memory_order_release));
}

uint64_t fidx_hand(struct fidx *index, uint64_t visits, uint64_t ghost_bytes, uint64_t *visited)
{
	struct turn turn = { .visits = visits, .ghost_bytes = ghost_bytes };
	uint64_t all;

	*visited = 0;
	if (!hand_take(index))
		return 0;
	all = turn_of(index);
	turn.looks = visits > all / LOOKS_PER_VISIT ? all : visits * LOOKS_PER_VISIT + LOOKS_LEAST;
	if (turn.looks > all)
		turn.looks = all;
	while (turn.looks > 0 && turn.live < visits) {
		settle_hand(index);
		turn_here(index, &turn);
	}
	hand_give(index);
	if (turn.ghosts)
		ctr_add(CTR_flash_ghosts_made, turn.ghosts);
	*visited = turn.live;
	return turn.ghosts;
}
