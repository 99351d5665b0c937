/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of extents grows and shrinks: nothing is lost, nothing dead is moved, and nobody misses an entry. */
#include "tests/unit/flashindex/support.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "flashindex/index_internal.h"

/* What a closed segment left behind is not moved. */
static void test_no_more_room_is_made_than_there_may_be(void **state)
{
	struct fixture f = { .config = { .buckets = 10, .segments = 2, .functions = 16, .extents_most = 0 } };

	(void)state;
	assert_int_equal(fixture_try(&f), 0);
	assert_int_equal(fidx_extents_reserve(f.index, 0), FS_OK);
	assert_int_equal(fidx_extents_reserve(f.index, 1), FS_ERANGE);
	assert_int_equal(status_of(f.index).extents, 0);
	assert_true(region_bytes(f.region) <= 2 * 4096); /* the head, and the ten buckets' page */
	fixture_close(&f);
}

static void test_groups_have_room_to_spare(void **state)
{
	uint64_t before = 0;

	(void)state;
	assert_int_equal(extents_groups(0), 0);
	for (uint64_t entries = 1; entries < 5000000; entries += 1 + entries / 9) {
		uint64_t groups = extents_groups(entries);

		assert_true(groups >= before);
		assert_true(groups * EXTENT_WAYS * 6 >= entries * 10); /* a load of 0.6 at the most */
		assert_true(groups * EXTENT_WAYS <= entries * 2 + 100);
		before = groups;
	}
}

static void test_reserving_what_fits_changes_nothing(void **state)
{
	struct fixture f = { .config = { .buckets = 10, .segments = 2, .functions = 16, .extents_most = 3000 } };
	uint64_t extents, bytes;

	(void)state;
	assert_int_equal(fixture_try(&f), 0);
	assert_int_equal(fidx_extents_reserve(f.index, 1000), FS_OK);
	extents = status_of(f.index).extents;
	bytes = region_bytes(f.region);
	assert_true(extents >= 1000);
	/* Fewer would make the empty table shrink. */
	for (uint32_t more = 400; more <= 1000; more += 100) {
		assert_int_equal(fidx_extents_reserve(f.index, more), FS_OK);
		assert_int_equal(status_of(f.index).extents, extents);
	}
	assert_int_equal(region_bytes(f.region), bytes);
	fixture_close(&f);
}

/* What an entry is: CLOCK value, read or not, ghost or not, length and offset. */
static void test_an_entry_is_the_same_after_a_move(void **state)
{
	struct fixture f = { .config = { .buckets = 10, .segments = 1, .functions = 16, .extents_most = 3000 } };
	struct fidx_extent before[60], after;
	struct fidx_key keys[60];
	uint64_t visited;

	(void)state;
	assert_int_equal(fixture_try(&f), 0);
	open_segment(&f, 0, 100);
	assert_int_equal(fidx_extents_reserve(f.index, 60), FS_OK);
	for (unsigned i = 0; i < 60; i++) {
		keys[i] = key_next(&f);
		assert_true(fidx_extent_insert(f.index, &keys[i], 0, UINT64_C(4096) * i << 20, 1000 + i, i % 4));
	}
	assert_true(fidx_hand(f.index, 20, 1u << 30, &visited) > 0); /* some become ghosts */
	for (unsigned i = 0; i < 60; i++) {
		if (i % 5 == 3)
			fidx_extent_touch(f.index, &keys[i], 0, UINT64_C(4096) * i << 20);
		assert_true(fidx_extent_find(f.index, &keys[i], &before[i]));
	}
	assert_true(status_of(f.index).ghosts > 0);
	for (unsigned round = 0; round < 2; round++) { /* it grows, and shrinks again */
		uint64_t live_bytes = (uint64_t)status_of(f.index).live_bytes, ghosts = status_of(f.index).ghosts;

		assert_int_equal(fidx_extents_reserve(f.index, round ? 0 : 2900), FS_OK);
		for (unsigned i = 0; i < 60; i++) {
			assert_true(fidx_extent_find(f.index, &keys[i], &after));
			assert_true(after.sequence == before[i].sequence && after.offset == before[i].offset);
			assert_true(after.length == before[i].length && after.segment == before[i].segment);
			assert_true(after.clock == before[i].clock && after.ghost == before[i].ghost);
			assert_int_equal(after.read_on_flash, before[i].read_on_flash);
		}
		assert_int_equal(status_of(f.index).live_bytes, live_bytes);
		assert_int_equal(status_of(f.index).ghosts, ghosts);
		assert_true(fidx_verify(f.index));
	}
	fixture_close(&f);
}

static void test_entries_of_closed_segments_stay_behind(void **state)
{
	struct fixture f = { .config = { .buckets = 10, .segments = 2, .functions = 16, .extents_most = 3000 } };
	struct fidx_extent extent;
	struct fidx_key keys[200];

	(void)state;
	assert_int_equal(fixture_try(&f), 0);
	fidx_segment_open(f.index, 0, 0, 5, 100, NULL, 0);
	fidx_segment_open(f.index, 1, 0, 6, 100, NULL, 0);
	assert_int_equal(fidx_extents_reserve(f.index, 200), FS_OK);
	for (unsigned i = 0; i < 200; i++) {
		keys[i] = key_next(&f);
		assert_true(fidx_extent_insert(f.index, &keys[i], i % 2, i, 1000, 0));
	}
	fidx_segment_close(f.index, 0);
	assert_int_equal(fidx_segment_slots(f.index, 0), 100);
	assert_int_equal(fidx_extents_reserve(f.index, 2000), FS_OK);
	assert_int_equal(fidx_segment_slots(f.index, 0), 0);
	assert_int_equal(fidx_segment_slots(f.index, 1), 100);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(fidx_extent_find(f.index, &keys[i], &extent), i % 2);
	fixture_close(&f);
}

static void test_it_grows_as_it_is_asked_to_and_loses_nothing(void **state)
{
	struct fixture f = { .config = { .buckets = 10, .segments = 2, .functions = 16, .extents_most = 30000 } };
	struct fidx_key *keys = mem_must_zalloc(30000 * sizeof(*keys));
	struct fidx_extent extent;
	uint32_t refused = 0;

	(void)state;
	assert_int_equal(fixture_try(&f), 0);
	fidx_segment_open(f.index, 0, 0, 5, 100, NULL, 0);
	assert_int_equal(status_of(f.index).extents, 0);
	for (uint32_t k = 0; k < 30000; k++) {
		if (k % 100 == 0)
			assert_int_equal(fidx_extents_reserve(f.index, 100), FS_OK);
		keys[k] = key_next(&f);
		refused += !fidx_extent_insert(f.index, &keys[k], 0, k, 1, k % 4);
	}
	assert_true(refused <= 3);
	assert_int_equal(fidx_extents_reserve(f.index, 30000), FS_ERANGE); /* as many as there may be */
	assert_in_range(status_of(f.index).extents, 30000, 30000 * 2);
	for (uint32_t k = 0; k < 30000; k++)
		if (fidx_extent_find(f.index, &keys[k], &extent))
			assert_true(extent.offset == k && extent.clock == k % 4);
		else
			refused--;
	assert_int_equal(refused, 0);
	assert_true(fidx_verify(f.index));
	/* Most of them go, and the memory with them. */
	uint64_t most = status_of(f.index).extents, bytes = region_bytes(f.region);
	for (uint32_t k = 100; k < 30000; k++)
		fidx_clear(f.index, &keys[k]);
	assert_int_equal(fidx_extents_reserve(f.index, 0), FS_OK);
	assert_true(status_of(f.index).extents < most / 50 && region_bytes(f.region) < bytes / 50);
	for (uint32_t k = 0; k < 30000; k++)
		assert_int_equal(fidx_extent_find(f.index, &keys[k], &extent), k < 100);
	for (uint32_t k = 0; k < 100; k++)
		fidx_clear(f.index, &keys[k]);
	assert_int_equal(fidx_extents_reserve(f.index, 0), FS_OK);
	assert_int_equal(status_of(f.index).extents, 0);
	mem_free(keys);
	fixture_close(&f);
}

struct world {
	struct fixture f;
	struct fidx_key permanent[500];
	struct lock stripe[16];
	_Atomic bool stop;
	_Atomic uint64_t missed, survived, looks;
};

static void *look_and_clear(void *arg)
{
	struct world *w = arg;
	struct fidx_extent extent;
	struct rng rng;
	uint64_t visited;

	rng_init(&rng, test_seed() + (uint64_t)(uintptr_t)&rng);
	while (!atomic_load(&w->stop)) {
		unsigned i = (unsigned)rng_below(&rng, 500);
		struct fidx_key key;

		if (!fidx_extent_find(w->f.index, &w->permanent[i], &extent) || extent.offset != i)
			atomic_fetch_add(&w->missed, 1);
		fidx_extent_touch(w->f.index, &w->permanent[i], 0, i);
		fidx_key_of(w->f.index, 1000000 + rng_below(&rng, 2000), &key);
		struct lock *lock = &w->stripe[fidx_stripe_of(w->f.index, key.hash, 16)];
		lock_acquire(lock);
		fidx_clear(w->f.index, &key);
		if (fidx_extent_find(w->f.index, &key, &extent))
			atomic_fetch_add(&w->survived, 1);
		lock_release(lock);
		fidx_hand(w->f.index, 5, 0, &visited);
		atomic_fetch_add(&w->looks, 1);
	}
	return NULL;
}

static void test_nobody_misses_one_while_the_table_is_made_anew(void **state)
{
	struct world *w = mem_must_zalloc(sizeof(*w));
	pthread_t threads[3];

	(void)state;
	w->f.config = (struct fidx_config){ .buckets = 10, .segments = 2, .functions = 16, .extents_most = 30000 };
	w->f.config.buckets_most = 10;
	assert_int_equal(fixture_try(&w->f), 0);
	for (unsigned i = 0; i < 16; i++)
		lock_init(&w->stripe[i], LOCK_KEY_STRIPE);
	fidx_segment_open(w->f.index, 0, 0, 5, 100, NULL, 0);
	fidx_segment_open(w->f.index, 1, 0, 6, 100, NULL, 0);
	assert_int_equal(fidx_extents_reserve(w->f.index, 500), FS_OK);
	for (unsigned i = 0; i < 500; i++) {
		w->permanent[i] = key_next(&w->f);
		assert_true(fidx_extent_insert(w->f.index, &w->permanent[i], 0, i, 1000, 0));
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_and_clear, w), 0);
	for (unsigned round = 0; round < 20 || atomic_load(&w->looks) < 20000; round++) {
		for (unsigned i = 0; i < 2000; i++) {
			struct fidx_key key;

			if (i % 250 == 0)
				assert_int_equal(fidx_extents_reserve(w->f.index, 10 * i + 250), FS_OK);
			fidx_key_of(w->f.index, 1000000 + i, &key);
			struct lock *lock = &w->stripe[fidx_stripe_of(w->f.index, key.hash, 16)];
			lock_acquire(lock);
			(void)!fidx_extent_insert(w->f.index, &key, 1, 100000 + i, 1000, 0);
			lock_release(lock);
		}
		fidx_segment_close(w->f.index, 1);
		fidx_sweep(w->f.index, 1);
		assert_int_equal(fidx_segment_slots(w->f.index, 1), 0);
		assert_int_equal(fidx_extents_reserve(w->f.index, 0), FS_OK);
		fidx_segment_open(w->f.index, 1, 0, 7 + round, 100, NULL, 0);
	}
	atomic_store(&w->stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&w->missed), 0);
	assert_int_equal(atomic_load(&w->survived), 0);
	for (unsigned i = 0; i < 16; i++)
		lock_fini(&w->stripe[i]);
	fixture_close(&w->f);
	mem_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_room_is_made_than_there_may_be),
		cmocka_unit_test(test_groups_have_room_to_spare),
		cmocka_unit_test(test_reserving_what_fits_changes_nothing),
		cmocka_unit_test(test_an_entry_is_the_same_after_a_move),
		cmocka_unit_test(test_entries_of_closed_segments_stay_behind),
		cmocka_unit_test(test_it_grows_as_it_is_asked_to_and_loses_nothing),
		cmocka_unit_test(test_nobody_misses_one_while_the_table_is_made_anew),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
