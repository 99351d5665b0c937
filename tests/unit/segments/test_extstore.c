/* SPDX-License-Identifier: BSD-3-Clause */
/* What memcached's extstore has left is known by an item whose check is right, and by nothing less. The items are those that memcached 1.6.18
   and 1.6.45 have written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segments/path.h"
#include "tests/unit/segments/fixture.h"
#include "tests/unit/segments/folder.h"

#define PAGE_MIB 64
#define LINKS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const struct {
	const char *name, *bytes;
	uint64_t length;
} items[] = {
	{ "1.6.18",
	  LINKS "\xbf\xf8\x37\xe3\xcf\x61\x07\x15\x16\0\0\0\x02\0\x02\0\x81\x05\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
		"key-0\0yyyyyyyyyyyyyyyyyyyy\r\n",
	  84 },
	{ "1.6.18, client flags",
	  LINKS "\xa0\x15\xb1\x98\xec\xaf\x37\xd8\x16\0\0\0\x02\0\x02\x01\x81\x05\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
		"key-1\0\x07\0\0\0yyyyyyyyyyyyyyyyyyyy\r\n",
	  88 },
	{ "1.6.45",
	  LINKS "\xbf\xf8\x37\xe3\x0b\xad\x52\x41\x16\0\0\0\x02\0\x02\0\x81\x05\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
		"key-0\0yyyyyyyyyyyyyyyyyyyy\r\n",
	  84 },
	{ "1.6.45, client flags",
	  LINKS "\xa0\x15\xb1\x98\xc7\xba\xf7\x05\x16\0\0\0\x02\0\x02\x01\x81\x05\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
		"key-1\0\x07\0\0\0yyyyyyyyyyyyyyyyyyyy\r\n",
	  88 },
};
#define ITEMS (sizeof(items) / sizeof(items[0]))
#define CHECKED_FROM 32

/* A file with these bytes at the offset, and holes around them. */
static void put(const void *bytes, uint64_t length, uint64_t offset)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), (ssize_t)length);
	assert_int_equal(ftruncate(fd, (off_t)(offset + (1 << 20))), 0);
	close(fd);
}

static bool is_known(void)
{
	int fd = open(path, O_RDONLY);
	bool known;

	assert_true(fd >= 0);
	known = extstore_left(fd);
	close(fd);
	return known;
}

static int64_t file_size(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void no_changed_byte_passes(void **state)
{
	uint8_t changed[128];

	(void)state;
	for (unsigned i = 0; i < ITEMS; i++)
		for (uint64_t at = CHECKED_FROM - 4; at < items[i].length; at++) {
			memcpy(changed, items[i].bytes, items[i].length);
			changed[at] ^= 1;
			put(changed, items[i].length, 0);
			if (is_known())
				fail_msg("%s: byte %llu may be another", items[i].name, (unsigned long long)at);
		}
}

static void what_is_no_page_of_extstore_is_unknown(void **state)
{
	static const uint8_t zeros[4096];

	(void)state;
	put(zeros, 0, 0); /* a hole */
	assert_false(is_known());
	put(zeros, sizeof(zeros), 0);
	assert_false(is_known());
	put("notes", 5, 0);
	assert_false(is_known());
	put(items[0].bytes, items[0].length, 4096); /* no page begins there */
	assert_false(is_known());
	put(items[0].bytes, items[0].length, 0);
	assert_int_equal(truncate(path, (off_t)items[0].length - 1), 0);
	assert_false(is_known());
	assert_int_equal(truncate(path, 0), 0);
	assert_false(is_known());
	assert_int_equal(seg_empty_extstore(directory), FS_OK);
	assert_int_equal(seg_empty_extstore("/nonexistent/flash"), FS_OK);
}

/* The first page may be a hole, and the links may be what the buffer had before. */
static void items_of_memcached_are_known(void **state)
{
	uint8_t other_links[128];

	(void)state;
	for (unsigned i = 0; i < ITEMS; i++) {
		put(items[i].bytes, items[i].length, 0);
		assert_true(is_known());
		put(items[i].bytes, items[i].length, (uint64_t)PAGE_MIB << 20);
		assert_true(is_known());
		memcpy(other_links, items[i].bytes, items[i].length);
		memset(other_links, 'l', 24);
		put(other_links, items[i].length, 0);
		assert_true(is_known());
	}
}

static void it_is_emptied_when_asked_and_refused_else(void **state)
{
	struct flash flash;
	int64_t size;

	(void)state;
	for (unsigned i = 0; i < ITEMS; i++)
		for (uint64_t offset = 0; offset <= (uint64_t)PAGE_MIB << 20; offset += (uint64_t)PAGE_MIB << 20) {
			put(items[i].bytes, items[i].length, offset);
			size = file_size();
			assert_int_equal(flash_open_file(&flash, path, 1 << 20, 64 << 10), FS_EFOREIGN);
			assert_int_equal(seg_check_path(path, false), FS_EFOREIGN);
			assert_int_equal(seg_check_path(path, true), FS_OK);
			assert_int_equal(file_size(), size);
			assert_int_equal(seg_empty_extstore(path), FS_OK);
			assert_int_equal(file_size(), 0);
			assert_int_equal(flash_open_file(&flash, path, 1 << 20, 64 << 10), FS_OK);
			flash_close(&flash);
			assert_int_equal(seg_empty_extstore(path), FS_OK);
			assert_int_equal(file_size(), 1 << 20); /* ours now */
		}
}

static void other_files_stay(void **state)
{
	(void)state;
	put("notes", 5, 0);
	assert_int_equal(seg_empty_extstore(path), FS_OK);
	assert_int_equal(file_size(), 1 << 20);
	assert_int_equal(seg_check_path(path, true), FS_EFOREIGN);
}

/* memcached holds a lock of fcntl() while it runs. */
static void what_memcached_has_open_stays(void **state)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd;

	(void)state;
	put(items[0].bytes, items[0].length, 0);
	fd = open(path, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	assert_int_equal(seg_empty_extstore(path), FS_EBUSY);
	close(fd);
	assert_int_equal(file_size(), 1 << 20);
}

/* The lock comes before the look, so that what is recognised is what is emptied. */
static void what_is_locked_is_not_looked_at(void **state)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd;

	(void)state;
	put("notes", 5, 0);
	fd = open(path, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	assert_int_equal(seg_empty_extstore(path), FS_EBUSY);
	close(fd);
	assert_int_equal(seg_empty_extstore(path), FS_OK);
	assert_int_equal(file_size(), 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_changed_byte_passes),
		cmocka_unit_test(what_is_no_page_of_extstore_is_unknown),
		cmocka_unit_test(items_of_memcached_are_known),
		cmocka_unit_test(it_is_emptied_when_asked_and_refused_else),
		cmocka_unit_test(other_files_stay),
		cmocka_unit_test(what_memcached_has_open_stays),
		cmocka_unit_test(what_is_locked_is_not_looked_at),
	};

	return cmocka_run_group_tests_name("segments: extstore's files", tests, make_directory, remove_directory);
}
