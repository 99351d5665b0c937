/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment is written whole, or its objects stay in DRAM. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)

static void assert_no_plan(struct harness *h)
{
	assert_int_equal(h->store->plan_bytes, 0);
	assert_int_equal(h->store->planned_bytes, 0);
}

/* No segment is reclaimed for a plan that would not fill it. */
static void too_few_candidates_are_left_as_they_are_and_nothing_is_reclaimed(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed), written = ctr_sum(CTR_segments_written);
	enum seg_state seen = SEG_FREE;
	uint32_t segment;

	h->config.flash_bytes = 5 * KIB(64);
	harness_open(h);
	for (; seen == SEG_FREE; written++) {
		assert_true(write_one(h));
		assert_int_equal(seg_next(h->store->segments, &segment, &seen), FS_OK);
	}
	uint64_t keep = h->store->segment_bytes - h->store->segment_bytes / 8;
	while (candidate_total(h->store) >= keep) { /* others are what a segment left over */
		uint64_t visited;

		evict_dram(&h->worker[0]->context, KIB(4), 1000, EVICT_ALL, false, &visited);
	}
	int64_t count = h->store->candidate_count;
	assert_false(write_segment(h->store, EVERY_GROUP));
	assert_int_equal(h->store->candidate_count, count);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	assert_int_equal(ctr_sum(CTR_segments_written), written);
	assert_no_plan(h);
}

static void what_is_written_is_committed_and_counted_and_the_accounts_are_empty(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_segments_written), objects = ctr_sum(CTR_flash_objects_written);
	struct fidx_status before, after;

	harness_open(h);
	fidx_get_status(h->store->index, &before);
	assert_true(write_one(h));
	fidx_get_status(h->store->index, &after);
	assert_int_equal(ctr_sum(CTR_segments_written), written + 1);
	assert_int_equal(ctr_sum(CTR_flash_objects_written) - objects, after.used - before.used);
	assert_true(after.used > 1000);
	assert_int_equal(h->store->cleaner->sizing.seen, 1);
	assert_int_equal(h->store->index_bytes, after.index_bytes + after.filter_bytes + after.other_bytes);
	assert_no_plan(h);
}

static void a_failed_write_leaves_the_objects_in_dram_and_readable(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_write_errors);
	fault_arm(FAULT_device_write_eio, FAULT_ALWAYS, 0);
	assert_false(write_one(h));
	fault_disarm_all();
	assert_true(ctr_sum(CTR_flash_write_errors) > errors);
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "value");
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
	seconds_pass(h, 120);
	move(h, "key"); /* the place is retired, the next one takes it */
	assert_value(h, "key", "value");
}

/* fs.aio-max-nr is reached when the first segment is to be written. */
static void without_a_context_to_write_with_objects_stay_in_dram(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set(h, "key", "value");
	fault_arm(FAULT_aio_setup, FAULT_ALWAYS, 0);
	assert_false(write_one(h));
	fault_disarm_all();
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "value");
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
	seconds_pass(h, 2);
	move(h, "key");
	assert_value(h, "key", "value");
}

static void a_device_that_fails_again_and_again_leaves_a_dram_cache(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	char key[16];

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		set(h, key, "value");
	}
	move(h, "key:39");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		get(h, key);
		get(h, "key:39");
	}
	store_get_status(h->store, &status);
	assert_true(status.segments.offline);
	assert_int_equal(set(h, "key:39", "new").result, STORE_STORED);
	assert_value(h, "key:39", "new");
	assert_false(write_one(h));
	assert_value(h, "key:39", "new");
	fault_disarm_all();
	for (int i = 0; i < 100 && !write_one(h); i++)
		seconds_pass(h, 10); /* it tries again, with back-off */
	move(h, "key:39");
	assert_value(h, "key:39", "new");
}

static void large_objects_come_back_whole_from_their_extents(void **state)
{
	struct harness *h = *state;
	static char value[KIB(15)];

	harness_open(h);
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)(i * 31 + i / 251);
	run_full(h, .op = STORE_SET, .key = "large", .value = value, .length = sizeof(value), .flags = 9);
	move(h, "large");
	struct reply reply = get(h, "large");
	assert_true(reply.from_flash);
	assert_int_equal(reply.length, sizeof(value));
	assert_int_equal(reply.flags, 9);
	assert_int_equal(reply.value_hash, hash64(value, sizeof(value), 0));
	assert_int_equal(set(h, "large", "small").result, STORE_STORED);
	assert_int_equal(slots_of(h, "large"), 0);
	assert_value(h, "large", "small");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(too_few_candidates_are_left_as_they_are_and_nothing_is_reclaimed),
		TEST(what_is_written_is_committed_and_counted_and_the_accounts_are_empty),
		TEST(a_failed_write_leaves_the_objects_in_dram_and_readable),
		cmocka_unit_test_setup_teardown(without_a_context_to_write_with_objects_stay_in_dram, setup, teardown),
		TEST(a_device_that_fails_again_and_again_leaves_a_dram_cache),
		TEST(large_objects_come_back_whole_from_their_extents),
	};

	return cmocka_run_group_tests_name("store: writing a segment", tests, NULL, NULL);
}
