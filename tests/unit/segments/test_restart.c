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

/* Returns a copy of the live segments' crossing maps; mem_free frees it. Some record of ours crosses a page. */
static uint8_t *copy_of_maps(const struct run *run)
{
	uint64_t bytes = 2 * crossings_bytes(SEGMENT), crossing = 0;
	uint8_t *copy = mem_must_zalloc(bytes);

	for (uint64_t i = 0; i < bytes; i++) {
		copy[i] = seg_crossings(run->flash.seg, 0)[i];
		crossing += copy[i] != 0;
	}
	assert_true(crossing > 0);
	return copy;
}

static void assert_maps(const struct run *run, const uint8_t *maps)
{
	for (uint64_t i = 0; i < 2 * crossings_bytes(SEGMENT); i++)
		assert_int_equal(seg_crossings(run->flash.seg, 0)[i], maps[i]);
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
	open_again(run, SEGMENTS - 1);
	assert_int_equal(found(run), SEG_FOUND_LAYOUT);
	flash_close(&run->flash);
	open_again(run, SEGMENTS - 1);
	assert_int_equal(found(run), SEG_FOUND_UNCLEAN);
	/* Larger, but not after a clean end. */
	flash_close(&run->flash);
	open_again(run, SEGMENTS);
	assert_int_equal(found(run), SEG_FOUND_LAYOUT);
}

static void a_larger_flash_is_the_same(void **state)
{
	struct run *run = *state;
	struct seg_info before, after;

	save(run);
	seg_get_info(run->flash.seg, &before);
	assert_int_equal(seg_end_clean(run->flash.seg), FS_OK);
	flash_close(&run->flash);
	open_again(run, SEGMENTS + 1);
	seg_get_info(run->flash.seg, &after);
	assert_int_equal(after.found, SEG_FOUND_CLEAN);
	assert_int_equal(after.segments, SEGMENTS + 1);
	assert_memory_equal(after.uuid, before.uuid, sizeof(before.uuid));
	assert_int_equal(load(run), FS_OK);
	assert_int_equal(status_of(run).total, SEGMENTS + 1);
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
}

static void crossing_maps_are_loaded(void **state)
{
	struct run *run = *state;
	uint8_t *maps = copy_of_maps(run);

	save(run);
	restart(run);
	assert_int_equal(load(run), FS_OK);
	assert_maps(run, maps);
	mem_free(maps);
}

/* Between a run with maps and one without: reads are as long as L says. */
static void crossing_maps_may_be_missing(void **state)
{
	struct run *run = *state;

	run->flash.seg->crossings_bytes = 0;
	save(run);
	restart(run);
	assert_int_equal(load(run), FS_OK);
	for (uint64_t i = 0; i < SEGMENTS * crossings_bytes(SEGMENT); i++)
		assert_int_equal(seg_crossings(run->flash.seg, 0)[i], 0xff);
	save(run);
	restart(run);
	run->flash.seg->crossings_bytes = 0;
	assert_int_equal(load(run), FS_OK);
	assert_int_equal(seg_read_length(run->flash.seg, 0, SEG_PAGE), run->flash.seg->table->entry[0].longest_999);
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

/* ---- over a kill ------------------------------------------------------------------------------- */

static void *table_of_the_killed(struct run *run)
{
	void *copy = mem_must_zalloc(seg_region_bytes(SEGMENTS, SEGMENT, true));

	memcpy(copy, run->flash.table, seg_region_bytes(SEGMENTS, SEGMENT, true));
	flash_close(&run->flash);
	return copy;
}

static void look(struct run *run, void *table)
{
	run->flash.ram = ram_device_create(LAYOUT_SUPER_BYTES + SEGMENTS * SEGMENT, run->memory);
	run->flash.config.device = &run->flash.ram->dev;
	run->flash.table = table;
	assert_int_equal(seg_look(&run->flash.seg, &run->flash.config, table), FS_OK);
}

static void a_look_writes_nothing(void **state)
{
	struct run *run = *state;
	void *table = table_of_the_killed(run);
	uint8_t *flash = mem_must_zalloc(BYTES);
	struct seg_info info;

	memcpy(flash, run->memory, BYTES);
	look(run, table);
	assert_int_equal(seg_attach(run->flash.seg), FS_OK);
	assert_memory_equal(flash, run->memory, BYTES);
	seg_get_info(run->flash.seg, &info);
	assert_int_equal(info.attach_epoch, 1);
	assert_int_equal(seg_take_over(run->flash.seg, true, 4711), FS_OK);
	seg_get_info(run->flash.seg, &info);
	assert_int_equal(info.attach_epoch, 2);
	assert_int_equal(info.region_id, 4711);
	mem_free(flash);
}

/* Readers of the flash learn how far back live segments may go; a cold start says none. */
static void the_take_over_tells_since_when_segments_are_live(void **state)
{
	struct run *run = *state;

	for (uint64_t turn = 0; turn < 3; turn++) {
		look(run, table_of_the_killed(run));
		assert_int_equal(seg_attach(run->flash.seg), FS_OK);
		assert_int_equal(seg_take_over(run->flash.seg, turn < 2, 0), FS_OK);
		assert_int_equal(run->flash.seg->super.first_epoch, turn < 2 ? 1 : 0);
		assert_int_equal(run->flash.seg->super.attach_epoch, turn + 2);
	}
}

static void the_table_of_the_killed_is_taken(void **state)
{
	struct run *run = *state;
	struct seg_status before = status_of(run), after;
	enum seg_state next;
	uint32_t segment, count = 0;
	uint64_t visited;

	look(run, table_of_the_killed(run));
	assert_int_equal(seg_attach(run->flash.seg), FS_OK);
	assert_int_equal(seg_take_over(run->flash.seg, true, 1), FS_OK);
	after = status_of(run);
	assert_int_equal(after.live, 2);
	assert_int_equal(after.newest_sequence, before.newest_sequence);
	assert_int_equal(after.records_live, before.records_live);
	assert_int_equal(seg_next(run->flash.seg, &segment, &next), FS_OK);
	assert_int_equal(segment, 2);
	assert_int_equal(seg_walk(run->flash.seg, 1, visit, &count, &visited), FS_OK);
	assert_int_equal(count, run->objects);
	seg_drop(run->flash.seg, 0);
	assert_int_equal(seg_sequence(run->flash.seg, 0), 0);
	assert_int_equal(run->flash.seg->table->entry[0].sequence, 0);
	assert_int_equal(status_of(run).live, 1);
}

static void crossing_maps_of_the_killed_are_taken(void **state)
{
	struct run *run = *state;
	uint8_t *maps = copy_of_maps(run);
	struct seg_table *table = table_of_the_killed(run);

	look(run, table);
	assert_int_equal(seg_attach(run->flash.seg), FS_OK);
	assert_maps(run, maps);
	table->crossings_bytes += 8;
	assert_int_equal(seg_attach(run->flash.seg), FS_ECORRUPT);
	mem_free(maps);
}

static void a_wrong_row_of_the_killed_is_refused(void **state)
{
	struct run *run = *state;
	struct seg_table *table = table_of_the_killed(run);
	struct seg_entry *entry = &table->entry[1], right = *entry;

	look(run, table);
	for (unsigned field = 0; field < 4; field++) {
		*entry = right;
		if (field == 0)
			entry->sequence = run->flash.seg->super.sequence_end;
		else if (field == 1)
			entry->data_bytes = SEGMENT + SEG_PAGE;
		else if (field == 2)
			entry->grid.positions++;
		else
			table->segments++;
		assert_int_equal(seg_attach(run->flash.seg), FS_ECORRUPT);
		assert_int_equal(seg_sequence(run->flash.seg, 0), 0);
	}
	table->segments--;
	*entry = right;
	assert_int_equal(seg_attach(run->flash.seg), FS_OK);
}

static void another_number_of_segments_is_refused(void **state)
{
	struct run *run = *state;

	save(run);
	flash_close(&run->flash);
	open_again(run, SEGMENTS - 1);
	assert_int_equal(load(run), FS_ECORRUPT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_mark_is_for_one_start),
		TEST(another_layout_loses_the_mark),
		TEST(a_larger_flash_is_the_same),
		TEST(a_mark_that_can_not_be_written_is_told),
		TEST(segments_come_back),
		TEST(crossing_maps_are_loaded),
		TEST(crossing_maps_may_be_missing),
		TEST(only_live_ones_are_saved),
		TEST(crossing_maps_of_the_killed_are_taken),
		TEST(what_was_loaded_can_be_given_up),
		TEST(a_row_out_of_range_is_refused),
		TEST(another_number_of_segments_is_refused),
		TEST(a_look_writes_nothing),
		TEST(the_take_over_tells_since_when_segments_are_live),
		TEST(the_table_of_the_killed_is_taken),
		TEST(a_wrong_row_of_the_killed_is_refused),
	};

	return cmocka_run_group_tests_name("restart of segments", tests, NULL, NULL);
}
