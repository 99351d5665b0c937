/* SPDX-License-Identifier: BSD-3-Clause */
/* A flash path is judged as a start would judge it, and stays as it is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "segments/path.h"
#include "segments/segments.h"
#include "tests/unit/segments/folder.h"

static void put_bytes(const char *bytes, size_t count)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void a_wrong_path_is_told(void **state)
{
	char below[sizeof(path) + 8];

	(void)state;
	assert_int_equal(seg_check_path("/nonexistent/flash", false), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(seg_check_path(directory, false), FS_EINVAL);
	assert_int_equal(seg_check_path("/dev/null", false), FS_EINVAL);
	put_bytes("not a cache", 11);
	assert_int_equal(seg_check_path(path, false), FS_EFOREIGN);
	snprintf(below, sizeof(below), "%s/below", path);
	assert_int_equal(seg_check_path(below, false), FS_ESYS);
	assert_int_equal(errno, ENOTDIR);
}

static void a_path_to_be_made_is_not_made(void **state)
{
	struct stat st;

	(void)state;
	unlink(path);
	assert_int_equal(seg_check_path(path, false), FS_OK);
	assert_int_equal(stat(path, &st), -1);
}

static void an_empty_file_is_good_and_stays_empty(void **state)
{
	static const char zeros[8192];
	struct stat st;

	(void)state;
	put_bytes(zeros, 0);
	assert_int_equal(seg_check_path(path, false), FS_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	put_bytes(zeros, sizeof(zeros));
	assert_int_equal(seg_check_path(path, false), FS_OK);
}

/* No disk has room for a sixteenth of this. */
#define ENDLESS (1ull << 60)

static void without_room_for_more_a_file_keeps_what_it_has(void **state)
{
	static const char ones[5 * SEG_PAGE + 7] = { 1 };
	int fd;

	(void)state;
	unlink(path);
	assert_true(seg_fit_bytes(path, ENDLESS) == 0);
	assert_true(seg_fit_bytes("/nowhere/at/all", ENDLESS) == ENDLESS); /* seg_open tells why it can't be */
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 5 * SEG_PAGE + 7), 0); /* a hole */
	assert_true(seg_fit_bytes(path, ENDLESS) == 0);
	assert_true(seg_fit_bytes(path, 5 * SEG_PAGE) == 5 * SEG_PAGE);
	close(fd);
	put_bytes(ones, sizeof(ones));
	fd = open(path, O_RDWR);
	assert_int_equal(fsync(fd), 0); /* blocks are counted when they are allocated */
	close(fd);
	assert_true(seg_fit_bytes(path, ENDLESS) == 5 * SEG_PAGE);
	unlink(path);
}

static void a_part_that_has_room_is_whole_sixteenths_and_leaves_a_twentieth(void **state)
{
	uint64_t free_bytes, asked, fit, part;
	struct statvfs files;

	(void)state;
	unlink(path);
	assert_int_equal(statvfs(directory, &files), 0);
	free_bytes = (uint64_t)files.f_bavail * files.f_frsize;
	asked = 2 * free_bytes;
	part = asked / 16 / SEG_PAGE * SEG_PAGE;
	fit = seg_fit_bytes(path, asked);
	if (free_bytes < (uint64_t)(files.f_blocks - files.f_bfree) * files.f_frsize / 3)
		skip(); /* the twentieth, and what others write meanwhile, would be much of it */
	assert_true(fit % part == 0 && fit > 0 && fit < free_bytes);
	/* In steps, so that little changes nothing. */
	assert_in_range(fit / part, 5, 7);
	assert_true(seg_fit_bytes(path, free_bytes / 2) == free_bytes / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_path_is_told),
		cmocka_unit_test(a_path_to_be_made_is_not_made),
		cmocka_unit_test(an_empty_file_is_good_and_stays_empty),
		cmocka_unit_test(without_room_for_more_a_file_keeps_what_it_has),
		cmocka_unit_test(a_part_that_has_room_is_whole_sixteenths_and_leaves_a_twentieth),
	};

	return cmocka_run_group_tests_name("segments: the path checked", tests, make_directory, remove_directory);
}
