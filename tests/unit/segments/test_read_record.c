/* SPDX-License-Identifier: BSD-3-Clause */
/* One record, read in the caller's thread: the record, or nothing. */
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)

struct setup {
	struct flash flash;
	struct batch batch;
	uint32_t segment;
};

static void start(struct setup *setup)
{
	memset(setup, 0, sizeof(*setup));
	assert_int_equal(flash_open_ram(&setup->flash, 2, SEGMENT, 16, NULL), FS_OK);
	batch_make(&setup->batch, 1, 60, 100, 900);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
}

static void end(struct setup *setup)
{
	flash_close(&setup->flash);
	batch_fini(&setup->batch);
}

static int read_at(struct setup *setup, uint64_t offset, uint64_t length, struct seg_record *record, void **memory)
{
	return seg_read_record(setup->flash.seg, setup->segment, offset, length, record, memory);
}

static void where_there_is_none(void **state)
{
	struct setup setup;
	struct seg_record record;
	void *memory;

	(void)state;
	start(&setup);
	const uint64_t offset = setup.batch.plan.placed[0].offset;
	const uint64_t offsets[] = { 0, 1, SEG_PAGE - 1, offset + 8, SEGMENT - 1, SEGMENT, UINT64_MAX - SEG_PAGE };
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		memory = &record;
		assert_int_equal(read_at(&setup, offsets[i], 300, &record, &memory), FS_ECORRUPT);
		assert_null(memory);
	}
	assert_int_equal(read_at(&setup, SEGMENT - 1, 1ull << 40, &record, &memory), FS_ECORRUPT);
	/* A damaged byte. */
	setup.flash.ram->bytes[LAYOUT_SUPER_BYTES + (uint64_t)setup.segment * SEGMENT + offset + 40] ^= 1;
	assert_int_equal(read_at(&setup, offset, 300, &record, &memory), FS_ECORRUPT);
	assert_null(memory);
	end(&setup);
}

static void a_drive_that_fails(void **state)
{
	struct setup setup;
	struct seg_record record;
	void *memory;

	(void)state;
	start(&setup);
	setup.flash.ram->fail_reads = 1;
	assert_int_equal(read_at(&setup, setup.batch.plan.placed[0].offset, 300, &record, &memory), FS_EIO);
	assert_null(memory);
	setup.flash.ram->fail_reads = 0;
	end(&setup);
}

/* With any length that is asked for: a longer record is read once more. */
static void each_record(void **state)
{
	static const uint64_t lengths[] = { 1, 32, 100, 932, 2 * SEGMENT };
	struct setup setup;

	(void)state;
	start(&setup);
	for (uint32_t n = 0; n < setup.batch.plan.count; n++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct seg_record record;
			void *memory;

			assert_int_equal(
				read_at(&setup, setup.batch.plan.placed[n].offset, lengths[i], &record, &memory),
				FS_OK);
			assert_is_object(batch_placed(&setup.batch, n), &record);
			mem_free(memory);
		}
	}
	end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_there_is_none),
		cmocka_unit_test(a_drive_that_fails),
		cmocka_unit_test(each_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
