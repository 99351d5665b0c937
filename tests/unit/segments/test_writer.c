/* SPDX-License-Identifier: BSD-3-Clause */
/* seg_write: failures retire the place until the device is back, power cuts leave no segment that looks whole. */
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "segments/writer_internal.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (256u << 10)

static void begin(struct batch *batch, struct flash *flash)
{
	batch_make(batch, 1, 1000, 0, 500);
	assert_int_equal(batch_plan(batch, flash->seg, SEG_PLACE_SWEEP), FS_OK);
}

static int write_it(struct flash *flash, uint32_t segment, struct batch *batch, uint64_t *written)
{
	return seg_write(flash->seg, segment, &batch->plan, NULL, 0, &batch_ops, batch, written);
}

static bool count_record(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	(void)offset, (void)extent, (void)record;
	++*(uint64_t *)context;
	return true;
}

static void the_wrong_segment_or_plan_is_refused(void **state)
{
	struct flash flash;
	struct batch batch;
	uint64_t written;
	uint8_t filter[1] = { 0 };

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	begin(&batch, &flash);
	assert_int_equal(write_it(&flash, 1, &batch, &written), FS_EINVAL);
	batch.plan.sequence++;
	assert_int_equal(write_it(&flash, 0, &batch, &written), FS_EINVAL);
	batch.plan.sequence--;
	assert_int_equal(seg_write(flash.seg, 0, &batch.plan, filter, 1u << 20, &batch_ops, &batch, &written),
			 FS_EINVAL);
	assert_int_equal(written, 0);
	assert_int_equal(write_it(&flash, 0, &batch, &written), FS_OK);
	/* A plan is used once. */
	assert_int_equal(write_it(&flash, 1, &batch, &written), FS_EINVAL);
	batch_fini(&batch);
	flash_close(&flash);
}

static void a_failed_write_retires_the_place(void **state)
{
	struct flash flash;
	struct batch batch;
	struct seg_status status;
	uint64_t written, before = ctr_sum(CTR_flash_write_errors);
	enum seg_state what;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	begin(&batch, &flash);
	flash.ram->limit = LAYOUT_SUPER_BYTES + SEGMENT / 2; /* as a full device */
	assert_int_equal(write_it(&flash, 0, &batch, &written), FS_EIO);
	assert_int_equal(ctr_sum(CTR_flash_write_errors), before + 1);
	assert_int_equal(seg_sequence(flash.seg, 0), 0);
	seg_get_status(flash.seg, &status);
	assert_int_equal(status.retired, 1);
	assert_int_equal(seg_next(flash.seg, &next, &what), FS_OK);
	assert_int_equal(next, 1);
	flash.ram->limit = UINT64_MAX;
	seg_plan_fini(&batch.plan);
	batch.paced = 0;
	assert_int_equal(batch_write(&batch, &flash, &next), FS_OK);
	assert_int_equal(next, 1);
	batch_fini(&batch);
	flash_close(&flash);
}

static void the_fault_point_fails_each_chunk(void **state)
{
	struct flash flash;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	assert_int_equal(flash_open_ram(&flash, 16, SEGMENT, 16, NULL), FS_OK);
	flash.seg->health.budget = HEALTH_ERRORS_MAX;
	for (uint64_t chunk = 0; chunk < 9; chunk++) {
		struct batch batch;
		uint32_t segment;

		batch_make(&batch, 1, 1000, 0, 500);
		fault_arm(FAULT_device_write_eio, FAULT_AFTER, chunk);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_EIO);
		batch_fini(&batch);
	}
	fault_disarm_all();
	flash_close(&flash);
}

/* A write into the next place, whatever it was; how it ended. */
static int write_next(struct flash *flash, uint32_t *segment, uint64_t *sequence)
{
	struct batch batch;
	enum seg_state what;
	int rc = seg_next(flash->seg, segment, &what);

	if (rc != FS_OK)
		return rc;
	if (what == SEG_LIVE) {
		seg_reclaim_begin(flash->seg, *segment);
		assert_int_equal(seg_reclaim_end(flash->seg, *segment, 0), FS_OK);
	}
	batch_make(&batch, 1, 1000, 0, 500);
	rc = batch_write(&batch, flash, segment);
	*sequence = batch.plan.sequence;
	batch_fini(&batch);
	return rc;
}

static void assert_status(const struct flash *flash, uint32_t free, uint32_t retired, const char *reason)
{
	struct seg_status status;

	seg_get_status(flash->seg, &status);
	assert_int_equal(status.free, free);
	assert_int_equal(status.retired, retired);
	assert_int_equal(status.offline, reason != NULL);
	assert_true(!reason || strstr(status.offline_reason, reason));
}

static void with_all_retired_the_device_is_offline(void **state)
{
	struct flash flash;
	uint64_t sequence;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	flash.ram->fail_writes = true;
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EIO);
	assert_status(&flash, 1, 1, NULL);
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EIO);
	assert_status(&flash, 0, 2, "no segment is left");
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EOFFLINE);
	clk_scripted_advance(&flash.clock, 1000000);
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EOFFLINE); /* the probe fails */
	assert_status(&flash, 0, 2, "no segment is left");
	flash_close(&flash);
}

static void retired_places_are_free_when_the_device_is_back(void **state)
{
	struct flash flash;
	uint64_t sequence, last;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	flash.ram->fail_writes = true;
	assert_int_equal(write_next(&flash, &next, &last), FS_EIO);
	assert_int_equal(write_next(&flash, &next, &last), FS_EIO);
	flash.ram->fail_writes = false;
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EOFFLINE); /* its time has not come */
	clk_scripted_advance(&flash.clock, 1000000);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(write_next(&flash, &next, &sequence), FS_OK);
		assert_int_equal(next, i % 2);
		assert_true(sequence > last);
		last = sequence;
	}
	assert_status(&flash, 0, 0, NULL);
	flash_close(&flash);
}

/* The superblock can be written and segments can't: the time between attempts grows all the same, until
   one of them succeeds. */
static void the_back_off_grows_until_a_segment_is_written(void **state)
{
	struct flash flash;
	uint64_t sequence;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, NULL), FS_OK);
	flash.ram->limit = LAYOUT_SUPER_BYTES;
	for (unsigned round = 0; round < 9; round++) {
		uint64_t seconds = round < 6 ? 1u << round : 60;

		assert_int_equal(write_next(&flash, &next, &sequence), FS_EIO);
		clk_scripted_advance(&flash.clock, seconds * 1000000 - 1000);
		assert_int_equal(write_next(&flash, &next, &sequence), FS_EOFFLINE);
		clk_scripted_advance(&flash.clock, 1000);
	}
	flash.ram->limit = UINT64_MAX;
	assert_int_equal(write_next(&flash, &next, &sequence), FS_OK);
	flash.ram->limit = LAYOUT_SUPER_BYTES;
	assert_int_equal(write_next(&flash, &next, &sequence), FS_EIO);
	clk_scripted_advance(&flash.clock, 1000000);
	flash.ram->limit = UINT64_MAX;
	assert_int_equal(write_next(&flash, &next, &sequence), FS_OK);
	flash_close(&flash);
}

/* Retired between live ones, over what was reclaimed: half of it new, half of it old. */
static void a_place_half_overwritten_comes_back_in_order(void **state)
{
	struct flash flash;
	uint64_t sequence[3], last, visited, seen = 0;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(write_next(&flash, &next, &sequence[i]), FS_OK);
	flash.ram->limit = LAYOUT_SUPER_BYTES + SEGMENT / 2;
	assert_int_equal(write_next(&flash, &next, &last), FS_EIO);
	flash.ram->limit = UINT64_MAX;
	assert_int_equal(next, 0);
	assert_status(&flash, 0, 1, NULL);
	/* An offline period for another reason. */
	for (int i = 0; i < 6; i++)
		health_error(flash.seg, "a test", 5);
	assert_status(&flash, 0, 1, "a test failed");
	clk_scripted_advance(&flash.clock, 1000000);
	for (uint32_t i = 1; i < 4; i++) {
		uint64_t before = last;

		assert_int_equal(write_next(&flash, &next, &last), FS_OK);
		assert_int_equal(next, i % 3);
		assert_true(last > before);
		if (i == 1)
			assert_status(&flash, 1, 0, NULL); /* place 0, which the cursor has passed */
	}
	/* Place 0 holds the new ones alone. */
	assert_false(seg_pin(flash.seg, 0, sequence[0]));
	assert_int_equal(seg_sequence(flash.seg, 0), last);
	assert_int_equal(seg_walk(flash.seg, 0, count_record, &seen, &visited), FS_OK);
	assert_int_equal(visited, seen);
	assert_true(seen > 0);
	flash_close(&flash);
}

/* Cut after every number of pages: never a valid footer over a segment that is not whole. */
static void a_torn_segment_has_no_footer(void **state)
{
	const uint64_t pages = SEGMENT / SEG_PAGE;
	uint8_t *memory = ram_memory(LAYOUT_SUPER_BYTES + SEGMENT);

	(void)state;
	for (uint64_t power = 0; power <= pages; power++) {
		struct flash flash;
		struct batch batch;
		struct layout_footer footer;
		uint64_t written;
		int rc;

		memset(memory, 0, LAYOUT_SUPER_BYTES + SEGMENT);
		assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, memory), FS_OK);
		begin(&batch, &flash);
		flash.ram->power = power;
		rc = write_it(&flash, 0, &batch, &written);
		assert_int_equal(rc, power >= pages ? FS_OK : FS_EIO);
		memcpy(&footer, memory + LAYOUT_SUPER_BYTES + SEGMENT - sizeof(footer), sizeof(footer));
		assert_int_equal(footer_valid(flash.seg, &footer, batch.plan.sequence), rc == FS_OK);
		batch_fini(&batch);
		flash_close(&flash);
	}
	mem_free(memory);
}

static void an_offline_device_is_tried_with_back_off(void **state)
{
	struct flash flash;
	struct batch batch;
	struct seg_status status;
	enum seg_state what;
	uint64_t written, before;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 8, SEGMENT, 16, NULL), FS_OK);
	flash.ram->fail_writes = true;
	for (int i = 0; i < 5; i++) {
		begin(&batch, &flash);
		assert_int_equal(seg_next(flash.seg, &next, &what), FS_OK);
		assert_int_equal(write_it(&flash, next, &batch, &written), FS_EIO);
		batch_fini(&batch);
	}
	seg_get_status(flash.seg, &status);
	assert_true(status.offline);
	assert_non_null(strstr(status.offline_reason, "a write failed"));
	begin(&batch, &flash);
	assert_int_equal(seg_next(flash.seg, &next, &what), FS_OK);
	before = flash.ram->writes;
	assert_int_equal(write_it(&flash, next, &batch, &written), FS_EOFFLINE);
	assert_int_equal(flash.ram->writes, before); /* not even tried */
	clk_scripted_advance(&flash.clock, 1000000);
	assert_int_equal(write_it(&flash, next, &batch, &written), FS_EOFFLINE);
	assert_int_equal(flash.ram->writes, before + 1); /* the probe */
	clk_scripted_advance(&flash.clock, 1000000);
	assert_int_equal(write_it(&flash, next, &batch, &written), FS_EOFFLINE);
	assert_int_equal(flash.ram->writes, before + 1); /* the next one after two seconds */
	clk_scripted_advance(&flash.clock, 1000000);
	flash.ram->fail_writes = false;
	assert_int_equal(write_it(&flash, next, &batch, &written), FS_OK);
	seg_get_status(flash.seg, &status);
	assert_false(status.offline);
	batch_fini(&batch);
	flash_close(&flash);
}

static void errors_far_apart_are_no_reason(void **state)
{
	struct flash flash;
	struct seg_status status;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, NULL), FS_OK);
	for (int i = 0; i < 50; i++) {
		health_error(flash.seg, "a test", 5);
		clk_scripted_advance(&flash.clock, 16000000); /* four within a minute: the budget */
	}
	seg_get_status(flash.seg, &status);
	assert_false(status.offline);
	flash_close(&flash);
}

static void a_block_device_is_discarded_in_steps(void **state)
{
	struct ram_device *ram = ram_device_create(LAYOUT_SUPER_BYTES + (80u << 20), NULL);
	struct flash flash;
	struct batch batch;
	uint32_t segment;

	(void)state;
	ram->dev.block_device = true;
	assert_int_equal(flash_open_on(&flash, ram, 80u << 20, 16), FS_OK);
	batch_make(&batch, 1, 100, 10, 20);
	assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
	assert_int_equal(ram->discards, 3);
	assert_int_equal(ram->largest_discard, 32u << 20);
	batch_fini(&batch);
	flash_close(&flash);
}

static void bytes_and_hashes_are_counted(void **state)
{
	struct flash flash;
	struct batch batch;
	uint64_t written, bytes, segments, hashes;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	begin(&batch, &flash);
	bytes = ctr_sum(CTR_flash_bytes_written);
	segments = ctr_sum(CTR_segments_written);
	hashes = ctr_sum(CTR_segment_hashes);
	assert_int_equal(write_it(&flash, 0, &batch, &written), FS_OK);
	assert_int_equal(written, SEGMENT);
	assert_int_equal(ctr_sum(CTR_flash_bytes_written) - bytes, SEGMENT);
	assert_int_equal(ctr_sum(CTR_segments_written) - segments, 1);
	assert_int_equal(ctr_sum(CTR_segment_hashes) - hashes, batch.plan.stats.hashes);
	batch_fini(&batch);
	flash_close(&flash);
}

static struct flash *paused_flash;

/* A device that takes 7 us and tells only when it is waited for, and then a pause. */
static void wait_and_pause(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	clk_scripted_advance(&paused_flash->clock, 7);
	seg_write_wait(paused_flash->seg);
	clk_scripted_advance(&paused_flash->clock, 100000);
}

/* The pause between chunks is no part of what they take. The superblock's writes count too. */
static void what_writes_take(void **state)
{
	const struct seg_writer_ops ops = { .record = batch_ops.record, .pace = wait_and_pause };
	struct hist *earlier, *took;
	struct flash flash;
	struct batch batch;
	uint64_t written, first, last;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	begin(&batch, &flash);
	seg_write_wait(flash.seg); /* nothing is being written */
	flash.ram->hold = true;
	paused_flash = &flash;
	earlier = durations_since(LAT_flash_write, NULL);
	assert_int_equal(seg_write(flash.seg, 0, &batch.plan, NULL, 0, &ops, &batch, &written), FS_OK);
	took = durations_since(LAT_flash_write, earlier);
	assert_int_equal(took->count,
			 (SEGMENT - SEG_PAGE + stream_chunk_bytes(SEGMENT) - 1) / stream_chunk_bytes(SEGMENT) + 1);
	assert_int_equal(took->sum, took->count * 7000);
	hist_merge(earlier, took);
	hist_destroy(took);
	assert_int_equal(seg_reserve_cas(flash.seg, 100, &first, &last), FS_OK);
	took = durations_since(LAT_flash_write, earlier);
	assert_int_equal(took->count, LAYOUT_SUPER_COPIES);
	hist_destroy(took);
	hist_destroy(earlier);
	batch_fini(&batch);
	flash_close(&flash);
}

static void gaps_are_zero(void **state)
{
	uint8_t *memory = ram_memory(LAYOUT_SUPER_BYTES + SEGMENT);
	struct flash flash;
	struct batch batch;
	uint64_t at = SEG_PAGE, written;

	(void)state;
	memset(memory + LAYOUT_SUPER_BYTES, 0xaa, SEGMENT);
	assert_int_equal(flash_open_ram(&flash, 1, SEGMENT, 16, memory), FS_OK);
	begin(&batch, &flash);
	assert_int_equal(write_it(&flash, 0, &batch, &written), FS_OK);
	for (uint32_t n = 0; n < batch.plan.count; n++) {
		for (; at < batch.plan.placed[n].offset; at++)
			assert_int_equal(memory[LAYOUT_SUPER_BYTES + at], 0);
		at += batch.candidates[batch.plan.placed[n].candidate].length;
	}
	batch_fini(&batch);
	flash_close(&flash);
	mem_free(memory);
}

static void staging_follows_the_segment(void **state)
{
	(void)state;
	assert_true(writer_staging_bytes(SEG_MIN_BYTES) < SEG_MIN_BYTES);
	assert_in_range(writer_staging_bytes(SEG_MAX_BYTES), 4u << 20, 12u << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wrong_segment_or_plan_is_refused),
		cmocka_unit_test(a_failed_write_retires_the_place),
		cmocka_unit_test(the_fault_point_fails_each_chunk),
		cmocka_unit_test(with_all_retired_the_device_is_offline),
		cmocka_unit_test(retired_places_are_free_when_the_device_is_back),
		cmocka_unit_test(the_back_off_grows_until_a_segment_is_written),
		cmocka_unit_test(a_place_half_overwritten_comes_back_in_order),
		cmocka_unit_test(a_torn_segment_has_no_footer),
		cmocka_unit_test(an_offline_device_is_tried_with_back_off),
		cmocka_unit_test(errors_far_apart_are_no_reason),
		cmocka_unit_test(a_block_device_is_discarded_in_steps),
		cmocka_unit_test(bytes_and_hashes_are_counted),
		cmocka_unit_test(what_writes_take),
		cmocka_unit_test(gaps_are_zero),
		cmocka_unit_test(staging_follows_the_segment),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
