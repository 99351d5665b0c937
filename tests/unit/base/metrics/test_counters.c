/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: nothing is lost with a thread's end, a reset writes to nobody's block. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/metrics/counters.h"

static void *count(void *unused)
{
	(void)unused;
	for (int i = 0; i < 10000; i++)
		ctr_add(CTR_get_hits, 1);
	ctr_add(CTR_bytes_read, 5);
	return NULL;
}

static void what_nobody_counts_is_zero(void **state)
{
	(void)state;
	for (int i = 0; i < CTR_COUNT; i++) {
		assert_int_equal(ctr_total((enum ctr)i), 0);
		assert_int_equal(ctr_sum((enum ctr)i), 0);
	}
}

static void counts_of_ended_threads_stay(void **state)
{
	pthread_t threads[4];

	(void)state;
	ctr_reset();
	ctr_add(CTR_get_hits, 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(ctr_sum(CTR_get_hits), 40002);
	assert_int_equal(ctr_sum(CTR_bytes_read), 20);
	assert_int_equal(ctr_sum(CTR_get_misses), 0);
}

static void a_reset_is_a_new_zero(void **state)
{
	(void)state;
	ctr_add(CTR_cmd_set, 7);
	ctr_reset();
	assert_int_equal(ctr_sum(CTR_cmd_set), 0);
	ctr_add(CTR_cmd_set, 3);
	assert_int_equal(ctr_sum(CTR_cmd_set), 3);
}

static void each_counter_is_described(void **state)
{
	(void)state;
	assert_string_equal(ctr_info(CTR_get_hits)->name, "get_hits");
	assert_int_equal(ctr_info(CTR_get_hits)->group, CTR_GROUP_GENERAL);
	for (int i = 0; i < CTR_COUNT; i++) {
		assert_non_null(ctr_info((enum ctr)i)->name);
		assert_true(ctr_info((enum ctr)i)->text[0] && ctr_info((enum ctr)i)->unit[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_counts_is_zero),
		cmocka_unit_test(counts_of_ended_threads_stay),
		cmocka_unit_test(a_reset_is_a_new_zero),
		cmocka_unit_test(each_counter_is_described),
	};

	return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
