/* SPDX-License-Identifier: BSD-3-Clause */
/* s3fifo: two reads, or a return, lead to flash. */
#include "sim_test.h"

static void test_one_read_is_not_enough(void **state)
{
	(void)state;
	assert_int_equal(play_objects("s3fifo", 1, 4, "aab", ".+.").flash_bytes_written, 0);
	assert_int_equal(play_objects("s3fifo:1", 1, 4, "aab", ".+.").flash_bytes_written, 1);
}

static void test_two_reads_are(void **state)
{
	(void)state;
	assert_int_equal(play_objects("s3fifo", 1, 4, "aaaba", ".++.+").flash_bytes_written, 1);
}

static void test_what_comes_back_is_written_at_once(void **state)
{
	struct sim_figures figures = play_objects("s3fifo", 1, 4, "abaa", "...+");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 1);
	assert_int_equal(figures.dram_objects, 1); /* b, which nothing drove out */
}

static void test_dram_is_a_fifo(void **state)
{
	(void)state;
	play_objects("s3fifo", 2, 0, "abaca", "..+..");
}

static void test_reads_on_flash_save_for_as_many_turns(void **state)
{
	/* a is read twice on flash. When a, b, c and e fill it, each object that comes back reclaims segments: a is written
	   again twice, and then it is not. */
	(void)state;
	play_objects("s3fifo", 1, 4,
		     "abaabbcdcdaefef"
		     "dghgihjikjlk"
		     "a",
		     "...+++...++...+"
		     "............"
		     "+");
	play_objects("s3fifo", 1, 4,
		     "abaabbcdcdaefef"
		     "dghgihjikjlkml"
		     "a",
		     "...+++...++...+"
		     ".............."
		     ".");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_read_is_not_enough),
		cmocka_unit_test(test_two_reads_are),
		cmocka_unit_test(test_what_comes_back_is_written_at_once),
		cmocka_unit_test(test_dram_is_a_fifo),
		cmocka_unit_test(test_reads_on_flash_save_for_as_many_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
