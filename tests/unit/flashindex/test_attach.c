/* SPDX-License-Identifier: BSD-3-Clause */
/* The index over a kill: a second index attaches to the region of a first one, which is simply not used any more. */
#include "tests/unit/flashindex/killed.h"

static void attach_and_repair(struct run *run)
{
	assert_int_equal(run_attach(run), FS_OK);
	fidx_repair(run->f.index);
	count_all(run->f.index, 1);
}

static unsigned slots_of_key(struct run *run, const struct fidx_key *key)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;

	return fidx_lookup(run->f.index, key, match) + fidx_extent_find(run->f.index, key, &extent);
}

static void test_all_of_it_is_taken(void **state)
{
	struct fidx_status before, after;
	struct run run;
	unsigned found = 0;

	(void)state;
	run_begin(&run);
	before = status_of(run.f.index);
	for (int turn = 0; turn < 2; turn++) {
		attach_and_repair(&run);
		after = status_of(run.f.index);
		assert_counts(run.f.index, before.used, before.ghosts, before.live_bytes, before.hot_bytes);
		assert_int_equal(after.extents_used, KEYS / EXTENT_EACH);
	}
	for (uint32_t k = 0; k < KEYS; k++)
		found += slots_of_key(&run, &run.key[k]) > 0;
	assert_true(found >= KEYS - 5);
	fixture_close(&run.f);
}

static void test_an_attach_changes_nothing(void **state)
{
	static unsigned char before[2][BUCKETS * 64];
	struct run run;

	(void)state;
	run_begin(&run);
	run.sequence[1] = 0;
	atomic_store(&run.f.index->kept->segment[1].sequence, 0); /* killed behind the close */
	memcpy(before[0], run.f.index->table[0].bucket, sizeof(before[0]));
	assert_int_equal(run_attach(&run), FS_OK);
	fidx_repair(run.f.index); /* slots are left to the recount */
	assert_memory_equal(before[0], run.f.index->table[0].bucket, sizeof(before[0]));
	assert_true(count_all(run.f.index, 1).emptied > KEYS / 4);
	assert_memory_not_equal(before[0], run.f.index->table[0].bucket, sizeof(before[0]));
	for (uint32_t k = 1; k < KEYS; k += 3) { /* those of segment 1 */
		struct fidx_match match[FIDX_MAX_MATCHES];
		unsigned n = fidx_lookup(run.f.index, &run.key[k], match);

		while (n-- > 0)
			assert_int_not_equal(match[n].segment, 1);
	}
	assert_int_equal(fidx_segment_slots(run.f.index, 1), 0);
	open_segment(&run.f, 1, 100); /* it can be used again */
	fixture_close(&run.f);
}

/* Finds the bucket and slot of a key. */
static _Atomic uint32_t *slot_at(struct run *run, const struct fidx_key *key, unsigned which)
{
	struct bucket *bucket = &run->f.index->table[0].bucket[key->bucket[0][which]];

	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
		if (slot_load(&bucket->slot[i]) != SLOT_EMPTY &&
		    slot_tag(&run->f.index->layout, slot_load(&bucket->slot[i])) == key->tag)
			return &bucket->slot[i];
	return NULL;
}

static void test_a_slot_that_is_there_twice_is_emptied(void **state)
{
	struct run run;
	unsigned tried = 0;

	(void)state;
	run_begin(&run);
	for (uint32_t k = 0; k < KEYS && tried < 20; k++) {
		const struct fidx_key *key = &run.key[k];
		struct region_move *move = &run.f.index->kept->move;
		_Atomic uint32_t *from = slot_at(&run, key, 0), *to = NULL;
		struct bucket *other = &run.f.index->table[0].bucket[key->bucket[0][1]];

		for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
			if (slot_load(&other->slot[i]) == SLOT_EMPTY)
				to = &other->slot[i];
		if (!from || !to || key->bucket[0][0] == key->bucket[0][1] || slot_at(&run, key, 1))
			continue;
		tried++;
		atomic_store(&move->table, 0);
		atomic_store(&move->from, key->bucket[0][0]);
		atomic_store(&move->to, key->bucket[0][1]);
		atomic_store(&move->slot, slot_load(from));
		if (tried % 2)
			atomic_store(to, slot_load(from));
		attach_and_repair(&run);
		assert_int_equal(slot_at(&run, key, 0) != NULL, tried % 2 == 0);
		assert_int_equal(slot_at(&run, key, 1) != NULL, tried % 2 == 1);
		assert_int_equal(atomic_load(&run.f.index->kept->move.slot), SLOT_EMPTY);
	}
	assert_true(tried > 10);
	fixture_close(&run.f);
}

static void test_a_move_of_extents_is_finished(void **state)
{
	struct run run;
	struct fidx *index;
	unsigned old, half = 0;
	uint64_t groups;

	(void)state;
	run_begin(&run);
	index = run.f.index;
	old = atomic_load(&index->extents.current);
	groups = extent_groups(&index->extents.table[old]);
	/* As the table was copied when half of the entries were emptied, one of them not yet. */
	assert_int_equal(region_commit(run.f.region, (enum region_area)(REGION_EXTENTS_0 + 1 - old),
				       groups * sizeof(struct extent_group)),
			 FS_OK);
	for (uint64_t g = 0; g < groups; g++)
		for (unsigned way = 0; way < EXTENT_WAYS; way++) {
			struct extent_group *from = &index->extents.table[old].group[g];
			struct extent_group *to = &index->extents.table[1 - old].group[g];

			if (word_is_empty(extent_load(&from->word[way])) || half == KEYS / EXTENT_EACH / 2)
				continue;
			extent_store(&to->offset[way], extent_load(&from->offset[way]));
			extent_store(&to->word[way], extent_load(&from->word[way]));
			extent_store(&to->hash[way], extent_load(&from->hash[way]));
			if (++half < KEYS / EXTENT_EACH / 2)
				extent_store(&from->word[way], 0);
		}
	atomic_store(&index->kept->extent_groups[1 - old], groups);
	atomic_store(&index->kept->extents_current, 1 - old);
	attach_and_repair(&run);
	index = run.f.index;
	assert_int_equal(status_of(index).extents_used, KEYS / EXTENT_EACH);
	assert_int_equal(extent_groups(&index->extents.table[old]), 0);
	assert_int_equal(atomic_load(&index->kept->extent_groups[old]), 0);
	for (uint32_t k = 0; k < KEYS; k += EXTENT_EACH) {
		struct fidx_extent extent;

		assert_true(fidx_extent_find(index, &run.key[k], &extent) && extent.offset == k);
		assert_int_equal(fidx_clear(index, &run.key[k]) > 0, true);
		assert_false(fidx_extent_find(index, &run.key[k], &extent));
	}
	fixture_close(&run.f);
}

/* No kill leaves this: a move to no table begins when no extent is left. */
static void test_extents_that_would_move_to_no_table_are_dropped(void **state)
{
	struct run run;
	unsigned old;

	(void)state;
	run_begin(&run);
	old = atomic_load(&run.f.index->extents.current);
	atomic_store(&run.f.index->kept->extents_current, 1 - old);
	attach_and_repair(&run);
	assert_int_equal(status_of(run.f.index).extents_used, 0);
	assert_int_equal(extent_groups(&run.f.index->extents.table[old]), 0);
	for (uint32_t k = 0; k < KEYS; k += EXTENT_EACH) {
		struct fidx_extent extent;

		assert_false(fidx_extent_find(run.f.index, &run.key[k], &extent));
	}
	fixture_close(&run.f);
}

static void test_a_table_that_was_not_live_yet_is_empty_later(void **state)
{
	struct run run;
	unsigned table;

	(void)state;
	run_begin(&run);
	assert_int_equal(fidx_table_add(run.f.index, 50, &table), FS_OK);
	assert_int_equal(table, 1);
	memset(run.f.index->table[1].bucket, 1, 50 * 64);
	atomic_store(&run.f.index->kept->live, 1);
	attach_and_repair(&run);
	assert_int_equal(status_of(run.f.index).tables, 1);
	assert_int_equal(fidx_table_add(run.f.index, 50, &table), FS_OK);
	assert_int_equal(table, 1);
	for (unsigned i = 0; i < 50 * 16; i++)
		assert_int_equal(slot_load(&run.f.index->table[1].bucket->slot[i]), SLOT_EMPTY);
	fixture_close(&run.f);
}

static void test_wrong_heads_and_options_are_refused(void **state)
{
	struct run run;
	struct region_index right, *kept;

	(void)state;
	run_begin(&run);
	kept = run.f.index->kept;
	right = *kept;
	for (unsigned field = 0; field < 8; field++) {
		struct fidx_config config = run.f.config;

		*kept = right;
		if (field == 0)
			run.f.config.tag_bits = 11;
		else if (field == 1)
			run.f.config.seed++;
		else if (field == 2)
			run.f.config.functions = 8;
		else if (field == 3)
			atomic_store(&kept->live, 0);
		else if (field == 4)
			atomic_store(&kept->table[0].buckets, 100000);
		else if (field == 5)
			atomic_store(&kept->table[0].id, atomic_load(&kept->next_table_id));
		else if (field == 6)
			atomic_store(&kept->extent_groups[0], 1ull << 40);
		else
			run.sequence[2]++;
		assert_int_equal(run_attach(&run), field < 3 ? FS_EINVAL : FS_ECORRUPT);
		assert_null(run.f.index);
		run.f.config = config;
	}
	run.sequence[2]--;
	*kept = right;
	attach_and_repair(&run);
	fixture_close(&run.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it_is_taken),
		cmocka_unit_test(test_an_attach_changes_nothing),
		cmocka_unit_test(test_a_slot_that_is_there_twice_is_emptied),
		cmocka_unit_test(test_a_move_of_extents_is_finished),
		cmocka_unit_test(test_extents_that_would_move_to_no_table_are_dropped),
		cmocka_unit_test(test_a_table_that_was_not_live_yet_is_empty_later),
		cmocka_unit_test(test_wrong_heads_and_options_are_refused),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
