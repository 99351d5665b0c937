/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fidx_verify: each count and each kind of slot that may be wrong is found, and what is right is not complained of. The
 * errors that it logs meanwhile are meant.
 */
#include "tests/unit/flashindex/support.h"

#include "flashindex/extents_internal.h"

#define OBJECTS 40

/* An index with slots and extents, ghosts among both, in an open and a closed segment. */
static void open_index(struct fixture *f)
{
	uint64_t visited;

	*f = (struct fixture){ .config = { .buckets_most = 20, .extents_most = OBJECTS, .functions = 8 } };
	fixture_open(f, 20, 5);
	for (uint32_t s = 0; s < 3; s++)
		open_segment(f, s, 100 + s);
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct fidx_key key = key_next(f);

		if (i % 2)
			(void)!fidx_insert(f->index, &key, i % 3, i % 8, i % 4, FIDX_DROP_NONE);
		else
			assert_true(fidx_extent_insert(f->index, &key, i % 3, i, 70000 + i, i % 4));
	}
	assert_true(fidx_hand(f->index, OBJECTS, 1u << 30, &visited) > 2);
	fidx_segment_close(f->index, 2);
}

/* Not sound with the change, sound without: so nothing but the change was complained of. */
static void assert_found(struct fixture *f, const char *what)
{
	if (fidx_verify(f->index))
		fail_msg("%s was not found", what);
}

static void test_a_wrong_count_of_slots_is_found(void **state)
{
	struct fixture f;

	(void)state;
	open_index(&f);
	for (uint32_t s = 0; s < 5; s++) { /* open, closed, and never used */
		_Atomic uint64_t *counts = &segment_at(f.index, s)->counts;

		atomic_fetch_add(counts, 1);
		assert_found(&f, "a slot too many");
		atomic_fetch_sub(counts, 1);
		assert_true(fidx_verify(f.index));
		atomic_fetch_add(counts, UINT64_C(1) << COUNTS_GHOST_SHIFT);
		assert_found(&f, "a ghost too many");
		atomic_fetch_sub(counts, UINT64_C(1) << COUNTS_GHOST_SHIFT);
		assert_true(fidx_verify(f.index));
		atomic_fetch_xor(counts, COUNTS_CLOSED);
		assert_found(&f, "a wrong mark of closed segments");
		atomic_fetch_xor(counts, COUNTS_CLOSED);
		assert_true(fidx_verify(f.index));
	}
	fixture_close(&f);
}

static void test_a_wrong_count_of_extents_is_found(void **state)
{
	struct fixture f;

	(void)state;
	open_index(&f);
	for (uint32_t s = 0; s < 5; s++) {
		struct segment *segment = segment_at(f.index, s);

		atomic_fetch_add(&segment->extents, 1);
		assert_found(&f, "an extent too many");
		atomic_fetch_sub(&segment->extents, 1);
		segment->extent_ghosts++;
		assert_found(&f, "an extent's ghost too many");
		segment->extent_ghosts--;
		segment->extent_bytes++;
		assert_found(&f, "a byte of extents too many");
		segment->extent_bytes--;
		segment->extent_ghost_bytes++;
		assert_found(&f, "a byte of extents' ghosts too many");
		segment->extent_ghost_bytes--;
		segment->extents_open = !segment->extents_open;
		assert_found(&f, "a wrong mark of open extents");
		segment->extents_open = !segment->extents_open;
		assert_true(fidx_verify(f.index));
	}
	fixture_close(&f);
}

static void test_a_wrong_sum_is_found(void **state)
{
	struct fixture f;
	struct shard *shard;

	(void)state;
	open_index(&f);
	shard = &f.index->shard[SHARDS - 1];
	for (unsigned i = 0; i < 5; i++) {
		_Atomic int64_t *sums[] = { &shard->used, &shard->ghosts, &shard->live_bytes, &shard->hot_bytes,
					    &f.index->extents.used };

		for (int64_t by = -1; by <= 1; by += 2) {
			atomic_fetch_add(sums[i], by);
			assert_found(&f, "a wrong sum");
			atomic_fetch_sub(sums[i], by);
			assert_true(fidx_verify(f.index));
		}
	}
	fixture_close(&f);
}

/* The first slot that names an open segment and has CLOCK value zero: it is cold, or a ghost. */
static _Atomic uint32_t *some_slot(const struct fixture *f)
{
	_Atomic uint32_t *at = f->index->table[0].bucket[0].slot;

	while (slot_is_free(f->index, slot_load(at)) || (slot_state(slot_load(at)) & ~STATE_GHOST) != 0)
		at++;
	return at;
}

static void assert_slot_found(struct fixture *f, _Atomic uint32_t *at, uint32_t wrong, const char *what)
{
	uint32_t right = atomic_exchange(at, wrong);

	assert_true(right != wrong);
	assert_found(f, what);
	atomic_store(at, right);
	assert_true(fidx_verify(f->index));
}

static void test_a_wrong_slot_is_found(void **state)
{
	_Atomic uint32_t *at;
	const struct slot_layout *layout;
	uint32_t right, tag;
	unsigned table;
	struct fixture f;

	(void)state;
	open_index(&f);
	layout = &f.index->layout;
	at = some_slot(&f);
	right = slot_load(at);
	tag = slot_tag(layout, right);
	assert_slot_found(&f, at, SLOT_EMPTY, "a slot that is missing");
	assert_slot_found(&f, at, slot_name(layout, 5, tag, 0), "a segment that there isn't");
	assert_slot_found(&f, at, slot_name(layout, slot_segment(layout, right), tag, 8),
			  "a function that there isn't");
	assert_slot_found(&f, at, slot_name(layout, 3, tag, 0), "a slot of a segment that was never open");
	assert_slot_found(&f, at, right ^ STATE_GHOST, "a slot that became a ghost, or none, without being counted");
	/* A segment is bound to one table, and no slot of another one may name it. */
	assert_int_equal(fidx_table_add(f.index, 20, &table), FS_OK);
	atomic_store(&segment_at(f.index, slot_segment(layout, right))->table, (uint8_t)table);
	assert_found(&f, "a slot in the wrong table");
	atomic_store(&segment_at(f.index, slot_segment(layout, right))->table, 0);
	fixture_close(&f);
}

static void test_an_extent_that_is_missing_is_found(void **state)
{
	struct extent_table *table;
	unsigned missing = 0;
	struct fixture f;

	(void)state;
	open_index(&f);
	table = &f.index->extents.table[atomic_load(&f.index->extents.current)];
	for (uint64_t g = 0; g < extent_groups(table); g++)
		for (unsigned way = 0; way < EXTENT_WAYS; way++) {
			uint64_t word = atomic_load(&table->group[g].word[way]);

			if (word_is_empty(word))
				continue;
			atomic_store(&table->group[g].word[way], 0);
			assert_found(&f, "an extent that is missing");
			atomic_store(&table->group[g].word[way], word);
			missing++;
		}
	assert_int_equal(missing, OBJECTS / 2);
	fixture_close(&f);
}

static void test_an_index_that_is_right_stays_so_at_every_step(void **state)
{
	struct fixture f;

	(void)state;
	open_index(&f);
	assert_true(fidx_verify(f.index));
	fidx_sweep(f.index, 2);
	assert_true(fidx_verify(f.index));
	open_segment(&f, 2, 7);
	assert_true(fidx_verify(f.index));
	for (uint32_t s = 0; s < 3; s++) {
		fidx_segment_close(f.index, s);
		assert_true(fidx_verify(f.index));
	}
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_count_of_slots_is_found),
		cmocka_unit_test(test_a_wrong_count_of_extents_is_found),
		cmocka_unit_test(test_a_wrong_sum_is_found),
		cmocka_unit_test(test_a_wrong_slot_is_found),
		cmocka_unit_test(test_an_extent_that_is_missing_is_found),
		cmocka_unit_test(test_an_index_that_is_right_stays_so_at_every_step),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
