/* SPDX-License-Identifier: BSD-3-Clause */
/* The study of chain records: what is in one is found in either form, and both pass others as often as arithmetic says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/chain_run.h"

#define SEARCHES 100000u

static struct chain_cost run(const struct chain_shape *shape)
{
	struct chain_cost cost;

	assert_int_equal(chain_run(shape, SEARCHES, &cost), FS_OK);
	return cost;
}

static void shapes_without_sense_are_refused(void **state)
{
	const struct chain_shape wrong[] = {
		{ .columns = 0, .keys_each = 1, .expected_each = 1 },
		{ .columns = 16384, .keys_each = 1, .expected_each = 1 },
		{ .columns = 8, .keys_each = 0, .expected_each = 1 },
		{ .columns = 8, .keys_each = 1, .expected_each = 0 },
		{ .columns = 8, .keys_each = NAN, .expected_each = 1 },
		{ .columns = 8, .keys_each = 1e9, .expected_each = 1 },
	};
	const struct chain_shape right = { .columns = 8, .keys_each = 1, .expected_each = 1 };
	struct chain_cost cost;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(chain_run(&wrong[i], 1, &cost), FS_EINVAL);
	assert_int_equal(chain_run(&right, 0, &cost), FS_EINVAL);
}

static void lists_pass_others_by_their_number_alone(void **state)
{
	struct chain_shape shape = { .columns = 200, .keys_each = 20, .expected_each = 20 };
	struct chain_cost cost = run(&shape);

	(void)state;
	/* 4000 of 65536 fingerprints: 0.061. The bits: a fingerprint, its 0 and a column's share. */
	assert_true(cost.in_vain_per_miss > 0.05 && cost.in_vain_per_miss < 0.07);
	assert_true(cost.in_vain_per_hit < cost.in_vain_per_miss);
	assert_true(cost.bits_per_key > 17 && cost.bits_per_key < 17.2);
	shape.expected_each = 1;
	assert_true(run(&shape).in_vain_per_miss == cost.in_vain_per_miss);
}

static void rows_need_to_know_how_many_keys_come(void **state)
{
	struct chain_shape shape = { .columns = 96, .keys_each = 64, .expected_each = 64, .rows = true };
	struct chain_cost right = run(&shape), wrong;

	(void)state;
	assert_true(right.bits_per_key > 16.5 && right.bits_per_key < 17.5);
	/* 96 * 0.6185^17 = 0.027 with 64 keys in each; their numbers differ. */
	assert_true(right.in_vain_per_miss > 0.01 && right.in_vain_per_miss < 0.1);
	shape.expected_each = 64.0 / 5;
	wrong = run(&shape);
	assert_true(wrong.in_vain_per_miss > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_without_sense_are_refused),
		cmocka_unit_test(lists_pass_others_by_their_number_alone),
		cmocka_unit_test(rows_need_to_know_how_many_keys_come),
	};

	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
