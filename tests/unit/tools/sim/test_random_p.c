/* SPDX-License-Identifier: BSD-3-Clause */
/* random-p: none, all, and what is kept at reclaim. */
#include "sim_test.h"

static void test_with_probability_zero_nothing_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("random-p:0", 1, 4, "abcab", ".....").flash_bytes_written, 0);
}

static void test_without_flash_nothing_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("random-p:1", 1, 0, "abcab", ".....").flash_bytes_written, 0);
}

static void test_with_probability_one_all_is_written_and_stays(void **state)
{
	struct sim_figures figures = play_objects("random-p:1", 1, 4, "abcab", "...++");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 2);
	assert_int_equal(figures.flash_hits, 2);
	assert_int_equal(figures.flash_reads, 2);
}

static void test_the_oldest_segment_is_reclaimed(void **state)
{
	(void)state;
	play_objects("random-p:1", 1, 4, "abcdefa", ".......");
	play_objects("random-p:1", 1, 4, "abcdefb", "......+");
	play_objects("random-p:1", 1, 4, "abacdefa", "..+.....");
}

static void test_what_was_read_is_written_again(void **state)
{
	(void)state;
	assert_int_equal(play_objects("random-p:reinsert:1", 1, 4, "abacdefa", "..+....+").flash_bytes_written, 6);
	/* It was not read since: the next turn takes it. */
	play_objects("random-p:reinsert:1", 1, 4, "abacdefghijka", "..+..........");
}

static void test_a_set_and_a_delete_take_the_object_off_flash(void **state)
{
	(void)state;
	play_objects("random-p:1", 1, 4, "ab-aa", "...");
	assert_int_equal(play_objects("random-p:1", 1, 4, "abAc", "...").flash_objects, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_probability_zero_nothing_is_written),
		cmocka_unit_test(test_without_flash_nothing_is_written),
		cmocka_unit_test(test_with_probability_one_all_is_written_and_stays),
		cmocka_unit_test(test_the_oldest_segment_is_reclaimed),
		cmocka_unit_test(test_what_was_read_is_written_again),
		cmocka_unit_test(test_a_set_and_a_delete_take_the_object_off_flash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
