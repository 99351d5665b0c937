/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a start may believe the file of saved objects: each reason why not, and that nothing of it is served then. */
#include "tests/unit/server/store/cleaner/saving.h"

#include <sys/resource.h>
#include <sys/wait.h>

static void one_run(struct harness *h)
{
	harness_open(h);
	set(h, "key", "value");
	stop_cleanly(h);
}

#define assert_cold(h, why) \
	do { \
		assert_int_equal(start_again(h), SAVED_START_##why); \
		assert_false(loader_step((h)->store)); \
		assert_missing(h, "key"); \
		set(h, "key", "new"); \
		assert_value(h, "key", "new"); \
		harness_close(h); \
	} while (0)

static void a_run_that_was_killed_leaves_nothing(void **state)
{
	struct harness *h = *state;

	one_run(h);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	harness_close(h); /* before anything was loaded */
	assert_cold(h, NO_FILE);
}

static void options_may_forbid_it(void **state)
{
	struct harness *h = *state;
	const struct store_end end = { .deadline_us = NEVER_US };

	one_run(h);
	h->config.restart_max_downtime_us = 0;
	assert_cold(h, OFF);
	harness_open(h);
	set(h, "key", "value");
	assert_false(save(h, &end));
	h->config.restart_max_downtime_us = MINUTE_US;
	assert_cold(h, NO_FILE);
	h->config.state_dir = NULL;
	assert_cold(h, NO_STATE_DIR);
	harness_open(h);
	assert_false(save(h, &end));
	h->config.state_dir = folder;
}

static void a_long_stop_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	seconds_pass(h, 60);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_value(h, "key", "value");
	stop_cleanly(h);
	seconds_pass(h, 61);
	assert_cold(h, DOWNTIME);
}

/* A start that fails saves again what it has loaded, and the pause goes on. */
static void a_start_that_fails_does_not_end_the_pause(void **state)
{
	struct harness *h = *state;

	for (uint64_t last_s = 30; last_s <= 31; last_s++) {
		one_run(h);
		h->serves_nobody = true;
		seconds_pass(h, 30);
		assert_int_equal(start_again(h), SAVED_START_WARM);
		stop_cleanly(h);
		h->serves_nobody = false;
		seconds_pass(h, last_s);
		if (last_s == 31)
			break;
		assert_int_equal(start_again(h), SAVED_START_WARM);
		load_all(h);
		assert_value(h, "key", "value");
		harness_close(h);
	}
	assert_cold(h, DOWNTIME);
}

static void another_boot_or_an_earlier_clock_starts_cold(void **state)
{
	struct harness *h = *state;

	seconds_pass(h, 1000);
	one_run(h);
	h->config.boot_id = "another boot";
	assert_cold(h, BOOT);
	one_run(h);
	atomic_fetch_sub(&h->clk.scripted_us, 500000000);
	assert_cold(h, CLOCK);
}

/* A file that a later start could take for that of its last run. */
static void keep_copy(char copy[300])
{
	snprintf(copy, 300, "%s.copy", items_path);
	assert_int_equal(link(items_path, copy), 0);
}

static void a_file_of_an_earlier_run_is_refused(void **state)
{
	struct harness *h = *state;
	char copy[300];

	one_run(h);
	keep_copy(copy);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	set(h, "key", "newer");
	harness_close(h);
	assert_int_equal(rename(copy, items_path), 0);
	assert_cold(h, OTHER_START);
}

static void a_file_of_another_flash_is_refused(void **state)
{
	struct harness *h = *state;

	one_run(h);
	unlink(h->path); /* the next start makes a new one */
	assert_cold(h, OTHER_FLASH);
}

/* What memory held doesn't depend on how the flash is laid out. The run that ended is the last one that had it. */
static void another_layout_of_the_flash_keeps_memory(void **state)
{
	struct harness *h = *state;
	struct store_config config = h->config;
	uint64_t cas;
	char copy[300];

	harness_open(h);
	set(h, "flushed", "value");
	store_flush_all(h->store, 0);
	set(h, "dram", "value");
	cas = set(h, "later", "value").cas;
	store_flush_all(h->store, 40);
	stop_cleanly(h);
	keep_copy(copy);
	h->config.segment_bytes *= 2;
	assert_int_equal(start_again(h), SAVED_START_WARM);
	assert_int_equal(h->store->start, STORE_START_LAYOUT);
	assert_true(set(h, "later", "newer").cas > cas);
	load_all(h);
	assert_value(h, "dram", "value");
	assert_value(h, "later", "newer");
	assert_missing(h, "flushed");
	seconds_pass(h, 41);
	assert_missing(h, "dram");
	set_on_flash(h, "key", "value");
	restart(h);
	assert_value(h, "key", "value");
	harness_close(h);
	/* Back to the first layout, with a file of two runs before. */
	assert_int_equal(rename(copy, items_path), 0);
	h->config = config;
	assert_cold(h, OTHER_FLASH);
}

static void a_file_of_another_daemon_is_refused_and_stays(void **state)
{
	struct harness *h = *state;

	h->config.daemon = "port 1";
	one_run(h);
	h->config.daemon = "port 2";
	harness_open(h);
	assert_int_equal(figures(h).start, SAVED_START_OTHER_DAEMON);
	assert_missing(h, "key");
	harness_close(h);
	h->config.daemon = "port 1";
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
	assert_value(h, "key", "value");
}

static void kin_that_covers_lends_its_file_and_others_lose_theirs(void **state)
{
	char one[] = "port 1", two[] = "port 2";
	struct store_kin kin[] = { { .name = one }, { .name = two } };
	struct harness *h = *state;

	for (unsigned covers = 0; covers < 2; covers++) {
		h->config.daemon = "port 1";
		h->config.kin_count = 0;
		one_run(h);
		h->config.daemon = "port 3";
		h->config.kin = kin;
		h->config.kin_count = 2;
		kin[0].covers = covers;
		harness_open(h);
		assert_int_equal(figures(h).start, covers ? SAVED_START_WARM : SAVED_START_OTHER_DAEMON);
		load_all(h);
		if (covers)
			assert_value(h, "key", "value");
		else
			assert_missing(h, "key");
		harness_close(h);
		assert_int_equal(access(items_path, F_OK), -1);
	}
}

static void kin_loses_the_files_of_another_flash(void **state)
{
	char one[] = "port 1";
	const struct store_kin kin = { .name = one, .covers = true };
	struct harness *h = *state;

	h->config.daemon = "port 1";
	one_run(h);
	h->config.flash_path = h->path;
	h->config.daemon = "port 2";
	h->config.kin = &kin;
	h->config.kin_count = 1;
	harness_open(h);
	harness_close(h);
	assert_int_equal(access(items_path, F_OK), -1);
}

/* Run 1 has no flash, run 2 has, run 3 has none again: it must not believe the file of run 1. */
static void a_run_with_another_flash_removes_the_file(void **state)
{
	struct harness *h = *state;

	one_run(h);
	h->config.flash_path = h->path;
	harness_open(h);
	set(h, "key", "newer");
	harness_close(h);
	h->config.flash_path = NULL;
	assert_cold(h, NO_FILE);
}

static void another_daemon_s_files_stay(void **state)
{
	struct harness *h = *state;

	h->config.daemon = "port 1";
	one_run(h);
	h->config.flash_path = h->path;
	h->config.daemon = "port 2";
	harness_open(h);
	harness_close(h);
	assert_int_equal(access(items_path, F_OK), 0);
	h->config.flash_path = NULL;
	h->config.daemon = "port 1";
	assert_int_equal(start_again(h), SAVED_START_WARM);
}

/* As root every file can be removed, so the folder's place is taken by one that can't: a folder of the file's name. */
static void a_file_that_can_not_be_read_is_refused(void **state)
{
	struct harness *h = *state;

	assert_int_equal(mkdir(items_path, 0700), 0);
	harness_open(h);
	assert_int_equal(figures(h).start, SAVED_START_DAMAGED);
	assert_missing(h, "key");
	assert_int_equal(rmdir(items_path), 0);
}

/* What another start could find again is not used: the daemon's user may not write in the folder. */
static void a_file_that_can_not_be_removed_is_not_used(void **state)
{
	struct harness *h = *state;
	uid_t user = geteuid();

	one_run(h);
	assert_int_equal(chmod(items_path, 0644), 0);
	assert_int_equal(chmod(folder, 0555), 0);
	assert_int_equal(seteuid(user ? user : 65534), 0);
	harness_open(h);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(figures(h).start, SAVED_START_KEPT);
	assert_missing(h, "key");
	harness_close(h);
	unlink(items_path);
}

/* Returns how a start in a child ends whose allocation number n + 1 fails: its saved_start, or -1 where it doesn't serve. */
static int start_without(struct harness *h, uint64_t n)
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit none = { 0 };

		(void)!setrlimit(RLIMIT_CORE, &none);
		(void)!freopen("/dev/null", "w", stderr); /* an assertion says what it ends for */
		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		_exit(harness_try_open(h) == FS_OK ? (int)figures(h).start : 99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) != 99 ? WEXITSTATUS(status) : -1;
}

static void without_memory_for_loading_it_starts_cold(void **state)
{
	struct harness *h = *state;
	bool seen = false;

	if (!HAVE_FAULTS)
		skip();
	for (uint64_t n = 0; n < 400 && !seen; n++) {
		one_run(h);
		seen = start_without(h, n) == SAVED_START_NO_MEMORY;
		assert_true(!seen || access(items_path, F_OK) != 0); /* it is used up all the same */
		unlink(items_path);
	}
	assert_true(seen);
}

static void each_start_has_word_and_text(void **state)
{
	(void)state;
	for (int start = 0; start <= SAVED_START_NO_MEMORY; start++) {
		const char *word = saved_start_word((enum saved_start)start);
		const char *text = saved_start_text((enum saved_start)start);

		/* A word is the value of a label, so it has no space; a text says first whether the start was warm. */
		assert_true(strlen(word) > 0 && strspn(word, "abcdefghijklmnopqrstuvwxyz_") == strlen(word));
		assert_int_equal(strcmp(text, "warm") == 0, start == SAVED_START_WARM);
		assert_int_equal(strncmp(text, "cold: ", 6) == 0, start != SAVED_START_WARM);
		for (int other = 0; other < start; other++) {
			assert_string_not_equal(word, saved_start_word((enum saved_start)other));
			assert_string_not_equal(text, saved_start_text((enum saved_start)other));
		}
	}
	assert_string_equal(saved_start_word(SAVED_START_NO_MEMORY), "memory");
	assert_string_equal(saved_start_word(SAVED_START_DOWNTIME), "downtime");
}

#define WITH_FLASH(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)
#define IN_DRAM(test) \
	{ \
#test " in DRAM", test, setup_dram, teardown_folder, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FLASH(a_run_that_was_killed_leaves_nothing),
		IN_DRAM(a_run_that_was_killed_leaves_nothing),
		WITH_FLASH(options_may_forbid_it),
		IN_DRAM(options_may_forbid_it),
		WITH_FLASH(a_long_stop_starts_cold),
		IN_DRAM(a_long_stop_starts_cold),
		WITH_FLASH(a_start_that_fails_does_not_end_the_pause),
		IN_DRAM(a_start_that_fails_does_not_end_the_pause),
		WITH_FLASH(another_boot_or_an_earlier_clock_starts_cold),
		IN_DRAM(another_boot_or_an_earlier_clock_starts_cold),
		WITH_FLASH(a_file_of_an_earlier_run_is_refused),
		WITH_FLASH(a_file_of_another_flash_is_refused),
		WITH_FLASH(another_layout_of_the_flash_keeps_memory),
		IN_DRAM(a_file_of_another_daemon_is_refused_and_stays),
		IN_DRAM(kin_that_covers_lends_its_file_and_others_lose_theirs),
		IN_DRAM(kin_loses_the_files_of_another_flash),
		IN_DRAM(a_run_with_another_flash_removes_the_file),
		IN_DRAM(another_daemon_s_files_stay),
		IN_DRAM(a_file_that_can_not_be_read_is_refused),
		IN_DRAM(a_file_that_can_not_be_removed_is_not_used),
		IN_DRAM(without_memory_for_loading_it_starts_cold),
		cmocka_unit_test(each_start_has_word_and_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
