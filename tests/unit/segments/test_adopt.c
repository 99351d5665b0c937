/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments without a table row: whole ones come back as they were, and no header leads out of its segment. */
#include "tests/unit/segments/fixture.h"

#include <string.h>

#include "base/alloc.h"

#define SEGMENTS 4u
#define SEGMENT (256u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + SEGMENTS * SEGMENT)

struct run {
	uint8_t *memory;
	struct flash flash;
	uint64_t sequence[2];
	struct seg_entry row[2];
	uint32_t objects;
};

static void open_again(struct run *run)
{
	assert_int_equal(flash_open_ram(&run->flash, SEGMENTS, SEGMENT, 16, run->memory), FS_OK);
}

/* Two segments, of which the table knows nothing any more. */
static int begin(void **state)
{
	static struct run run;

	run = (struct run){ .memory = ram_memory(BYTES) };
	open_again(&run);
	seg_set_durable(run.flash.seg);
	for (uint32_t n = 0; n < 2; n++) {
		uint64_t flushes = run.flash.ram->flushes;
		struct batch batch;
		uint32_t segment;

		batch_make(&batch, 1000 * n, 300, 20, 400);
		assert_int_equal(batch_write(&batch, &run.flash, &segment), FS_OK);
		assert_true(run.flash.ram->flushes > flushes);
		run.objects = batch.plan.count;
		run.sequence[n] = seg_sequence(run.flash.seg, n);
		run.row[n] = run.flash.seg->table->entry[n];
		batch_fini(&batch);
	}
	flash_close(&run.flash);
	open_again(&run);
	*state = &run;
	return 0;
}

static int end(void **state)
{
	struct run *run = *state;

	flash_close(&run->flash);
	mem_free(run->memory);
	return 0;
}

static bool visit(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	(void)offset, (void)extent, (void)record;
	++*(uint32_t *)context;
	return true;
}

static int adopt(struct run *run, uint32_t n)
{
	struct seg_adopted adopted;
	int result = seg_adopt(run->flash.seg, n, run->sequence[n], &adopted);

	mem_free(adopted.filter);
	return result;
}

static void a_whole_segment_is_as_it_was(void **state)
{
	struct run *run = *state;
	struct segments *seg = run->flash.seg;
	crossing_pair *crossings = seg_crossings(seg, 1);
	struct seg_entry row;
	uint32_t seen = 0, next;
	enum seg_state found;
	uint64_t visited;

	crossings_clear(crossings, seg->crossings_bytes);
	assert_int_equal(seg_adopt_begin(seg, 1, run->sequence[1]), FS_OK);
	assert_int_equal(adopt(run, 1), FS_OK);
	/* Nobody knows which of its objects cross a page. */
	assert_int_equal(crossings_read_length(crossings, SEG_PAGE, 2 * SEG_PAGE), 2 * SEG_PAGE);
	row = run->flash.seg->table->entry[1];
	row.written_at_ms = run->row[1].written_at_ms;
	assert_memory_equal(&row, &run->row[1], sizeof(row));
	assert_int_equal(seg_sequence(run->flash.seg, 1), run->sequence[1]);
	assert_int_equal(seg_walk(run->flash.seg, 1, visit, &seen, &visited), FS_OK);
	assert_int_equal(seen, run->objects);
	assert_int_equal(seg_next(run->flash.seg, &next, &found), FS_OK);
	assert_int_equal(next, 2);
	assert_int_equal(found, SEG_FREE);
}

static void another_sequence_is_another_segment(void **state)
{
	static const struct seg_entry nothing;
	struct run *run = *state;

	run->sequence[0]++;
	assert_int_equal(adopt(run, 0), FS_ECORRUPT);
	assert_memory_equal(&run->flash.seg->table->entry[0], &nothing, sizeof(nothing));
	run->sequence[0]--;
	assert_int_equal(adopt(run, 0), FS_OK);
}

static void newest_must_have_been_given_out(void **state)
{
	struct run *run = *state;

	assert_int_equal(seg_adopt_begin(run->flash.seg, SEGMENTS, run->sequence[1]), FS_EINVAL);
	assert_int_equal(seg_adopt_begin(run->flash.seg, 1, 0), FS_EINVAL);
	assert_int_equal(seg_adopt_begin(run->flash.seg, 1, 1ull << 40), FS_EINVAL);
}

/* Each byte of header page and tail. */
static void no_torn_segment_comes_back(void **state)
{
	struct run *run = *state;
	uint8_t *segment = run->memory + LAYOUT_SUPER_BYTES;

	for (unsigned at = 0; at < SEG_PAGE; at += at < 200 ? 1 : 61) {
		segment[at] ^= 1u << at % 8;
		assert_int_equal(adopt(run, 0), FS_ECORRUPT);
		segment[at] ^= 1u << at % 8;
	}
	for (unsigned at = SEGMENT - sizeof(struct layout_footer); at < SEGMENT; at++) {
		segment[at] ^= 1u << at % 8;
		assert_int_equal(adopt(run, 0), FS_ECORRUPT);
		segment[at] ^= 1u << at % 8;
	}
	assert_int_equal(adopt(run, 0), FS_OK);
}

static void unreadable(void **state)
{
	struct run *run = *state;

	run->flash.ram->fail_reads = true;
	assert_int_equal(adopt(run, 0), FS_EIO);
	run->flash.ram->fail_reads = false;
	assert_int_equal(adopt(run, 0), FS_OK);
}

static void the_epoch_rises(void **state)
{
	struct run *run = *state;
	struct seg_info before, after;

	seg_get_info(run->flash.seg, &before);
	assert_int_equal(seg_raise_epoch(run->flash.seg), FS_OK);
	flash_close(&run->flash);
	open_again(run);
	seg_get_info(run->flash.seg, &after);
	assert_int_equal(after.attach_epoch, before.attach_epoch + 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(a_whole_segment_is_as_it_was),
		CASE(another_sequence_is_another_segment),
		CASE(newest_must_have_been_given_out),
		CASE(no_torn_segment_comes_back),
		CASE(unreadable),
		CASE(the_epoch_rises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
