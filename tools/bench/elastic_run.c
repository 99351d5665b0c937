/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/elastic_run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/region.h"
#include "base/rng.h"
#include "flashindex/flashindex.h"
#include "flashindex/unit_queues.h"
#include "flashindex/units.h"
#include "tools/bench/load_internal.h"

#define NEVER_WRITTEN (1ull << 63) /* numbers from here on */
#define LEVELS_MOST 8u
#define LEVEL_FACTOR 10
#define LOAD 0.95
#define RECORD_BYTES 319u
#define LIFE_SHARE 0.4 /* of the segments: the paper's 20,000 gets for 50,000 tables */
#define LOOK_GETS 1000u /* between two looks at the counts of slots */
#define SCATTER 0x9e3779b97f4a7c15ull

struct run {
	struct elastic_shape shape;
	struct region *region;
	struct fidx *index;
	struct unit_queues *queues;
	uint8_t **filter; /* of each segment, as in its footer; NULL without units */
	size_t filter_length;
	uint64_t keys;
	uint32_t level[LEVELS_MOST + 1]; /* the first table of each level, the smallest first; then the end */
	unsigned levels;
	bool *asked; /* of each segment: before the last look */
	uint64_t *hashes; /* of one segment, while it is built */
	struct rng rng;
	struct zipf zipf;
	struct elastic_cost cost;
};

static uint64_t hash_of(uint64_t number)
{
	return mix64(number);
}

/* ---- tables of levels ------------------------------------------------------------------------ */

static void plan_levels(struct run *run)
{
	uint32_t tables[LEVELS_MOST], left = run->shape.segments, at = 0;
	unsigned n = 0;

	for (; left > 0 && n < LEVELS_MOST; n++) {
		uint32_t most = left / LEVEL_FACTOR;

		tables[n] = n + 1 == LEVELS_MOST ? left : left - most;
		left -= tables[n];
	}
	run->levels = n;
	for (unsigned l = 0; l < n; l++) {
		run->level[l] = at;
		at += tables[n - 1 - l];
	}
	run->level[n] = at;
}

static uint32_t table_of(const struct run *run, unsigned level, uint64_t number)
{
	uint64_t tables = run->level[level + 1] - run->level[level];

	return run->level[level] + (uint32_t)(number % run->keys * tables / run->keys);
}

/* The level that has the newest record of a key: each has a share by its size. */
static unsigned level_of(const struct run *run, uint64_t number)
{
	uint64_t table = reduce64(mix64(number ^ SCATTER), run->shape.segments);
	unsigned level = 0;

	while (table >= run->level[level + 1])
		level++;
	return level;
}

/* Fills hashes with the keys of a table, and returns their number. */
static uint64_t keys_of_table(const struct run *run, unsigned level, uint32_t table)
{
	uint64_t tables = run->level[level + 1] - run->level[level], n = 0, at = table - run->level[level];

	for (uint64_t i = at * run->keys / tables; i <= (at + 1) * run->keys / tables && i < run->keys; i++)
		if (table_of(run, level, i) == table && level_of(run, i) == level && n < 4 * run->shape.keys_each)
			run->hashes[n++] = hash_of(i);
	return n;
}

/* ---- segments and their filters -------------------------------------------------------------- */

static int open_segment(struct run *run, uint32_t segment, uint64_t n)
{
	const struct elastic_shape *shape = &run->shape;
	struct fidx_units units;
	void *filter = NULL;
	size_t length = 0;

	if (shape->bits && !shape->units) {
		filter = fidx_filter_build(run->index, run->hashes, n, &length);
		if (!filter)
			return FS_ENOMEM;
	}
	if (shape->bits && shape->units) {
		length = fidx_filter_length(run->index, n);
		run->filter[segment] = mem_zalloc(length);
		filter = mem_alloc(length);
		if (!run->filter[segment] || !filter) {
			mem_free(filter);
			return FS_ENOMEM;
		}
		for (unsigned u = 0; u < shape->units; u++)
			fidx_unit_build(run->index, segment + 1u, u, run->hashes, n, run->filter[segment], length);
		memcpy(filter, run->filter[segment], length);
	}
	fidx_segment_open(run->index, segment, 0, segment + 1u, RECORD_BYTES, filter, length);
	if (fidx_units_of(run->index, segment, &units))
		unit_queues_add(run->queues, segment,
				&(struct unit_entry){ .stored = units.stored,
						      .resident = units.resident,
						      .bytes = units.length,
						      .share = units.length * shape->bits / fidx_unit_bits(run->index),
						      .pass = units.pass },
				0);
	return FS_OK;
}

static int open_levels(struct run *run)
{
	int rc = FS_OK;

	plan_levels(run);
	for (unsigned level = 0; level < run->levels; level++)
		for (uint32_t table = run->level[level]; rc == FS_OK && table < run->level[level + 1]; table++)
			rc = open_segment(run, table, keys_of_table(run, level, table));
	return rc;
}

static int open_slots(struct run *run)
{
	uint64_t each = run->shape.keys_each;

	for (uint32_t segment = 0; segment < run->shape.segments; segment++) {
		int rc;

		for (uint64_t i = 0; i < each; i++)
			run->hashes[i] = hash_of(segment * each + i);
		rc = open_segment(run, segment, each);
		if (rc != FS_OK)
			return rc;
		for (uint64_t i = 0; i < each; i++) {
			struct fidx_key key;

			fidx_key_of(run->index, run->hashes[i], &key);
			if (!fidx_insert(run->index, &key, segment, (unsigned)(i % FIDX_MAX_FUNCTIONS), 0,
					 FIDX_DROP_NONE))
				return FS_ECORRUPT;
		}
	}
	return FS_OK;
}

static int run_init(struct run *run, const struct elastic_shape *shape)
{
	uint64_t slots = shape->levels ? 64 : (uint64_t)((double)(shape->segments * shape->keys_each) / LOAD);
	struct fidx_config config = {
		.buckets = slots / FIDX_BUCKET_SLOTS + 2,
		.buckets_most = slots / FIDX_BUCKET_SLOTS + 2,
		.segments = shape->segments,
		.tag_bits = shape->tag_bits,
		.functions = FIDX_MAX_FUNCTIONS,
		.filter_bits = shape->bits,
		.filter_units = shape->units,
		.seed = 0x666c617368,
	};
	uint64_t most[REGION_AREAS] = { 0 };
	int rc;

	*run = (struct run){ .shape = *shape, .keys = shape->segments * shape->keys_each };
	rng_init(&run->rng, 1);
	if (shape->exponent > 0)
		zipf_init(&run->zipf, run->keys, shape->exponent);
	run->hashes = mem_alloc(4 * shape->keys_each * sizeof(*run->hashes));
	run->filter = mem_zalloc(shape->segments * sizeof(*run->filter));
	run->asked = mem_zalloc(shape->segments * sizeof(*run->asked));
	if (!run->hashes || !run->filter || !run->asked)
		return FS_ENOMEM;
	fidx_region_most(&config, most);
	rc = region_create(&run->region, most);
	if (rc == FS_OK)
		rc = fidx_create(&run->index, &config, run->region);
	if (rc == FS_OK && shape->units)
		rc = unit_queues_create(&run->queues, shape->segments, (uint64_t)(shape->segments * LIFE_SHARE));
	return rc;
}

static void run_fini(struct run *run)
{
	for (uint32_t s = 0; run->filter && s < run->shape.segments; s++)
		mem_free(run->filter[s]);
	mem_free(run->filter);
	mem_free(run->hashes);
	mem_free(run->asked);
	unit_queues_destroy(run->queues);
	fidx_destroy(run->index);
	region_destroy(run->region);
}

/* ---- gets ------------------------------------------------------------------------------------ */

static void give_unit(struct run *run, uint32_t segment)
{
	uint64_t length;
	struct fidx_units units;
	struct unit_victims victims;
	unsigned next;
	void *bytes;

	if (!unit_queues_want(run->queues, segment, run->cost.gets, &victims))
		return;
	for (unsigned i = 0; i < victims.count; i++)
		fidx_unit_drop(run->index, victims.segment[i]);
	next = fidx_units_of(run->index, segment, &units) ? units.resident : 0;
	length = unit_queues_unit_bytes(run->queues, segment);
	bytes = mem_must_zalloc(length);
	memcpy(bytes, run->filter[segment] + next * length, length);
	must(fidx_unit_add(run->index, segment, bytes, length) == FS_OK);
	unit_queues_loaded(run->queues, segment, UNIT_LOADED);
	run->cost.loads++;
}

/* Half of the gets are for keys that were never written, with the same order of popularity as the others. */
static uint64_t next_number(struct run *run)
{
	uint64_t rank = run->shape.exponent > 0 ? zipf_draw(&run->zipf, &run->rng) : rng_next(&run->rng) % run->keys;
	uint64_t absent = rng_next(&run->rng) % 2 ? NEVER_WRITTEN : 0;

	return mix64(rank) % run->keys | absent;
}

static bool get_in_levels(struct run *run, uint64_t number)
{
	unsigned own = number < NEVER_WRITTEN ? level_of(run, number) : LEVELS_MOST;

	for (unsigned level = 0; level < run->levels; level++) {
		uint32_t table = table_of(run, level, number & ~NEVER_WRITTEN);
		bool passes = fidx_filter_passes(run->index, table, hash_of(number));

		if (run->queues && unit_queues_has(run->queues, table)) {
			unit_queues_note(run->queues, table, 1, 0, run->cost.gets);
			give_unit(run, table);
		}
		run->cost.reads += passes;
		if (level == own)
			return passes;
		run->cost.in_vain += passes;
		run->cost.in_vain_absent += passes && number >= NEVER_WRITTEN;
	}
	return own == LEVELS_MOST;
}

/* Notes whose record the slot of a match leads to: the key of the segment with the same place and function. */
static void learn_owner(struct run *run, const struct fidx_match *match)
{
	for (uint64_t i = match->function; i < run->shape.keys_each; i += FIDX_MAX_FUNCTIONS) {
		uint64_t hash = hash_of(match->segment * run->shape.keys_each + i);
		struct fidx_key key;

		fidx_key_of(run->index, hash, &key);
		if (fidx_place_in(run->index, &key, 0) == match->place)
			fidx_learn(run->index, match, hash);
	}
}

static bool get_in_slots(struct run *run, uint64_t number)
{
	bool absent = number >= NEVER_WRITTEN;
	struct fidx_match own = { .segment = (uint32_t)(number / run->shape.keys_each),
				  .function = (uint8_t)(number % run->shape.keys_each % FIDX_MAX_FUNCTIONS) };
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_key key;
	unsigned matches;

	own.sequence = own.segment + 1u;
	fidx_key_of(run->index, hash_of(number), &key);
	matches = fidx_lookup(run->index, &key, match);
	for (unsigned i = 0; i < matches; i++) {
		run->cost.reads++;
		if (!absent && fidx_same(&match[i], &own))
			return true;
		run->cost.in_vain++;
		run->cost.in_vain_absent += absent;
		if (run->shape.learns)
			learn_owner(run, &match[i]);
	}
	return absent;
}

/* As the daemon does: all are noted, then each may have a unit. */
static void look_at_slots(struct run *run)
{
	for (uint32_t s = 0; s < run->shape.segments; s++) {
		uint32_t times = fidx_units_asked(run->index, s);

		run->asked[s] = times > 0;
		if (times > 0)
			unit_queues_note(run->queues, s, times, LOOK_GETS / times, run->cost.gets);
	}
	for (uint32_t s = 0; s < run->shape.segments; s++)
		if (run->asked[s])
			give_unit(run, s);
}

int elastic_run(const struct elastic_shape *shape, uint64_t gets, struct elastic_cost *out)
{
	struct fidx_status status;
	struct run run;
	int rc;

	if (shape->segments < 2 || shape->keys_each == 0 || shape->exponent == 1 || (shape->units && !shape->bits))
		return FS_EINVAL;
	rc = run_init(&run, shape);
	if (rc == FS_OK)
		rc = shape->levels ? open_levels(&run) : open_slots(&run);
	while (rc == FS_OK && run.cost.gets < gets) {
		uint64_t number = next_number(&run);

		if (!(shape->levels ? get_in_levels(&run, number) : get_in_slots(&run, number)))
			rc = FS_ECORRUPT;
		if (++run.cost.gets % LOOK_GETS == 0 && !shape->levels && run.queues)
			look_at_slots(&run);
	}
	if (rc == FS_OK) {
		fidx_get_status(run.index, &status);
		run.cost.filter_bits = 8 * (double)status.filter_bytes / (double)run.keys;
		*out = run.cost;
	}
	run_fini(&run);
	return rc;
}
