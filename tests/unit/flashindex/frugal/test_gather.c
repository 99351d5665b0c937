/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells become one: memory that is out, columns that go, and kills with the numbers of the columns that stay. */
#include "tests/unit/flashindex/frugal/world.h"

static void write_keys(struct world *w, uint32_t first, uint32_t count)
{
	for (uint32_t k = first; k < first + count; k++)
		world_set(w, k);
	assert_true(world_write(w, 1, NULL));
}

static void without_memory_there_is_no_cell(void **state)
{
	struct world w = { .config = { .partitions = 1 } };
	struct gathering gathering;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 100);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
#ifdef FS_FAULTS
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 1, false), FS_ENOMEM);
#endif
	fault_disarm_all();
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 1, false), FS_OK);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
#ifdef FS_FAULTS
	assert_int_equal(gathering_cell(&gathering, 0, NULL), FS_ENOMEM);
#endif
	fault_disarm_all();
	assert_int_equal(gathering_cell(&gathering, 0, NULL), FS_OK);
	assert_int_equal(gathering.value_count, 100);
	gathering_end(&gathering);
	world_close(&w);
}

static uint32_t column_of_kill(const struct gathering *gathering, const struct world *w, uint32_t key)
{
	for (uint64_t i = 0; i < gathering->kill_count; i++)
		if (gathering->kills[i].kill == kill_of(w->key[key].key.x))
			return gathering->kills[i].column;
	return NEVER_KILLED;
}

/* Keys 0..9 are written first, killed before the second segment, and key 0 again before the fourth. */
static void make_four(struct world *w)
{
	world_open(w);
	write_keys(w, 0, 10);
	for (uint32_t k = 0; k < 10; k++)
		world_delete(w, k);
	write_keys(w, 20, 10);
	write_keys(w, 0, 1);
	world_delete(w, 0);
	write_keys(w, 40, 10);
}

static void kills_keep_the_columns_that_they_are_about(void **state)
{
	struct world w = { .config = { .partitions = 1 } };
	struct gathering gathering;

	(void)state;
	make_four(&w);
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 4, false), FS_OK);
	assert_int_equal(gathering.columns, 4);
	for (uint32_t c = 0; c < 4; c++)
		assert_int_equal(gathering.column[c].sequence, 103 - c);
	assert_int_equal(gathering_cell(&gathering, 0, NULL), FS_OK);
	assert_int_equal(gathering.counts[0], 10);
	assert_int_equal(gathering.counts[1], 1);
	assert_int_equal(column_of_kill(&gathering, &w, 0), 1); /* of two, the newer one */
	assert_int_equal(column_of_kill(&gathering, &w, 5), 3);
	assert_int_equal(column_of_kill(&gathering, &w, 25), NEVER_KILLED);
	assert_true(gathering.kill_count >= 10); /* and some that the prefilter passed in vain */
	gathering_end(&gathering);
	world_close(&w);
}

static void the_oldest_columns_go_with_their_segments(void **state)
{
	struct world w = { .config = { .partitions = 1 } };
	struct gathering gathering;

	(void)state;
	make_four(&w);
	world_reclaim(&w, 0);
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 4, false), FS_OK);
	assert_int_equal(gathering.columns, 3);
	assert_int_equal(gathering_cell(&gathering, 0, NULL), FS_OK);
	assert_int_equal(gathering.value_count, 21);
	assert_int_equal(column_of_kill(&gathering, &w, 5), 3); /* behind all of them: what is older still */
	gathering_end(&gathering);
	/* One in the middle stays: it hides what is older. */
	world_reclaim(&w, 2);
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 4, false), FS_OK);
	assert_int_equal(gathering.columns, 3);
	gathering_end(&gathering);
	world_close(&w);
}

/* With everything that is older in the result, a kill without any record to kill is of no use. */
static void kills_of_nothing_go_where_all_is_known(void **state)
{
	struct world w = { .config = { .partitions = 1 } };
	struct gathering gathering;

	(void)state;
	make_four(&w);
	world_reclaim(&w, 0);
	assert_int_equal(gathering_begin(&gathering, w.frugal, 0, 4, true), FS_OK);
	assert_int_equal(gathering_cell(&gathering, 0, NULL), FS_OK);
	assert_int_equal(column_of_kill(&gathering, &w, 0), 1);
	for (uint32_t k = 1; k < 10; k++) {
		bool alike = false;

		for (uint64_t v = 0; v < gathering.value_count; v++)
			alike |= gathering.values[v] == fingerprint_of(w.key[k].key.x);
		assert_true(alike || column_of_kill(&gathering, &w, k) == NEVER_KILLED);
	}
	gathering_end(&gathering);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_there_is_no_cell),
		cmocka_unit_test(kills_keep_the_columns_that_they_are_about),
		cmocka_unit_test(the_oldest_columns_go_with_their_segments),
		cmocka_unit_test(kills_of_nothing_go_where_all_is_known),
	};

	return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
