/* SPDX-License-Identifier: BSD-3-Clause */
/* fifo: a hit changes nothing. */
#include "sim_test.h"

static void test_evicts_in_the_order_of_insertion(void **state)
{
	(void)state;
	play_objects("fifo", 0, 0, "aa", "..");
	play_objects("fifo", 2, 0, "abaca", "..+..");
	play_objects("fifo", 2, 0, "abacb", "..+.+");
}

static void test_a_set_of_what_is_there_keeps_its_turn(void **state)
{
	(void)state;
	play_objects("fifo", 2, 0, "abAca", "....");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evicts_in_the_order_of_insertion),
		cmocka_unit_test(test_a_set_of_what_is_there_keeps_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
