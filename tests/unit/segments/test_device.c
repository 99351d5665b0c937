/* SPDX-License-Identifier: BSD-3-Clause */
/* The real device: opened once, preallocated, left as it was when there is no room. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "segments/path.h"
#include "tests/unit/segments/fixture.h"
#include "tests/unit/segments/folder.h"

#define SEGMENT (64u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + 8 * SEGMENT)

static int64_t file_size(void)
{
	struct stat st;

	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void put_file(uint64_t bytes, int fill)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (uint64_t i = 0; i < bytes; i++)
		fputc(fill, file);
	fclose(file);
}

static void what_is_no_file_is_refused(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_file(&flash, directory, BYTES, SEGMENT), FS_ESYS);
	assert_int_equal(flash_open_file(&flash, "/dev/null", BYTES, SEGMENT), FS_EINVAL);
	assert_int_equal(flash_open_file(&flash, "/nowhere/at/all", BYTES, SEGMENT), FS_ESYS);
	assert_true(seg_flash_bytes("/dev/null", 1) < 0);
	assert_int_equal(seg_flash_bytes("/nowhere/at/all", 77), 77);
}

/* Bytes at an offset of a file of that size which is zero otherwise. */
static void put_bytes(uint64_t size, const void *bytes, uint64_t length, uint64_t offset)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), (ssize_t)length);
	close(fd);
}

static void assert_refused_and_left_alone(const char *what, uint64_t length, uint64_t offset)
{
	char read_back[16] = { 0 };
	struct flash flash;
	int64_t size = file_size();
	int fd;

	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_EFOREIGN);
	assert_int_equal(file_size(), size);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && length <= sizeof(read_back));
	assert_int_equal(pread(fd, read_back, length, (off_t)offset), (ssize_t)length);
	assert_memory_equal(read_back, what, length);
	close(fd);
	unlink(path);
}

static void what_holds_something_else_is_refused(void **state)
{
	static const struct {
		uint64_t size, offset;
		const char *bytes;
	} there[] = {
		{ 5, 0, "notes" }, /* a short text */
		{ SEG_PAGE + 7, SEG_PAGE + 1, "tail" }, /* no whole page */
		{ BYTES, 1080, "\x53\xef" }, /* ext4 */
		{ 2 * BYTES, 512, "EFI PART" }, /* a table of partitions */
		{ BYTES, LAYOUT_SUPER_BYTES - 1, "x" }, /* the last byte of the area */
		{ BYTES, LAYOUT_SUPER_BYTES + 64, "_BHRfS_M" }, /* btrfs: nothing in the first 64 KiB */
		{ BYTES, 1, LAYOUT_SUPER_MAGIC }, /* the magic, but not where it belongs */
		{ BYTES, 16384, LAYOUT_SUPER_MAGIC },
		{ BYTES, 0, LAYOUT_HEADER_MAGIC },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		uint64_t length = strlen(there[i].bytes);

		put_bytes(there[i].size, there[i].bytes, length, there[i].offset);
		assert_refused_and_left_alone(there[i].bytes, length, there[i].offset);
	}
	assert_non_null(strstr(fs_strerror(FS_EFOREIGN), "remove the file"));
}

static void garbage_over_both_copies_is_refused(void **state)
{
	char garbage[SEG_PAGE];
	struct flash flash;
	int fd;

	(void)state;
	memset(garbage, 'g', sizeof(garbage));
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
	flash_close(&flash);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, garbage, SEG_PAGE, 0), SEG_PAGE);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK); /* a copy is enough */
	flash_close(&flash);
	assert_int_equal(pwrite(fd, garbage, SEG_PAGE, 0), SEG_PAGE);
	assert_int_equal(pwrite(fd, garbage, SEG_PAGE, LAYOUT_SUPER_COPY_OFFSET), SEG_PAGE);
	close(fd);
	assert_refused_and_left_alone(garbage, 16, LAYOUT_SUPER_COPY_OFFSET);
}

/* Our magic with nothing right behind it; zeros before what an older life of ours may have left. */
static void what_is_ours_or_empty_is_taken(void **state)
{
	static const struct {
		uint64_t size, offset;
		const char *bytes;
	} there[] = {
		{ BYTES, 0, LAYOUT_SUPER_MAGIC "broken" },
		{ BYTES, LAYOUT_SUPER_COPY_OFFSET, LAYOUT_SUPER_MAGIC "broken" },
		{ 9, 0, LAYOUT_SUPER_MAGIC },
		{ BYTES, LAYOUT_SUPER_BYTES, LAYOUT_HEADER_MAGIC },
		{ BYTES, LAYOUT_SUPER_BYTES + SEG_PAGE, "data" },
		{ BYTES, 0, "" },
		{ 0, 0, "" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		struct flash flash;

		put_bytes(there[i].size, there[i].bytes, strlen(there[i].bytes), there[i].offset);
		assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
		flash_close(&flash);
		assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
		flash_close(&flash);
		unlink(path);
	}
}

static void a_bad_configuration_touches_nothing(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT + 1), FS_EINVAL);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT / 2), FS_EINVAL);
	assert_int_equal(file_size(), -1);
	/* Room for no segment at all. */
	assert_int_equal(flash_open_file(&flash, path, SEGMENT, SEGMENT), FS_ERANGE);
	unlink(path);
}

static void a_second_opener_is_refused(void **state)
{
	struct flash first, second;

	(void)state;
	assert_int_equal(flash_open_file(&first, path, BYTES, SEGMENT), FS_OK);
	assert_int_equal(flash_open_file(&second, path, BYTES, SEGMENT), FS_EBUSY);
	assert_int_equal(file_size(), BYTES);
	assert_true(seg_is_locked(path));
	flash_close(&first);
	assert_false(seg_is_locked(path));
	assert_false(seg_is_locked("/nonexistent/flash"));
	assert_int_equal(flash_open_file(&second, path, BYTES, SEGMENT), FS_OK);
	flash_close(&second);
	unlink(path);
}

static struct seg_info look(uint64_t bytes, enum seg_found found)
{
	struct seg_config config = { .clock = clk_boot(),
				     .path = path,
				     .flash_bytes = bytes,
				     .segment_bytes = SEGMENT,
				     .functions = SEG_MAX_FUNCTIONS,
				     .look_only = true };
	void *table = mem_zalloc(seg_region_bytes(seg_count_for(bytes, SEGMENT), SEGMENT, false));
	struct segments *seg;
	struct seg_info info;

	assert_int_equal(seg_look(&seg, &config, table), FS_OK);
	seg_get_info(seg, &info);
	assert_int_equal(info.found, found);
	seg_close(seg);
	mem_free(table);
	return info;
}

static void a_look_takes_no_lock_and_makes_nothing(void **state)
{
	struct seg_info info, seen;
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
	seg_get_info(flash.seg, &info);
	seen = look(BYTES, SEG_FOUND_UNCLEAN);
	assert_memory_equal(seen.uuid, info.uuid, sizeof(info.uuid));
	assert_int_equal(seen.attach_epoch, info.attach_epoch);
	flash_close(&flash);
	look(2 * BYTES, SEG_FOUND_LAYOUT);
	assert_int_equal(file_size(), BYTES);
	assert_int_equal(truncate(path, 10000), 0); /* the second copy is cut off */
	look(BYTES, SEG_FOUND_UNCLEAN);
	assert_int_equal(file_size(), 10000);
	assert_int_equal(truncate(path, 0), 0);
	look(BYTES, SEG_FOUND_NONE);
	assert_int_equal(file_size(), 0);
	unlink(path);
}

/* The limit of a file's size stands for a full file system. */
static void without_room_nothing_is_left_behind(void **state)
{
	struct rlimit old, small = { BYTES / 2, BYTES / 2 };
	struct flash flash;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_ESYS);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(file_size(), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* One that was there has its old size and bytes. */
	put_file(10000, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_ESYS);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(file_size(), 10000);
	unlink(path);
}

static void a_flush_that_fails_ends_the_start(void **state)
{
	uint64_t first, end;
	struct flash flash;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_device_flush_eio, FAULT_ALWAYS, 0);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_EIO);
	fault_disarm_all();
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
	fault_arm(FAULT_device_flush_eio, FAULT_AFTER, 1);
	assert_int_equal(seg_reserve_cas(flash.seg, 10, &first, &end), FS_EIO);
	fault_disarm_all();
	assert_int_equal(seg_reserve_cas(flash.seg, 10, &first, &end), FS_OK);
	flash_close(&flash);
	unlink(path);
}

static void a_file_is_allocated_in_full(void **state)
{
	struct flash flash;
	struct stat st;

	(void)state;
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, BYTES);
	assert_true(st.st_blocks * 512 >= (int64_t)BYTES);
	assert_int_equal(st.st_mode & 077, 0); /* values are nobody else's */
	flash_close(&flash);
	unlink(path);
}

static void a_short_file_grows_and_a_long_one_stays(void **state)
{
	struct flash flash;
	struct seg_info info;

	(void)state;
	put_file(SEG_PAGE + 5, 0);
	assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
	flash_close(&flash);
	assert_int_equal(file_size(), BYTES);
	assert_int_equal(flash_open_file(&flash, path, BYTES - SEGMENT, SEGMENT), FS_OK);
	seg_get_info(flash.seg, &info);
	assert_int_equal(info.segments, 7);
	flash_close(&flash);
	assert_int_equal(file_size(), BYTES);
	unlink(path);
}

static bool always(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	(void)offset, (void)extent, (void)record;
	++*(uint32_t *)context;
	return true;
}

static void write_and_walk(struct flash *flash)
{
	for (uint64_t i = 0; i < 3; i++) {
		struct batch batch;
		uint32_t segment, seen = 0;
		uint64_t visited;

		batch_make(&batch, i * 1000, 500, 0, 500);
		assert_int_equal(batch_write(&batch, flash, &segment), FS_OK);
		assert_int_equal(seg_walk(flash->seg, segment, always, &seen, &visited), FS_OK);
		assert_int_equal(visited, batch.plan.count);
		batch_fini(&batch);
	}
}

static void segments_pass_through_direct_io_and_the_page_cache(void **state)
{
	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		struct flash flash = { 0 };
		struct seg_info info;

		assert_int_equal(flash_open_file(&flash, path, BYTES, SEGMENT), FS_OK);
		if (!direct) {
			seg_close(flash.seg);
			flash.config.direct = SEG_DIRECT_OFF;
			assert_int_equal(seg_open(&flash.seg, &flash.config, flash.table), FS_OK);
			seg_get_info(flash.seg, &info);
			assert_false(info.direct);
		}
		write_and_walk(&flash);
		flash_close(&flash);
		unlink(path);
	}
}

/* The first line of what a command prints, or an empty string. */
static void output_of(const char *command, char *line, int size)
{
	FILE *pipe = popen(command, "r");

	line[0] = 0;
	if (pipe && fgets(line, size, pipe))
		line[strcspn(line, "\n")] = 0;
	if (pipe)
		pclose(pipe);
}

static void a_block_device_works_like_a_file(void **state)
{
	char command[200], device[64], rest[64];
	struct flash flash;
	struct seg_info info;

	(void)state;
	put_file(BYTES, 0);
	snprintf(command, sizeof(command), "losetup --show -f %s 2>/dev/null", path);
	output_of(command, device, sizeof(device));
	if (strncmp(device, "/dev/", 5) != 0) {
		print_message("skipped: no loop device can be set up here\n");
		unlink(path);
		skip();
	}
	assert_int_equal(seg_flash_bytes(device, 0), BYTES);
	assert_int_equal(flash_open_file(&flash, device, BYTES + SEGMENT, SEGMENT), FS_ERANGE);
	assert_int_equal(flash_open_file(&flash, device, BYTES, SEGMENT), FS_OK);
	seg_get_info(flash.seg, &info);
	assert_true(info.block_device);
	assert_int_equal(info.segments, 8);
	write_and_walk(&flash);
	flash_close(&flash);
	snprintf(command, sizeof(command), "losetup -d %s 2>&1", device);
	output_of(command, rest, sizeof(rest));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(what_holds_something_else_is_refused),
		cmocka_unit_test(garbage_over_both_copies_is_refused),
		cmocka_unit_test(what_is_ours_or_empty_is_taken),
		cmocka_unit_test(a_bad_configuration_touches_nothing),
		cmocka_unit_test(a_second_opener_is_refused),
		cmocka_unit_test(a_look_takes_no_lock_and_makes_nothing),
		cmocka_unit_test(without_room_nothing_is_left_behind),
		cmocka_unit_test(a_flush_that_fails_ends_the_start),
		cmocka_unit_test(a_file_is_allocated_in_full),
		cmocka_unit_test(a_short_file_grows_and_a_long_one_stays),
		cmocka_unit_test(segments_pass_through_direct_io_and_the_page_cache),
		cmocka_unit_test(a_block_device_works_like_a_file),
	};

	return cmocka_run_group_tests_name("device", tests, make_directory, remove_directory);
}
