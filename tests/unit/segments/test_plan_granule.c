/* SPDX-License-Identifier: BSD-3-Clause */
/* The granule: that of equal sizes is their size, that of many sizes is fine where there are candidates enough. */
#include "base/alloc.h"
#include "tests/unit/segments/plans.h"

#define LEAST 8u
#define AREA (4u * MIB)

/* The granule for candidates all of which are slots. */
static uint32_t granule_of(const struct seg_candidate *candidates, uint32_t count, uint64_t data_bytes,
			   unsigned functions)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += candidates[i].length;
	return plan_choose_granule(candidates, count, count, bytes, data_bytes, functions);
}

/* Candidates whose lengths go through a list. The caller frees them. */
static struct seg_candidate *with_lengths(uint32_t count, const uint32_t *lengths, unsigned n)
{
	struct seg_candidate *candidates = mem_must_zalloc(count * sizeof(*candidates));

	for (uint32_t i = 0; i < count; i++)
		candidates[i] = (struct seg_candidate){ .place = i, .length = lengths[i % n] };
	return candidates;
}

static void without_candidates_or_room_it_is_the_least(void **state)
{
	static const uint32_t length = 300;
	struct seg_candidate *candidates = with_lengths(10, &length, 1);

	(void)state;
	assert_int_equal(plan_choose_granule(NULL, 0, 0, 0, AREA, 16), LEAST);
	assert_int_equal(granule_of(candidates, 10, 0, 16), LEAST);
	for (unsigned i = 0; i < 10; i++)
		candidates[i].extent = 1;
	assert_int_equal(plan_choose_granule(candidates, 10, 0, 0, AREA, 16), LEAST);
	mem_free(candidates);
}

/* 7 bytes can't be a granule, nor can what is larger than the area. */
static void it_is_never_below_the_least_or_above_the_area(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 7, 5000, PLAN_SLOT_MAX };

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct seg_candidate *candidates = with_lengths(50, &lengths[i], 1);

		for (unsigned functions = 1; functions <= SEG_SIMULATED_FUNCTIONS; functions += 5)
			assert_in_range(granule_of(candidates, 50, SEG_PAGE, functions), LEAST, SEG_PAGE);
		mem_free(candidates);
	}
}

static void extents_and_records_that_are_too_long_do_not_count(void **state)
{
	static const uint32_t lengths[] = { 300, 1000, PLAN_SLOT_MAX + 7 };
	struct seg_candidate *candidates = with_lengths(300, lengths, 3);

	(void)state;
	for (unsigned i = 1; i < 300; i += 3)
		candidates[i].extent = 1;
	assert_int_equal(plan_choose_granule(candidates, 300, 100, 30000, AREA, 16), 300);
	mem_free(candidates);
}

/* However many there are, and whatever part of them the sample has. */
static void of_equal_sizes_it_is_the_size(void **state)
{
	static const uint32_t lengths[] = { 8, 53, 257, 300, 4096, 70001 };
	static const uint32_t counts[] = { 1, 100, 4095, 4096, 4097, 3 * 4096 + 1 };

	(void)state;
	for (unsigned l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
		for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			struct seg_candidate *candidates = with_lengths(counts[c], &lengths[l], 1);

			assert_int_equal(granule_of(candidates, counts[c], AREA, 16), lengths[l]);
			assert_int_equal(granule_of(candidates, counts[c], AREA, 1), lengths[l]);
			mem_free(candidates);
		}
}

static void of_multiples_it_is_their_common_divisor(void **state)
{
	static const uint32_t lengths[] = { 600, 300, 900, 300 };
	struct seg_candidate *candidates = with_lengths(5000, lengths, 4);

	(void)state;
	assert_int_equal(granule_of(candidates, 5000, AREA, 16), 300);
	mem_free(candidates);
}

/* A few strangers among them are rounded up, which costs less than to round up all others. */
static void of_one_size_with_few_strangers_it_is_that_size(void **state)
{
	static const uint32_t lengths[] = { 307 };
	struct seg_candidate *candidates = with_lengths(5000, lengths, 1);

	(void)state;
	for (unsigned i = 50; i < 5000; i += 100)
		candidates[i].length = 101;
	assert_int_equal(granule_of(candidates, 5000, AREA, 16), 307);
	mem_free(candidates);
}

static void it_is_coarser_where_candidates_have_fewer_chances(void **state)
{
	uint32_t count, many, few;
	struct seg_candidate *candidates = candidates_make(&count, AREA, 30, 1.25, 1);

	(void)state;
	many = granule_of(candidates, count, AREA, 16);
	few = granule_of(candidates, count, AREA, 1);
	assert_int_equal(many, LEAST);
	assert_true(few > many);
	/* And so it is when there are fewer of them. */
	assert_true(granule_of(candidates, count / 1000, AREA, 16) > many);
	mem_free(candidates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_candidates_or_room_it_is_the_least),
		cmocka_unit_test(it_is_never_below_the_least_or_above_the_area),
		cmocka_unit_test(extents_and_records_that_are_too_long_do_not_count),
		cmocka_unit_test(of_equal_sizes_it_is_the_size),
		cmocka_unit_test(of_multiples_it_is_their_common_divisor),
		cmocka_unit_test(of_one_size_with_few_strangers_it_is_that_size),
		cmocka_unit_test(it_is_coarser_where_candidates_have_fewer_chances),
	};

	return cmocka_run_group_tests_name("plan_granule", tests, NULL, NULL);
}
