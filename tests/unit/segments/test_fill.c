/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills: one a day, over starts of any kind, and no more than a flash full. */
#include <string.h>

#include "base/alloc.h"
#include "segments/fill.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENTS 40u
#define SEGMENT_BYTES (64u << 10)
#define DAY_S (24 * 60 * 60)
#define NOW_S 1700000000

struct fills {
	uint8_t *memory;
	struct flash flash;
};

static void begin(struct fills *fills)
{
	assert_int_equal(flash_open_ram(&fills->flash, SEGMENTS, SEGMENT_BYTES, 16, fills->memory), FS_OK);
}

/* Takes until nothing is left, and returns the number of segments. */
static unsigned take_all(struct fills *fills, int64_t wall_s)
{
	unsigned taken = 0;

	while (seg_fill_allows(fills->flash.seg, wall_s)) {
		assert_int_equal(seg_fill_take(fills->flash.seg, wall_s), FS_OK);
		assert_in_range(++taken, 1, 2 * SEGMENTS);
	}
	assert_int_equal(seg_fill_take(fills->flash.seg, wall_s), FS_EBUSY);
	return taken;
}

static struct seg_status status(const struct fills *fills)
{
	struct seg_status out;

	seg_get_status(fills->flash.seg, &out);
	return out;
}

static void none_begins_within_a_day_of_the_last(void **state)
{
	struct fills *fills = *state;

	assert_int_equal(status(fills).fills, 0);
	assert_int_equal(take_all(fills, NOW_S), SEGMENTS);
	assert_int_equal(take_all(fills, NOW_S + DAY_S - 1), 0);
	assert_int_equal(take_all(fills, NOW_S + DAY_S), SEGMENTS);
	assert_int_equal(status(fills).fills, 2);
}

static void a_clock_that_was_set_back_begins_none(void **state)
{
	struct fills *fills = *state;

	assert_int_equal(take_all(fills, NOW_S), SEGMENTS);
	assert_int_equal(take_all(fills, 1), 0);
	assert_int_equal(take_all(fills, NOW_S - 10 * DAY_S), 0);
	assert_false(seg_fill_allows(fills->flash.seg, 0)); /* a clock that knows nothing */
}

/* What is left goes on, in whatever state the flash is found; what a kill leaves unused of a part is lost. */
static void starts_share_a_fill(void **state)
{
	struct fills *fills = *state;
	unsigned all = 0;

	for (unsigned n = 0; n < 5; n++) {
		assert_int_equal(seg_fill_take(fills->flash.seg, NOW_S), FS_OK);
		all++;
		flash_close(&fills->flash); /* as a kill would */
		begin(fills);
	}
	assert_int_equal(status(fills).fills, 1);
	all += take_all(fills, NOW_S + 1);
	assert_in_range(all, SEGMENTS - 5 * (SEGMENTS / 16), SEGMENTS);
	flash_close(&fills->flash);
	begin(fills);
	assert_int_equal(take_all(fills, NOW_S + 2), 0);
}

static void a_clean_stop_gives_back_what_was_not_used(void **state)
{
	struct fills *fills = *state;

	assert_int_equal(seg_fill_take(fills->flash.seg, NOW_S), FS_OK);
	assert_int_equal(status(fills).fill_left_bytes, (SEGMENTS - 1) * (uint64_t)SEGMENT_BYTES);
	assert_int_equal(seg_end_clean(fills->flash.seg), FS_OK);
	flash_close(&fills->flash);
	begin(fills);
	assert_int_equal(status(fills).fill_left_bytes, (SEGMENTS - 1) * (uint64_t)SEGMENT_BYTES);
	assert_int_equal(take_all(fills, NOW_S), SEGMENTS - 1);
}

static void without_a_superblock_nothing_is_taken(void **state)
{
	struct fills *fills = *state;

	fills->flash.ram->fail_writes = true;
	assert_int_equal(seg_fill_take(fills->flash.seg, NOW_S), FS_EIO);
	fills->flash.ram->fail_writes = false;
	assert_int_equal(status(fills).fills, 0);
	assert_int_equal(take_all(fills, NOW_S), SEGMENTS);
}

static void a_part_is_a_segment_at_least(void **state)
{
	struct fills *fills = *state;
	struct flash small;

	(void)fills;
	assert_int_equal(flash_open_ram(&small, 3, SEGMENT_BYTES, 16, NULL), FS_OK);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(seg_fill_take(small.seg, NOW_S), FS_OK);
	assert_int_equal(seg_fill_take(small.seg, NOW_S), FS_EBUSY);
	flash_close(&small);
}

static int set_up(void **state)
{
	static struct fills fills;

	fills.memory = ram_memory(LAYOUT_SUPER_BYTES + SEGMENTS * (uint64_t)SEGMENT_BYTES);
	begin(&fills);
	*state = &fills;
	return 0;
}

static int tear_down(void **state)
{
	struct fills *fills = *state;

	flash_close(&fills->flash);
	mem_free(fills->memory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(none_begins_within_a_day_of_the_last, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_clock_that_was_set_back_begins_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(starts_share_a_fill, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_clean_stop_gives_back_what_was_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_superblock_nothing_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_is_a_segment_at_least, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
