/* SPDX-License-Identifier: BSD-3-Clause */
/* The study of the index's parts: what was written is found, what wasn't is rejected as often as theory says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/ablation_run.h"

#define SLOTS (16 * 2000u)
#define SEGMENTS 50u
#define LOOKUPS 50000u

static void shapes_without_room_are_refused(void **state)
{
	const struct ablation_shape wrong[] = {
		{ .slots = 8, .segments = 2, .load = 0.5 },
		{ .slots = 160, .segments = 1, .load = 0.5 },
		{ .slots = 160, .segments = 2, .load = 0 },
		{ .slots = 160, .segments = 2, .load = 0.99 },
		{ .slots = 160, .segments = 159, .load = 0.5 },
		{ .slots = 160, .segments = 2, .load = 0.5, .paper = true },
	};
	struct ablation_run run;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ablation_run_init(&run, &wrong[i]), FS_EINVAL);
}

/* The costs of hits and misses after two turns. */
static void measure(const struct ablation_shape *shape, struct ablation_cost *hit, struct ablation_cost *miss,
		    double *bytes)
{
	struct ablation_run run;

	assert_int_equal(ablation_run_init(&run, shape), FS_OK);
	assert_int_equal(ablation_run_write(&run, 3ull * SEGMENTS), FS_OK);
	ablation_run_measure(&run, true, 0, LOOKUPS, hit);
	ablation_run_measure(&run, false, 0, LOOKUPS, miss);
	*bytes = ablation_run_bytes_per_key(&run, hit->lost);
	assert_true(shape->paper || run.drops == 0);
	ablation_run_fini(&run);
	assert_true(hit->reads >= 1 && hit->ns > 0 && miss->ns > 0);
}

static void tags_reject_by_their_width(void **state)
{
	struct ablation_shape shape = { .slots = SLOTS, .segments = SEGMENTS, .load = 0.95, .tag_bits = 8 };
	struct ablation_cost hit, miss, filtered;
	double bytes, with_filters;

	(void)state;
	measure(&shape, &hit, &miss, &bytes);
	assert_true(hit.lost == 0);
	assert_true(miss.reads > 0.08 && miss.reads < 0.16); /* 32 slots * 0.95 / 2^8 = 0.119 */
	assert_true(isnan(miss.filters_asked));
	assert_true(bytes > 4 / 0.95 - 0.01 && bytes < 4.5);
	shape.filter_bits = 2;
	measure(&shape, &hit, &filtered, &with_filters);
	assert_true(hit.lost == 0);
	assert_true(filtered.reads < miss.reads * 0.6);
	assert_true(with_filters > bytes + 2.0 / 8);
}

static void the_papers_filters_alone(void **state)
{
	struct ablation_shape shape = {
		.slots = SLOTS, .segments = SEGMENTS, .load = 0.5, .filter_bits = 10, .paper = true
	};
	struct ablation_cost hit, miss;
	double bytes;

	(void)state;
	measure(&shape, &hit, &miss, &bytes);
	assert_true(hit.lost < 0.001 && hit.reads < 1.02);
	assert_true(miss.filters_asked > 7.5 && miss.filters_asked < 8.5);
	assert_true(miss.reads > 0.04 && miss.reads < 0.1); /* 8 filters, 0.8 % each */
	assert_true(bytes > 9.2 && bytes < 9.3); /* 4 B / 0.5 + 10 bits */
	shape.load = 0.95;
	measure(&shape, &hit, &miss, &bytes);
	assert_true(hit.lost > 0.01); /* nothing makes room */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_without_room_are_refused),
		cmocka_unit_test(tags_reject_by_their_width),
		cmocka_unit_test(the_papers_filters_alone),
	};

	return cmocka_run_group_tests_name("ablation", tests, NULL, NULL);
}
