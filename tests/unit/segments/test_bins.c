/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of bins on a flash: damage anywhere in a bin, failing reads, and what was written is found. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "segments/bins.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (256u << 10)

struct setup {
	struct flash flash;
	struct batch batch;
	uint32_t segment, visited;
	uint64_t last;
};

static void start(struct setup *setup)
{
	memset(setup, 0, sizeof(*setup));
	assert_int_equal(flash_open_ram(&setup->flash, 4, SEGMENT, 16, NULL), FS_OK);
	batch_make(&setup->batch, 1, 1200, 0, 500);
	assert_int_equal(batch_write_bins(&setup->batch, &setup->flash, &setup->segment), FS_OK);
}

static void end(struct setup *setup)
{
	flash_close(&setup->flash);
	batch_fini(&setup->batch);
}

static uint8_t *segment_bytes(struct setup *setup)
{
	return setup->flash.ram->bytes + LAYOUT_SUPER_BYTES + (uint64_t)setup->segment * SEGMENT;
}

static enum seg_bin_says find(struct setup *setup, const struct object *object, struct seg_record *record, uint64_t *at)
{
	struct segments *seg = setup->flash.seg;
	struct seg_bin bin = seg_bin_of(seg, setup->segment, object_x(seg, object));

	return seg_bin_find(seg, setup->segment, seg_sequence(seg, setup->segment), &bin,
			    segment_bytes(setup) + bin.offset, object->key, object->key_length, record, at);
}

/* Whatever is flipped in a bin: its key is found whole, or the bin is damaged, but never without its key. */
static void no_damage_hides_a_key(void **state)
{
	struct setup setup;
	unsigned found = 0, damaged = 0;
	struct rng rng;

	(void)state;
	start(&setup);
	rng_init(&rng, 3);
	for (unsigned round = 0; round < 4000; round++) {
		const struct object *object =
			batch_placed(&setup.batch, (uint32_t)rng_below(&rng, setup.batch.plan.count));
		struct seg_bin bin = seg_bin_of(setup.flash.seg, setup.segment, object_x(setup.flash.seg, object));
		uint8_t *byte = segment_bytes(&setup) + bin.offset + rng_below(&rng, bin.bytes), before = *byte;
		struct seg_record record;
		uint64_t at;

		*byte ^= (uint8_t)(1u << rng_below(&rng, 8));
		switch (find(&setup, object, &record, &at)) {
		case SEG_BIN_FOUND:
			assert_is_object(object, &record);
			found++;
			break;
		case SEG_BIN_DAMAGED:
			damaged++;
			break;
		default:
			fail();
		}
		*byte = before;
	}
	assert_true(found > 1000 && damaged > 100);
	end(&setup);
}

/* Zeros from any record's end on look like an end of the bin, but for the mark of its last record. */
static void cut_behind_records(struct setup *setup, const struct seg_bin *bin, uint8_t *bytes)
{
	uint8_t *cut = mem_alloc(bin->bytes);
	struct seg_record record;
	unsigned cuts = 0;
	uint64_t at;

	for (uint32_t n = 0; n < setup->batch.plan.count; n++) {
		uint64_t offset = setup->batch.plan.placed[n].offset;

		if (offset <= bin->offset || offset >= bin->offset + bin->bytes)
			continue;
		memcpy(cut, bytes, bin->bytes);
		memset(cut + (offset - bin->offset), 0, bin->bytes - (offset - bin->offset));
		assert_int_equal(seg_bin_find(setup->flash.seg, setup->segment,
					      seg_sequence(setup->flash.seg, setup->segment), bin, cut, "no such key",
					      11, &record, &at),
				 SEG_BIN_DAMAGED);
		cuts++;
	}
	assert_true(cuts > 3);
	mem_free(cut);
}

/* Bytes of an earlier life, of another offset, and none at all. */
static void lost_writes_are_told(void **state)
{
	struct setup setup;
	const struct object *object;
	struct seg_record record;
	struct seg_bin bin, other;
	uint8_t *bytes;
	uint64_t at;

	(void)state;
	start(&setup);
	object = batch_placed(&setup.batch, setup.batch.plan.count / 2);
	bin = seg_bin_of(setup.flash.seg, setup.segment, object_x(setup.flash.seg, object));
	bytes = segment_bytes(&setup) + bin.offset;
	assert_int_equal(seg_bin_find(setup.flash.seg, setup.segment, 77, &bin, bytes, object->key, object->key_length,
				      &record, &at),
			 SEG_BIN_DAMAGED);
	other = bin;
	other.offset += bin.bytes;
	assert_int_equal(seg_bin_find(setup.flash.seg, setup.segment, seg_sequence(setup.flash.seg, setup.segment),
				      &other, bytes, "no such key", 11, &record, &at),
			 SEG_BIN_DAMAGED);
	cut_behind_records(&setup, &bin, bytes);
	memset(bytes, 0, bin.bytes);
	assert_int_equal(find(&setup, object, &record, &at), SEG_BIN_EMPTY);
	memset(bytes, 0xff, bin.bytes);
	assert_int_equal(find(&setup, object, &record, &at), SEG_BIN_DAMAGED);
	end(&setup);
}

static void random_bytes_never_pass(void **state)
{
	struct setup setup;
	struct rng rng;

	(void)state;
	start(&setup);
	rng_init(&rng, 5);
	for (unsigned round = 0; round < 2000; round++) {
		struct seg_bin bin = seg_bin_of(setup.flash.seg, setup.segment, rng_next(&rng));
		uint8_t *bytes = mem_alloc(bin.bytes); /* of its own size, for ASan */
		struct seg_record record;
		uint64_t at;

		for (uint32_t i = 0; i < bin.bytes; i++)
			bytes[i] = rng_below(&rng, 4) ? 0 : (uint8_t)rng_next(&rng);
		assert_int_equal(seg_bin_find(setup.flash.seg, setup.segment,
					      seg_sequence(setup.flash.seg, setup.segment), &bin, bytes, "key", 3,
					      &record, &at),
				 SEG_BIN_DAMAGED);
		mem_free(bytes);
	}
	end(&setup);
}

static void reads_outside_of_the_segment_are_refused(void **state)
{
	struct setup setup;
	uint8_t *pages = mem_aligned(SEG_PAGE, 4 * SEG_PAGE);
	uint64_t from;

	(void)state;
	start(&setup);
	assert_int_equal(seg_read_now(setup.flash.seg, setup.segment, 0, 0, false, pages, 4 * SEG_PAGE, &from),
			 FS_EINVAL);
	assert_int_equal(seg_read_now(setup.flash.seg, setup.segment, SEGMENT, 1, false, pages, 4 * SEG_PAGE, &from),
			 FS_EINVAL);
	assert_int_equal(
		seg_read_now(setup.flash.seg, setup.segment, SEGMENT - 1, 2, false, pages, 4 * SEG_PAGE, &from),
		FS_EINVAL);
	assert_int_equal(seg_read_now(setup.flash.seg, setup.segment, UINT64_MAX, 2, false, pages, 4 * SEG_PAGE, &from),
			 FS_EINVAL);
	assert_int_equal(seg_read_now(setup.flash.seg, setup.segment, 4000, 5000, false, pages, 4 * SEG_PAGE, &from),
			 FS_OK);
	assert_int_equal(from, 4000);
	assert_memory_equal(pages + from, segment_bytes(&setup) + 4000, 5000);
	mem_free(pages);
	end(&setup);
}

static bool count_record(void *context, uint64_t offset, const struct seg_record *record)
{
	struct setup *setup = context;

	assert_true(offset > setup->last && record->key_length > 0);
	setup->last = offset;
	return ++setup->visited != 50;
}

static void walks_step_over_damage_and_stop_when_told(void **state)
{
	struct setup setup;
	uint32_t bins, all;

	(void)state;
	start(&setup);
	bins = seg_bins(setup.flash.seg, setup.segment);
	all = setup.batch.plan.count;
	assert_int_equal(seg_walk_bins(setup.flash.seg, setup.segment, 0, bins, false, count_record, &setup), FS_OK);
	assert_int_equal(setup.visited, 50);
	setup.last = 0;
	assert_int_equal(seg_walk_bins(setup.flash.seg, setup.segment, 0, bins, false, count_record, &setup), FS_OK);
	assert_int_equal(setup.visited, 50 + all);
	setup.last = 0;
	/* A part of it, and nothing. */
	assert_int_equal(
		seg_walk_bins(setup.flash.seg, setup.segment, bins / 2, bins - bins / 2, false, count_record, &setup),
		FS_OK);
	assert_true(setup.visited > 50 + all + all / 3 && setup.visited < 50 + all + all / 3 * 2);
	assert_int_equal(seg_walk_bins(setup.flash.seg, setup.segment, bins, 0, false, count_record, &setup), FS_OK);
	/* The first record of a bin is damaged: those behind it are found. */
	setup.visited = 100;
	setup.last = 0;
	segment_bytes(&setup)[SEG_PAGE] ^= 1;
	assert_int_equal(seg_walk_bins(setup.flash.seg, setup.segment, 0, bins, false, count_record, &setup),
			 FS_ECORRUPT);
	assert_int_equal(setup.visited, 100 + all - 1);
	end(&setup);
}

static void failing_reads_of_a_walk_are_told(void **state)
{
	struct setup setup;

	(void)state;
	start(&setup);
	ram_fault_arm(setup.flash.ram, RAM_FAULT_read_eio, FAULT_ALWAYS, 0);
	assert_int_equal(seg_walk_bins(setup.flash.seg, setup.segment, 0, seg_bins(setup.flash.seg, setup.segment),
				       false, count_record, &setup),
			 FS_EIO);
	assert_int_equal(setup.visited, 0);
	end(&setup);
}

static void each_key_is_found_in_its_bin(void **state)
{
	struct setup setup;
	uint32_t absent = 0;

	(void)state;
	start(&setup);
	assert_int_equal(seg_kind_of(setup.flash.seg, setup.segment), SEG_BINS);
	for (uint32_t n = 0; n < setup.batch.plan.count; n++) {
		const struct object *object = batch_placed(&setup.batch, n);
		struct seg_record record;
		uint64_t at;

		assert_int_equal(find(&setup, object, &record, &at), SEG_BIN_FOUND);
		assert_is_object(object, &record);
		assert_int_equal(at, setup.batch.plan.placed[n].offset);
	}
	for (unsigned n = 0; n < 500; n++) {
		struct object other = { .key_length = 10 };
		struct seg_record record;
		uint64_t at;

		snprintf(other.key, sizeof(other.key), "other-%04u", n);
		absent += find(&setup, &other, &record, &at) == SEG_BIN_ABSENT;
	}
	assert_int_equal(absent, 500);
	end(&setup);
}

static bool expect_next(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct setup *setup = context;

	assert_false(extent);
	assert_int_equal(offset, setup->batch.plan.placed[setup->visited].offset);
	assert_is_object(batch_placed(&setup->batch, setup->visited++), record);
	return true;
}

/* With the footer's list, and without. */
static void the_other_walk_finds_the_same(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	assert_int_equal(seg_walk(setup.flash.seg, setup.segment, expect_next, &setup, &visited), FS_OK);
	assert_int_equal(visited, setup.batch.plan.count);
	segment_bytes(&setup)[SEGMENT - 1] ^= 1;
	setup.visited = 0;
	assert_int_equal(seg_walk(setup.flash.seg, setup.segment, expect_next, &setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count);
	end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_damage_hides_a_key),
		cmocka_unit_test(lost_writes_are_told),
		cmocka_unit_test(random_bytes_never_pass),
		cmocka_unit_test(reads_outside_of_the_segment_are_refused),
		cmocka_unit_test(walks_step_over_damage_and_stop_when_told),
		cmocka_unit_test(failing_reads_of_a_walk_are_told),
		cmocka_unit_test(each_key_is_found_in_its_bin),
		cmocka_unit_test(the_other_walk_finds_the_same),
	};

	return cmocka_run_group_tests_name("bins", tests, NULL, NULL);
}
