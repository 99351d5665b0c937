/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kills: what it forgets and when, keys that are known to be absent, and no room. */
#include "tests/unit/flashindex/frugal/world.h"

static void a_kill_needs_something_on_flash(void **state)
{
	struct world w = { .config = { 0 } };
	const struct frugal_key *key;

	(void)state;
	world_open(&w);
	key = &w.key[0].key;
	assert_false(frugal_may_hold(w.frugal, key));
	assert_false(frugal_kill(w.frugal, key, false));
	assert_false(kills_has(w.frugal, key));
	assert_true(frugal_kill(w.frugal, key, true)); /* its object is planned */
	assert_true(kills_has(w.frugal, key));
	assert_false(kills_has(w.frugal, &w.key[1].key));
	frugal_committed(w.frugal, key);
	assert_false(kills_has(w.frugal, key));
	world_close(&w);
}

static struct frugal_status status_of(const struct world *w)
{
	struct frugal_status status;

	frugal_get_status(w->frugal, &status);
	return status;
}

/* A kill that was put again in the new epoch is about the segment that is written: it stays when older ones go. */
static void an_epoch_takes_the_kills_of_older_ones_alone(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	for (uint32_t k = 0; k < 3; k++)
		(void)frugal_kill(w.frugal, &w.key[k].key, true);
	kills_begin_epoch(w.frugal);
	(void)frugal_kill(w.frugal, &w.key[1].key, true);
	(void)frugal_kill(w.frugal, &w.key[3].key, true);
	assert_int_equal(kills_take(w.frugal), FS_OK);
	assert_int_equal(w.frugal->taken_count, 2);
	(void)frugal_kill(w.frugal, &w.key[2].key, true); /* again, after it was taken */
	assert_int_equal(status_of(&w).kills, 4);
	w.frugal->took = true;
	kills_forget_taken(w.frugal);
	assert_false(kills_has(w.frugal, &w.key[0].key));
	for (uint32_t k = 1; k < 4; k++)
		assert_true(kills_has(w.frugal, &w.key[k].key));
	assert_int_equal(status_of(&w).kills, 3);
	world_close(&w);
}

static void kills_that_no_bundle_took_stay(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	(void)frugal_kill(w.frugal, &w.key[0].key, true);
	for (unsigned n = 0; n < 40; n++) { /* epochs go round */
		kills_begin_epoch(w.frugal);
		assert_int_equal(kills_take(w.frugal), FS_OK);
		kills_forget_taken(w.frugal);
		assert_true(kills_has(w.frugal, &w.key[0].key));
	}
	world_close(&w);
}

static void an_absent_key_needs_no_kill_unless_it_is_written(void **state)
{
	struct world w = { .config = { 0 } };
	const struct frugal_key *key;

	(void)state;
	world_open(&w);
	key = &w.key[5].key;
	frugal_note_absent(w.frugal, key);
	frugal_note_absent(w.frugal, key);
	assert_true(kills_has(w.frugal, key));
	assert_int_equal(status_of(&w).kills, 0);
	assert_false(frugal_kill(w.frugal, key, false));
	assert_int_equal(status_of(&w).kills, 0);
	assert_true(frugal_kill(w.frugal, key, true));
	assert_int_equal(status_of(&w).kills, 1);
	frugal_note_absent(w.frugal, key); /* the kill stays one */
	assert_int_equal(status_of(&w).kills, 1);
	kills_forget_absent(w.frugal);
	assert_true(kills_has(w.frugal, key));
	world_close(&w);
}

static void absent_keys_give_way_to_kills(void **state)
{
	struct world w = { .config = { .kill_bytes = 1 } };
	unsigned absent = 0, kills = 0, left = 0;

	(void)state;
	world_open(&w);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		frugal_note_absent(w.frugal, &w.key[k].key);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		absent += kills_has(w.frugal, &w.key[k].key);
	assert_int_equal(absent, status_of(&w).kills_most);
	assert_false(frugal_is_crowded(w.frugal));
	for (uint32_t k = 0; !frugal_is_crowded(w.frugal); k++, kills++)
		(void)frugal_kill(w.frugal, &w.key[k].key, true);
	for (uint32_t k = 0; k < kills; k++)
		assert_true(kills_has(w.frugal, &w.key[k].key));
	assert_int_equal(status_of(&w).watermarks, 0);
	kills_forget_absent(w.frugal);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		left += kills_has(w.frugal, &w.key[k].key);
	assert_int_equal(left, kills);
	world_close(&w);
}

static void without_room_the_partition_is_given_up(void **state)
{
	struct world w = { .config = { .kill_bytes = 1 } };
	uint64_t watermarks = 0;

	(void)state;
	world_open(&w);
	atomic_store(&w.frugal->kept->kill_up_to, 77);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		assert_true(frugal_kill(w.frugal, &w.key[k].key, true));
	assert_int_equal(status_of(&w).kills, status_of(&w).kills_most);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		assert_true(kills_has(w.frugal, &w.key[k].key) || watermark_of(w.frugal, w.key[k].key.partition) == 77);
	for (uint32_t p = 0; p < w.frugal->partitions; p++)
		watermarks += watermark_of(w.frugal, p) != 0;
	assert_true(watermarks > 0 && status_of(&w).watermarks == watermarks);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_needs_something_on_flash),
		cmocka_unit_test(without_room_the_partition_is_given_up),
		cmocka_unit_test(kills_that_no_bundle_took_stay),
		cmocka_unit_test(an_epoch_takes_the_kills_of_older_ones_alone),
		cmocka_unit_test(an_absent_key_needs_no_kill_unless_it_is_written),
		cmocka_unit_test(absent_keys_give_way_to_kills),
	};

	return cmocka_run_group_tests_name("kills", tests, NULL, NULL);
}
