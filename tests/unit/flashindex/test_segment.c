/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments open and close: their slots and bytes come into the sums and leave them, and a sweep leaves none. */
#include "tests/unit/flashindex/support.h"

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

static void test_a_sweep_takes_one_segments_slots_alone(void **state)
{
	struct fixture f = { .config = { .extents_most = 20 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key keys[60], large = { 0 };

	(void)state;
	fixture_open(&f, 10, 3);
	for (uint32_t s = 0; s < 3; s++)
		open_segment(&f, s, 10);
	for (unsigned i = 0; i < 60; i++) {
		keys[i] = key_next(&f);
		(void)!fidx_insert(f.index, &keys[i], i % 3, 0, i % 4, FIDX_DROP_NONE);
	}
	large = key_next(&f);
	assert_true(fidx_extent_insert(f.index, &large, 1, 4096, 70000, 0));
	/* It is open, and stays so. */
	assert_int_equal(fidx_sweep(f.index, 1), 21);
	assert_int_equal(fidx_sweep(f.index, 1), 0);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(fidx_lookup(f.index, &keys[i], out) > 0, i % 3 != 1);
	assert_counts(f.index, 40, 0, 400, 400);
	(void)!fidx_insert(f.index, &keys[1], 1, 0, 0, FIDX_DROP_NONE);
	assert_int_equal(fidx_lookup(f.index, &keys[1], out), 1);
	fixture_close(&f);
}

/* Of a closed segment, changes of slots no longer reach the sums: close takes off what there is, once. */
static void test_each_slot_leaves_the_sums_once(void **state)
{
	struct fixture f = { .config = { 0 } };
	uint64_t visited;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 1000);
	open_segment(&f, 1, 0); /* a mean of nothing */
	for (unsigned i = 0; i < 40; i++) {
		struct fidx_key key = key_next(&f);

		(void)!fidx_insert(f.index, &key, i % 2, 0, 0, FIDX_DROP_NONE);
	}
	assert_counts(f.index, 40, 0, 20000, 20000);
	assert_int_equal(fidx_hand(f.index, 1000, 1u << 30, &visited), 40);
	assert_counts(f.index, 40, 40, 20000, 0);
	fidx_segment_close(f.index, 0);
	assert_counts(f.index, 20, 20, 0, 0);
	assert_true(fidx_verify(f.index));
	fidx_sweep(f.index, 0);
	assert_counts(f.index, 20, 20, 0, 0);
	fidx_segment_close(f.index, 1);
	fidx_sweep(f.index, 1);
	assert_counts(f.index, 0, 0, 0, 0);
	fixture_close(&f);
}

static void test_a_filter_goes_with_its_segment(void **state)
{
	struct fixture f = { .config = { .filter_bits = 8 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key key, stranger;
	uint64_t length;
	size_t given;
	void *unit;

	(void)state;
	fixture_open(&f, 10, 2);
	key = key_next(&f);
	stranger = key_next(&f);
	unit = fidx_filter_build(f.index, &stranger.hash, 1, &given);
	length = given;
	fidx_segment_open(f.index, 0, 0, 5, 100, unit, given);
	(void)!fidx_insert(f.index, &key, 0, 0, 0, FIDX_DROP_NONE);
	assert_true(status_of(f.index).filter_bytes >= length);
	assert_int_equal(fidx_lookup(f.index, &key, out), 0); /* the filter knows another key alone */
	fidx_segment_close(f.index, 0);
	assert_int_equal(status_of(f.index).filter_bytes, 0);
	fidx_sweep(f.index, 0);
	open_segment(&f, 0, 100);
	(void)!fidx_insert(f.index, &key, 0, 0, 0, FIDX_DROP_NONE);
	assert_int_equal(fidx_lookup(f.index, &key, out), 1);
	fixture_close(&f);
}

/* Without its filter a segment's slots are all possible; with it, those of its own keys still are. */
static void test_a_filter_may_come_later(void **state)
{
	struct fixture f = { .config = { .filter_bits = 16, .tag_bits = 2 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key keys[100], others[200];
	unsigned false_before = 0, false_after = 0;
	uint64_t hashes[100];
	size_t length;
	void *unit;

	(void)state;
	fixture_open(&f, 10, 2);
	open_segment(&f, 0, 100);
	for (unsigned i = 0; i < 100; i++) {
		keys[i] = key_next(&f);
		hashes[i] = keys[i].hash;
		(void)!fidx_insert(f.index, &keys[i], 0, i % 16, 0, FIDX_DROP_NONE);
	}
	for (unsigned i = 0; i < 200; i++) {
		others[i] = key_next(&f);
		false_before += fidx_lookup(f.index, &others[i], out);
	}
	assert_true(fidx_lacks_filter(f.index, 0));
	assert_false(fidx_lacks_filter(f.index, 1));
	assert_true(fidx_filter_false_positive(f.index) == 1);
	assert_false(fidx_give_filter(f.index, 0, mem_must_zalloc(72), 72)); /* no trailer */
	assert_true(fidx_lacks_filter(f.index, 0));
	unit = fidx_filter_build(f.index, hashes, 100, &length);
	assert_true(fidx_give_filter(f.index, 0, unit, length));
	assert_false(fidx_lacks_filter(f.index, 0));
	for (unsigned i = 0; i < 100; i++) {
		struct fidx_match own = match_of(0, SEQ, i % 16);
		bool there = false;

		for (unsigned m = fidx_lookup(f.index, &keys[i], out); m-- > 0;)
			there |= fidx_same(&out[m], &own);
		assert_true(there);
	}
	for (unsigned i = 0; i < 200; i++)
		false_after += fidx_lookup(f.index, &others[i], out);
	assert_true(false_before > 100 && false_after < false_before / 10);
	assert_true(fidx_filter_false_positive(f.index) < 0.01);
	fidx_segment_close(f.index, 0);
	assert_int_equal(status_of(f.index).filter_bytes, 0);
	fidx_sweep(f.index, 0);
	fixture_close(&f);
}

static void test_a_segment_may_come_back_in_another_table(void **state)
{
	struct fixture f = { .config = { .buckets_most = 50 } };
	struct fidx_table tables[FIDX_TABLES];
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key key;
	unsigned table;

	(void)state;
	fixture_open(&f, 10, 2);
	assert_int_equal(fidx_table_add(f.index, 50, &table), FS_OK);
	open_segment(&f, 0, 100);
	key = key_next(&f);
	(void)!fidx_insert(f.index, &key, 0, 0, 0, FIDX_DROP_NONE);
	fidx_tables(f.index, tables);
	assert_int_equal(tables[0].used, 1);
	assert_int_equal(tables[0].segments, 1);
	assert_int_equal(tables[table].segments, 0);
	fidx_segment_close(f.index, 0);
	fidx_sweep(f.index, 0);
	fidx_segment_open(f.index, 0, table, SEQ + 9, 100, NULL, 0);
	(void)!fidx_insert(f.index, &key, 0, 0, 0, FIDX_DROP_NONE);
	assert_int_equal(fidx_lookup(f.index, &key, out), 1);
	assert_int_equal(out[0].sequence, SEQ + 9);
	assert_true(out[0].place == fidx_place_in(f.index, &key, table));
	assert_true(out[0].place == fidx_place(f.index, &key, 0));
	fidx_tables(f.index, tables);
	assert_int_equal(tables[0].used, 0);
	assert_int_equal(tables[0].segments, 0);
	assert_int_equal(tables[table].used, 1);
	assert_int_equal(tables[table].segments, 1);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sweep_takes_one_segments_slots_alone),
		cmocka_unit_test(test_each_slot_leaves_the_sums_once),
		cmocka_unit_test(test_a_filter_goes_with_its_segment),
		cmocka_unit_test(test_a_filter_may_come_later),
		cmocka_unit_test(test_a_segment_may_come_back_in_another_table),
		cmocka_unit_test(test_closed_segments_have_no_slots),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
