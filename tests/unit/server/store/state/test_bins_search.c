/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches that wait for the device: which of a key's records counts. */
#include "tests/unit/server/store/harness.h"

#include "server/store/state/bins_search.h"

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	harness_open(*state);
	return result;
}

static bool is_current(struct harness *h, const char *key, uint32_t segment, uint64_t sequence)
{
	const struct bins_record record = { .key = key,
					    .key_length = (uint8_t)strlen(key),
					    .hash = store_hash(h->store, key, strlen(key)),
					    .segment = segment,
					    .sequence = sequence };
	struct bins_searcher searcher;
	struct frugal_since since;
	bool current;

	bins_searcher_init(&searcher, h->store, false);
	current = bins_is_current(&searcher, &record, &since);
	bins_searcher_fini(&searcher);
	return current;
}

static void the_newest_record_counts(void **state)
{
	struct harness *h = *state;
	uint32_t first, second;
	uint64_t first_sequence;

	set_on_flash(h, "key", "one");
	first = segment_of(h, "key");
	first_sequence = seg_sequence(h->store->segments, first);
	assert_true(is_current(h, "key", first, first_sequence));
	assert_false(is_current(h, "key", first, first_sequence - 1));
	set_on_flash(h, "key", "two");
	second = segment_of(h, "key");
	assert_int_not_equal(first, second);
	assert_false(is_current(h, "key", first, first_sequence));
	assert_true(is_current(h, "key", second, seg_sequence(h->store->segments, second)));
}

static void after_a_kill_none_counts(void **state)
{
	struct harness *h = *state;
	uint32_t segment;
	uint64_t sequence;

	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	sequence = seg_sequence(h->store->segments, segment);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_false(is_current(h, "key", segment, sequence));
	assert_true(write_one(h)); /* its bundle has the kill now */
	assert_false(is_current(h, "key", segment, sequence));
	assert_false(is_current(h, "another", segment, sequence));
}

static void behind_a_bin_that_cannot_be_read_nothing_counts(void **state)
{
	struct harness *h = *state;
	uint32_t segment;
	uint64_t sequence;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	sequence = seg_sequence(h->store->segments, segment);
	set_on_flash(h, "key", "two");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	assert_false(is_current(h, "key", segment, sequence));
	fault_disarm_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_newest_record_counts, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(after_a_kill_none_counts, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(behind_a_bin_that_cannot_be_read_nothing_counts, setup_frugal,
						teardown),
	};

	return cmocka_run_group_tests_name("store: bins search", tests, NULL, NULL);
}
