/* SPDX-License-Identifier: BSD-3-Clause */
/* Expectations beside what came, and features beside accesses, on samples whose answer is known; sets of samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/sim/calibration.h"

#define EACH 100u

/* Sample n: its count is 2^(n % 4), as is the number of accesses that come; every second one is held out. */
static struct clf_labelled sample_of(unsigned n)
{
	return (struct clf_labelled){ .id = 1000 + (n * 7919u) % EACH,
				      .by_count = n % 4,
				      .by_model = NAN,
				      .accesses = 1u << n % 4,
				      .held_out = n / 4 % 2 == 1,
				      .feature = { [CLF_READS] = n % 4, [CLF_MAX_GAP] = 5, [CLF_SIZE] = n } };
}

static struct sample_set set_of(unsigned count)
{
	struct clf_labelled samples[EACH];
	struct sample_set set = { 0 };

	for (unsigned n = 0; n < count; n++)
		samples[n] = sample_of(n);
	sample_set_add(&set, samples, count);
	return set;
}

static double number(const json_t *rows, size_t row, const char *name)
{
	return json_number_value(json_object_get(json_array_get(rows, row), name));
}

static void a_sample_is_kept_once(void **state)
{
	struct clf_labelled again = sample_of(3), other = { .id = 1 };
	struct sample_set set = set_of(EACH);

	(void)state;
	assert_int_equal(set.count, EACH);
	again.accesses = 77; /* what came first stays */
	sample_set_add(&set, &again, 1);
	assert_int_equal(set.count, EACH);
	for (size_t i = 0; i < set.count; i++)
		assert_true(set.sample[i].accesses < 77 && (i == 0 || set.sample[i - 1].id < set.sample[i].id));
	sample_set_add(&set, &other, 1);
	assert_int_equal(set.count, EACH + 1);
	assert_int_equal(set.sample[0].id, 1);
	sample_set_fini(&set);
	assert_int_equal(set.count, 0);
}

static void few_samples_say_nothing(void **state)
{
	struct sample_set set = set_of(16), none = { 0 };
	json_t *calibration = calibration_json(&set), *features = features_json(&none);

	(void)state;
	assert_true(json_is_null(calibration)); /* eight are held out */
	assert_true(json_is_null(features));
	json_decref(calibration);
	json_decref(features);
	sample_set_fini(&set);
}

/* What is expected comes true in each tenth. */
static void expectations_that_come_true(void **state)
{
	struct sample_set set = set_of(EACH);
	json_t *calibration = calibration_json(&set), *rows = json_object_get(calibration, "count");
	json_int_t samples = 0;

	(void)state;
	assert_true(json_is_null(json_object_get(calibration, "model")));
	assert_int_equal(json_array_size(rows), 10);
	for (size_t row = 0; row < 10; row++) {
		assert_true(fabs(number(rows, row, "expected") - number(rows, row, "observed")) < 1e-9);
		assert_true(row == 0 || number(rows, row, "worth") >= number(rows, row - 1, "worth"));
		samples += (json_int_t)number(rows, row, "samples");
	}
	assert_true(number(rows, 0, "observed") == 1 && number(rows, 9, "observed") == 8);
	assert_int_equal(samples, json_integer_value(json_object_get(calibration, "samples")));
	json_decref(calibration);
	sample_set_fini(&set);
}

/* A model that expects the same of all is compared with what each tenth of the worth, here by size, got. */
static void a_model_that_knows_nothing(void **state)
{
	struct sample_set set = set_of(EACH);
	json_t *calibration, *rows;

	(void)state;
	for (size_t i = 0; i < set.count; i++) {
		set.sample[i].by_model = 0;
		set.sample[i].size_octaves = 8 - set.sample[i].by_count;
		set.sample[i].accesses *= 100; /* 64 of them count */
	}
	calibration = calibration_json(&set);
	rows = json_object_get(calibration, "model");
	assert_int_equal(json_array_size(rows), 10);
	for (size_t row = 0; row < 10; row++) {
		assert_true(number(rows, row, "expected") == number(rows, 0, "expected"));
		assert_true(number(rows, row, "observed") == 64);
	}
	assert_true(fabs(number(rows, 9, "worth") - -5) < 1e-9);
	json_decref(calibration);
	sample_set_fini(&set);
}

static const json_t *rows_of(const json_t *features, enum clf_feature feature)
{
	return json_object_get(json_array_get(features, feature), "rows");
}

static void features_go_with_accesses(void **state)
{
	struct sample_set set = set_of(EACH);
	json_t *features;
	const json_t *rows;

	(void)state;
	for (size_t i = 0; i < set.count; i++)
		set.sample[i].accesses =
			set.sample[i].feature[CLF_READS] > 2 ? 11 : set.sample[i].feature[CLF_READS] > 0;
	features = features_json(&set);
	assert_int_equal(json_array_size(features), CLF_FEATURES);
	rows = rows_of(features, CLF_READS);
	assert_int_equal(json_array_size(rows), 4);
	for (size_t row = 0; row < 4; row++) {
		assert_true(number(rows, row, "value") == (double)row && number(rows, row, "samples") == EACH / 4);
		assert_true(number(rows, row, "read") == (row > 0) && number(rows, row, "read_often") == (row > 2));
	}
	assert_true(number(rows, 3, "accesses") == 11);
	rows = rows_of(features, CLF_MAX_GAP); /* one value, of those that were read */
	assert_int_equal(json_array_size(rows), 1);
	assert_true(number(rows, 0, "samples") == EACH / 4 * 3);
	rows = rows_of(features, CLF_SIZE); /* each another value */
	assert_in_range(json_array_size(rows), 10, 12);
	json_decref(features);
	sample_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_is_kept_once),       cmocka_unit_test(few_samples_say_nothing),
		cmocka_unit_test(expectations_that_come_true), cmocka_unit_test(a_model_that_knows_nothing),
		cmocka_unit_test(features_go_with_accesses),
	};

	return cmocka_run_group_tests_name("calibration", tests, NULL, NULL);
}
