/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: what passes the check, and all that must not. */
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
	batch_make(&setup->batch, 1, 100, 100, 300);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
}

static void end(struct setup *setup)
{
	flash_close(&setup->flash);
	batch_fini(&setup->batch);
}

static uint8_t *bytes_of(struct setup *setup, uint64_t offset)
{
	return setup->flash.ram->bytes + LAYOUT_SUPER_BYTES + (uint64_t)setup->segment * SEGMENT + offset;
}

static int read_at(struct setup *setup, uint64_t offset, uint64_t available, struct seg_record *record)
{
	uint64_t needed;

	return seg_record_read(setup->flash.seg, setup->segment, setup->batch.plan.sequence, offset,
			       bytes_of(setup, offset), available, record, &needed);
}

static void any_flipped_bit_is_found(void **state)
{
	struct setup setup;
	struct seg_record record;

	(void)state;
	start(&setup);
	for (uint32_t n = 0; n < 3; n++) {
		uint64_t offset = setup.batch.plan.placed[n].offset;
		const struct object *object = batch_placed(&setup.batch, n);
		uint64_t length = seg_record_length(object->key_length, object->value_length);

		for (uint64_t bit = 0; bit < length * 8; bit++) {
			*bytes_of(&setup, offset + bit / 8) ^= (uint8_t)(1u << bit % 8);
			assert_int_not_equal(read_at(&setup, offset, length, &record), FS_OK);
			*bytes_of(&setup, offset + bit / 8) ^= (uint8_t)(1u << bit % 8);
		}
		assert_int_equal(read_at(&setup, offset, length, &record), FS_OK);
	}
	end(&setup);
}

static void a_record_of_another_life_does_not_pass(void **state)
{
	struct setup setup;
	struct seg_record record;
	uint64_t needed, offset;

	(void)state;
	start(&setup);
	offset = setup.batch.plan.placed[0].offset;
	assert_int_equal(seg_record_read(setup.flash.seg, setup.segment, setup.batch.plan.sequence + 1, offset,
					 bytes_of(&setup, offset), 4096, &record, &needed),
			 FS_ECORRUPT);
	/* Nor one that was moved, byte for byte. */
	assert_int_equal(seg_record_read(setup.flash.seg, setup.segment, setup.batch.plan.sequence, offset + 8,
					 bytes_of(&setup, offset), 4096, &record, &needed),
			 FS_ECORRUPT);
	end(&setup);
}

/* The same bytes under another flash's secret, as a client would forge them inside a value. */
static void a_forged_record_does_not_pass(void **state)
{
	struct layout_super foreign;
	struct layout_record header;
	struct seg_record record = { .key = "victim", .key_length = 6, .value = "bad", .value_length = 3 };
	struct setup setup;
	uint64_t offset;
	uint8_t *at;

	(void)state;
	start(&setup);
	/* The forger knows format, sequence and offset, but not the secret. */
	super_make(&foreign, 0);
	offset = setup.batch.plan.placed[0].offset;
	record_header(&foreign, setup.batch.plan.sequence, offset, &record, false, &header);
	at = bytes_of(&setup, offset);
	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), "victimbad", 9);
	assert_int_equal(read_at(&setup, offset, 4096, &record), FS_ECORRUPT);
	end(&setup);
}

static void a_gap_is_no_record(void **state)
{
	struct setup setup;
	struct seg_record record;
	uint64_t needed;
	uint8_t zeros[256] = { 0 };

	(void)state;
	start(&setup);
	assert_int_equal(seg_record_read(setup.flash.seg, setup.segment, setup.batch.plan.sequence, SEG_PAGE, zeros,
					 sizeof(zeros), &record, &needed),
			 FS_ECORRUPT);
	end(&setup);
}

static void a_length_beyond_the_area_is_refused(void **state)
{
	struct setup setup;
	struct seg_record record;
	struct layout_record header;
	uint64_t offset, needed;

	(void)state;
	start(&setup);
	offset = setup.batch.plan.placed[setup.batch.plan.count - 1].offset;
	memcpy(&header, bytes_of(&setup, offset), sizeof(header));
	header.value_length_flags |= LAYOUT_VALUE_MAX;
	memcpy(bytes_of(&setup, offset), &header, sizeof(header));
	assert_int_equal(read_at(&setup, offset, 64, &record), FS_ECORRUPT);
	/* Offsets where no record can begin. */
	assert_int_equal(seg_record_read(setup.flash.seg, 0, 1, 0, &header, 32, &record, &needed), FS_ECORRUPT);
	assert_int_equal(seg_record_read(setup.flash.seg, 0, 1, SEGMENT - 8, &header, 32, &record, &needed),
			 FS_ECORRUPT);
	assert_int_equal(seg_record_read(setup.flash.seg, 0, 1, UINT64_MAX, &header, 32, &record, &needed),
			 FS_ECORRUPT);
	end(&setup);
}

static void too_few_bytes_say_how_many_are_needed(void **state)
{
	struct setup setup;
	struct seg_record record;
	const struct object *object;
	uint64_t offset, needed, length;

	(void)state;
	start(&setup);
	offset = setup.batch.plan.placed[5].offset;
	object = batch_placed(&setup.batch, 5);
	length = seg_record_length(object->key_length, object->value_length);
	for (uint64_t available = 0; available < length; available++) {
		assert_int_equal(seg_record_read(setup.flash.seg, setup.segment, setup.batch.plan.sequence, offset,
						 bytes_of(&setup, offset), available, &record, &needed),
				 FS_ESHORT);
		assert_int_equal(needed, available < 32 ? 32 : length);
		if (available >= 32u + object->key_length) {
			assert_int_equal(record.key_length, object->key_length);
			assert_memory_equal(record.key, object->key, object->key_length);
		} else {
			assert_int_equal(record.key_length, 0);
		}
	}
	end(&setup);
}

static void every_field_comes_back(void **state)
{
	struct setup setup;
	struct seg_record record;

	(void)state;
	start(&setup);
	for (uint32_t n = 0; n < setup.batch.plan.count; n++) {
		uint64_t offset = setup.batch.plan.placed[n].offset;

		assert_int_equal(read_at(&setup, offset, SEGMENT - offset, &record), FS_OK);
		assert_is_object(batch_placed(&setup.batch, n), &record);
	}
	end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_flipped_bit_is_found),
		cmocka_unit_test(a_record_of_another_life_does_not_pass),
		cmocka_unit_test(a_forged_record_does_not_pass),
		cmocka_unit_test(a_gap_is_no_record),
		cmocka_unit_test(a_length_beyond_the_area_is_refused),
		cmocka_unit_test(too_few_bytes_say_how_many_are_needed),
		cmocka_unit_test(every_field_comes_back),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
