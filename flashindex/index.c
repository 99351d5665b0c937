/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, keys and figures. */
#include "flashindex/flashindex.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "flashindex/index_internal.h"

#define FILTER_BITS_MAX 32

/* In fidx_key.place: table id from bit 56 (one table so far: 0), lower bucket from 24, tag. */
#define PLACE_BUCKET_SHIFT 24

_Static_assert(32 - SLOT_FIXED_BITS - 1 <= PLACE_BUCKET_SHIFT, "the widest tag fits below the bucket");

uint64_t fidx_slots_bytes(const struct fidx_config *config)
{
	return config->buckets * sizeof(struct bucket);
}

uint64_t fidx_extents_bytes(const struct fidx_config *config)
{
	return extents_groups(config->extents) * sizeof(struct extent_group);
}

static bool config_is_valid(const struct fidx_config *config, const void *slots, const void *extents)
{
	return config->buckets >= 2 && config->buckets <= UINT32_MAX && config->segments >= 1 &&
	       config->segments < 1u << SLOT_SEGMENT_BITS_MAX && config->functions >= 1 &&
	       config->functions <= FIDX_MAX_FUNCTIONS && config->filter_bits <= FILTER_BITS_MAX && slots &&
	       (uintptr_t)slots % 64 == 0 &&
	       (!config->extents || (extents && (uintptr_t)extents % 64 == 0));
}

static void *aligned_zeroed(size_t n, size_t size)
{
	void *memory = mem_aligned(64, n * size);

	if (memory)
		memset(memory, 0, n * size);
	return memory;
}

static int create_tables(struct fidx *index)
{
	uint32_t entries = 1u << index->layout.segment_bits;

	while (((index->buckets - 1) >> index->stripe_shift) + 1 > STRIPES_MAX)
		index->stripe_shift++;
	index->stripes = (unsigned)((index->buckets - 1) >> index->stripe_shift) + 1;
	index->stripe = aligned_zeroed(index->stripes, sizeof(*index->stripe));
	index->segment = aligned_zeroed(entries, sizeof(*index->segment));
	index->shard = aligned_zeroed(SHARDS, sizeof(*index->shard));
	if (!index->stripe || !index->segment || !index->shard)
		return FS_ENOMEM;
	for (unsigned i = 0; i < index->stripes; i++)
		lock_init(&index->stripe[i].lock, LOCK_INDEX_STRIPE);
	for (uint32_t i = 0; i < entries; i++) {
		atomic_init(&index->segment[i].sequence, SEGMENT_CLOSED);
		atomic_init(&index->segment[i].counts, COUNTS_CLOSED);
	}
	return exact_create(&index->exact);
}

int fidx_create(struct fidx **out, const struct fidx_config *config, void *slots, void *extents)
{
	struct slot_layout layout;
	struct fidx *index;
	int error;

	if (!config_is_valid(config, slots, extents) ||
	    !layout_init(&layout, config->segments, config->tag_bits))
		return FS_EINVAL;
	index = aligned_zeroed(1, sizeof(*index));
	if (!index)
		return FS_ENOMEM;
	index->layout = layout;
	index->buckets = config->buckets;
	index->segments = config->segments;
	index->functions = config->functions;
	index->filter_bits = config->filter_bits;
	index->clock_mode = config->clock_mode;
	index->seed = mix64(config->seed ^ UINT64_C(0x9e3779b97f4a7c15));
	index->tag_seed = mix64(config->seed ^ UINT64_C(0xd1b54a32d192ed03));
	index->filter_seed = mix64(config->seed ^ UINT64_C(0x8cb92ba72f3d8dd7));
	index->bucket = slots;
	error = create_tables(index);
	if (!error)
		error = extents_init(index, config->extents, extents);
	if (error) {
		fidx_destroy(index);
		return error;
	}
	memset(slots, 0xff, fidx_slots_bytes(config));
	*out = index;
	return 0;
}

void fidx_destroy(struct fidx *index)
{
	if (!index)
		return;
	extents_fini(&index->extents);
	exact_destroy(index->exact);
	if (index->segment)
		for (uint32_t i = 0; i < index->segments; i++)
			filter_free(atomic_load(&index->segment[i].filter));
	if (index->stripe)
		for (unsigned i = 0; i < index->stripes; i++)
			lock_fini(&index->stripe[i].lock);
	mem_free(index->shard);
	mem_free(index->segment);
	mem_free(index->stripe);
	mem_free(index);
}

unsigned fidx_tag_bits(const struct fidx *index)
{
	return index->layout.tag_bits;
}

/* ---- keys ------------------------------------------------------------------------------------ */

uint32_t bucket_partner(const struct fidx *index, uint32_t bucket, uint32_t tag)
{
	uint64_t sum = reduce64(mix64(tag ^ index->tag_seed), index->buckets);

	return (uint32_t)(sum >= bucket ? sum - bucket : sum + index->buckets - bucket);
}

/* The caller's hash may be used elsewhere (bits of it choose a DRAM bucket): mixed again. */
static uint64_t own_hash(const struct fidx *index, uint64_t hash)
{
	return mix64(hash ^ index->seed);
}

static uint32_t tag_of(const struct fidx *index, uint64_t own)
{
	return (uint32_t)own & ((1u << index->layout.tag_bits) - 1);
}

void fidx_key_of(const struct fidx *index, uint64_t hash, struct fidx_key *out)
{
	uint64_t own = own_hash(index, hash);
	uint32_t lower;

	out->hash = hash;
	out->tag = tag_of(index, own);
	out->bucket[0] = (uint32_t)reduce64(own, index->buckets); /* high bits; the tag has the low ones */
	out->bucket[1] = bucket_partner(index, out->bucket[0], out->tag);
	lower = out->bucket[0] < out->bucket[1] ? out->bucket[0] : out->bucket[1];
	out->place = (uint64_t)lower << PLACE_BUCKET_SHIFT | out->tag;
}

void fidx_prefetch(const struct fidx *index, const struct fidx_key *key)
{
	__builtin_prefetch(&index->bucket[key->bucket[0]]);
	__builtin_prefetch(&index->bucket[key->bucket[1]]);
}

uint32_t fidx_stripe_of(const struct fidx *index, uint64_t hash, uint32_t stripes)
{
	return tag_of(index, own_hash(index, hash)) & (stripes - 1);
}

/* ---- figures --------------------------------------------------------------------------------- */

struct shard *shard_self(struct fidx *index)
{
	static _Atomic unsigned next_thread;
	static _Thread_local unsigned thread; /* from 1 */

	if (!thread)
		thread = atomic_fetch_add_explicit(&next_thread, 1, memory_order_relaxed) + 1;
	return &index->shard[thread % SHARDS];
}

static int64_t sum_load(const _Atomic int64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

static uint64_t not_negative(int64_t sum)
{
	return sum > 0 ? (uint64_t)sum : 0;
}

void fidx_get_status(const struct fidx *index, struct fidx_status *out)
{
	int64_t used = 0, ghosts = 0, filter_pass = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct shard *shard = &index->shard[i];

		used += sum_load(&shard->used);
		ghosts += sum_load(&shard->ghosts);
		out->live_bytes += sum_load(&shard->live_bytes);
		out->hot_bytes += sum_load(&shard->hot_bytes);
		filter_pass += sum_load(&shard->filter_pass);
	}
	out->slots = index->buckets * FIDX_BUCKET_SLOTS;
	out->used = not_negative(used);
	out->ghosts = not_negative(ghosts);
	out->extents = index->extents.groups * EXTENT_WAYS;
	out->extents_used = not_negative(sum_load(&index->extents.used));
	out->index_bytes = index->buckets * sizeof(struct bucket);
	out->filter_bytes = atomic_load_explicit(&index->filter_bytes, memory_order_relaxed);
	out->other_bytes = sizeof(*index) + index->stripes * sizeof(struct stripe) + sizeof(struct exact) +
			   (sizeof(struct segment) << index->layout.segment_bits) +
			   SHARDS * sizeof(struct shard) +
			   index->extents.groups * sizeof(struct extent_group);
	out->filter_false_positive = used > 0 ? (double)filter_pass / FILTER_PASS_ALL / (double)used : 1;
}
