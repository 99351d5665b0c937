/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening: what is a flash, what is none, and which of two superblocks counts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/tools/inspect/image.h"
#include "tools/common/args.h"

static int open_status(const char *path, char *problem)
{
	struct flash flash;
	int status = flash_open(&flash, path, problem);

	flash_close(&flash);
	return status;
}

static void expect(const struct image *image, int status, const char *text)
{
	char problem[FLASH_PROBLEM_BYTES] = "";

	image_sync(image);
	assert_int_equal(open_status(image->path, problem), status);
	if (!strstr(problem, text))
		fail_msg("\"%s\" does not say \"%s\"", problem, text);
}

static void what_is_no_file_is_refused(void **state)
{
	char problem[FLASH_PROBLEM_BYTES], pipe[] = "/tmp/flashield-inspect-XXXXXX";

	(void)state;
	assert_int_equal(open_status("/tmp/no/such/file", problem), EXIT_TROUBLE);
	assert_string_equal(problem, "No such file or directory");
	assert_int_equal(open_status("/tmp", problem), EXIT_TROUBLE);
	assert_non_null(strstr(problem, "neither a file nor a block device"));
	assert_int_equal(open_status("/dev/zero", problem), EXIT_TROUBLE);
	assert_non_null(mkdtemp(pipe));
	strcat(strcpy(problem, pipe), "/fifo");
	assert_int_equal(mkfifo(problem, 0600), 0);
	{
		char text[FLASH_PROBLEM_BYTES];

		assert_int_equal(open_status(problem, text), EXIT_TROUBLE); /* and doesn't wait for a writer */
	}
	unlink(problem);
	rmdir(pipe);
}

static void what_is_no_flash_is_refused(void **state)
{
	struct image image;

	(void)state;
	image_create(&image, 1);
	memset(image.bytes, 0, image.length);
	expect(&image, EXIT_TROUBLE, "is not a flash");
	memset(image.bytes, 'x', image.length);
	expect(&image, EXIT_TROUBLE, "is not a flash");
	image_truncate(&image, 0);
	image.length = 0;
	expect(&image, EXIT_TROUBLE, "is empty");
	image_truncate(&image, 100);
	expect(&image, EXIT_TROUBLE, "is not a flash");
	image_close(&image);
}

static void another_version_is_refused(void **state)
{
	struct image image;

	(void)state;
	image_create(&image, 1);
	image_put(&image, 8, 2, 4);
	image_seal_super(&image);
	expect(&image, EXIT_TROUBLE, "version");
	image_put(&image, 8, 1, 4);
	image_put(&image, 32, 8, 8); /* incompatible */
	image_seal_super(&image);
	expect(&image, EXIT_TROUBLE, "feature");
	image_put(&image, 32, 4, 8); /* a list of homes, which is empty */
	image_seal_super(&image);
	expect(&image, EXIT_WRONG, "a home that can't be right");
	image_put(&image, 32, 0, 8);
	image_put(&image, 24, 4, 8); /* may be read */
	image_put(&image, 16, 4, 8);
	image_seal_super(&image);
	expect(&image, 0, "");
	image_close(&image);
}

static void a_superblock_that_cannot_be_is_told(void **state)
{
	static const struct {
		unsigned at, bytes;
		uint64_t value;
	} cases[] = { { 264, 8, 0 },     { 264, 8, 65537 }, { 264, 8, 1ull << 40 }, { 272, 4, 0 },
		      { 272, 4, 16384 }, { 276, 4, 0 },     { 288, 8, 9 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image image;

		image_create(&image, 1);
		image_put(&image, cases[i].at, cases[i].value, cases[i].bytes);
		image_seal_super(&image);
		expect(&image, EXIT_WRONG, "can't be right");
		image_close(&image);
	}
}

/* The daemon starts anew with them too (segments/superblock.c). */
static void numbers_that_no_daemon_reaches_make_a_copy_invalid(void **state)
{
	static const struct {
		unsigned at;
		uint64_t value;
		int code;
	} cases[] = { { 304, UINT64_MAX, EXIT_WRONG }, { 304, 1ull << 62, EXIT_WRONG }, { 304, 0, EXIT_WRONG },
		      { 280, UINT64_MAX, EXIT_WRONG }, { 40, UINT64_MAX, EXIT_WRONG },  { 296, 0, EXIT_WRONG },
		      { 304, (1ull << 62) - 1, 0 },    { 40, (1ull << 62) - 1, 0 },     { 296, 1, 0 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image image;

		image_create(&image, 1);
		image_put(&image, cases[i].at, cases[i].value, 8);
		image_seal_super(&image);
		expect(&image, cases[i].code, cases[i].code ? "that can't be right" : "");
		image_close(&image);
	}
}

static void one_good_copy_is_enough(void **state)
{
	struct image image;

	(void)state;
	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		char problem[FLASH_PROBLEM_BYTES];
		struct flash flash;
		bool failure = false;

		image_create(&image, 1);
		image.bytes[n * FORMAT_COPY_OFFSET + 300] ^= 1;
		image_sync(&image);
		assert_int_equal(flash_open(&flash, image.path, problem), 0);
		assert_int_equal(flash.super.generation, 5);
		assert_string_equal(superblock_copy_remark(flash.copies, n, &failure), "fails its checksum");
		assert_true(failure);
		assert_null(superblock_copy_remark(flash.copies, 1 - n, &failure));
		flash_close(&flash);
		image.bytes[(1 - n) * FORMAT_COPY_OFFSET + 300] ^= 1;
		expect(&image, EXIT_WRONG, "neither copy");
		image_close(&image);
	}
}

/* Copy 0 is written first: when the power goes in between, it is the younger one. */
static void the_younger_copy_counts(void **state)
{
	char problem[FLASH_PROBLEM_BYTES];
	uint8_t old[FORMAT_PAGE];
	struct image image;
	struct flash flash;
	bool failure;

	(void)state;
	image_create(&image, 1);
	memcpy(old, image.bytes, FORMAT_PAGE);
	image_put(&image, 40, 6, 8);
	image_put(&image, 304, 2000, 8);
	image_seal_super(&image);
	memcpy(image.bytes + FORMAT_COPY_OFFSET, old, FORMAT_PAGE);
	image_sync(&image);
	assert_int_equal(flash_open(&flash, image.path, problem), 0);
	assert_int_equal(flash.super.sequence_end, 2000);
	assert_null(superblock_copy_remark(flash.copies, 0, &failure));
	assert_non_null(superblock_copy_remark(flash.copies, 1, &failure));
	assert_false(failure);
	flash_close(&flash);
	image_close(&image);
}

/* One's own memory as a file: where nothing is mapped, reads fail like those of a bad sector. */
static void a_bad_sector_is_counted_and_hides_nothing_else(void **state)
{
	struct flash flash = { .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) };
	uint8_t *there = mmap(NULL, 5 * FORMAT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *read = aligned_alloc(FORMAT_PAGE, 5 * FORMAT_PAGE);
	struct flash_unread unread = { 0 };

	(void)state;
	assert_true(flash.fd >= 0 && there != MAP_FAILED && read);
	memset(there, 'd', 5 * FORMAT_PAGE);
	memset(read, 'x', 5 * FORMAT_PAGE);
	assert_int_equal(munmap(there + 2 * FORMAT_PAGE, FORMAT_PAGE), 0);
	flash_read(&flash, read, 5 * FORMAT_PAGE, (uintptr_t)there, &unread);
	assert_int_equal(unread.pages, 1);
	assert_int_equal(unread.first, (uintptr_t)there + 2 * FORMAT_PAGE);
	assert_int_equal(unread.error, EIO);
	assert_true(format_is_zero(read + 2 * FORMAT_PAGE, FORMAT_PAGE));
	assert_memory_equal(read, there, 2 * FORMAT_PAGE);
	assert_memory_equal(read + 3 * FORMAT_PAGE, there + 3 * FORMAT_PAGE, 2 * FORMAT_PAGE);
	munmap(there, 5 * FORMAT_PAGE);
	free(read);
	close(flash.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(what_is_no_flash_is_refused),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(a_superblock_that_cannot_be_is_told),
		cmocka_unit_test(numbers_that_no_daemon_reaches_make_a_copy_invalid),
		cmocka_unit_test(one_good_copy_is_enough),
		cmocka_unit_test(the_younger_copy_counts),
		cmocka_unit_test(a_bad_sector_is_counted_and_hides_nothing_else),
	};

	return cmocka_run_group_tests_name("flash", tests, NULL, NULL);
}
