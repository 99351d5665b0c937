/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments one by one: together they are what the status says of all of them. */
#include "tests/unit/server/store/harness.h"

static void without_flash_there_are_none(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(store_segment_count(h->store), 0);
}

static void a_segment_has_its_sequence_and_what_is_live_in_it(void **state)
{
	struct harness *h = *state;
	struct store_segment segment;
	struct store_status status;
	struct fidx_match match;
	uint64_t live = 0, used = 0;
	char large[3000];

	harness_open(h);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	set_on_flash(h, "first", "value");
	set_on_flash(h, "second", large);
	store_get_status(h->store, &status);
	assert_int_equal(store_segment_count(h->store), status.segments.total);
	for (uint32_t n = 0; n < status.segments.total; n++) {
		store_get_segment(h->store, n, &segment);
		assert_true(segment.sequence > 0 || segment.live_bytes == 0);
		assert_true(segment.sequence <= status.segments.newest_sequence);
		live += segment.live_bytes;
		used += segment.sequence > 0;
	}
	assert_int_equal(used, 2);
	assert_int_equal(live, status.index.live_bytes);
	assert_true(live >= 3000);
	assert_true(slot_of(h, "first", &match));
	store_get_segment(h->store, match.segment, &segment);
	assert_int_equal(segment.sequence, match.sequence);
	live = segment.live_bytes;
	assert_int_equal(run(h, STORE_DELETE, "first").result, STORE_DELETED);
	store_get_segment(h->store, match.segment, &segment);
	assert_int_equal(segment.sequence, match.sequence);
	assert_true(segment.live_bytes < live);
}

static void a_segment_of_small_objects_without_slots_has_their_bytes(void **state)
{
	struct harness *h = *state;
	struct store_segment segment;
	struct store_status status;
	uint64_t bytes = 0;
	uint32_t number;

	h->config.index = STORE_INDEX_FRUGAL;
	harness_open(h);
	set_on_flash(h, "first", "value");
	number = segment_of(h, "first");
	store_get_status(h->store, &status);
	for (uint32_t n = 0; n < status.segments.total; n++) {
		store_get_segment(h->store, n, &segment);
		bytes += segment.live_bytes;
	}
	assert_int_equal(bytes, status.frugal.bytes);
	store_get_segment(h->store, number, &segment);
	assert_true(segment.sequence > 0 && segment.live_bytes > 0);
	assert_true(reclaim_segment(h->store, number));
	store_get_segment(h->store, number, &segment);
	assert_int_equal(segment.live_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_flash_there_are_none, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(a_segment_has_its_sequence_and_what_is_live_in_it, setup_in_memory,
						teardown),
		cmocka_unit_test_setup_teardown(a_segment_of_small_objects_without_slots_has_their_bytes,
						setup_in_memory, teardown),
	};

	return cmocka_run_group_tests_name("store: segments one by one", tests, NULL, NULL);
}
