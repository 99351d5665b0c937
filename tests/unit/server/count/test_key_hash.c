/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of keys: one for each key until the secret is drawn anew, and then another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/count/key_hash.h"

static const char *const keys[] = { "", "a", "b", "ab", "user:17", "user:18" };

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void take(uint64_t out[KEYS])
{
	for (size_t i = 0; i < KEYS; i++)
		out[i] = key_hash(keys[i], strlen(keys[i]));
}

/* Two random numbers of 64 bits are equal once in 2^64 times. */
static void a_key_has_a_number_of_its_own(void **state)
{
	uint64_t first[KEYS], again[KEYS];

	(void)state;
	key_hash_init();
	take(first);
	take(again);
	assert_memory_equal(first, again, sizeof(first));
	for (size_t i = 0; i < KEYS; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(first[i] != first[j]);
	assert_true(key_hash("ab", 1) == key_hash("a", 1)); /* no byte behind the key counts */
}

static void a_new_secret_changes_each_number(void **state)
{
	uint64_t before[KEYS], after[KEYS];

	(void)state;
	key_hash_init();
	take(before);
	key_hash_init();
	take(after);
	for (size_t i = 0; i < KEYS; i++)
		assert_true(before[i] != after[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_a_number_of_its_own),
		cmocka_unit_test(a_new_secret_changes_each_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
