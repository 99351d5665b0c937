/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms against exact quantiles. */
#include <math.h>
#include <stdlib.h>

#include "base/hist.h"
#include "base/rng.h"
#include "tests/unit/base/base_test.h"

#define VALUES 20000

static void an_empty_one_answers_zero(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	assert_int_equal(hist_quantile(hist, 0), 0);
	assert_int_equal(hist_quantile(hist, 0.99), 0);
	assert_true(hist_mean(hist) == 0);
	hist_destroy(hist);
}

static void quantiles_outside_0_to_1_are_clamped(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	hist_record(hist, 3);
	hist_record(hist, 5);
	assert_int_equal(hist_quantile(hist, -1), 3);
	assert_int_equal(hist_quantile(hist, 2), 5);
	hist_destroy(hist);
}

static void extreme_values_have_a_bucket(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	hist_record(hist, 0);
	hist_record(hist, UINT64_MAX);
	assert_int_equal(hist_quantile(hist, 0), 0);
	assert_true(hist_quantile(hist, 1) == UINT64_MAX);
	hist_destroy(hist);
}

static void small_values_are_exact(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	for (uint64_t value = 0; value < 128; value++)
		hist_record(hist, value);
	for (uint64_t value = 0; value < 128; value++)
		assert_int_equal(hist_quantile(hist, (double)(value + 1) / 128), value);
	hist_destroy(hist);
}

/* Of three values the median is the second: half of three is a rank of two. */
static void a_rank_is_rounded_up(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	for (uint64_t value = 1; value <= 3; value++)
		hist_record(hist, value);
	assert_int_equal(hist_quantile(hist, 0.33), 1);
	assert_int_equal(hist_quantile(hist, 0.34), 2);
	assert_int_equal(hist_quantile(hist, 0.5), 2);
	assert_int_equal(hist_quantile(hist, 0.67), 3);
	hist_destroy(hist);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void the_error_stays_below_one_step(void **state)
{
	static const double quantiles[] = { 0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
	uint64_t *values = malloc(VALUES * sizeof(*values));
	struct hist *hist = hist_create();
	struct rng rng;
	double sum = 0;

	(void)state;
	rng_init(&rng, 42);
	for (int i = 0; i < VALUES; i++) {
		values[i] = (uint64_t)exp(rng_real(&rng) * 30); /* from 1 to 10^13 */
		sum += (double)values[i];
		hist_record(hist, values[i]);
	}
	qsort(values, VALUES, sizeof(*values), by_value);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double rank = ceil(quantiles[i] * VALUES);
		uint64_t exact = values[rank < 1 ? 0 : (size_t)rank - 1];
		uint64_t got = hist_quantile(hist, quantiles[i]);

		assert_true(got >= exact);
		assert_true((double)(got - exact) <= 0.016 * (double)exact);
	}
	assert_true(fabs(hist_mean(hist) - sum / VALUES) <= 1e-6 * sum / VALUES);
	assert_int_equal(hist_quantile(hist, 1), values[VALUES - 1]);
	hist_destroy(hist);
	free(values);
}

static void a_merge_is_as_if_one_had_recorded_all(void **state)
{
	struct hist *one = hist_create(), *other = hist_create(), *all = hist_create();

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		hist_record(i % 3 ? one : other, i * i);
		hist_record(all, i * i);
	}
	hist_merge(one, other);
	assert_memory_equal(one, all, sizeof(*one));
	hist_reset(one);
	assert_int_equal(hist_quantile(one, 1), 0);
	hist_destroy(one);
	hist_destroy(other);
	hist_destroy(all);
}

static void many_at_once_are_as_one_after_the_other(void **state)
{
	struct hist *one = hist_create(), *many = hist_create();

	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		hist_record_many(many, i * i * i, i % 7);
		for (uint64_t n = 0; n < i % 7; n++)
			hist_record(one, i * i * i);
	}
	assert_memory_equal(one, many, sizeof(*one));
	hist_destroy(one);
	hist_destroy(many);
}

/* All of it, nothing of it, and more than there is, which doesn't wrap. */
static void what_was_earlier_is_taken_away(void **state)
{
	struct hist *hist = hist_create(), *earlier = hist_create();

	(void)state;
	hist_record_many(hist, 1000, 3);
	hist_record(hist, 1u << 20);
	hist_subtract(hist, earlier);
	assert_int_equal(hist->count, 4);
	assert_int_equal(hist->max, 1u << 20);
	hist_merge(earlier, hist);
	hist_record_many(hist, 70, 2);
	hist_subtract(hist, earlier);
	assert_int_equal(hist->count, 2);
	assert_int_equal(hist->sum, 140);
	assert_int_equal(hist_quantile(hist, 0), 70);
	assert_int_equal(hist_quantile(hist, 1), 70);
	assert_true(hist->max < 72);
	hist_subtract(hist, earlier);
	hist_subtract(hist, hist);
	assert_int_equal(hist->count, 0);
	assert_int_equal(hist->sum, 0);
	assert_int_equal(hist->max, 0);
	assert_int_equal(hist_quantile(hist, 1), 0);
	hist_destroy(hist);
	hist_destroy(earlier);
}

static void counts_up_to_a_bound(void **state)
{
	struct hist *hist = hist_create();

	(void)state;
	assert_int_equal(hist_count_up_to(hist, UINT64_MAX), 0);
	for (uint64_t value = 0; value < 100000; value++)
		hist_record(hist, value);
	for (uint64_t bound = 0; bound < 100000; bound += 97) {
		uint64_t count = hist_count_up_to(hist, bound);

		assert_true(count >= bound + 1);
		assert_true(count <= bound + 1 + bound / 60);
	}
	assert_int_equal(hist_count_up_to(hist, 0), 1);
	assert_int_equal(hist_count_up_to(hist, 63), 64);
	assert_int_equal(hist_count_up_to(hist, UINT64_MAX), 100000);
	hist_destroy(hist);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one_answers_zero),
		cmocka_unit_test(quantiles_outside_0_to_1_are_clamped),
		cmocka_unit_test(extreme_values_have_a_bucket),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(a_rank_is_rounded_up),
		cmocka_unit_test(the_error_stays_below_one_step),
		cmocka_unit_test(a_merge_is_as_if_one_had_recorded_all),
		cmocka_unit_test(many_at_once_are_as_one_after_the_other),
		cmocka_unit_test(what_was_earlier_is_taken_away),
		cmocka_unit_test(counts_up_to_a_bound),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
