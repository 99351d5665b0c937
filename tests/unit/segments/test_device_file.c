/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation: a file is made long enough and without holes, in pieces, and its pages stay; an error leaves what is made. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "tests/unit/segments/fixture.h"

#define BYTES (64u * SEG_PAGE)
#define LONG_BYTES (10u << 20) /* takes several writes of zeros */

static char path[] = "/tmp/flashield-preallocate-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd >= 0 ? close(fd) : -1;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* The file, with nothing in it. */
static int empty_file(void)
{
	int fd = open(path, O_RDWR | O_TRUNC);

	assert_true(fd >= 0);
	return fd;
}

static void put(int fd, char fill, uint64_t length, uint64_t offset)
{
	char *bytes = mem_must_zalloc(length);

	memset(bytes, fill, length);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), (ssize_t)length);
	mem_free(bytes);
}

/* Asserts that the range has that byte alone. */
static void assert_filled(int fd, char fill, uint64_t length, uint64_t offset)
{
	char *bytes = mem_must_zalloc(length);

	assert_int_equal(pread(fd, bytes, length, (off_t)offset), (ssize_t)length);
	for (uint64_t i = 0; i < length; i++)
		assert_int_equal(bytes[i], fill);
	mem_free(bytes);
}

static struct stat state_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st;
}

/* Asserts that the file has as many blocks as bytes. The file system of /tmp must not store zeros as holes. */
static void assert_whole(int fd, uint64_t bytes)
{
	assert_true(state_of(fd).st_blocks * 512 >= (int64_t)bytes);
}

/* Makes it as an open and the cleaner do, in pieces of so many bytes. */
static int allocate_by(int fd, uint64_t bytes, uint64_t piece)
{
	uint64_t allocated = 0, size;
	int error = file_reserve(fd, bytes, &size);

	while (error == 0 && allocated < bytes) {
		uint64_t before = allocated;

		error = file_allocate(fd, bytes, piece, &allocated);
		assert_true(allocated % SEG_PAGE == 0 && allocated <= bytes);
		assert_true(error != 0 || allocated > before || piece == 0);
	}
	return error;
}

static int preallocate(int fd, uint64_t bytes)
{
	return allocate_by(fd, bytes, bytes);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void a_file_that_cannot_be_written_is_left_alone(void **state)
{
	int fd = empty_file(), read_only;

	(void)state;
	put(fd, 'd', 10000, 0);
	read_only = open(path, O_RDONLY);
	assert_true(read_only >= 0);
	assert_int_equal(preallocate(read_only, BYTES), -EBADF);
	assert_int_equal(preallocate(-1, BYTES), -EBADF);
	assert_int_equal(state_of(fd).st_size, 10000);
	assert_filled(fd, 'd', 10000, 0);
	close(read_only);
	close(fd);
}

static void over_the_limit_of_sizes_the_file_has_its_old_size(void **state)
{
	struct rlimit old, small = { BYTES / 2, BYTES / 2 };
	int fd = empty_file();

	(void)state;
	put(fd, 'd', 2 * SEG_PAGE, 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(preallocate(fd, BYTES), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(state_of(fd).st_size, 2 * SEG_PAGE);
	assert_filled(fd, 'd', 2 * SEG_PAGE, 0);
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, BYTES);
	close(fd);
}

/* Space is reserved first, and a file system that has none for all of it is told apart at once. */
static void without_room_the_file_has_its_old_size(void **state)
{
	int fd = empty_file();
	uint64_t size;

	(void)state;
#ifndef FS_FAULTS
	close(fd);
	skip();
#endif
	put(fd, 'd', 2 * SEG_PAGE, 0);
	fault_arm(FAULT_device_file_full, FAULT_AFTER, 0);
	assert_int_equal(file_reserve(fd, LONG_BYTES, &size), -ENOSPC);
	assert_int_equal(state_of(fd).st_size, 2 * SEG_PAGE);
	assert_filled(fd, 'd', 2 * SEG_PAGE, 0);
	assert_int_equal(file_reserve(fd, LONG_BYTES, &size), 0);
	assert_int_equal(size, 2 * SEG_PAGE);
	fault_disarm_all();
	close(fd);
}

static void only_reserved_the_file_has_its_old_size(void **state)
{
	int fd = empty_file();
	uint64_t size, allocated = 0;

	(void)state;
	put(fd, 'd', 2 * SEG_PAGE, 0);
	assert_int_equal(file_reserve(fd, LONG_BYTES, &size), 0);
	assert_int_equal(state_of(fd).st_size, 2 * SEG_PAGE);
	assert_int_equal(file_allocate(fd, LONG_BYTES, 0, &allocated), 0);
	assert_int_equal(allocated, 2 * SEG_PAGE);
	assert_int_equal(state_of(fd).st_size, 2 * SEG_PAGE);
	close(fd);
}

/* Where nothing can be reserved it runs full at the first write, or at a later one, and goes on when there is room. */
static void a_file_system_that_runs_full_keeps_what_is_made(void **state)
{
	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	for (uint64_t writes = 0; writes < 3; writes++) {
		uint64_t allocated = 0, size;
		int fd = empty_file();

		put(fd, 'd', 2 * SEG_PAGE, 0);
		fault_arm(FAULT_device_file_unreserved, FAULT_ALWAYS, 0);
		assert_int_equal(file_reserve(fd, LONG_BYTES, &size), 0);
		fault_arm(FAULT_device_file_full, FAULT_AFTER, writes);
		assert_int_equal(file_allocate(fd, LONG_BYTES, LONG_BYTES, &allocated), -ENOSPC);
		assert_int_equal(allocated, 2 * SEG_PAGE + writes * (4u << 20));
		assert_int_equal(state_of(fd).st_size, allocated);
		assert_int_equal(file_allocate(fd, LONG_BYTES, LONG_BYTES, &allocated), 0);
		assert_int_equal(allocated, LONG_BYTES);
		fault_disarm_all();
		assert_filled(fd, 'd', 2 * SEG_PAGE, 0);
		assert_filled(fd, 0, LONG_BYTES - 2 * SEG_PAGE, 2 * SEG_PAGE);
		assert_whole(fd, LONG_BYTES);
		close(fd);
	}
}

static void a_hole_that_cannot_be_filled_is_an_error(void **state)
{
	int fd = empty_file();

	(void)state;
#ifndef FS_FAULTS
	close(fd);
	skip();
#endif
	assert_int_equal(ftruncate(fd, BYTES), 0);
	fault_arm(FAULT_device_file_full, FAULT_ALWAYS, 0);
	assert_int_equal(preallocate(fd, BYTES), -ENOSPC);
	fault_disarm_all();
	assert_int_equal(state_of(fd).st_size, BYTES);
	close(fd);
}

/* ---- what a file is then --------------------------------------------------------------------- */

static void a_new_file_is_zeros_without_holes(void **state)
{
	int fd = empty_file();

	(void)state;
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, BYTES);
	assert_whole(fd, BYTES);
	assert_filled(fd, 0, BYTES, 0);
	close(fd);
}

static void a_short_file_grows_and_its_pages_stay(void **state)
{
	int fd = empty_file();

	(void)state;
	put(fd, 'd', 3 * SEG_PAGE, 0);
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, BYTES);
	assert_whole(fd, BYTES);
	assert_filled(fd, 'd', 3 * SEG_PAGE, 0);
	assert_filled(fd, 0, BYTES - 3 * SEG_PAGE, 3 * SEG_PAGE);
	close(fd);
}

/* An end within a page: no daemon of ours leaves one. */
static void the_whole_pages_of_a_file_with_an_odd_end_stay(void **state)
{
	int fd = empty_file();

	(void)state;
	put(fd, 'd', 3 * SEG_PAGE + 5, 0);
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, BYTES);
	assert_filled(fd, 'd', 3 * SEG_PAGE, 0);
	assert_filled(fd, 0, BYTES - 4 * SEG_PAGE, 4 * SEG_PAGE);
	close(fd);
}

/* Holes before, between and behind the data, which is no whole number of pages. */
static void holes_are_filled_and_data_is_kept(void **state)
{
	int fd = empty_file();

	(void)state;
	put(fd, 'a', SEG_PAGE, 16 * SEG_PAGE);
	put(fd, 'b', 100, 32 * SEG_PAGE + 50);
	put(fd, 'c', SEG_PAGE + 1, 48 * SEG_PAGE - 1);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, BYTES);
	assert_whole(fd, BYTES);
	assert_filled(fd, 'a', SEG_PAGE, 16 * SEG_PAGE);
	assert_filled(fd, 'b', 100, 32 * SEG_PAGE + 50);
	assert_filled(fd, 'c', SEG_PAGE + 1, 48 * SEG_PAGE - 1);
	assert_filled(fd, 0, 16 * SEG_PAGE, 0);
	assert_filled(fd, 0, 50, 32 * SEG_PAGE);
	assert_filled(fd, 0, 15 * SEG_PAGE, 49 * SEG_PAGE);
	close(fd);
}

/* What lies beyond is none of the flash's: neither cut off nor filled. */
static void a_longer_file_stays_as_long(void **state)
{
	int fd = empty_file();

	(void)state;
	put(fd, 'e', SEG_PAGE, 3 * BYTES);
	assert_int_equal(preallocate(fd, BYTES), 0);
	assert_int_equal(state_of(fd).st_size, 3 * BYTES + SEG_PAGE);
	assert_whole(fd, BYTES);
	assert_filled(fd, 'e', SEG_PAGE, 3 * BYTES);
	close(fd);
}

/* ---- in pieces ------------------------------------------------------------------------------- */

/* Each piece begins where the last one ended, also when nothing but the file itself knows where that was. */
static void pieces_of_any_size_make_the_same_file(void **state)
{
	static const uint64_t pieces[] = { SEG_PAGE, 3 * SEG_PAGE, BYTES - SEG_PAGE, BYTES, 2 * BYTES };

	(void)state;
	for (unsigned n = 0; n < sizeof(pieces) / sizeof(pieces[0]); n++) {
		int fd = empty_file();
		uint64_t allocated;

		put(fd, 'a', SEG_PAGE, 16 * SEG_PAGE);
		put(fd, 'b', 100, 32 * SEG_PAGE + 50);
		put(fd, 'c', SEG_PAGE + 1, 48 * SEG_PAGE - 1);
		for (unsigned step = 0; step < BYTES / SEG_PAGE; step++) {
			allocated = 0;
			assert_int_equal(file_allocate(fd, BYTES, pieces[n], &allocated), 0);
			if (allocated == BYTES)
				break;
		}
		assert_int_equal(allocated, BYTES);
		assert_int_equal(state_of(fd).st_size, BYTES);
		assert_whole(fd, BYTES);
		assert_filled(fd, 'a', SEG_PAGE, 16 * SEG_PAGE);
		assert_filled(fd, 'b', 100, 32 * SEG_PAGE + 50);
		assert_filled(fd, 'c', SEG_PAGE + 1, 48 * SEG_PAGE - 1);
		assert_filled(fd, 0, 16 * SEG_PAGE, 0);
		assert_int_equal(allocate_by(fd, 2 * BYTES, pieces[n]), 0);
		assert_whole(fd, 2 * BYTES);
		close(fd);
	}
}

static void a_complete_file_is_not_written(void **state)
{
	uint64_t allocated = 0;
	int fd = empty_file(), read_only;

	(void)state;
	assert_int_equal(preallocate(fd, BYTES), 0);
	read_only = open(path, O_RDONLY);
	assert_int_equal(file_allocate(read_only, BYTES, BYTES, &allocated), 0);
	assert_int_equal(allocated, BYTES);
	close(read_only);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_cannot_be_written_is_left_alone),
		cmocka_unit_test(over_the_limit_of_sizes_the_file_has_its_old_size),
		cmocka_unit_test(without_room_the_file_has_its_old_size),
		cmocka_unit_test(only_reserved_the_file_has_its_old_size),
		cmocka_unit_test(a_file_system_that_runs_full_keeps_what_is_made),
		cmocka_unit_test(a_hole_that_cannot_be_filled_is_an_error),
		cmocka_unit_test(a_new_file_is_zeros_without_holes),
		cmocka_unit_test(a_short_file_grows_and_its_pages_stay),
		cmocka_unit_test(the_whole_pages_of_a_file_with_an_odd_end_stay),
		cmocka_unit_test(holes_are_filled_and_data_is_kept),
		cmocka_unit_test(a_longer_file_stays_as_long),
		cmocka_unit_test(pieces_of_any_size_make_the_same_file),
		cmocka_unit_test(a_complete_file_is_not_written),
	};

	return cmocka_run_group_tests_name("device_file", tests, make_file, remove_file);
}
