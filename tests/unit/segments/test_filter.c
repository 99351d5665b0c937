/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a segment comes back from flash as it was written, or not at all. */
#include "tests/unit/segments/fixture.h"

#include <string.h>

#include "base/alloc.h"

#define SEGMENT (256u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + 2 * SEGMENT)

struct run {
	uint8_t *memory;
	struct flash flash;
	uint32_t segment, objects;
};

static int begin(void **state)
{
	static struct run run;
	struct batch batch;

	run = (struct run){ .memory = ram_memory(BYTES) };
	assert_int_equal(flash_open_ram(&run.flash, 2, SEGMENT, 16, run.memory), FS_OK);
	batch_make(&batch, 0, 300, 20, 400);
	assert_int_equal(batch_write(&batch, &run.flash, &run.segment), FS_OK);
	run.objects = batch.plan.count;
	batch_fini(&batch);
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

static int read_back(struct run *run, uint8_t **filter, size_t *length)
{
	void *bytes = run;
	int result = seg_read_filter(run->flash.seg, run->segment, &bytes, length);

	*filter = bytes;
	assert_true(bytes ? result == FS_OK : *length == 0);
	return result;
}

static void it_is_as_it_was_written(void **state)
{
	struct run *run = *state;
	uint8_t *filter;
	size_t length;

	assert_int_equal(read_back(run, &filter, &length), FS_OK);
	assert_int_equal(length, filter_bytes(NULL, run->objects));
	for (size_t i = 0; i < length; i++)
		assert_int_equal(filter[i], 0xf1);
	mem_free(filter);
}

/* Where the filter lies, then one bit of it, of the list's length and of the tail's sequence. */
static void a_damaged_one_does_not_come_back(void **state)
{
	struct run *run = *state;
	uint8_t *segment = run->memory + LAYOUT_SUPER_BYTES + (uint64_t)run->segment * SEGMENT, *filter;
	const size_t tail = SEGMENT - sizeof(struct layout_footer);
	struct layout_footer footer;
	size_t length, at[3];

	memcpy(&footer, segment + tail, sizeof(footer));
	at[0] = run->flash.seg->table->entry[run->segment].footer_offset + layout_align8(footer.offsets_bytes) +
		footer.filter_bytes / 2;
	at[1] = tail + offsetof(struct layout_footer, offsets_bytes);
	at[2] = tail + offsetof(struct layout_footer, sequence);
	for (unsigned i = 0; i < 3; i++) {
		segment[at[i]] ^= 4;
		assert_int_equal(read_back(run, &filter, &length), FS_ECORRUPT);
		segment[at[i]] ^= 4;
	}
	assert_int_equal(read_back(run, &filter, &length), FS_OK);
	mem_free(filter);
}

/* A footer whose lengths lead out of the segment, with a right check. */
static void no_length_leads_out_of_the_segment(void **state)
{
	struct run *run = *state;
	uint64_t offset = run->flash.seg->table->entry[run->segment].footer_offset;
	struct layout_footer footer = { .filter_bytes = SEGMENT - offset + 1 };
	size_t length;
	void *filter;

	assert_int_equal(filter_read(run->flash.seg, run->segment, offset, &footer, &filter, &length), FS_ECORRUPT);
	footer = (struct layout_footer){ .filter_bytes = 8, .offsets_bytes = UINT64_MAX - 3 };
	assert_int_equal(filter_read(run->flash.seg, run->segment, offset, &footer, &filter, &length), FS_ECORRUPT);
	footer = (struct layout_footer){ .filter_bytes = 8, .offsets_bytes = SEGMENT - offset };
	assert_int_equal(filter_read(run->flash.seg, run->segment, offset, &footer, &filter, &length), FS_ECORRUPT);
	footer = (struct layout_footer){ .offsets_bytes = 8 };
	assert_int_equal(filter_read(run->flash.seg, run->segment, offset, &footer, &filter, &length), FS_OK);
	assert_null(filter);
}

static void a_part_is_read_by_itself(void **state)
{
	struct run *run = *state;
	uint64_t all = filter_bytes(NULL, run->objects);
	uint8_t *segment = run->memory + LAYOUT_SUPER_BYTES + (uint64_t)run->segment * SEGMENT;
	struct layout_footer footer;
	uint8_t part[40];
	uint64_t at;

	memcpy(&footer, segment + SEGMENT - sizeof(footer), sizeof(footer));
	at = run->flash.seg->table->entry[run->segment].footer_offset + layout_align8(footer.offsets_bytes);
	for (unsigned i = 0; i < all; i++)
		segment[at + i] = (uint8_t)i;
	for (uint64_t from = 0; from <= all - sizeof(part); from += all - sizeof(part)) {
		assert_int_equal(seg_read_filter_part(run->flash.seg, run->segment, from, part, sizeof(part)), FS_OK);
		for (unsigned i = 0; i < sizeof(part); i++)
			assert_int_equal(part[i], (uint8_t)(from + i));
	}
	assert_int_equal(seg_read_filter_part(run->flash.seg, run->segment, all - sizeof(part) + 1, part, sizeof(part)),
			 FS_ECORRUPT);
	assert_int_equal(seg_read_filter_part(run->flash.seg, run->segment, UINT64_MAX, part, 1), FS_ECORRUPT);
	segment[SEGMENT - sizeof(footer)] ^= 1;
	assert_int_equal(seg_read_filter_part(run->flash.seg, run->segment, 0, part, 1), FS_ECORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_as_it_was_written, begin, end),
		cmocka_unit_test_setup_teardown(a_damaged_one_does_not_come_back, begin, end),
		cmocka_unit_test_setup_teardown(a_part_is_read_by_itself, begin, end),
		cmocka_unit_test_setup_teardown(no_length_leads_out_of_the_segment, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
