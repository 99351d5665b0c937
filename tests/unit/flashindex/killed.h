/* SPDX-License-Identifier: BSD-3-Clause */
/* An index whose process is killed: the region of a first one, which is not used any more, and a second that attaches. */
#ifndef FS_TESTS_FLASHINDEX_KILLED_H
#define FS_TESTS_FLASHINDEX_KILLED_H

#include "flashindex/extents_internal.h"
#include "tests/unit/flashindex/support.h"

#define BUCKETS 90
#define SEGMENTS 4 /* the last one is never opened */
#define KEYS 900
#define SEGMENT_BYTES (1u << 20)
#define EXTENT_EACH 10 /* each tenth key has an extent */

/* Key k is in segment k % 3: with function k % functions, or with an extent at offset k. */
struct run {
	struct fixture f;
	struct fidx_key key[KEYS];
	uint64_t sequence[SEGMENTS];
};

static inline void run_begin_with(struct run *run, unsigned functions)
{
	*run = (struct run){
		.f = { .config = { .extents_most = 200, .tag_bits = 12, .buckets_most = 200, .functions = functions } }
	};
	fixture_open(&run->f, BUCKETS, SEGMENTS);
	for (uint32_t s = 0; s < SEGMENTS - 1; s++) {
		open_segment(&run->f, s, 100);
		run->sequence[s] = SEQ + s;
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		run->key[k] = key_next(&run->f);
		if (k % EXTENT_EACH == 0)
			assert_true(fidx_extent_insert(run->f.index, &run->key[k], k % 3, k, 1000, 1));
		else
			assert_true(fidx_insert(run->f.index, &run->key[k], k % 3, k % functions, k % 4,
						FIDX_DROP_COLDEST));
	}
}

static inline void run_begin(struct run *run)
{
	run_begin_with(run, 16);
}

/* The process's memory is gone; the region stays. A code of fidx_attach. */
static inline int run_attach(struct run *run)
{
	fidx_destroy(run->f.index);
	run->f.index = NULL;
	return fidx_attach(&run->f.index, &run->f.config, run->f.region, run->sequence, SEGMENT_BYTES);
}

#endif
