/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the index share: an index with its memory, keys from a seed that is printed. */
#ifndef FS_TESTS_FLASHINDEX_SUPPORT_H
#define FS_TESTS_FLASHINDEX_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "base/region.h"
#include "base/rng.h"
#include "flashindex/flashindex.h"

struct fixture {
	struct fidx_config config;
	struct fidx *index;
	struct region *region;
	struct rng rng;
};

/* FLASHINDEX_SEED in the environment replaces the fixed seed. */
static inline uint64_t test_seed(void)
{
	const char *given = getenv("FLASHINDEX_SEED");

	return given ? strtoull(given, NULL, 0) : 20260;
}

static inline int fixture_try(struct fixture *f)
{
	uint64_t most[REGION_AREAS] = { 0 };

	if (!f->config.buckets_most)
		f->config.buckets_most = f->config.buckets;
	fidx_region_most(&f->config, most);
	assert_int_equal(region_create(&f->region, most), FS_OK);
	rng_init(&f->rng, test_seed());
	return fidx_create(&f->index, &f->config, f->region);
}

static inline struct fidx *fixture_open(struct fixture *f, uint64_t buckets, uint32_t segments)
{
	f->config.buckets = buckets;
	f->config.segments = segments;
	if (!f->config.functions)
		f->config.functions = FIDX_MAX_FUNCTIONS;
	f->config.seed = test_seed();
	assert_int_equal(fixture_try(f), 0);
	if (f->config.extents_most)
		assert_int_equal(fidx_extents_reserve(f->index, f->config.extents_most), FS_OK);
	return f->index;
}

/* In the first table. */
static inline uint64_t place_of_key(const struct fixture *f, const struct fidx_key *key)
{
	return fidx_place_in(f->index, key, 0);
}

/* Verifies, then gives everything back. */
static inline void fixture_close(struct fixture *f)
{
	assert_true(fidx_verify(f->index));
	fidx_destroy(f->index);
	region_destroy(f->region);
	fault_disarm_all();
}

static inline struct fidx_key key_next(struct fixture *f)
{
	struct fidx_key key;

	fidx_key_of(f->index, rng_next(&f->rng), &key);
	return key;
}

/* A key with the same place as another, by search. Small indexes and narrow tags only. */
static inline struct fidx_key key_twin(struct fixture *f, const struct fidx_key *of)
{
	struct fidx_key key;

	do
		key = key_next(f);
	while (place_of_key(f, &key) != place_of_key(f, of));
	return key;
}

/* Fault points are compiled into every build but release. */
#ifdef FS_FAULTS
#define HAVE_FAULTS true
#else
#define HAVE_FAULTS false
#endif

static inline struct fidx_match match_of(uint32_t segment, uint64_t sequence, unsigned function)
{
	struct fidx_match match = { .segment = segment, .sequence = sequence, .function = (uint8_t)function };

	return match;
}

static inline struct fidx_status status_of(const struct fidx *index)
{
	struct fidx_status status;

	fidx_get_status(index, &status);
	return status;
}

/* Opens a segment of the first table, with sequence SEQ + segment and no filter. */
#define SEQ 7000
static inline void open_segment(struct fixture *f, uint32_t segment, uint32_t mean_bytes)
{
	fidx_segment_open(f->index, segment, 0, SEQ + segment, mean_bytes, NULL, 0);
}

/* Counts all that a start has left uncounted, in steps of so many slots; the counts are right behind each of them. */
static inline struct fidx_recounted count_all(struct fidx *index, uint64_t step)
{
	struct fidx_recounted found;

	while (fidx_recount(index, step, &found))
		assert_true(fidx_verify(index));
	assert_false(fidx_is_counting(index));
	assert_int_equal(fidx_uncounted(index), 0);
	assert_true(fidx_verify(index));
	return found;
}

static inline void assert_counts(const struct fidx *index, uint64_t used, uint64_t ghosts, int64_t live, int64_t hot)
{
	struct fidx_status s = status_of(index);

	assert_int_equal(s.used, used);
	assert_int_equal(s.ghosts, ghosts);
	assert_int_equal(s.live_bytes, live);
	assert_int_equal(s.hot_bytes, hot);
}

#endif
