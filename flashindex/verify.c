/* SPDX-License-Identifier: BSD-3-Clause */
/* Recounts all counts and sums of the index. For tests and debug builds, while nothing else runs. */
#include "flashindex/flashindex.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "flashindex/index_internal.h"

struct recount {
	uint64_t slots, ghosts;
	uint64_t extents, extent_ghosts, extent_bytes, extent_ghost_bytes;
};

struct walk {
	const struct fidx *index;
	struct recount *segment; /* one per number */
	bool sound;
};

static void expect_count(struct walk *walk, const char *what, uint32_t segment, uint64_t counted, uint64_t kept)
{
	if (counted == kept)
		return;
	log_error("index: %s of segment %" PRIu32 ": %" PRIu64 " counted, %" PRIu64 " kept", what, segment, counted,
		  kept);
	walk->sound = false;
}

static void recount_table(struct walk *walk, const struct table *table, unsigned number)
{
	const struct fidx *index = walk->index;

	uint64_t counted = atomic_load(&table->counted), buckets = table_buckets(table);

	if (buckets > counted)
		buckets = counted;
	for (uint64_t at = 0; at < buckets * FIDX_BUCKET_SLOTS; at++) {
		uint32_t slot = slot_load(&table->bucket[at / FIDX_BUCKET_SLOTS].slot[at % FIDX_BUCKET_SLOTS]);
		uint32_t segment = slot_segment(&index->layout, slot);

		if (slot == SLOT_EMPTY)
			continue;
		if (segment >= index->segments || slot_function(slot) >= index->functions ||
		    segment_table(index, segment) != number) {
			log_error("index: slot %" PRIu64 " of table %u is 0x%08" PRIx32, at, number, slot);
			walk->sound = false;
			continue;
		}
		walk->segment[segment].slots++;
		walk->segment[segment].ghosts += state_is_ghost(slot_state(slot));
	}
}

static void recount_slots(struct walk *walk)
{
	for (uint32_t left = tables_live(walk->index); left; left &= left - 1)
		recount_table(walk, &walk->index->table[__builtin_ctz(left)], (unsigned)__builtin_ctz(left));
}

static void recount_extent(void *context, uint32_t segment, bool ghost, uint32_t length)
{
	struct recount *recount = &((struct walk *)context)->segment[segment];

	recount->extents++;
	recount->extent_bytes += length;
	recount->extent_ghosts += ghost;
	recount->extent_ghost_bytes += ghost ? length : 0;
}

static void verify_segment(struct walk *walk, uint32_t number)
{
	const struct segment *segment = segment_at(walk->index, number);
	const struct recount *recount = &walk->segment[number];
	uint64_t counts = atomic_load(&segment->counts);
	bool closed = counts & COUNTS_CLOSED;

	expect_count(walk, "slots", number, recount->slots, COUNTS_SLOTS(counts));
	expect_count(walk, "ghosts", number, recount->ghosts, COUNTS_GHOSTS(counts));
	expect_count(walk, "extents", number, recount->extents, atomic_load(&segment->extents));
	expect_count(walk, "extent ghosts", number, recount->extent_ghosts, segment->extent_ghosts);
	expect_count(walk, "extent bytes", number, recount->extent_bytes, segment->extent_bytes);
	expect_count(walk, "extent ghost bytes", number, recount->extent_ghost_bytes, segment->extent_ghost_bytes);
	expect_count(walk, "closed mark", number, segment_sequence(walk->index, number) == SEGMENT_CLOSED, closed);
	expect_count(walk, "open extents mark", number, !closed, segment->extents_open);
}

/* The sums over all shards must equal those of the open segments. */
static void verify_sums(struct walk *walk)
{
	const struct fidx *index = walk->index;
	struct fidx_status sum = { 0 }, kept;

	for (uint32_t s = 0; s < index->segments; s++) {
		const struct recount *recount = &walk->segment[s];
		uint64_t mean = atomic_load(&segment_at(index, s)->mean_bytes);
		uint64_t all = recount->slots * mean + recount->extent_bytes;

		if (segment_sequence(index, s) == SEGMENT_CLOSED)
			continue;
		sum.used += recount->slots;
		sum.ghosts += recount->ghosts + recount->extent_ghosts;
		sum.extents_used += recount->extents;
		sum.live_bytes += (int64_t)all;
		sum.hot_bytes += (int64_t)(all - recount->ghosts * mean - recount->extent_ghost_bytes);
	}
	fidx_get_status(index, &kept);
	if (sum.used == kept.used && sum.ghosts == kept.ghosts && sum.extents_used == kept.extents_used &&
	    sum.live_bytes == kept.live_bytes && sum.hot_bytes == kept.hot_bytes)
		return;
	log_error("index: sums counted %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ", kept %" PRIu64
		  " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64,
		  sum.used, sum.ghosts, sum.extents_used, sum.live_bytes, sum.hot_bytes, kept.used, kept.ghosts,
		  kept.extents_used, kept.live_bytes, kept.hot_bytes);
	walk->sound = false;
}

bool fidx_verify(struct fidx *index)
{
	struct walk walk = { index, NULL, true };

	walk.segment = mem_must_zalloc(index->segments * sizeof(*walk.segment));
	recount_slots(&walk);
	extents_visit(index, recount_extent, &walk);
	for (uint32_t s = 0; s < index->segments; s++)
		verify_segment(&walk, s);
	verify_sums(&walk);
	mem_free(walk.segment);
	return walk.sound;
}
