/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes, the keyed check and the mixers. */
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "tests/unit/base/base_test.h"

static void another_secret_seed_or_byte_is_another_hash(void **state)
{
	uint8_t secret[HASH_SECRET_BYTES], other[HASH_SECRET_BYTES];
	char data[300];

	(void)state;
	rng_secret(secret, sizeof(secret));
	rng_secret(other, sizeof(other));
	assert_memory_not_equal(secret, other, sizeof(secret));
	memset(data, 'a', sizeof(data));
	for (size_t length = 1; length <= sizeof(data); length++) {
		uint64_t plain = hash64(data, length, 1), keyed = hash64_keyed(data, length, secret);

		assert_true(plain == hash64(data, length, 1));
		assert_true(plain != hash64(data, length, 2));
		assert_true(keyed == hash64_keyed(data, length, secret));
		assert_true(keyed != hash64_keyed(data, length, other));
		data[length - 1] = 'b';
		assert_true(plain != hash64(data, length, 1));
		assert_true(keyed != hash64_keyed(data, length, secret));
		data[length - 1] = 'a';
	}
}

static void hashes_stay_as_they_are_on_flash(void **state)
{
	(void)state;
	/* XXH3 with seed 0 of the empty input and of "abc": stored hashes depend on it. */
	assert_true(hash64("", 0, 0) == 0x2d06800538d394c2ull);
	assert_true(hash64("abc", 3, 0) == 0x78af5f94892f3950ull);
}

static void reduced_values_stay_below_n_and_fill_it(void **state)
{
	unsigned seen[7] = { 0 };
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int i = 0; i < 70000; i++) {
		uint64_t value = reduce64(rng_next(&rng), 7);

		assert_true(value < 7);
		seen[value]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
	assert_int_equal(reduce64(UINT64_MAX, 10), 9);
	assert_int_equal(reduce64(0, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_secret_seed_or_byte_is_another_hash),
		cmocka_unit_test(hashes_stay_as_they_are_on_flash),
		cmocka_unit_test(reduced_values_stay_below_n_and_fill_it),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
