/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects on flash over a clean stop: all of them are served again, none that is stale, and any doubt starts cold. */
#include "server/store/state/restart.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/server/store/harness.h"

#define SUPER_AREA (64u << 10) /* of the flash: both copies of the superblock */
#define STATE_MOST (1u << 20)
#define MINUTE_US 60000000ull
#define OBJECTS 40
#define KEY_BYTES 24

static char folder[100], state_path[200];

static int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "%.60s/restart-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(state_path, sizeof(state_path), "%s/%.80s.state", folder, strrchr(h->path, '/') + 1);
	h->config.state_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

static int teardown_folder(void **state)
{
	int result = teardown(state);

	unlink(state_path);
	return rmdir(folder) == 0 ? result : -1;
}

/* ---- stop and start -------------------------------------------------------------------------- */

static void stop_cleanly(struct harness *h)
{
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_equal(access(state_path, F_OK), 0);
}

static enum store_start start_again(struct harness *h)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_string_equal(status.start_word, store_start_word(h->store->start));
	if (h->store->start == STORE_START_WARM)
		assert_string_equal(status.start_text, "warm");
	else
		assert_int_equal(status.index.used + status.index.extents_used + status.segments.live, 0);
	return h->store->start;
}

static void restart(struct harness *h)
{
	stop_cleanly(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_true(fidx_verify(h->store->index));
}

#define assert_cold(h, why) \
	do { \
		assert_int_equal(start_again(h), STORE_START_##why); \
		assert_missing(h, "key"); \
		set_on_flash(h, "key", "new"); \
		assert_value(h, "key", "new"); \
	} while (0)

static void key_number(char key[KEY_BYTES], int n)
{
	snprintf(key, KEY_BYTES, "object-%d", n);
}

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

static void assert_filled(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		struct reply reply;

		key_number(key, n);
		reply = get(h, key);
		assert_int_equal(reply.result, STORE_HIT);
		assert_true(reply.from_flash);
		assert_string_equal(reply.value, key);
	}
}

/* ---- warm ------------------------------------------------------------------------------------ */

static void what_lay_on_flash_is_served_again(void **state)
{
	struct harness *h = *state;
	struct store_status before, after;
	uint64_t cas;

	harness_open(h);
	fill(h);
	cas = get(h, "object-0").cas;
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "in memory", .value = "x", .length = 1).result,
			 STORE_STORED);
	store_get_status(h->store, &before);
	restart(h);
	store_get_status(h->store, &after);
	assert_int_equal(after.index.used, before.index.used);
	assert_int_equal(after.index.ghosts, before.index.ghosts);
	assert_int_equal(after.index.hot_bytes, before.index.hot_bytes);
	assert_int_equal(after.segments.live, before.segments.live);
	assert_int_equal(after.segments.newest_sequence, before.segments.newest_sequence);
	assert_int_equal(after.dram_items, 0);
	assert_int_not_equal(access(state_path, F_OK), 0); /* it is used once */
	assert_filled(h);
	assert_missing(h, "in memory");
	assert_int_equal(get(h, "object-0").cas, cas);
	assert_true(set(h, "object-0", "later").cas > cas);
	restart(h);
	assert_missing(h, "object-0");
	assert_value(h, "object-1", "object-1");
}

/* The order of segments goes on, and those of the last run are reclaimed like any other. */
static void the_flash_turns_on_after_a_warm_start(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	fill(h);
	for (int round = 0; round < 3; round++) {
		restart(h);
		store_get_status(h->store, &status);
		for (uint32_t n = 0; n < status.segments.total / 2 + 3; n++)
			set_on_flash(h, "key", "value");
		assert_value(h, "key", "value");
		assert_true(fidx_verify(h->store->index));
	}
}

static void large_objects_and_filters_come_back(void **state)
{
	struct harness *h = *state;
	static char large[3000];
	struct store_status before, after;

	memset(large, 'L', sizeof(large));
	h->config.filter_bits = 8;
	harness_open(h);
	fill(h);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	move(h, "large");
	store_get_status(h->store, &before);
	assert_true(before.index.filter_bytes > 0 && before.index.extents_used == 1);
	restart(h);
	store_get_status(h->store, &after);
	assert_int_equal(after.index.filter_bytes, before.index.filter_bytes);
	assert_int_equal(after.index.extents_used, 1);
	assert_int_equal(get(h, "large").length, sizeof(large));
	assert_filled(h);
	/* Filters know their own number of bits, and new ones get another. */
	h->config.filter_bits = 3;
	restart(h);
	assert_filled(h);
}

static void two_tables_come_back(void **state)
{
	struct harness *h = *state;
	unsigned second;

	harness_open(h);
	fill(h);
	assert_int_equal(fidx_table_add(h->store->index, 100, &second), FS_OK);
	restart(h);
	struct fidx_table tables[FIDX_TABLES];
	fidx_tables(h->store->index, tables);
	assert_true(tables[0].live && tables[second].live && tables[second].slots == 100 * FIDX_BUCKET_SLOTS);
	assert_true(tables[second].id != tables[0].id);
	assert_filled(h);
}

/* A stop in the middle of a reclaim: that segment is given up, whatever slots it has left. */
static void a_segment_under_reclaim_is_left_out(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	harness_open(h);
	fill(h);
	set_on_flash(h, "key", "value");
	segment = segment_of(h, "key");
	seg_reclaim_begin(h->store->segments, segment);
	restart(h);
	assert_missing(h, "key");
	assert_int_equal(seg_sequence(h->store->segments, segment), 0);
	for (int n = 0; n < 20; n++)
		set_on_flash(h, "key", "again"); /* also where it was */
	assert_value(h, "key", "again");
}

static void the_uptime_is_this_process_s(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	seconds_pass(h, 1000);
	restart(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.now_seconds, 0);
	assert_int_equal(status.flash_seconds, 1000);
}

/* ---- never stale ----------------------------------------------------------------------------- */

static void what_was_changed_before_the_stop_does_not_come_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "set", "old");
	set_on_flash(h, "deleted", "old");
	set_on_flash(h, "appended", "old");
	set_on_flash(h, "touched", "old");
	set_on_flash(h, "number", "17");
	set_on_flash(h, "kept", "old");
	set(h, "set", "new");
	assert_int_equal(run(h, STORE_DELETE, "deleted").result, STORE_DELETED);
	assert_int_equal(run_with(h, STORE_APPEND, "appended", "er").result, STORE_STORED);
	assert_int_equal(run_expiry(h, STORE_TOUCH, "touched", 1000).result, STORE_TOUCHED);
	assert_int_equal(run_number(h, STORE_INCR, "number", 1).result, STORE_HIT);
	restart(h);
	assert_missing(h, "set");
	assert_missing(h, "deleted");
	assert_missing(h, "appended");
	assert_missing(h, "touched");
	assert_missing(h, "number");
	assert_value(h, "kept", "old");
}

static void a_clean_copy_in_memory_leaves_the_flash_s(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	make_clean_copy(h, "key");
	restart(h);
	assert_value(h, "key", "value");
}

static void set_expiring(struct harness *h, const char *key, int64_t exptime)
{
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = "v", .length = 1, .exptime = exptime).result,
			 STORE_STORED);
	move(h, key);
}

static void expiry_goes_on_over_the_stop(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	seconds_pass(h, 500); /* the store's seconds are not the process's */
	set_expiring(h, "short", 20);
	set_expiring(h, "long", 100);
	set_expiring(h, "absolute", clk_wall_seconds() + 100);
	seconds_pass(h, 10);
	stop_cleanly(h);
	seconds_pass(h, 30);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_missing(h, "short");
	assert_value(h, "long", "v");
	assert_value(h, "absolute", "v");
	seconds_pass(h, 61);
	assert_missing(h, "long");
	assert_missing(h, "absolute");
}

static void what_was_flushed_stays_flushed(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "old", "value");
	store_flush_all(h->store, 0);
	set_on_flash(h, "new", "value");
	restart(h);
	assert_missing(h, "old");
	assert_value(h, "new", "value");
	restart(h);
	assert_missing(h, "old");
}

static void a_pending_flush_comes_after_the_stop(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	store_flush_all(h->store, 40);
	stop_cleanly(h);
	seconds_pass(h, 20);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "value");
	seconds_pass(h, 21);
	assert_missing(h, "key");
}

static void a_flush_that_came_during_the_stop_holds(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	store_flush_all(h->store, 10);
	stop_cleanly(h);
	seconds_pass(h, 20);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_missing(h, "key");
	set_on_flash(h, "key", "later");
	assert_value(h, "key", "later");
}

/* ---- cold ------------------------------------------------------------------------------------ */

/* A run with an object on flash, that ends cleanly. */
static void one_run(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
}

static void a_run_that_was_killed_leaves_nothing(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	harness_close(h);
	assert_cold(h, UNCLEAN);
	harness_close(h);
	one_run(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	harness_close(h);
	assert_cold(h, UNCLEAN);
}

static void options_may_forbid_it(void **state)
{
	struct harness *h = *state;

	assert_cold(h, NEW);
	assert_true(store_save(h->store));
	harness_close(h);
	h->config.state_dir = NULL;
	assert_cold(h, NO_STATE_DIR);
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.state_dir = folder;
	one_run(h);
	h->config.restart_max_downtime_us = 0;
	assert_cold(h, OFF);
	assert_int_not_equal(access(state_path, F_OK), 0);
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.restart_max_downtime_us = MINUTE_US;
	assert_cold(h, UNCLEAN);
}

static void a_long_stop_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	seconds_pass(h, 60);
	assert_int_equal(start_again(h), STORE_START_WARM);
	stop_cleanly(h);
	seconds_pass(h, 61);
	assert_cold(h, DOWNTIME);
	assert_non_null(strstr(h->store->start_text, "61.0 s of 60.0 s"));
}

static void a_clock_that_was_set_back_starts_cold(void **state)
{
	struct harness *h = *state;

	seconds_pass(h, 1000);
	one_run(h);
	atomic_fetch_sub(&h->clk.scripted_us, 500000000);
	assert_cold(h, CLOCK);
}

static void another_boot_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	h->config.boot_id = "another boot";
	assert_cold(h, BOOT);
}

static void changed_options_start_cold(void **state)
{
	struct harness *h = *state;
	struct store_config config = h->config;

	one_run(h);
	h->config.segment_bytes *= 2;
	assert_cold(h, LAYOUT);
	harness_close(h);
	h->config = config;
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.flash_bytes += MIB(1);
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.functions = 8;
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.tag_bits = 10;
	assert_cold(h, OPTIONS);
	stop_cleanly(h);
	h->config.clock_mode = h->config.clock_mode == FIDX_CLOCK_LRU ? FIDX_CLOCK_MFU : FIDX_CLOCK_LRU;
	assert_cold(h, OPTIONS);
	stop_cleanly(h);
	h->config.workers++; /* of no matter */
	h->config.hot_fraction = 0.5;
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "new");
}

static void less_memory_than_the_index_needs_starts_cold(void **state)
{
	struct harness *h = *state;
	unsigned table;

	h->config.flash_bytes = MIB(16);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_int_equal(fidx_table_add(h->store->index, MIB(2) / 64, &table), FS_OK);
	stop_cleanly(h);
	h->config.memory_bytes = MIB(3);
	assert_cold(h, MEMORY);
	assert_int_equal(h->store->origin_us, h->store->opened_us);
	stop_cleanly(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "new");
}

static void without_the_file_it_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	unlink(state_path);
	assert_cold(h, NO_FILE);
	stop_cleanly(h);
	unlink(state_path);
	assert_int_equal(symlink("/dev/null", state_path), 0);
	assert_cold(h, UNREADABLE);
}

static void a_state_that_can_not_be_saved_is_told(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = "/nowhere/at/all";
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.state_dir = folder;
	assert_cold(h, UNCLEAN);
}

/* ---- files that don't belong together -------------------------------------------------------- */

struct bytes {
	char *at;
	size_t length;
};

static struct bytes file_get(const char *path, size_t most)
{
	int fd = open(path, O_RDONLY);
	struct bytes bytes = { mem_must_zalloc(most), 0 };
	ssize_t length = read(fd, bytes.at, most);

	assert_true(length > 0);
	bytes.length = (size_t)length;
	close(fd);
	return bytes;
}

/* Writes the first bytes of a file anew; all of it when it is made. */
static void file_put(const char *path, const struct bytes *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, bytes->at, length, 0), length);
	close(fd);
}

static void no_file_is_used_twice(void **state)
{
	struct harness *h = *state;
	struct bytes file;

	one_run(h);
	file = file_get(state_path, STATE_MOST);
	assert_int_equal(start_again(h), STORE_START_WARM);
	harness_close(h);
	file_put(state_path, &file, file.length);
	assert_cold(h, UNCLEAN);
	stop_cleanly(h);
	file_put(state_path, &file, file.length); /* yesterday's, beside a flash that ended cleanly since */
	assert_cold(h, OTHER_START);
	mem_free(file.at);
}

static void the_file_of_another_flash_is_left_alone(void **state)
{
	struct harness *h = *state;
	struct bytes file;

	one_run(h);
	file = file_get(state_path, STATE_MOST);
	unlink(h->path);
	one_run(h);
	file_put(state_path, &file, file.length);
	assert_cold(h, OTHER_FLASH);
	assert_int_equal(access(state_path, F_OK), 0);
	mem_free(file.at);
}

/* After a clean stop: starts anew from the same flash, each time with a file changed in another way. */
struct trials {
	struct bytes file, super;
};

static void trials_begin(struct harness *h, struct trials *trials)
{
	h->config.filter_bits = 4;
	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	trials->file = file_get(state_path, STATE_MOST);
	trials->super = file_get(h->path, SUPER_AREA);
	assert_true(trials->file.length < STATE_MOST && trials->super.length == SUPER_AREA);
}

static enum store_start trial(struct harness *h, const struct trials *trials, size_t length)
{
	enum store_start start;

	unlink(state_path);
	file_put(state_path, &trials->file, length);
	file_put(h->path, &trials->super, trials->super.length);
	start = start_again(h);
	if (start != STORE_START_WARM)
		assert_missing(h, "key");
	harness_close(h);
	return start;
}

static void trials_end(struct trials *trials)
{
	mem_free(trials->file.at);
	mem_free(trials->super.at);
}

static void a_flipped_bit_anywhere_starts_cold(void **state)
{
	struct harness *h = *state;
	struct trials trials;

	trials_begin(h, &trials);
	for (size_t at = 0; at < trials.file.length; at += at < 400 ? 7 : trials.file.length / 97) {
		enum store_start start;

		trials.file.at[at] = (char)(trials.file.at[at] ^ 4);
		start = trial(h, &trials, trials.file.length);
		if (start != (at >= 8 && at < 16 ? STORE_START_VERSION : STORE_START_DAMAGED))
			fail_msg("byte %zu: %s", at, store_start_word(start));
		trials.file.at[at] = (char)(trials.file.at[at] ^ 4);
	}
	assert_int_equal(trial(h, &trials, trials.file.length), STORE_START_WARM);
	trials_end(&trials);
}

static void a_truncated_file_starts_cold(void **state)
{
	struct harness *h = *state;
	struct trials trials;

	trials_begin(h, &trials);
	for (unsigned part = 0; part < 40; part++)
		assert_int_equal(trial(h, &trials, trials.file.length * part / 40), STORE_START_DAMAGED);
	assert_int_equal(trial(h, &trials, trials.file.length - 1), STORE_START_DAMAGED);
	trials_end(&trials);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)
	const struct CMUnitTest tests[] = {
		TEST(what_lay_on_flash_is_served_again),
		TEST(the_flash_turns_on_after_a_warm_start),
		TEST(large_objects_and_filters_come_back),
		TEST(two_tables_come_back),
		TEST(a_segment_under_reclaim_is_left_out),
		TEST(the_uptime_is_this_process_s),
		TEST(what_was_changed_before_the_stop_does_not_come_back),
		TEST(a_clean_copy_in_memory_leaves_the_flash_s),
		TEST(expiry_goes_on_over_the_stop),
		TEST(what_was_flushed_stays_flushed),
		TEST(a_pending_flush_comes_after_the_stop),
		TEST(a_flush_that_came_during_the_stop_holds),
		TEST(a_run_that_was_killed_leaves_nothing),
		TEST(options_may_forbid_it),
		TEST(a_long_stop_starts_cold),
		TEST(a_clock_that_was_set_back_starts_cold),
		TEST(another_boot_starts_cold),
		TEST(changed_options_start_cold),
		TEST(less_memory_than_the_index_needs_starts_cold),
		TEST(without_the_file_it_starts_cold),
		TEST(a_state_that_can_not_be_saved_is_told),
		TEST(no_file_is_used_twice),
		TEST(the_file_of_another_flash_is_left_alone),
		TEST(a_flipped_bit_anywhere_starts_cold),
		TEST(a_truncated_file_starts_cold),
	};

	return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
