/* SPDX-License-Identifier: BSD-3-Clause */
/* Read buffers: sizes by class, idle ones kept within a bound. */
#include "segments/pool_internal.h"
#include "tests/unit/segments/fixture.h"

static void a_buffer_is_large_enough_and_aligned(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool);
	for (uint64_t bytes = 1; bytes < 20u << 20; bytes += bytes / 3 + 1000) {
		uint64_t size;
		void *buffer = pool_take(&pool, bytes, &size);

		assert_non_null(buffer);
		assert_int_equal((uintptr_t)buffer % SEG_PAGE, 0);
		assert_true(size >= bytes && size % SEG_PAGE == 0);
		assert_true(size <= bytes + bytes / 2 + SEG_PAGE); /* no class wastes more than half */
		pool_give(&pool, buffer, size);
	}
	pool_fini(&pool);
}

static void idle_ones_are_used_again_and_bounded(void **state)
{
	void *buffers[600];
	struct pool pool;
	uint64_t size;

	(void)state;
	pool_init(&pool);
	for (int i = 0; i < 600; i++)
		buffers[i] = pool_take(&pool, SEG_PAGE, &size);
	assert_int_equal(pool.bytes, 600 * SEG_PAGE);
	for (int i = 0; i < 600; i++)
		pool_give(&pool, buffers[i], size);
	assert_int_equal(pool.bytes, 1u << 20);
	buffers[0] = pool_take(&pool, SEG_PAGE, &size);
	assert_int_equal(pool.bytes, 1u << 20);
	pool_give(&pool, buffers[0], size);
	pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_large_enough_and_aligned),
		cmocka_unit_test(idle_ones_are_used_again_and_bounded),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
