/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a planned segment: it passes each key that gets a slot, and is there only where one is wanted. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)
#define LARGE_BYTES 9000u /* more than a slot's record may have in segments of 64 KiB */
#define KEYS 600u

struct planned {
	struct gathered gathered;
	struct seg_plan plan;
};

static uint64_t no_filter_yet(void *context, uint64_t n)
{
	return fidx_filter_length(((struct store *)context)->index, n);
}

static void plan_all(struct harness *h, struct planned *out)
{
	gather_candidates(h->store, EVERY_GROUP, MIB(1), 0, &out->gathered);
	assert_int_equal(seg_plan_make(h->store->segments, SEG_PLACE_SWEEP, out->gathered.candidates,
				       out->gathered.count, no_filter_yet, h->store, &out->plan),
			 FS_OK);
}

static void give_up(struct harness *h, struct planned *planned)
{
	seg_plan_fini(&planned->plan);
	gathered_release(h->store, &planned->gathered);
}

static void set_small(struct harness *h, unsigned count)
{
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(set(h, key, "value").result, STORE_STORED);
	}
}

static void set_large(struct harness *h, unsigned count)
{
	static char value[LARGE_BYTES];
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "large:%u", n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value, .length = LARGE_BYTES).result,
				 STORE_STORED);
	}
}

static void want_filters(struct harness *h, unsigned bits)
{
	h->config.filter_bits = (int)bits;
	harness_open(h);
	atomic_store(&h->store->filter_bits, bits); /* tables_choose does it before the first segment */
}

static void with_no_bits_for_a_key_there_is_no_filter(void **state)
{
	struct harness *h = *state;
	struct planned planned;
	size_t length = 1;

	want_filters(h, 0);
	set_small(h, KEYS);
	plan_all(h, &planned);
	assert_true(planned.plan.count > 0);
	assert_null(filter_make(h->store, &planned.plan, &planned.gathered, &length));
	assert_int_equal(length, 0);
	give_up(h, &planned);
}

static void large_objects_alone_have_no_filter(void **state)
{
	struct harness *h = *state;
	struct planned planned;
	size_t length = 1;

	want_filters(h, 8);
	set_large(h, 5);
	plan_all(h, &planned);
	assert_true(planned.plan.count > 0);
	assert_int_equal(planned.plan.count, planned.plan.extents);
	assert_null(filter_make(h->store, &planned.plan, &planned.gathered, &length));
	assert_int_equal(length, 0);
	give_up(h, &planned);
}

#define NOT_WRITTEN 15u /* the last segment: its filter is the one under test */

/* Does the filter of that segment pass the key? Then a slot of the key that names the segment is a match. */
static bool passes(struct harness *h, const char *key, size_t length)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_key k;
	bool passed = false;

	fidx_key_of(h->store->index, store_hash(h->store, key, length), &k);
	assert_true(fidx_insert(h->store->index, &k, NOT_WRITTEN, 0, 0, FIDX_DROP_NONE));
	unsigned matches = fidx_lookup(h->store->index, &k, match);
	for (unsigned i = 0; i < matches; i++)
		passed |= match[i].segment == NOT_WRITTEN;
	fidx_clear(h->store->index, &k);
	return passed;
}

static void each_key_with_a_slot_passes_and_hardly_another_one(void **state)
{
	struct harness *h = *state;
	struct planned planned;
	unsigned others = 0;
	size_t length;
	char key[24];

	want_filters(h, 8);
	set_small(h, KEYS);
	set_large(h, 2);
	plan_all(h, &planned);
	uint32_t slots = planned.plan.count - planned.plan.extents;
	assert_true(slots > KEYS / 2 && planned.plan.extents > 0);
	void *filter = filter_make(h->store, &planned.plan, &planned.gathered, &length);
	assert_non_null(filter);
	assert_int_equal(length, fidx_filter_length(h->store->index, slots));
	fidx_segment_open(h->store->index, NOT_WRITTEN, 0, planned.plan.sequence, 100, filter, length);
	for (uint32_t n = planned.plan.extents; n < planned.plan.count; n++) {
		const struct item *item = placed_item(&planned.plan, &planned.gathered, n);

		assert_true(passes(h, item_key(item), item->key_length));
	}
	for (unsigned n = 0; n < 5000; n++)
		others += passes(h, key, (size_t)snprintf(key, sizeof(key), "nobody:%u", n));
	assert_in_range(others, 0, 500); /* 0.62 to the power of 8 is two in a hundred */
	fidx_segment_close(h->store->index, NOT_WRITTEN);
	give_up(h, &planned);
}

static void the_filter_of_a_written_segment_spares_reads_and_hides_nothing(void **state)
{
	struct harness *h = *state;
	unsigned found = 0;
	char key[24];

	h->config.tag_bits = 6;
	want_filters(h, 16);
	set_small(h, 5 * KEYS);
	assert_true(write_segment(h->store, EVERY_GROUP));
	for (unsigned n = 0; n < 5 * KEYS; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		if (where(h, key) == FLASH)
			found += get(h, key).result == STORE_HIT; /* a miss: its slot is another key's */
	}
	assert_true(found > KEYS);
	struct fidx_status status;
	fidx_get_status(h->store->index, &status);
	assert_true(status.filter_bytes > 0);
	assert_true(fidx_filter_false_positive(h->store->index) < 0.1);
	uint64_t rejects = ctr_sum(CTR_filter_rejects);
	for (unsigned n = 0; n < 20000; n++) {
		snprintf(key, sizeof(key), "nobody:%u", n);
		assert_missing(h, key);
	}
	assert_true(ctr_sum(CTR_filter_rejects) > rejects);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(with_no_bits_for_a_key_there_is_no_filter),
		TEST(large_objects_alone_have_no_filter),
		TEST(each_key_with_a_slot_passes_and_hardly_another_one),
		TEST(the_filter_of_a_written_segment_spares_reads_and_hides_nothing),
	};

	return cmocka_run_group_tests_name("store: filters", tests, NULL, NULL);
}
