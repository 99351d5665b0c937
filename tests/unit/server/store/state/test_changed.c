/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/changed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"

static uint64_t hash_of(uint64_t n)
{
	return hash64(&n, sizeof(n), 0);
}

static void what_was_noted_is_known_and_little_else(void **state)
{
	struct changed_keys *changed = changed_make(100000, 1 << 20);
	unsigned wrong = 0;

	(void)state;
	assert_non_null(changed);
	for (uint64_t n = 0; n < 10000; n++)
		changed_note(changed, hash_of(n));
	for (uint64_t n = 0; n < 10000; n++)
		assert_true(changed_has(changed, hash_of(n)));
	for (uint64_t n = 10000; n < 110000; n++)
		wrong += changed_has(changed, hash_of(n));
	assert_in_range(wrong, 1, 1500); /* 10000 of a million bits, for 100000 keys: about 950 */
	mem_free(changed);
}

static void its_size_has_bounds(void **state)
{
	struct changed_keys *small = changed_make(0, 1 << 20), *large = changed_make(1ull << 40, 1 << 20);

	(void)state;
	assert_int_equal(small->bytes, sizeof(*small) + 4096);
	assert_in_range(large->bytes, 1 << 19, sizeof(*large) + (1 << 20));
	changed_note(large, UINT64_MAX);
	assert_true(changed_has(large, UINT64_MAX));
	assert_false(changed_has(large, 0));
	mem_free(small);
	mem_free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_noted_is_known_and_little_else),
		cmocka_unit_test(its_size_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
