/* SPDX-License-Identifier: BSD-3-Clause */
/* Read buffers: sizes by class, idle ones kept within a bound. */
#include "segments/pool_internal.h"
#include "tests/unit/segments/fixture.h"

static void a_buffer_is_large_enough_and_aligned(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool);
	for (uint64_t bytes = 1; bytes < 20u << 20; bytes += bytes < SEG_PAGE ? 1 : bytes / 3 + 1000) {
		uint64_t size;
		void *buffer = pool_take(&pool, bytes, &size);

		assert_non_null(buffer);
		assert_true(size >= bytes);
		if (bytes <= SEG_PAGE / 2) {
			assert_int_equal((uintptr_t)buffer % size, 0); /* so it lies within a page */
			assert_true(size % 512 == 0 && (size == 512 || size < 2 * bytes));
		} else {
			assert_int_equal((uintptr_t)buffer % SEG_PAGE, 0);
			assert_int_equal(size % SEG_PAGE, 0);
			assert_true(size <= bytes + bytes / 2 + SEG_PAGE); /* no class wastes more than half */
		}
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

/* More small buffers than there are nodes: those beyond are freed. */
static void small_ones_are_bounded_by_their_number(void **state)
{
	static void *buffers[POOL_IDLE_MAX + 50];
	unsigned count = sizeof(buffers) / sizeof(buffers[0]);
	struct pool pool;
	uint64_t size;

	(void)state;
	pool_init(&pool);
	for (unsigned i = 0; i < count; i++)
		buffers[i] = pool_take(&pool, 300, &size);
	assert_int_equal(size, 512);
	for (unsigned i = 0; i < count; i++)
		pool_give(&pool, buffers[i], size);
	assert_int_equal(pool.bytes, POOL_IDLE_MAX * 512);
	assert_int_equal(pool.idle_bytes, POOL_IDLE_MAX * 512);
	buffers[0] = pool_take(&pool, 513, &size); /* of another class */
	assert_int_equal(size, 1024);
	assert_int_equal(pool.bytes, POOL_IDLE_MAX * 512 + 1024);
	pool_give(&pool, buffers[0], size);
	assert_int_equal(pool.bytes, POOL_IDLE_MAX * 512);
	pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_large_enough_and_aligned),
		cmocka_unit_test(idle_ones_are_used_again_and_bounded),
		cmocka_unit_test(small_ones_are_bounded_by_their_number),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
