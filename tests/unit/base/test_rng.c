/* SPDX-License-Identifier: BSD-3-Clause */
/* The seeded generator repeats itself and stays in its ranges; secrets come from the kernel, byte for byte. */
#include "base/rng.h"

#include <string.h>

#include "tests/unit/base/base_test.h"

/* ---- secrets --------------------------------------------------------------------------------- */

static void a_secret_of_no_bytes_writes_none(void **state)
{
	uint8_t byte = 0x5a;

	(void)state;
	rng_secret(&byte, 0);
	assert_int_equal(byte, 0x5a);
}

/* Of 64 tries, all leave the guards as they are; that a byte inside stays zero in all of them has a probability of
   2^-512. */
static void a_secret_fills_its_bytes_and_no_others(void **state)
{
	static const size_t lengths[] = { 1, 2, 7, 8, 16, 33, 192 };

	(void)state;
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		uint8_t bytes[256], written[256] = { 0 };
		size_t length = lengths[l];

		for (unsigned i = 0; i < 64; i++) {
			memset(bytes, 0, sizeof(bytes));
			rng_secret(bytes + 1, length);
			assert_int_equal(bytes[0], 0);
			assert_int_equal(bytes[length + 1], 0);
			for (size_t at = 0; at < length; at++)
				written[at] |= bytes[at + 1];
		}
		for (size_t at = 0; at < length; at++)
			assert_int_not_equal(written[at], 0);
	}
}

/* getrandom may return fewer bytes than it was asked for when there are more than 256. */
static void a_long_secret_is_filled_to_its_end(void **state)
{
	static uint8_t bytes[(1 << 20) + 16];
	static const uint8_t zeros[16];

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	rng_secret(bytes, 1 << 20);
	for (size_t at = 0; at < 1 << 20; at += sizeof(zeros))
		assert_memory_not_equal(bytes + at, zeros, sizeof(zeros));
	assert_memory_equal(bytes + (1 << 20), zeros, sizeof(zeros));
}

static void no_secret_comes_twice(void **state)
{
	uint8_t secrets[50][16];

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		rng_secret(secrets[i], sizeof(secrets[i]));
		for (unsigned other = 0; other < i; other++)
			assert_memory_not_equal(secrets[i], secrets[other], sizeof(secrets[i]));
	}
}

/* ---- the generator --------------------------------------------------------------------------- */

static void one_seed_is_one_sequence(void **state)
{
	struct rng a, b;

	(void)state;
	rng_init(&a, 99);
	rng_init(&b, 99);
	for (int i = 0; i < 100; i++)
		assert_true(rng_next(&a) == rng_next(&b));
	rng_init(&b, 100);
	assert_true(rng_next(&a) != rng_next(&b));
}

/* The first numbers of splitmix64 from the seeds 0 and 1234567, as its author's program prints them. Seeds are printed by
   tests, to be given back to a later version. */
static void the_sequence_is_that_of_splitmix64(void **state)
{
	static const uint64_t expected[] = { 6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
					     4593380528125082431ull, 16408922859458223821ull };
	struct rng rng;

	(void)state;
	rng_init(&rng, 0);
	assert_true(rng_next(&rng) == 0xe220a8397b1dcdafull);
	rng_init(&rng, 1234567);
	for (unsigned i = 0; i < 5; i++)
		assert_true(rng_next(&rng) == expected[i]);
}

static void numbers_stay_below_n_for_any_n(void **state)
{
	static const uint64_t bounds[] = { 1, 2, 3, 7, 1000, UINT64_C(1) << 32, (UINT64_C(1) << 63) + 1, UINT64_MAX };
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (unsigned b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++)
		for (int i = 0; i < 10000; i++)
			assert_true(rng_below(&rng, bounds[b]) < bounds[b]);
}

static void small_ranges_are_filled_evenly(void **state)
{
	unsigned seen[7] = { 0 };
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int i = 0; i < 70000; i++)
		seen[rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
}

static void reals_lie_between_zero_and_one(void **state)
{
	unsigned tenth[10] = { 0 };
	struct rng rng;

	(void)state;
	rng_init(&rng, 8);
	for (int i = 0; i < 100000; i++) {
		double real = rng_real(&rng);

		assert_true(real >= 0 && real < 1);
		tenth[(unsigned)(real * 10)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenth[i], 9500, 10500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_of_no_bytes_writes_none),
		cmocka_unit_test(a_secret_fills_its_bytes_and_no_others),
		cmocka_unit_test(a_long_secret_is_filled_to_its_end),
		cmocka_unit_test(no_secret_comes_twice),
		cmocka_unit_test(one_seed_is_one_sequence),
		cmocka_unit_test(the_sequence_is_that_of_splitmix64),
		cmocka_unit_test(numbers_stay_below_n_for_any_n),
		cmocka_unit_test(small_ranges_are_filled_evenly),
		cmocka_unit_test(reals_lie_between_zero_and_one),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
