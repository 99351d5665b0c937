/* SPDX-License-Identifier: BSD-3-Clause */
/* The stop: everything about an object comes back, the last used come first, and a deadline cuts off the rest. */
#include "tests/unit/server/store/cleaner/saving.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "server/store/state/recount.h"
#include "tests/unit/server/store/asking.h"

#define OBJECTS 60
#define LONG 50000u /* so that some twenty make a part */

static void all_of_an_object_comes_back(void **state)
{
	struct harness *h = *state;
	struct reply before, after;

	harness_open(h);
	assert_int_equal(
		run_full(h, .op = STORE_SET, .key = "key", .value = "a value", .length = 7, .flags = 77, .exptime = 100)
			.result,
		STORE_STORED);
	set(h, "empty", "");
	before = get(h, "key");
	struct clf_features features = item_features(item_in_dram(h, "key")), loaded;
	restart(h);
	assert_int_equal(figures(h).loaded, 2);
	loaded = item_features(item_in_dram(h, "key"));
	assert_memory_equal(&loaded, &features, sizeof(features));
	assert_true(item_in_dram(h, "key")->state & ITEM_FETCHED);
	assert_true(item_clock(item_in_dram(h, "key")) > 0);
	after = get(h, "key");
	assert_string_equal(after.value, "a value");
	assert_int_equal(after.flags, 77);
	assert_int_equal(after.cas, before.cas);
	assert_value(h, "empty", "");
	assert_true(set(h, "key", "later").cas > before.cas);
	restart(h);
	assert_value(h, "key", "later");
}

static void expiry_goes_on_over_the_stop(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	seconds_pass(h, 500);
	run_full(h, .op = STORE_SET, .key = "short", .value = "v", .length = 1, .exptime = 20);
	run_full(h, .op = STORE_SET, .key = "long", .value = "v", .length = 1, .exptime = 100);
	seconds_pass(h, 10);
	stop_cleanly(h);
	seconds_pass(h, 30);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_missing(h, "short");
	assert_value(h, "long", "v");
	seconds_pass(h, 61);
	assert_missing(h, "long");
}

static void marks_and_own_ids_come_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	ask(h, "own", (struct asked){ .op = STORE_SET, .value = "v", .options = { .own_cas = true, .new_cas = 4711 } });
	set(h, "stale", "v");
	assert_int_equal(
		ask(h, "stale", (struct asked){ .op = STORE_DELETE, .options = { .invalidate = true } }).result,
		STORE_DELETED);
	restart(h);
	assert_int_equal(get(h, "own").cas, 4711);
	assert_marks(h, "stale", true, false);
}

static void what_was_flushed_or_is_to_be_is_not_served(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "old", "value");
	store_flush_all(h->store, 0);
	set(h, "new", "value");
	store_flush_all(h->store, 40);
	restart(h);
	assert_missing(h, "old");
	assert_value(h, "new", "value");
	seconds_pass(h, 41);
	assert_missing(h, "new");
	set(h, "newest", "value");
	assert_value(h, "newest", "value");
}

/* The least recently used object is in the last part. */
static void advance(void *context, uint64_t bytes, uint64_t of_bytes)
{
	struct harness *h = context;

	assert_true(bytes > 0 && of_bytes > 0);
	atomic_fetch_add(&h->clk.scripted_us, 1000000);
}

static unsigned count_found(struct harness *h, int from, int to)
{
	unsigned found = 0;
	char key[24];

	for (int n = from; n < to; n++) {
		key_number(key, n);
		found += get(h, key).result == STORE_HIT;
	}
	return found;
}

static void fill(struct harness *h)
{
	char key[24];

	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		set_bytes(h, key, LONG);
		seconds_pass(h, 10 + (uint64_t)(OBJECTS - n) * 10); /* ages that no two share */
	}
}

static void a_deadline_cuts_off_the_coldest(void **state)
{
	struct harness *h = *state;
	struct store_end end = { .progress = advance, .context = h };
	unsigned found;

	harness_open(h);
	fill(h);
	assert_int_equal(get(h, "object-3").result, STORE_HIT); /* old, and just read */
	end.deadline_us = clk_now_us(h->store->clock) + 1500000; /* two parts */
	assert_true(save(h, &end));
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	found = (unsigned)figures(h).loaded;
	assert_true(found > 10 && found < OBJECTS);
	assert_int_equal(get(h, "object-3").result, STORE_HIT);
	assert_int_equal(count_found(h, 0, 3), 0);
	assert_int_equal(count_found(h, OBJECTS - 10, OBJECTS), 10);
}

/* Nobody is served while it saves, so clients may have gone elsewhere. */
static void the_pause_begins_with_the_stop(void **state)
{
	struct harness *h = *state;
	uint64_t began_us;

	harness_open(h);
	set_on_flash(h, "flash", "on flash");
	fill(h);
	began_us = clk_now_us(h->store->clock);
	assert_true(save(h, &(struct store_end){ .deadline_us = NEVER_US, .progress = advance, .context = h }));
	assert_true(atomic_load(&h->clk.scripted_us) > began_us + 1000000);
	h->config.restart_max_downtime_us = atomic_load(&h->clk.scripted_us) - began_us - 1;
	assert_int_equal(start_again(h), SAVED_START_DOWNTIME);
	assert_missing(h, "flash");
}

static void without_time_nothing_is_saved(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	assert_false(save(h, &(struct store_end){ .deadline_us = clk_now_us(h->store->clock) }));
	assert_int_not_equal(access(items_path, F_OK), 0);
	assert_int_equal(start_again(h), SAVED_START_NO_FILE);
}

static void cut_it(void *context, uint64_t bytes, uint64_t of_bytes)
{
	const struct store_end *end = context;

	(void)bytes, (void)of_bytes;
	atomic_store(end->cut, true);
}

static void a_second_signal_ends_it_and_keeps_what_is_written(void **state)
{
	struct harness *h = *state;
	_Atomic bool cut = false;
	struct store_end end = { .deadline_us = NEVER_US, .cut = &cut, .progress = cut_it };

	end.context = &end;
	harness_open(h);
	fill(h);
	assert_true(save(h, &end));
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_true(figures(h).loaded > 10 && figures(h).loaded < OBJECTS);
}

static void a_folder_that_is_gone_is_told(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	assert_int_equal(rmdir(folder), 0);
	assert_false(save(h, &(struct store_end){ .deadline_us = NEVER_US }));
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(start_again(h), SAVED_START_NO_FILE);
}

/* Objects on flash are served by the flash's own state, and those in DRAM by the file. */
static void both_tiers_come_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "flash", "on flash");
	set(h, "dram", "in memory");
	restart(h);
	assert_value(h, "dram", "in memory");
	assert_value(h, "flash", "on flash");
	assert_true(fidx_verify(h->store->index));
}

static void candidates_that_fill_segments_go_to_flash(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	uint64_t live;
	char key[24];

	harness_open(h);
	for (int n = 0; n < 1000; n++) {
		key_number(key, n);
		set_bytes(h, key, 400);
	}
	store_get_status(h->store, &status);
	live = status.segments.live;
	restart(h);
	recount_finish(h->store);
	store_get_status(h->store, &status);
	assert_true(status.segments.live > live);
	assert_true(status.dram_items > 0); /* what fills no segment */
	assert_int_equal(count_found(h, 0, 1000), status.curr_items);
	assert_true(status.curr_items > 950); /* a slot can go to another key's object */
}

/* A full flash: memory goes into the file, so nothing on flash has to go for it. */
static void a_stop_gives_up_no_object_on_flash(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed;
	unsigned on_flash = 0, served = 0;
	bool was_there[7000];
	char key[24];

	h->config.flash_bytes = 5 * KIB(64); /* four segments */
	harness_open(h);
	for (int n = 0; n < 7000; n++) {
		key_number(key, n);
		set_bytes(h, key, 400);
	}
	for (int n = 0; n < 6; n++)
		assert_true(write_one(h));
	for (int n = 0; n < 7000; n++) {
		key_number(key, n);
		was_there[n] = where(h, key) == FLASH; /* not read: a reclaim would drop it */
		on_flash += was_there[n];
	}
	assert_true(on_flash > 300);
	reclaimed = ctr_sum(CTR_segments_reclaimed);
	restart(h);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	for (int n = 0; n < 7000; n++) {
		key_number(key, n);
		served += was_there[n] && get(h, key).result == STORE_HIT;
	}
	assert_int_equal(served, on_flash);
}

/* Memory that holds more than the flash: what a stop has written isn't reclaimed for what it would write next. */
static void a_stop_writes_no_segment_twice(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	char key[24];

	harness_open(h);
	for (int n = 0; n < 7000; n++) {
		key_number(key, n);
		set_bytes(h, key, 400);
	}
	store_get_status(h->store, &status);
	assert_true(status.dram_bytes > 2 * h->config.flash_bytes);
	restart(h);
	store_get_status(h->store, &status);
	assert_true(status.segments.live > 0);
	assert_true(status.segments.live < status.segments.total);
	assert_true(count_found(h, 0, 7000) > 6650);
}

/* A stop soon after the start loses nothing. */
static void what_was_not_loaded_yet_is_saved_again(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	fill(h);
	stop_cleanly(h);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	assert_true(loader_step(h->store));
	assert_true(figures(h).loaded < OBJECTS);
	restart(h);
	assert_int_equal(count_found(h, 0, OBJECTS), OBJECTS);
}

/* What keys were asked for is known again, and nothing of it under another rule. */
static void counts_of_keys_come_back(void **state)
{
	static uint8_t before[1 << 20], after[1 << 20], none[1 << 20];
	struct harness *h = *state;
	uint64_t bytes;
	char key[24];

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	for (int n = 0; n < 500; n++) {
		key_number(key, n % 100);
		assert_missing(h, key);
	}
	set(h, "key", "value");
	bytes = clf_counts_bytes(h->store->classifier);
	assert_true(bytes <= sizeof(before));
	clf_counts_copy(h->store->classifier, 0, before, bytes);
	assert_memory_not_equal(before, none, bytes);
	restart(h);
	clf_counts_copy(h->store->classifier, 0, after, bytes);
	assert_memory_equal(after, before, bytes);
	stop_cleanly(h);
	h->config.admission = CLF_ADMIT_ALL;
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_value(h, "key", "value");
	clf_counts_copy(h->store->classifier, 0, after, bytes);
	assert_memory_equal(after, none, bytes);
}

/* ---- a full file system ---------------------------------------------------------------------- */

/* No file may have more bytes; RLIM_INFINITY: it may. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Those that came back are the last used; ages that are close are taken for one. */
static unsigned count_the_last_used(struct harness *h)
{
	unsigned found = (unsigned)figures(h).loaded;

	assert_int_equal(figures(h).left, 0);
	assert_true(found <= OBJECTS);
	assert_true(count_found(h, OBJECTS - (int)found, OBJECTS) + 3 >= found);
	return found;
}

/* The file grows no further, at each place in turn: what fits is there, and it is whole. */
static void a_file_that_may_not_grow_has_what_fits(void **state)
{
	struct harness *h = *state;
	unsigned last = OBJECTS;

	for (rlim_t bytes = MIB(4); bytes >= KIB(200); bytes -= KIB(390)) {
		unsigned found;

		harness_open(h);
		fill(h);
		limit_files(bytes);
		stop_cleanly(h);
		limit_files(RLIM_INFINITY);
		assert_int_equal(start_again(h), SAVED_START_WARM);
		load_all(h);
		found = count_the_last_used(h);
		assert_true(found * LONG < bytes && found <= last);
		if (last == OBJECTS && found < last) /* two parts of three */
			assert_true(found > OBJECTS / 2);
		last = found;
		harness_close(h);
	}
	harness_open(h);
	assert_int_equal(last, 0);
}

/* Counts take room too, and the last part and the end: what is missing is taken from objects. */
static void no_byte_of_room_too_few_spoils_the_file(void **state)
{
	static const off_t less[] = { 1, 50, 90, 4096, 200000 };
	struct harness *h = *state;
	struct stat st;

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	fill(h);
	assert_true(save(h, &(struct store_end){ .deadline_us = NEVER_US }));
	assert_int_equal(stat(items_path, &st), 0);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	for (unsigned n = 0; n < sizeof(less) / sizeof(less[0]); n++) {
		fill(h);
		limit_files((rlim_t)(st.st_size - less[n]));
		(void)save(h, &(struct store_end){ .deadline_us = NEVER_US });
		limit_files(RLIM_INFINITY);
		assert_int_equal(start_again(h), SAVED_START_WARM);
		load_all(h);
		assert_int_equal(figures(h).left, 0);
	}
}

/* Runs the work where the state directory is a file system of so many bytes. False: that isn't allowed here. */
static bool in_small_folder(struct harness *h, uint64_t bytes, void (*work)(struct harness *h))
{
	int status = 0;
	pid_t child = fork();
	char size[40];

	assert_true(child >= 0);
	if (child == 0) {
		snprintf(size, sizeof(size), "size=%llu", (unsigned long long)bytes);
		if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("none", folder, "tmpfs", 0, size) != 0)
			_exit(2);
		work(h);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != 2)
		assert_int_equal(WEXITSTATUS(status), 0);
	return WEXITSTATUS(status) == 0;
}

static void stop_and_start_in_little_room(struct harness *h)
{
	unsigned found;

	harness_open(h);
	set_on_flash(h, "flash", "on flash");
	fill(h);
	stop_cleanly(h);
	if (start_again(h) != SAVED_START_WARM)
		_exit(3);
	load_all(h);
	found = count_found(h, 0, OBJECTS);
	if (found == 0 || found >= OBJECTS || get(h, "object-59").result != STORE_HIT)
		_exit(4);
	if (h->store->start != STORE_START_WARM || get(h, "flash").result != STORE_HIT)
		_exit(5);
	harness_close(h);
}

static void the_state_of_the_flash_finds_its_room(void **state)
{
	struct harness *h = *state;

	if (!in_small_folder(h, MIB(2), stop_and_start_in_little_room))
		skip();
}

static void save_nothing_in_no_room(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "flash", "on flash");
	if (store_save_items(h->store, &(struct store_end){ .deadline_us = NEVER_US }))
		_exit(3);
	if (!store_save(h->store))
		_exit(4);
	harness_close(h);
	if (start_again(h) != SAVED_START_NO_FILE || get(h, "flash").result != STORE_HIT)
		_exit(5);
	harness_close(h);
}

static void without_room_for_both_the_flash_is_saved(void **state)
{
	struct harness *h = *state;

	if (!in_small_folder(h, KIB(172), save_nothing_in_no_room))
		skip();
}

#define WITH_FLASH(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)
#define IN_DRAM(test) \
	{ \
#test " in DRAM", test, setup_dram, teardown_folder, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FLASH(all_of_an_object_comes_back),
		IN_DRAM(all_of_an_object_comes_back),
		WITH_FLASH(expiry_goes_on_over_the_stop),
		IN_DRAM(expiry_goes_on_over_the_stop),
		WITH_FLASH(marks_and_own_ids_come_back),
		IN_DRAM(what_was_flushed_or_is_to_be_is_not_served),
		WITH_FLASH(what_was_flushed_or_is_to_be_is_not_served),
		IN_DRAM(a_deadline_cuts_off_the_coldest),
		WITH_FLASH(the_pause_begins_with_the_stop),
		IN_DRAM(without_time_nothing_is_saved),
		IN_DRAM(a_second_signal_ends_it_and_keeps_what_is_written),
		IN_DRAM(a_folder_that_is_gone_is_told),
		WITH_FLASH(both_tiers_come_back),
		WITH_FLASH(candidates_that_fill_segments_go_to_flash),
		WITH_FLASH(a_stop_gives_up_no_object_on_flash),
		WITH_FLASH(a_stop_writes_no_segment_twice),
		WITH_FLASH(counts_of_keys_come_back),
		IN_DRAM(what_was_not_loaded_yet_is_saved_again),
		IN_DRAM(a_file_that_may_not_grow_has_what_fits),
		WITH_FLASH(no_byte_of_room_too_few_spoils_the_file),
		WITH_FLASH(the_state_of_the_flash_finds_its_room),
		WITH_FLASH(without_room_for_both_the_flash_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
