/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/bins.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "segments/bins.h"

#define KILLS_SHARE 64u /* of -m, for the table of kills */
#define KILL_BYTES_LEAST 4096u
#define INDEX_SHARE 2u /* of -m, which columns and prefilter may take together */
#define COLUMN_BYTES 2.3 /* of an object whose column is in memory */
#define PREFILTER_BYTES 0.5 /* of each object */
/* Memory of the index for each of the smallest objects: three bytes are more than any index needs, and cost no memory but
   addresses. */
#define BYTES_EACH_MOST 3u
#define MEMORY_MOST_LEAST (16ull << 20)

int bins_judge_options(const struct store *store, char reason[256])
{
	const struct store_config *config = &store->config;
	const char *other = NULL;

	if (!config->evict)
		other = "-M/--disable-evictions";
	else if (config->journal)
		other = "--journal=sync";
	else if ((config->limits && config->limits->count > 0) || atomic_load(&store->limits))
		other = "--app-limit";
	if (config->index != STORE_INDEX_FRUGAL || !other)
		return FS_OK;
	snprintf(reason, 256, "--index=frugal: is not possible with %s", other);
	return FS_ERANGE;
}

static double share_of_columns(const struct store_config *config)
{
	return config->frugal_memory ? config->frugal_memory / 100.0 : 1;
}

/* Returns the most bytes that a prefilter may have: what fits the objects whose columns have room beside it. */
static uint64_t prefilter_most(const struct store_config *config)
{
	double each = PREFILTER_BYTES + share_of_columns(config) * COLUMN_BYTES;

	return (uint64_t)((double)(config->memory_bytes / INDEX_SHARE) * PREFILTER_BYTES / each);
}

void bins_configure(struct store *store, const struct sizing *sizing)
{
	struct frugal_config *out = &store->frugal_config;
	const struct store_config *config = &store->config;
	uint64_t kills = config->memory_bytes / KILLS_SHARE;
	uint64_t objects = sizing->index_flash_bytes / config->flash_object_bytes + 1;
	uint64_t most = (uint64_t)((double)prefilter_most(config) / PREFILTER_BYTES) + 1;

	*out = (struct frugal_config){
		.segments = sizing->index_segments,
		.segment_bytes = sizing->segment_bytes,
		.partitions = sizing->partitions,
		.objects = objects < most ? objects : most,
		.kill_bytes = config->frugal_kill_bytes  ? config->frugal_kill_bytes
			      : kills < KILL_BYTES_LEAST ? KILL_BYTES_LEAST
							 : kills,
		.memory_most =
			sizing->index_flash_bytes / seg_record_length(1, 0) * BYTES_EACH_MOST + MEMORY_MOST_LEAST,
		.prefilter_most = prefilter_most(config),
		.share = share_of_columns(config),
		.seed = store->hash_seed,
	};
	if (out->partitions > frugal_partitions_most(out))
		out->partitions = frugal_partitions_most(out);
	store->small_max = config->index == STORE_INDEX_FRUGAL ? BINS_RECORD_MOST : GROUP_SMALL_MAX;
}

void bins_region_most(const struct store *store, uint64_t most[REGION_AREAS])
{
	if (store->config.index == STORE_INDEX_FRUGAL)
		most[REGION_FRUGAL] = frugal_region_most(&store->frugal_config);
}

int bins_create(struct store *store)
{
	bins_empty(store);
	if (store->config.index != STORE_INDEX_FRUGAL)
		return FS_OK;
	return frugal_create(&store->frugal, &store->frugal_config, store->region);
}

void bins_cancel_merge(struct store *store)
{
	if (!store->merge)
		return;
	frugal_merge_cancel(store->merge);
	store->merge = NULL;
	ctr_add(CTR_frugal_merges_given_up, 1);
}

void bins_destroy(struct store *store)
{
	bins_cancel_merge(store);
	for (uint32_t s = 0; store->bins_reads && s < store->frugal_config.segments; s++)
		bins_forget_reads(store, s);
	mem_free(store->bins_reads);
	store->bins_reads = NULL;
	frugal_destroy(store->frugal);
	store->frugal = NULL;
}

void bins_empty(struct store *store)
{
	bins_destroy(store);
	region_decommit(store->region, REGION_FRUGAL);
}

uint64_t *bins_sequences(const struct store *store, uint32_t segments)
{
	uint64_t *all = mem_zalloc(2 * segments * sizeof(*all));

	for (uint32_t s = 0; all && s < segments; s++) {
		all[s] = seg_sequence(store->segments, s);
		if (all[s] != 0 && seg_kind_of(store->segments, s) == SEG_SLOTS)
			all[segments + s] = all[s];
	}
	return all;
}

/* ---- which objects were read ------------------------------------------------------------------- */

struct bins_reads {
	uint64_t bits;
	_Atomic uint64_t *words; /* NULL: none. Set and freed while nobody may read from the segment */
};

static uint64_t words_bytes(uint64_t bits)
{
	return (bits + 63) / 64 * sizeof(uint64_t);
}

void bins_note_reads(struct store *store, uint32_t segment, uint64_t records)
{
	struct bins_reads *reads = &store->bins_reads[segment];

	must(!reads->words);
	if (records == 0 ||
	    (clf_asks_at_eviction(store->classifier) && store->config.promotion.rule != STORE_PROMOTE_SECOND))
		return;
	reads->words = mem_zalloc(words_bytes(records));
	reads->bits = reads->words ? records : 0;
	atomic_fetch_add(&store->bins_reads_bytes, words_bytes(reads->bits));
}

void bins_forget_reads(struct store *store, uint32_t segment)
{
	struct bins_reads *reads = store->bins_reads ? &store->bins_reads[segment] : NULL;

	if (!reads || !reads->words)
		return;
	atomic_fetch_sub(&store->bins_reads_bytes, words_bytes(reads->bits));
	mem_free(reads->words);
	*reads = (struct bins_reads){ 0 };
}

void bins_set_read(struct store *store, uint32_t segment, uint64_t hash)
{
	struct bins_reads *reads = &store->bins_reads[segment];
	uint64_t bit;

	if (!reads->words)
		return;
	bit = reduce64(mix64(hash), reads->bits);
	if (!(atomic_load_explicit(&reads->words[bit / 64], memory_order_relaxed) >> bit % 64 & 1))
		atomic_fetch_or_explicit(&reads->words[bit / 64], 1ull << bit % 64, memory_order_relaxed);
}

bool bins_was_read(const struct store *store, uint32_t segment, uint64_t hash)
{
	const struct bins_reads *reads = &store->bins_reads[segment];
	uint64_t bit;

	if (!reads->words)
		return false;
	bit = reduce64(mix64(hash), reads->bits);
	return atomic_load_explicit(&reads->words[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void wait_for_readers(void *context)
{
	store_pass_stripes(context);
}

void bins_begin(struct store *store)
{
	if (!store->frugal)
		return;
	log_notice("flash: small objects are in the frugal index, with %u partitions",
		   frugal_partitions(store->frugal));
	store->bins_reads = mem_must_zalloc(store->frugal_config.segments * sizeof(*store->bins_reads));
	frugal_set_quiesce(store->frugal, wait_for_readers, store);
}
