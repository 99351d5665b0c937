/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps of the pages whose last record crosses their end. */
#include "segments/crossings_internal.h"
#include "tests/unit/segments/fixture.h"

#define PAGES 64u
#define MAP_BYTES (PAGES / 2)
#define FAR (100 * SEG_PAGE)

static crossing_pair map[MAP_BYTES];

static void a_map_has_half_a_byte_for_each_page(void **state)
{
	(void)state;
	assert_int_equal(crossings_bytes(PAGES * SEG_PAGE), MAP_BYTES);
	assert_int_equal(crossings_bytes((PAGES + 1) * SEG_PAGE), MAP_BYTES + 8);
	assert_int_equal(crossings_bytes(SEG_MIN_BYTES), 8);
}

static void a_read_ends_with_its_page_where_nothing_crosses(void **state)
{
	(void)state;
	crossings_clear(map, MAP_BYTES);
	assert_int_equal(crossings_read_length(map, 3 * SEG_PAGE, FAR), SEG_PAGE);
	assert_int_equal(crossings_read_length(map, 4 * SEG_PAGE - 40, FAR), 40);
	assert_int_equal(crossings_read_length(map, 3 * SEG_PAGE, 300), 300);
}

static void nothing_known_means_the_whole_length(void **state)
{
	(void)state;
	crossings_forget(map, MAP_BYTES);
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(crossings_read_length(map, page * SEG_PAGE + 100, 5000), 5000);
	crossings_note(map, 7 * SEG_PAGE, 200);
	assert_int_equal(crossings_read_length(map, 7 * SEG_PAGE, 5000), SEG_PAGE);
	assert_int_equal(crossings_read_length(map, 6 * SEG_PAGE, 5000), 5000);
	assert_int_equal(crossings_read_length(map, 8 * SEG_PAGE, 5000), 5000);
}

/* Records before the one that crosses are read with their own page alone. */
static void only_the_record_that_crosses_takes_another_page(void **state)
{
	const uint64_t page = 9 * SEG_PAGE;

	(void)state;
	crossings_clear(map, MAP_BYTES);
	crossings_note(map, page, 1000);
	crossings_note(map, page + 1000, 2900);
	crossings_note(map, page + 3900, 300);
	assert_int_equal(crossings_read_length(map, page, FAR), SEG_PAGE);
	assert_int_equal(crossings_read_length(map, page + 1000, FAR), SEG_PAGE - 1000);
	assert_int_equal(crossings_read_length(map, page + 3900, FAR), SEG_PAGE - 3900 + SEG_PAGE);
	assert_int_equal(crossings_read_length(map, page + 3900, 300), 300);
	assert_int_equal(crossings_read_length(map, page + SEG_PAGE, FAR), SEG_PAGE);
	assert_int_equal(crossings_read_length(map, page - SEG_PAGE, FAR), SEG_PAGE);
}

/* A read covers its record wherever that begins, and takes at most a third more pages. */
static void a_read_covers_its_record(void **state)
{
	(void)state;
	for (uint64_t length = 33; length < 20 * SEG_PAGE; length += 61) {
		for (uint64_t at = 0; at < SEG_PAGE; at += 104) {
			uint64_t offset = 5 * SEG_PAGE + at, pages = (at + length + SEG_PAGE - 1) / SEG_PAGE, taken;

			crossings_clear(map, MAP_BYTES);
			crossings_note(map, offset, length);
			taken = crossings_read_length(map, offset, FAR);
			assert_true(taken >= length);
			if (pages <= 13)
				assert_in_range((at + taken + SEG_PAGE - 1) / SEG_PAGE, pages, pages + pages / 3);
			else
				assert_int_equal(taken, FAR);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_has_half_a_byte_for_each_page),
		cmocka_unit_test(a_read_ends_with_its_page_where_nothing_crosses),
		cmocka_unit_test(nothing_known_means_the_whole_length),
		cmocka_unit_test(only_the_record_that_crosses_takes_another_page),
		cmocka_unit_test(a_read_covers_its_record),
	};

	return cmocka_run_group_tests_name("crossings", tests, NULL, NULL);
}
