/* SPDX-License-Identifier: BSD-3-Clause */
/* The study of filter units: what was written is found, and units read less in vain where tables are asked unequally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/elastic_run.h"

#define GETS 20000u

static struct elastic_cost run(const struct elastic_shape *shape)
{
	struct elastic_cost cost;

	assert_int_equal(elastic_run(shape, GETS, &cost), FS_OK);
	assert_int_equal(cost.gets, GETS);
	assert_true(cost.reads - cost.in_vain > GETS * 0.48 && cost.reads - cost.in_vain < GETS * 0.52);
	assert_true(cost.in_vain_absent <= cost.in_vain);
	return cost;
}

static void shapes_without_sense_are_refused(void **state)
{
	const struct elastic_shape wrong[] = {
		{ .segments = 1, .keys_each = 10 },
		{ .segments = 10 },
		{ .segments = 10, .keys_each = 10, .exponent = 1 },
		{ .segments = 10, .keys_each = 10, .units = 4 },
		{ .segments = 10, .keys_each = 10, .units = 9, .bits = 1 },
	};
	struct elastic_cost cost;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(elastic_run(&wrong[i], 1, &cost), FS_EINVAL);
}

static void units_of_levels_read_less_in_vain(void **state)
{
	struct elastic_shape shape = { .levels = true, .segments = 200, .keys_each = 500, .bits = 4, .exponent = 0.99 };
	struct elastic_cost fixed, units;

	(void)state;
	fixed = run(&shape);
	shape.units = 6;
	units = run(&shape);
	assert_true(fixed.in_vain > 1000 && units.loads > 100);
	assert_true(units.in_vain < fixed.in_vain / 2);
}

static void slots_have_filters_of_either_kind_behind_their_tags(void **state)
{
	struct elastic_shape shape = { .segments = 50, .keys_each = 500, .tag_bits = 7, .learns = true };
	struct elastic_cost none, fixed, units;

	(void)state;
	none = run(&shape);
	shape.bits = 4;
	fixed = run(&shape);
	shape.units = 4;
	units = run(&shape);
	assert_true(none.in_vain > 1500); /* 32 slots * 0.95 / 2^7 = 0.24 for each get */
	assert_true(fixed.in_vain < none.in_vain / 3 && units.in_vain < none.in_vain / 3);
	assert_true(none.filter_bits == 0 && fixed.filter_bits >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_without_sense_are_refused),
		cmocka_unit_test(units_of_levels_read_less_in_vain),
		cmocka_unit_test(slots_have_filters_of_either_kind_behind_their_tags),
	};

	return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
