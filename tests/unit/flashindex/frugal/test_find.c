/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches: bytes that are no chain record, a chain that was replaced meanwhile, and whether a result is still true. */
#include "tests/unit/flashindex/frugal/world.h"

static void write_keys(struct world *w, uint32_t first, uint32_t count)
{
	for (uint32_t k = first; k < first + count; k++)
		world_set(w, k);
	assert_true(world_write(w, 1, NULL));
}

/* A key that is committed, among some. */
static uint32_t committed_key(const struct world *w, uint32_t first)
{
	while (w->key[first].kept || w->key[first].sequence == 0)
		first++;
	return first;
}

static void wrong_chain_records_are_told(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	_Alignas(8) uint8_t wrong[64] = { 0 };
	struct frugal_found place, found;
	const struct frugal_key *key;
	uint64_t length;
	const void *value;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 200);
	world_merge(&w, 7, 0, true);
	key = &w.key[committed_key(&w, 0)].key;
	assert_int_equal(frugal_find(w.frugal, key, UINT64_MAX, &place), FRUGAL_CHAIN);
	assert_int_equal(frugal_find_in(w.frugal, key, UINT64_MAX, &place, wrong, sizeof(wrong), &found),
			 FRUGAL_DAMAGED);
	assert_int_equal(frugal_find_in(w.frugal, key, UINT64_MAX, &place, wrong, 0, &found), FRUGAL_DAMAGED);
	value = world_chain_value(&w, &place, key->partition, &length);
	assert_int_equal(frugal_find_in(w.frugal, key, UINT64_MAX, &place, value, length, &found), FRUGAL_MATCH);
	assert_int_equal(frugal_find_in(w.frugal, key, found.sequence, &place, value, length, &found), FRUGAL_NOTHING);
	world_close(&w);
}

static void a_chain_that_was_replaced_is_searched_again(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_found place, found;
	const struct frugal_key *key;
	uint64_t length;
	uint32_t k;
	void *copy;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 200);
	world_merge(&w, 7, 0, true);
	k = committed_key(&w, 0);
	key = &w.key[k].key;
	assert_int_equal(frugal_find(w.frugal, key, UINT64_MAX, &place), FRUGAL_CHAIN);
	const void *value = world_chain_value(&w, &place, key->partition, &length);

	copy = mem_aligned(8, length);
	assert_non_null(copy);
	memcpy(copy, value, length);
	write_keys(&w, 300, 20);
	world_merge(&w, 7, 0, true);
	assert_int_equal(frugal_find_in(w.frugal, key, UINT64_MAX, &place, copy, length, &found), FRUGAL_AGAIN);
	world_check(&w, k);
	mem_free(copy);
	world_close(&w);
}

/* A GET that has begun is answered as of its beginning; whoever decides by the result asks whether it is still true. */
static void a_kill_ends_no_search_that_is_under_way(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_found place, found, again;
	const struct frugal_key *key;
	struct frugal_since since;
	uint64_t length;
	uint32_t k;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 200);
	world_merge(&w, 7, 0, true);
	k = committed_key(&w, 0);
	key = &w.key[k].key;
	frugal_now(w.frugal, &since);
	assert_int_equal(frugal_find(w.frugal, key, UINT64_MAX, &place), FRUGAL_CHAIN);
	const void *value = world_chain_value(&w, &place, key->partition, &length);

	world_delete(&w, k);
	assert_int_equal(frugal_find_in(w.frugal, key, since.newest + 1, &place, value, length, &found), FRUGAL_MATCH);
	assert_int_equal(frugal_find(w.frugal, key, since.newest + 1, &again), FRUGAL_CHAIN);
	assert_false(frugal_is_true(w.frugal, key, &found, &since));
	assert_true(frugal_is_true(w.frugal, key, NULL, &since));
	assert_int_equal(frugal_find(w.frugal, key, UINT64_MAX, &again), FRUGAL_NOTHING);
	world_close(&w);
}

/* Kills in bundles have no time. So a search that goes on behind one of its own key ends, in vain; others do not. */
static void a_kill_that_a_bundle_has_taken_ends_a_search_of_its_key_alone(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_found found;
	struct frugal_since since;
	uint32_t k, other;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 200);
	k = committed_key(&w, 0);
	other = committed_key(&w, k + 1);
	frugal_now(w.frugal, &since);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, since.newest + 1, &found), FRUGAL_MATCH);
	world_delete(&w, k);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, since.newest + 1, &found), FRUGAL_MATCH);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, since.newest + 1, &found), FRUGAL_NOTHING);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, NULL, &since)); /* it is deleted */
	assert_int_equal(frugal_find(w.frugal, &w.key[other].key, since.newest + 1, &found), FRUGAL_MATCH);
	assert_int_equal(found.sequence, w.key[other].sequence);
	world_set(&w, k);
	while (w.key[k].sequence == 0) /* its new record is on flash */
		assert_true(world_write(&w, 1, NULL));
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, since.newest + 1, &found), FRUGAL_NOTHING);
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, NULL, &since)); /* so that it is searched for anew */
	world_close(&w);
}

static struct frugal_found found_of(const struct world *w, uint32_t k)
{
	struct frugal_found found = { .sequence = w->key[k].sequence };

	for (uint32_t s = 0; s < WORLD_SEGMENTS; s++)
		if (w->segment[s].sequence == found.sequence)
			found.segment = s;
	return found;
}

static void a_record_stays_true_until_something_happens_to_it(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_since since;
	struct frugal_found record;
	uint32_t k;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 100);
	k = committed_key(&w, 0);
	record = found_of(&w, k);
	frugal_now(w.frugal, &since);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	write_keys(&w, 200, 5);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, &record, &since)); /* nothing of it has changed */
	/* Another key with the same fingerprint and partition would look like a newer record. */
	world_set(&w, k);
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	assert_true(world_write(&w, 1, NULL));
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	/* Its kill has gone into a bundle. */
	k = committed_key(&w, k + 1);
	record = found_of(&w, k);
	frugal_now(w.frugal, &since);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	world_delete(&w, k);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_false(kills_has(w.frugal, &w.key[k].key));
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	/* Its segment is gone. */
	k = committed_key(&w, k + 1);
	record = found_of(&w, k);
	world_reclaim(&w, record.segment);
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	world_close(&w);
}

static void an_absence_stays_true_until_the_key_comes(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_since since;
	uint32_t k = 500;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 300);
	frugal_now(w.frugal, &since);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, NULL, &since));
	write_keys(&w, k, 1);
	if (w.key[k].kept)
		return;
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, NULL, &since));
	world_delete(&w, k);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, NULL, &since)); /* absent again */
	/* Columns that came since are in a chain now: only a read could tell. */
	frugal_now(w.frugal, &since);
	write_keys(&w, 600, 3);
	world_merge(&w, 7, 0, true);
	assert_false(frugal_is_true(w.frugal, &w.key[700].key, NULL, &since));
	frugal_now(w.frugal, &since);
	assert_true(frugal_is_true(w.frugal, &w.key[700].key, NULL, &since));
	world_close(&w);
}

/* A merge moves kills where only a read finds them. */
static void behind_a_merge_a_record_is_searched_again(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_since since;
	struct frugal_found record;
	uint32_t k;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 100);
	k = committed_key(&w, 0);
	record = found_of(&w, k);
	frugal_now(w.frugal, &since);
	world_merge(&w, 7, 0, true);
	assert_false(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	frugal_now(w.frugal, &since);
	assert_true(frugal_is_true(w.frugal, &w.key[k].key, &record, &since));
	world_close(&w);
}

static void watermarks_end_a_search(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_found found;
	uint32_t k;

	(void)state;
	world_open(&w);
	write_keys(&w, 0, 100);
	k = committed_key(&w, 0);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, UINT64_MAX, &found), FRUGAL_MATCH);
	atomic_store(&w.frugal->watermarks[w.key[k].key.partition], found.sequence);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, UINT64_MAX, &found), FRUGAL_NOTHING);
	w.lossy = true;
	world_merge(&w, 7, 0, true);
	assert_int_equal(frugal_find(w.frugal, &w.key[k].key, UINT64_MAX, &found), FRUGAL_NOTHING);
	world_check_all(&w);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_chain_records_are_told),
		cmocka_unit_test(a_chain_that_was_replaced_is_searched_again),
		cmocka_unit_test(a_kill_ends_no_search_that_is_under_way),
		cmocka_unit_test(a_kill_that_a_bundle_has_taken_ends_a_search_of_its_key_alone),
		cmocka_unit_test(a_record_stays_true_until_something_happens_to_it),
		cmocka_unit_test(an_absence_stays_true_until_the_key_comes),
		cmocka_unit_test(behind_a_merge_a_record_is_searched_again),
		cmocka_unit_test(watermarks_end_a_search),
	};

	return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
