/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: one that can't be started is told by its errno, and one that can runs. */
#include <errno.h>

#include "base/fault.h"
#include "base/thread.h"
#include "tests/unit/base/base_test.h"

static void *add_one(void *context)
{
	++*(int *)context;
	return context;
}

static void a_refused_start_is_told(void **state)
{
	pthread_t thread;
	int runs = 0;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_thread_start, FAULT_AFTER, 1);
	assert_int_equal(thread_start(&thread, add_one, &runs), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(thread_start(&thread, add_one, &runs), EAGAIN);
	fault_disarm_all();
	assert_int_equal(runs, 1);
}

static void a_started_thread_gets_its_context(void **state)
{
	pthread_t thread;
	void *result;
	int runs = 0;

	(void)state;
	assert_int_equal(thread_start(&thread, add_one, &runs), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &runs);
	assert_int_equal(runs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_start_is_told),
		cmocka_unit_test(a_started_thread_gets_its_context),
	};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
