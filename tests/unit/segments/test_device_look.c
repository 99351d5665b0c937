/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of the flash file of a running daemon: cut short, deleted, replaced, moved; and what the health makes of it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + 4 * SEGMENT)
#define SECOND UINT64_C(1000000)

static char directory[] = "/tmp/flashield-look-XXXXXX";
static char path[sizeof(directory) + 8], other[sizeof(directory) + 8];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/flash", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return 0;
}

static void put_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	close(fd);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static void assert_sight(int fd, const char *name, enum dev_sight sight, const char *text)
{
	char why[128] = "";

	assert_int_equal(file_look(fd, name, BYTES, why, sizeof(why)), sight);
	assert_non_null(strstr(why, text));
}

static void what_is_no_longer_whole_is_told(void **state)
{
	int fd;

	(void)state;
	put_file(path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES - 1), 0);
	assert_sight(fd, path, DEV_SHORT, "has 327679 of 327680 bytes");
	assert_int_equal(ftruncate(fd, BYTES + 1), 0);
	assert_sight(fd, path, DEV_WHOLE, "");
	assert_int_equal(rename(path, other), 0);
	assert_sight(fd, path, DEV_AWAY, "moved away");
	assert_sight(fd, NULL, DEV_WHOLE, "");
	put_file(path);
	assert_sight(fd, path, DEV_AWAY, "another file");
	assert_int_equal(rename(other, path), 0);
	assert_sight(fd, path, DEV_WHOLE, "");
	put_file(other);
	assert_int_equal(rename(other, path), 0);
	assert_sight(fd, path, DEV_AWAY, "deleted or replaced");
	assert_sight(fd, NULL, DEV_AWAY, "deleted or replaced");
	close(fd);
	assert_sight(fd, path, DEV_WHOLE, ""); /* what can't be asked is left to reads and writes */
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static bool is_offline(const struct flash *flash, const char *reason)
{
	struct seg_status status;

	seg_get_status(flash->seg, &status);
	return status.offline && strstr(status.offline_reason, reason);
}

static void open_flash(struct flash *flash)
{
	assert_int_equal(flash_open_file(flash, path, BYTES, SEGMENT), FS_OK);
	assert_true(health_online(flash->seg));
}

/* Lets time pass in steps of a second, as the cleaner asks. Returns how often the flash came online. */
static unsigned pass(struct flash *flash, unsigned seconds)
{
	unsigned changes = 0;

	for (unsigned i = 0; i < seconds; i++) {
		bool before = !health_offline(flash->seg);

		clk_scripted_advance(&flash->clock, SECOND);
		changes += health_online(flash->seg) && !before;
	}
	return changes;
}

static void a_file_that_was_cut_short_stays_offline_until_it_is_long_again(void **state)
{
	struct flash flash;

	(void)state;
	open_flash(&flash);
	assert_int_equal(truncate(path, BYTES / 2), 0); /* the superblock can be read and written */
	assert_int_equal(pass(&flash, 5), 0);
	assert_true(is_offline(&flash, "cut short: it has 163840 of 327680 bytes"));
	assert_int_equal(pass(&flash, 600), 0);
	assert_int_equal(flash.seg->health.retry_after_ms, 60000); /* the back-off has grown */
	assert_int_equal(truncate(path, BYTES), 0);
	assert_int_equal(pass(&flash, 60), 1);
	assert_false(health_offline(flash.seg));
	flash_close(&flash);
}

static void a_file_without_its_superblock_stays_offline(void **state)
{
	struct flash flash;

	(void)state;
	open_flash(&flash);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, BYTES), 0); /* in full again, with nothing in it */
	health_silent(flash.seg, 1000);
	assert_int_equal(pass(&flash, 200), 0);
	assert_true(is_offline(&flash, "superblock of the flash is gone"));
	flash_close(&flash);
}

/* An older copy over the file: the UUID is right. Its records are of earlier lives, but it is nothing to write to. */
static void an_older_copy_in_its_place_is_no_flash_of_ours(void **state)
{
	char command[256];
	struct flash flash;

	(void)state;
	open_flash(&flash);
	flash_close(&flash);
	snprintf(command, sizeof(command), "cp %s %s", path, other);
	assert_int_equal(system(command), 0);
	open_flash(&flash);
	snprintf(command, sizeof(command), "dd if=%s of=%s conv=notrunc status=none", other, path);
	assert_int_equal(system(command), 0);
	health_silent(flash.seg, 1000);
	assert_int_equal(pass(&flash, 200), 0);
	assert_true(is_offline(&flash, "superblock of the flash is gone or another's"));
	flash_close(&flash);
}

/* It works until it is closed. But what went offline doesn't come back from such a file. */
static void a_deleted_file_is_used_until_it_fails(void **state)
{
	struct flash flash;

	(void)state;
	open_flash(&flash);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pass(&flash, 20), 0);
	assert_false(health_offline(flash.seg));
	assert_true(flash.seg->health.away[0] != 0);
	health_silent(flash.seg, 1000);
	assert_int_equal(pass(&flash, 200), 0);
	assert_true(is_offline(&flash, "deleted or replaced"));
	flash_close(&flash);
}

static void a_file_that_was_moved_and_comes_back_is_online_again(void **state)
{
	struct flash flash;

	(void)state;
	open_flash(&flash);
	assert_int_equal(rename(path, other), 0);
	health_silent(flash.seg, 1000);
	assert_int_equal(pass(&flash, 100), 0);
	assert_true(is_offline(&flash, "moved away"));
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(pass(&flash, 60), 1);
	assert_int_equal(pass(&flash, 10), 0);
	assert_int_equal(flash.seg->health.away[0], 0);
	flash_close(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_no_longer_whole_is_told, remove_files),
		cmocka_unit_test_teardown(a_file_that_was_cut_short_stays_offline_until_it_is_long_again, remove_files),
		cmocka_unit_test_teardown(a_file_without_its_superblock_stays_offline, remove_files),
		cmocka_unit_test_teardown(an_older_copy_in_its_place_is_no_flash_of_ours, remove_files),
		cmocka_unit_test_teardown(a_deleted_file_is_used_until_it_fails, remove_files),
		cmocka_unit_test_teardown(a_file_that_was_moved_and_comes_back_is_online_again, remove_files),
	};

	return cmocka_run_group_tests_name("device_look", tests, make_directory, remove_directory);
}
