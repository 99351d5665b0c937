/* SPDX-License-Identifier: BSD-3-Clause */
/* simd_internal.h: the search of this machine gives what the one in C gives. */
#include "tests/unit/flashindex/support.h"

#include <pthread.h>
#include <stdalign.h>

#include "base/thread.h"
#include "flashindex/simd_internal.h"

struct slots {
	alignas(64) _Atomic uint32_t slot[FIDX_BUCKET_SLOTS];
};

static void fill(struct slots *slots, uint32_t value)
{
	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
		atomic_store(&slots->slot[i], value);
}

static void test_nothing_matches_where_no_bit_is_right(void **state)
{
	struct slots slots;
	unsigned occupied = 1;

	(void)state;
	fill(&slots, 0);
	assert_int_equal(search_16(slots.slot, UINT32_MAX, 1, UINT32_MAX, &occupied), 0);
	assert_int_equal(occupied, 0);
	fill(&slots, 0x00ffff00);
	assert_int_equal(search_16(slots.slot, UINT32_MAX, 0x00ffff01, 0xff0000ff, &occupied), 0);
	assert_int_equal(occupied, 0);
}

static void test_a_slot_sets_its_own_bit_and_no_other(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
		for (unsigned bit = 0; bit < 32; bit++) {
			struct slots slots;
			unsigned occupied;

			fill(&slots, 0);
			atomic_store(&slots.slot[i], 1u << bit);
			assert_int_equal(search_16(slots.slot, UINT32_MAX, 1u << bit, 1u << bit, &occupied), 1 << i);
			assert_int_equal(occupied, 1 << i);
			assert_int_equal(search_16(slots.slot, UINT32_MAX, 0, ~(1u << bit), &occupied),
					 0xffff ^ 1 << i);
			assert_int_equal(occupied, 0);
		}
}

static void test_it_finds_what_the_search_in_c_finds(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, test_seed());
	for (unsigned round = 0; round < 20000; round++) {
		uint32_t mask = (uint32_t)rng_next(&rng) | (uint32_t)rng_next(&rng),
			 segments = (uint32_t)rng_next(&rng);
		uint32_t want = (uint32_t)rng_next(&rng) & (rng_below(&rng, 8) ? mask : UINT32_MAX);
		unsigned occupied = 0, plain_occupied = 0, plain;
		struct slots slots;

		segments &= (uint32_t)rng_next(&rng) & (uint32_t)rng_next(&rng);
		for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
			atomic_init(&slots.slot[i],
				    (rng_below(&rng, 2) ? want : 0) | ((uint32_t)rng_next(&rng) & ~mask));
		plain = search_plain(slots.slot, mask, want, segments, &plain_occupied);
		assert_int_equal(search_16(slots.slot, mask, want, segments, &occupied), plain);
		assert_int_equal(occupied, plain_occupied);
	}
}

/* ---- slots that change meanwhile --------------------------------------------------------------- */

#define ONE 0x01010101u
#define OTHER 0xfefefefeu
#define SEARCHES 200000u

struct changing {
	struct slots slots;
	_Atomic bool over;
};

static void *change(void *context)
{
	struct changing *changing = context;

	while (!atomic_load(&changing->over))
		for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
			atomic_store_explicit(&changing->slots.slot[i],
					      atomic_load(&changing->slots.slot[i]) == ONE ? OTHER : ONE,
					      memory_order_relaxed);
	return NULL;
}

/* One value has the lowest bit of each byte, the other one has all the others: a slot of parts of both is no whole one. */
static void test_a_slot_that_changes_is_read_whole(void **state)
{
	struct changing *changing = mem_aligned(64, sizeof(*changing));
	pthread_t thread;

	(void)state;
	assert_non_null(changing);
	fill(&changing->slots, ONE);
	atomic_init(&changing->over, false);
	assert_int_equal(thread_start(&thread, change, changing), 0);
	for (unsigned n = 0; n < SEARCHES; n++) {
		uint32_t low = n & 1 ? 0x0000ffffu : 0x00ff00ffu;
		unsigned occupied;

		assert_int_equal(search_16(changing->slots.slot, UINT32_MAX, (ONE & low) | (OTHER & ~low), UINT32_MAX,
					   &occupied),
				 0);
		assert_int_equal(search_16(changing->slots.slot, UINT32_MAX, (OTHER & low) | (ONE & ~low), UINT32_MAX,
					   &occupied),
				 0);
		assert_int_equal(occupied, 0xffff);
	}
	atomic_store(&changing->over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	mem_free(changing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_matches_where_no_bit_is_right),
		cmocka_unit_test(test_a_slot_sets_its_own_bit_and_no_other),
		cmocka_unit_test(test_it_finds_what_the_search_in_c_finds),
		cmocka_unit_test(test_a_slot_that_changes_is_read_whole),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
