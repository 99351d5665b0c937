/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment table over a clean end: the same segments, and no row that leads out of its segment. */
#include "tests/unit/segments/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define SEGMENTS 4u
#define SEGMENT (256u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + SEGMENTS * SEGMENT)
#define RECORDS 300

static char path[200];

/* A flash in memory with the segments 0 and 1 written. */
struct run {
	uint8_t *memory;
	struct flash flash;
	uint64_t sequence[2];
	uint32_t objects;
};

static void open_again(struct run *run, uint32_t segments)
{
	assert_int_equal(flash_open_ram(&run->flash, segments, SEGMENT, 16, run->memory), FS_OK);
}

static int begin(void **state)
{
	static struct run run;

	snprintf(path, sizeof(path), "%.100s/seg-restart-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	run = (struct run){ .memory = ram_memory(BYTES + SEGMENT) };
	open_again(&run, SEGMENTS);
	for (uint32_t n = 0; n < 2; n++) {
		struct batch batch;
		uint32_t segment;

		batch_make(&batch, 1000 * n, RECORDS, 20, 400);
		assert_int_equal(batch_write(&batch, &run.flash, &segment), FS_OK);
		assert_int_equal(segment, n);
		run.objects = batch.plan.count;
		run.sequence[n] = seg_sequence(run.flash.seg, n);
		batch_fini(&batch);
	}
	*state = &run;
	return 0;
}

static int end(void **state)
{
	struct run *run = *state;

	flash_close(&run->flash);
	mem_free(run->memory);
	unlink(path);
	return 0;
}

static void save(struct run *run)
{
	struct parts_writer *writer;

	assert_int_equal(parts_create(&writer, path), FS_OK);
	seg_save(run->flash.seg, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
}

static int load(struct run *run)
{
	struct parts_reader *reader;
	int result;

	assert_int_equal(parts_open(&reader, path), FS_OK);
	result = seg_load(run->flash.seg, reader);
	parts_close(reader);
	return result;
}

static void restart(struct run *run)
{
	assert_int_equal(seg_end_clean(run->flash.seg), FS_OK);
	flash_close(&run->flash);
	open_again(run, SEGMENTS);
}

static enum seg_found found(const struct run *run)
{
	struct seg_info info;

	seg_get_info(run->flash.seg, &info);
	return info.found;
}

static struct seg_status status_of(const struct run *run)
{
	struct seg_status status;

	seg_get_status(run->flash.seg, &status);
	return status;
}

static bool visit(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	(void)offset;
	(void)extent;
	assert_true(record->key_length > 0);
	++*(uint32_t *)context;
	return true;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void the_mark_is_for_one_start(void **state)
{
	struct run *run = *state;
	struct seg_info before, after;

	assert_int_equal(found(run), SEG_FOUND_NONE);
	seg_get_info(run->flash.seg, &before);
	restart(run);
	seg_get_info(run->flash.seg, &after);
	assert_int_equal(after.found, SEG_FOUND_CLEAN);
	assert_int_equal(after.attach_epoch, before.attach_epoch + 1);
	assert_memory_equal(after.uuid, before.uuid, sizeof(before.uuid));
	flash_close(&run->flash);
	open_again(run, SEGMENTS);
	assert_int_equal(found(run), SEG_FOUND_UNCLEAN);
}

static void another_layout_loses_the_mark(void **state)
{
	struct run *run = *state;

	assert_int_equal(seg_end_clean(run->flash.seg), FS_OK);
	flash_close(&run->flash);
	open_again(run, SEGMENTS + 1);
	assert_int_equal(found(run), SEG_FOUND_LAYOUT);
	flash_close(&run->flash);
	open_again(run, SEGMENTS + 1);
	assert_int_equal(found(run), SEG_FOUND_UNCLEAN);
}

static void a_mark_that_can_not_be_written_is_told(void **state)
{
	struct run *run = *state;

	run->flash.ram->fail_writes = true;
	assert_int_equal(seg_end_clean(run->flash.seg), FS_EIO);
	run->flash.ram->fail_writes = false;
	flash_close(&run->flash);
	open_again(run, SEGMENTS);
	assert_int_equal(found(run), SEG_FOUND_UNCLEAN);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void segments_come_back(void **state)
{
	struct run *run = *state;
	struct seg_status before = status_of(run), after;
	enum seg_state next;
	uint64_t visited;
	uint32_t count = 0, segment;

	save(run);
	restart(run);
	assert_int_equal(status_of(run).live, 0);
	assert_int_equal(load(run), FS_OK);
	after = status_of(run);
	assert_int_equal(after.live, 2);
	assert_int_equal(after.free, SEGMENTS - 2);
	assert_int_equal(after.newest_sequence, before.newest_sequence);
	assert_int_equal(after.records_live, before.records_live);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(seg_sequence(run->flash.seg, n), run->sequence[n]);
	assert_int_equal(seg_walk(run->flash.seg, 1, visit, &count, &visited), FS_OK);
	assert_int_equal(count, run->objects);
	assert_int_equal(seg_next(run->flash.seg, &segment, &next), FS_OK);
	assert_int_equal(segment, 2);
	assert_int_equal(next, SEG_FREE);
	assert_true(seg_oldest(run->flash.seg, &segment));
	assert_int_equal(segment, 0);
	assert_true(run->flash.seg->next_sequence > before.newest_sequence);
	/* Readers of the flash learn how far back live segments may go; a cold start says none. */
	assert_int_equal(run->flash.seg->super.first_epoch, 0);
	assert_int_equal(seg_keep(run->flash.seg), FS_OK);
	assert_int_equal(run->flash.seg->super.first_epoch, 1);
	restart(run);
	assert_int_equal(run->flash.seg->super.first_epoch, 0);
	assert_int_equal(seg_keep(run->flash.seg), FS_OK);
	assert_int_equal(run->flash.seg->super.first_epoch, 1);
	restart(run);
	flash_close(&run->flash);
	open_again(run, SEGMENTS);
	assert_int_equal(seg_keep(run->flash.seg), FS_OK);
	assert_int_equal(run->flash.seg->super.first_epoch, run->flash.seg->super.attach_epoch - 1);
}

static void only_live_ones_are_saved(void **state)
{
	struct run *run = *state;

	seg_reclaim_begin(run->flash.seg, 0);
	save(run);
	restart(run);
	assert_int_equal(load(run), FS_OK);
	assert_int_equal(seg_sequence(run->flash.seg, 0), 0);
	assert_int_equal(seg_sequence(run->flash.seg, 1), run->sequence[1]);
	assert_int_equal(status_of(run).live, 1);
}

static void what_was_loaded_can_be_given_up(void **state)
{
	struct run *run = *state;

	save(run);
	restart(run);
	assert_int_equal(load(run), FS_OK);
	seg_forget(run->flash.seg);
	assert_int_equal(status_of(run).live, 0);
	assert_int_equal(status_of(run).free, SEGMENTS);
	assert_int_equal(status_of(run).newest_sequence, 0);
	assert_false(seg_pin(run->flash.seg, 0, run->sequence[0]));
}

/* Rows that no segment can have. Each is saved in place of a right one, with right checksums. */
static void a_row_out_of_range_is_refused(void **state)
{
	struct run *run = *state;
	struct seg_entry *row = &run->flash.seg->table->entry[1];
	const struct seg_entry right = *row;
	const struct seg_entry *wrong;
#define WRONG(field, to) \
	({ \
		struct seg_entry copy = right; \
		copy.field = (to); \
		copy; \
	})
	const struct seg_entry rows[] = {
		WRONG(sequence, run->flash.seg->super.sequence_end + 1000),
		WRONG(data_offset, SEG_PAGE - 1),
		WRONG(data_offset, SEGMENT + 1),
		WRONG(data_bytes, SEGMENT),
		WRONG(data_bytes, UINT64_MAX),
		WRONG(footer_offset, SEGMENT + 1),
		WRONG(footer_offset, 0),
		WRONG(extents_bytes, 8),
		WRONG(record_bytes, SEGMENT + 1),
		WRONG(granule, 0),
		WRONG(longest_999, SEGMENT + 1),
		WRONG(extents, right.objects + 1),
		WRONG(functions, 15),
		WRONG(functions, 0),
		WRONG(written_at_ms, UINT64_MAX),
	};

	for (wrong = rows; wrong < rows + sizeof(rows) / sizeof(rows[0]); wrong++) {
		uint8_t *copy = ram_memory(BYTES + SEGMENT);
		struct run again = { .memory = copy };

		*row = *wrong;
		save(run);
		*row = right;
		assert_int_equal(flash_open_ram(&again.flash, SEGMENTS, SEGMENT, 16, copy), FS_OK);
		again.flash.seg->next_sequence = run->flash.seg->super.sequence_end;
		if (load(&again) != FS_ECORRUPT)
			fail_msg("row %d was taken", (int)(wrong - rows));
		assert_int_equal(status_of(&again).live, 0);
		flash_close(&again.flash);
		mem_free(copy);
	}
	save(run);
	restart(run);
	assert_int_equal(load(run), FS_OK);
}

static void another_number_of_segments_is_refused(void **state)
{
	struct run *run = *state;

	save(run);
	flash_close(&run->flash);
	open_again(run, SEGMENTS + 1);
	assert_int_equal(load(run), FS_ECORRUPT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_mark_is_for_one_start),
		TEST(another_layout_loses_the_mark),
		TEST(a_mark_that_can_not_be_written_is_told),
		TEST(segments_come_back),
		TEST(only_live_ones_are_saved),
		TEST(what_was_loaded_can_be_given_up),
		TEST(a_row_out_of_range_is_refused),
		TEST(another_number_of_segments_is_refused),
	};

	return cmocka_run_group_tests_name("restart of segments", tests, NULL, NULL);
}
