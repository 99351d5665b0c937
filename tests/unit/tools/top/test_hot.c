/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats hotkeys", whatever a server makes of them. */
#include "tests/unit/tools/top/top_test.h"

static struct sample sample;

static int fresh(void **state)
{
	(void)state;
	a_sample(&sample, 1);
	return 0;
}

static void take(const char *name, const char *value)
{
	give(&sample, REPORT_HOTKEYS, name, value);
}

static bool nothing_was_taken(void)
{
	for (int by = 0; by < HOT_MEASURES; by++)
		for (int window = 0; window < HOT_WINDOWS; window++) {
			const struct hot_keys *keys = &sample.hot[by][window];

			if (!isnan(keys->seconds) || !isnan(keys->total))
				return false;
			for (unsigned i = 0; i < HOT_KEYS; i++)
				if (keys->key[i].name[0])
					return false;
		}
	return true;
}

static void names_that_are_none(void **state)
{
	static const char *const names[] = { "",
					     ":",
					     ":::",
					     "requests",
					     "requests:",
					     "requests:1",
					     "requests:",
					     "requests:1m",
					     "requests:1m:",
					     "requests:1m:0",
					     "bytes:1m:21",
					     "reads:5m:1",
					     "requests:1m:1.5",
					     "requests:1m:-1",
					     "requests:1m:1:1",
					     "shown",
					     "sampled_each" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		take(names[i], "key=a requests=1");
	assert_true(nothing_was_taken());
	assert_true(sample.has[REPORT_HOTKEYS]);
}

static void values_that_are_damaged(void **state)
{
	const struct hot_key *key = &sample.hot[HOT_REQUESTS][HOT_MINUTE].key[0];
	char longest[2 * HOT_KEY_BYTES];

	(void)state;
	take("requests:1m:1", "");
	assert_int_equal(key->name[0], 0);
	take("requests:1m:1", "key= requests=x bytes=-5 reads=");
	assert_int_equal(key->name[0], 0);
	for (int i = 0; i < HOT_MEASURES; i++)
		assert_unknown(key->amount[i]);
	snprintf(longest, sizeof(longest), "key=%0*d", (int)sizeof(longest) - 8, 7);
	take("requests:1m:1", longest);
	assert_int_equal(strlen(key->name), HOT_KEY_BYTES - 1); /* cut */
	take("requests:1m:seconds", "many");
	assert_unknown(sample.hot[HOT_REQUESTS][HOT_MINUTE].seconds);
}

static void keys_and_amounts(void **state)
{
	const struct hot_keys *keys = &sample.hot[HOT_READS][HOT_TEN_MINUTES];

	(void)state;
	take("reads:10m:seconds", "612");
	take("reads:10m:total", "1000");
	take("reads:10m:1", "key=user%3A1 hash=00ff requests=10 bytes=2000 reads=12 error=0 since=5");
	take("reads:10m:2", "hash=0123456789abcdef requests=4 bytes=3 reads=2 error=0 since=5");
	assert_number(keys->seconds, 612);
	assert_number(keys->total, 1000);
	assert_string_equal(keys->key[0].name, "user%3A1");
	assert_number(keys->key[0].amount[HOT_REQUESTS], 10);
	assert_number(keys->key[0].amount[HOT_BYTES], 2000);
	assert_number(keys->key[0].amount[HOT_READS], 12);
	assert_string_equal(keys->key[1].name, "hash=0123456789abcdef");
	assert_int_equal(keys->key[2].name[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_that_are_none, fresh),
		cmocka_unit_test_setup(values_that_are_damaged, fresh),
		cmocka_unit_test_setup(keys_and_amounts, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
