/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of keys, and the estimate of how many there were. */
#include "tests/unit/tools/tools_test.h"

#include <math.h>

#include "base/hash.h"
#include "tools/record/distinct.h"
#include "tools/record/names.h"

static uint64_t name_under(const char *salt, const char *key)
{
	struct names names;
	uint64_t name;

	names_init(&names, salt);
	name = names_of(&names, key, strlen(key));
	assert_int_equal(names_of(&names, key, strlen(key)), name);
	names_fini(&names);
	return name;
}

static void without_a_salt_each_time_has_its_own_names(void **state)
{
	(void)state;
	assert_int_not_equal(name_under(NULL, "key"), name_under(NULL, "key"));
}

static void a_salt_gives_the_same_names(void **state)
{
	(void)state;
	assert_int_equal(name_under("salt", "key"), name_under("salt", "key"));
	assert_int_not_equal(name_under("salt", "key"), name_under("salt", "kez"));
	assert_int_not_equal(name_under("salt", "key"), name_under("salt2", "key"));
}

/* SipHash-2-4 under the first half of SHA-256 of "abc", ba7816bf 8f01cfea 414140de 5dae2223, by another program. */
static void the_hash_is_siphash(void **state)
{
	(void)state;
	assert_int_equal(name_under("abc", "key"), 0xfd67501f73820c54);
}

static void an_estimate_is_near(void **state)
{
	static const double counts[] = { 0, 1, 10, 1000, 30000, 60000, 3000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct distinct distinct = { 0 };

		for (int turn = 0; turn < 2; turn++)
			for (uint64_t n = 1; n <= (uint64_t)counts[i]; n++)
				distinct_add(&distinct, mix64(n));
		assert_true(fabs(distinct_estimate(&distinct) - counts[i]) <= counts[i] * 0.03);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_salt_each_time_has_its_own_names),
		cmocka_unit_test(a_salt_gives_the_same_names),
		cmocka_unit_test(the_hash_is_siphash),
		cmocka_unit_test(an_estimate_is_near),
	};

	return cmocka_run_group_tests_name("record: names", tests, NULL, NULL);
}
