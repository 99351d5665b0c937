/* SPDX-License-Identifier: BSD-3-Clause */
/* What the index says of a key and of a record: the right segment, sequence and offset, and nothing else. */
#include "tests/unit/server/store/harness.h"

#define LARGE_BYTES 9000u /* more than a slot's record may have in segments of 64 KiB */

static char large[LARGE_BYTES];

struct asked_of {
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	unsigned matches;
	bool has_extent;
};

static struct fidx_key key_of(struct harness *h, const char *key)
{
	struct fidx_key out;

	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), &out);
	return out;
}

static bool may_hold(struct harness *h, const char *key, struct asked_of *out)
{
	struct fidx_key k = key_of(h, key);

	return flash_may_hold(h->store, &k, out->match, &out->matches, &out->extent, &out->has_extent);
}

static void large_on_flash(struct harness *h, const char *key)
{
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = large, .length = LARGE_BYTES).result,
			 STORE_STORED);
	move(h, key);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void of_a_key_that_flash_has_not_nothing_is_said(void **state)
{
	struct harness *h = *state;
	struct asked_of asked;

	harness_open(h);
	assert_false(may_hold(h, "nobody", &asked));
	assert_int_equal(asked.matches, 0);
	assert_false(asked.has_extent);
	set(h, "key", "value");
	assert_false(may_hold(h, "key", &asked)); /* it is in DRAM alone */
	move(h, "key");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_false(may_hold(h, "key", &asked));
	large_on_flash(h, "key");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_false(may_hold(h, "key", &asked));
	assert_false(asked.has_extent);
}

static void of_a_small_object_slots_are_said_and_of_a_large_one_its_extent(void **state)
{
	struct harness *h = *state;
	struct asked_of asked;

	harness_open(h);
	set_on_flash(h, "small", "value");
	assert_true(may_hold(h, "small", &asked));
	assert_int_equal(asked.matches, slots_of(h, "small"));
	assert_false(asked.has_extent);
	large_on_flash(h, "large");
	assert_true(may_hold(h, "large", &asked));
	assert_true(asked.has_extent);
	assert_int_equal(asked.extent.length, seg_record_length(strlen("large"), LARGE_BYTES));
}

/* ---- records with a slot --------------------------------------------------------------------- */

static bool is_live(struct harness *h, const char *key, uint32_t segment, uint64_t sequence, uint64_t offset,
		    struct fidx_match *out)
{
	struct fidx_key k = key_of(h, key);

	return record_is_live(h->store, segment, sequence, &k, offset, false, out);
}

static uint64_t offset_of(struct harness *h, const struct fidx_match *match)
{
	return seg_position(h->store->segments, match->segment, match->place, match->function);
}

static void a_record_is_dead_at_each_other_segment_sequence_or_offset(void **state)
{
	struct harness *h = *state;
	struct fidx_match own, met;

	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_true(write_one(h)); /* there is another segment, which has nothing of it */
	assert_true(slot_of(h, "key", &own));
	uint64_t offset = offset_of(h, &own);
	for (uint32_t other = 0; other < 2; other++)
		if (other != own.segment)
			assert_false(is_live(h, "key", other, seg_sequence(h->store->segments, other), offset, &met));
	assert_false(is_live(h, "key", own.segment, own.sequence + 1, offset, &met));
	assert_false(is_live(h, "key", own.segment, own.sequence, offset + 1, &met));
	assert_false(is_live(h, "another key", own.segment, own.sequence, offset, &met));
	assert_true(is_live(h, "key", own.segment, own.sequence, offset, &met));
}

static void a_live_record_s_match_says_what_its_slot_says(void **state)
{
	struct harness *h = *state;
	struct fidx_match own, met;

	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_true(slot_of(h, "key", &own));
	assert_true(is_live(h, "key", own.segment, own.sequence, offset_of(h, &own), &met));
	assert_true(fidx_same(&own, &met));
	assert_int_equal(met.clock, 1);
	assert_false(met.read_on_flash);
	assert_value(h, "key", "value");
	assert_true(is_live(h, "key", own.segment, own.sequence, offset_of(h, &own), &met));
	assert_int_equal(met.clock, 3);
	assert_true(met.read_on_flash);
}

static void a_record_is_dead_once_its_key_is_overwritten(void **state)
{
	struct harness *h = *state;
	struct fidx_match own, met;

	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_true(slot_of(h, "key", &own));
	uint64_t offset = offset_of(h, &own);
	set(h, "key", "new");
	assert_false(is_live(h, "key", own.segment, own.sequence, offset, &met));
	move(h, "key"); /* to another place */
	assert_false(is_live(h, "key", own.segment, own.sequence, offset, &met));
}

/* ---- extents --------------------------------------------------------------------------------- */

static void an_extent_is_dead_at_each_other_segment_sequence_or_offset(void **state)
{
	struct harness *h = *state;
	struct fidx_match met;
	struct asked_of asked;

	harness_open(h);
	large_on_flash(h, "key");
	assert_true(may_hold(h, "key", &asked));
	const struct fidx_extent *own = &asked.extent;
	struct fidx_key key = key_of(h, "key"), other = key_of(h, "another key");
	assert_false(extent_is_live(h->store, own->segment + 1, own->sequence, &key, own->offset, &met));
	assert_false(extent_is_live(h->store, own->segment, own->sequence + 1, &key, own->offset, &met));
	assert_false(extent_is_live(h->store, own->segment, own->sequence, &key, own->offset + 1, &met));
	assert_false(extent_is_live(h->store, own->segment, own->sequence, &other, own->offset, &met));
	/* An extent's record has no slot. */
	assert_false(record_is_live(h->store, own->segment, own->sequence, &key, own->offset, false, &met));
	assert_true(record_is_live(h->store, own->segment, own->sequence, &key, own->offset, true, &met));
	assert_int_equal(met.segment, own->segment);
	assert_int_equal(met.sequence, own->sequence);
}

static void a_live_extent_s_match_has_its_clock_and_reads(void **state)
{
	struct harness *h = *state;
	struct fidx_match met;
	struct asked_of asked;

	harness_open(h);
	large_on_flash(h, "key");
	assert_true(may_hold(h, "key", &asked));
	struct fidx_key key = key_of(h, "key");
	assert_true(
		extent_is_live(h->store, asked.extent.segment, asked.extent.sequence, &key, asked.extent.offset, &met));
	assert_int_equal(met.clock, 1);
	assert_false(met.read_on_flash || met.ghost);
	assert_int_equal(get(h, "key").length, LARGE_BYTES);
	assert_true(
		extent_is_live(h->store, asked.extent.segment, asked.extent.sequence, &key, asked.extent.offset, &met));
	assert_int_equal(met.clock, 3);
	assert_true(met.read_on_flash);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_false(
		extent_is_live(h->store, asked.extent.segment, asked.extent.sequence, &key, asked.extent.offset, &met));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_a_key_that_flash_has_not_nothing_is_said),
		TEST(of_a_small_object_slots_are_said_and_of_a_large_one_its_extent),
		TEST(a_record_is_dead_at_each_other_segment_sequence_or_offset),
		TEST(a_live_record_s_match_says_what_its_slot_says),
		TEST(a_record_is_dead_once_its_key_is_overwritten),
		TEST(an_extent_is_dead_at_each_other_segment_sequence_or_offset),
		TEST(a_live_extent_s_match_has_its_clock_and_reads),
	};

	return cmocka_run_group_tests_name("store: the index about keys and records", tests, NULL, NULL);
}
