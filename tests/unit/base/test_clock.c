/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripted clock moves only when told; boot time never goes back. */
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "tests/unit/base/base_test.h"

static void a_scripted_clock_stands_still(void **state)
{
	struct clk clk;

	(void)state;
	clk_scripted_init(&clk, 5000000);
	assert_int_equal(clk_now_us(&clk), 5000000);
	assert_int_equal(clk_now_us(&clk), 5000000);
	clk_scripted_advance(&clk, 1500);
	assert_int_equal(clk_now_us(&clk), 5001500);
	assert_int_equal(clk_now_ns(&clk), 5001500000);
	assert_int_equal(clk_now_ms(&clk), 5001);
}

static void *advance(void *clk)
{
	for (int i = 0; i < 10000; i++)
		clk_scripted_advance(clk, 1);
	return NULL;
}

static void threads_may_move_it_together(void **state)
{
	pthread_t threads[4];
	struct clk clk;

	(void)state;
	clk_scripted_init(&clk, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, advance, &clk), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(clk_now_us(&clk), 40000);
}

static void boot_time_never_goes_back(void **state)
{
	uint64_t before = clk_now_us(clk_boot());

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t now = clk_now_us(clk_boot());

		assert_true(now >= before);
		before = now;
	}
}

#ifdef FS_FAULTS
static void boot_time_is_driven(void **state)
{
	uint64_t before = clk_now_us(clk_boot()), stood;

	(void)state;
	clk_boot_advance(3600000000);
	assert_true(clk_now_us(clk_boot()) >= before + 3600000000);
	clk_boot_stand(true);
	stood = clk_now_us(clk_boot());
	clk_boot_stand(true);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(clk_now_us(clk_boot()), stood);
	clk_boot_advance(1000);
	assert_int_equal(clk_now_us(clk_boot()), stood + 1000);
	clk_boot_stand(false);
	clk_boot_stand(false);
	assert_true(clk_now_us(clk_boot()) >= stood + 1000);
	while (clk_now_us(clk_boot()) == stood + 1000) /* it goes again */
		;
	clk_boot_advance(500);
	assert_true(clk_now_us(clk_boot()) >= stood + 1500);
}
#endif

static void the_wall_clock_counts_from_1970(void **state)
{
	int64_t now = time(NULL);

	(void)state;
	assert_true(clk_wall_seconds() >= now - 1 && clk_wall_seconds() <= now + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scripted_clock_stands_still),
		cmocka_unit_test(threads_may_move_it_together),
		cmocka_unit_test(boot_time_never_goes_back),
#ifdef FS_FAULTS
		cmocka_unit_test(boot_time_is_driven),
#endif
		cmocka_unit_test(the_wall_clock_counts_from_1970),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
