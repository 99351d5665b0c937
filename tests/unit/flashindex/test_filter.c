/* SPDX-License-Identifier: BSD-3-Clause */
/* Filter units: malformed ones, no false negative, and rates. */
#include "tests/unit/flashindex/support.h"

#include <math.h>

#include "flashindex/index_internal.h"

#define KEYS 100000

static uint64_t *some_hashes(struct fixture *f, uint64_t n)
{
	uint64_t *hashes = mem_must_zalloc(n * sizeof(*hashes));

	for (uint64_t i = 0; i < n; i++)
		hashes[i] = rng_next(&f->rng);
	return hashes;
}

static uint8_t *copy_of(const void *bytes, size_t length)
{
	uint8_t *copy = mem_must_zalloc(length);

	memcpy(copy, bytes, length);
	return copy;
}

static void test_malformed_units_count_as_none(void **state)
{
	struct fixture f = { .config = { .filter_bits = 8 } };
	uint64_t *hashes;
	uint8_t *unit, *bad;
	size_t length;

	(void)state;
	fixture_open(&f, 10, 2);
	hashes = some_hashes(&f, 1000);
	unit = fidx_filter_build(f.index, hashes, 1000, &length);
	assert_int_equal(length, fidx_filter_length(f.index, 1000));
	assert_null(filter_wrap(NULL, 0));
	assert_null(filter_wrap(NULL, length));
	assert_null(filter_wrap(copy_of(unit, length), 0));
	assert_null(filter_wrap(copy_of(unit, length), 8));
	assert_null(filter_wrap(copy_of(unit, length), length - 1));
	assert_null(filter_wrap(copy_of(unit, length), length - 64));
	for (size_t i = 0; i < 4; i++) {
		bad = copy_of(unit, length);
		bad[length - 8 + i] ^= 0x80;
		assert_null(filter_wrap(bad, length));
	}
	bad = copy_of(unit, length);
	bad[length - 8 + 3] = 0; /* no probe: would let all pass */
	assert_null(filter_wrap(bad, length));
	/* The segment is open all the same, and its slots are found. */
	bad = copy_of(unit, length);
	bad[length - 8] = 0;
	fidx_segment_open(f.index, 0, 0, 5, 100, bad, length);
	assert_int_equal(status_of(f.index).filter_bytes, 0);
	mem_free(unit);
	mem_free(hashes);
	fixture_close(&f);
}

static void test_no_filter_without_bits(void **state)
{
	struct fixture f = { .config = { .filter_bits = 0 } };
	uint64_t hash = 1;
	size_t length = 77;

	(void)state;
	fixture_open(&f, 10, 2);
	assert_null(fidx_filter_build(f.index, &hash, 1, &length));
	assert_int_equal(length, 0);
	assert_int_equal(fidx_filter_length(f.index, 1000), 0);
	fixture_close(&f);
}

static void test_an_empty_unit_rejects_all(void **state)
{
	struct fixture f = { .config = { .filter_bits = 2 } };
	struct filter *filter;
	size_t length;
	void *unit;

	(void)state;
	fixture_open(&f, 10, 2);
	unit = fidx_filter_build(f.index, NULL, 0, &length);
	filter = filter_wrap(unit, length);
	assert_non_null(filter);
	assert_true(filter_pass_rate(filter) == 0);
	assert_false(filter_passes(f.index, filter, 1));
	filter_free(filter);
	fixture_close(&f);
}

/* A unit is asked as it was built, also by an index that is configured for other units. */
static void test_units_outlive_a_change_of_the_option(void **state)
{
	struct fixture f = { .config = { .filter_bits = 2 } }, g = { .config = { .filter_bits = 10 } };
	struct filter *filter;
	uint64_t *hashes;
	size_t length;
	void *unit;

	(void)state;
	fixture_open(&f, 10, 2);
	fixture_open(&g, 10, 2);
	hashes = some_hashes(&f, 1000);
	unit = fidx_filter_build(f.index, hashes, 1000, &length);
	filter = filter_wrap(unit, length);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(filter_passes(g.index, filter, hashes[i]));
	filter_free(filter);
	mem_free(hashes);
	fixture_close(&f);
	fixture_close(&g);
}

static void test_false_positive_rates(void **state)
{
	static const unsigned widths[] = { 1, 2, 3, 4, 6, 8, 10, 12, 16 };

	(void)state;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		struct fixture f = { .config = { .filter_bits = widths[i] } };
		double classic = pow(0.6185, widths[i]), rate;
		uint64_t *hashes, passes = 0;
		struct filter *filter;
		size_t length;
		void *unit;

		fixture_open(&f, 10, 2);
		hashes = some_hashes(&f, KEYS);
		unit = fidx_filter_build(f.index, hashes, KEYS, &length);
		filter = filter_wrap(unit, length);
		for (unsigned k = 0; k < KEYS; k++)
			assert_true(filter_passes(f.index, filter, hashes[k]));
		for (unsigned k = 0; k < 4 * KEYS; k++)
			passes += filter_passes(f.index, filter, rng_next(&f.rng));
		rate = (double)passes / (4 * KEYS);
		print_message("%2u bits: %.4f measured, %.4f from its bits, %.4f classic; %.3f bits per key\n",
			      widths[i], rate, filter_pass_rate(filter), classic, (double)length * 8 / KEYS);
		assert_true(fabs(rate - filter_pass_rate(filter)) < 0.02 * rate + 0.0005);
		/* One cache line costs something at many bits, nothing at one or two. */
		assert_true(rate < classic * (widths[i] <= 2 ? 1.04 : widths[i] <= 8 ? 1.35 : 3));
		filter_free(filter);
		mem_free(hashes);
		fixture_close(&f);
	}
}

/* Through the index: with narrow tags the filter halves the matches of strangers. */
static void test_filters_reject_strangers_and_never_the_owner(void **state)
{
	struct fixture f = { .config = { .filter_bits = 2, .tag_bits = 4 } };
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key keys[1000];
	uint64_t hashes[1000], matches = 0, rejects;
	struct fidx_status status;
	size_t length;
	void *unit;

	(void)state;
	fixture_open(&f, 100, 2);
	for (unsigned i = 0; i < 1000; i++) {
		keys[i] = key_next(&f);
		hashes[i] = keys[i].hash;
	}
	unit = fidx_filter_build(f.index, hashes, 1000, &length);
	fidx_segment_open(f.index, 0, 0, 5, 100, unit, length);
	for (unsigned i = 0; i < 1000; i++)
		(void)!fidx_insert(f.index, &keys[i], 0, i % 16, 0, FIDX_DROP_COLDEST);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(fidx_lookup(f.index, &keys[i], out) >= 1);
	rejects = ctr_sum(CTR_filter_rejects);
	for (unsigned i = 0; i < 20000; i++) {
		struct fidx_key stranger = key_next(&f);

		matches += fidx_lookup(f.index, &stranger, out);
	}
	rejects = ctr_sum(CTR_filter_rejects) - rejects;
	status = status_of(f.index);
	assert_true(rejects > 0);
	assert_true(fabs((double)matches / (double)(matches + rejects) - fidx_filter_false_positive(f.index)) < 0.05);
	assert_true(status.filter_bytes >= length);
	for (unsigned i = 0; i < 1000; i++) {
		fidx_clear(f.index, &keys[i]);
		assert_int_equal(fidx_lookup(f.index, &keys[i], out), 0);
	}
	fidx_segment_close(f.index, 0);
	assert_int_equal(status_of(f.index).filter_bytes, 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed_units_count_as_none),
		cmocka_unit_test(test_no_filter_without_bits),
		cmocka_unit_test(test_an_empty_unit_rejects_all),
		cmocka_unit_test(test_units_outlive_a_change_of_the_option),
		cmocka_unit_test(test_false_positive_rates),
		cmocka_unit_test(test_filters_reject_strangers_and_never_the_owner),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
