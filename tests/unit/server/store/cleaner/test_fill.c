/* SPDX-License-Identifier: BSD-3-Clause */
/* Filling: while segments are free, the ratio of writes holds nothing back; then it does. */
#include "tests/unit/server/store/harness.h"

#define RATIO 0.001
#define VALUE 500

static int64_t wall_s;

static int64_t wall(void)
{
	return wall_s;
}

/* Sets so many objects, each once, with the work of the background in between. */
static void set_objects_for(struct harness *h, const char *prefix, unsigned count, uint32_t ttl)
{
	static char value[VALUE];
	char key[32];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%s:%u", prefix, n);
		(void)run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value), .exptime = ttl);
		if (n % 20 == 0)
			store_clean_step(h->store);
		if (n % 200 == 0)
			seconds_pass(h, 1);
	}
}

static void set_objects(struct harness *h, const char *prefix, unsigned count)
{
	set_objects_for(h, prefix, count, 0);
}

static uint32_t free_segments(const struct harness *h)
{
	struct seg_status status;

	seg_get_status(h->store->segments, &status);
	return status.free;
}

static void open_with(struct harness *h, enum clf_admission admission, double ratio)
{
	h->config.memory_bytes = MIB(3);
	h->config.admission = admission;
	h->config.flash_write_ratio = ratio;
	h->config.wall_seconds = wall;
	harness_open(h);
}

static void the_ratio_holds_once_the_flash_is_full(void **state)
{
	struct harness *h = *state;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	set_objects(h, "first", 12000);
	assert_in_range(free_segments(h), 0, 1);
	assert_false(fill_is_on(h->store));
	uint64_t written = ctr_sum(CTR_segments_written);
	set_objects(h, "then", 12000);
	assert_in_range(ctr_sum(CTR_segments_written) - written, 0, 3); /* what may be saved up */
	assert_true((double)clf_threshold(h->store->classifier) > -64);
}

static void a_limit_of_writes_holds_all_the_time(void **state)
{
	struct harness *h = *state;

	h->config.flash_write_limit = 1;
	open_with(h, CLF_ADMIT_FREQ, RATIO);
	uint32_t before = free_segments(h);
	set_objects(h, "key", 12000);
	assert_true(fill_is_on(h->store));
	assert_in_range(before - free_segments(h), 0, 2);
}

static void rules_without_a_ratio_have_no_fill(void **state)
{
	struct harness *h = *state;
	const struct {
		enum clf_admission admission;
		double ratio;
		bool evict, fills;
	} cases[] = { { CLF_ADMIT_FREQ, RATIO, true, true },
		      { CLF_ADMIT_SVM, RATIO, true, true },
		      { CLF_ADMIT_FREQ, 0, true, false },
		      { CLF_ADMIT_FREQ, RATIO, false, false },
		      { CLF_ADMIT_READ_ONCE, RATIO, true, false } };

	for (unsigned n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		h->config.evict = cases[n].evict;
		wall_s += 2 * 24 * 60 * 60;
		open_with(h, cases[n].admission, cases[n].ratio);
		store_clean_step(h->store);
		assert_int_equal(fill_is_on(h->store), cases[n].fills);
		harness_close(h);
	}
}

/* Each start is cold here, on the file that the last one has left. */
static void a_flash_is_filled_once_a_day(void **state)
{
	struct harness *h = *state;
	struct seg_status status;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	set_objects(h, "first", 12000);
	assert_in_range(free_segments(h), 0, 1);
	harness_close(h);
	wall_s += 60;
	harness_open(h);
	store_clean_step(h->store);
	assert_true(free_segments(h) > 10);
	set_objects(h, "second", 12000); /* what was not used of the first one goes on, as a segment stayed free */
	assert_false(fill_is_on(h->store));
	assert_true(free_segments(h) > 5);
	wall_s += 24 * 60 * 60;
	store_clean_step(h->store);
	assert_true(fill_is_on(h->store));
	set_objects(h, "third", 12000);
	assert_in_range(free_segments(h), 0, 1);
	seg_get_status(h->store->segments, &status);
	assert_int_equal(status.fills, 2);
}

static bool fills_after_a_step(struct harness *h)
{
	store_clean_step(h->store);
	return fill_is_on(h->store);
}

static void what_is_flushed_is_filled_anew(void **state)
{
	struct harness *h = *state;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	set_objects(h, "first", 12000);
	wall_s += 24 * 60 * 60;
	assert_false(fills_after_a_step(h));
	store_flush_all(h->store, 0);
	assert_true(fills_after_a_step(h));
	set_objects(h, "second", 12000);
	assert_false(fill_is_on(h->store));
	wall_s += 24 * 60 * 60;
	assert_false(fills_after_a_step(h)); /* no segment is left that the flush emptied */
}

static void what_has_expired_is_filled_anew(void **state)
{
	struct harness *h = *state;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	set_objects_for(h, "first", 12000, 1000);
	assert_in_range(free_segments(h), 0, 1);
	wall_s += 24 * 60 * 60;
	assert_false(fills_after_a_step(h));
	seconds_pass(h, 1001);
	assert_true(fills_after_a_step(h));
	set_objects(h, "second", 12000);
	wall_s += 24 * 60 * 60;
	assert_false(fills_after_a_step(h));
}

/* Where the index is full, the oldest segments go early, and some are free all the time. */
static void free_segments_that_the_index_has_no_slots_for_are_no_room(void **state)
{
	struct harness *h = *state;
	uint64_t first = ctr_sum(CTR_segments_written);
	char key[32];

	h->config.memory_bytes = MIB(2);
	h->config.flash_bytes = MIB(24);
	h->config.segment_bytes = KIB(128);
	h->config.admission = CLF_ADMIT_FREQ;
	h->config.flash_write_ratio = 100;
	h->config.wall_seconds = wall;
	harness_open(h);
	for (unsigned n = 0; ctr_sum(CTR_segments_written) < first + 2 * 192; n++) {
		snprintf(key, sizeof(key), "%u", n);
		(void)run_full(h, .op = STORE_SET, .key = key, .value = "four", .length = 4);
		if (n % 200 == 0)
			store_clean_step(h->store);
		if (n % 2000 == 0)
			seconds_pass(h, 1);
	}
	assert_true(free_segments(h) > 2);
	wall_s += 2 * 24 * 60 * 60;
	assert_false(fills_after_a_step(h));
	assert_false(cleaner_has_room(h->store));
}

static enum store_hold hold(struct harness *h)
{
	struct store_status status;

	store_get_status(h->store, &status);
	return status.hold;
}

static void what_holds_writes_back_is_told(void **state)
{
	struct harness *h = *state;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	assert_int_equal(hold(h), STORE_HOLD_MEMORY);
	for (unsigned n = 0; hold(h) == STORE_HOLD_MEMORY; n++) {
		char prefix[16];

		assert_in_range(n, 0, 100);
		snprintf(prefix, sizeof(prefix), "f%u", n);
		set_objects(h, prefix, 100);
	}
	assert_int_equal(hold(h), STORE_HOLD_FILLING);
	set_objects(h, "second", 12000);
	assert_int_equal(hold(h), STORE_HOLD_RATIO);
	harness_close(h);
	h->config.flash_write_limit = 1;
	open_with(h, CLF_ADMIT_FREQ, 0);
	set_objects(h, "third", 12000);
	assert_int_equal(hold(h), STORE_HOLD_LIMIT);
	harness_close(h);
	h->config.flash_write_limit = 0;
	open_with(h, CLF_ADMIT_READ_ONCE, 0);
	set_objects(h, "fourth", 5000);
	assert_int_equal(hold(h), STORE_HOLD_CANDIDATES);
	harness_close(h);
	h->config.flash_path = NULL;
	open_with(h, CLF_ADMIT_FREQ, RATIO);
	assert_int_equal(hold(h), STORE_HOLD_NO_FLASH);
	assert_string_equal(store_hold_word(hold(h)), "no_flash");
}

struct room_losses {
	uint64_t late, declined, large;
};

static struct room_losses room_losses(void)
{
	return (struct room_losses){ ctr_sum(CTR_room_evictions_late), ctr_sum(CTR_room_evictions_declined),
				     ctr_sum(CTR_room_evictions_large) };
}

static void set_one_after_another(struct harness *h, unsigned count, uint32_t bytes, uint32_t ttl)
{
	static char value[KIB(64)];
	char key[32];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%u:%u", bytes, n);
		(void)run_full(h, .op = STORE_SET, .key = key, .value = value, .length = bytes, .exptime = ttl);
	}
}

static void what_is_lost_while_there_is_room_is_counted_by_reason(void **state)
{
	struct harness *h = *state;
	struct room_losses before, after;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	store_clean_step(h->store);
	before = room_losses();
	set_one_after_another(h, 12000, VALUE, 0); /* the cleaner has no time */
	after = room_losses();
	assert_true(after.late > before.late + 1000);
	assert_int_equal(after.declined, before.declined);
	assert_int_equal(after.large, before.large);
	before = after;
	set_one_after_another(h, 1000, (uint32_t)h->store->segment_bytes / 4 + 1, 0);
	set_one_after_another(h, 1000, (uint32_t)h->store->segment_bytes / 4 + 1, 0);
	after = room_losses();
	assert_true(after.large > before.large + 500);
}

static void what_is_declined_while_there_is_room_is_counted(void **state)
{
	struct harness *h = *state;
	struct room_losses before, after;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	store_clean_step(h->store);
	before = room_losses();
	set_objects_for(h, "soon", 8000, 50); /* in 40 s */
	after = room_losses();
	assert_true(after.declined > before.declined + 1000);
	assert_int_equal(after.large, before.large);
}

static void what_is_lost_on_a_full_flash_is_not_counted(void **state)
{
	struct harness *h = *state;
	struct room_losses before, after;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	set_objects(h, "first", 12000);
	before = room_losses();
	set_objects(h, "second", 12000);
	after = room_losses();
	assert_memory_equal(&after, &before, sizeof(before));
}

static bool is_offered(struct harness *h, const char *key, uint32_t ttl)
{
	struct stripe *stripe;
	struct item *item;
	bool offered;

	(void)run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5, .exptime = ttl);
	item = (struct item *)(uintptr_t)item_in_dram(h, key);
	uint64_t hash = store_hash(h->store, key, (uint8_t)strlen(key));
	stripe = store_stripe(h->store, hash);
	lock_acquire(&stripe->lock);
	offered = candidate_offer(h->store, stripe, hash, item, clk_now_ms(&h->clk));
	lock_release(&stripe->lock);
	return offered;
}

/* With time between the sets for the background's work. */
static void nothing_is_lost_while_it_is_filled(void **state)
{
	struct harness *h = *state;
	uint64_t evictions = ctr_sum(CTR_evictions);
	unsigned rounds = 0;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	for (store_clean_step(h->store); fill_is_on(h->store); rounds++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "r%u", rounds);
		set_objects(h, prefix, 100);
	}
	assert_true(rounds > 10);
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
}

static void what_is_about_to_expire_is_not_worth_a_write(void **state)
{
	struct harness *h = *state;

	open_with(h, CLF_ADMIT_FREQ, RATIO);
	store_clean_step(h->store);
	assert_true(fill_is_on(h->store));
	assert_false(is_offered(h, "soon", 20));
	assert_true(is_offered(h, "later", 100));
	assert_true(is_offered(h, "never", 0));
}

static int set_up(void **state)
{
	wall_s = 1700000000;
	return setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_ratio_holds_once_the_flash_is_full, set_up, teardown),
		cmocka_unit_test_setup_teardown(a_limit_of_writes_holds_all_the_time, set_up, teardown),
		cmocka_unit_test_setup_teardown(rules_without_a_ratio_have_no_fill, set_up, teardown),
		cmocka_unit_test_setup_teardown(a_flash_is_filled_once_a_day, set_up, teardown),
		cmocka_unit_test_setup_teardown(what_is_flushed_is_filled_anew, set_up, teardown),
		cmocka_unit_test_setup_teardown(what_has_expired_is_filled_anew, set_up, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_lost_while_it_is_filled, set_up, teardown),
		cmocka_unit_test_setup_teardown(free_segments_that_the_index_has_no_slots_for_are_no_room, set_up,
						teardown),
		cmocka_unit_test_setup_teardown(what_holds_writes_back_is_told, set_up, teardown),
		cmocka_unit_test_setup_teardown(what_is_lost_while_there_is_room_is_counted_by_reason, set_up,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_declined_while_there_is_room_is_counted, set_up, teardown),
		cmocka_unit_test_setup_teardown(what_is_lost_on_a_full_flash_is_not_counted, set_up, teardown),
		cmocka_unit_test_setup_teardown(what_is_about_to_expire_is_not_worth_a_write, set_up, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
