/* SPDX-License-Identifier: BSD-3-Clause */
/* A run without a flash takes what was saved of it away; other daemons' files stay. */
#include "server/store/state/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/server/store/harness.h"

static char folder[100];

static int make_folder(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	snprintf(folder, sizeof(folder), "%.60s/instance-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command); /* NOLINT: the name is ours */
}

static bool is_there(const char *flash)
{
	char path[INSTANCE_PATH_BYTES];

	instance_state_path(folder, flash, path);
	return access(path, F_OK) == 0;
}

static void save(const char *flash)
{
	char path[INSTANCE_PATH_BYTES];
	int fd;

	instance_state_path(folder, flash, path);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_true(is_there(flash));
}

static void the_path_follows_from_the_last_part(void **state)
{
	char path[INSTANCE_PATH_BYTES];

	(void)state;
	instance_state_path("/state", "/mnt/drive/flash", path);
	assert_string_equal(path, "/state/flash.state");
	instance_state_path("/state", "flash", path);
	assert_string_equal(path, "/state/flash.state");
}

static void the_same_flash_keeps_its_state(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/flash");
	save("/a/flash");
	instance_note(folder, NULL, "one", "/a/flash");
	assert_true(is_there("/a/flash"));
}

static void a_run_without_it_removes_it(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/flash");
	save("/a/flash");
	save("/a/unrelated");
	instance_note(folder, NULL, "one", "");
	assert_false(is_there("/a/flash"));
	assert_true(is_there("/a/unrelated"));
	/* Once is enough. */
	save("/a/flash");
	instance_note(folder, NULL, "one", "");
	assert_true(is_there("/a/flash"));
}

static void a_run_with_another_removes_it(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/flash");
	save("/a/flash");
	instance_note(folder, NULL, "one", "/b/other");
	assert_false(is_there("/a/flash"));
	save("/b/other");
	instance_note(folder, NULL, "one", "/a/flash");
	assert_false(is_there("/b/other"));
	/* Of the same name, but elsewhere. */
	save("/a/flash");
	instance_note(folder, NULL, "one", "/b/flash");
	assert_false(is_there("/a/flash"));
}

static void another_daemon_s_stays(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/one");
	instance_note(folder, NULL, "two", "/a/two");
	save("/a/one");
	save("/a/two");
	instance_note(folder, NULL, "two", "");
	assert_true(is_there("/a/one"));
	assert_false(is_there("/a/two"));
}

/* Its note says so: its next run finds nothing, and there is nothing left to remove. */
static void a_run_without_it_forgets_what_kin_have_noted(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/one");
	save("/a/one");
	instance_forget(folder, "none", "");
	assert_true(is_there("/a/one"));
	instance_forget(folder, "one", "");
	assert_false(is_there("/a/one"));
	save("/a/one");
	instance_forget(folder, "one", "");
	instance_note(folder, NULL, "one", "");
	assert_true(is_there("/a/one"));
	instance_note(folder, NULL, "one", "/a/one");
	instance_forget(folder, "one", "/b/another");
	assert_false(is_there("/a/one"));
}

/* The flash is the caller's then: a later run of the kin leaves it alone. */
static void a_run_with_it_takes_it_from_its_kin(void **state)
{
	(void)state;
	instance_note(folder, NULL, "one", "/a/one");
	instance_note(folder, NULL, "two", "/a/one");
	save("/a/one");
	instance_forget(folder, "one", "/a/one");
	assert_true(is_there("/a/one"));
	instance_note(folder, NULL, "one", "/b/another");
	assert_true(is_there("/a/one"));
}

/* The kin were killed while their flash moved, in either direction. */
static void a_run_forgets_both_flashes_of_a_move_of_kin(void **state)
{
	(void)state;
	assert_true(instance_note_move(folder, NULL, "one", "/b/new", "/a/old"));
	save("/a/old");
	save("/b/new");
	instance_forget(folder, "one", "/b/new");
	assert_true(is_there("/b/new"));
	assert_false(is_there("/a/old"));
	assert_true(instance_note_move(folder, NULL, "one", "/b/new", "/a/old"));
	save("/a/old");
	instance_forget(folder, "one", "/a/old");
	assert_true(is_there("/a/old"));
	assert_false(is_there("/b/new"));
}

static void a_run_without_it_removes_the_journal(void **state)
{
	char path[INSTANCE_PATH_BYTES], first[INSTANCE_PATH_BYTES + 8], second[INSTANCE_PATH_BYTES + 8];

	(void)state;
	instance_journal_path(folder, "/a/flash", path);
	snprintf(first, sizeof(first), "%s.7", path);
	snprintf(second, sizeof(second), "%s.8", path);
	instance_note(folder, NULL, "one", "/a/flash");
	close(open(first, O_WRONLY | O_CREAT, 0600));
	close(open(second, O_WRONLY | O_CREAT, 0600));
	instance_note(folder, NULL, "one", "/a/flash");
	assert_int_equal(access(second, F_OK), 0);
	instance_note(folder, NULL, "one", "");
	assert_int_not_equal(access(first, F_OK), 0);
	assert_int_not_equal(access(second, F_OK), 0);
}

/* Another daemon has the flash by now: the state is of the run that has ended, the journal is that daemon's. */
static void the_journal_of_a_flash_that_is_served_stays(void **state)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char flash[200], path[INSTANCE_PATH_BYTES], journal[INSTANCE_PATH_BYTES + 8];
	int fd;

	(void)state;
	snprintf(flash, sizeof(flash), "%s/flash", folder);
	instance_journal_path(folder, flash, path);
	snprintf(journal, sizeof(journal), "%s.7", path);
	close(open(journal, O_WRONLY | O_CREAT, 0600));
	save(flash);
	instance_note(folder, NULL, "one", flash);
	fd = open(flash, O_RDWR | O_CREAT, 0600);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	instance_note(folder, NULL, "one", "");
	assert_false(is_there(flash));
	assert_int_equal(access(journal, F_OK), 0);
	close(fd);
	instance_note(folder, NULL, "one", flash);
	instance_note(folder, NULL, "one", "");
	assert_int_not_equal(access(journal, F_OK), 0);
}

/* A start opens the region before the flash. */
static void the_journal_of_a_region_in_use_stays(void **state)
{
	char region[200], path[INSTANCE_PATH_BYTES], journal[INSTANCE_PATH_BYTES + 8];
	int fd;

	(void)state;
	snprintf(region, sizeof(region), "%s/flash" INSTANCE_REGION_SUFFIX, folder);
	instance_journal_path(folder, "/a/flash", path);
	snprintf(journal, sizeof(journal), "%s.7", path);
	close(open(journal, O_WRONLY | O_CREAT, 0600));
	instance_note(folder, folder, "one", "/a/flash");
	fd = open(region, O_RDWR | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	instance_note(folder, folder, "one", "/b/another");
	assert_int_equal(access(journal, F_OK), 0);
	assert_int_equal(access(region, F_OK), 0);
	/* Of the same name, but elsewhere: the region is the own one. */
	instance_note(folder, folder, "one", "/a/flash");
	instance_note(folder, folder, "one", "/b/flash");
	assert_int_not_equal(access(journal, F_OK), 0);
	close(fd);
}

/* The region of the other flash goes too, wherever that run had it; the region of the same flash is judged by its ids. */
static void a_run_without_it_removes_the_region(void **state)
{
	char regions[200], region[400];

	(void)state;
	snprintf(regions, sizeof(regions), "%s/regions", folder);
	snprintf(region, sizeof(region), "%s/flash" INSTANCE_REGION_SUFFIX, regions);
	assert_int_equal(mkdir(regions, 0700), 0);
	instance_note(folder, regions, "one", "/a/flash");
	close(open(region, O_WRONLY | O_CREAT, 0600));
	instance_note(folder, NULL, "one", "/a/flash");
	instance_note(folder, regions, "one", "/a/flash");
	assert_int_equal(access(region, F_OK), 0);
	instance_note(folder, NULL, "one", "");
	assert_int_not_equal(access(region, F_OK), 0);
	instance_remove_region(regions, "/a/flash");
	assert_int_equal(rmdir(regions), 0);
}

/* Of a flash with the same name, but elsewhere: its region has taken the place of the other's. */
static void a_region_in_use_stays(void **state)
{
	char region[200];
	int fd;

	(void)state;
	snprintf(region, sizeof(region), "%s/flash" INSTANCE_REGION_SUFFIX, folder);
	instance_note(folder, folder, "one", "/a/flash");
	fd = open(region, O_RDWR | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	instance_note(folder, folder, "one", "/b/flash");
	assert_int_equal(access(region, F_OK), 0);
	close(fd);
	instance_note(folder, folder, "one", "/a/flash");
	assert_int_not_equal(access(region, F_OK), 0);
}

/* A note is never followed, and one that isn't ours leads nowhere. */
static void a_note_that_is_none_is_replaced(void **state)
{
	char command[300];

	(void)state;
	instance_note(folder, NULL, "one", "/a/flash");
	save("/a/flash");
	snprintf(command, sizeof(command), "cd '%s' && for f in instance-*; do rm $f; ln -s flash.state $f; done",
		 folder);
	assert_int_equal(system(command), 0); /* NOLINT */
	instance_note(folder, NULL, "one", "/a/flash");
	assert_true(is_there("/a/flash"));
	instance_note(folder, NULL, "one", "");
	assert_false(is_there("/a/flash"));
	instance_note("/nowhere/at/all", NULL, "one", "/a/flash");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(the_path_follows_from_the_last_part),
		TEST(the_same_flash_keeps_its_state),
		TEST(a_run_without_it_removes_it),
		TEST(a_run_with_another_removes_it),
		TEST(another_daemon_s_stays),
		TEST(a_run_without_it_forgets_what_kin_have_noted),
		TEST(a_run_with_it_takes_it_from_its_kin),
		TEST(a_run_forgets_both_flashes_of_a_move_of_kin),
		TEST(a_run_without_it_removes_the_journal),
		TEST(the_journal_of_a_flash_that_is_served_stays),
		TEST(the_journal_of_a_region_in_use_stays),
		TEST(a_run_without_it_removes_the_region),
		TEST(a_region_in_use_stays),
		TEST(a_note_that_is_none_is_replaced),
	};

	return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
