/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for a segment: a free one, or else the oldest, which -M keeps while it has objects; and a table for its slots. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)

static void open_small(struct harness *h)
{
	h->config.flash_bytes = 5 * KIB(64); /* four segments */
	harness_open(h);
}

/* Until no segment is free. The key's object is in the oldest one. */
static void fill_flash(struct harness *h, const char *key)
{
	enum seg_state state = SEG_FREE;
	uint32_t segment;

	set_on_flash(h, key, "value");
	while (state == SEG_FREE) {
		assert_true(write_one(h));
		assert_int_equal(seg_next(h->store->segments, &segment, &state), FS_OK);
	}
	assert_int_equal(state, SEG_LIVE);
}

/* ---- on flash -------------------------------------------------------------------------------- */

/* Each write that fails retires its segment. */
static void without_a_segment_left_there_is_no_room_and_a_second_s_rest(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	harness_open(h);
	assert_true(write_one(h));
	h->ram->fail_writes = true;
	for (unsigned i = 0; i < 100 && room_on_flash(h->store, &segment); i++) {
		clk_scripted_advance(&h->clk, 10000000);
		assert_false(write_one(h));
	}
	assert_false(room_on_flash(h->store, &segment));
	assert_int_equal(h->store->cleaner->offline_until_ms, clk_now_ms(&h->clk) + 1000);
	assert_false(cleaner_takes_writes(h->store));
	h->ram->fail_writes = false;
}

static void under_m_a_segment_with_an_object_is_kept_and_nothing_is_reclaimed(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed);
	uint32_t segment;

	open_small(h);
	fill_flash(h, "key");
	h->store->config.evict = false; /* constant while requests run, of which there are none here */
	assert_false(room_on_flash(h->store, &segment));
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	assert_int_equal(where(h, "key"), FLASH);
	assert_false(cleaner_takes_writes(h->store)); /* it would look in vain again and again */
	clk_scripted_advance(&h->clk, 999000);
	assert_false(cleaner_takes_writes(h->store));
	clk_scripted_advance(&h->clk, 1000);
	assert_true(cleaner_takes_writes(h->store));
}

static void under_m_a_segment_without_objects_is_room(void **state)
{
	struct harness *h = *state;
	uint32_t segment, oldest;

	open_small(h);
	fill_flash(h, "key");
	assert_true(seg_oldest(h->store->segments, &oldest));
	assert_true(fidx_segment_slots(h->store->index, oldest) > 0);
	(void)fidx_sweep(h->store->index, oldest); /* all its objects are gone */
	assert_int_equal(fidx_segment_slots(h->store->index, oldest), 0);
	h->store->config.evict = false;
	assert_true(room_on_flash(h->store, &segment));
	assert_int_equal(segment, oldest);
}

static void a_free_segment_is_found_again_until_it_is_written(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed);
	uint32_t first, again, next;

	harness_open(h);
	assert_true(room_on_flash(h->store, &first));
	assert_true(room_on_flash(h->store, &again));
	assert_int_equal(first, again);
	assert_true(write_one(h));
	assert_true(room_on_flash(h->store, &next));
	assert_int_not_equal(first, next);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
}

static void without_a_free_segment_the_oldest_makes_room(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed);
	uint32_t oldest, segment;
	enum seg_state seen;

	open_small(h);
	fill_flash(h, "key");
	assert_true(seg_oldest(h->store->segments, &oldest));
	assert_int_equal(segment_of(h, "key"), oldest);
	assert_true(room_on_flash(h->store, &segment));
	assert_int_equal(segment, oldest);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed + 1);
	assert_int_equal(where(h, "key"), NOWHERE); /* nobody had read it there */
	assert_int_equal(seg_next(h->store->segments, &segment, &seen), FS_OK);
	assert_int_equal(seen, SEG_FREE);
}

/* ---- in the index ---------------------------------------------------------------------------- */

static void gather_some(struct harness *h, struct gathered *out)
{
	char key[24];

	for (unsigned n = 0; n < 100; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		set(h, key, "value");
	}
	gather_candidates(h->store, EVERY_GROUP, MIB(1), 0, out);
	assert_true(out->count >= 100);
}

static uint64_t right_place(struct harness *h, const struct gathered *gathered, uint32_t n, unsigned table)
{
	const struct item *item = gathered->candidates[n].item;
	struct fidx_key key;

	fidx_key_of(h->store->index, store_hash(h->store, item_key(item), item->key_length), &key);
	return fidx_place_in(h->store->index, &key, table);
}

static void without_another_table_all_places_stay(void **state)
{
	struct harness *h = *state;
	struct gathered gathered;

	harness_open(h);
	gather_some(h, &gathered);
	for (uint32_t i = 0; i < gathered.count; i++)
		gathered.candidates[i].place = i; /* not right, and nobody looks */
	assert_true(room_in_index(h->store, &gathered));
	assert_int_equal(h->store->cleaner->sizing.table, 0);
	for (uint32_t i = 0; i < gathered.count; i++)
		assert_int_equal(gathered.candidates[i].place, i);
	gathered_release(h->store, &gathered);
}

static void for_another_table_each_place_is_computed_anew(void **state)
{
	struct harness *h = *state;
	struct gathered gathered;
	unsigned table;

	h->config.flash_object_bytes = 400; /* a first table that is far smaller than the index may become */
	harness_open(h);
	gather_some(h, &gathered);
	struct fidx_table tables[FIDX_TABLES];
	fidx_tables(h->store->index, tables);
	assert_int_equal(fidx_table_add(h->store->index, 2 * tables[0].slots / FIDX_BUCKET_SLOTS, &table), FS_OK);
	assert_int_not_equal(table, 0);
	assert_true(room_in_index(h->store, &gathered));
	assert_int_equal(h->store->cleaner->sizing.table, table); /* the roomier one */
	assert_int_equal(gathered.table_id, fidx_table_id(h->store->index, table));
	for (uint32_t i = 0; i < gathered.count; i++)
		assert_int_equal(gathered.candidates[i].place, right_place(h, &gathered, i, table));
	gathered_release(h->store, &gathered);
}

/* A plan that no table can take is given up, and under -M nothing is reclaimed for it. */
static void under_m_a_full_index_has_no_room(void **state)
{
	struct harness *h = *state;
	struct gathered gathered;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed);

	harness_open(h);
	set_on_flash(h, "key", "value");
	gather_some(h, &gathered);
	uint32_t count = gathered.count;
	h->store->config.evict = false;
	gathered.count = 1u << 31; /* so many slots that no table has room for them */
	assert_false(room_in_index(h->store, &gathered));
	gathered.count = count;
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	assert_int_equal(where(h, "key"), FLASH);
	gathered_release(h->store, &gathered);
}

static void where_the_index_is_full_segments_go_until_none_is_left(void **state)
{
	struct harness *h = *state;
	struct gathered gathered;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed);
	uint32_t oldest;

	harness_open(h);
	set_on_flash(h, "key", "value");
	gather_some(h, &gathered);
	uint32_t count = gathered.count;
	gathered.count = 1u << 31;
	assert_false(room_in_index(h->store, &gathered));
	gathered.count = count;
	assert_true(ctr_sum(CTR_segments_reclaimed) > reclaimed);
	assert_false(seg_oldest(h->store->segments, &oldest));
	assert_int_equal(where(h, "key"), NOWHERE);
	gathered_release(h->store, &gathered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_segment_left_there_is_no_room_and_a_second_s_rest),
		TEST(under_m_a_segment_with_an_object_is_kept_and_nothing_is_reclaimed),
		TEST(under_m_a_segment_without_objects_is_room),
		TEST(a_free_segment_is_found_again_until_it_is_written),
		TEST(without_a_free_segment_the_oldest_makes_room),
		TEST(without_another_table_all_places_stay),
		TEST(for_another_table_each_place_is_computed_anew),
		TEST(under_m_a_full_index_has_no_room),
		TEST(where_the_index_is_full_segments_go_until_none_is_left),
	};

	return cmocka_run_group_tests_name("store: room for a segment", tests, NULL, NULL);
}
