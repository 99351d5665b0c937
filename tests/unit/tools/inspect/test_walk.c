/* SPDX-License-Identifier: BSD-3-Clause */
/* Each check that verify makes, provoked one at a time, and what must pass. */
#include <string.h>

#include "tests/unit/tools/inspect/image.h"

static const struct image_record some[] = {
	{ .key = "large", .value_length = 5000, .cas = 11, .extent = true },
	{ .key = "large:2", .value_length = 4100, .cas = 12, .extent = true },
	{ .key = "a", .value_length = 100, .cas = 1 },
	{ .key = "bb", .value_length = 0, .cas = 2, .expiry = 30 },
	{ .key = "ccc", .value_length = 777, .cas = 3 },
	{ .key = "dddd", .value_length = 41, .cas = 4 },
};
#define COUNT (sizeof(some) / sizeof(some[0]))

/* Segment 1 of three is written, with a filter. */
static void make(struct image *image, uint64_t offsets[COUNT])
{
	const struct image_segment segment = { .sequence = 5, .records = some, .count = COUNT, .filter = true };

	image_create(image, 3);
	image_write(image, 1, &segment, offsets);
}

#define DATA(offset) (IMAGE_START(1) + (offset))

static void a_record_with_a_flipped_bit_is_found(void **state)
{
	uint64_t offsets[COUNT];
	struct image image;

	(void)state;
	for (unsigned n = 0; n < COUNT; n++) {
		make(&image, offsets);
		image.bytes[DATA(offsets[n]) + 33] ^= 4; /* in its key or value, or behind an empty one */
		image_sync(&image);
		image_expect_failure(&image, 1, offsets[n], "fails its check");
		image_close(&image);
	}
}

static void a_record_at_another_place_is_found(void **state)
{
	uint64_t offsets[COUNT];
	struct image image;

	(void)state;
	make(&image, offsets);
	/* The bytes of a good record in place of one of the same length can't be: of the same sequence, but
	 * moved. */
	memmove(image.bytes + DATA(offsets[4]), image.bytes + DATA(offsets[2]), 133);
	image_sync(&image);
	image_expect_failure(&image, 1, offsets[4], "fails its check");
	image_close(&image);
}

static void lengths_that_cannot_be_are_found(void **state)
{
	static const struct {
		unsigned at, bytes;
		uint64_t value;
	} cases[] = { { 24, 1, 0 }, { 24, 1, 251 }, { 4, 4, 0x7ffffff }, { 4, 4, 60000 }, { 24, 1, 200 } };
	uint64_t offsets[COUNT];
	struct image image;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(&image, offsets);
		image_put(&image, DATA(offsets[3]) + cases[i].at, cases[i].value, cases[i].bytes);
		image_sync(&image);
		image_expect_failure(&image, 1, offsets[3], "lengths can't be right");
		image_close(&image);
	}
}

static void bytes_in_a_gap_are_found(void **state)
{
	uint64_t offsets[COUNT], gap_ends[] = { 0, 0, 0 };
	struct image image;

	(void)state;
	make(&image, offsets);
	gap_ends[0] = offsets[2] - 1; /* between extents and data */
	gap_ends[1] = offsets[5] - 1; /* between two records */
	gap_ends[2] = IMAGE_SEGMENT - 2 * FORMAT_PAGE - 1; /* before the footer */
	for (unsigned i = 0; i < 3; i++) {
		image.bytes[DATA(gap_ends[i])] = 9;
		image_sync(&image);
		image_expect_failure(&image, 1, gap_ends[i], "0x09 where zeros belong");
		image.bytes[DATA(gap_ends[i])] = 0;
	}
	image_close(&image);
}

static void a_broken_list_is_found(void **state)
{
	uint64_t offsets[COUNT], footer = IMAGE_SEGMENT - 2 * FORMAT_PAGE;
	struct image image;

	(void)state;
	make(&image, offsets);
	image.bytes[DATA(footer) + 1] ^= 1;
	image_sync(&image);
	image_expect_failure(&image, 1, footer, "list of offsets fails its checksum");
	image_close(&image);
}

/* Makes the sum of a list that was changed right again. */
static void seal_list(struct image *image, uint64_t bytes)
{
	uint64_t list = DATA(IMAGE_SEGMENT - 2 * FORMAT_PAGE);

	image_put(image, IMAGE_TAIL(1) + 80, bytes, 8);
	image_put(image, IMAGE_TAIL(1) + 88, format_sum(image->bytes + list, bytes), 8);
	image_seal_tail(image, 1);
	image_sync(image);
}

static void a_list_that_leads_nowhere_is_found(void **state)
{
	uint64_t offsets[COUNT], footer = IMAGE_SEGMENT - 2 * FORMAT_PAGE, length = 0;
	struct image_tally tally;
	struct image image;

	(void)state;
	make(&image, offsets);
	memcpy(&length, image.bytes + IMAGE_TAIL(1) + 80, 8);
	seal_list(&image, length - 1);
	image_verify(&image, &tally);
	assert_true(tally.failures > 0);
	assert_int_equal(tally.records, COUNT - 1);
	image.bytes[DATA(footer) + length] = 0;
	seal_list(&image, length + 1);
	image_expect_failure(&image, 1, footer + length, "1 bytes too many");
	memset(image.bytes + DATA(footer), 0xff, 5);
	seal_list(&image, length);
	image_verify(&image, &tally);
	assert_true(tally.failures > 0);
	assert_int_equal(tally.records, 0);
	image_close(&image);
}

static void a_record_listed_twice_is_found(void **state)
{
	const struct image_segment segment = { .sequence = 5, .records = some + 2, .count = 2 };
	uint64_t offsets[COUNT], footer = IMAGE_SEGMENT - 2 * FORMAT_PAGE, length = 0;
	struct image_tally tally;
	struct image image;

	(void)state;
	image_create(&image, 3);
	image_write(&image, 1, &segment, offsets);
	memcpy(&length, image.bytes + IMAGE_TAIL(1) + 80, 8);
	assert_int_equal(length, 2);
	image.bytes[DATA(footer) + 1] = 0;
	seal_list(&image, length);
	image_verify(&image, &tally);
	assert_true(tally.failures >= 1);
	assert_int_equal(tally.failed_offset, offsets[0]);
	image_close(&image);
}

static void a_broken_filter_is_found(void **state)
{
	uint64_t offsets[COUNT], footer = IMAGE_SEGMENT - 2 * FORMAT_PAGE, filter = 0, list = 0;
	struct image_tally tally;
	struct image image;

	(void)state;
	make(&image, offsets);
	memcpy(&list, image.bytes + IMAGE_TAIL(1) + 80, 8);
	filter = (list + 7) / 8 * 8;
	image.bytes[DATA(footer + filter)] ^= 0x80;
	image_sync(&image);
	image_expect_failure(&image, 1, footer + filter, "filter fails its checksum");
	/* One that is whole but doesn't know the keys: of the records with slots each is denied, no extent.
	 */
	memset(image.bytes + DATA(footer + filter), 0, 128);
	image_put(&image, IMAGE_TAIL(1) + 104, format_sum(image.bytes + DATA(footer + filter), 136), 8);
	image_seal_tail(&image, 1);
	image_sync(&image);
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 4);
	assert_int_equal(tally.failed_offset, offsets[2]);
	assert_non_null(strstr(tally.text, "filter denies its key"));
	/* Of a kind that no version knows: done without. */
	image.bytes[DATA(footer + filter + 128)] = 'X';
	image_put(&image, IMAGE_TAIL(1) + 104, format_sum(image.bytes + DATA(footer + filter), 136), 8);
	image_seal_tail(&image, 1);
	image_sync(&image);
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 0);
	image_close(&image);
}

static void counts_that_are_wrong_are_found(void **state)
{
	uint64_t offsets[COUNT];
	struct image image;

	(void)state;
	make(&image, offsets);
	image_put(&image, IMAGE_START(1) + 136, 9999, 8);
	image_seal_header(&image, 1);
	image_sync(&image);
	image_expect_failure(&image, 1, 0, "9999 bytes of records");
	image_close(&image);
	make(&image, offsets);
	image_put(&image, IMAGE_START(1) + 76, 811, 4); /* one is 812 long */
	image_seal_header(&image, 1);
	image_sync(&image);
	image_expect_failure(&image, 1, 0, "L is 811, but 1 of 4 records are longer");
	image_close(&image);
}

static void a_cas_id_beyond_the_reserve_is_found(void **state)
{
	static const struct image_record record = { .key = "k", .value_length = 5, .cas = 1000000 };
	const struct image_segment segment = { .sequence = 5, .records = &record, .count = 1 };
	struct image image;
	uint64_t offset;

	(void)state;
	image_create(&image, 3);
	image_write(&image, 1, &segment, &offset);
	image_expect_failure(&image, 1, offset, "CAS id 1000000");
	image_close(&image);
}

static void what_is_whole_passes(void **state)
{
	struct image_tally tally;
	uint64_t offsets[COUNT];
	struct image image;

	(void)state;
	make(&image, offsets);
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 0);
	assert_int_equal(tally.records, COUNT);
	assert_int_equal(tally.states[SEGMENT_COMPLETE], 1);
	assert_int_equal(tally.states[SEGMENT_EMPTY], 2);
	image_close(&image);
	image_golden(&image);
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 0);
	assert_int_equal(tally.records, 106);
	image_close(&image);
}

/* ---- what a flash in use looks like ---------------------------------------------------------- */

struct overwriting {
	struct image *image;
	bool footer_too;
	uint32_t walks;
	uint64_t failures;
	enum segment_state state;
};

/* Pages of the segment's next life land while its records are read: one of them, and the header's. */
static void *overwrite(void *context, const struct segment *segment)
{
	struct overwriting *overwriting = context;
	struct image *image = overwriting->image;

	assert_int_equal(segment->number, 1);
	overwriting->walks++;
	image->bytes[IMAGE_START(1) + FORMAT_PAGE + 100] ^= 1;
	image_put(image, IMAGE_START(1) + 56, 6 + overwriting->walks, 8);
	if (overwriting->footer_too)
		image_put(image, IMAGE_TAIL(1) + 56, 6 + overwriting->walks, 8);
	image_seal_header(image, 1);
	image_sync(image);
	return NULL;
}

static void note_end(void *context, const struct scan_outcome *outcome)
{
	struct overwriting *overwriting = context;

	overwriting->failures = outcome->failures;
	overwriting->state = outcome->segment.state;
}

static void scan_while_overwritten(struct overwriting *overwriting, bool in_use)
{
	static const struct scan_ops ops = { .begin = overwrite, .end = note_end };
	static const uint32_t number = 1;
	struct scan_request request = { .numbers = &number, .count = 1, .threads = 1, .quiet = true, .note = "" };
	char problem[FLASH_PROBLEM_BYTES];
	uint64_t offsets[COUNT];
	struct image image;
	struct flash flash;

	overwriting->image = &image;
	make(&image, offsets);
	if (in_use)
		image_lock(&image);
	assert_int_equal(flash_open(&flash, image.path, problem), 0);
	assert_int_equal(flash_in_use(&flash), in_use);
	request.flash = &flash;
	scan_run(&request, &ops, overwriting);
	assert_int_equal(overwriting->failures, 0);
	flash_close(&flash);
	image_close(&image);
}

static void a_segment_overwritten_again_and_again_is_no_damage(void **state)
{
	struct overwriting overwriting = { .footer_too = true };

	(void)state;
	scan_while_overwritten(&overwriting, true);
	assert_int_equal(overwriting.walks, 2);
	assert_int_equal(overwriting.state, SEGMENT_WRITING);
}

static void a_segment_that_begins_to_be_overwritten_is_no_damage(void **state)
{
	struct overwriting overwriting = { 0 };

	(void)state;
	scan_while_overwritten(&overwriting, true);
	assert_int_equal(overwriting.walks, 1);
	assert_int_equal(overwriting.state, SEGMENT_WRITING);
	overwriting = (struct overwriting){ 0 };
	scan_while_overwritten(&overwriting, false);
	assert_int_equal(overwriting.state, SEGMENT_TORN);
}

static void *count_walk(void *context, const struct segment *segment)
{
	(void)segment;
	((struct overwriting *)context)->walks++;
	return NULL;
}

/* New bytes may land before the header does: a second walk decides. */
static void damage_on_a_flash_in_use_is_told_after_a_second_walk(void **state)
{
	static const struct scan_ops ops = { .begin = count_walk, .end = note_end };
	static const uint32_t number = 1;
	struct scan_request request = { .numbers = &number, .count = 1, .threads = 1, .quiet = true, .note = "" };
	struct overwriting overwriting = { 0 };
	char problem[FLASH_PROBLEM_BYTES];
	uint64_t offsets[COUNT];
	struct image image;
	struct flash flash;

	(void)state;
	make(&image, offsets);
	image.bytes[DATA(offsets[2]) + 40] ^= 1;
	image_sync(&image);
	image_lock(&image);
	assert_int_equal(flash_open(&flash, image.path, problem), 0);
	request.flash = &flash;
	scan_run(&request, &ops, &overwriting);
	assert_int_equal(overwriting.walks, 2);
	assert_int_equal(overwriting.failures, 1);
	assert_int_equal(overwriting.state, SEGMENT_COMPLETE);
	flash_close(&flash);
	image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_with_a_flipped_bit_is_found),
		cmocka_unit_test(a_record_at_another_place_is_found),
		cmocka_unit_test(lengths_that_cannot_be_are_found),
		cmocka_unit_test(bytes_in_a_gap_are_found),
		cmocka_unit_test(a_broken_list_is_found),
		cmocka_unit_test(a_list_that_leads_nowhere_is_found),
		cmocka_unit_test(a_record_listed_twice_is_found),
		cmocka_unit_test(a_broken_filter_is_found),
		cmocka_unit_test(counts_that_are_wrong_are_found),
		cmocka_unit_test(a_cas_id_beyond_the_reserve_is_found),
		cmocka_unit_test(what_is_whole_passes),
		cmocka_unit_test(a_segment_overwritten_again_and_again_is_no_damage),
		cmocka_unit_test(a_segment_that_begins_to_be_overwritten_is_no_damage),
		cmocka_unit_test(damage_on_a_flash_in_use_is_told_after_a_second_walk),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
