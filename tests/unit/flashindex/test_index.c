/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation with valid and invalid configurations; from hash to buckets, place and stripe; the figures. */
#include "tests/unit/flashindex/support.h"

#include "flashindex/index_internal.h"

static void test_invalid_configurations_are_refused(void **state)
{
	const struct fidx_config good = { .buckets = 2, .segments = 1, .functions = 1 };
	static const struct {
		const char *why;
		struct fidx_config config;
	} bad[] = {
		{ "one bucket", { .buckets = 1, .segments = 1, .functions = 1 } },
		{ "no segment", { .buckets = 2, .segments = 0, .functions = 1 } },
		{ "too many segments", { .buckets = 2, .segments = 16384, .functions = 1 } },
		{ "tag of one bit", { .buckets = 2, .segments = 1, .functions = 1, .tag_bits = 1 } },
		{ "tag too wide", { .buckets = 2, .segments = 16383, .functions = 1, .tag_bits = 12 } },
		{ "no function", { .buckets = 2, .segments = 1, .functions = 0 } },
		{ "too many functions", { .buckets = 2, .segments = 1, .functions = 17 } },
		{ "absurd filter", { .buckets = 2, .segments = 1, .functions = 1, .filter_bits = 33 } },
	};
	struct fixture f = { .config = good };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f.config = bad[i].config;
		if (fixture_try(&f) != FS_EINVAL)
			fail_msg("%s was accepted", bad[i].why);
		region_destroy(f.region);
	}
	f.config = good;
	f.config.buckets_most = good.buckets - 1;
	assert_int_equal(fixture_try(&f), FS_EINVAL);
	region_destroy(f.region);
	f.config = good;
	assert_int_equal(fixture_try(&f), 0);
	fixture_close(&f);
}

static void test_partner_is_its_own_inverse(void **state)
{
	static const uint64_t sizes[] = { 2, 3, 4, 5, 7, 8, 100, 101, 4096, 65537 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fixture f = { .config = { .tag_bits = 8 } };
		struct fidx *index = fixture_open(&f, sizes[i], 100);
		unsigned equal = 0;

		for (unsigned k = 0; k < 20000; k++) {
			struct fidx_key key = key_next(&f);

			assert_true(key.bucket[0][0] < sizes[i] && key.bucket[0][1] < sizes[i]);
			assert_true(key.tag < 256);
			assert_int_equal(bucket_partner(index, sizes[i], key.bucket[0][0], key.tag), key.bucket[0][1]);
			assert_int_equal(bucket_partner(index, sizes[i], key.bucket[0][1], key.tag), key.bucket[0][0]);
			equal += key.bucket[0][0] == key.bucket[0][1];
		}
		if (sizes[i] < 10)
			assert_true(equal > 0); /* the case of one bucket does happen */
		fixture_close(&f);
	}
}

static void test_place_is_what_the_index_can_tell_apart(void **state)
{
	struct fixture f = { .config = { .tag_bits = 2 } };
	struct fidx_key keys[200];

	(void)state;
	fixture_open(&f, 5, 4);
	for (unsigned i = 0; i < 200; i++)
		keys[i] = key_next(&f);
	for (unsigned i = 0; i < 200; i++)
		for (unsigned j = 0; j < 200; j++) {
			const struct fidx_key *a = &keys[i], *b = &keys[j];
			bool same = a->tag == b->tag &&
				    (a->bucket[0][0] == b->bucket[0][0] || a->bucket[0][0] == b->bucket[0][1]);

			assert_int_equal(place_of_key(&f, a) == place_of_key(&f, b), same);
		}
	fixture_close(&f);
}

static void test_key_stripe_follows_from_the_tag(void **state)
{
	struct fixture f = { .config = { .tag_bits = 6 } };
	int64_t of_tag[64];

	(void)state;
	memset(of_tag, -1, sizeof(of_tag));
	fixture_open(&f, 1000, 100);
	for (unsigned i = 0; i < 10000; i++) {
		struct fidx_key key = key_next(&f);
		uint32_t stripe = fidx_stripe_of(f.index, key.hash, 16);

		assert_true(stripe < 16);
		assert_true(of_tag[key.tag] < 0 || of_tag[key.tag] == stripe);
		of_tag[key.tag] = stripe;
		assert_true(fidx_stripe_of(f.index, key.hash, 65536) < 65536);
		assert_int_equal(fidx_stripe_of(f.index, key.hash, 1), 0);
	}
	fixture_close(&f);
}

static void test_the_region_has_room_for_all_that_may_come(void **state)
{
	const struct fidx_config config = {
		.buckets = 10, .buckets_most = 300, .segments = 5, .functions = 16, .extents_most = 5000
	};
	struct fixture f = { .config = config };
	uint64_t most[REGION_AREAS] = { [REGION_STORE] = 7, [REGION_SEGMENTS] = 8 };
	unsigned table;

	(void)state;
	fidx_region_most(&config, most);
	assert_int_equal(most[REGION_STORE], 7); /* not the index's */
	assert_int_equal(most[REGION_SEGMENTS], 8);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		assert_int_equal(most[REGION_TABLE_0 + t], 300 * sizeof(struct bucket));
	assert_int_equal(most[REGION_EXTENTS_0], most[REGION_EXTENTS_1]);
	assert_true(most[REGION_EXTENTS_0] >= 5000 / EXTENT_WAYS * sizeof(struct extent_group));
	assert_int_equal(fixture_try(&f), FS_OK);
	assert_int_equal(fidx_table_add(f.index, 300, &table), FS_OK);
	assert_int_equal(fidx_table_add(f.index, 300, &table), FS_OK);
	assert_int_equal(fidx_extents_reserve(f.index, 5000), FS_OK);
	fixture_close(&f);
	fidx_destroy(NULL);
}

static void test_without_extents_they_take_no_room(void **state)
{
	const struct fidx_config config = { .buckets = 2, .buckets_most = 2, .segments = 1, .functions = 1 };
	uint64_t most[REGION_AREAS] = { [REGION_EXTENTS_0] = 1, [REGION_EXTENTS_1] = 1 };

	(void)state;
	fidx_region_most(&config, most);
	assert_int_equal(most[REGION_EXTENTS_0], 0);
	assert_int_equal(most[REGION_EXTENTS_1], 0);
}

/* The same hashes under two seeds: who collides under one doesn't under the other. */
static void test_another_seed_leads_elsewhere(void **state)
{
	struct fixture one = { .config = { .tag_bits = 8 } }, other = { .config = { .tag_bits = 8 } };
	unsigned equal = 0;

	(void)state;
	fixture_open(&one, 1000, 10);
	other.config = one.config;
	other.config.seed++;
	assert_int_equal(fixture_try(&other), FS_OK);
	for (unsigned i = 0; i < 1000; i++) {
		struct fidx_key a = key_next(&one), b, again;

		fidx_key_of(other.index, a.hash, &b);
		fidx_key_of(one.index, a.hash, &again);
		assert_true(place_of_key(&one, &a) == place_of_key(&one, &again));
		equal += place_of_key(&one, &a) == place_of_key(&other, &b);
	}
	assert_true(equal < 10); /* some 0.01 are expected */
	fixture_close(&one);
	fixture_close(&other);
}

static void test_figures_follow_tables_and_slots(void **state)
{
	struct fixture f = { .config = { .buckets_most = 100, .extents_most = 100 } };
	struct fidx_status empty, grown;
	unsigned table;

	(void)state;
	f.config.buckets = 10, f.config.segments = 4, f.config.functions = 16;
	assert_int_equal(fixture_try(&f), FS_OK);
	empty = status_of(f.index);
	assert_int_equal(empty.tables, 1);
	assert_int_equal(empty.slots, 160);
	assert_int_equal(empty.index_bytes, 640);
	assert_int_equal(empty.extents, 0);
	assert_int_equal(empty.filter_bytes, 0);
	assert_true(fidx_filter_false_positive(f.index) == 1);
	assert_counts(f.index, 0, 0, 0, 0);
	assert_int_equal(fidx_table_add(f.index, 100, &table), FS_OK);
	assert_int_equal(fidx_extents_reserve(f.index, 100), FS_OK);
	grown = status_of(f.index);
	assert_int_equal(grown.tables, 2);
	assert_int_equal(grown.slots, 1760);
	assert_int_equal(grown.index_bytes, 4 * 1760);
	assert_true(grown.extents >= 100);
	assert_int_equal(grown.other_bytes - empty.other_bytes,
			 grown.extents / EXTENT_WAYS * sizeof(struct extent_group));
	fidx_table_drop(f.index, table);
	assert_int_equal(status_of(f.index).slots, 160);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invalid_configurations_are_refused),
		cmocka_unit_test(test_the_region_has_room_for_all_that_may_come),
		cmocka_unit_test(test_without_extents_they_take_no_room),
		cmocka_unit_test(test_another_seed_leads_elsewhere),
		cmocka_unit_test(test_figures_follow_tables_and_slots),
		cmocka_unit_test(test_partner_is_its_own_inverse),
		cmocka_unit_test(test_place_is_what_the_index_can_tell_apart),
		cmocka_unit_test(test_key_stripe_follows_from_the_tag),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
