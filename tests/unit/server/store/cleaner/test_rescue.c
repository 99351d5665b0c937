/* SPDX-License-Identifier: BSD-3-Clause */
/* A failing segment gets another home while commands run: no value is wrong or old, before, meanwhile, and over a kill. */
#include <unistd.h>

#include "segments/rescue.h"
#include "segments/segments_internal.h"
#include "server/store/state/restart.h"
#include "tests/unit/server/store/harness.h"
#include "tests/unit/server/store/killed_child.h"

#define OBJECTS 40
#define KEY_BYTES 24

static char folder[100];
static unsigned kill_after;

static int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-rescue-XXXXXX");
	assert_non_null(mkdtemp(folder));
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "one boot";
	return 0;
}

static int teardown_folder(void **state)
{
	char command[300];
	int result;

	fault_disarm_all();
	result = teardown(state);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) == 0 ? result : -1; /* NOLINT: the name is ours */
}

static void name(char key[KEY_BYTES], int n)
{
	snprintf(key, KEY_BYTES, "object-%d", n);
}

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

/* Odd ones have changed since; each has its last value, or is missing. Returns how many are there. */
static unsigned count_right(struct harness *h)
{
	unsigned found = 0;

	for (int n = 0; n < OBJECTS; n++) {
		char key[KEY_BYTES];
		struct reply reply;

		name(key, n);
		reply = get(h, key);
		if (reply.result == STORE_MISS)
			continue;
		assert_int_equal(reply.result, STORE_HIT);
		assert_string_equal(reply.value, n % 2 ? "newer" : key);
		found++;
	}
	return found;
}

static void change_odd_ones(struct harness *h)
{
	for (int n = 1; n < OBJECTS; n += 2) {
		char key[KEY_BYTES];

		name(key, n);
		set(h, key, "newer");
	}
}

static struct seg_status status_of(struct harness *h)
{
	struct seg_status status;

	seg_get_status(h->store->segments, &status);
	return status;
}

/* Reads of the segment's first half fail from now on. */
static void break_half(struct harness *h, uint32_t segment)
{
	h->ram->bad_from = KIB(64) + KIB(64) * segment + SEG_PAGE;
	h->ram->bad_to = h->ram->bad_from + KIB(32);
}

/* Asks for everything until some read has failed, and steps until a segment is rescued. */
static void await_rescue(struct harness *h, uint32_t before)
{
	for (unsigned rounds = 0; rounds < 1000 && status_of(h).bad == before; rounds++) {
		(void)count_right(h);
		store_clean_step(h->store);
		clk_scripted_advance(&h->clk, 100000);
	}
	assert_int_equal(status_of(h).bad, before + 1);
}

static void what_can_be_read_stays_under_load(void **state)
{
	struct harness *h = *state;
	uint32_t segment;
	unsigned left;

	h->config.region_dir = NULL;
	harness_use_ram(h);
	harness_open(h);
	keep_no_reads(h);
	fill(h);
	assert_true(write_one(h));
	segment = segment_of(h, "object-2");
	change_odd_ones(h);
	break_half(h, segment);
	await_rescue(h, 0);
	left = count_right(h);
	assert_in_range(left, OBJECTS / 2, OBJECTS);
	/* The rest of the bad home fails too: nothing is read there any more. */
	h->ram->bad_to = h->ram->bad_from + KIB(60);
	assert_int_equal(count_right(h), left);
	for (unsigned n = 0; n < 40; n++) {
		assert_true(write_one(h));
		(void)count_right(h);
	}
	assert_int_equal(status_of(h).bad, 1);
	assert_true(fidx_verify(h->store->index));
}

/* A full flash gives the oldest segment for it; a failing one that is the oldest itself stays. */
static void on_a_full_flash_the_oldest_segment_makes_room(void **state)
{
	struct harness *h = *state;
	uint32_t oldest, newest;

	h->config.region_dir = NULL;
	harness_use_ram(h);
	harness_open(h);
	keep_no_reads(h);
	while (status_of(h).free > 0)
		assert_true(write_one(h));
	set_on_flash(h, "object-2", "object-2");
	while (status_of(h).free > 0)
		assert_true(write_one(h));
	newest = segment_of(h, "object-2");
	assert_true(seg_oldest(h->store->segments, &oldest));
	assert_int_not_equal(oldest, newest);
	health_read_error(h->store->segments, oldest, 5);
	for (unsigned steps = 0; steps < 10; steps++)
		store_clean_step(h->store);
	assert_int_equal(status_of(h).free, 0);
	seconds_pass(h, 61);
	health_read_error(h->store->segments, newest, 5);
	h->ram->bad_from = KIB(64) + KIB(64) * newest + KIB(60);
	h->ram->bad_to = h->ram->bad_from + KIB(4);
	await_rescue(h, 0);
	assert_int_equal(seg_sequence(h->store->segments, oldest), 0);
	assert_value(h, "object-2", "object-2");
	assert_true(write_one(h));
}

static void with_all_kept_a_full_flash_makes_no_room(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	h->config.region_dir = NULL;
	h->config.evict = false;
	harness_use_ram(h);
	harness_open(h);
	set_on_flash(h, "object-2", "object-2");
	for (uint32_t n = 0; n < 16; n++)
		if (seg_sequence(h->store->segments, n) == 0)
			seg_set_use(h->store->segments, n, HOME_HELD, SEG_RETIRED);
	health_read_error(h->store->segments, segment_of(h, "object-2"), 5);
	for (unsigned steps = 0; steps < 10; steps++)
		store_clean_step(h->store);
	assert_int_equal(status_of(h).bad, 0);
	assert_value(h, "object-2", "object-2");
	/* It is not tried again before another read fails, however much time passes. */
	for (unsigned minutes = 0; minutes < 3; minutes++) {
		assert_int_equal(seg_rescue_find(h->store->segments, &segment), FS_ENOTFOUND);
		seconds_pass(h, 61);
	}
	health_read_error(h->store->segments, segment_of(h, "object-2"), 5);
	assert_int_equal(seg_rescue_find(h->store->segments, &segment), FS_OK);
	assert_int_equal(segment, segment_of(h, "object-2"));
}

/* ---- kills -------------------------------------------------------------------------------------- */

/* Every other page that the copy reads is bad. */
static void rescue_and_be_killed(struct harness *h)
{
	harness_open(h);
	keep_no_reads(h);
	fill(h);
	change_odd_ones(h);
	health_read_error(h->store->segments, segment_of(h, "object-2"), 5);
	fault_arm(FAULT_killed_in_rescue, FAULT_AFTER, kill_after);
	fault_arm(FAULT_device_read_eio, FAULT_EVERY, 2);
	(void)get(h, "object-2"); /* so that the first read of the copy, of all pages, fails */
	for (unsigned steps = 0; steps < 1000 && status_of(h).bad == 0; steps++) {
		store_clean_step(h->store);
		clk_scripted_advance(&h->clk, 100000);
	}
	fault_arm(FAULT_device_read_eio, FAULT_OFF, 0);
	(void)count_right(h);
	if (seg_sequence(h->store->segments, 0) != 0)
		change_odd_ones(h);
}

/* The points: copied, in the superblock, in use; the last kill is behind the rescue. */
static void a_kill_at_each_step_leaves_nothing_stale(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	for (kill_after = 0; kill_after <= 3; kill_after++) {
		struct store_status status;

		run_in_killed_child(h, rescue_and_be_killed);
		harness_open(h);
		store_get_status(h->store, &status);
		assert_string_equal(status.start_word, "attached");
		assert_int_equal(status.segments.bad, kill_after >= 1);
		for (int n = 1; n < OBJECTS; n += 2) { /* what memory had is gone; the old value must be, too */
			char key[KEY_BYTES];
			struct reply reply;

			name(key, n);
			reply = get(h, key);
			assert_true(reply.result == STORE_MISS || strcmp(reply.value, "newer") == 0);
		}
		assert_in_range(count_right(h), 4, OBJECTS);
		for (unsigned n = 0; n < 40; n++) {
			assert_true(write_one(h));
			(void)count_right(h);
		}
		harness_close(h);
		/* Another start remembers it too, although it is cold. */
		h->config.restart_max_downtime_us = 0;
		harness_open(h);
		assert_int_equal(status_of(h).bad, kill_after >= 1);
		harness_close(h);
		h->config.restart_max_downtime_us = 60000000;
		unlink(h->path);
	}
}

#define RESCUE_TEST(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESCUE_TEST(what_can_be_read_stays_under_load),
		RESCUE_TEST(on_a_full_flash_the_oldest_segment_makes_room),
		RESCUE_TEST(with_all_kept_a_full_flash_makes_no_room),
		RESCUE_TEST(a_kill_at_each_step_leaves_nothing_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
