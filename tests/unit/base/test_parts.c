/* SPDX-License-Identifier: BSD-3-Clause */
/* State files: damage of any byte is found, a file appears as a whole or not at all. */
#include "base/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/base/base_test.h"

#define NAME "state"
#define FILE_MOST 4096
#define SEGMENT_NUMBER 77

static char folder[200], path[210], path_new[220];
static const char few[] = "thirteen bytes", many[1000] = "many";

/* A folder of the test's own, and a whole file of three parts in it. */
static int make_file(void **state)
{
	struct parts_writer *writer;

	(void)state;
	snprintf(folder, sizeof(folder), "%.100s/parts-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	snprintf(path_new, sizeof(path_new), "%s.new", path);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	assert_int_not_equal(access(path, F_OK), 0); /* not before it is whole */
	parts_put(writer, PARTS_STORE, 0, few, sizeof(few) - 1);
	parts_put(writer, PARTS_FILTER, SEGMENT_NUMBER, many, sizeof(many));
	parts_put(writer, PARTS_EXTENTS, 0, NULL, 0);
	assert_int_equal(parts_finish(writer), FS_OK);
	assert_int_not_equal(access(path_new, F_OK), 0);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(path);
	unlink(path_new);
	return rmdir(folder);
}

/* Reads the whole file: the first code that isn't FS_OK. */
static int read_all(void)
{
	char bytes[sizeof(many)];
	struct parts_reader *reader;
	uint64_t length;
	int result = parts_open(&reader, path);

	if (result != FS_OK) {
		assert_null(reader);
		return result;
	}
	result = parts_take(reader, PARTS_STORE, 0, bytes, sizeof(few) - 1);
	if (result == FS_OK)
		result = parts_next(reader, PARTS_FILTER, SEGMENT_NUMBER, &length);
	if (result == FS_OK) {
		assert_memory_equal(bytes, few, sizeof(few) - 1);
		assert_int_equal(length, sizeof(many)); /* a head that passes its check is right */
		result = parts_get(reader, bytes);
	}
	if (result == FS_OK) {
		assert_memory_equal(bytes, many, sizeof(many));
		result = parts_take(reader, PARTS_EXTENTS, 0, NULL, 0);
	}
	if (result == FS_OK)
		result = parts_next(reader, PARTS_END, 0, &length);
	parts_close(reader);
	return result;
}

static size_t file_get(char bytes[FILE_MOST])
{
	int fd = open(path, O_RDONLY);
	ssize_t length = read(fd, bytes, FILE_MOST);

	close(fd);
	assert_in_range(length, 1, FILE_MOST - 1);
	return (size_t)length;
}

static void file_put(const char *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static void every_damaged_byte_is_found(void **state)
{
	char bytes[FILE_MOST];
	size_t length = file_get(bytes);

	(void)state;
	for (size_t at = 0; at < length; at++) {
		int result;

		bytes[at] = (char)(bytes[at] ^ 0x10);
		file_put(bytes, length);
		result = read_all();
		if (result != FS_ECORRUPT && result != FS_EVERSION)
			fail_msg("byte %zu of %zu: %s", at, length, fs_strerror(result));
		bytes[at] = (char)(bytes[at] ^ 0x10);
	}
	file_put(bytes, length);
	assert_int_equal(read_all(), FS_OK);
}

static void every_missing_end_is_found(void **state)
{
	char bytes[FILE_MOST];
	size_t length = file_get(bytes);

	(void)state;
	for (size_t end = 0; end < length; end++) {
		file_put(bytes, end);
		assert_int_equal(read_all(), FS_ESHORT);
	}
	bytes[length] = 0;
	file_put(bytes, length + 1);
	assert_int_equal(read_all(), FS_ECORRUPT);
}

static void another_version_is_told_apart(void **state)
{
	char bytes[FILE_MOST];
	size_t length = file_get(bytes);

	(void)state;
	bytes[8]++; /* behind the magic */
	file_put(bytes, length);
	assert_int_equal(read_all(), FS_EVERSION);
}

static void another_part_is_no_part(void **state)
{
	struct parts_reader *reader;
	char bytes[sizeof(few)];
	uint64_t length;

	(void)state;
	assert_int_equal(parts_open(&reader, path), FS_OK);
	assert_int_equal(parts_next(reader, PARTS_SEGMENTS, 0, &length), FS_ECORRUPT);
	parts_close(reader);
	assert_int_equal(parts_open(&reader, path), FS_OK);
	assert_int_equal(parts_next(reader, PARTS_STORE, 1, &length), FS_ECORRUPT);
	parts_close(reader);
	assert_int_equal(parts_open(&reader, path), FS_OK);
	assert_int_equal(parts_take(reader, PARTS_STORE, 0, bytes, sizeof(few) - 2), FS_ECORRUPT);
	parts_close(reader);
	parts_close(NULL);
}

static void what_is_no_file_is_not_read(void **state)
{
	struct parts_reader *reader;

	(void)state;
	assert_int_equal(parts_open(&reader, folder), FS_ECORRUPT);
	unlink(path);
	assert_int_equal(parts_open(&reader, path), FS_ENOTFOUND);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(parts_open(&reader, path), FS_ESYS);
	assert_int_equal(errno, ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(parts_open(&reader, path), FS_ECORRUPT); /* and nobody waits for its other end */
}

static void a_writer_that_fails_leaves_the_old_file(void **state)
{
	struct parts_writer *writer;
	char nowhere[300], too_long[5000];

	(void)state;
	snprintf(nowhere, sizeof(nowhere), "%s/none/" NAME, folder);
	assert_int_equal(parts_create(&writer, nowhere), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_null(writer);
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = 0;
	assert_int_equal(parts_create(&writer, too_long), FS_ESYS);
	assert_int_equal(parts_remove(too_long), FS_ESYS);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	unlink(path_new); /* somebody else tidies up */
	assert_int_equal(parts_finish(writer), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(read_all(), FS_OK);
}

/* A full file system is told before the end, too. */
static void a_writer_knows_whether_all_is_well(void **state)
{
	struct parts_writer *writer;
	struct rlimit old, small;

	(void)state;
	assert_int_equal(parts_create(&writer, path), FS_OK);
	assert_true(parts_healthy(writer));
	parts_sync(writer);
	assert_true(parts_healthy(writer));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 64;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	parts_put(writer, PARTS_STORE, 0, many, sizeof(many));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(parts_healthy(writer));
	parts_sync(writer);
	assert_int_equal(parts_finish(writer), FS_ESYS);
	assert_int_equal(errno, EFBIG);
	assert_int_not_equal(access(path_new, F_OK), 0);
}

static void what_an_interrupted_writer_left_is_replaced(void **state)
{
	int fd = open(path_new, O_WRONLY | O_CREAT, 0600);
	struct parts_writer *writer;
	struct stat status;

	(void)state;
	assert_int_equal(write(fd, many, sizeof(many)), sizeof(many));
	close(fd);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	assert_int_equal(parts_finish(writer), FS_OK);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size < (off_t)sizeof(many));
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void both_names_are_removed(void **state)
{
	int fd = open(path_new, O_WRONLY | O_CREAT, 0600);

	(void)state;
	close(fd);
	assert_int_equal(parts_remove(path), FS_OK);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_not_equal(access(path_new, F_OK), 0);
	assert_int_equal(parts_remove(path), FS_OK);
}

/* A part that finds no room is taken back, with those before it if need be, and the file is whole all the same. */
static void a_part_without_room_is_taken_back(void **state)
{
	struct rlimit limit, small;
	struct parts_writer *writer;
	struct parts_mark mark;
	static char large[3000];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 2500;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	parts_put(writer, PARTS_STORE, 0, few, sizeof(few) - 1);
	parts_put(writer, PARTS_FILTER, SEGMENT_NUMBER, many, sizeof(many));
	mark = parts_mark(writer);
	assert_false(parts_lacks_room(writer));
	assert_int_equal(parts_reached(writer), mark.bytes);
	parts_put(writer, PARTS_TABLE, 0, large, sizeof(large));
	assert_true(parts_lacks_room(writer));
	assert_int_equal(parts_reached(writer), 2500);
	parts_put(writer, PARTS_TABLE, 1, few, 1); /* does nothing */
	parts_cut(writer, &mark);
	assert_false(parts_lacks_room(writer));
	assert_true(parts_healthy(writer));
	parts_put(writer, PARTS_EXTENTS, 0, NULL, 0);
	parts_end(writer);
	parts_cut(writer, &mark); /* the end too */
	parts_put(writer, PARTS_EXTENTS, 0, NULL, 0);
	assert_int_equal(parts_finish(writer), FS_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(read_all(), FS_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		TEST(every_damaged_byte_is_found),
		TEST(every_missing_end_is_found),
		TEST(another_version_is_told_apart),
		TEST(another_part_is_no_part),
		TEST(what_is_no_file_is_not_read),
		TEST(a_writer_that_fails_leaves_the_old_file),
		TEST(a_writer_knows_whether_all_is_well),
		TEST(what_an_interrupted_writer_left_is_replaced),
		TEST(both_names_are_removed),
		TEST(a_part_without_room_is_taken_back),
	};

	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
