/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index over a clean end: each slot and extent is found at once and counted later, none that is out of range is ever
 * found, and a file that isn't whole is refused.
 */
#include "tests/unit/flashindex/support.h"

#include <unistd.h>

#include "flashindex/extents_internal.h"
#include "flashindex/filter_internal.h"

#define BUCKETS 64u
#define SEGMENTS 6u
#define KEYS 400u
#define EXTENTS 20u
#define SEGMENT_BYTES 100000u
#define MEAN 50

static char path[200];

struct run {
	struct fixture f;
	struct fidx_key key[KEYS], large[EXTENTS];
	uint64_t sequence[SEGMENTS]; /* for fidx_load */
};

static struct fixture new_index(unsigned tag_bits, unsigned functions)
{
	return (struct fixture){ .config = { .buckets_most = 4 * BUCKETS,
					     .extents_most = 1000,
					     .filter_bits = 6,
					     .tag_bits = tag_bits,
					     .functions = functions } };
}

/* Slots in the segments 0 to 3 of two tables, extents in segment 4; segment 5 is closed. Segment 3 has a filter. */
static int begin(void **state)
{
	static struct run run;
	struct fidx *index;
	uint64_t hash[KEYS], visited;
	unsigned second;
	size_t length;
	void *filter;

	memset(&run, 0, sizeof(run));
	run.f = new_index(0, 16);
	index = fixture_open(&run.f, BUCKETS, SEGMENTS);
	snprintf(path, sizeof(path), "%.100s/fidx-restart-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	assert_int_equal(fidx_table_add(index, 2 * BUCKETS, &second), FS_OK);
	for (unsigned k = 0; k < KEYS; k++) {
		run.key[k] = key_next(&run.f);
		hash[k] = run.key[k].hash;
	}
	filter = fidx_filter_build(index, hash, KEYS, &length);
	for (uint32_t s = 0; s < 5; s++) {
		fidx_segment_open(index, s, s < 2 ? 0 : second, SEQ + s, MEAN, s == 3 ? filter : NULL,
				  s == 3 ? length : 0);
		run.sequence[s] = SEQ + s;
	}
	for (unsigned k = 0; k < KEYS; k++)
		assert_true(fidx_insert(index, &run.key[k], k % 4, k % 16, k % 4, FIDX_DROP_NONE));
	for (unsigned k = 0; k < EXTENTS; k++) {
		run.large[k] = key_next(&run.f);
		assert_true(fidx_extent_insert(index, &run.large[k], 4, 1000 * k, 900 + k, k % 4));
	}
	assert_true(fidx_hand(index, KEYS, 2000, &visited) > 0);
	assert_true(status_of(index).ghosts > 0);
	*state = &run;
	return 0;
}

static int end(void **state)
{
	struct run *run = *state;

	fixture_close(&run->f);
	unlink(path);
	return 0;
}

static void save(const struct run *run)
{
	struct parts_writer *writer;

	assert_int_equal(parts_create(&writer, path), FS_OK);
	fidx_save(run->f.index, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
}

static int load(struct fixture *f, const uint64_t *sequences)
{
	struct parts_reader *reader;
	uint64_t length;
	int result;

	assert_int_equal(parts_open(&reader, path), FS_OK);
	result = fidx_load(f->index, sequences, SEGMENT_BYTES, reader);
	if (result == FS_OK)
		assert_int_equal(parts_next(reader, PARTS_END, 0, &length), FS_OK);
	parts_close(reader);
	return result;
}

/* A new index that isn't loaded yet; its first table has another size. */
static void open_other(struct fixture *f, unsigned tag_bits, unsigned functions)
{
	*f = new_index(tag_bits, functions);
	f->config.buckets = BUCKETS / 2;
	f->config.segments = SEGMENTS;
	f->config.seed = test_seed();
	assert_int_equal(fixture_try(f), FS_OK);
}

static void close_other(struct fixture *f)
{
	fidx_destroy(f->index); /* unlike fixture_close, also half filled */
	region_destroy(f->region);
}

static int load_into_other(const uint64_t *sequences)
{
	struct fixture other;
	int result;

	open_other(&other, 0, 16);
	result = load(&other, sequences);
	close_other(&other);
	return result;
}

/* Loads, and counts what is there. */
static void load_counted(struct fixture *f, const uint64_t *sequences)
{
	assert_int_equal(load(f, sequences), FS_OK);
	assert_int_equal(count_all(f->index, 100).damaged, 0);
}

/* ---- what comes back ------------------------------------------------------------------------- */

static unsigned found_in(const struct run *run, struct fidx *index, unsigned k)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_key key;
	unsigned count, own = 0;

	fidx_key_of(index, run->key[k].hash, &key);
	count = fidx_lookup(index, &key, match);
	for (unsigned i = 0; i < count; i++)
		own += match[i].segment == k % 4 && match[i].function == k % 16 && match[i].sequence == SEQ + k % 4;
	return own;
}

static void assert_all_found(struct run *run, struct fidx *index)
{
	struct fidx_extent extent;

	for (unsigned k = 0; k < KEYS; k++)
		assert_int_equal(found_in(run, index, k), 1);
	for (unsigned k = 0; k < EXTENTS; k++) {
		assert_true(fidx_extent_find(index, &run->large[k], &extent));
		assert_int_equal(extent.offset, 1000 * k);
	}
}

static void all_is_found_at_once_and_counted_later(void **state)
{
	struct run *run = *state;
	struct fidx_status before = status_of(run->f.index), after;
	struct fixture other;
	unsigned table;

	save(run);
	open_other(&other, 0, 16);
	assert_int_equal(load(&other, run->sequence), FS_OK);
	after = status_of(other.index);
	assert_int_equal(after.used + after.ghosts + after.extents_used, 0);
	assert_int_equal(after.uncounted, after.slots + after.extents);
	assert_all_found(run, other.index);
	assert_int_equal(count_all(other.index, 100).emptied, 0);
	after = status_of(other.index);
	assert_int_equal(after.tables, before.tables);
	assert_int_equal(after.slots, before.slots);
	assert_int_equal(after.used, before.used);
	assert_int_equal(after.ghosts, before.ghosts);
	assert_int_equal(after.live_bytes, before.live_bytes);
	assert_int_equal(after.hot_bytes, before.hot_bytes);
	assert_int_equal(after.extents_used, before.extents_used);
	assert_int_equal(after.filter_bytes, before.filter_bytes);
	assert_true(fidx_filter_false_positive(other.index) == fidx_filter_false_positive(run->f.index));
	assert_all_found(run, other.index);
	assert_int_equal(fidx_table_add(other.index, 4, &table), FS_OK);
	assert_int_equal(fidx_table_id(other.index, table), 2); /* no id comes twice */
	fixture_close(&other);
}

/* A change comes before its slot is counted, or behind: it is never undone, and counts once. */
static void what_is_cleared_meanwhile_stays_away(void **state)
{
	struct run *run = *state;
	struct fidx_extent extent;
	struct fixture other;
	struct fidx_recounted found;
	unsigned k = 0;

	save(run);
	open_other(&other, 0, 16);
	assert_int_equal(load(&other, run->sequence), FS_OK);
	do {
		struct fidx_key key;

		fidx_key_of(other.index, run->key[k % KEYS].hash, &key);
		fidx_clear(other.index, &key);
		assert_int_equal(found_in(run, other.index, k % KEYS), 0);
		fidx_clear(other.index, &run->large[k % EXTENTS]);
		k++;
	} while (fidx_recount(other.index, 1, &found));
	assert_true(k > EXTENTS && found.emptied + found.damaged == 0);
	assert_true(fidx_verify(other.index));
	for (unsigned n = 0; n < k && n < KEYS; n++)
		assert_int_equal(found_in(run, other.index, n), 0);
	for (unsigned n = 0; n < EXTENTS; n++)
		assert_false(fidx_extent_find(other.index, &run->large[n], &extent));
	assert_int_equal(status_of(other.index).extents_used, 0);
	fixture_close(&other);
}

static void slots_of_a_segment_that_is_gone_are_dropped(void **state)
{
	struct run *run = *state;
	struct fidx_extent extent;
	struct fixture other;

	save(run);
	run->sequence[1] = run->sequence[3] = run->sequence[4] = 0;
	open_other(&other, 0, 16);
	assert_int_equal(load(&other, run->sequence), FS_OK);
	for (unsigned k = 0; k < KEYS; k++)
		assert_int_equal(found_in(run, other.index, k), k % 4 == 0 || k % 4 == 2);
	for (unsigned k = 0; k < EXTENTS; k++)
		assert_false(fidx_extent_find(other.index, &run->large[k], &extent));
	assert_int_equal(count_all(other.index, 100).emptied, KEYS / 2 + EXTENTS);
	assert_int_equal(status_of(other.index).used, KEYS / 2);
	assert_int_equal(status_of(other.index).extents_used, 0);
	assert_int_equal(status_of(other.index).filter_bytes, 0);
	for (uint32_t s = 0; s < SEGMENTS; s++)
		assert_int_equal(fidx_segment_slots(other.index, s), s == 0 || s == 2 ? KEYS / 4 : 0);
	fixture_close(&other);
}

static void the_first_table_need_not_be_live(void **state)
{
	struct run *run = *state;
	struct fixture other;

	for (uint32_t s = 0; s < 2; s++) {
		fidx_segment_close(run->f.index, s);
		fidx_sweep(run->f.index, s);
		run->sequence[s] = 0;
	}
	fidx_table_drop(run->f.index, 0);
	save(run);
	open_other(&other, 0, 16);
	load_counted(&other, run->sequence);
	assert_int_equal(status_of(other.index).tables, 1);
	assert_int_equal(status_of(other.index).used, KEYS / 2);
	fixture_close(&other);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void another_layout_of_slots_is_refused(void **state)
{
	struct run *run = *state;
	struct fixture other;

	save(run);
	open_other(&other, 10, 16);
	assert_int_equal(load(&other, run->sequence), FS_EINVAL);
	close_other(&other);
	open_other(&other, 0, 15);
	assert_int_equal(load(&other, run->sequence), FS_EINVAL);
	close_other(&other);
	other = new_index(0, 16);
	other.config.clock_mode = FIDX_CLOCK_MFU;
	fixture_open(&other, BUCKETS, SEGMENTS);
	assert_int_equal(load(&other, run->sequence), FS_EINVAL);
	close_other(&other);
	/* Numbers that take another bit, and one segment less. */
	other = new_index(0, 16);
	fixture_open(&other, BUCKETS, SEGMENTS + 2);
	assert_int_equal(load(&other, run->sequence), FS_EFULL);
	close_other(&other);
	other = new_index(0, 16);
	fixture_open(&other, BUCKETS, SEGMENTS - 1);
	assert_int_equal(load(&other, run->sequence), FS_EFULL);
	close_other(&other);
}

static void an_index_of_more_segments_takes_it(void **state)
{
	struct run *run = *state;
	uint64_t used = status_of(run->f.index).used;
	struct fixture other = new_index(0, 16);

	save(run);
	other.config.buckets = BUCKETS / 2;
	other.config.segments = SEGMENTS + 1;
	other.config.seed = test_seed();
	assert_int_equal(fixture_try(&other), FS_OK);
	load_counted(&other, run->sequence);
	assert_int_equal(status_of(other.index).used, used);
	fixture_close(&other);
}

static void too_large_a_table_is_refused(void **state)
{
	struct run *run = *state;
	struct fixture other = new_index(0, 16);

	save(run);
	other.config.buckets_most = 2 * BUCKETS - 1;
	fixture_open(&other, BUCKETS, SEGMENTS);
	assert_int_equal(load(&other, run->sequence), FS_ERANGE);
	close_other(&other);
}

static void other_sequences_are_refused(void **state)
{
	struct run *run = *state;

	save(run);
	run->sequence[2]++;
	assert_int_equal(load_into_other(run->sequence), FS_ECORRUPT);
	run->sequence[2]--;
	run->sequence[5] = SEQ + 5; /* LIVE, and closed in the index */
	assert_int_equal(load_into_other(run->sequence), FS_ECORRUPT);
	run->sequence[5] = 0;
	assert_int_equal(load_into_other(run->sequence), FS_OK);
}

/* ---- what is out of range, behind a right checksum --------------------------------------------- */

/* Loads what was saved, and counts: what the recount has dropped. */
static struct fidx_recounted dropped_by_other(const uint64_t *sequences)
{
	struct fidx_recounted found;
	struct fixture other;

	open_other(&other, 0, 16);
	assert_int_equal(load(&other, sequences), FS_OK);
	found = count_all(other.index, 100);
	fixture_close(&other);
	return found;
}

#define assert_dropped(found, were_emptied, were_damaged) \
	do { \
		struct fidx_recounted dropped = found; \
\
		assert_int_equal(dropped.emptied, were_emptied); \
		assert_int_equal(dropped.damaged, were_damaged); \
	} while (0)

/* Writes another slot over one of table 0, saves, and puts it back. */
static struct fidx_recounted load_with_slot(struct run *run, uint32_t wrong)
{
	struct fidx *index = run->f.index;
	_Atomic uint32_t *slot = NULL;
	uint32_t right;

	for (unsigned at = 0; !slot || slot_load(slot) == SLOT_EMPTY; at++)
		slot = &index->table[0].bucket[at / FIDX_BUCKET_SLOTS].slot[at % FIDX_BUCKET_SLOTS];
	right = slot_load(slot);
	atomic_store(slot, wrong);
	save(run);
	atomic_store(slot, right);
	return dropped_by_other(run->sequence);
}

static void a_slot_out_of_range_goes(void **state)
{
	struct run *run = *state;
	const struct slot_layout *layout = &run->f.index->layout;

	assert_dropped(load_with_slot(run, slot_name(layout, 0, 3, 2)), 0, 0);
	assert_dropped(load_with_slot(run, slot_name(layout, SEGMENTS, 3, 2)), 0, 1);
	assert_dropped(load_with_slot(run, slot_name(layout, 2, 3, 2)), 0, 1); /* of the other table */
	assert_dropped(load_with_slot(run, slot_name(layout, 5, 3, 2)), 1, 0); /* closed */
	assert_dropped(load_with_slot(run, 5), 1, 0); /* empty, whatever its other bits */
}

static void a_function_that_is_not_in_use_is_never_found_and_goes(void **state)
{
	struct fixture few = new_index(0, 8), other;
	struct run *run = *state;
	uint64_t sequence[SEGMENTS] = { SEQ };
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct parts_writer *writer;
	struct fidx_key key;

	fixture_open(&few, BUCKETS, SEGMENTS);
	open_segment(&few, 0, MEAN);
	key = key_next(&few);
	assert_true(fidx_insert(few.index, &key, 0, 7, 0, FIDX_DROP_NONE));
	for (unsigned at = 0; at < BUCKETS * FIDX_BUCKET_SLOTS; at++) {
		_Atomic uint32_t *slot = &few.index->table[0].bucket[at / 16].slot[at % 16];

		if (slot_load(slot) != SLOT_EMPTY)
			atomic_fetch_add(slot, 1u << SLOT_FUNCTION_SHIFT);
	}
	assert_int_equal(parts_create(&writer, path), FS_OK);
	fidx_save(few.index, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
	open_other(&other, 0, 8);
	assert_int_equal(load(&other, sequence), FS_OK);
	fidx_key_of(other.index, key.hash, &key);
	assert_int_equal(fidx_lookup(other.index, &key, match), 0);
	assert_dropped(count_all(other.index, 100), 0, 1);
	fixture_close(&other);
	close_other(&few);
	(void)run;
}

static struct fidx_recounted load_with_extent(struct run *run, uint64_t offset, uint64_t word)
{
	struct extents *extents = &run->f.index->extents;
	struct extent_table *table = &extents->table[atomic_load(&extents->current)];
	struct extent_group *group = table->group;
	uint64_t right_word, right_offset;
	struct fidx_recounted found;
	struct fidx_extent extent;
	struct fixture other;
	unsigned way = 0, there = 0;

	while (word_is_empty(extent_load(&group->word[way])))
		if (++way == EXTENT_WAYS) {
			way = 0;
			group++;
		}
	right_word = extent_load(&group->word[way]);
	right_offset = extent_load(&group->offset[way]);
	extent_store(&group->word[way], word);
	extent_store(&group->offset[way], offset);
	save(run);
	extent_store(&group->word[way], right_word);
	extent_store(&group->offset[way], right_offset);
	open_other(&other, 0, 16);
	assert_int_equal(load(&other, run->sequence), FS_OK);
	for (unsigned k = 0; k < EXTENTS; k++)
		there += fidx_extent_find(other.index, &run->large[k], &extent);
	found = count_all(other.index, 100);
	assert_int_equal(there, EXTENTS - found.emptied - found.damaged);
	fixture_close(&other);
	return found;
}

static void an_extent_out_of_range_is_never_found_and_goes(void **state)
{
	struct run *run = *state;

	assert_dropped(load_with_extent(run, SEGMENT_BYTES - 10, word_of(4, 10, 0)), 0, 0);
	assert_dropped(load_with_extent(run, SEGMENT_BYTES - 10, word_of(4, 11, 0)), 0, 1);
	assert_dropped(load_with_extent(run, UINT64_MAX, word_of(4, 11, 0)), 0, 1);
	assert_dropped(load_with_extent(run, 0, word_of(SEGMENTS, 11, 0)), 0, 1);
	assert_dropped(load_with_extent(run, 0, word_of(5, 11, 0)), 1, 0); /* closed */
}

static void a_broken_filter_is_none(void **state)
{
	struct run *run = *state;
	struct filter *filter = atomic_load(&segment_at(run->f.index, 3)->filter);
	uint8_t *trailer = filter->bytes + filter_unit_length(filter) - 8;
	struct fixture other;

	trailer[0] ^= 1;
	save(run);
	trailer[0] ^= 1;
	open_other(&other, 0, 16);
	load_counted(&other, run->sequence);
	assert_int_equal(status_of(other.index).filter_bytes, 0);
	assert_int_equal(found_in(run, other.index, 3), 1);
	fixture_close(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(all_is_found_at_once_and_counted_later),
		TEST(what_is_cleared_meanwhile_stays_away),
		TEST(slots_of_a_segment_that_is_gone_are_dropped),
		TEST(the_first_table_need_not_be_live),
		TEST(an_index_of_more_segments_takes_it),
		TEST(another_layout_of_slots_is_refused),
		TEST(too_large_a_table_is_refused),
		TEST(other_sequences_are_refused),
		TEST(a_slot_out_of_range_goes),
		TEST(a_function_that_is_not_in_use_is_never_found_and_goes),
		TEST(an_extent_out_of_range_is_never_found_and_goes),
		TEST(a_broken_filter_is_none),
	};

	return cmocka_run_group_tests_name("restart of the index", tests, NULL, NULL);
}
