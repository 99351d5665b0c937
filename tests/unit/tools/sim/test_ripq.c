/* SPDX-License-Identifier: BSD-3-Clause */
/* ripq: blocks of one object, eight of them on flash, eight new objects in DRAM. */
#include "sim_test.h"

static void test_what_is_not_read_is_evicted_in_turn(void **state)
{
	(void)state;
	play_objects("ripq", 16, 8, "abcdefghijklmnopqa", "..................");
	assert_int_equal(play_objects("ripq", 16, 8, "abcdefghijklmnopqb", ".................+").flash_bytes_written,
			 9);
}

static void test_what_was_read_is_written_again(void **state)
{
	struct sim_figures figures = play_objects("ripq", 16, 8, "abcdefghijklmnopqbrbc", ".................+.+.");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 12); /* a to k, and b again */
	assert_int_equal(figures.flash_objects, 8);
	assert_int_equal(figures.dram_objects, 8);
}

static void test_a_set_and_a_delete_take_the_object_off_flash(void **state)
{
	(void)state;
	play_objects("ripq", 16, 8, "abcdefghij-aa", "...........");
	assert_int_equal(play_objects("ripq", 16, 8, "abcdefghijA", "..........").flash_objects, 2); /* b and c */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_read_is_evicted_in_turn),
		cmocka_unit_test(test_what_was_read_is_written_again),
		cmocka_unit_test(test_a_set_and_a_delete_take_the_object_off_flash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
