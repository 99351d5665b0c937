/* SPDX-License-Identifier: BSD-3-Clause */
/* Which keys a load asks for, and values that prove their key. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/bench/load_internal.h"

static struct load_spec spec;

static int begin(void **state)
{
	(void)state;
	spec = (struct load_spec){ .keys = 100, .value_bytes = 257 };
	return 0;
}

static void keys_are_numbers_with_leading_zeros(void **state)
{
	char key[KEY_BYTES_MOST];
	struct load_keys keys;

	(void)state;
	spec = (struct load_spec){ .keys = 100, .key_bytes = 20 };
	assert_int_equal(load_keys_init(&keys, &spec), 0);
	load_key_write(&keys, 0, key);
	assert_memory_equal(key, "bench:00000000000000", 20);
	load_key_write(&keys, 98765432109876, key);
	assert_memory_equal(key, "bench:98765432109876", 20);
	load_keys_fini(&keys);
	spec.key_bytes = KEY_BYTES_LEAST - 1;
	assert_int_equal(load_keys_init(&keys, &spec), FS_EINVAL);
	spec.key_bytes = KEY_BYTES_LEAST;
	assert_int_equal(load_keys_init(&keys, &spec), 0);
	load_key_write(&keys, 9876543210, key);
	assert_memory_equal(key, "bench:9876543210", KEY_BYTES_LEAST);
	load_keys_fini(&keys);
}

static void a_sequence_goes_round_in_its_range(void **state)
{
	struct load_sequence sequence;
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	spec = (struct load_spec){ .first_key = 7, .keys = 3 };
	load_sequence_init(&sequence, &spec, &rng);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(load_sequence_next(&sequence), 7 + i % 3);
	spec.order = LOAD_UNIFORM;
	load_sequence_init(&sequence, &spec, &rng);
	for (unsigned i = 0, seen = 0; seen != 7; i++) {
		uint64_t number = load_sequence_next(&sequence);

		assert_in_range(number, 7, 9);
		assert_true(i < 1000);
		seen |= 1u << (number - 7);
	}
}

static void values_are_told_apart_byte_by_byte(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 64, 257 };
	char value[300];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct value_parts parts;
		struct load_keys keys;

		spec.value_bytes = sizes[i];
		assert_int_equal(load_keys_init(&keys, &spec), 0);
		value_parts(&keys, 42, &parts);
		assert_int_equal(parts.front_bytes + parts.middle_bytes + parts.back_bytes, sizes[i]);
		memcpy(value, parts.front, parts.front_bytes);
		memcpy(value + parts.front_bytes, parts.middle, parts.middle_bytes);
		memcpy(value + parts.front_bytes + parts.middle_bytes, parts.back, parts.back_bytes);
		for (uint32_t at = 0; at < sizes[i]; at++) {
			bool stamped = at < parts.front_bytes || at >= sizes[i] - parts.back_bytes;

			assert_true(value_matches(&parts, at, value + at, sizes[i] - at, true));
			value[at] ^= 4;
			assert_false(value_matches(&parts, 0, value, sizes[i], true));
			assert_int_equal(value_matches(&parts, 0, value, sizes[i], false), !stamped);
			assert_true(value_matches(&parts, 0, value, at, true));
			assert_true(value_matches(&parts, at + 1, value + at + 1, sizes[i] - at - 1, true));
			value[at] ^= 4;
		}
		load_keys_fini(&keys);
	}
}

static void sizes_are_log_uniform(void **state)
{
	struct load_keys keys;
	unsigned below_middle = 0;

	(void)state;
	spec.value_bytes = 64;
	spec.value_bytes_most = 64 * 1024;
	assert_int_equal(load_keys_init(&keys, &spec), 0);
	for (uint64_t number = 0; number < 10000; number++) {
		assert_in_range(value_size(&keys, number), 64, 64 * 1024);
		below_middle += value_size(&keys, number) < 2048; /* the geometric mean */
	}
	assert_in_range(below_middle, 4750, 5250);
	load_keys_fini(&keys);
}

static void popular_ranks_are_as_popular_as_they_should_be(void **state)
{
	enum { RANKS = 1000, DRAWS = 1000000 };
	static unsigned drawn[RANKS + 1];
	struct zipf zipf;
	struct rng rng;
	double sum = 0;

	(void)state;
	rng_init(&rng, 1);
	zipf_init(&zipf, RANKS, 0.99);
	for (unsigned rank = 1; rank <= RANKS; rank++)
		sum += pow(rank, -0.99);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t rank = zipf_draw(&zipf, &rng);

		assert_in_range(rank, 1, RANKS);
		drawn[rank]++;
	}
	for (unsigned rank = 1; rank <= RANKS; rank++) {
		double expected = DRAWS * pow(rank, -0.99) / sum;

		assert_true(fabs(drawn[rank] - expected) < 5 * sqrt(expected));
	}
}

static void scrambling_keeps_ranks_apart(void **state)
{
	/* With 15, the first factor that is tried has a divisor in common. */
	static const uint64_t sizes[] = { 1, 2, 3, 10, 15, 1000, 1024, 4095 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		static bool seen[4096];
		struct load_sequence sequence;
		struct rng rng;

		memset(seen, 0, sizeof(seen));
		rng_init(&rng, 1);
		spec.order = LOAD_ZIPF;
		spec.keys = sizes[i];
		load_sequence_init(&sequence, &spec, &rng);
		for (uint64_t rank = 0; rank < sizes[i]; rank++) {
			uint64_t offset = rank * sequence.scramble % sizes[i];

			assert_false(seen[offset]);
			seen[offset] = true;
		}
		for (int draw = 0; draw < 1000; draw++)
			assert_true(load_sequence_next(&sequence) < sizes[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keys_are_numbers_with_leading_zeros, begin),
		cmocka_unit_test_setup(a_sequence_goes_round_in_its_range, begin),
		cmocka_unit_test_setup(values_are_told_apart_byte_by_byte, begin),
		cmocka_unit_test_setup(sizes_are_log_uniform, begin),
		cmocka_unit_test_setup(popular_ranks_are_as_popular_as_they_should_be, begin),
		cmocka_unit_test_setup(scrambling_keeps_ranks_apart, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
