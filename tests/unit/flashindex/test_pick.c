/* SPDX-License-Identifier: BSD-3-Clause */
/* Random picks: each live object has the same chance, and nothing else is picked. */
#include "tests/unit/flashindex/support.h"

#define SLOTS 40u
#define PICKS 40000u

static void nothing_to_pick(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_picked picked;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	for (unsigned i = 0; i < 10000; i++)
		assert_false(fidx_pick(f.index, rng_next(&f.rng), &picked));
	fixture_close(&f);
}

/* Slots of a segment that was closed, and ghosts, which go with their segment. */
static void what_is_not_live_is_not_picked(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_picked picked;
	struct fidx_key ghost, closed;
	uint64_t visited;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	open_segment(&f, 1, 100);
	ghost = key_next(&f);
	(void)!fidx_insert(f.index, &ghost, 0, 1, 0, FIDX_DROP_NONE);
	assert_int_equal(fidx_hand(f.index, 1, 1000, &visited), 1);
	closed = key_next(&f);
	(void)!fidx_insert(f.index, &closed, 1, 1, 3, FIDX_DROP_NONE);
	fidx_segment_close(f.index, 1);
	for (unsigned i = 0; i < 10000; i++)
		assert_false(fidx_pick(f.index, rng_next(&f.rng), &picked));
	fidx_sweep(f.index, 1);
	fixture_close(&f);
}

static void all_have_the_same_chance(void **state)
{
	struct fixture f = { .config = { 0 } };
	unsigned seen[SLOTS] = { 0 }, all = 0;
	struct fidx_key key[SLOTS];
	struct fidx_match match;

	(void)state;
	fixture_open(&f, 10, SLOTS);
	for (unsigned n = 0; n < SLOTS; n++) {
		open_segment(&f, n, 100);
		key[n] = key_next(&f);
		(void)!fidx_insert(f.index, &key[n], n, n % 16, 1, FIDX_DROP_NONE);
		if (n % 4 == 0) {
			match = match_of(n, SEQ + n, n % 16);
			(void)fidx_touch(f.index, &key[n], &match);
		}
	}
	for (unsigned i = 0; i < PICKS; i++) {
		struct fidx_picked picked;
		unsigned n;

		if (!fidx_pick(f.index, rng_next(&f.rng), &picked))
			continue;
		n = picked.match.segment;
		assert_true(n < SLOTS);
		assert_false(picked.is_extent);
		assert_int_equal(picked.match.sequence, SEQ + n);
		assert_int_equal(picked.match.function, n % 16);
		assert_int_equal(picked.match.read_on_flash, n % 4 == 0);
		assert_true(picked.match.place == fidx_place(f.index, &key[n], n)); /* so that it leads to the record */
		seen[n]++;
		all++;
	}
	/* 160 slots, of which 40 are used: a mean of 250, with a deviation of 16. */
	assert_in_range(all, PICKS / 5, PICKS / 3);
	for (unsigned n = 0; n < SLOTS; n++)
		assert_in_range(seen[n], all / SLOTS / 2, all / SLOTS * 3 / 2);
	fixture_close(&f);
}

static void extents_are_picked_too(void **state)
{
	struct fixture f = { .config = { .extents_most = 8 } };
	struct fidx_key slot, extent;
	unsigned slots = 0, extents = 0;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	open_segment(&f, 1, 100);
	slot = key_next(&f);
	extent = key_next(&f);
	(void)!fidx_insert(f.index, &slot, 0, 3, 1, FIDX_DROP_NONE);
	assert_true(fidx_extent_insert(f.index, &extent, 1, 4096, 70000, 2));
	for (unsigned i = 0; i < PICKS; i++) {
		struct fidx_picked picked;

		if (!fidx_pick(f.index, rng_next(&f.rng), &picked))
			continue;
		slots += !picked.is_extent;
		extents += picked.is_extent;
		if (!picked.is_extent)
			continue;
		assert_int_equal(picked.match.segment, 1);
		assert_int_equal(picked.match.sequence, SEQ + 1);
		assert_int_equal(picked.offset, 4096);
		assert_int_equal(picked.length, 70000);
	}
	assert_in_range(slots, extents / 2, extents * 2);
	fidx_segment_close(f.index, 1);
	for (unsigned i = 0; i < 1000; i++) {
		struct fidx_picked picked;

		if (fidx_pick(f.index, rng_next(&f.rng), &picked))
			assert_false(picked.is_extent);
	}
	fidx_sweep(f.index, 1);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_pick),
		cmocka_unit_test(what_is_not_live_is_not_picked),
		cmocka_unit_test(all_have_the_same_chance),
		cmocka_unit_test(extents_are_picked_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
