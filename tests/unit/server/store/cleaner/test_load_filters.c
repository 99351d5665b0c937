/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters after a start from the region: they come back one by one, whatever happens to their segments meanwhile. */
#include <math.h>
#include <unistd.h>

#include "server/store/state/recount.h"
#include "tests/unit/server/store/harness.h"

#define OBJECTS 60
#define KEY_BYTES 24

static char folder[100], region_path[200];

static int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-filters-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(region_path, sizeof(region_path), "%s/%.80s.region", folder, strrchr(h->path, '/') + 1);
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "one boot";
	h->config.filter_bits = 8;
	return 0;
}

static int teardown_folder(void **state)
{
	fault_disarm_all();
	unlink(region_path);
	return teardown(state) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void name(char key[KEY_BYTES], unsigned n)
{
	snprintf(key, KEY_BYTES, "object-%u", n);
}

static struct store_status status_of(struct harness *h)
{
	struct store_status status;

	store_get_status(h->store, &status);
	return status;
}

/* Objects on flash, in segments with filters; then the process is gone without an end, and another one attaches. */
static struct store_status fill_and_start_again(struct harness *h)
{
	struct store_status before;
	char key[KEY_BYTES];

	harness_open(h);
	for (unsigned n = 0; n < OBJECTS; n++) {
		name(key, n);
		set(h, key, key);
		if (n % 10 == 9)
			move(h, key);
	}
	before = status_of(h);
	assert_true(before.index.filter_bytes > 0 && before.segments.live >= 3);
	harness_close(h);
	harness_open(h);
	assert_int_equal(h->store->start, STORE_START_ATTACHED);
	while (recount_step(h->store)) /* as the cleaner does first */
		;
	return before;
}

static void step(struct harness *h)
{
	seconds_pass(h, 1);
	load_filters_step(h->store);
}

static void assert_all_there(struct harness *h)
{
	char key[KEY_BYTES];

	for (unsigned n = 0; n < OBJECTS; n++) {
		struct fidx_match match;

		name(key, n);
		assert_true(slot_of(h, key, &match) || item_in_dram(h, key));
		assert_value(h, key, key);
	}
}

static void assert_all_have_filters(struct harness *h)
{
	for (uint32_t s = 0; s < status_of(h).segments.total; s++)
		if (fidx_segment_is_open(h->store->index, s))
			assert_false(fidx_lacks_filter(h->store->index, s));
}

static void they_come_back_one_by_one(void **state)
{
	struct harness *h = *state;
	struct store_status before = fill_and_start_again(h), now = status_of(h);
	unsigned segments = now.segments.live;

	assert_int_equal(now.index.filter_bytes, 0);
	assert_int_equal(now.filters_left, segments);
	assert_all_there(h);
	for (unsigned read = 0; read < segments; read++) {
		step(h);
		load_filters_step(h->store); /* at the same time: it is too early for another one */
		assert_int_equal(status_of(h).segments.live, segments);
		assert_true(status_of(h).filters_left >= segments - read - 1);
		assert_true(status_of(h).index.filter_bytes > now.index.filter_bytes);
		now = status_of(h);
	}
	step(h);
	now = status_of(h);
	assert_int_equal(now.filters_left, 0);
	assert_int_equal(now.index.filter_bytes, before.index.filter_bytes);
	assert_true(fabs(now.filter_false_positive - before.filter_false_positive) < 0.02);
	assert_all_have_filters(h);
	assert_all_there(h);
	assert_true(fidx_verify(h->store->index));
}

static void cuckoo_filters_come_back_too(void **state)
{
	struct harness *h = *state;

	h->config.filter = FIDX_FILTER_CUCKOO;
	they_come_back_one_by_one(state);
}

static void a_segment_that_goes_meanwhile_is_left_out(void **state)
{
	struct harness *h = *state;
	unsigned segments = fill_and_start_again(h).segments.live;
	uint64_t lowest = UINT64_MAX;
	uint32_t oldest = 0;

	for (uint32_t s = 0; s < status_of(h).segments.total; s++)
		if (seg_sequence(h->store->segments, s) != 0 && seg_sequence(h->store->segments, s) < lowest) {
			lowest = seg_sequence(h->store->segments, s);
			oldest = s;
		}
	step(h);
	reclaim_of(h, oldest);
	for (unsigned n = 0; n < segments; n++)
		step(h);
	assert_int_equal(status_of(h).filters_left, 0);
	assert_true(h->store->cleaner->filters.loaded > 0 && h->store->cleaner->filters.loaded < segments);
	assert_all_have_filters(h);
	assert_true(fidx_verify(h->store->index));
}

static void what_cannot_be_read_is_done_without(void **state)
{
#ifndef FS_FAULTS
	(void)state;
	skip();
#else
	struct harness *h = *state;
	unsigned segments = fill_and_start_again(h).segments.live;

	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	step(h);
	fault_disarm_all();
	for (unsigned n = 0; n < segments; n++)
		step(h);
	assert_int_equal(status_of(h).filters_left, 0);
	assert_int_equal(h->store->cleaner->filters.failed, 1);
	assert_int_equal(h->store->cleaner->filters.loaded, segments - 1);
	assert_all_there(h);
#endif
}

static void without_bits_none_is_looked_for(void **state)
{
	struct harness *h = *state;

	(void)fill_and_start_again(h);
	harness_close(h);
	h->config.filter_bits = 0;
	harness_open(h);
	assert_int_equal(h->store->start, STORE_START_ATTACHED);
	assert_int_equal(status_of(h).filters_left, 0);
	step(h);
	assert_int_equal(status_of(h).index.filter_bytes, 0);
	assert_all_there(h);
}

static void a_cold_start_looks_for_none(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(status_of(h).filters_left, 0);
	step(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_come_back_one_by_one, setup_folder, teardown_folder),
		cmocka_unit_test_setup_teardown(cuckoo_filters_come_back_too, setup_folder, teardown_folder),
		cmocka_unit_test_setup_teardown(a_segment_that_goes_meanwhile_is_left_out, setup_folder,
						teardown_folder),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_done_without, setup_folder, teardown_folder),
		cmocka_unit_test_setup_teardown(without_bits_none_is_looked_for, setup_folder, teardown_folder),
		cmocka_unit_test_setup_teardown(a_cold_start_looks_for_none, setup_folder, teardown_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
