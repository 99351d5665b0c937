/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, keys and figures. */
#include "flashindex/flashindex.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "flashindex/index_internal.h"
#include "flashindex/units.h"

#define FILTER_BITS_MAX 32

void fidx_region_most(const struct fidx_config *config, uint64_t *most)
{
	most[REGION_INDEX] = index_kept_bytes(config->segments);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		most[REGION_TABLE_0 + t] = config->buckets_most * sizeof(struct bucket);
	for (unsigned t = 0; t < EXTENT_TABLES; t++)
		most[REGION_EXTENTS_0 + t] = extents_groups(config->extents_most) * sizeof(struct extent_group);
}

uint64_t index_kept_bytes(uint32_t segments)
{
	return sizeof(struct region_index) + (uint64_t)segments * sizeof(struct region_segment);
}

static bool config_is_valid(const struct fidx_config *config)
{
	return config->buckets >= 2 && config->buckets <= config->buckets_most && config->buckets_most <= UINT32_MAX &&
	       config->segments >= 1 && config->segments < 1u << SLOT_SEGMENT_BITS_MAX && config->functions >= 1 &&
	       config->functions <= FIDX_MAX_FUNCTIONS && config->filter_bits <= FILTER_BITS_MAX &&
	       (config->filter_units == 0 ||
		(config->filter_units >= FIDX_UNITS_LEAST && config->filter_units <= FIDX_UNITS_MOST));
}

static int create_parts(struct fidx *index, const struct fidx_config *config)
{
	uint32_t fields = 1u << index->layout.segment_bits;

	index->stripe = mem_zaligned(64, STRIPES_MAX * sizeof(*index->stripe));
	index->segment_field = mem_zaligned(64, fields * sizeof(*index->segment_field));
	index->shard = mem_zaligned(64, SHARDS * sizeof(*index->shard));
	if (!index->stripe || !index->segment_field || !index->shard)
		return FS_ENOMEM;
	for (unsigned i = 0; i < STRIPES_MAX; i++)
		lock_init(&index->stripe[i].lock, LOCK_INDEX_STRIPE);
	for (uint32_t i = 0; i < fields; i++) {
		atomic_init(&index->segment_field[i].sequence, SEGMENT_CLOSED);
		atomic_init(&index->segment_field[i].counts, COUNTS_CLOSED);
	}
	if (config->filter == FIDX_FILTER_CUCKOO && warm_create(&index->warm) != FS_OK)
		return FS_ENOMEM;
	return exact_create(&index->exact);
}

int index_create(struct fidx **out, const struct fidx_config *config, struct region *region)
{
	struct slot_layout layout;
	struct fidx *index;
	int error;

	if (!config_is_valid(config) || !layout_init(&layout, config->segments, config->tag_bits))
		return FS_EINVAL;
	index = mem_zaligned(64, sizeof(*index));
	if (!index)
		return FS_ENOMEM;
	index->layout = layout;
	index->region = region;
	index->segments = config->segments;
	index->buckets_most = config->buckets_most;
	index->functions = config->functions;
	index->filter_units = config->filter_units;
	index->clock_mode = config->clock_mode;
	index->segment_bytes = UINT64_MAX;
	index->seed = mix64(config->seed ^ UINT64_C(0x9e3779b97f4a7c15));
	index->tag_seed = mix64(config->seed ^ UINT64_C(0xd1b54a32d192ed03));
	index->filter_seed = mix64(config->seed ^ UINT64_C(0x8cb92ba72f3d8dd7));
	fidx_set_filter_bits(index, config->filter_bits);
	error = create_parts(index, config);
	if (!error)
		error = region_commit(region, REGION_INDEX, index_kept_bytes(config->segments));
	if (error) {
		fidx_destroy(index);
		return error;
	}
	index->kept = region_area(region, REGION_INDEX);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		index->table[t].bucket = region_area(region, table_area(t));
	extents_init(index, config->extents_most);
	*out = index;
	return FS_OK;
}

/* The head of an index without tables and segments. */
static void head_create(struct fidx *index, uint64_t seed)
{
	struct region_index *kept = index->kept;

	memset(kept, 0, index_kept_bytes(index->segments));
	kept->segments = index->segments;
	kept->functions = index->functions;
	kept->tag_bits = index->layout.tag_bits;
	kept->clock_mode = (uint32_t)index->clock_mode;
	kept->seed = seed;
}

int fidx_create(struct fidx **out, const struct fidx_config *config, struct region *region)
{
	int error = index_create(out, config, region);

	if (error)
		return error;
	head_create(*out, config->seed);
	error = tables_init(*out, config->buckets);
	if (error) {
		fidx_destroy(*out);
		*out = NULL;
	}
	return error;
}

void fidx_destroy(struct fidx *index)
{
	if (!index)
		return;
	extents_fini(&index->extents);
	exact_destroy(index->exact);
	warm_destroy(index->warm);
	if (index->segment_field)
		for (uint32_t i = 0; i < index->segments; i++)
			filter_free(atomic_load(&segment_at(index, i)->filter));
	if (index->stripe)
		for (unsigned i = 0; i < STRIPES_MAX; i++)
			lock_fini(&index->stripe[i].lock);
	recount_free(index);
	mem_free(index->shard);
	mem_free(index->segment_field);
	mem_free(index->stripe);
	mem_free(index);
}

unsigned fidx_tag_bits(const struct fidx *index)
{
	return index->layout.tag_bits;
}

void fidx_set_filter_bits(struct fidx *index, unsigned bits)
{
	must(bits <= FILTER_BITS_MAX);
	if (bits)
		atomic_store_explicit(&index->filters, true, memory_order_relaxed);
	atomic_store_explicit(&index->filter_bits, bits, memory_order_relaxed);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Mixes the caller's hash again, because its bits are used elsewhere: some choose a DRAM bucket. */
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
	out->hash = hash;
	out->own = own_hash(index, hash);
	out->tag = tag_of(index, out->own);
	out->epoch = tables_epoch(index);
	for (uint32_t left = key_tables(out); left; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);
		uint64_t buckets = table_buckets(&index->table[t]);

		out->bucket[t][0] = (uint32_t)reduce64(out->own, buckets); /* high bits; the tag has the low ones */
		out->bucket[t][1] = bucket_partner(index, buckets, out->bucket[t][0], out->tag);
	}
}

uint64_t fidx_place_in(const struct fidx *index, const struct fidx_key *given, unsigned table)
{
	struct fidx_key copy;
	const struct fidx_key *key = key_settle(index, given, &copy);

	must(table < FIDX_TABLES);
	return place_of(table_id(&index->table[table]), key->bucket[table], key->tag);
}

uint64_t fidx_place(const struct fidx *index, const struct fidx_key *key, uint32_t segment)
{
	return fidx_place_in(index, key, segment_table(index, segment));
}

void fidx_prefetch(const struct fidx *index, const struct fidx_key *given)
{
	struct fidx_key copy;
	const struct fidx_key *key = key_settle(index, given, &copy);

	for (uint32_t left = key_tables(key); left; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		__builtin_prefetch(&index->table[t].bucket[key->bucket[t][0]]);
		__builtin_prefetch(&index->table[t].bucket[key->bucket[t][1]]);
	}
}

uint32_t fidx_stripe_of(const struct fidx *index, uint64_t hash, uint32_t stripes)
{
	debug_must(stripes > 0 && stripes <= 65536 && (stripes & (stripes - 1)) == 0);
	return tag_of(index, own_hash(index, hash)) & (stripes - 1);
}

uint32_t fidx_stripe_of_tag(uint32_t tag, uint32_t stripes)
{
	return tag & (stripes - 1);
}

/* ---- losses ---------------------------------------------------------------------------------- */

void fidx_tell_losses(struct fidx *index, void (*lost)(void *context, const struct fidx_lost *lost), void *context)
{
	index->lost = lost;
	index->lost_context = context;
}

void tell_lost_slot(const struct fidx *index, const struct table *table, const uint32_t bucket[2], uint32_t slot)
{
	struct fidx_lost lost = { .segment = slot_segment(&index->layout, slot),
				  .tag = slot_tag(&index->layout, slot),
				  .function = (uint8_t)slot_function(slot) };

	lost.sequence = segment_sequence(index, lost.segment);
	lost.place = place_of(table_id(table), bucket, lost.tag);
	if (lost.sequence != SEGMENT_CLOSED)
		index->lost(index->lost_context, &lost);
}

void tell_lost_extent(const struct fidx *index, uint64_t hash, uint32_t segment, uint64_t offset)
{
	struct fidx_lost lost = { .segment = segment,
				  .sequence =
					  segment < index->segments ? segment_sequence(index, segment) : SEGMENT_CLOSED,
				  .offset = offset,
				  .tag = tag_of(index, own_hash(index, hash)),
				  .extent = true };

	if (lost.sequence != SEGMENT_CLOSED)
		index->lost(index->lost_context, &lost);
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

static uint64_t sum_or_zero(int64_t sum)
{
	return sum > 0 ? (uint64_t)sum : 0;
}

void fidx_get_status(const struct fidx *index, struct fidx_status *out)
{
	int64_t used = 0, ghosts = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct shard *shard = &index->shard[i];

		used += sum_load(&shard->used);
		ghosts += sum_load(&shard->ghosts);
		out->live_bytes += sum_load(&shard->live_bytes);
		out->hot_bytes += sum_load(&shard->hot_bytes);
	}
	for (uint32_t left = tables_live(index); left; left &= left - 1) {
		out->tables++;
		out->slots += table_buckets(&index->table[__builtin_ctz(left)]) * FIDX_BUCKET_SLOTS;
	}
	out->uncounted = fidx_uncounted(index);
	out->used = sum_or_zero(used);
	out->ghosts = sum_or_zero(ghosts);
	out->extents = extents_ways(index);
	out->extents_used = sum_or_zero(sum_load(&index->extents.used));
	out->index_bytes = out->slots * sizeof(uint32_t);
	out->filter_bytes = atomic_load_explicit(&index->filter_bytes, memory_order_relaxed);
	out->other_bytes = sizeof(*index) + STRIPES_MAX * sizeof(struct stripe) + sizeof(struct exact) +
			   (sizeof(struct segment) << index->layout.segment_bits) + SHARDS * sizeof(struct shard) +
			   index_kept_bytes(index->segments) + (index->warm ? sizeof(*index->warm) : 0) +
			   out->extents / EXTENT_WAYS * sizeof(struct extent_group);
}
