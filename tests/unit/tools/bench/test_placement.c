/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement study's candidates have the sizes they are named for, and its plans are measured right. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/placement_objects.h"
#include "tools/bench/placement_run.h"
#include "tools/common/apps.h"

#define MIB (1u << 20)

static void a_plan_that_is_refused_is_told(void **state)
{
	struct placement_run run = { .segment_bytes = MIB, .functions = SEG_SIMULATED_FUNCTIONS + 1 };
	struct placement_outcome outcome;
	struct seg_plan plan;

	(void)state;
	assert_int_equal(placement_measure(&run, NULL, 0, &outcome, &plan), FS_EINVAL);
}

static void all_have_one_size_when_equal(void **state)
{
	struct placement_objects objects;

	(void)state;
	placement_objects_make(&objects, PLACEMENT_EQUAL, MIB, 1);
	assert_int_equal(objects.count, MIB / 319 + 1);
	for (uint32_t i = 0; i < objects.count; i++) {
		assert_int_equal(objects.all[i].length, 319);
		assert_int_equal(objects.all[i].extent, 0);
	}
	placement_objects_free(&objects);
}

/* Mean and spread of what is beside header and key, in logarithms. */
static void check_log_normal(enum placement_sizes sizes, double sigma)
{
	struct placement_objects objects;
	double sum = 0, logs = 0, squares = 0;

	placement_objects_make(&objects, sizes, 32 * MIB, 1);
	for (uint32_t i = 0; i < objects.count; i++) {
		double value = objects.all[i].length - (double)SEG_RECORD_HEADER - PLACEMENT_KEY_BYTES;

		sum += value;
		logs += log(value);
		squares += log(value) * log(value);
	}
	logs /= objects.count;
	assert_true(fabs(sum / objects.count - PLACEMENT_VALUE_BYTES) < 0.03 * PLACEMENT_VALUE_BYTES);
	assert_true(fabs(sqrt(squares / objects.count - logs * logs) - sigma) < 0.03 * sigma);
	placement_objects_free(&objects);
}

static void log_normal_sizes_have_their_mean_and_spread(void **state)
{
	(void)state;
	check_log_normal(PLACEMENT_NARROW, 0.5);
	check_log_normal(PLACEMENT_WIDE, 1.25);
}

static void the_mix_has_the_published_mean_throughout(void **state)
{
	double published = SEG_RECORD_HEADER + PUBLISHED_OBJECT_BYTES;
	struct placement_objects objects;
	uint32_t half, extents = 0;

	(void)state;
	placement_objects_make(&objects, PLACEMENT_MIX, 64 * MIB, 1);
	assert_true(fabs((double)objects.bytes / objects.count - published) < 0.1 * published);
	/* The applications are shuffled: half of the bytes have half of the records, or nearly. */
	half = placement_objects_for(&objects, 0, objects.bytes / 2);
	assert_true(fabs((double)half / objects.count - 0.5) < 0.03);
	for (uint32_t i = 0; i < objects.count; i++) {
		assert_int_equal(objects.all[i].extent, objects.all[i].length > PLACEMENT_EXTENT_BYTES);
		extents += objects.all[i].extent;
	}
	assert_in_range(extents, 1, objects.count / 1000);
	placement_objects_free(&objects);
}

static void a_run_of_objects_has_the_bytes_asked_for(void **state)
{
	struct placement_objects objects;
	uint64_t bytes = 0;
	uint32_t count;

	(void)state;
	placement_objects_make(&objects, PLACEMENT_MIX, 4 * MIB, 1);
	count = placement_objects_for(&objects, 10, MIB);
	for (uint32_t i = 10; i < 10 + count; i++)
		bytes += objects.all[i].length;
	assert_true(bytes >= MIB && bytes - objects.all[10 + count - 1].length < MIB);
	assert_int_equal(placement_objects_for(&objects, 10, 8 * MIB), objects.count - 10);
	placement_objects_free(&objects);
}

static void a_plan_is_measured(void **state)
{
	struct placement_run run = { .segment_bytes = 4 * MIB, .sequence = 1, .functions = 16 };
	struct placement_objects objects;
	struct placement_outcome outcome;
	struct seg_plan plan;

	(void)state;
	placement_objects_make(&objects, PLACEMENT_EQUAL, 8 * MIB, 1);
	assert_int_equal(placement_measure(&run, objects.all, objects.count, &outcome, &plan), FS_OK);
	assert_true(outcome.fill >= 97 && outcome.fill <= 100);
	assert_true(fabs(outcome.whole - 100.0 * plan.count * 319 / (4 * MIB)) < 1e-9);
	assert_true(outcome.whole < outcome.fill);
	assert_true(outcome.hashes >= 1 && outcome.hashes <= 16);
	assert_true(outcome.mb_s > 0);
	seg_plan_fini(&plan);
	placement_objects_free(&objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_that_is_refused_is_told),
		cmocka_unit_test(all_have_one_size_when_equal),
		cmocka_unit_test(log_normal_sizes_have_their_mean_and_spread),
		cmocka_unit_test(the_mix_has_the_published_mean_throughout),
		cmocka_unit_test(a_run_of_objects_has_the_bytes_asked_for),
		cmocka_unit_test(a_plan_is_measured),
	};

	return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
