/* SPDX-License-Identifier: BSD-3-Clause */
/* The index study's runs find every key that was inserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/index_run.h"

#define OPERATIONS 20000u

static void shapes_without_room_are_refused(void **state)
{
	struct index_run run;

	(void)state;
	assert_int_equal(index_run_init(&run, &(struct index_shape){ .slots = 8, .segments = 1 }, 1), FS_EINVAL);
	assert_int_equal(index_run_init(&run, &(struct index_shape){ .slots = 160 }, 1), FS_EINVAL);
	assert_int_equal(index_run_init(&run, &(struct index_shape){ .slots = 160, .segments = 100 }, 1), FS_EINVAL);
}

static uint64_t matches_of(struct index_run *run, enum index_operation operation)
{
	struct index_cost cost;

	assert_int_equal(index_run_measure(run, operation, 0, OPERATIONS, &cost), FS_OK);
	assert_true(cost.done > 0 && cost.ns > 0);
	return cost.matches;
}

static void check(const struct index_shape *shape)
{
	struct fidx_status status;
	struct index_run run;
	uint64_t missed;

	assert_int_equal(index_run_init(&run, shape, 100), FS_OK);
	fidx_get_status(run.index, &status);
	assert_int_equal(run.keys, run.keys_per_segment * shape->segments);
	assert_true(run.keys > shape->slots * 94 / 100);
	assert_int_equal(status.used, run.keys - run.drops);
	assert_true(run.insert_ns > 0 && run.insert_full_ns > 0);
	assert_true(index_run_bytes_per_slot(&run) > 4);
	assert_true(index_run_bytes_per_slot(&run) * (double)status.used <= (double)index_run_bytes(shape));
	assert_true(matches_of(&run, INDEX_HIT) >= OPERATIONS);
	missed = matches_of(&run, INDEX_MISS);
	assert_true(missed < OPERATIONS / 50);
	assert_int_equal(matches_of(&run, INDEX_TOUCH), OPERATIONS);
	matches_of(&run, INDEX_HAND);
	assert_true(matches_of(&run, INDEX_CLEAR_NOTHING) < OPERATIONS / 50);
	assert_true(matches_of(&run, INDEX_CLEAR) >= OPERATIONS - run.lost);
	fidx_get_status(run.index, &status);
	assert_true(status.used <= run.keys - OPERATIONS);
	assert_true(fidx_verify(run.index));
	index_run_fini(&run);
}

static void every_key_is_found_and_cleared(void **state)
{
	(void)state;
	check(&(struct index_shape){ .slots = 16 * 10007, .segments = 100 });
	check(&(struct index_shape){ .slots = 16 * 10007, .segments = 100, .small_pages = true });
	check(&(struct index_shape){ .slots = 16 * 10007, .segments = 4000, .filter_bits = 1 });
}

/* A slot that goes behind the study's back is missed. */
static void a_lost_slot_is_noticed(void **state)
{
	struct index_shape shape = { .slots = 16 * 10007, .segments = 100 };
	struct index_cost cost;
	struct index_run run;

	(void)state;
	assert_int_equal(index_run_init(&run, &shape, 100), FS_OK);
	fidx_segment_close(run.index, 5);
	assert_int_equal(index_run_measure(&run, INDEX_HIT, 0, OPERATIONS, &cost), FS_ECORRUPT);
	index_run_fini(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_without_room_are_refused),
		cmocka_unit_test(every_key_is_found_and_cleared),
		cmocka_unit_test(a_lost_slot_is_noticed),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
