/* SPDX-License-Identifier: BSD-3-Clause */
/* Inserting: refused or dropped when nothing is free, over what is free, and after moves that lose nothing. */
#include "tests/unit/flashindex/support.h"

static void test_an_insert_that_may_drop_nothing_is_refused_when_all_is_full(void **state)
{
	struct fixture f = { .config = { 0 } };
	struct fidx *index = fixture_open(&f, 2, 2);
	unsigned stored = 0, refused = 0;
	uint64_t drops = ctr_sum(CTR_index_drops);

	(void)state;
	fidx_segment_open(index, 0, 0, 5, 100, NULL, 0);
	for (unsigned i = 0; i < 100; i++) {
		struct fidx_key key = key_next(&f);

		if (fidx_insert(index, &key, 0, 0, 0, FIDX_DROP_NONE))
			stored++;
		else
			refused++;
	}
	assert_int_equal(stored, 2 * FIDX_BUCKET_SLOTS);
	assert_int_equal(refused, 100 - stored);
	assert_int_equal(status_of(index).used, stored);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	fixture_close(&f);
}

static void open_segments(struct fixture *f, uint32_t n)
{
	for (uint32_t s = 0; s < n; s++)
		fidx_segment_open(f->index, s, 0, 1000 + s, 400, NULL, 0);
}

static void test_full_index_drops_the_coldest(void **state)
{
	struct fixture f = { .config = { .tag_bits = 12 } };
	struct fidx_key keys[32], key;
	struct fidx_match hot, cold[32];
	uint64_t drops = ctr_sum(CTR_index_drops), visited;

	(void)state;
	fixture_open(&f, 2, 4); /* two buckets: 32 slots */
	open_segments(&f, 4);
	/* Whose partner is the other bucket, so that all 32 are candidates of all. */
	for (unsigned i = 0; i < 32; i++) {
		do
			keys[i] = key_next(&f);
		while (keys[i].bucket[0][0] == keys[i].bucket[0][1]);
		(void)!fidx_insert(f.index, &keys[i], i % 4, i / 4, i == 7 || i == 9 ? 1 : 3, FIDX_DROP_COLDEST);
		cold[i] = match_of(i % 4, 1000 + i % 4, i / 4);
	}
	assert_int_equal(status_of(f.index).used, 32);
	/* The hand takes 7 and 9 to zero, and in its next turn one of them to a ghost. */
	fidx_hand(f.index, 32, 0, &visited);
	hot = cold[9];
	fidx_touch(f.index, &keys[9], &hot);
	assert_int_equal(fidx_hand(f.index, 32, 1, &visited), 1);
	assert_true(fidx_find(f.index, &keys[7], &cold[7]));
	assert_true(cold[7].ghost);
	do
		key = key_next(&f);
	while (key.bucket[0][0] == key.bucket[0][1]);
	(void)!fidx_insert(f.index, &key, 0, 15, 0, FIDX_DROP_COLDEST);
	assert_int_equal(ctr_sum(CTR_index_drops), drops + 1);
	assert_false(fidx_find(f.index, &keys[7], &cold[7]));
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(fidx_find(f.index, &keys[i], &cold[i]), i != 7);
	assert_int_equal(status_of(f.index).used, 32);
	assert_int_equal(status_of(f.index).ghosts, 0);
	/* The newcomer is the coldest now: unread at zero. */
	(void)!fidx_insert(f.index, &keys[7], 1, 14, 0, FIDX_DROP_COLDEST);
	cold[0] = match_of(0, 1000, 15);
	assert_false(fidx_find(f.index, &key, &cold[0]));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_insert_that_may_drop_nothing_is_refused_when_all_is_full),
		cmocka_unit_test(test_full_index_drops_the_coldest),
		cmocka_unit_test(test_inserts_overwrite_slots_of_closed_segments),
		cmocka_unit_test(test_forced_relocation_loses_nothing),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
