/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys are unique, and values prove key, version and length. */
#include "tests/unit/tools/tools_test.h"

#include "base/rng.h"
#include "tools/common/value.h"

static char value[300000], other[300000];

static void another_key_is_found_out(void **state)
{
	(void)state;
	for (uint32_t length = 6; length < 40; length++) {
		value_write(value, length, 1, 5);
		assert_int_equal(value_check(value, length, 2, 5), VALUE_WRONG);
		assert_int_equal(value_check(value, length, 2, 0), VALUE_WRONG);
	}
}

static void another_length_is_found_out(void **state)
{
	(void)state;
	for (uint32_t length = 8; length < 40; length++) {
		value_write(value, length + 1, 1, 5);
		assert_int_equal(value_check(value, length, 1, 5), VALUE_WRONG);
	}
}

static void any_flipped_bit_is_found_out(void **state)
{
	(void)state;
	for (uint32_t length = 6; length < 200; length += 13) {
		value_write(value, length, 77, 5);
		for (uint32_t bit = 32; bit < length * 8; bit++) {
			value[bit / 8] ^= (char)(1 << bit % 8);
			assert_int_equal(value_check(value, length, 77, 5), VALUE_WRONG);
			value[bit / 8] ^= (char)(1 << bit % 8);
		}
		assert_int_equal(value_check(value, length, 77, 5), VALUE_GOOD);
	}
}

static void a_moved_block_is_found_out(void **state)
{
	(void)state;
	value_write(value, sizeof(value), 9, 1);
	for (size_t block = 512; block <= 65536; block *= 2) {
		memcpy(other, value, sizeof(value));
		memmove(other + 4096, other + 4096 + block, 131072);
		assert_int_equal(value_check(other, sizeof(other), 9, 1), VALUE_WRONG);
	}
}

static void older_and_newer_are_told_apart(void **state)
{
	(void)state;
	for (uint32_t length = 4; length < 100; length++) {
		value_write(value, length, 3, 10);
		assert_int_equal(value_check(value, length, 3, 11), VALUE_OLDER);
		assert_int_equal(value_check(value, length, 3, 9), VALUE_NEWER);
		assert_int_equal(value_check(value, length, 3, 10), VALUE_GOOD);
		assert_int_equal(value_check(value, length, 3, 0), VALUE_GOOD);
	}
	for (uint32_t length = 1; length < 4; length++) {
		value_write(value, length, 3, 10);
		assert_int_equal(value_check(value, length, 3, 11), VALUE_WRONG);
		assert_int_equal(value_check(value, length, 3, 10), VALUE_GOOD);
	}
	assert_int_equal(value_check(value, 0, 3, 10), VALUE_GOOD);
}

static void keys_are_unique_and_of_their_size(void **state)
{
	char key[KEY_MAX_BYTES], last[KEY_MAX_BYTES];
	size_t length, last_length = 0;

	(void)state;
	for (uint64_t ordinal = 0; ordinal < 10000; ordinal++) {
		length = trace_key_write(key, 19, ordinal, 32);
		assert_int_equal(length, 32);
		assert_memory_equal(key, "app19:", 6);
		assert_false(length == last_length && memcmp(key, last, length) == 0);
		memcpy(last, key, length);
		last_length = length;
	}
	/* One that doesn't fit its size gets what it needs. */
	assert_int_equal(trace_key_write(key, 19, 62, 4), 8);
	assert_memory_equal(key, "app19:01", 8);
	assert_int_equal(trace_key_write(key, 4294967295u, UINT64_MAX, 250), 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_key_is_found_out),       cmocka_unit_test(another_length_is_found_out),
		cmocka_unit_test(any_flipped_bit_is_found_out),   cmocka_unit_test(a_moved_block_is_found_out),
		cmocka_unit_test(older_and_newer_are_told_apart), cmocka_unit_test(keys_are_unique_and_of_their_size),
	};

	value_init();
	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
