/* SPDX-License-Identifier: BSD-3-Clause */
/* The weighted Count-Min sketch: weights, hotness as a share of all counters, and what an overflow leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/store/request/sketch.h"

#define WIDTH 256
#define KEY 0x123456789abcdef1ull

static uint64_t sum_of(const struct sketch *sketch)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < sketch_bytes(sketch->width); i++)
		sum += sketch->counters[i];
	return sum;
}

static bool is_near(double value, double wanted)
{
	return value > wanted - 1e-9 && value < wanted + 1e-9;
}

static uint64_t another_key(uint64_t number)
{
	return (number + 1) * 0xd6e8feb86659fd93ull;
}

static void an_access_adds_its_weight_to_each_row(void **state)
{
	struct sketch sketch;

	(void)state;
	sketch_init(&sketch, WIDTH);
	assert_true(is_near(sketch_add(&sketch, KEY, 3), 25));
	for (unsigned row = 0; row < SKETCH_ROWS; row++) {
		uint64_t sum = 0;

		for (unsigned column = 0; column < WIDTH; column++)
			sum += sketch.counters[row * WIDTH + column];
		assert_int_equal(sum, 3);
	}
	assert_int_equal(sketch.sum, 12);
	sketch_fini(&sketch);
}

static void a_weight_out_of_range_counts_as_the_nearest(void **state)
{
	struct sketch sketch;

	(void)state;
	sketch_init(&sketch, WIDTH);
	(void)sketch_add(&sketch, KEY, 0);
	assert_int_equal(sum_of(&sketch), SKETCH_ROWS);
	sketch_fini(&sketch);
	sketch_init(&sketch, WIDTH);
	(void)sketch_add(&sketch, KEY, 1000);
	assert_int_equal(sum_of(&sketch), SKETCH_ROWS * SKETCH_HEAVIEST);
	sketch_fini(&sketch);
}

/* One of two accesses is the key's, the others are of 5000 keys. */
static void a_hot_key_is_told_from_cold_ones(void **state)
{
	struct sketch sketch;
	double hot = 0, coldest = 100;

	(void)state;
	sketch_init(&sketch, WIDTH);
	for (uint64_t n = 0; n < 200; n++) {
		double cold = sketch_add(&sketch, another_key(n), 1);

		hot = sketch_add(&sketch, KEY, 1);
		coldest = cold < coldest ? cold : coldest;
	}
	assert_true(hot >= 12.5);
	assert_true(coldest < 0.2);
	assert_int_equal(sketch.sum, sum_of(&sketch));
	assert_int_equal(sketch.emptied, 0);
	sketch_fini(&sketch);
}

/* Two keys are read as often, and one of them costs three reads. */
static void what_costs_more_reads_is_hotter(void **state)
{
	struct sketch sketch;
	double dear = 0, cheap = 0;

	(void)state;
	sketch_init(&sketch, 4096);
	for (unsigned n = 0; n < 50; n++) {
		dear = sketch_add(&sketch, another_key(1), 3);
		cheap = sketch_add(&sketch, another_key(2), 1);
	}
	assert_true(dear > 2.9 * cheap);
	sketch_fini(&sketch);
}

static void an_overflow_empties_all_but_the_counters_that_overflowed(void **state)
{
	struct sketch sketch;

	(void)state;
	sketch_init(&sketch, WIDTH);
	for (unsigned n = 0; n < 100; n++)
		(void)sketch_add(&sketch, another_key(n), 1);
	for (unsigned n = 0; sketch.emptied == 0; n++) {
		assert_true(n < 256);
		(void)sketch_add(&sketch, KEY, 1);
	}
	/* All four counters are the key's own, unless others of the hundred share one: then these filled first. */
	assert_true(sketch.sum >= SKETCH_RESEED + SKETCH_ROWS);
	assert_true(sketch.sum <= SKETCH_ROWS * (SKETCH_RESEED + 1));
	assert_int_equal(sketch.sum, sum_of(&sketch));
	assert_true(sketch_add(&sketch, KEY, 1) > 1);
	sketch_fini(&sketch);
}

static uint64_t random_number(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
	return mixed ^ mixed >> 31;
}

/* Until the first overflow. Keys share counters. */
static void no_key_is_colder_than_its_accesses(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 40; round++) {
		uint64_t had[64] = { 0 }, keys[64];
		struct sketch sketch;

		sketch_init(&sketch, 16);
		for (unsigned i = 0; i < 64; i++)
			keys[i] = random_number(&seed);
		for (;;) {
			unsigned key = (unsigned)random_number(&seed) % 64;
			double hotness = sketch_add(&sketch, keys[key], 1);

			if (sketch.emptied > 0)
				break;
			had[key]++;
			assert_true(hotness / 100 * (double)sketch.sum > (double)had[key] - 0.5);
		}
		sketch_fini(&sketch);
	}
}

static void one_column_holds_too(void **state)
{
	struct sketch sketch;

	(void)state;
	sketch_init(&sketch, 1);
	for (uint64_t n = 0; n < 1000; n++)
		assert_true(is_near(sketch_add(&sketch, another_key(n), (unsigned)n % 300), 25));
	assert_true(sketch.emptied > 100);
	assert_int_equal(sketch.sum, sum_of(&sketch));
	sketch_fini(&sketch);
	sketch_fini(&sketch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_access_adds_its_weight_to_each_row),
		cmocka_unit_test(a_weight_out_of_range_counts_as_the_nearest),
		cmocka_unit_test(a_hot_key_is_told_from_cold_ones),
		cmocka_unit_test(what_costs_more_reads_is_hotter),
		cmocka_unit_test(an_overflow_empties_all_but_the_counters_that_overflowed),
		cmocka_unit_test(no_key_is_colder_than_its_accesses),
		cmocka_unit_test(one_column_holds_too),
	};

	return cmocka_run_group_tests_name("store: sketch", tests, NULL, NULL);
}
