/* SPDX-License-Identifier: BSD-3-Clause */
/* Filter units in the store: they follow what is asked, hold their budget, and never hide an object. */
#include <unistd.h>

#include "flashindex/units.h"
#include "server/store/state/recount.h"
#include "tests/unit/server/store/harness.h"

#define OBJECTS 60u
#define KEY_BYTES 24
#define UNITS 4u

static char folder[100], region_path[200];

static int setup_units(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-units-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(region_path, sizeof(region_path), "%s/%.80s.region", folder, strrchr(h->path, '/') + 1);
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "one boot";
	h->config.filter_bits = 4; /* units of two bits */
	h->config.filter_units = UNITS;
	return 0;
}

static int teardown_units(void **state)
{
	fault_disarm_all();
	unlink(region_path);
	return teardown(state) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void name(char key[KEY_BYTES], unsigned n)
{
	snprintf(key, KEY_BYTES, "object-%u", n);
}

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (unsigned n = 0; n < OBJECTS; n++) {
		name(key, n);
		set(h, key, key);
		if (n % 10 == 9)
			move(h, key);
	}
}

/* Each object has its slot, and each filter passes it. */
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

static unsigned resident_of(struct harness *h, uint32_t segment)
{
	struct fidx_units units;

	return fidx_units_of(h->store->index, segment, &units) ? units.resident : 0;
}

/* What is in memory is what the queues and the accounts say, within the budget. */
static void assert_figures(struct harness *h)
{
	struct unit_queues_figures figures;
	struct store_status status;
	unsigned units = 0;

	store_get_status(h->store, &status);
	unit_queues_get_figures(h->store->cleaner->units.queues, &figures);
	for (uint32_t s = 0; s < status.segments.total; s++)
		if (fidx_segment_is_open(h->store->index, s))
			units += resident_of(h, s);
	assert_int_equal(units, figures.units);
	assert_int_equal(units, status.filter_units);
	assert_true(figures.bytes <= figures.budget);
	assert_true(status.index.filter_bytes >= figures.bytes);
	assert_true(atomic_load(&h->store->index_bytes) ==
		    status.index.index_bytes + status.index.filter_bytes + status.index.other_bytes);
	assert_true(fidx_verify(h->store->index));
}

/* Asks the segment's filter for keys of others, until it has rejected so many; any filter rejects some. */
static void ask_in_vain(struct harness *h, uint32_t segment, unsigned times)
{
	static uint64_t hash = 1;

	assert_true(resident_of(h, segment) > 0);
	while (times > 0)
		times -= !fidx_filter_passes(h->store->index, segment, mix64(hash++));
}

/* A look at all segments, and loads for two of them. */
static void step(struct harness *h)
{
	for (unsigned n = 0; n < 3; n++) {
		seconds_pass(h, 1);
		units_step(h->store);
	}
}

/* The segments with units, the one with the most of them first. */
static uint32_t some_segment(struct harness *h)
{
	uint32_t best = 0;

	for (uint32_t s = 1; s < h->store->cleaner->units.segments; s++)
		if (fidx_segment_is_open(h->store->index, s) &&
		    (!fidx_segment_is_open(h->store->index, best) || resident_of(h, s) > resident_of(h, best)))
			best = s;
	assert_true(resident_of(h, best) > 0);
	return best;
}

/* Others have expired once more gets have come than there are segments. */
static void let_expire(struct harness *h)
{
	for (unsigned n = 0; n < 40; n++)
		assert_missing(h, "nobody's key");
	for (uint32_t s = 0; s < h->store->cleaner->units.segments; s++)
		(void)fidx_units_asked(h->store->index, s);
}

static void units_follow_what_is_asked(void **state)
{
	struct harness *h = *state;
	uint64_t loaded = ctr_total(CTR_filter_units_loaded), dropped = ctr_total(CTR_filter_units_dropped);
	uint32_t hot;

	harness_open(h);
	fill(h);
	assert_figures(h);
	hot = some_segment(h);
	assert_int_equal(resident_of(h, hot), 2);
	for (unsigned want = 3; want <= UNITS; want++) {
		let_expire(h);
		ask_in_vain(h, hot, 1000);
		step(h);
		assert_int_equal(resident_of(h, hot), want);
		assert_figures(h);
		assert_all_there(h);
	}
	assert_int_equal(ctr_total(CTR_filter_units_loaded) - loaded, 2);
	assert_true(ctr_total(CTR_filter_units_dropped) - dropped >= 2);
	ask_in_vain(h, hot, 1000);
	step(h);
	assert_int_equal(resident_of(h, hot), UNITS); /* it has all */
}

static void segments_come_and_go_within_the_budget(void **state)
{
	struct harness *h = *state;
	uint32_t hot;

	harness_open(h);
	fill(h);
	hot = some_segment(h);
	let_expire(h);
	ask_in_vain(h, hot, 1000);
	step(h);
	assert_int_equal(resident_of(h, hot), 3);
	reclaim_of(h, hot);
	assert_figures(h);
	for (unsigned n = 0; n < 40; n++)
		(void)write_one(h);
	assert_figures(h);
}

static void a_unit_that_cannot_be_read_is_done_without(void **state)
{
#ifndef FS_FAULTS
	(void)state;
	skip();
#else
	struct harness *h = *state;
	uint64_t failed = ctr_total(CTR_filter_units_failed);
	uint32_t hot;

	harness_open(h);
	fill(h);
	hot = some_segment(h);
	for (unsigned n = 0; n < 2; n++) { /* once with an error, then with a flipped bit, of another segment */
		let_expire(h);
		fault_arm(n == 0 ? FAULT_device_read_eio : FAULT_device_read_corrupt, FAULT_ALWAYS, 0);
		ask_in_vain(h, hot, 1000);
		step(h);
		fault_disarm_all();
		assert_int_equal(ctr_total(CTR_filter_units_failed) - failed, n + 1);
		assert_int_equal(resident_of(h, hot), 2);
		assert_figures(h);
		for (uint32_t s = 0; s < h->store->cleaner->units.segments; s++)
			if (s != hot && resident_of(h, s) == 2) {
				hot = s;
				break;
			}
	}
	assert_all_there(h);
#endif
}

/* One error of the drive costs a unit for a moment, and a lasting one costs few reads. */
static void a_unit_that_cannot_be_read_is_tried_again(void **state)
{
#ifndef FS_FAULTS
	(void)state;
	skip();
#else
	struct harness *h = *state;
	uint64_t failed = ctr_total(CTR_filter_units_failed);
	uint32_t hot;

	harness_open(h);
	fill(h);
	hot = some_segment(h);
	let_expire(h);
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	ask_in_vain(h, hot, 1000);
	step(h);
	fault_disarm_all();
	failed = ctr_total(CTR_filter_units_failed) - failed;
	assert_true(failed >= 1 && failed < 4);
	assert_int_equal(resident_of(h, hot), 2);
	seconds_pass(h, 8);
	ask_in_vain(h, hot, 1000);
	step(h);
	assert_int_equal(resident_of(h, hot), 3);
	assert_figures(h);
	failed = ctr_total(CTR_filter_units_failed);
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	for (unsigned n = 0; n < 200; n++) {
		ask_in_vain(h, hot, 1000);
		step(h);
	}
	fault_disarm_all();
	assert_int_equal(ctr_total(CTR_filter_units_failed) - failed, 6);
	assert_false(seg_offline(h->store->segments));
	ask_in_vain(h, hot, 1000);
	step(h);
	assert_int_equal(resident_of(h, hot), 3); /* it was given up */
	assert_figures(h);
	assert_all_there(h);
#endif
}

/* After a kill the filters come back from the footers, and go on as units. */
static void units_come_back_after_a_kill(void **state)
{
	struct harness *h = *state;
	uint32_t hot;

	harness_open(h);
	fill(h);
	harness_close(h);
	harness_open(h);
	assert_int_equal(h->store->start, STORE_START_ATTACHED);
	while (recount_step(h->store))
		;
	assert_all_there(h);
	while (load_filters_left(h->store) > 0) {
		seconds_pass(h, 1);
		load_filters_step(h->store);
		units_step(h->store);
	}
	assert_figures(h);
	hot = some_segment(h);
	assert_int_equal(resident_of(h, hot), 2);
	let_expire(h);
	ask_in_vain(h, hot, 1000);
	step(h);
	assert_int_equal(resident_of(h, hot), 3);
	assert_all_there(h);
}

static void without_the_option_there_are_none(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	h->config.filter_units = 0;
	harness_open(h);
	fill(h);
	units_step(h->store);
	store_get_status(h->store, &status);
	assert_int_equal(status.filter_units, 0);
	assert_true(status.index.filter_bytes > 0);
	assert_null(h->store->cleaner->units.queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(units_follow_what_is_asked, setup_units, teardown_units),
		cmocka_unit_test_setup_teardown(segments_come_and_go_within_the_budget, setup_units, teardown_units),
		cmocka_unit_test_setup_teardown(a_unit_that_cannot_be_read_is_done_without, setup_units,
						teardown_units),
		cmocka_unit_test_setup_teardown(a_unit_that_cannot_be_read_is_tried_again, setup_units, teardown_units),
		cmocka_unit_test_setup_teardown(units_come_back_after_a_kill, setup_units, teardown_units),
		cmocka_unit_test_setup_teardown(without_the_option_there_are_none, setup_units, teardown_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
