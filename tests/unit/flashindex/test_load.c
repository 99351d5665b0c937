/* SPDX-License-Identifier: BSD-3-Clause */
/* How full the index gets, what that costs, and what a tag lets through. */
#include "tests/unit/flashindex/support.h"

#define BUCKETS 4099
#define SLOTS ((uint64_t)BUCKETS * FIDX_BUCKET_SLOTS)

static uint64_t insert_random(struct fixture *f, uint64_t n, struct fidx_key *keys)
{
	uint64_t moves = ctr_sum(CTR_index_moves);

	for (uint64_t i = 0; i < n; i++) {
		struct fidx_key key = key_next(f);

		if (keys)
			keys[i] = key;
		(void)!fidx_insert(f->index, &key, (uint32_t)rng_below(&f->rng, 16), (unsigned)rng_below(&f->rng, 16),
				   0, FIDX_DROP_COLDEST);
	}
	return ctr_sum(CTR_index_moves) - moves;
}

static void open_segments(struct fixture *f, uint32_t n)
{
	for (uint32_t s = 0; s < n; s++)
		fidx_segment_open(f->index, s, 0, 1000 + s, 400, NULL, 0);
}

static void test_no_drop_up_to_98_percent(void **state)
{
	struct fixture f = { .config = { .tag_bits = 11 } };
	uint64_t drops = ctr_sum(CTR_index_drops), moves;
	struct fidx_key *keys = mem_must_zalloc(SLOTS * sizeof(*keys));
	uint64_t to95 = SLOTS * 95 / 100, to98 = SLOTS * 98 / 100;

	(void)state;
	fixture_open(&f, BUCKETS, 16);
	open_segments(&f, 16);
	moves = insert_random(&f, to95, keys);
	print_message("moves per insert up to a load of 0.95: %.3f\n", (double)moves / (double)to95);
	assert_true((double)moves / (double)to95 < 0.15);
	moves += insert_random(&f, to98 - to95, keys + to95);
	print_message("moves per insert up to a load of 0.98: %.3f\n", (double)moves / (double)to98);
	assert_true((double)moves / (double)to98 < 0.30);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_int_equal(status_of(f.index).used, to98);
	for (uint64_t i = 0; i < to98; i++) {
		struct fidx_match matches[FIDX_MAX_MATCHES];

		assert_true(fidx_lookup(f.index, &keys[i], matches) > 0);
	}
	mem_free(keys);
	fixture_close(&f);
}

static void test_steady_state_at_98_percent(void **state)
{
	struct fixture f = { .config = { .tag_bits = 11 } };
	uint64_t drops, n = SLOTS * 98 / 100, replaced = SLOTS, moves = 0;
	struct fidx_key *keys = mem_must_zalloc(SLOTS * sizeof(*keys));

	(void)state;
	fixture_open(&f, BUCKETS, 16);
	open_segments(&f, 16);
	insert_random(&f, n, keys);
	drops = ctr_sum(CTR_index_drops);
	for (uint64_t i = 0; i < replaced; i++) {
		struct fidx_key *victim = &keys[rng_below(&f.rng, n)];

		fidx_clear(f.index, victim);
		moves += insert_random(&f, 1, victim);
	}
	print_message("churning at 0.98 or less: moves per insert %.3f, drops %llu of %llu\n",
		      (double)moves / (double)replaced, (unsigned long long)(ctr_sum(CTR_index_drops) - drops),
		      (unsigned long long)replaced);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	mem_free(keys);
	fixture_close(&f);
}

static void test_where_the_first_drop_comes(void **state)
{
	struct fixture f = { .config = { .tag_bits = 11 } };
	uint64_t drops = ctr_sum(CTR_index_drops), n = 0;

	(void)state;
	fixture_open(&f, BUCKETS, 16);
	open_segments(&f, 16);
	while (ctr_sum(CTR_index_drops) == drops && n < SLOTS) {
		insert_random(&f, 1, NULL);
		n++;
	}
	print_message("first drop at a load of %.4f\n", (double)n / (double)SLOTS);
	assert_true(n > SLOTS * 99 / 100);
	/* Twice as many as fit: each finds its place, and the count stays exact. */
	insert_random(&f, SLOTS, NULL);
	assert_int_equal(status_of(f.index).used, n + SLOTS - (ctr_sum(CTR_index_drops) - drops));
	fixture_close(&f);
}

static void test_false_matches_per_miss(void **state)
{
	static const struct {
		unsigned tag_bits;
		double design; /* share of misses with a false match at 0.98, as simulated before */
	} width[] = { { 11, 0.015 }, { 14, 0.0016 }, { 16, 0.0003 } };

	(void)state;
	for (size_t i = 0; i < sizeof(width) / sizeof(width[0]); i++) {
		struct fixture f = { .config = { .tag_bits = width[i].tag_bits } };
		uint64_t false_matches = 0, lookups = 400000, rejects = ctr_sum(CTR_tag_rejects);
		double rate;

		fixture_open(&f, BUCKETS, 16);
		open_segments(&f, 16);
		insert_random(&f, SLOTS * 98 / 100, NULL);
		for (uint64_t k = 0; k < lookups; k++) {
			struct fidx_match matches[FIDX_MAX_MATCHES];
			struct fidx_key key = key_next(&f);

			false_matches += fidx_lookup(f.index, &key, matches);
		}
		rate = (double)false_matches / (double)lookups;
		rejects = ctr_sum(CTR_tag_rejects) - rejects;
		print_message("%u-bit tags: %.5f false matches per miss, %.2f slots rejected by tag\n",
			      width[i].tag_bits, rate, (double)rejects / (double)lookups);
		assert_true(rate > width[i].design * 0.7 && rate < width[i].design * 1.6);
		assert_true((double)rejects / (double)lookups > 31);
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_drop_up_to_98_percent),
		cmocka_unit_test(test_steady_state_at_98_percent),
		cmocka_unit_test(test_where_the_first_drop_comes),
		cmocka_unit_test(test_false_matches_per_miss),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
