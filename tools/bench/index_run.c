/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/index_run.h"

#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/metrics/counters.h"

#define AHEAD 16u /* keys whose buckets are fetched while others are inserted */
#define CHUNKS 16u /* of the fill, each ends with timed inserts */
#define RECORD_BYTES 319u /* mean, for the accounting of hot bytes */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Later instructions begin when the earlier ones are done. */
static inline void end_of_operation(void)
{
#ifdef __x86_64__
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb sy\n\tisb" ::: "memory");
#endif
}

/* ---- keys ------------------------------------------------------------------------------------ */

static inline void key_of(const struct index_run *run, uint64_t number, struct fidx_key *key)
{
	fidx_key_of(run->index, mix64(number), key);
}

/* The slot that the key was given. */
static struct fidx_match match_of(const struct index_run *run, uint64_t number)
{
	uint32_t segment = (uint32_t)(number / run->keys_per_segment);

	return (struct fidx_match){
		.segment = segment,
		.sequence = segment + 1ull,
		.function = (uint8_t)(number % FIDX_MAX_FUNCTIONS),
	};
}

static void insert(struct index_run *run, uint64_t number, const struct fidx_key *key)
{
	struct fidx_match match = match_of(run, number);

	/* It finds or makes room in any case; run->drops has the slots that were dropped for that. */
	(void)!fidx_insert(run->index, key, match.segment, match.function, 0, FIDX_DROP_COLDEST);
}

/* ---- the fill -------------------------------------------------------------------------------- */

static int open_segment(struct index_run *run, uint32_t segment)
{
	void *filter = NULL;
	size_t length = 0;

	if (run->shape.filter_bits) {
		uint64_t *hashes = mem_alloc(run->keys_per_segment * sizeof(*hashes));

		if (!hashes)
			return FS_ENOMEM;
		for (uint64_t i = 0; i < run->keys_per_segment; i++)
			hashes[i] = mix64(segment * run->keys_per_segment + i);
		filter = fidx_filter_build(run->index, hashes, run->keys_per_segment, &length);
		mem_free(hashes);
		if (!filter)
			return FS_ENOMEM;
	}
	fidx_segment_open(run->index, segment, 0, segment + 1ull, RECORD_BYTES, filter, length);
	return FS_OK;
}

/* Inserts from first up to end, timed as a server would see it. Returns ns for each. */
static double insert_timed(struct index_run *run, uint64_t first, uint64_t end)
{
	uint64_t since = cpu_ns();

	for (uint64_t number = first; number < end; number++) {
		struct fidx_key key;

		key_of(run, number, &key);
		insert(run, number, &key);
		end_of_operation();
	}
	return (double)(cpu_ns() - since) / (double)(end - first);
}

/* The same, quickly: buckets are fetched a few keys ahead. */
static void insert_ahead(struct index_run *run, uint64_t first, uint64_t end)
{
	struct fidx_key keys[AHEAD];

	for (uint64_t next = first, number = first; number < end; next++) {
		struct fidx_key *key = &keys[next % AHEAD];

		if (next >= first + AHEAD) {
			insert(run, number, key);
			number++;
		}
		if (next >= end)
			continue;
		key_of(run, next, key);
		fidx_prefetch(run->index, key);
	}
}

static void fill(struct index_run *run, uint64_t samples)
{
	uint64_t chunk = run->keys / CHUNKS;
	double sum = 0;

	run->drops = ctr_sum(CTR_index_drops);
	run->moves = ctr_sum(CTR_index_moves);
	if (samples > chunk)
		samples = chunk;
	for (unsigned c = 0; c < CHUNKS; c++) {
		uint64_t end = c + 1 < CHUNKS ? (c + 1) * chunk : run->keys;

		insert_ahead(run, c * chunk, end - samples);
		run->insert_full_ns = insert_timed(run, end - samples, end);
		sum += run->insert_full_ns;
	}
	run->insert_ns = sum / CHUNKS;
	run->drops = ctr_sum(CTR_index_drops) - run->drops;
	run->moves = ctr_sum(CTR_index_moves) - run->moves;
}

static struct fidx_config config_of(const struct index_shape *shape)
{
	return (struct fidx_config){
		.buckets = shape->slots / FIDX_BUCKET_SLOTS,
		.buckets_most = shape->slots / FIDX_BUCKET_SLOTS,
		.segments = shape->segments,
		.functions = FIDX_MAX_FUNCTIONS,
		.filter_bits = shape->filter_bits,
		.seed = 0x666c617368,
	};
}

uint64_t index_run_bytes(const struct index_shape *shape)
{
	uint64_t slots = shape->slots * sizeof(uint32_t);

	/* Stripes, segments, shards; a segment's hashes and filter while that is built. */
	return slots + slots / 64 + (64u << 20) + shape->slots * shape->filter_bits / 8 +
	       shape->slots * 2 * sizeof(uint64_t) / shape->segments;
}

int index_run_init(struct index_run *run, const struct index_shape *shape, uint64_t samples)
{
	struct fidx_config config = config_of(shape);
	uint64_t most[REGION_AREAS] = { 0 };
	int rc;

	*run = (struct index_run){ .shape = *shape };
	if (shape->slots < FIDX_BUCKET_SLOTS || shape->segments == 0 || shape->slots < 2ull * shape->segments)
		return FS_EINVAL;
	run->keys_per_segment = (uint64_t)((double)shape->slots * INDEX_LOAD / shape->segments);
	run->keys = run->keys_per_segment * shape->segments;
	fidx_region_most(&config, most);
	rc = region_create(&run->region, most);
	if (rc != FS_OK)
		return rc;
	rc = fidx_create(&run->index, &config, run->region);
	if (rc == FS_OK && shape->small_pages) /* before a page of it is touched */
		(void)madvise(region_area(run->region, REGION_TABLE_0), region_most(run->region, REGION_TABLE_0),
			      MADV_NOHUGEPAGE);
	for (uint32_t segment = 0; rc == FS_OK && segment < shape->segments; segment++)
		rc = open_segment(run, segment);
	if (rc == FS_OK)
		fill(run, samples);
	if (rc != FS_OK)
		index_run_fini(run);
	return rc;
}

void index_run_fini(struct index_run *run)
{
	if (run->index)
		fidx_destroy(run->index);
	if (run->region)
		region_destroy(run->region);
	*run = (struct index_run){ 0 };
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The key of the n-th operation: a present key for operations that need a slot. */
static uint64_t number_for(const struct index_run *run, enum index_operation operation, unsigned round, uint64_t n,
			   uint64_t operations)
{
	switch (operation) {
	case INDEX_MISS:
	case INDEX_CLEAR_NOTHING:
		return run->keys + (2ull * round + (operation == INDEX_MISS)) * operations + n;
	case INDEX_CLEAR: /* each once */
		return n * (run->keys / operations);
	default:
		return reduce64(mix64(n * 64 + round * 4 + operation), run->keys);
	}
}

static uint64_t do_one(struct index_run *run, enum index_operation operation, uint64_t number)
{
	struct fidx_match matches[FIDX_MAX_MATCHES];
	struct fidx_key key;

	key_of(run, number, &key);
	switch (operation) {
	case INDEX_HIT:
	case INDEX_MISS:
		return fidx_lookup(run->index, &key, matches);
	case INDEX_TOUCH:
		if (fidx_lookup(run->index, &key, matches) == 0)
			return 0;
		(void)fidx_touch(run->index, &key, &matches[0]); /* true for ghosts, and there are none */
		return 1;
	default:
		return fidx_clear(run->index, &key);
	}
}

/* The least number of matches, as far as the present slots are known. */
static uint64_t matches_due(const struct index_run *run, enum index_operation operation, uint64_t operations)
{
	uint64_t gone = run->drops + run->lost;

	switch (operation) {
	case INDEX_HIT:
	case INDEX_TOUCH: /* a key that is gone may be asked for more than once */
		return gone ? 0 : operations;
	case INDEX_CLEAR:
		return operations > gone ? operations - gone : 0;
	default:
		return 0;
	}
}

/* The hand continues from its position over `operations` live slots. */
static void measure_hand(struct index_run *run, uint64_t operations, struct index_cost *cost)
{
	uint64_t since = cpu_ns(), visited;

	(void)fidx_hand(run->index, operations, 0, &visited);
	cost->done = visited;
	cost->matches = visited;
	cost->ns = (double)(cpu_ns() - since) / (double)(visited ? visited : 1);
}

int index_run_measure(struct index_run *run, enum index_operation operation, unsigned round, uint64_t operations,
		      struct index_cost *cost)
{
	uint64_t since, matches = 0;

	must(operations > 0 && operations <= run->keys / 2);
	if (operation == INDEX_HAND) {
		measure_hand(run, operations, cost);
		return FS_OK;
	}
	since = cpu_ns();
	for (uint64_t n = 0; n < operations; n++) {
		matches += do_one(run, operation, number_for(run, operation, round, n, operations));
		end_of_operation();
	}
	cost->ns = (double)(cpu_ns() - since) / (double)operations;
	cost->done = operations;
	cost->matches = matches;
	if (operation == INDEX_CLEAR_NOTHING)
		run->lost += matches;
	return matches < matches_due(run, operation, operations) ? FS_ECORRUPT : FS_OK;
}

double index_run_bytes_per_slot(const struct index_run *run)
{
	struct fidx_status status;

	fidx_get_status(run->index, &status);
	return (double)(status.index_bytes + status.filter_bytes + status.other_bytes) /
	       (double)(status.used ? status.used : 1);
}
