/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups never miss a slot that is there throughout, clears leave nothing, and the counts are
 * exact, while slots move, segments come and go, and the hand goes round. Each round forces its
 * inserts to relocate where the build has fault points. The work is counted, not timed.
 */
#include "tests/unit/flashindex/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/lock.h"

#define PERMANENT 600
#define CHURN 200
#define ROUNDS 150
#define READERS 3
#define KEY_STRIPES 16
#define SHARED_KEYS 400

struct world {
	struct fixture f;
	struct fidx_key permanent[PERMANENT];
	unsigned permanents; /* how many of them are in use */
	struct lock stripe[KEY_STRIPES];
	struct fidx_key shared[SHARED_KEYS];
	_Atomic bool stop;
	_Atomic uint64_t missed, survived, lookups, ready;
	uint64_t seed;
};

static struct lock *stripe_of(struct world *w, const struct fidx_key *key)
{
	return &w->stripe[fidx_stripe_of(w->f.index, key->hash, KEY_STRIPES)];
}

static void world_init(struct world *w, uint64_t buckets, unsigned tag_bits)
{
	memset(w, 0, sizeof(*w));
	w->f.config.tag_bits = tag_bits;
	w->f.config.filter_bits = 2;
	w->f.config.extents_most = 64;
	w->seed = test_seed();
	fixture_open(&w->f, buckets, 4);
	for (unsigned i = 0; i < KEY_STRIPES; i++)
		lock_init(&w->stripe[i], LOCK_KEY_STRIPE);
	fault_arm(FAULT_index_force_relocation, FAULT_ALWAYS, 0);
}

static void world_fini(struct world *w)
{
	for (unsigned i = 0; i < KEY_STRIPES; i++)
		lock_fini(&w->stripe[i]);
	fixture_close(&w->f);
}

static void start(struct world *w, pthread_t *thread, unsigned n, void *(*run)(void *))
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, w), 0);
	while (atomic_load(&w->ready) < n)
		sched_yield();
}

static void finish(struct world *w, pthread_t *thread, unsigned n)
{
	atomic_store(&w->stop, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static struct rng own_rng(struct world *w)
{
	struct rng rng;

	rng_init(&rng, w->seed + 1 + atomic_fetch_add(&w->ready, 1));
	return rng;
}

static void *make_filter(struct world *w, const struct fidx_key *keys, unsigned n, size_t *length)
{
	uint64_t hashes[PERMANENT];

	for (unsigned i = 0; i < n; i++)
		hashes[i] = keys[i].hash;
	return fidx_filter_build(w->f.index, hashes, n, length);
}

/* A segment with a filter over the keys that are to go into it. */
static void open_with_filter(struct world *w, uint32_t segment, uint64_t sequence, const struct fidx_key *keys,
			     unsigned n)
{
	size_t length;
	void *unit = make_filter(w, keys, n, &length);

	fidx_segment_open(w->f.index, segment, 0, sequence, 100, unit, length);
}

/* ---- permanent keys -------------------------------------------------------------------------- */

static void *run_reader(void *arg)
{
	struct world *w = arg;
	struct rng rng = own_rng(w);

	while (!atomic_load(&w->stop)) {
		unsigned i = (unsigned)rng_below(&rng, w->permanents);
		struct fidx_match out[FIDX_MAX_MATCHES], own = match_of(0, 5, i % 16);
		unsigned n = fidx_lookup(w->f.index, &w->permanent[i], out);
		bool there = false;

		for (unsigned m = 0; m < n; m++)
			there |= fidx_same(&out[m], &own);
		if (!there || !fidx_find(w->f.index, &w->permanent[i], &own))
			atomic_fetch_add(&w->missed, 1);
		if (i % 3)
			fidx_touch(w->f.index, &w->permanent[i], &own);
		atomic_fetch_add(&w->lookups, 1);
	}
	return NULL;
}

/* The keys of segment 0, which stays. It gets its filter later. */
static void insert_permanent(struct world *w, unsigned n)
{
	w->permanents = n;
	for (unsigned i = 0; i < n; i++)
		w->permanent[i] = key_next(&w->f);
	fidx_segment_open(w->f.index, 0, 0, 5, 100, NULL, 0);
	for (unsigned i = 0; i < n; i++)
		(void)!fidx_insert(w->f.index, &w->permanent[i], 0, i % 16, i % 4, FIDX_DROP_COLDEST);
}

/* A segment that comes, is filled, and goes. In one of the rounds segment 0 gets its filter. */
static void live_a_segment(struct world *w, unsigned round, unsigned churn)
{
	uint32_t segment = 1 + round % 3;
	struct fidx_key keys[CHURN] = { { 0 } };
	uint64_t visited;

	for (unsigned i = 0; i < churn; i++)
		keys[i] = key_next(&w->f);
	if (round == 5) {
		size_t length;
		void *unit = make_filter(w, w->permanent, w->permanents, &length);

		assert_true(fidx_give_filter(w->f.index, 0, unit, length));
	}
	open_with_filter(w, segment, 100 + round, keys, churn);
	for (unsigned i = 0; i < churn; i++)
		(void)!fidx_insert(w->f.index, &keys[i], segment, i % 16, i % 4, FIDX_DROP_COLDEST);
	(void)!fidx_extent_insert(w->f.index, &keys[0], segment, 0, 1000, 0);
	fidx_hand(w->f.index, 2 * churn, round % 2 ? 10000 : 0, &visited);
	fidx_segment_close(w->f.index, segment);
	assert_int_equal(fidx_sweep(w->f.index, segment), churn + 1);
	assert_int_equal(fidx_segment_slots(w->f.index, segment), 0);
}

static void permanent_keys(uint64_t buckets, unsigned permanents, unsigned churn, unsigned rounds)
{
	static struct world w;
	uint64_t drops = ctr_sum(CTR_index_drops), moves = ctr_sum(CTR_index_moves);
	pthread_t thread[READERS];

	world_init(&w, buckets, 5);
	insert_permanent(&w, permanents);
	start(&w, thread, READERS, run_reader);
	for (unsigned round = 0; round < rounds; round++)
		live_a_segment(&w, round, churn);
	finish(&w, thread, READERS);
	print_message("%llu lookups, %llu missed, %llu moves\n", (unsigned long long)w.lookups,
		      (unsigned long long)w.missed, (unsigned long long)(ctr_sum(CTR_index_moves) - moves));
	assert_int_equal(w.missed, 0);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_int_equal(status_of(w.f.index).used, permanents);
	world_fini(&w);
}

static void test_permanent_keys_are_never_missed(void **state)
{
	(void)state;
	permanent_keys(61, PERMANENT, CHURN, ROUNDS);
}

/* So few that each lookup is likely to meet the move of its own slot. */
static void test_a_few_permanent_keys_are_never_missed(void **state)
{
	(void)state;
	permanent_keys(3, 8, 10, 20 * ROUNDS);
}

/* ---- clears ---------------------------------------------------------------------------------- */

static void *run_clearer(void *arg)
{
	struct world *w = arg;
	struct rng rng = own_rng(w);

	while (!atomic_load(&w->stop)) {
		const struct fidx_key *key = &w->shared[rng_below(&rng, SHARED_KEYS)];
		struct fidx_match out[FIDX_MAX_MATCHES];
		struct fidx_extent extent;

		if (fidx_lookup(w->f.index, key, out))
			fidx_touch(w->f.index, key, &out[0]);
		if (fidx_extent_find(w->f.index, key, &extent))
			fidx_extent_touch(w->f.index, key, extent.segment, extent.offset);
		lock_acquire(stripe_of(w, key));
		fidx_clear(w->f.index, key);
		if (fidx_lookup(w->f.index, key, out) || fidx_clear(w->f.index, key) ||
		    fidx_extent_find(w->f.index, key, &extent))
			atomic_fetch_add(&w->survived, 1);
		lock_release(stripe_of(w, key));
		if (rng_below(&rng, 16) == 0)
			sched_yield();
		atomic_fetch_add(&w->lookups, 1);
	}
	return NULL;
}

static void insert_shared(struct world *w, uint32_t segment, unsigned i, unsigned clock)
{
	const struct fidx_key *key = &w->shared[i];

	lock_acquire(stripe_of(w, key));
	fidx_clear(w->f.index, key); /* as a newer value would */
	if (i % 37 == 0)
		(void)!fidx_extent_insert(w->f.index, key, segment, i, 5000, clock);
	else
		(void)!fidx_insert(w->f.index, key, segment, i % 16, clock, FIDX_DROP_COLDEST);
	lock_release(stripe_of(w, key));
}

/* Tags of two bits and few buckets: nearly all keys share places, and relocation never rests. */
static void test_nothing_survives_a_clear(void **state)
{
	static struct world w;
	pthread_t thread[READERS];
	struct fidx_status status;
	uint64_t visited;

	(void)state;
	world_init(&w, 37, 2);
	for (unsigned i = 0; i < SHARED_KEYS; i++)
		w.shared[i] = key_next(&w.f);
	for (uint32_t s = 0; s < 3; s++)
		open_with_filter(&w, s, 5 + s, w.shared, SHARED_KEYS);
	start(&w, thread, READERS, run_clearer);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t segment = round % 3;

		for (unsigned i = 0; i < SHARED_KEYS; i++)
			insert_shared(&w, segment, i, i % 4);
		fidx_hand(w.f.index, 300, 20000, &visited);
		segment = (round + 1) % 3;
		fidx_segment_close(w.f.index, segment);
		fidx_sweep(w.f.index, segment);
		assert_int_equal(fidx_segment_slots(w.f.index, segment), 0);
		open_with_filter(&w, segment, 100 + round, w.shared, SHARED_KEYS);
	}
	finish(&w, thread, READERS);
	print_message("%llu clears, %llu with survivors\n", (unsigned long long)w.lookups,
		      (unsigned long long)w.survived);
	assert_int_equal(w.survived, 0);
	assert_true(fidx_verify(w.f.index));
	for (unsigned i = 0; i < SHARED_KEYS; i++)
		fidx_clear(w.f.index, &w.shared[i]);
	status = status_of(w.f.index);
	assert_int_equal(status.used, 0);
	assert_int_equal(status.ghosts, 0);
	assert_int_equal(status.live_bytes, 0);
	assert_int_equal(status.hot_bytes, 0);
	assert_int_equal(status.extents_used, 0);
	world_fini(&w);
}

/* ---- the hand -------------------------------------------------------------------------------- */

static void *run_hand(void *arg)
{
	struct world *w = arg;
	struct rng rng = own_rng(w);

	while (!atomic_load(&w->stop)) {
		uint64_t visited;

		fidx_hand(w->f.index, 1 + rng_below(&rng, 2000), rng_below(&rng, 50000), &visited);
		sched_yield();
	}
	return NULL;
}

/* Several threads want the hand, others revive what it kills: a ghost is made and revived as often. */
static void test_ghosts_are_counted_exactly(void **state)
{
	static struct world w;
	uint64_t made = ctr_sum(CTR_flash_ghosts_made), revived = ctr_sum(CTR_flash_ghosts_revived);
	pthread_t thread[2];

	(void)state;
	world_init(&w, 61, 5);
	insert_permanent(&w, PERMANENT);
	start(&w, thread, 2, run_hand);
	for (unsigned i = 0; i < ROUNDS * PERMANENT; i++) {
		struct fidx_match match = match_of(0, 5, (i % PERMANENT) % 16);

		fidx_touch(w.f.index, &w.permanent[i % PERMANENT], &match);
	}
	finish(&w, thread, 2);
	made = ctr_sum(CTR_flash_ghosts_made) - made;
	revived = ctr_sum(CTR_flash_ghosts_revived) - revived;
	print_message("%llu ghosts made, %llu revived\n", (unsigned long long)made, (unsigned long long)revived);
	assert_int_equal(status_of(w.f.index).ghosts, made - revived);
	assert_int_equal(status_of(w.f.index).used, PERMANENT);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_permanent_keys_are_never_missed),
		cmocka_unit_test(test_a_few_permanent_keys_are_never_missed),
		cmocka_unit_test(test_nothing_survives_a_clear),
		cmocka_unit_test(test_ghosts_are_counted_exactly),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
