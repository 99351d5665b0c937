/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables come and go: what lies in one is found whatever the others do, memory goes back, and nobody who looks
 * without a lock is ever misled.
 */
#include "tests/unit/flashindex/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "flashindex/index_internal.h"

#define KEYS 2000
#define ROUNDS 60
#define READERS 3
#define KEY_STRIPES 16

static unsigned live_tables(const struct fidx *index)
{
	return status_of(index).tables;
}

static struct fidx_table table_of(const struct fidx *index, unsigned number)
{
	struct fidx_table tables[FIDX_TABLES];

	fidx_tables(index, tables);
	return tables[number];
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_no_more_than_three(void **state)
{
	struct fixture f = { .config = { .buckets_most = 100 } };
	struct fidx *index = fixture_open(&f, 10, 4);
	unsigned table = 9;

	(void)state;
	assert_int_equal(fidx_table_add(index, 1, &table), FS_ERANGE);
	assert_int_equal(fidx_table_add(index, 101, &table), FS_ERANGE);
	assert_int_equal(live_tables(index), 1);
	assert_int_equal(fidx_table_add(index, 100, &table), FS_OK);
	assert_int_equal(table, 1);
	assert_int_equal(fidx_table_add(index, 50, &table), FS_OK);
	assert_int_equal(fidx_table_add(index, 50, &table), FS_EFULL);
	assert_int_equal(status_of(index).slots, 160 * FIDX_BUCKET_SLOTS);
	fixture_close(&f);
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void test_memory_of_a_table_that_goes_goes_back(void **state)
{
	struct fixture f = { .config = { .buckets_most = 1000 } };
	struct fidx *index = fixture_open(&f, 500, 4);
	uint64_t before = region_bytes(f.region);
	unsigned table;

	(void)state;
	assert_int_equal(fidx_table_add(index, 1000, &table), FS_OK);
	assert_int_equal(region_bytes(f.region), before + 64000 / 4096 * 4096 + 4096);
	assert_int_equal(status_of(index).index_bytes, 1500 * 64);
	fidx_table_drop(index, 0);
	assert_int_equal(live_tables(index), 1);
	assert_int_equal(region_bytes(f.region), 4096 + 64000 / 4096 * 4096 + 4096); /* with the head */
	assert_int_equal(status_of(index).index_bytes, 1000 * 64);
	assert_int_equal(fidx_table_add(index, 20, &table), FS_OK);
	assert_int_equal(table, 0);
	fixture_close(&f);
}

/* Each segment's slots lie in its own table, whichever tables there are by then. */
static void test_keys_are_found_in_whatever_table_they_lie(void **state)
{
	struct fixture f = { .config = { .buckets_most = 1000, .filter_bits = 1 } };
	struct fidx *index = fixture_open(&f, 50, 8);
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key keys[3 * 700];
	unsigned table;

	(void)state;
	for (unsigned t = 0; t < FIDX_TABLES; t++) {
		if (t)
			assert_int_equal(fidx_table_add(index, 50 + 13 * t, &table), FS_OK);
		fidx_segment_open(index, t, t, 100 + t, 100, NULL, 0);
		for (unsigned i = 0; i < 700; i++) {
			keys[700 * t + i] = key_next(&f);
			assert_true(fidx_insert(index, &keys[700 * t + i], t, i % 16, 0, FIDX_DROP_NONE));
		}
	}
	for (unsigned i = 0; i < 3 * 700; i++) {
		struct fidx_match own = match_of(i / 700, 100 + i / 700, i % 700 % 16);
		unsigned n = fidx_lookup(index, &keys[i], out), found = 0;

		for (unsigned m = 0; m < n; m++) {
			if (!fidx_same(&out[m], &own))
				continue;
			found++;
			assert_int_equal(out[m].place, fidx_place(index, &keys[i], i / 700));
			assert_int_equal(out[m].place >> 56, i / 700);
		}
		assert_int_equal(found, 1);
		assert_true(fidx_find(index, &keys[i], &own));
	}
	assert_int_equal(table_of(index, 1).used, 700);
	assert_int_equal(table_of(index, 1).segments, 1);
	/* Half of each is cleared, the other half removed by its identity. */
	for (unsigned i = 0; i < 3 * 700; i++) {
		struct fidx_match own = match_of(i / 700, 100 + i / 700, i % 700 % 16);

		if (i % 2)
			assert_true(fidx_clear(index, &keys[i]) >= 1);
		else
			(void)fidx_remove(index, &keys[i], &own);
		assert_false(fidx_find(index, &keys[i], &own));
	}
	assert_int_equal(status_of(index).used, 0);
	fixture_close(&f);
}

/* What a key was computed with is out of date: it is found all the same, also where a table's place was taken by another. */
static void test_an_old_key_knows_new_tables(void **state)
{
	struct fixture f = { .config = { .buckets_most = 1000 } };
	struct fidx *index = fixture_open(&f, 100, 8);
	struct fidx_key key = key_next(&f);
	struct fidx_match out[FIDX_MAX_MATCHES], own;
	unsigned table;

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		assert_int_equal(fidx_table_add(index, 200 + 77 * round, &table), FS_OK);
		fidx_segment_open(index, round, table, 10 + round, 100, NULL, 0);
		assert_true(fidx_insert(index, &key, round, 3, 0, FIDX_DROP_NONE));
		assert_int_equal(fidx_lookup(index, &key, out), 1);
		own = match_of(round, 10 + round, 3);
		fidx_touch(index, &key, &own);
		assert_true(fidx_find(index, &key, &own) && own.read_on_flash);
		assert_int_equal(fidx_clear(index, &key), 1);
		fidx_segment_close(index, round);
		if (round % 2)
			fidx_table_drop(index, table);
		else
			fidx_table_drop(index, table == 0 ? 1 : 0);
	}
	fixture_close(&f);
}

/* 2.5 x 10^9 slots, without memory for them: creation, an insert, a lookup and a step of the hand do work in proportion to
   what they are asked for. */
static void test_a_table_of_billions_of_slots_costs_what_is_used_of_it(void **state)
{
	struct fixture f = { .config = { .buckets_most = UINT64_C(160000000) } };
	struct fidx *index = fixture_open(&f, 160000000, 16000);
	struct fidx_match out[FIDX_MAX_MATCHES];
	uint64_t visited;

	(void)state;
	assert_true(status_of(index).slots > UINT64_C(2500000000));
	fidx_segment_open(index, 0, 0, 1, 100, NULL, 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct fidx_key key = key_next(&f);

		assert_true(fidx_insert(index, &key, 0, 0, 0, FIDX_DROP_NONE));
		assert_int_equal(fidx_lookup(index, &key, out), 1);
	}
	fidx_hand(index, 1000, 0, &visited);
	assert_true(index->hand <= 1000 * 16 + 1024); /* it has looked at this many slots and stopped */
	fidx_segment_close(index, 0);
	fidx_destroy(index);
	region_destroy(f.region);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct world {
	struct fixture f;
	struct fidx_key permanent[KEYS];
	struct lock stripe[KEY_STRIPES];
	_Atomic bool stop;
	_Atomic uint64_t missed, survived, lookups;
};

static void *look(void *arg)
{
	struct world *w = arg;
	struct rng rng;

	rng_init(&rng, test_seed() + (uint64_t)(uintptr_t)&rng);
	while (!atomic_load(&w->stop)) {
		unsigned i = (unsigned)rng_below(&rng, KEYS), there = 0;
		struct fidx_match out[FIDX_MAX_MATCHES], own = match_of(0, 5, i % 16);
		unsigned n = fidx_lookup(w->f.index, &w->permanent[i], out);

		for (unsigned m = 0; m < n; m++)
			there += fidx_same(&out[m], &own) &&
				 out[m].place == fidx_place_in(w->f.index, &w->permanent[i], 0);
		if (there != 1 || !fidx_find(w->f.index, &w->permanent[i], &own))
			atomic_fetch_add(&w->missed, 1);
		fidx_touch(w->f.index, &w->permanent[i], &own);
		atomic_fetch_add(&w->lookups, 1);
	}
	return NULL;
}

/* Clears keys that the main thread inserts: what was inserted when the stripe is taken is gone when it is given. */
static void *clear(void *arg)
{
	struct world *w = arg;
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct rng rng;
	uint64_t visited;

	rng_init(&rng, test_seed() + (uint64_t)(uintptr_t)&rng);
	while (!atomic_load(&w->stop)) {
		struct fidx_key key;

		memset(&key, 0xff, sizeof(key)); /* a bucket that no table has, for tables that the key doesn't know */
		fidx_key_of(w->f.index, 1000000 + rng_below(&rng, 500), &key);
		sched_yield(); /* tables may come and go between the key and its use */
		struct lock *lock = &w->stripe[fidx_stripe_of(w->f.index, key.hash, KEY_STRIPES)];
		lock_acquire(lock);
		fidx_clear(w->f.index, &key);
		if (fidx_lookup(w->f.index, &key, out) != 0)
			atomic_fetch_add(&w->survived, 1);
		lock_release(lock);
		fidx_hand(w->f.index, 20, 0, &visited);
	}
	return NULL;
}

/* A table comes, a segment in it, its keys; the segment is closed and swept, the table goes; each time in another size. */
static void churn(struct world *w, unsigned round)
{
	struct fidx *index = w->f.index;
	uint32_t segment = 1 + round % 3;
	unsigned table;

	assert_int_equal(fidx_table_add(index, 100 + 37 * (round % 20), &table), FS_OK);
	fidx_segment_open(index, segment, table, 100 + round, 100, NULL, 0);
	for (unsigned i = 0; i < 500; i++) {
		struct fidx_key key;

		fidx_key_of(index, 1000000 + i, &key);
		struct lock *lock = &w->stripe[fidx_stripe_of(index, key.hash, KEY_STRIPES)];
		lock_acquire(lock);
		(void)!fidx_insert(index, &key, segment, i % 16, 0, FIDX_DROP_COLDEST);
		lock_release(lock);
	}
	fidx_segment_close(index, segment);
	fidx_sweep(index, segment);
	assert_int_equal(fidx_segment_slots(index, segment), 0);
	fidx_table_drop(index, table);
}

static void test_nobody_is_misled_while_tables_come_and_go(void **state)
{
	struct world *w = mem_must_zalloc(sizeof(*w));
	pthread_t threads[READERS + 2];

	(void)state;
	w->f.config.buckets_most = 2000;
	fixture_open(&w->f, 300, 4);
	for (unsigned i = 0; i < KEY_STRIPES; i++)
		lock_init(&w->stripe[i], LOCK_KEY_STRIPE);
	fidx_segment_open(w->f.index, 0, 0, 5, 100, NULL, 0);
	for (unsigned i = 0; i < KEYS; i++) {
		w->permanent[i] = key_next(&w->f);
		assert_true(fidx_insert(w->f.index, &w->permanent[i], 0, i % 16, 0, FIDX_DROP_NONE));
	}
	for (unsigned i = 0; i < READERS + 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < READERS ? look : clear, w), 0);
	for (unsigned round = 0; round < ROUNDS || atomic_load(&w->lookups) < 20000; round++)
		churn(w, round);
	atomic_store(&w->stop, true);
	for (unsigned i = 0; i < READERS + 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&w->missed), 0);
	assert_int_equal(atomic_load(&w->survived), 0);
	for (unsigned i = 0; i < KEY_STRIPES; i++)
		lock_fini(&w->stripe[i]);
	fixture_close(&w->f);
	mem_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_than_three),
		cmocka_unit_test(test_memory_of_a_table_that_goes_goes_back),
		cmocka_unit_test(test_keys_are_found_in_whatever_table_they_lie),
		cmocka_unit_test(test_an_old_key_knows_new_tables),
		cmocka_unit_test(test_a_table_of_billions_of_slots_costs_what_is_used_of_it),
		cmocka_unit_test(test_nobody_is_misled_while_tables_come_and_go),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
