/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recount after a kill or a clean stop, while the index is used: each slot is counted once whatever changes meanwhile, what is not
 * counted yet can be changed like anything else, and nothing that is out of range is ever found.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "tests/unit/flashindex/killed.h"

static void attach(struct run *run)
{
	assert_int_equal(run_attach(run), FS_OK);
	fidx_repair(run->f.index);
	assert_true(fidx_is_counting(run->f.index));
	for (uint32_t k = 0; k < KEYS; k++) /* keys are of one process */
		fidx_key_of(run->f.index, run->key[k].hash, &run->key[k]);
}

static bool is_there(struct run *run, uint32_t k)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	unsigned n = fidx_lookup(run->f.index, &run->key[k], match);

	if (k % EXTENT_EACH == 0)
		return fidx_extent_find(run->f.index, &run->key[k], &extent) && extent.offset == k;
	while (n-- > 0)
		if (match[n].segment == k % 3 && match[n].function == k % run->f.config.functions)
			return true;
	return false;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void test_figures_rise_to_the_truth(void **state)
{
	struct fidx_status before, now;
	struct fidx_recounted found;
	uint64_t used = 0, left;
	struct run run;

	(void)state;
	run_begin(&run);
	before = status_of(run.f.index);
	assert_int_equal(before.uncounted, 0);
	attach(&run);
	now = status_of(run.f.index);
	left = now.uncounted;
	assert_int_equal(now.used + now.extents_used + now.ghosts, 0);
	assert_int_equal(left, BUCKETS * FIDX_BUCKET_SLOTS + now.extents);
	while (fidx_recount(run.f.index, 1, &found)) {
		now = status_of(run.f.index);
		assert_true(now.uncounted < left && now.uncounted > 0);
		assert_true(now.used >= used && now.used <= before.used);
		left = now.uncounted;
		used = now.used;
		assert_true(fidx_verify(run.f.index));
	}
	assert_int_equal(found.emptied + found.damaged, 0);
	assert_counts(run.f.index, before.used, before.ghosts, before.live_bytes, before.hot_bytes);
	assert_int_equal(status_of(run.f.index).uncounted, 0);
	assert_int_equal(status_of(run.f.index).extents_used, before.extents_used);
	assert_false(fidx_recount(run.f.index, 1, &found));
	fixture_close(&run.f);
}

/* Nobody knows how many extents there are, so that their table must keep its size. */
static void test_the_table_of_extents_does_not_shrink_meanwhile(void **state)
{
	struct run run;
	uint64_t ways;

	(void)state;
	run_begin(&run);
	ways = extents_ways(run.f.index);
	attach(&run);
	assert_int_equal(fidx_extents_reserve(run.f.index, 0), FS_OK);
	assert_int_equal(extents_ways(run.f.index), ways);
	count_all(run.f.index, 100);
	fixture_close(&run.f);
}

/* ---- changes meanwhile ----------------------------------------------------------------------- */

static void touch(struct run *run, uint32_t k)
{
	struct fidx_match match[FIDX_MAX_MATCHES];

	if (k % EXTENT_EACH == 0)
		fidx_extent_touch(run->f.index, &run->key[k], k % 3, k);
	else if (fidx_lookup(run->f.index, &run->key[k], match))
		fidx_touch(run->f.index, &run->key[k], &match[0]);
}

static void change(struct run *run, struct rng *rng, bool *gone)
{
	uint32_t k = (uint32_t)rng_below(rng, KEYS);
	struct fidx_match match = match_of(k % 3, SEQ + k % 3, k % 16);
	uint64_t visited;

	switch (rng_below(rng, 4)) {
	case 0:
		fidx_clear(run->f.index, &run->key[k]);
		gone[k] = true;
		break;
	case 1:
		if (k % EXTENT_EACH == 0)
			fidx_extent_remove(run->f.index, &run->key[k], k % 3, k);
		else
			fidx_remove(run->f.index, &run->key[k], &match);
		gone[k] = true;
		break;
	case 2:
		touch(run, k);
		break;
	default:
		fidx_hand(run->f.index, 20, 2000, &visited);
	}
}

/* Of the changes some come before the slot is counted, some after it. A kill half-way leaves what there was by then. */
static void test_changes_half_way_count_once(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		bool gone[KEYS] = { false };
		struct fidx_recounted found;
		struct fidx_status status;
		struct run run;
		struct rng rng;

		rng_init(&rng, test_seed() + seed);
		run_begin(&run);
		for (unsigned lives = 0; lives < 3; lives++) {
			unsigned steps = (unsigned)rng_below(&rng, 60);

			attach(&run);
			for (unsigned step = 0; step < steps && fidx_recount(run.f.index, 1, &found); step++) {
				for (unsigned n = 0; n < 3; n++)
					change(&run, &rng, gone);
				assert_true(fidx_verify(run.f.index));
			}
		}
		found = count_all(run.f.index, 100);
		assert_int_equal(found.emptied + found.damaged, 0);
		for (uint32_t k = 0; k < KEYS; k++)
			if (gone[k])
				assert_false(is_there(&run, k));
		for (uint32_t k = 0; k < KEYS; k++)
			fidx_clear(run.f.index, &run.key[k]);
		status = status_of(run.f.index);
		assert_int_equal(status.used + status.ghosts + status.extents_used, 0);
		assert_int_equal(status.live_bytes, 0);
		assert_int_equal(status.hot_bytes, 0);
		fixture_close(&run.f);
	}
}

static void test_what_is_cleared_before_it_is_counted_stays_away(void **state)
{
	struct run run;

	(void)state;
	run_begin(&run);
	attach(&run);
	for (uint32_t k = 0; k < KEYS; k += 2) {
		assert_true(fidx_clear(run.f.index, &run.key[k]) > 0 || !is_there(&run, k));
		assert_false(is_there(&run, k));
	}
	count_all(run.f.index, 100);
	for (uint32_t k = 0; k < KEYS; k += 2)
		assert_false(is_there(&run, k));
	attach(&run);
	for (uint32_t k = 0; k < KEYS; k += 2)
		assert_false(is_there(&run, k));
	count_all(run.f.index, 100);
	fixture_close(&run.f);
}

/* An extent that a kill has left in both tables is found once, and a clear leaves neither. */
static void test_extents_in_both_tables(void **state)
{
	struct fidx_extent extent;
	struct run run;
	struct fidx *index;
	uint64_t groups;
	unsigned old;

	(void)state;
	run_begin(&run);
	index = run.f.index;
	old = atomic_load(&index->extents.current);
	groups = extent_groups(&index->extents.table[old]);
	assert_int_equal(region_commit(run.f.region, (enum region_area)(REGION_EXTENTS_0 + 1 - old),
				       groups * sizeof(struct extent_group)),
			 FS_OK);
	memcpy(index->extents.table[1 - old].group, index->extents.table[old].group,
	       groups * sizeof(struct extent_group));
	atomic_store(&index->kept->extent_groups[1 - old], groups);
	atomic_store(&index->kept->extents_current, 1 - old);
	attach(&run);
	index = run.f.index;
	for (uint32_t k = 0; k < KEYS; k += 2 * EXTENT_EACH) {
		assert_true(fidx_extent_find(index, &run.key[k], &extent) && extent.offset == k);
		assert_true(fidx_clear(index, &run.key[k]) >= 2);
		assert_false(fidx_extent_find(index, &run.key[k], &extent));
	}
	count_all(run.f.index, 100);
	assert_int_equal(status_of(index).extents_used, KEYS / EXTENT_EACH / 2);
	for (uint32_t k = 0; k < KEYS; k += EXTENT_EACH)
		assert_int_equal(fidx_extent_find(index, &run.key[k], &extent), k % (2 * EXTENT_EACH) != 0);
	fixture_close(&run.f);
}

/* ---- what is out of range -------------------------------------------------------------------- */

/* The slot of a key without an extent. */
static _Atomic uint32_t *slot_of_key(struct run *run, uint32_t k)
{
	const struct slot_layout *layout = &run->f.index->layout;
	uint32_t name = slot_name(layout, k % 3, run->key[k].tag, k % run->f.config.functions);

	for (unsigned i = 0; i < FIDX_PAIR_SLOTS; i++) {
		struct bucket *bucket = &run->f.index->table[0].bucket[run->key[k].bucket[0][i / FIDX_BUCKET_SLOTS]];

		if ((slot_load(&bucket->slot[i % FIDX_BUCKET_SLOTS]) & ~STATE_MASK) == name)
			return &bucket->slot[i % FIDX_BUCKET_SLOTS];
	}
	fail_msg("key %u has no slot", k);
	return NULL;
}

enum wrong { NO_SEGMENT, NO_NAME, CLOSED_SEGMENT, OTHER_TABLE, NO_FUNCTION, UNUSED_BITS, WRONGS };

static uint32_t wrong_slot(const struct run *run, uint32_t slot, enum wrong wrong)
{
	const struct slot_layout *layout = &run->f.index->layout;
	uint32_t name = slot & ~layout->segment_mask;

	switch (wrong) {
	case NO_SEGMENT:
		return name | (SEGMENTS + 1u) << layout->segment_shift;
	case NO_NAME:
		return name;
	case CLOSED_SEGMENT:
		return name | (uint32_t)SEGMENTS << layout->segment_shift; /* the last one was never opened */
	case OTHER_TABLE:
		return slot; /* its segment is bound to another one below */
	case NO_FUNCTION:
		return slot | 12u << SLOT_FUNCTION_SHIFT;
	default:
		return slot | (slot_unused_bits(layout) & -slot_unused_bits(layout));
	}
}

static void a_wrong_slot(enum wrong wrong)
{
	const uint32_t k = 1;
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_recounted found;
	uint64_t visited, before;
	unsigned second, n;
	struct run run;

	run_begin_with(&run, 8);
	before = status_of(run.f.index).used;
	assert_int_equal(fidx_table_add(run.f.index, 50, &second), FS_OK);
	atomic_store(slot_of_key(&run, k), wrong_slot(&run, slot_load(slot_of_key(&run, k)), wrong));
	if (wrong == OTHER_TABLE)
		atomic_store(&run.f.index->kept->segment[k % 3].table, second);
	attach(&run);
	n = fidx_lookup(run.f.index, &run.key[k], match);
	for (unsigned i = 0; i < n; i++)
		assert_true(match[i].segment < SEGMENTS - 1 && match[i].function < 8);
	if (wrong != UNUSED_BITS) /* it matches, and its record tells */
		assert_false(is_there(&run, k));
	fidx_hand(run.f.index, 3000, 1000, &visited);
	found = count_all(run.f.index, 100);
	if (wrong == CLOSED_SEGMENT || wrong == NO_NAME)
		assert_true(found.emptied == 1 && found.damaged == 0);
	else
		assert_true(found.emptied == 0 && found.damaged == (wrong == OTHER_TABLE ? KEYS * 3 / 10 : 1));
	assert_int_equal(status_of(run.f.index).used, before - found.damaged - found.emptied);
	fixture_close(&run.f);
}

static void test_wrong_slots_are_never_found_and_go(void **state)
{
	(void)state;
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++)
		a_wrong_slot(wrong);
}

static void a_wrong_extent(uint64_t word, uint64_t offset, bool damaged)
{
	const uint32_t k = 2 * EXTENT_EACH;
	struct fidx_recounted found;
	struct extent_entry entry = { NULL, NULL, 0 };
	struct extent_pair pair;
	struct run run;
	unsigned table;

	run_begin(&run);
	table = atomic_load(&run.f.index->extents.current);
	pair = extent_pair(run.f.index, table, extent_groups(&run.f.index->extents.table[table]), run.key[k].hash);
	for (unsigned at = 0; at < EXTENT_PAIR_WAYS; at++)
		if (extent_load(&extent_entry(&pair, at).group->hash[at % EXTENT_WAYS]) == run.key[k].hash)
			entry = extent_entry(&pair, at);
	assert_non_null(entry.group);
	extent_store(&entry.group->word[entry.way], word);
	extent_store(&entry.group->offset[entry.way], offset);
	attach(&run);
	assert_false(is_there(&run, k));
	fidx_clear(run.f.index, &run.key[k]);
	found = count_all(run.f.index, 100);
	assert_int_equal(found.damaged, damaged);
	assert_int_equal(found.emptied, !damaged);
	assert_int_equal(status_of(run.f.index).extents_used, KEYS / EXTENT_EACH - 1);
	fixture_close(&run.f);
}

static void test_wrong_extents_are_never_found_and_go(void **state)
{
	(void)state;
	a_wrong_extent(word_of(0, SEGMENT_BYTES, 0), 1, true);
	a_wrong_extent(word_of(0, 1, 0), SEGMENT_BYTES, true);
	a_wrong_extent(word_of(0, 1, 0), UINT64_MAX, true);
	a_wrong_extent(word_of(SEGMENTS, 1000, 0), 0, true);
	a_wrong_extent(word_of(WORD_SEGMENT_MASK - 1, 1000, 0), 0, true);
	a_wrong_extent(word_of(SEGMENTS - 1, 1000, 0), 0, false);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 3
#define STRIPES 16
#define LIVES 40

struct world {
	struct run run;
	struct lock stripe[STRIPES];
	_Atomic bool stop;
	_Atomic uint64_t survived, changes, ready;
};

static void *run_changer(void *arg)
{
	struct world *w = arg;
	struct fidx *index = w->run.f.index;
	uint64_t visited;
	struct rng rng;

	rng_init(&rng, test_seed() + atomic_fetch_add(&w->ready, 1));
	while (!atomic_load(&w->stop)) {
		uint32_t k = (uint32_t)rng_below(&rng, KEYS);
		const struct fidx_key *key = &w->run.key[k];
		struct lock *stripe = &w->stripe[fidx_stripe_of(index, key->hash, STRIPES)];

		touch(&w->run, k);
		if (k % 7 == 0)
			fidx_hand(index, 10, 1000, &visited);
		if (rng_below(&rng, 8) == 0) {
			lock_acquire(stripe);
			fidx_clear(index, key);
			if (is_there(&w->run, k))
				atomic_fetch_add(&w->survived, 1);
			lock_release(stripe);
		}
		atomic_fetch_add(&w->changes, 1);
	}
	return NULL;
}

/* Each life counts an index that others change. The verify at its end finds any slot that was counted twice or never. */
static void test_threads_change_what_is_being_counted(void **state)
{
	static struct world w;

	(void)state;
	memset(&w, 0, sizeof(w));
	for (unsigned i = 0; i < STRIPES; i++)
		lock_init(&w.stripe[i], LOCK_KEY_STRIPE);
	for (unsigned life = 0; life < LIVES; life++) {
		pthread_t thread[THREADS];
		struct fidx_recounted found;
		uint64_t before;

		if (life % 4 == 0) {
			if (life > 0)
				fixture_close(&w.run.f);
			run_begin(&w.run);
		}
		attach(&w.run);
		atomic_store(&w.stop, false);
		atomic_store(&w.ready, 0);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, run_changer, &w), 0);
		while (atomic_load(&w.ready) < THREADS)
			sched_yield();
		do { /* some changes come between any two steps */
			before = atomic_load(&w.changes);
			while (atomic_load(&w.changes) == before)
				sched_yield();
		} while (fidx_recount(w.run.f.index, 1, &found));
		atomic_store(&w.stop, true);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(found.emptied + found.damaged, 0);
		assert_true(fidx_verify(w.run.f.index));
	}
	assert_int_equal(w.survived, 0);
	fixture_close(&w.run.f);
	for (unsigned i = 0; i < STRIPES; i++)
		lock_fini(&w.stripe[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures_rise_to_the_truth),
		cmocka_unit_test(test_the_table_of_extents_does_not_shrink_meanwhile),
		cmocka_unit_test(test_changes_half_way_count_once),
		cmocka_unit_test(test_what_is_cleared_before_it_is_counted_stays_away),
		cmocka_unit_test(test_extents_in_both_tables),
		cmocka_unit_test(test_wrong_slots_are_never_found_and_go),
		cmocka_unit_test(test_wrong_extents_are_never_found_and_go),
		cmocka_unit_test(test_threads_change_what_is_being_counted),
	};

	return cmocka_run_group_tests_name("recount", tests, NULL, NULL);
}
