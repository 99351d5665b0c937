/* SPDX-License-Identifier: BSD-3-Clause */
/* The CLOCK hand: values go down, ghosts are made up to a number of bytes, and it comes by every table. */
#include "tests/unit/flashindex/support.h"

#include "flashindex/index_internal.h"

static void touch_and_expect(struct fixture *f, const struct fidx_key *key, unsigned clock, bool revived)
{
	struct fidx_match match = match_of(0, SEQ, 1);

	assert_int_equal(fidx_touch(f->index, key, &match), revived);
	assert_true(fidx_find(f->index, key, &match));
	assert_int_equal(match.clock, clock);
	assert_true(match.read_on_flash);
	assert_false(match.ghost);
}

static void hand_and_expect(struct fixture *f, const struct fidx_key *key, uint64_t ghost_bytes, int clock, bool read)
{
	struct fidx_match match = match_of(0, SEQ, 1);
	uint64_t visited, made = fidx_hand(f->index, 1, ghost_bytes, &visited);

	assert_int_equal(visited, 1);
	assert_int_equal(made, clock < 0);
	assert_true(fidx_find(f->index, key, &match));
	assert_int_equal(match.ghost, clock < 0);
	assert_int_equal(match.clock, clock < 0 ? 0 : clock);
	assert_int_equal(match.read_on_flash, read);
}

static void test_a_second_hand_is_sent_away(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_match match = match_of(0, SEQ, 1);
	struct fidx_key key;
	uint64_t visited = 99;

	(void)state;
	fixture_open(&f, 10, 1);
	open_segment(&f, 0, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 0, 1, 3, FIDX_DROP_NONE);
	assert_true(hand_take(f.index));
	assert_false(hand_take(f.index));
	assert_int_equal(fidx_hand(f.index, 10, 1000, &visited), 0);
	assert_int_equal(visited, 0);
	assert_true(fidx_find(f.index, &key, &match));
	assert_int_equal(match.clock, 3);
	hand_give(f.index);
	assert_int_equal(fidx_hand(f.index, 0, 1000, &visited), 0); /* no visits are asked for */
	assert_int_equal(visited, 0);
	hand_and_expect(&f, &key, 1000, 2, false);
	fixture_close(&f);
}

/* A call with one visit looks at no more than 16 + 1024 slots: 15 of them don't go round 16000. */
static void test_a_turn_in_a_nearly_empty_index_is_bounded(void **state)
{
	struct fixture f = { .config = { 0 } };
	uint64_t visited, all = 0;
	struct fidx_key key;

	(void)state;
	fixture_open(&f, 1000, 1);
	open_segment(&f, 0, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 0, 1, 3, FIDX_DROP_NONE);
	for (unsigned i = 0; i < 15; i++) {
		fidx_hand(f.index, 1, 0, &visited);
		all += visited;
	}
	assert_in_range(all, 0, 1);
	for (unsigned i = 15; i < 34; i++) {
		fidx_hand(f.index, 1, 0, &visited);
		all += visited;
	}
	assert_in_range(all, 2, 3);
	fixture_close(&f);
}

static void test_clock_values_of_both_modes(void **state)
{
	(void)state;
	for (int mode = FIDX_CLOCK_LRU; mode <= FIDX_CLOCK_MFU; mode++) {
		struct fixture f = { .config = { .clock_mode = (enum fidx_clock_mode)mode } };
		bool mfu = mode == FIDX_CLOCK_MFU;
		struct fidx_key key;

		fixture_open(&f, 10, 1);
		open_segment(&f, 0, 100);
		key = key_next(&f);
		(void)!fidx_insert(f.index, &key, 0, 1, 1, FIDX_DROP_COLDEST);
		hand_and_expect(&f, &key, 0, 0, false);
		hand_and_expect(&f, &key, 0, 0, false);
		touch_and_expect(&f, &key, mfu ? 1 : 3, false);
		touch_and_expect(&f, &key, mfu ? 2 : 3, false);
		touch_and_expect(&f, &key, 3, false);
		touch_and_expect(&f, &key, 3, false);
		hand_and_expect(&f, &key, 0, 2, true);
		hand_and_expect(&f, &key, 0, 1, true);
		hand_and_expect(&f, &key, 0, 1, true); /* no ghosts wanted: still known as read */
		hand_and_expect(&f, &key, 50, 0, false);
		hand_and_expect(&f, &key, 50, -1, false);
		assert_counts(f.index, 1, 1, 100, 0);
		touch_and_expect(&f, &key, mfu ? 1 : 3, true);
		assert_counts(f.index, 1, 0, 100, 100);
		fixture_close(&f);
	}
}

static void test_ghost_bytes_bound_the_ghosts(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_key keys[40];
	struct fidx_match match;
	uint64_t visited, made = ctr_sum(CTR_flash_ghosts_made), revived = ctr_sum(CTR_flash_ghosts_revived);

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	open_segment(&f, 1, 0); /* a mean of nothing must not make ghosts without end */
	for (unsigned i = 0; i < 40; i++) {
		keys[i] = key_next(&f);
		(void)!fidx_insert(f.index, &keys[i], 0, 0, 0, FIDX_DROP_COLDEST);
	}
	assert_int_equal(fidx_hand(f.index, 1000, 0, &visited), 0);
	assert_int_equal(visited, 40);
	assert_int_equal(fidx_hand(f.index, 1000, 950, &visited), 10); /* the tenth starts with 50 left */
	assert_counts(f.index, 40, 10, 4000, 3000);
	assert_int_equal(fidx_hand(f.index, 5, 1000000, &visited), 5);
	assert_int_equal(visited, 5);
	for (unsigned i = 0; i < 40; i++) {
		match = match_of(0, SEQ, 0);
		assert_true(fidx_find(f.index, &keys[i], &match));
		if (match.ghost)
			assert_true(fidx_touch(f.index, &keys[i], &match));
	}
	assert_counts(f.index, 40, 0, 4000, 4000);
	assert_int_equal(ctr_sum(CTR_flash_ghosts_made) - made, 15);
	assert_int_equal(ctr_sum(CTR_flash_ghosts_revived) - revived, 15);
	/* Ghosts leave the counts as ghosts, whichever way they go. */
	fidx_hand(f.index, 1000, 0, &visited);
	fidx_hand(f.index, 1000, 0, &visited);
	fidx_hand(f.index, 1000, 1000000, &visited);
	fidx_hand(f.index, 1000, 1000000, &visited);
	assert_counts(f.index, 40, 40, 4000, 0);
	match = match_of(0, SEQ, 0);
	assert_true(fidx_remove(f.index, &keys[0], &match));
	assert_int_equal(fidx_clear(f.index, &keys[1]), 1);
	assert_counts(f.index, 38, 38, 3800, 0);
	fixture_close(&f);
}

static void test_the_hand_comes_by_all_tables(void **state)
{
	struct fixture f = { .config = { .buckets_most = 300, .extents_most = 10 } };
	struct fidx *index = fixture_open(&f, 100, 8);
	uint64_t visited, ghosts = 0;
	unsigned table;

	(void)state;
	assert_int_equal(fidx_table_add(index, 300, &table), FS_OK);
	assert_int_equal(fidx_table_add(index, 200, &table), FS_OK);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		fidx_segment_open(index, t, t, 100 + t, 100, NULL, 0);
	for (unsigned i = 0; i < 900; i++) {
		struct fidx_key key = key_next(&f);

		assert_true(fidx_insert(index, &key, i % 3, 0, 0, FIDX_DROP_NONE));
	}
	for (unsigned i = 0; i < 200; i++)
		ghosts += fidx_hand(index, 7, 1 << 30, &visited);
	assert_int_equal(ghosts, 900);
	/* One goes while the hand is in it. */
	fidx_segment_close(index, 1);
	fidx_sweep(index, 1);
	fidx_table_drop(index, 1);
	for (unsigned i = 0; i < 200; i++)
		fidx_hand(index, 7, 1 << 30, &visited);
	assert_int_equal(status_of(index).ghosts, 600);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_second_hand_is_sent_away),
		cmocka_unit_test(test_a_turn_in_a_nearly_empty_index_is_bounded),
		cmocka_unit_test(test_clock_values_of_both_modes),
		cmocka_unit_test(test_ghost_bytes_bound_the_ghosts),
		cmocka_unit_test(test_the_hand_comes_by_all_tables),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
