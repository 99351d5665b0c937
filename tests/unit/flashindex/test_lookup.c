/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookup, clear, remove, find and touch: nothing else than the key's own is changed, and moved slots are found. */
#include "tests/unit/flashindex/support.h"

static void test_an_empty_index_has_nothing(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_match out[FIDX_MAX_MATCHES], match = match_of(0, SEQ, 0);
	uint64_t visited = 99;

	(void)state;
	fixture_open(&f, 10, 4);
	for (unsigned i = 0; i < 1000; i++) {
		struct fidx_key key = key_next(&f);

		assert_int_equal(fidx_lookup(f.index, &key, out), 0);
		assert_int_equal(fidx_clear(f.index, &key), 0);
		assert_false(fidx_find(f.index, &key, &match));
		assert_false(fidx_remove(f.index, &key, &match));
		assert_false(fidx_touch(f.index, &key, &match));
	}
	assert_int_equal(fidx_hand(f.index, 100, 1000, &visited), 0);
	assert_int_equal(visited, 0);
	assert_int_equal(fidx_sweep(f.index, 2), 0);
	assert_true(fidx_filter_false_positive(f.index) == 1);
	assert_counts(f.index, 0, 0, 0, 0);
	fixture_close(&f);
}

static void test_only_the_exact_identity_is_found(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_match right = match_of(2, SEQ + 2, 5), wrong[] = {
		match_of(1, SEQ + 1, 5),   match_of(2, SEQ + 1, 5),      match_of(2, SEQ + 2, 4),
		match_of(4, SEQ, 5),       match_of(UINT32_MAX, SEQ, 5), match_of(2, UINT64_MAX, 5),
		match_of(2, SEQ + 2, 255),
	};
	struct fidx_key key;

	(void)state;
	fixture_open(&f, 10, 4);
	for (uint32_t s = 0; s < 4; s++)
		open_segment(&f, s, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 2, 5, 1, FIDX_DROP_COLDEST);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(fidx_find(f.index, &key, &wrong[i]));
		assert_false(fidx_touch(f.index, &key, &wrong[i]));
		assert_false(fidx_remove(f.index, &key, &wrong[i]));
	}
	assert_true(fidx_find(f.index, &key, &right));
	assert_int_equal(right.clock, 1);
	assert_false(right.ghost || right.read_on_flash);
	assert_true(fidx_remove(f.index, &key, &right));
	assert_false(fidx_find(f.index, &key, &right));
	assert_counts(f.index, 0, 0, 0, 0);
	fixture_close(&f);
}

static void test_matches_come_youngest_first(void **state)
{
	struct fixture f = { .config = { 0 } };
	static const uint32_t order[] = { 2, 0, 3, 1 };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key key;

	(void)state;
	fixture_open(&f, 10, 4);
	key = key_next(&f);
	for (unsigned i = 0; i < 4; i++) {
		open_segment(&f, order[i], 100);
		(void)!fidx_insert(f.index, &key, order[i], i, 0, FIDX_DROP_COLDEST);
	}
	assert_int_equal(fidx_lookup(f.index, &key, out), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(out[i].sequence, SEQ + 3 - i);
		assert_int_equal(out[i].segment, 3 - i);
		assert_int_equal(order[out[i].function], 3 - i);
		assert_true(fidx_find(f.index, &key, &out[i]));
	}
	assert_int_equal(fidx_clear(f.index, &key), 4);
	assert_int_equal(fidx_lookup(f.index, &key, out), 0);
	fixture_close(&f);
}

/* With tags of two bits nearly everything collides: a clear takes innocents, and leaves nothing. */
static void test_clear_leaves_nothing(void **state)
{
	struct fixture f = { .config = { .tag_bits = 2, .functions = 2 } };
	uint64_t moves = ctr_sum(CTR_index_moves);

	(void)state;
	fixture_open(&f, 9, 4);
	for (uint32_t s = 0; s < 4; s++)
		open_segment(&f, s, 100);
	for (unsigned round = 0; round < 20000; round++) {
		struct fidx_match out[FIDX_MAX_MATCHES];
		struct fidx_key key = key_next(&f);

		if (round % 64 == 0)
			fault_arm(FAULT_index_force_relocation, round % 128 ? FAULT_OFF : FAULT_EVERY, 2);
		(void)!fidx_insert(f.index, &key, (uint32_t)rng_below(&f.rng, 4), (unsigned)rng_below(&f.rng, 2), 0,
				   FIDX_DROP_COLDEST);
		assert_true(fidx_lookup(f.index, &key, out) >= 1);
		if (rng_below(&f.rng, 3) == 0) {
			uint64_t used = status_of(f.index).used;
			unsigned n = fidx_lookup(f.index, &key, out);

			assert_int_equal(fidx_clear(f.index, &key), n);
			assert_int_equal(fidx_lookup(f.index, &key, out), 0);
			assert_int_equal(status_of(f.index).used, used - n);
			assert_int_equal(fidx_clear(f.index, &key), 0);
		}
	}
	if (HAVE_FAULTS)
		assert_true(ctr_sum(CTR_index_moves) > moves);
	fixture_close(&f);
}

static void test_a_stranger_of_the_same_place_shares_the_slot(void **state)
{
	struct fixture f = { .config = { .tag_bits = 4 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key key, twin;

	(void)state;
	fixture_open(&f, 7, 4);
	open_segment(&f, 1, 100);
	key = key_next(&f);
	twin = key_twin(&f, &key);
	(void)!fidx_insert(f.index, &key, 1, 3, 0, FIDX_DROP_COLDEST);
	assert_int_equal(fidx_lookup(f.index, &twin, out), 1);
	assert_int_equal(fidx_stripe_of(f.index, key.hash, 256), fidx_stripe_of(f.index, twin.hash, 256));
	assert_int_equal(fidx_clear(f.index, &twin), 1);
	assert_int_equal(fidx_lookup(f.index, &key, out), 0);
	fixture_close(&f);
}

/* A match says where its slot was seen: a hint that may be wrong in any way. */
static void test_a_slot_is_found_wherever_the_match_says_it_is(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_key key;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 0, 5, 0, FIDX_DROP_NONE);
	for (unsigned way = 0; way < 256; way++) {
		struct fidx_match match = match_of(0, SEQ, 5), found = match;

		match.way = found.way = (uint8_t)way;
		fidx_touch_soon(f.index, &key, &match);
		assert_false(fidx_touch(f.index, &key, &match));
		assert_true(fidx_find(f.index, &key, &found));
		assert_int_equal(found.clock, 3);
		assert_true(found.read_on_flash);
		assert_true(found.way < FIDX_PAIR_SLOTS);
	}
	fixture_close(&f);
}

static void test_a_ghost_that_is_read_is_live_again(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_match match = match_of(0, SEQ, 5);
	uint64_t visited, revived = ctr_sum(CTR_flash_ghosts_revived);
	struct fidx_key key;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 0, 5, 0, FIDX_DROP_NONE);
	assert_int_equal(fidx_hand(f.index, 1, 100, &visited), 1);
	assert_counts(f.index, 1, 1, 100, 0);
	assert_true(fidx_touch(f.index, &key, &match));
	assert_counts(f.index, 1, 0, 100, 100);
	assert_false(fidx_touch(f.index, &key, &match)); /* once */
	assert_int_equal(ctr_sum(CTR_flash_ghosts_revived) - revived, 1);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_index_has_nothing),
		cmocka_unit_test(test_only_the_exact_identity_is_found),
		cmocka_unit_test(test_matches_come_youngest_first),
		cmocka_unit_test(test_clear_leaves_nothing),
		cmocka_unit_test(test_a_stranger_of_the_same_place_shares_the_slot),
		cmocka_unit_test(test_a_slot_is_found_wherever_the_match_says_it_is),
		cmocka_unit_test(test_a_ghost_that_is_read_is_live_again),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
