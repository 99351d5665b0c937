/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bits of a slot (drawn in flashindex.h), its states, and the search of a bucket.
 *
 * The three low bits are the state; all bits above them are the slot's name (segment, tag, function). The state of an
 * extent has the same three bits and the same meaning. All functions here are pure, or atomic on one slot: any thread.
 *
 *   state = clock << 1 | ghost
 *   0 2 4 6: live, not read on flash, CLOCK 0..3     1: ghost     3 5 7: live, read, CLOCK 1..3
 */
#ifndef FS_FLASHINDEX_LAYOUT_INTERNAL_H
#define FS_FLASHINDEX_LAYOUT_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "flashindex/flashindex.h"
#include "flashindex/simd_internal.h"

/* ---- states ---------------------------------------------------------------------------------- */

#define STATE_MASK 7u
#define STATE_GHOST 1u
#define STATE_COLD 0u /* live, unread, CLOCK 0 */
#define CLOCK_MAX 3u

/* Return the parts of a state. A ghost's CLOCK is 0, and it doesn't count as read. */
static inline bool state_is_ghost(unsigned state)
{
	return state == STATE_GHOST;
}

static inline unsigned state_clock(unsigned state)
{
	return state >> 1;
}

static inline bool state_is_read(unsigned state)
{
	return (state & 1) && state != STATE_GHOST;
}

/* Returns the state of a new slot with that CLOCK, 0 .. CLOCK_MAX. */
static inline unsigned state_unread(unsigned clock)
{
	return clock << 1;
}

/* Returns the state after a hit. Never a ghost. */
static inline unsigned state_after_hit(unsigned state, enum fidx_clock_mode mode)
{
	unsigned clock = state_clock(state);

	if (mode == FIDX_CLOCK_LRU || clock == CLOCK_MAX)
		return CLOCK_MAX << 1 | 1;
	return (clock + 1) << 1 | 1;
}

/*
 * Returns the state after the hand. No state says "read, CLOCK 0": while no ghost is wanted, a read object stays at 1,
 * so that reclaim knows of the read; when ghosts are wanted, it goes to 0 and loses the mark, one pass before it would
 * be a ghost.
 */
static inline unsigned state_after_hand(unsigned state, bool want_ghosts)
{
	if (state == STATE_GHOST)
		return state;
	if (state == STATE_COLD)
		return want_ghosts ? STATE_GHOST : STATE_COLD;
	if (state == (1u << 1 | 1))
		return want_ghosts ? STATE_COLD : state;
	return state - (1u << 1);
}

/* Returns a number that is lower the colder the state is: ghosts are the coldest, then CLOCK decides, then unread comes
   before read. */
static inline unsigned state_warmth(unsigned state)
{
	return state_is_ghost(state) ? 0 : 1 + state;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The parts of a slot. */
#define SLOT_EMPTY 0u
#define SLOT_FUNCTION_SHIFT 3
#define SLOT_FUNCTION_MASK 15u
#define SLOT_TAG_SHIFT 7
#define SLOT_FIXED_BITS 7 /* function, clock, ghost */
#define SLOT_SEGMENT_BITS_MAX 14

struct slot_layout {
	unsigned segment_bits;
	unsigned segment_shift;
	unsigned tag_bits;
	uint32_t segment_mask; /* as the bits lie in a slot; none of them set = empty */
	uint32_t tag_mask; /* as the bits lie in a slot */
};

/* Computes the layout for that many segments. tag_bits 0: all remaining bits. False: the tag would be wider than the
   remaining bits, or narrower than two. */
static inline bool layout_init(struct slot_layout *layout, uint32_t segments, unsigned tag_bits)
{
	unsigned bits = fidx_segment_bits(segments);
	unsigned left;

	*layout = (struct slot_layout){ 0 };
	left = 32 - SLOT_FIXED_BITS - bits;
	if (bits > SLOT_SEGMENT_BITS_MAX || tag_bits > left || tag_bits == 1)
		return false;
	layout->segment_bits = bits;
	layout->segment_shift = 32 - bits;
	layout->tag_bits = tag_bits ? tag_bits : left;
	layout->segment_mask = ~0u << layout->segment_shift;
	layout->tag_mask = ((1u << layout->tag_bits) - 1) << SLOT_TAG_SHIFT;
	return true;
}

/* Returns the segment's number; UINT32_MAX for an empty slot. */
static inline uint32_t slot_segment(const struct slot_layout *layout, uint32_t slot)
{
	return (slot >> layout->segment_shift) - 1;
}

/* Returns the bits that no slot has set: those between a tag that is narrower than it could be, and the segment. */
static inline uint32_t slot_unused_bits(const struct slot_layout *layout)
{
	return ~(layout->segment_mask | layout->tag_mask | SLOT_FUNCTION_MASK << SLOT_FUNCTION_SHIFT | STATE_MASK);
}

/* Returns true if the slot is empty. Bits other than the segment's may be set in it nevertheless. */
static inline bool slot_is_empty(const struct slot_layout *layout, uint32_t slot)
{
	return (slot & layout->segment_mask) == 0;
}

/* Return the tag, the function and the state. */
static inline uint32_t slot_tag(const struct slot_layout *layout, uint32_t slot)
{
	return (slot & layout->tag_mask) >> SLOT_TAG_SHIFT;
}

static inline unsigned slot_function(uint32_t slot)
{
	return slot >> SLOT_FUNCTION_SHIFT & SLOT_FUNCTION_MASK;
}

static inline unsigned slot_state(uint32_t slot)
{
	return slot & STATE_MASK;
}

/* Returns a slot with this name and state zero. */
static inline uint32_t slot_name(const struct slot_layout *layout, uint32_t segment, uint32_t tag, unsigned function)
{
	debug_must(tag >> layout->tag_bits == 0 && function <= SLOT_FUNCTION_MASK);
	return (segment + 1) << layout->segment_shift | tag << SLOT_TAG_SHIFT |
	       (uint32_t)function << SLOT_FUNCTION_SHIFT;
}

/* ---- buckets --------------------------------------------------------------------------------- */

struct bucket {
	alignas(64) _Atomic uint32_t slot[FIDX_BUCKET_SLOTS];
};

_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");
_Static_assert(sizeof(_Atomic uint32_t) == 4, "a slot is four bytes");

/* slot_load acquires. slot_swap sets a slot to desired if it is *expected, with acquire and release; false: it was not,
   and *expected is its value. */
static inline uint32_t slot_load(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

static inline bool slot_swap(_Atomic uint32_t *at, uint32_t *expected, uint32_t desired)
{
	return atomic_compare_exchange_strong_explicit(at, expected, desired, memory_order_acq_rel,
						       memory_order_acquire);
}

/*
 * Returns one bit for each of the 16 slots that equals want under mask. *occupied: one bit for each slot that has a
 * bit of the segment mask set. A match is not necessarily occupied.
 */
static inline unsigned bucket_search(const struct bucket *bucket, uint32_t mask, uint32_t want, uint32_t segment_mask,
				     unsigned *occupied)
{
	return search_16(bucket->slot, mask, want, segment_mask, occupied);
}

#endif
