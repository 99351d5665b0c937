/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault of a device has its outcome: what the writer, the walk, the reader and the next start make of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "tests/unit/segments/lives.h"

#define SEGMENT LIFE_SEGMENT
#define OBJECTS 300u

/* ---- the table itself ------------------------------------------------------------------------ */

static void wrong_texts_are_refused(void **state)
{
	static const char *const texts[] = { "",
					     "write_lost",
					     "write_lost=",
					     "nothing=always",
					     "write_lost=always:",
					     "write_lost=always:1",
					     "write_lost=after",
					     "write_lost=after:x",
					     "write_lost=after:1x",
					     "write_lost=never:1",
					     "write_lost=every" };
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(ram_fault_arm_text(ram, texts[i]), FS_EINVAL);
	ram->dev.ops->close(&ram->dev);
}

static void a_countdown_takes_the_request_that_it_names(void **state)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);
	uint8_t *page = mem_aligned(SEG_PAGE, SEG_PAGE);

	(void)state;
	memset(page, 'x', SEG_PAGE);
	assert_int_equal(ram_fault_arm_text(ram, "write_lost=after:3"), FS_OK);
	for (uint64_t at = 0; at < 6 * SEG_PAGE; at += SEG_PAGE)
		assert_int_equal(ram->dev.ops->write(&ram->dev, page, SEG_PAGE, at), 0);
	for (uint64_t n = 0; n < 6; n++)
		assert_int_equal(ram->bytes[n * SEG_PAGE], n == 3 ? 0 : 'x');
	assert_int_equal(ram_fault_fired(ram, RAM_FAULT_write_lost), 1);
	ram_fault_disarm_all(ram);
	assert_int_equal(ram_fault_arm_text(ram, "read_eio=every:2"), FS_OK);
	assert_int_equal(ram->dev.ops->read(&ram->dev, page, SEG_PAGE, 0), 0);
	assert_true(ram->dev.ops->read(&ram->dev, page, SEG_PAGE, 0) < 0);
	mem_free(page);
	ram->dev.ops->close(&ram->dev);
}

/* Reads one page through a queue, and says whether it has completed. */
static bool reads_at_once(struct ram_device *ram, struct dev_queue *queue, struct dev_io *io, void *page)
{
	struct dev_io *done;

	*io = (struct dev_io){ .magic = DEV_IO_MAGIC, .buffer = page, .bytes = SEG_PAGE };
	assert_int_equal(ram->dev.ops->submit(queue, &io, 1), 1);
	return ram->dev.ops->reap(queue, &done, 1, false) == 1;
}

static void a_late_read_comes_by_the_clock_and_one_that_never_ends_when_it_is_let_go(void **state)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);
	void *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	int events = eventfd(0, EFD_NONBLOCK);
	struct dev_queue *queue;
	struct dev_io io, *done;
	struct clk clock;

	(void)state;
	clk_scripted_init(&clock, 1000);
	ram->clock = &clock;
	ram->faults.late_ns = 5000000;
	assert_int_equal(ram->dev.ops->queue_create(&ram->dev, 4, events, &queue), 0);
	assert_int_equal(ram_fault_arm_text(ram, "read_late=after:1"), FS_OK);
	assert_true(reads_at_once(ram, queue, &io, page));
	assert_false(reads_at_once(ram, queue, &io, page));
	clk_scripted_advance(&clock, 5000);
	assert_int_equal(ram->dev.ops->reap(queue, &done, 1, false), 1);
	assert_int_equal(ram_fault_arm_text(ram, "read_never=always"), FS_OK);
	assert_false(reads_at_once(ram, queue, &io, page));
	clk_scripted_advance(&clock, 3600000000);
	assert_int_equal(ram->dev.ops->reap(queue, &done, 1, false), 0);
	ram->hold = false;
	assert_int_equal(ram->dev.ops->reap(queue, &done, 1, false), 1);
	ram->dev.ops->queue_destroy(queue);
	close(events);
	mem_free(page);
	ram->dev.ops->close(&ram->dev);
}

/* ---- writes ---------------------------------------------------------------------------------- */

struct found {
	const struct batch *batch;
	unsigned good;
};

/* A record is one of the batch, and is what was written, byte for byte. */
static bool check_record(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct found *found = context;
	uint64_t number, first = found->batch->objects[0].number;
	char key[FIXTURE_KEY_MAX] = "";

	(void)offset, (void)extent;
	assert_in_range(record->key_length, 5, FIXTURE_KEY_MAX - 1);
	memcpy(key, record->key, record->key_length);
	number = strtoull(key + 4, NULL, 10);
	assert_in_range(number, first, first + found->batch->count - 1);
	assert_is_object(&found->batch->objects[number - first], record);
	found->good++;
	return true;
}

static unsigned walk(struct flash *flash, const struct batch *batch, uint32_t segment, int *rc)
{
	struct found found = { .batch = batch };
	uint64_t visited;

	*rc = seg_walk(flash->seg, segment, check_record, &found, &visited);
	return found.good;
}

/* A write that the device reports costs the place and nothing else: the objects stay with the caller, who writes them
   into the next one. */
static void a_write_that_fails_retires_its_place(void **state)
{
	static const char *const faults[] = { "write_eio=after:2", "write_enospc=after:2", "write_short=after:2",
					      "write_eio=after:0", "write_enospc=after:5", "write_short=after:7" };

	(void)state;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		uint64_t errors = ctr_sum(CTR_flash_write_errors);
		struct seg_status status;
		struct flash flash;
		struct batch batch;
		uint32_t segment;
		int rc;

		assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
		assert_int_equal(ram_fault_arm_text(flash.ram, faults[i]), FS_OK);
		batch_make(&batch, 1000, OBJECTS, 0, 150);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_EIO);
		assert_int_equal(ctr_sum(CTR_flash_write_errors), errors + 1);
		seg_get_status(flash.seg, &status);
		assert_int_equal(status.retired, 1);
		assert_false(status.offline);
		seg_plan_fini(&batch.plan);
		batch.paced = 0;
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
		assert_int_equal(segment, 1);
		assert_int_equal(walk(&flash, &batch, segment, &rc), batch.plan.count);
		assert_int_equal(rc, FS_OK);
		batch_fini(&batch);
		flash_close(&flash);
	}
}

/* A write that the device doesn't report is found when it is read: whatever record comes is the one that was written. */
static void a_write_that_is_lost_or_damaged_is_found_at_the_read(void **state)
{
	static const char *const faults[] = { "write_lost", "write_flip" };
	unsigned lost = 0;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned i = 0; i < 20; i++) {
		char text[32];
		struct flash flash;
		struct batch batch;
		uint32_t segment;
		unsigned good;
		int rc;

		assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, NULL), FS_OK);
		snprintf(text, sizeof(text), "%s=after:%u", faults[i % 2], i / 2);
		assert_int_equal(ram_fault_arm_text(flash.ram, text), FS_OK);
		batch_make(&batch, 1000, OBJECTS, 0, 150);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
		good = walk(&flash, &batch, segment, &rc);
		assert_true(good <= batch.plan.count);
		lost += good < batch.plan.count;
		batch_fini(&batch);
		flash_close(&flash);
	}
	log_set_level(LOG_LEVEL_NOTICE);
	assert_true(lost >= 10); /* the others hit what no walk needs */
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void a_read_that_fails_gives_no_wrong_record(void **state)
{
	static const char *const faults[] = { "read_eio=every:3", "read_short=every:2", "read_flip=every:1",
					      "read_old=every:1", "read_flip=prob:300" };

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct flash flash;
		struct batch batch;
		uint32_t segment;
		int rc;

		assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, NULL), FS_OK);
		flash.seg->health.budget = HEALTH_ERRORS_MAX;
		batch_make(&batch, 1000, OBJECTS, 0, 150);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
		assert_int_equal(ram_fault_arm_text(flash.ram, faults[i]), FS_OK);
		for (unsigned round = 0; round < 10; round++)
			(void)walk(&flash, &batch, segment, &rc);
		ram_fault_disarm_all(flash.ram);
		clk_scripted_advance(&flash.clock, 60000000);
		assert_true(health_online(flash.seg)); /* there may have been too many errors */
		assert_int_equal(walk(&flash, &batch, segment, &rc), batch.plan.count);
		assert_int_equal(rc, FS_OK);
		batch_fini(&batch);
		flash_close(&flash);
	}
	log_set_level(LOG_LEVEL_NOTICE);
}

/* ---- the power ------------------------------------------------------------------------------- */

struct handed_out {
	uint64_t cas_end, sequence;
	bool opened;
};

/* A life on a device that forgets what was not flushed, until the power goes in the write after so many. */
static struct handed_out live_until_the_power_goes(uint8_t *memory, enum ram_fault cut, uint64_t writes)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, memory);
	struct handed_out out = { 0 };
	struct flash flash;

	ram->faults.forgetful = true;
	ram_fault_arm(ram, cut, FAULT_AFTER, writes);
	if (flash_open_on(&flash, ram, LIFE_SEGMENT, 16) != FS_OK)
		return out;
	out.opened = true;
	out.sequence = flash.seg->next_sequence;
	for (unsigned i = 0; i < 3; i++) {
		struct batch batch;
		uint64_t first, end;
		uint32_t segment;

		if (seg_reserve_cas(flash.seg, 100, &first, &end) == FS_OK)
			out.cas_end = end;
		batch_make(&batch, 1, OBJECTS, 0, 100);
		if (i < 2 && batch_write(&batch, &flash, &segment) == FS_OK)
			out.sequence = batch.plan.sequence + 1;
		batch_fini(&batch);
	}
	ram_power_off(ram); /* at the latest now: what was not flushed is gone */
	flash_close(&flash);
	return out;
}

/* Wherever the power goes: the next start finds the flash, and gives out neither an id nor a sequence again. */
static void nothing_that_was_handed_out_comes_again_wherever_the_power_goes(void **state)
{
	static const enum ram_fault cuts[] = { RAM_FAULT_power_cut_512, RAM_FAULT_power_cut_4096 };

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned kind = 0; kind < 2; kind++)
		for (uint64_t writes = 0; writes < 40; writes++) {
			uint8_t *memory = ram_memory(LIFE_BYTES);
			struct life before = live_once(memory, 10), after;
			struct handed_out out = live_until_the_power_goes(memory, cuts[kind], writes);

			after = live_once(memory, 10);
			assert_true(same_flash(&before, &after));
			assert_true(after.first_cas >= before.first_cas + 10);
			assert_true(after.first_cas >= out.cas_end);
			assert_true(after.sequence >= out.sequence && after.sequence > before.sequence);
			assert_true(out.opened || writes < 4);
			mem_free(memory);
		}
	log_set_level(LOG_LEVEL_NOTICE);
}

/* What was flushed before is there, and the superblock after it is whole: a failed flush counts as a failed write. */
static void a_flush_that_fails_gives_out_no_ids(void **state)
{
	uint64_t first, end, next;
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	assert_int_equal(seg_reserve_cas(flash.seg, 100, &first, &end), FS_OK);
	assert_int_equal(ram_fault_arm_text(flash.ram, "flush_eio=after:1"), FS_OK);
	assert_int_equal(seg_reserve_cas(flash.seg, 100, &first, &next), FS_EIO);
	assert_int_equal(seg_reserve_cas(flash.seg, 100, &first, &next), FS_OK);
	assert_true(first >= end);
	flash_close(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_texts_are_refused),
		cmocka_unit_test(a_countdown_takes_the_request_that_it_names),
		cmocka_unit_test(a_late_read_comes_by_the_clock_and_one_that_never_ends_when_it_is_let_go),
		cmocka_unit_test(a_write_that_fails_retires_its_place),
		cmocka_unit_test(a_write_that_is_lost_or_damaged_is_found_at_the_read),
		cmocka_unit_test(a_read_that_fails_gives_no_wrong_record),
		cmocka_unit_test(nothing_that_was_handed_out_comes_again_wherever_the_power_goes),
		cmocka_unit_test(a_flush_that_fails_gives_out_no_ids),
	};

	return cmocka_run_group_tests_name("ram_faults", tests, NULL, NULL);
}
