/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start: commands come before, between and after the steps of the loader, and nothing that they changed comes back;
 * files that are cut short or damaged; memory that is too small.
 */
#include "tests/unit/server/store/cleaner/saving.h"

#include <pthread.h>

#include "tests/unit/server/store/asking.h"

#define LONG 50000u

/* ---- never stale ----------------------------------------------------------------------------- */

static void stop_with_key(struct harness *h)
{
	harness_open(h);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "key", .value = "10", .length = 2, .flags = 7).result,
			 STORE_STORED);
	set(h, "other", "value");
	stop_cleanly(h);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	assert_missing(h, "key"); /* a get that comes too early misses, and promises nothing */
}

static void set_before(struct harness *h)
{
	set(h, "key", "new");
}

static void set_and_deleted_before(struct harness *h)
{
	set(h, "key", "new");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
}

static void added_before(struct harness *h)
{
	assert_int_equal(run_with(h, STORE_ADD, "key", "new").result, STORE_STORED);
}

static void deleted_before(struct harness *h)
{
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_MISS);
}

static void touched_before(struct harness *h)
{
	assert_int_equal(run_expiry(h, STORE_TOUCH, "key", 1).result, STORE_MISS);
}

static void got_and_touched_before(struct harness *h)
{
	assert_int_equal(run_expiry(h, STORE_GAT, "key", 1).result, STORE_MISS);
}

static void counted_before(struct harness *h)
{
	assert_int_equal(run_number(h, STORE_INCR, "key", 1).result, STORE_MISS);
}

static void appended_before(struct harness *h)
{
	assert_int_equal(run_with(h, STORE_APPEND, "key", "x").result, STORE_NOT_STORED);
}

static void replaced_before(struct harness *h)
{
	assert_int_equal(run_with(h, STORE_REPLACE, "key", "x").result, STORE_NOT_STORED);
}

static void compared_before(struct harness *h)
{
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = "key", .value = "x", .length = 1, .cas = 1).result,
			 STORE_MISS);
}

static void vivified_before(struct harness *h)
{
	ASK(h, "key", .vivify = true);
}

static void flushed_before(struct harness *h)
{
	store_flush_all(h->store, 0);
}

static const struct {
	void (*act)(struct harness *h);
	const char *value; /* afterwards; NULL: absent */
} acts[] = {
	{ set_before, "new" },     { set_and_deleted_before, NULL }, { added_before, "new" },
	{ deleted_before, NULL },  { touched_before, NULL },         { got_and_touched_before, NULL },
	{ counted_before, NULL },  { appended_before, NULL },        { replaced_before, NULL },
	{ compared_before, NULL }, { vivified_before, "" },          { flushed_before, NULL },
};

static void what_was_changed_before_its_load_does_not_come_back(void **state)
{
	struct harness *h = *state;

	for (unsigned n = 0; n < sizeof(acts) / sizeof(acts[0]); n++) {
		stop_with_key(h);
		acts[n].act(h);
		load_all(h);
		assert_int_equal(figures(h).loaded, acts[n].act == flushed_before ? 0 : 1);
		assert_int_equal(figures(h).skipped, acts[n].act == flushed_before ? 2 : 1);
		if (acts[n].value)
			assert_value(h, "key", acts[n].value);
		else
			assert_missing(h, "key");
		harness_close(h);
	}
}

/* The new value has gone to flash, or was evicted, before the loader comes to the key. */
static void a_new_value_that_has_left_dram_stays_the_newest(void **state)
{
	struct harness *h = *state;

	stop_with_key(h);
	set_on_flash(h, "key", "new");
	load_all(h);
	assert_int_equal(where(h, "key"), FLASH);
	assert_value(h, "key", "new");
}

static void a_get_alone_bars_nothing(void **state)
{
	struct harness *h = *state;

	stop_with_key(h);
	ask(h, "key", (struct asked){ .op = STORE_GET, .options = { .keep_clock = true } });
	load_all(h);
	assert_value(h, "key", "10");
}

static void commands_act_on_what_was_loaded(void **state)
{
	struct harness *h = *state;

	stop_with_key(h);
	load_all(h);
	assert_int_equal(run_number(h, STORE_INCR, "key", 1).number, 11);
	assert_value(h, "key", "11");
	store_flush_all(h->store, 0);
	assert_missing(h, "key");
	assert_missing(h, "other");
}

static void a_flush_that_falls_due_before_the_load_holds(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	store_flush_all(h->store, 10);
	stop_cleanly(h);
	seconds_pass(h, 20);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_missing(h, "key");
	assert_int_equal(figures(h).loaded, 0);
}

/* ---- beside threads -------------------------------------------------------------------------- */

#define MANY 20000

static void commands_beside_the_loader_never_see_an_old_value(void **state)
{
	struct harness *h = *state;
	char key[24];

	harness_open(h);
	for (int n = 0; n < MANY; n++) {
		key_number(key, n);
		set(h, key, "old");
	}
	stop_cleanly(h);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	assert_int_equal(loader_start(h->store), FS_OK);
	for (int n = 0; n < MANY; n += 3) {
		key_number(key, n);
		set(h, key, "new");
		key_number(key, n + 1);
		run(h, STORE_DELETE, key);
	}
	while (figures(h).loading)
		sched_yield();
	loader_stop(h->store);
	for (int n = 0; n < MANY; n++) {
		key_number(key, n);
		if (n % 3 == 0)
			assert_value(h, key, "new");
		else if (n % 3 == 1)
			assert_missing(h, key);
		else if (get(h, key).result == STORE_HIT)
			assert_value(h, key, "old");
	}
	assert_true(figures(h).loaded >= MANY / 4);
}

/* ---- files ----------------------------------------------------------------------------------- */

#define PARTS_OBJECTS 100

/* A stop with several parts; returns the file's length. */
static off_t stop_with_parts(struct harness *h)
{
	struct stat status;
	char key[24];

	harness_open(h);
	for (int n = 0; n < PARTS_OBJECTS; n++) {
		key_number(key, n);
		set_bytes(h, key, LONG);
	}
	stop_cleanly(h);
	assert_int_equal(stat(items_path, &status), 0);
	return status.st_size;
}

static void assert_part_of_it(struct harness *h)
{
	uint64_t loaded = figures(h).loaded;
	char key[24];
	unsigned found = 0;

	assert_int_equal(loaded + figures(h).left, PARTS_OBJECTS);
	for (int n = 0; n < PARTS_OBJECTS; n++) {
		struct reply reply;

		key_number(key, n);
		reply = get(h, key);
		found += reply.result == STORE_HIT;
		if (reply.result == STORE_HIT)
			assert_int_equal(reply.length, LONG);
	}
	assert_int_equal(found, loaded);
}

static void a_file_that_is_cut_short_gives_its_whole_parts(void **state)
{
	struct harness *h = *state;

	for (unsigned part = 1; part <= 8; part++) {
		off_t length = stop_with_parts(h);

		assert_int_equal(truncate(items_path, length * part / 8 - 20), 0);
		assert_int_equal(start_again(h), SAVED_START_WARM);
		load_all(h);
		assert_true(figures(h).loaded <= PARTS_OBJECTS);
		assert_part_of_it(h);
		harness_close(h);
	}
}

static void flip(off_t at)
{
	int fd = open(items_path, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void a_damaged_byte_is_never_served(void **state)
{
	struct harness *h = *state;

	for (unsigned n = 0; n < 12; n++) {
		off_t length = stop_with_parts(h);

		flip(n < 4 ? 4 + n * 40 : length / 12 * n);
		harness_open(h);
		load_all(h);
		if (figures(h).start == SAVED_START_WARM)
			assert_part_of_it(h);
		else
			assert_true(n < 4 && figures(h).loaded == 0);
		harness_close(h);
		unlink(items_path);
	}
}

static void a_missing_end_is_no_end(void **state)
{
	struct harness *h = *state;

	(void)stop_with_parts(h);
	assert_int_equal(truncate(items_path, 10), 0);
	assert_int_equal(start_again(h), SAVED_START_DAMAGED);
}

/* ---- memory and limits ----------------------------------------------------------------------- */

static void less_memory_takes_the_last_used(void **state)
{
	struct harness *h = *state;
	char key[24];

	harness_open(h);
	for (int n = 0; n < PARTS_OBJECTS; n++) {
		key_number(key, n);
		set_bytes(h, key, LONG);
		seconds_pass(h, 10 + (uint64_t)(PARTS_OBJECTS - n) * 10);
	}
	stop_cleanly(h);
	h->config.memory_bytes = MIB(3);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_true(figures(h).loaded > 10 && figures(h).left > 10);
	assert_int_equal(get(h, "object-0").result, STORE_MISS);
	assert_int_equal(get(h, "object-99").result, STORE_HIT);
	assert_true(store_free_bytes(h->store) > 0);
}

static void without_eviction_what_has_no_room_is_counted(void **state)
{
	struct harness *h = *state;

	h->config.evict = false;
	(void)stop_with_parts(h);
	h->config.memory_bytes = MIB(3);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_part_of_it(h);
	assert_true(figures(h).left > 10);
}

/* Sets objects until one is refused. Returns how many are stored. */
static int fill_up(struct harness *h, uint32_t length)
{
	static char value[LONG];
	char key[24];
	int n = 0;

	do
		key_number(key, n++);
	while (run_full(h, .op = STORE_SET, .key = key, .value = value, .length = length).result == STORE_STORED);
	return n - 1;
}

static void without_eviction_a_full_memory_comes_back_whole(void **state)
{
	static const uint32_t lengths[] = { 30, 1000, LONG };
	struct harness *h = *state;

	if (h->config.flash_path && harness_is_frugal())
		skip(); /* it goes with no -M */
	h->config.evict = false;
	for (unsigned n = 0; n < 3 * sizeof(lengths) / sizeof(lengths[0]); n++) {
		char key[24];
		int stored;

		h->config.memory_bytes = n < 3 ? MIB(4) : MIB(16);
		harness_open(h);
		stored = fill_up(h, lengths[n % 3]);
		stop_cleanly(h);
		h->config.seed++; /* of the hashes too, without flash: tables come out in other sizes */
		assert_int_equal(start_again(h), SAVED_START_WARM);
		load_all(h);
		assert_int_equal(figures(h).left, 0);
		for (int i = 0; i < stored; i++) { /* with a flash, some have gone there */
			key_number(key, i);
			assert_int_equal(get(h, key).result, STORE_HIT);
		}
		harness_close(h);
	}
}

static void without_eviction_small_objects_come_after_one_without_room(void **state)
{
	struct harness *h = *state;

	h->config.evict = false;
	harness_open(h);
	for (int n = 0; n < PARTS_OBJECTS; n++) {
		char key[24];

		key_number(key, n);
		set_bytes(h, key, n == 0 ? 1 : LONG);
		seconds_pass(h, 10); /* so that the small one is the last in the file */
	}
	stop_cleanly(h);
	h->config.memory_bytes = MIB(3);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_true(figures(h).left > 10);
	assert_int_equal(get(h, "object-0").result, STORE_HIT);
}

static void objects_that_are_too_large_now_are_skipped(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_bytes(h, "large", LONG);
	set(h, "small", "value");
	stop_cleanly(h);
	h->config.max_item_bytes = 4096;
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_missing(h, "large");
	assert_value(h, "small", "value");
	assert_int_equal(figures(h).skipped, 1);
}

#define WITH_FLASH(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)
#define IN_DRAM(test) \
	{ \
#test " in DRAM", test, setup_dram, teardown_folder, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FLASH(what_was_changed_before_its_load_does_not_come_back),
		IN_DRAM(what_was_changed_before_its_load_does_not_come_back),
		WITH_FLASH(a_new_value_that_has_left_dram_stays_the_newest),
		IN_DRAM(a_get_alone_bars_nothing),
		WITH_FLASH(a_get_alone_bars_nothing),
		IN_DRAM(commands_act_on_what_was_loaded),
		WITH_FLASH(a_flush_that_falls_due_before_the_load_holds),
		IN_DRAM(a_flush_that_falls_due_before_the_load_holds),
		IN_DRAM(commands_beside_the_loader_never_see_an_old_value),
		IN_DRAM(a_file_that_is_cut_short_gives_its_whole_parts),
		IN_DRAM(a_damaged_byte_is_never_served),
		IN_DRAM(a_missing_end_is_no_end),
		IN_DRAM(less_memory_takes_the_last_used),
		IN_DRAM(without_eviction_what_has_no_room_is_counted),
		IN_DRAM(without_eviction_a_full_memory_comes_back_whole),
		WITH_FLASH(without_eviction_a_full_memory_comes_back_whole),
		IN_DRAM(without_eviction_small_objects_come_after_one_without_room),
		IN_DRAM(objects_that_are_too_large_now_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
