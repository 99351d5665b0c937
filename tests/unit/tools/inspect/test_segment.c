/* SPDX-License-Identifier: BSD-3-Clause */
/* What first and last page of a segment mean together, and which of it is damage. */
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/tools/inspect/image.h"
#include "tools/inspect/live.h"

static const struct image_record two[] = {
	{ .key = "a", .value_length = 10, .cas = 1 },
	{ .key = "b", .value_length = 20, .cas = 2, .expiry = 100 },
};
static const struct image_segment plain = { .sequence = 9, .records = two, .count = 2 };

static enum segment_state state_of(const struct image *image, uint32_t number, char why[SEGMENT_WHY_BYTES])
{
	char problem[FLASH_PROBLEM_BYTES];
	enum segment_state state;
	struct segment *all;
	uint64_t newest;
	struct flash flash;

	image_sync(image);
	assert_int_equal(flash_open(&flash, image->path, problem), 0);
	all = command_segments(&flash, &newest);
	state = all[number].state;
	if (why)
		memcpy(why, all[number].why, SEGMENT_WHY_BYTES);
	mem_free(all);
	flash_close(&flash);
	return state;
}

static void start(struct image *image)
{
	image_create(image, 3);
	image_write(image, 1, &plain, NULL);
}

static void fields_that_cannot_be_make_it_broken(void **state)
{
	static const struct {
		unsigned at, bytes;
		uint64_t value;
		const char *why;
	} cases[] = {
		{ 64, 4, 2, "the one of segment 2" },
		{ 72, 4, 0, "granule 0" },
		{ 80, 8, 8192, "extents don't begin" },
		{ 96, 8, 4097, "don't follow each other" },
		{ 96, 8, 1ull << 63, "don't follow each other" },
		{ 104, 8, UINT64_MAX, "data area and footer" },
		{ 104, 8, 0, "data area and footer" },
		{ 112, 8, IMAGE_SEGMENT, "footer doesn't end" },
		{ 112, 8, UINT64_MAX - 4095, "footer doesn't end" },
		{ 120, 8, FORMAT_PAGE, "footer doesn't end" },
		{ 128, 4, UINT32_MAX, "more records than fit" },
		{ 132, 4, 3, "more extents than records" },
		{ 136, 8, UINT64_MAX, "more records than fit" },
		{ 152, 8, 2, "a start that has not been" },
		{ 160, 4, 17, "functions" },
		{ 56, 8, 1000, "has not reserved" },
		{ 8, 4, 2, "another version" },
		{ 32, 8, 4, "unknown feature" },
		{ 32, 8, 3, "bins and a chain at once" },
		{ 164, 4, 4096, "without bins" },
		{ 32, 8, 1, "size of bins" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SEGMENT_WHY_BYTES];
		struct image image;

		start(&image);
		image_put(&image, IMAGE_START(1) + cases[i].at, cases[i].value, cases[i].bytes);
		image_seal_header(&image, 1);
		if (state_of(&image, 1, why) != SEGMENT_BROKEN || !strstr(why, cases[i].why))
			fail_msg("case %u: \"%s\"", i, why);
		image_close(&image);
	}
}

static void a_footer_that_does_not_fit_makes_it_broken(void **state)
{
	static const struct {
		unsigned at;
		uint64_t value;
	} cases[] = {
		{ 64, 3 }, { 68, 1 }, { 72, 5 }, { 80, UINT64_MAX }, { 80, 2 * FORMAT_PAGE }, { 96, UINT64_MAX - 7 },
		{ 56, 10 }
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image image;

		start(&image);
		image_put(&image, IMAGE_TAIL(1) + cases[i].at, cases[i].value,
			  cases[i].at < 72 && cases[i].at > 56 ? 4 : 8);
		image_seal_tail(&image, 1);
		assert_int_equal(state_of(&image, 1, NULL), SEGMENT_BROKEN);
		image_close(&image);
	}
}

static void a_lost_page_is_damage(void **state)
{
	struct image image;

	(void)state;
	start(&image);
	memset(image.bytes + IMAGE_START(1), 0, FORMAT_PAGE);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_BROKEN);
	memset(image.bytes + IMAGE_START(1), 'x', FORMAT_PAGE);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_BROKEN);
	image_close(&image);
	start(&image);
	image.bytes[IMAGE_TAIL(1)] = 'x';
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_BROKEN);
	image_close(&image);
}

static void what_was_cut_off_is_no_damage(void **state)
{
	struct image_segment cut = plain;
	struct image image;

	(void)state;
	cut.no_tail = true;
	image_create(&image, 3);
	image_write(&image, 1, &cut, NULL);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_TORN);
	/* Over an older life, whose tail is still there. */
	image_write(&image, 1, &plain, NULL);
	image_put(&image, IMAGE_START(1) + 56, 10, 8);
	image_put(&image, IMAGE_START(1) + FORMAT_PAGE - 8, format_sum(image.bytes + IMAGE_START(1), FORMAT_PAGE - 8),
		  8);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_TORN);
	/* A daemon is at it, unless it has gone on to a younger one since. */
	image_lock(&image);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_WRITING);
	cut = plain;
	cut.sequence = 11;
	image_write(&image, 2, &cut, NULL);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_TORN);
	image_close(&image);
}

static void what_was_there_before_is_no_damage(void **state)
{
	struct image image;

	(void)state;
	start(&image);
	memset(image.bytes + IMAGE_START(0), 'x', FORMAT_PAGE);
	assert_int_equal(state_of(&image, 0, NULL), SEGMENT_STRANGE);
	assert_int_equal(state_of(&image, 2, NULL), SEGMENT_EMPTY);
	/* Another layout of the same flash: a new UUID. */
	image_put(&image, 48, 0xff, 1);
	image_seal_super(&image);
	assert_int_equal(state_of(&image, 1, NULL), SEGMENT_STRANGE);
	image_close(&image);
}

static void a_file_that_is_too_short_is_damage(void **state)
{
	struct image_tally tally;
	char why[SEGMENT_WHY_BYTES];
	struct image image;

	(void)state;
	start(&image);
	image_truncate(&image, IMAGE_START(2) - 100);
	image.length = IMAGE_START(2) - 100;
	assert_int_equal(state_of(&image, 0, why), SEGMENT_EMPTY);
	assert_int_equal(state_of(&image, 1, why), SEGMENT_MISSING);
	assert_string_equal(why, "the file ends 100 bytes before the segment does");
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 2);
	image_close(&image);
}

/* ---- what is live ---------------------------------------------------------------------------- */

static void count_live(const struct image *image, int64_t uptime_s, struct live_count counts[3])
{
	struct inspect_options options = { .threads = 2, .quiet = true, .uptime_s = uptime_s };
	char problem[FLASH_PROBLEM_BYTES];
	struct live_count *all;
	struct segment *segments;
	struct flash flash;
	uint64_t newest;

	assert_int_equal(flash_open(&flash, image->path, problem), 0);
	segments = command_segments(&flash, &newest);
	all = live_counts(&options, &flash, segments, newest);
	memcpy(counts, all, 3 * sizeof(*counts));
	mem_free(all);
	mem_free(segments);
	flash_close(&flash);
}

static void younger_records_supersede_older_ones(void **state)
{
	static const struct image_record younger[] = {
		{ .key = "b", .value_length = 1, .cas = 7, .expiry = 50 },
		{ .key = "c", .value_length = 1, .cas = 8 },
	};
	const struct image_segment segment = { .sequence = 10, .records = younger, .count = 2 };
	struct live_count counts[3];
	struct image image;

	(void)state;
	start(&image);
	image_write(&image, 0, &segment, NULL); /* of a lower number, and younger */
	count_live(&image, -1, counts);
	assert_int_equal(counts[1].live, 1);
	assert_int_equal(counts[1].superseded, 1);
	assert_int_equal(counts[0].live, 2);
	assert_int_equal(counts[0].expiring, 1);
	assert_false(counts[2].known);
	/* Expired: "b" in the younger one. It still hides the older. */
	count_live(&image, 47, counts);
	assert_int_equal(counts[0].expired, 0);
	count_live(&image, 48, counts);
	assert_int_equal(counts[0].expired, 1);
	assert_int_equal(counts[0].live, 1);
	assert_int_equal(counts[1].superseded, 1);
	image_close(&image);
}

static void segments_of_an_earlier_start_hold_nothing_live(void **state)
{
	struct live_count counts[3];
	struct image image;

	(void)state;
	start(&image);
	image_put(&image, 280, 2, 8);
	image_seal_super(&image);
	image_sync(&image);
	count_live(&image, -1, counts);
	assert_false(counts[1].known);
	assert_int_equal(counts[1].live, 0);
	image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_cannot_be_make_it_broken),
		cmocka_unit_test(a_footer_that_does_not_fit_makes_it_broken),
		cmocka_unit_test(a_lost_page_is_damage),
		cmocka_unit_test(what_was_cut_off_is_no_damage),
		cmocka_unit_test(what_was_there_before_is_no_damage),
		cmocka_unit_test(a_file_that_is_too_short_is_damage),
		cmocka_unit_test(younger_records_supersede_older_ones),
		cmocka_unit_test(segments_of_an_earlier_start_hold_nothing_live),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
