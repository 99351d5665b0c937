/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/ablation_run.h"

#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/metrics/counters.h"
#include "base/region.h"
#include "flashindex/flashindex.h"
#include "tools/bench/paper_index.h"

#define RECORD_BYTES 319u /* mean, for the accounting of hot bytes */
#define SEGMENTS_MOST 16383u
#define LOAD_MOST 0.98
#define NEVER_WRITTEN (1ull << 63) /* numbers from here on */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int create_ours(struct ablation_run *run)
{
	const struct ablation_shape *shape = &run->shape;
	struct fidx_config config = {
		.buckets = shape->slots / FIDX_BUCKET_SLOTS,
		.buckets_most = shape->slots / FIDX_BUCKET_SLOTS,
		.segments = shape->segments,
		.tag_bits = shape->tag_bits,
		.functions = FIDX_MAX_FUNCTIONS,
		.filter_bits = shape->filter_bits,
		.seed = 0x666c617368,
	};
	uint64_t most[REGION_AREAS] = { 0 };
	int rc;

	fidx_region_most(&config, most);
	rc = region_create(&run->region, most);
	return rc == FS_OK ? fidx_create(&run->index, &config, run->region) : rc;
}

int ablation_run_init(struct ablation_run *run, const struct ablation_shape *shape)
{
	int rc;

	*run = (struct ablation_run){ .shape = *shape };
	if (shape->slots < FIDX_BUCKET_SLOTS || shape->segments < 2 || shape->segments > SEGMENTS_MOST ||
	    !(shape->load > 0 && shape->load <= LOAD_MOST))
		return FS_EINVAL;
	run->keys_each = (uint64_t)((double)shape->slots * shape->load / shape->segments);
	if (run->keys_each == 0)
		return FS_EINVAL;
	rc = shape->paper ? paper_index_create(&run->paper, shape->slots, shape->segments, run->keys_each,
					       shape->filter_bits)
			  : create_ours(run);
	if (rc != FS_OK)
		ablation_run_fini(run);
	return rc;
}

void ablation_run_fini(struct ablation_run *run)
{
	fidx_destroy(run->index);
	paper_index_destroy(run->paper);
	region_destroy(run->region);
	*run = (struct ablation_run){ 0 };
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct fidx_match match_of(const struct ablation_run *run, uint64_t number)
{
	uint64_t sequence = number / run->keys_each;

	return (struct fidx_match){
		.segment = (uint32_t)(sequence % run->shape.segments),
		.sequence = sequence + 1,
		.function = (uint8_t)(number % FIDX_MAX_FUNCTIONS),
	};
}

static void remove_key(struct ablation_run *run, uint64_t number)
{
	const struct fidx_match match = match_of(run, number);
	struct fidx_key key;

	if (run->paper) {
		paper_index_remove(run->paper, mix64(number), match.segment, match.function);
		return;
	}
	fidx_key_of(run->index, mix64(number), &key);
	(void)fidx_remove(run->index, &key, &match); /* false: another slot has taken its place */
}

static void insert_key(struct ablation_run *run, uint64_t number)
{
	const struct fidx_match match = match_of(run, number);
	struct fidx_key key;

	if (run->paper) {
		run->drops += !paper_index_insert(run->paper, mix64(number), match.segment, match.function);
		return;
	}
	fidx_key_of(run->index, mix64(number), &key);
	/* It finds or makes room in any case; the counter has the slots that were dropped for that. */
	(void)!fidx_insert(run->index, &key, match.segment, match.function, 0, FIDX_DROP_COLDEST);
}

static int open_segment(struct ablation_run *run, uint32_t segment, uint64_t first)
{
	void *filter = NULL;
	size_t length = 0;

	if (run->paper) {
		paper_index_open(run->paper, segment);
		return FS_OK;
	}
	if (run->shape.filter_bits) {
		uint64_t *hashes = mem_alloc(run->keys_each * sizeof(*hashes));

		if (!hashes)
			return FS_ENOMEM;
		for (uint64_t i = 0; i < run->keys_each; i++)
			hashes[i] = mix64(first + i);
		filter = fidx_filter_build(run->index, hashes, run->keys_each, &length);
		mem_free(hashes);
		if (!filter)
			return FS_ENOMEM;
	}
	fidx_segment_open(run->index, segment, 0, match_of(run, first).sequence, RECORD_BYTES, filter, length);
	return FS_OK;
}

static int write_segment(struct ablation_run *run)
{
	uint32_t segment = (uint32_t)(run->sequence % run->shape.segments);
	uint64_t first = run->sequence * run->keys_each, drops = ctr_sum(CTR_index_drops);
	uint64_t before = first - run->shape.segments * run->keys_each; /* what it had, if it is written again */
	int rc;

	if (run->sequence >= run->shape.segments) {
		for (uint64_t i = 0; i < run->keys_each; i++)
			remove_key(run, before + i);
		if (run->index)
			fidx_segment_close(run->index, segment);
	}
	rc = open_segment(run, segment, first);
	if (rc != FS_OK)
		return rc;
	for (uint64_t i = 0; i < run->keys_each; i++)
		insert_key(run, first + i);
	if (run->index)
		run->drops += ctr_sum(CTR_index_drops) - drops;
	run->sequence++;
	return FS_OK;
}

int ablation_run_write(struct ablation_run *run, uint64_t segments)
{
	int rc = FS_OK;

	for (uint64_t i = 0; rc == FS_OK && i < segments; i++)
		rc = write_segment(run);
	return rc;
}

/* ---- looking up ------------------------------------------------------------------------------ */

struct found {
	unsigned reads; /* until the key's own record, or all */
	bool own;
};

static struct found look_in_paper(const struct ablation_run *run, uint64_t number, uint64_t *asked)
{
	const struct fidx_match own = match_of(run, number);
	struct paper_index_match matches[PAPER_INDEX_CHOICES];
	unsigned count = paper_index_lookup(run->paper, mix64(number), asked, matches);

	for (unsigned i = 0; i < count && number < NEVER_WRITTEN; i++)
		if (matches[i].segment == own.segment && matches[i].function == own.function)
			return (struct found){ i + 1, true };
	return (struct found){ count, false };
}

static struct found look_up(const struct ablation_run *run, uint64_t number, uint64_t *asked)
{
	const struct fidx_match own = match_of(run, number);
	struct fidx_match matches[FIDX_MAX_MATCHES];
	struct fidx_key key;
	unsigned count;

	if (run->paper)
		return look_in_paper(run, number, asked);
	fidx_key_of(run->index, mix64(number), &key);
	count = fidx_lookup(run->index, &key, matches);
	for (unsigned i = 0; i < count && number < NEVER_WRITTEN; i++)
		if (fidx_same(&matches[i], &own))
			return (struct found){ i + 1, true };
	return (struct found){ count, false };
}

void ablation_run_measure(const struct ablation_run *run, bool hits, unsigned round, uint64_t lookups,
			  struct ablation_cost *out)
{
	uint64_t all = run->shape.segments * run->keys_each;
	uint64_t oldest = (run->sequence - run->shape.segments) * run->keys_each;
	uint64_t since = cpu_ns(), asked = 0, reads = 0, own = 0;

	must(lookups > 0 && run->sequence >= run->shape.segments);
	for (uint64_t n = 0; n < lookups; n++) {
		uint64_t random = mix64((n << 8) + round + 1);
		struct found found = look_up(
			run, hits ? oldest + reduce64(random, all) : NEVER_WRITTEN + n + round * lookups, &asked);

		own += found.own;
		if (found.own || !hits)
			reads += found.reads;
	}
	*out = (struct ablation_cost){
		.reads = (double)reads / (double)(hits ? own : lookups),
		.ns = (double)(cpu_ns() - since) / (double)lookups,
		.filters_asked = run->paper ? (double)asked / (double)lookups : NAN,
		.lost = hits ? 1 - (double)own / (double)lookups : 0,
	};
}

double ablation_run_bytes_per_key(const struct ablation_run *run, double lost)
{
	double keys = (double)(run->shape.segments * run->keys_each) * (1 - lost);
	struct fidx_status status;

	if (run->paper)
		return (double)paper_index_bytes(run->paper) / keys;
	fidx_get_status(run->index, &status);
	return (double)(status.index_bytes + status.filter_bytes) / keys;
}
