/* SPDX-License-Identifier: BSD-3-Clause */
/* A flash file that is made while the flash is open: segments come into use one by one, and a cut file is continued. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (1u << 20)
#define SEGMENTS 11u
#define BYTES (LAYOUT_SUPER_BYTES + SEGMENTS * SEGMENT)
#define MINUTE_MS 60000u

static char directory[] = "/tmp/flashield-allocate-XXXXXX";
static char path[sizeof(directory) + 8];

static int make_directory(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/flash", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static int remove_file(void **state)
{
	(void)state;
	fault_disarm_all();
	unlink(path);
	return 0;
}

static uint64_t file_size(void)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void open_flash(struct flash *flash)
{
	assert_int_equal(flash_open_file(flash, path, BYTES, SEGMENT), FS_OK);
}

/* Opens it with no more than the superblock's area made. */
static void open_begun(struct flash *flash)
{
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	open_flash(flash);
	fault_disarm_all();
}

static bool no_stop(void *context)
{
	++*(unsigned *)context;
	return false;
}

static bool allocate(struct flash *flash)
{
	unsigned asked = 0;

	return seg_allocate(flash->seg, no_stop, &asked);
}

static void allocate_all(struct flash *flash)
{
	while (allocate(flash))
		;
	assert_int_equal(seg_allocated(flash->seg), SEGMENTS);
	assert_int_equal(seg_allocated_bytes(flash->seg), BYTES);
}

static struct seg_status status_of(const struct flash *flash)
{
	struct seg_status status;

	seg_get_status(flash->seg, &status);
	return status;
}

/* ---- new and complete files ------------------------------------------------------------------ */

static void a_small_file_is_complete_at_once(void **state)
{
	struct flash flash;

	(void)state;
	open_flash(&flash);
	assert_int_equal(seg_allocated(flash.seg), SEGMENTS);
	assert_false(allocate(&flash));
	assert_int_equal(file_size(), BYTES);
	flash_close(&flash);
	/* And a complete one opens so whatever the fault point says. */
	open_begun(&flash);
	assert_int_equal(seg_allocated(flash.seg), SEGMENTS);
	flash_close(&flash);
}

static void other_devices_are_complete(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, LAYOUT_SUPER_BYTES, 16, NULL), FS_OK);
	assert_int_equal(seg_allocated(flash.seg), 3);
	assert_int_equal(seg_allocated_bytes(flash.seg), flash.ram->dev.bytes);
	assert_false(allocate(&flash));
	flash_close(&flash);
}

static void segments_come_into_use_in_order(void **state)
{
	enum seg_state segment_state;
	struct flash flash;
	uint32_t segment, last = 0;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	open_begun(&flash);
	assert_int_equal(seg_allocated(flash.seg), 0);
	assert_int_equal(seg_next(flash.seg, &segment, &segment_state), FS_EOFFLINE);
	assert_false(seg_offline(flash.seg));
	while (allocate(&flash)) {
		uint32_t now = seg_allocated(flash.seg);

		assert_true(now > last && now < SEGMENTS);
		last = now;
		assert_true(file_size() >= LAYOUT_SUPER_BYTES + (uint64_t)now * SEGMENT && file_size() < BYTES);
		assert_int_equal(status_of(&flash).allocated_bytes, file_size());
		assert_int_equal(seg_next(flash.seg, &segment, &segment_state), FS_OK);
		assert_int_equal(segment, 0);
	}
	assert_true(last > 0);
	assert_int_equal(seg_allocated(flash.seg), SEGMENTS);
	assert_int_equal(file_size(), BYTES);
	flash_close(&flash);
}

/* The order begins anew at the end of what is made, and takes in the rest when it is there. */
static void writes_stay_in_what_is_made(void **state)
{
	struct flash flash;
	uint32_t segment, made;
	enum seg_state segment_state;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	open_begun(&flash);
	assert_true(allocate(&flash));
	made = seg_allocated(flash.seg);
	for (uint32_t n = 0; n < made; n++) {
		struct batch batch;

		batch_make(&batch, n * 1000, 700, 1000, 2000);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
		assert_int_equal(segment, n);
		batch_fini(&batch);
	}
	assert_int_equal(seg_next(flash.seg, &segment, &segment_state), FS_OK);
	assert_true(segment == 0 && segment_state == SEG_LIVE);
	allocate_all(&flash);
	assert_int_equal(seg_next(flash.seg, &segment, &segment_state), FS_OK);
	assert_true(segment == made && segment_state == SEG_FREE);
	flash_close(&flash);
}

/* ---- cut short ------------------------------------------------------------------------------- */

static bool stop_at_once(void *context)
{
	(void)context;
	return true;
}

static void a_stop_ends_it_after_a_piece(void **state)
{
	struct flash flash;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	assert_int_equal(flash_open_file(&flash, path, LAYOUT_SUPER_BYTES + 2 * (6ull << 20), 6u << 20), FS_OK);
	fault_disarm_all();
	assert_true(seg_allocate(flash.seg, stop_at_once, NULL));
	assert_int_equal(seg_allocated(flash.seg), 0);
	assert_true(allocate(&flash));
	assert_int_equal(seg_allocated(flash.seg), 1);
	flash_close(&flash);
}

static void a_cut_file_is_continued(void **state)
{
	struct flash flash;
	uint64_t size, epoch;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	open_begun(&flash);
	assert_true(allocate(&flash));
	epoch = flash.seg->super.attach_epoch;
	size = file_size();
	flash_close(&flash);
	assert_int_equal(file_size(), size);
	open_begun(&flash);
	assert_int_equal(flash.seg->super.attach_epoch, epoch + 1); /* the same flash */
	assert_true(seg_allocated_bytes(flash.seg) >= size && seg_allocated(flash.seg) < SEGMENTS);
	allocate_all(&flash);
	flash_close(&flash);
	assert_int_equal(file_size(), BYTES);
}

static void what_is_held_back_goes_on_later(void **state)
{
	struct flash flash;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	open_begun(&flash);
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	assert_false(allocate(&flash));
	assert_false(allocate(&flash));
	assert_int_equal(seg_allocated(flash.seg), 0);
	assert_int_equal(status_of(&flash).allocate_error, 0);
	fault_disarm_all();
	allocate_all(&flash);
	flash_close(&flash);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void without_room_the_rest_is_tried_each_minute(void **state)
{
	struct flash flash;
	uint32_t made;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_device_file_unreserved, FAULT_ALWAYS, 0);
	open_begun(&flash);
	assert_true(allocate(&flash));
	made = seg_allocated(flash.seg);
	fault_arm(FAULT_device_file_full, FAULT_ALWAYS, 0);
	assert_false(allocate(&flash));
	assert_int_equal(status_of(&flash).allocate_error, ENOSPC);
	assert_int_equal(fault_fired(FAULT_device_file_full), 1);
	assert_false(allocate(&flash)); /* not yet */
	assert_int_equal(fault_fired(FAULT_device_file_full), 1);
	clk_scripted_advance(&flash.clock, MINUTE_MS * 1000ull);
	assert_false(allocate(&flash));
	assert_int_equal(fault_fired(FAULT_device_file_full), 2);
	assert_int_equal(seg_allocated(flash.seg), made);
	assert_false(seg_offline(flash.seg));
	fault_disarm_all();
	clk_scripted_advance(&flash.clock, MINUTE_MS * 1000ull);
	allocate_all(&flash);
	assert_int_equal(status_of(&flash).allocate_error, 0);
	flash_close(&flash);
}

static int failing_allocate(struct dev *dev, uint64_t most)
{
	(void)dev;
	(void)most;
	return -EIO;
}

/* An error of the device is an error like that of any write. */
static void a_failing_device_is_taken_offline(void **state)
{
	struct flash flash;
	struct dev_ops ops;
	struct dev *device;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	open_begun(&flash);
	device = flash.seg->device;
	ops = *device->ops;
	ops.allocate = failing_allocate;
	device->ops = &ops;
	for (unsigned n = 0; n < 17 && !seg_offline(flash.seg); n++) {
		flash.seg->allocate_at_ms = 0;
		assert_false(allocate(&flash));
	}
	assert_true(seg_offline(flash.seg));
	assert_int_equal(status_of(&flash).allocate_error, EIO);
	flash.seg->allocate_at_ms = 0;
	assert_false(allocate(&flash));
	flash_close(&flash);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, remove_file)
	const struct CMUnitTest tests[] = {
		TEST(a_small_file_is_complete_at_once),  TEST(other_devices_are_complete),
		TEST(segments_come_into_use_in_order),   TEST(writes_stay_in_what_is_made),
		TEST(a_stop_ends_it_after_a_piece),      TEST(a_cut_file_is_continued),
		TEST(what_is_held_back_goes_on_later),   TEST(without_room_the_rest_is_tried_each_minute),
		TEST(a_failing_device_is_taken_offline),
	};

	return cmocka_run_group_tests_name("allocate", tests, make_directory, remove_directory);
}
