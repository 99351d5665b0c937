/* SPDX-License-Identifier: BSD-3-Clause */
/* What lookup, clear, remove, find, touch, the hand, close and sweep do to slots and to the counts. */
#include "tests/unit/flashindex/support.h"

#define SEQ 7000

static void open_segment(struct fixture *f, uint32_t segment, uint32_t mean_bytes)
{
	fidx_segment_open(f->index, segment, 0, SEQ + segment, mean_bytes, NULL, 0);
}

static void assert_counts(const struct fidx *index, uint64_t used, uint64_t ghosts, int64_t live, int64_t hot)
{
	struct fidx_status s = status_of(index);

	assert_int_equal(s.used, used);
	assert_int_equal(s.ghosts, ghosts);
	assert_int_equal(s.live_bytes, live);
	assert_int_equal(s.hot_bytes, hot);
}

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
	assert_true(status_of(f.index).filter_false_positive == 1);
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

static void test_forced_relocation_loses_nothing(void **state)
{
	struct fixture f = { .config = { .tag_bits = 6 } };
	struct fidx_key keys[300];
	uint64_t moves = ctr_sum(CTR_index_moves);
	struct fidx_match seen[300]; /* where each lay at first */
	unsigned elsewhere = 0;

	(void)state;
	fixture_open(&f, 31, 4);
	open_segment(&f, 0, 100);
	fault_arm(FAULT_index_force_relocation, FAULT_ALWAYS, 0);
	for (unsigned i = 0; i < 300; i++) {
		keys[i] = key_next(&f);
		(void)!fidx_insert(f.index, &keys[i], 0, i % 16, 1, FIDX_DROP_COLDEST);
		seen[i] = match_of(0, SEQ, i % 16);
		assert_true(fidx_find(f.index, &keys[i], &seen[i]));
		for (unsigned k = 0; k < i; k++) {
			struct fidx_match match = seen[k];

			assert_true(fidx_find(f.index, &keys[k], &match));
			assert_int_equal(match.clock, 1);
			elsewhere += match.way != seen[k].way;
		}
	}
	if (HAVE_FAULTS)
		assert_true(elsewhere >= 250);
	print_message("forced moves: %llu for 300 inserts\n", (unsigned long long)(ctr_sum(CTR_index_moves) - moves));
	if (HAVE_FAULTS)
		assert_true(ctr_sum(CTR_index_moves) - moves >= 250);
	assert_int_equal(fidx_segment_slots(f.index, 0), 300);
	fixture_close(&f);
}

/* ---- CLOCK and ghosts ------------------------------------------------------------------------ */

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

/* ---- segments -------------------------------------------------------------------------------- */

static void test_closed_segments_have_no_slots(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx_match out[FIDX_MAX_MATCHES], match = match_of(0, SEQ, 2);
	struct fidx_key keys[20];
	uint64_t visited;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	open_segment(&f, 1, 10);
	for (unsigned i = 0; i < 20; i++) {
		keys[i] = key_next(&f);
		(void)!fidx_insert(f.index, &keys[i], i % 2, 2, 0, FIDX_DROP_COLDEST);
	}
	fidx_hand(f.index, 20, 300, &visited);
	fidx_segment_close(f.index, 0);
	assert_int_equal(fidx_segment_slots(f.index, 0), 10);
	assert_int_equal(status_of(f.index).used, 10);
	assert_int_equal(status_of(f.index).live_bytes, 100);
	assert_true(fidx_verify(f.index));
	for (unsigned i = 0; i < 20; i += 2) {
		assert_int_equal(fidx_lookup(f.index, &keys[i], out), 0);
		assert_false(fidx_find(f.index, &keys[i], &match));
		assert_false(fidx_touch(f.index, &keys[i], &match));
		assert_false(fidx_remove(f.index, &keys[i], &match));
		assert_int_equal(fidx_clear(f.index, &keys[i]), 0);
	}
	fidx_hand(f.index, 1000, 0, &visited);
	assert_true(visited <= 10);
	assert_int_equal(fidx_sweep(f.index, 0), 10);
	assert_int_equal(fidx_segment_slots(f.index, 0), 0);
	assert_int_equal(fidx_segment_slots(f.index, 1), 10);
	fidx_segment_open(f.index, 0, 0, SEQ + 100, 100, NULL, 0);
	assert_int_equal(fidx_lookup(f.index, &keys[0], out), 0);
	(void)!fidx_insert(f.index, &keys[0], 0, 2, 0, FIDX_DROP_COLDEST);
	assert_false(fidx_find(f.index, &keys[0], &match)); /* an earlier life of the segment */
	assert_int_equal(fidx_lookup(f.index, &keys[0], out), 1);
	assert_int_equal(out[0].sequence, SEQ + 100);
	fixture_close(&f);
}

static void test_inserts_overwrite_slots_of_closed_segments(void **state)
{
	struct fixture f = { .config = { .tag_bits = 10 } };
	uint64_t drops = ctr_sum(CTR_index_drops);

	(void)state;
	fixture_open(&f, 16, 2);
	open_segment(&f, 0, 100);
	open_segment(&f, 1, 100);
	for (unsigned i = 0; i < 1000; i++) { /* full, and more */
		struct fidx_key key = key_next(&f);

		(void)!fidx_insert(f.index, &key, 0, 0, 0, FIDX_DROP_COLDEST);
	}
	assert_true(ctr_sum(CTR_index_drops) > drops);
	assert_int_equal(fidx_segment_slots(f.index, 0), 256);
	drops = ctr_sum(CTR_index_drops);
	fidx_segment_close(f.index, 0);
	for (unsigned i = 0; i < 240; i++) {
		struct fidx_key key = key_next(&f);

		(void)!fidx_insert(f.index, &key, 1, 0, 0, FIDX_DROP_COLDEST);
	}
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_int_equal(fidx_segment_slots(f.index, 0), 16);
	assert_int_equal(fidx_segment_slots(f.index, 1), 240);
	assert_counts(f.index, 240, 0, 24000, 24000);
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
		cmocka_unit_test(test_forced_relocation_loses_nothing),
		cmocka_unit_test(test_clock_values_of_both_modes),
		cmocka_unit_test(test_ghost_bytes_bound_the_ghosts),
		cmocka_unit_test(test_closed_segments_have_no_slots),
		cmocka_unit_test(test_inserts_overwrite_slots_of_closed_segments),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
