/* SPDX-License-Identifier: BSD-3-Clause */
/* Known collisions: a stranger is turned away once it is known, the owner never; the table is bounded. */
#include "tests/unit/flashindex/support.h"

#include "flashindex/index_internal.h"

static void test_nothing_is_known_at_first(void **state)
{
	struct fidx_match zeros = match_of(0, 0, 0), match = match_of(1, 5, 3);
	struct exact *exact;

	(void)state;
	assert_int_equal(exact_create(&exact), FS_OK);
	for (uint64_t hash = 0; hash < 100; hash++) {
		assert_false(exact_rejects(exact, &zeros, hash));
		assert_false(exact_rejects(exact, &match, hash));
	}
	exact_destroy(exact);
	exact_destroy(NULL);
}

static void test_every_part_of_an_identity_counts(void **state)
{
	struct fidx_match known = match_of(1, 5, 3), others[5];
	struct fixture f = { .config = { 0 } };

	(void)state;
	fixture_open(&f, 10, 100);
	known.place = 4711;
	for (unsigned i = 0; i < 5; i++)
		others[i] = known;
	others[0].segment++;
	others[1].sequence++;
	others[2].function++;
	others[3].place++;
	others[4].segment = 0, others[4].sequence = 0, others[4].function = 0, others[4].place = 0;
	fidx_learn(f.index, &known, 77);
	assert_true(exact_rejects(f.index->exact, &known, 78));
	for (unsigned i = 0; i < 5; i++)
		assert_false(exact_rejects(f.index->exact, &others[i], 78));
	/* Where in its pair a slot lies, and how warm it is, is no part of it. */
	known.way = 31, known.clock = 2, known.ghost = true;
	assert_true(exact_rejects(f.index->exact, &known, 78));
	assert_false(exact_rejects(f.index->exact, &known, 77));
	fixture_close(&f);
}

/* An owner whose hash is zero makes an entry like any other. */
static void test_what_is_known_is_learned_once(void **state)
{
	struct fidx_match match = match_of(2, 9, 1), second = match_of(3, 9, 1);
	struct fixture f = { .config = { 0 } };

	(void)state;
	fixture_open(&f, 10, 100);
	for (unsigned i = 0; i < 10; i++)
		fidx_learn(f.index, &match, 0);
	assert_int_equal(atomic_load(&f.index->exact->learned), 1);
	fidx_learn(f.index, &second, 5);
	assert_int_equal(atomic_load(&f.index->exact->learned), 2);
	assert_false(exact_rejects(f.index->exact, &match, 0));
	assert_true(exact_rejects(f.index->exact, &match, 5));
	assert_true(exact_rejects(f.index->exact, &second, 0));
	fixture_close(&f);
}

static void test_a_collision_is_met_once(void **state)
{
	struct fixture f = { .config = { .tag_bits = 4 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key owner, twin, third;
	uint64_t rejects = ctr_sum(CTR_exact_rejects);

	(void)state;
	fixture_open(&f, 7, 4);
	fidx_segment_open(f.index, 1, 0, 5, 100, NULL, 0);
	owner = key_next(&f);
	twin = key_twin(&f, &owner);
	third = key_twin(&f, &owner);
	(void)!fidx_insert(f.index, &owner, 1, 3, 0, FIDX_DROP_COLDEST);
	(void)!fidx_insert(f.index, &owner, 1, 4, 0, FIDX_DROP_COLDEST); /* a second identity of the same place */
	assert_int_equal(fidx_lookup(f.index, &twin, out), 2);
	for (unsigned i = 0; i < 2; i++)
		if (out[i].function == 3)
			fidx_learn(f.index, &out[i], owner.hash);
	assert_int_equal(fidx_lookup(f.index, &twin, out), 1);
	assert_int_equal(out[0].function, 4);
	assert_int_equal(fidx_lookup(f.index, &third, out), 1);
	assert_int_equal(fidx_lookup(f.index, &owner, out), 2);
	assert_int_equal(ctr_sum(CTR_exact_rejects) - rejects, 2);
	/* The stranger's clear spares it, the owner's does not. */
	assert_int_equal(fidx_clear(f.index, &twin), 1);
	assert_int_equal(fidx_clear(f.index, &owner), 1);
	/* The same place in a later life of the segment is another record. */
	fidx_segment_close(f.index, 1);
	fidx_segment_open(f.index, 1, 0, 6, 100, NULL, 0);
	(void)!fidx_insert(f.index, &twin, 1, 3, 0, FIDX_DROP_COLDEST);
	assert_int_equal(fidx_lookup(f.index, &twin, out), 1);
	assert_int_equal(fidx_lookup(f.index, &owner, out), 1);
	fixture_close(&f);
}

static void test_the_collision_table_is_bounded_and_never_wrong(void **state)
{
	struct fixture f = { .config = { 0 } };
	unsigned kept = 0, n = 20000;
	uint64_t place;

	(void)state;
	fixture_open(&f, 1000, 100);
	struct fidx_key key = key_next(&f);
	place = place_of_key(&f, &key);
	for (unsigned i = 0; i < n; i++) {
		struct fidx_match match = match_of(i % 100, i, i % 16);

		match.place = place;
		fidx_learn(f.index, &match, i);
		assert_true(exact_rejects(f.index->exact, &match, i + UINT64_C(1)));
	}
	for (unsigned i = 0; i < n; i++) {
		struct fidx_match match = match_of(i % 100, i, i % 16), elsewhere,
				  other = match_of(i % 100, i + n, i % 16);

		match.place = other.place = place;
		elsewhere = match;
		elsewhere.place++;
		kept += exact_rejects(f.index->exact, &match, UINT64_MAX);
		assert_false(exact_rejects(f.index->exact, &match, i));
		assert_false(exact_rejects(f.index->exact, &other, 1));
		assert_false(exact_rejects(f.index->exact, &elsewhere, 1));
	}
	assert_int_equal(kept, EXACT_SETS * EXACT_WAYS);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_every_part_of_an_identity_counts),
		cmocka_unit_test(test_what_is_known_is_learned_once),
		cmocka_unit_test(test_a_collision_is_met_once),
		cmocka_unit_test(test_the_collision_table_is_bounded_and_never_wrong),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
