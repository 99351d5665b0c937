/* SPDX-License-Identifier: BSD-3-Clause */
/* Lock ranks: the wrong order is caught in debug builds, the right one passes everywhere. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/lock.h"
#include "tests/unit/base/base_test.h"

static struct lock stripes[2], table, leaves[2];

static void init_all(void)
{
	lock_init(&stripes[0], LOCK_KEY_STRIPE);
	lock_init(&stripes[1], LOCK_KEY_STRIPE);
	lock_init(&table, LOCK_SEGMENT_TABLE);
	lock_init(&leaves[0], LOCK_LEAF);
	lock_init(&leaves[1], LOCK_LEAF);
}

#ifdef FS_DEBUG

static char text[4096];

static void falling_rank(void)
{
	lock_acquire(&table);
	lock_acquire(&stripes[0]);
}

static void falling_address(void)
{
	lock_acquire(&stripes[1]);
	lock_acquire(&stripes[0]);
}

static void twice(void)
{
	lock_acquire(&stripes[0]);
	lock_acquire(&stripes[0]);
}

static void under_a_leaf(void)
{
	lock_acquire(&leaves[0]);
	lock_acquire(&leaves[1]);
}

static void not_held(void)
{
	lock_assert_held(&table);
}

static void blocking_after_a_try(void)
{
	lock_acquire(&stripes[1]);
	if (lock_try(&table))
		lock_acquire(&stripes[0]);
}

static void wrong_orders_abort(void **state)
{
	void (*const wrong[])(void) = { falling_rank, falling_address, twice,
					under_a_leaf, not_held,        blocking_after_a_try };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int status = run_in_child(wrong[i], text, sizeof(text));

		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		assert_non_null(strstr(text, "assertion failed"));
	}
}

static void the_message_names_both_ranks(void **state)
{
	(void)state;
	run_in_child(falling_rank, text, sizeof(text));
	assert_non_null(strstr(text, "LOCK_KEY_STRIPE is acquired while LOCK_SEGMENT_TABLE is held"));
}

#else

static void wrong_orders_abort(void **state)
{
	(void)state;
	skip();
}

static void the_message_names_both_ranks(void **state)
{
	(void)state;
	skip();
}

#endif

static void a_try_of_a_taken_lock_fails(void **state)
{
	(void)state;
	lock_acquire(&table);
	assert_false(lock_try(&table));
	lock_release(&table);
	assert_true(lock_try(&table));
	lock_assert_held(&table);
	lock_release(&table);
}

static void rising_ranks_and_addresses_pass(void **state)
{
	(void)state;
	lock_acquire(&stripes[0]);
	lock_acquire(&stripes[1]);
	lock_acquire(&table);
	lock_acquire(&leaves[0]);
	lock_assert_held(&stripes[0]);
	lock_release(&stripes[0]); /* any order */
	lock_release(&leaves[0]);
	lock_release(&table);
	lock_release(&stripes[1]);
}

static void *add(void *counter)
{
	for (int i = 0; i < 10000; i++) {
		lock_acquire(&table);
		++*(long *)counter;
		lock_release(&table);
	}
	return NULL;
}

static void it_excludes(void **state)
{
	pthread_t threads[4];
	long counter = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add, &counter), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter, 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_orders_abort),
		cmocka_unit_test(the_message_names_both_ranks),
		cmocka_unit_test(a_try_of_a_taken_lock_fails),
		cmocka_unit_test(rising_ranks_and_addresses_pass),
		cmocka_unit_test(it_excludes),
	};

	init_all();
	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
