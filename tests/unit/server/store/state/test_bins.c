/* SPDX-License-Identifier: BSD-3-Clause */
/* The frugal index of a store: what it goes with, its sizes, and the bits of what was read. */
#include "tests/unit/server/store/harness.h"

#include "server/store/state/bins.h"

static void it_goes_neither_with_no_evictions_nor_with_a_journal(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.evict = false;
	assert_int_equal(harness_try_open(h), FS_ERANGE);
	assert_non_null(strstr(h->reason, "-M"));
	h->config.evict = true;
	h->config.journal = true;
	assert_int_equal(harness_try_open(h), FS_ERANGE);
	assert_non_null(strstr(h->reason, "--journal"));
	h->config.journal = false;
	harness_open(h);
	assert_non_null(h->store->frugal);
}

static void without_it_there_is_none(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_SLOTS;
	harness_open(h);
	assert_null(h->store->frugal);
	assert_null(h->store->bins_reads);
	bins_forget_reads(h->store, 0);
	assert_false(bins_may_hold(h->store, 4711));
}

static void what_was_read_is_known_until_its_segment_goes(void **state)
{
	struct harness *h = *state;
	uint64_t known = 0;

	h->config.index = STORE_INDEX_FRUGAL;
	harness_open(h);
	assert_false(bins_was_read(h->store, 3, 1));
	bins_set_read(h->store, 3, 1); /* without bits: nothing */
	assert_false(bins_was_read(h->store, 3, 1));
	bins_note_reads(h->store, 3, 1000);
	assert_int_equal(atomic_load(&h->store->bins_reads_bytes), 128);
	bins_set_read(h->store, 3, 1);
	assert_true(bins_was_read(h->store, 3, 1));
	assert_false(bins_was_read(h->store, 2, 1));
	for (uint64_t hash = 0; hash < 1000; hash++)
		known += bins_was_read(h->store, 3, hash);
	assert_in_range(known, 1, 20); /* a few keys share its bit */
	bins_forget_reads(h->store, 3);
	assert_false(bins_was_read(h->store, 3, 1));
	assert_int_equal(atomic_load(&h->store->bins_reads_bytes), 0);
}

static void the_sizes_follow_from_flash_and_memory(void **state)
{
	struct harness *h = *state;
	const struct frugal_config *config;
	struct sizing sizing;

	h->config.index = STORE_INDEX_FRUGAL;
	assert_int_equal(sizing_make(&h->config, &sizing, h->reason), FS_OK);
	harness_open(h);
	config = &h->store->frugal_config;
	assert_int_equal(config->segments, sizing.segments);
	assert_int_equal(config->partitions, sizing.partitions);
	assert_true(config->partitions >= 1 && config->partitions <= frugal_partitions_most(config));
	assert_true(config->kill_bytes >= 4096 && config->kill_bytes <= h->config.memory_bytes / 8);
	assert_true(config->memory_most >= sizing.flash_used / 64 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_goes_neither_with_no_evictions_nor_with_a_journal, setup, teardown),
		cmocka_unit_test_setup_teardown(without_it_there_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_read_is_known_until_its_segment_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sizes_follow_from_flash_and_memory, setup, teardown),
	};

	return cmocka_run_group_tests_name("store: bins", tests, NULL, NULL);
}
