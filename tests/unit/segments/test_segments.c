/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: refused configurations, what a start finds and makes, and reserves that never repeat. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segments/writer_internal.h"
#include "tests/unit/segments/lives.h"

static struct clk test_clock;

static struct seg_config good_config(struct dev *device)
{
	clk_scripted_init(&test_clock, 1000000);
	return (struct seg_config){
		.clock = &test_clock,
		.device = device,
		.segment_bytes = LIFE_SEGMENT,
		.functions = 16,
	};
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Opens with one thing changed. The device is closed all the same, which the sanitizer sees. */
static int open_changed(unsigned what)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);
	struct seg_config config = good_config(&ram->dev);
	void *table = mem_must_zalloc(seg_region_bytes(3, 0, false));
	struct segments *seg = (struct segments *)table;
	int rc;

	if (what == 0)
		config.clock = NULL;
	if (what == 1)
		config.functions = 0;
	if (what == 2)
		config.functions = SEG_MAX_FUNCTIONS + 1;
	if (what == 3)
		config.segment_bytes = SEG_MIN_BYTES - SEG_PAGE;
	if (what == 4)
		config.segment_bytes = SEG_MAX_BYTES + SEG_PAGE;
	if (what == 5)
		config.segment_bytes = LIFE_SEGMENT + SEG_PAGE / 2;
	if (what == 6)
		config.segment_bytes = 0;
	rc = seg_open(&seg, &config, table);
	if (rc != FS_OK)
		assert_null(seg);
	seg_close(seg);
	mem_free(table);
	return rc;
}

static void values_out_of_range_are_refused(void **state)
{
	(void)state;
	for (unsigned what = 0; what < 7; what++)
		assert_int_equal(open_changed(what), FS_EINVAL);
	assert_int_equal(open_changed(7), FS_OK);
}

static void a_device_without_room_for_a_segment_is_refused(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_on(&flash, ram_device_create(LAYOUT_SUPER_BYTES + LIFE_SEGMENT - SEG_PAGE, NULL),
				       LIFE_SEGMENT, 16),
			 FS_ERANGE);
	assert_int_equal(
		flash_open_on(&flash, ram_device_create(LAYOUT_SUPER_BYTES + LIFE_SEGMENT, NULL), LIFE_SEGMENT, 16),
		FS_OK);
	flash_close(&flash);
	seg_close(NULL);
}

static void a_start_on_a_dead_device_fails(void **state)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);
	struct flash flash;

	(void)state;
	ram->fail_reads = true;
	assert_int_equal(flash_open_on(&flash, ram, LIFE_SEGMENT, 16), FS_EIO);
	ram = ram_device_create(LIFE_BYTES, NULL);
	ram->fail_writes = true;
	assert_int_equal(flash_open_on(&flash, ram, LIFE_SEGMENT, 16), FS_EIO);
}

static void the_superblock_takes_its_share_of_the_flash(void **state)
{
	static const struct {
		uint64_t flash, segment;
		uint32_t count;
	} cases[] = {
		{ 0, LIFE_SEGMENT, 0 },
		{ LAYOUT_SUPER_BYTES, LIFE_SEGMENT, 0 },
		{ LAYOUT_SUPER_BYTES + LIFE_SEGMENT - 1, LIFE_SEGMENT, 0 },
		{ LAYOUT_SUPER_BYTES + LIFE_SEGMENT, LIFE_SEGMENT, 1 },
		{ LIFE_BYTES + LIFE_SEGMENT - 1, LIFE_SEGMENT, 2 },
		{ LIFE_BYTES, 0, 0 },
		{ UINT64_MAX, LIFE_SEGMENT, SEG_MAX_SEGMENTS },
		{ LAYOUT_SUPER_BYTES + UINT64_C(16384) * LIFE_SEGMENT, LIFE_SEGMENT, SEG_MAX_SEGMENTS },
		{ LAYOUT_SUPER_BYTES + UINT64_C(16383) * LIFE_SEGMENT - 1, LIFE_SEGMENT, SEG_MAX_SEGMENTS - 1 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(seg_count_for(cases[i].flash, cases[i].segment), cases[i].count);
}

/* ---- what a start makes ---------------------------------------------------------------------- */

/* Whatever the table's memory held: every start is cold. */
static void a_start_has_free_segments_alone(void **state)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES, NULL);
	struct seg_config config = good_config(&ram->dev);
	void *table = mem_must_zalloc(seg_region_bytes(2, 0, false));
	struct seg_status status;
	struct segments *seg;

	(void)state;
	memset(table, 0xff, seg_region_bytes(2, 0, false));
	assert_int_equal(seg_open(&seg, &config, table), FS_OK);
	seg_get_status(seg, &status);
	assert_int_equal(status.total, 2);
	assert_int_equal(status.free, 2);
	assert_int_equal(status.live + status.retired, 0);
	assert_int_equal(status.records_live, 0);
	assert_int_equal(status.record_bytes_live, 0);
	assert_int_equal(status.residence_ms, 0);
	assert_false(status.offline);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(seg_sequence(seg, i), 0);
	seg_close(seg);
	mem_free(table);
}

static void the_figures_are_those_of_device_and_superblock(void **state)
{
	struct ram_device *ram = ram_device_create(LIFE_BYTES + 100 * SEG_PAGE, NULL);
	struct flash flash;
	struct seg_info info;

	(void)state;
	ram->dev.block_device = true;
	assert_int_equal(flash_open_on(&flash, ram, 2 * LIFE_SEGMENT, 7), FS_OK);
	seg_get_info(flash.seg, &info);
	assert_int_equal(info.segments, seg_count_for(LIFE_BYTES + 100 * SEG_PAGE, 2 * LIFE_SEGMENT));
	assert_int_equal(info.segment_bytes, 2 * LIFE_SEGMENT);
	assert_int_equal(info.flash_bytes, LIFE_BYTES + 100 * SEG_PAGE);
	assert_true(info.hash_seed == flash.seg->super.hash_seed);
	assert_memory_equal(info.uuid, flash.seg->super.uuid, sizeof(info.uuid));
	assert_true(info.direct && info.block_device && !info.offline);
	assert_true(info.staging_bytes > 0 && info.staging_bytes == writer_staging_bytes(2 * LIFE_SEGMENT));
	assert_int_equal(flash.seg->super.functions, 7);
	assert_int_equal(flash.seg->super.clean_epoch, 0);
	flash_close(&flash);
}

static void another_layout_is_another_flash(void **state)
{
	uint8_t *memory = ram_memory(LIFE_BYTES + LIFE_SEGMENT);
	struct life before = live_once(memory, 10), after = { .epoch = 0 };
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, LIFE_SEGMENT, 16, memory), FS_OK);
	memcpy(after.uuid, flash.seg->super.uuid, sizeof(after.uuid));
	assert_false(same_flash(&before, &after));
	assert_int_equal(flash.seg->super.cas_end, before.first_cas + 10);
	assert_true(flash.seg->next_sequence > before.sequence);
	flash_close(&flash);
	mem_free(memory);
}

/* ---- reserves -------------------------------------------------------------------------------- */

static void cas_ranges_follow_each_other(void **state)
{
	struct flash flash;
	uint64_t first, end, last_end;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, LIFE_SEGMENT, 16, NULL), FS_OK);
	assert_int_equal(seg_reserve_cas(flash.seg, 0, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, UINT64_MAX, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &last_end), FS_OK);
	flash.ram->fail_writes = true;
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_EIO);
	flash.ram->fail_writes = false;
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_OK);
	assert_true(first >= last_end);
	seg_skip_cas(flash.seg, 1000);
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_OK);
	assert_int_equal(first, 1000);
	seg_return_cas(flash.seg, 1002);
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_OK);
	assert_int_equal(first, 1002);
	flash_close(&flash);
}

/* The last id is given out, and none after it. */
static void cas_ids_end_below_two_to_the_53rd(void **state)
{
	const uint64_t end_of_all = UINT64_C(1) << 53;
	struct flash flash;
	uint64_t first, end;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, LIFE_SEGMENT, 16, NULL), FS_OK);
	flash.seg->super.cas_end = end_of_all - 10;
	assert_int_equal(seg_reserve_cas(flash.seg, 11, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, end_of_all, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, 10, &first, &end), FS_OK);
	assert_true(first == end_of_all - 10 && end == end_of_all);
	assert_int_equal(seg_reserve_cas(flash.seg, 1, &first, &end), FS_ERANGE);
	flash_close(&flash);
}

static void nothing_repeats_over_starts(void **state)
{
	uint8_t *memory = ram_memory(LIFE_BYTES);
	struct life before = live_once(memory, 1000);

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct life after = live_once(memory, 1000);

		assert_true(same_flash(&before, &after));
		assert_memory_equal(before.secret, after.secret, sizeof(before.secret));
		assert_int_equal(after.hash_seed, before.hash_seed);
		assert_int_equal(after.first_cas, before.first_cas + 1000);
		assert_int_equal(after.epoch, before.epoch + 1);
		assert_true(after.sequence > before.sequence);
		before = after;
	}
	mem_free(memory);
}

/* The higher end of the two copies of the superblock, each of which is whole between two writes. */
static uint64_t durable_sequence_end(const uint8_t *memory)
{
	struct layout_super copies[2];

	memcpy(&copies[0], memory, sizeof(copies[0]));
	memcpy(&copies[1], memory + LAYOUT_SUPER_COPY_OFFSET, sizeof(copies[1]));
	return copies[0].sequence_end > copies[1].sequence_end ? copies[0].sequence_end : copies[1].sequence_end;
}

/* More segments than a block of sequence numbers has, over two starts. */
static void sequences_outlast_their_reserve(void **state)
{
	uint8_t *memory = ram_memory(LIFE_BYTES);
	uint64_t last = 0;

	(void)state;
	for (int start = 0; start < 2; start++) {
		struct flash flash;

		assert_int_equal(flash_open_ram(&flash, 2, LIFE_SEGMENT, 16, memory), FS_OK);
		for (int i = 0; i < 1100; i++) {
			struct batch batch;
			enum seg_state what;
			uint32_t segment;

			assert_int_equal(seg_next(flash.seg, &segment, &what), FS_OK);
			if (what == SEG_LIVE) {
				seg_reclaim_begin(flash.seg, segment);
				assert_int_equal(seg_reclaim_end(flash.seg, segment, 0), FS_OK);
			}
			batch_make(&batch, 1, 1, 10, 20);
			assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
			assert_true(batch.plan.sequence > last);
			last = batch.plan.sequence;
			assert_true(durable_sequence_end(memory) > last);
			batch_fini(&batch);
		}
		flash_close(&flash);
	}
	mem_free(memory);
}

/* Nothing may use a sequence that is not durable; the next try reserves it. */
static void a_sequence_that_cannot_be_reserved_is_not_used(void **state)
{
	uint8_t *memory = ram_memory(LIFE_BYTES);
	struct flash flash;
	uint64_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, LIFE_SEGMENT, 16, memory), FS_OK);
	assert_int_equal(seg_reserve_sequence(flash.seg), FS_OK);
	next = flash.seg->next_sequence = flash.seg->super.sequence_end; /* as if all of the reserve were used */
	flash.ram->fail_writes = true;
	assert_int_equal(seg_reserve_sequence(flash.seg), FS_EIO);
	assert_int_equal(seg_reserve_sequence(flash.seg), FS_EIO);
	assert_int_equal(flash.seg->next_sequence, next);
	flash.ram->fail_writes = false;
	assert_int_equal(seg_reserve_sequence(flash.seg), FS_OK);
	assert_int_equal(flash.seg->next_sequence, next);
	assert_true(durable_sequence_end(memory) > next);
	flash_close(&flash);
	mem_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(a_device_without_room_for_a_segment_is_refused),
		cmocka_unit_test(a_start_on_a_dead_device_fails),
		cmocka_unit_test(the_superblock_takes_its_share_of_the_flash),
		cmocka_unit_test(a_start_has_free_segments_alone),
		cmocka_unit_test(the_figures_are_those_of_device_and_superblock),
		cmocka_unit_test(another_layout_is_another_flash),
		cmocka_unit_test(cas_ranges_follow_each_other),
		cmocka_unit_test(cas_ids_end_below_two_to_the_53rd),
		cmocka_unit_test(nothing_repeats_over_starts),
		cmocka_unit_test(sequences_outlast_their_reserve),
		cmocka_unit_test(a_sequence_that_cannot_be_reserved_is_not_used),
	};

	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
