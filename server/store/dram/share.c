/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/metrics/counters.h"
#include "server/store/dram/dram.h"
#include "server/store/dram/share.h"

#define FIRST 0.02
#define LEAST 0.001
#define MOST 0.5
#define DEPTH_PART 16 /* of -m */
#define DROPPED_PART 2 /* of the share */
#define ENTRIES_PART 8192 /* bytes of -m for each entry of a shadow */
#define ENTRIES_LEAST 512u
#define ENTRIES_MOST 65536u
#define FILL 2 /* entries for each key within a depth */
#define SHIFT_MOST 15u
#define ENOUGH 64u /* events of both sides, before the share moves */
#define WEIGHT 0.75 /* of the counts before, at each move */
#define STEP 0.25 /* the most that the share moves, in octaves */
#define GAIN 0.125 /* octaves of the share for each octave by which one side gains more */
#define USED_PART 0.75 /* of the share: with less in use, it doesn't grow */

static uint64_t left_depth_bytes(const struct store *store)
{
	return store_memory_limit(store) / DEPTH_PART;
}

/* Depths follow the share and -m, and count sampled bytes. */
static void set_depths(struct store *store)
{
	struct share *share = store->share;
	unsigned shift = atomic_load_explicit(&share->shift, memory_order_relaxed);
	uint64_t left = left_depth_bytes(store), dropped = copies_share_bytes(store) / DROPPED_PART;

	if (dropped > left)
		dropped = left;
	atomic_store_explicit(&share->left_depth, left >> shift, memory_order_relaxed);
	atomic_store_explicit(&share->dropped_depth, dropped >> shift, memory_order_relaxed);
}

void share_init(struct store *store)
{
	const struct store_promotion *promotion = &store->config.promotion;
	uint64_t entries = store->config.memory_bytes / ENTRIES_PART;
	uint32_t buckets;

	if (promotion->rule == STORE_PROMOTE_OFF || promotion->share > 0 || !store->config.flash_path ||
	    !store->config.evict)
		return;
	entries = entries < ENTRIES_LEAST ? ENTRIES_LEAST : entries > ENTRIES_MOST ? ENTRIES_MOST : entries;
	buckets = (uint32_t)entries / SHADOW_WAYS;
	store->share = mem_must_zalloc(sizeof(*store->share));
	shadow_init(&store->share->dropped, buckets);
	shadow_init(&store->share->left, buckets);
	atomic_fetch_add(&store->promotion_bytes, 2 * shadow_bytes(buckets));
	copies_set_share(store, FIRST);
	set_depths(store);
}

void share_fini(struct store *store)
{
	if (!store->share)
		return;
	shadow_fini(&store->share->dropped);
	shadow_fini(&store->share->left);
	mem_free(store->share);
	store->share = NULL;
}

/* ---- what is counted -------------------------------------------------------------------------- */

static bool share_samples(const struct share *share, uint64_t key)
{
	return shadow_samples(key, atomic_load_explicit(&share->shift, memory_order_relaxed));
}

void share_dropped(struct store *store, uint64_t hash, uint64_t bytes)
{
	uint64_t key = shadow_key(hash);

	if (share_samples(store->share, key))
		shadow_note(&store->share->dropped, key, bytes);
}

void share_left(struct store *store, uint64_t hash, uint64_t bytes)
{
	uint64_t key = shadow_key(hash);

	if (share_samples(store->share, key))
		shadow_note(&store->share->left, key, bytes);
}

static bool within(const struct shadow *shadow, uint64_t key, const _Atomic uint64_t *depth)
{
	return shadow_since(shadow, key) <= atomic_load_explicit(depth, memory_order_relaxed);
}

void share_read(struct store *store, uint64_t hash)
{
	struct share *share = store->share;
	uint64_t key = shadow_key(hash);

	if (!share_samples(share, key))
		return;
	if (within(&share->dropped, key, &share->dropped_depth))
		atomic_fetch_add_explicit(&share->counts.dropped_reads, 1, memory_order_relaxed);
	if (within(&share->left, key, &share->left_depth))
		atomic_fetch_add_explicit(&share->counts.left_reads, 1, memory_order_relaxed);
}

void share_missed(struct store *store, uint64_t hash)
{
	struct share *share = store->share;
	uint64_t key = shadow_key(hash);

	if (share_samples(share, key) && within(&share->left, key, &share->left_depth))
		atomic_fetch_add_explicit(&share->counts.left_misses, 1, memory_order_relaxed);
}

/* ---- the move --------------------------------------------------------------------------------- */

/* As many keys are sampled as the shadows have entries for, by the mean object in DRAM. A change empties them, so it
   needs a reason: a factor of four. */
static void choose_sample(struct store *store)
{
	struct share *share = store->share;
	int64_t bytes = atomic_load_explicit(&store->item_bytes, memory_order_relaxed);
	uint64_t items = store_dram_items(store), entries = (uint64_t)share->left.buckets * SHADOW_WAYS;
	unsigned shift = atomic_load_explicit(&share->shift, memory_order_relaxed), wanted = 0;

	if (bytes <= 0 || items == 0)
		return;
	double keys = (double)left_depth_bytes(store) * (double)items / (double)bytes;
	while (wanted < SHIFT_MOST && ldexp(keys, -(int)wanted) * FILL > (double)entries)
		wanted++;
	if (wanted <= shift && wanted + 2 > shift)
		return;
	atomic_store_explicit(&share->shift, wanted, memory_order_relaxed);
	shadow_empty(&share->dropped);
	shadow_empty(&share->left);
}

static double take(_Atomic uint64_t *count, double before)
{
	return before * WEIGHT + (double)atomic_exchange_explicit(count, 0, memory_order_relaxed);
}

/* By how many octaves copies gain more for each byte than other objects; in doubt, by less. */
static double octaves_of_gain(const struct store *store)
{
	const struct share *share = store->share;
	double miss_cost = atomic_load_explicit(&store->tuning.promote_miss_cost, memory_order_relaxed);
	double copies = (share->dropped_reads + 1) / (double)(atomic_load(&share->dropped_depth) + 1);
	double others = (share->left_reads + miss_cost * share->left_misses + 1) /
			(double)(atomic_load(&share->left_depth) + 1);

	return log2(copies / others);
}

static void move_share(struct store *store)
{
	double share = copies_share(store), step = GAIN * octaves_of_gain(store);
	bool refused = atomic_exchange(&store->share->refused, false);

	if (step > 0 && !refused && (double)copies_bytes(store) < USED_PART * (double)copies_share_bytes(store))
		return;
	share *= exp2(fmax(-STEP, fmin(step, STEP)));
	copies_set_share(store, fmax(LEAST, fmin(share, MOST)));
}

void share_tick(struct store *store)
{
	struct share *share = store->share;

	if (!share)
		return;
	choose_sample(store);
	if (atomic_load_explicit(&share->counts.dropped_reads, memory_order_relaxed) +
		    atomic_load_explicit(&share->counts.left_reads, memory_order_relaxed) +
		    atomic_load_explicit(&share->counts.left_misses, memory_order_relaxed) >=
	    ENOUGH) {
		share->dropped_reads = take(&share->counts.dropped_reads, share->dropped_reads);
		share->left_reads = take(&share->counts.left_reads, share->left_reads);
		share->left_misses = take(&share->counts.left_misses, share->left_misses);
		move_share(store);
	}
	set_depths(store);
}
