/* SPDX-License-Identifier: BSD-3-Clause */
/* The name before a key's first delimiter, read by words: as a loop over bytes finds it, within the key's bytes. */
#include "server/store/dram/app_name.h"

#include <stdlib.h>

#include "base/rng.h"
#include "tests/unit/server/store/harness.h"

#define DELIMITERS (APP_NAME_EACH_BYTE * ':')
#define LENGTHS 60u
#define RANDOM_KEYS 200000u

/* The key alone on the heap, so that a sanitizer sees each byte that is read beside it. */
static struct app_name name_of(const char *key, size_t length, size_t longest)
{
	char *alone = malloc(length ? length : 1);
	struct app_name name;

	assert_non_null(alone);
	memcpy(alone, key, length);
	name = app_name_of(alone, length, DELIMITERS, longest);
	free(alone);
	return name;
}

static void keys_without_a_name(void **state)
{
	char key[LENGTHS];

	(void)state;
	memset(key, 'k', sizeof(key));
	for (size_t length = 0; length <= sizeof(key); length++)
		assert_int_equal(name_of(key, length, sizeof(key)).length, 0);
	for (size_t length = 1; length <= sizeof(key); length++) {
		key[0] = ':';
		assert_int_equal(name_of(key, length, sizeof(key)).length, 0);
	}
}

static void a_name_of_each_length_in_a_key_of_each_length(void **state)
{
	char key[LENGTHS];

	(void)state;
	for (size_t length = 1; length <= LENGTHS; length++)
		for (size_t end = 0; end < length; end++) {
			memset(key, 'k', sizeof(key));
			key[end] = ':';
			assert_int_equal(name_of(key, length, length).length, end);
			if (end + 1 < length)
				key[length - 1] = ':'; /* a second one */
			assert_int_equal(name_of(key, length, length).length, end);
			assert_int_equal(name_of(key, length, end).length, end); /* just as long as is of interest */
		}
}

/* What stands behind the name is of no account, and neither is the byte that is one from the delimiter, which the test
   for a zero byte takes for one when it stands behind the real one. */
static void the_same_name_in_any_key_is_equal(void **state)
{
	char key[LENGTHS], other[LENGTHS];

	(void)state;
	for (size_t end = 1; end + 1 < LENGTHS; end++) {
		memset(key, 'n', sizeof(key));
		memset(other, ';', sizeof(other)); /* ':' + 1 */
		memset(other, 'n', end);
		key[end] = other[end] = ':';
		const struct app_name full = name_of(key, end + 1, LENGTHS);
		for (size_t length = end + 1; length <= LENGTHS; length++) {
			const struct app_name a = name_of(key, length, LENGTHS), b = name_of(other, length, LENGTHS);

			assert_int_equal(a.length, end);
			assert_true(a.first == full.first && a.last == full.last && a.hash == full.hash);
			assert_int_equal(b.length, end);
			assert_true(b.first == full.first && b.last == full.last && b.hash == full.hash);
		}
	}
}

static void zeros_in_a_key_are_bytes_like_others(void **state)
{
	(void)state;
	const struct app_name shop = name_of("shop:1", 6, 10), zero = name_of("shop\0:1", 7, 10),
			      zeros = name_of("shop\0\0\0:1234567", 15, 10);

	assert_int_equal(zero.length, 5);
	assert_int_equal(zeros.length, 7);
	assert_true(shop.first != zero.first && shop.first != zeros.first && zero.first != zeros.first);
}

static void names_that_differ_anywhere_differ(void **state)
{
	char key[LENGTHS];

	(void)state;
	for (size_t end = 1; end + 1 < LENGTHS; end++) {
		memset(key, 'n', sizeof(key));
		key[end] = ':';
		const struct app_name name = name_of(key, sizeof(key), LENGTHS);
		for (size_t at = 0; at < end; at++) {
			key[at] = 'm';
			const struct app_name changed = name_of(key, sizeof(key), LENGTHS);
			key[at] = 'n';
			assert_int_equal(changed.length, end);
			if (at < APP_NAME_WORD)
				assert_true(changed.first != name.first);
			if (at >= end - end % APP_NAME_WORD)
				assert_true(changed.last != name.last);
			else if (at >= APP_NAME_WORD) {
				char other[LENGTHS];

				memcpy(other, key, sizeof(key));
				other[at] = 'm';
				assert_false(app_name_same_middle(end, key, other));
			}
			assert_true(changed.hash != name.hash);
		}
		assert_true(app_name_same_middle(end, key, key));
	}
}

static void random_bytes_give_what_a_loop_finds(void **state)
{
	struct rng rng;
	char key[LENGTHS];

	(void)state;
	rng_init(&rng, 7);
	for (unsigned n = 0; n < RANDOM_KEYS; n++) {
		size_t length = rng_below(&rng, LENGTHS + 1), end;

		for (size_t i = 0; i < length; i++) /* near the delimiter, and with the highest bit too */
			key[i] = (char)(rng_below(&rng, 8) ? rng_below(&rng, 256) : ':' - 1 + rng_below(&rng, 3));
		for (end = 0; end < length && key[end] != ':'; end++)
			;
		assert_int_equal(name_of(key, length, LENGTHS).length, end < length ? end : 0);
	}
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_without_a_name),
		TEST(a_name_of_each_length_in_a_key_of_each_length),
		TEST(the_same_name_in_any_key_is_equal),
		TEST(zeros_in_a_key_are_bytes_like_others),
		TEST(names_that_differ_anywhere_differ),
		TEST(random_bytes_give_what_a_loop_finds),
	};

	return cmocka_run_group_tests_name("store: names of applications", tests, NULL, NULL);
}
