/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of bins: commit, changes while they are written, and the table of kills. */
#include "tests/unit/server/store/harness.h"

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	harness_open(*state);
	return result;
}

static void overwrite(struct harness *h)
{
	assert_int_equal(where(h, "key"), PLANNED);
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
}

static void delete (struct harness *h)
{
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
}

static void count_up(struct harness *h)
{
	assert_int_equal(run_number(h, STORE_INCR, "key", 1).number, 8);
}

static void what_is_committed_has_left_memory(void **state)
{
	struct harness *h = *state;
	struct frugal_status status;

	set_on_flash(h, "key", "value");
	frugal_get_status(h->store->frugal, &status);
	assert_int_equal(status.segments, 1);
	assert_true(status.objects > 100 && status.objects == ctr_sum(CTR_flash_objects_written));
	assert_null(item_in_dram(h, "key"));
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
}

static void a_change_while_it_is_written_holds(void **state)
{
	struct harness *h = *state;

	for (int phase = PHASE_GATHERED; phase <= PHASE_WRITTEN; phase++) {
		assert_int_equal(set(h, "key", "one").result, STORE_STORED);
		while_planned(h, "key", (enum phase)phase, overwrite);
		assert_value(h, "key", "two");
		assert_int_equal(where(h, "key"), DRAM);
		assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
		assert_missing(h, "key");
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
}

static void what_is_deleted_while_it_is_written_stays_gone(void **state)
{
	struct harness *h = *state;

	for (int phase = PHASE_GATHERED; phase <= PHASE_WRITTEN; phase++) {
		assert_int_equal(set(h, "key", "one").result, STORE_STORED);
		while_planned(h, "key", (enum phase)phase, delete);
		assert_missing(h, "key");
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
}

static void a_number_that_counts_while_it_is_written_holds(void **state)
{
	struct harness *h = *state;

	assert_int_equal(set(h, "key", "7").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, count_up);
	assert_value(h, "key", "8");
	move(h, "key");
	assert_value(h, "key", "8");
}

static struct stripe *stripe_of_key(struct harness *h)
{
	return store_stripe(h->store, store_hash(h->store, "key", 3));
}

static void freeze(struct harness *h)
{
	stripe_of_key(h)->frozen++;
}

static void what_a_commit_passes_by_is_kept_and_a_change_of_it_holds(void **state)
{
	struct harness *h = *state;

	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, freeze);
	stripe_of_key(h)->frozen--;
	assert_int_equal(where(h, "key"), DRAM);
	assert_true(item_in_dram(h, "key")->state & ITEM_KEPT);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key"); /* its record is in an open segment */
	assert_true(write_one(h));
	assert_missing(h, "key");
}

static void a_table_of_kills_that_fills_up_is_taken_over(void **state)
{
	struct harness *h = *state;
	struct frugal_status status;
	unsigned rounds = 0;

	frugal_get_status(h->store->frugal, &status);
	while (!frugal_is_crowded(h->store->frugal) && rounds++ < 100) {
		assert_true(write_one(h));
		for (unsigned n = 0; n < 127 * 127; n += 7) {
			char key[3] = { (char)(0x80 + n % 127), (char)(0x80 + n / 127), 0 };

			(void)run(h, STORE_DELETE, key);
		}
	}
	set_on_flash(h, "key", "value");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(frugal_take_kills(h->store->frugal), FS_OK);
	frugal_get_status(h->store->frugal, &status);
	assert_int_equal(status.kills, 0);
	assert_true(status.kills_listed > 0);
	assert_missing(h, "key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_committed_has_left_memory, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_change_while_it_is_written_holds, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_is_deleted_while_it_is_written_stays_gone, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_number_that_counts_while_it_is_written_holds, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_a_commit_passes_by_is_kept_and_a_change_of_it_holds, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(a_table_of_kills_that_fills_up_is_taken_over, setup_frugal, teardown),
	};

	return cmocka_run_group_tests_name("store: bins", tests, NULL, NULL);
}
