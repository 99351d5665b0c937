/* SPDX-License-Identifier: BSD-3-Clause */
/* The inspector reads a cuckoo filter that the index has built over the keys "key:0" to "key:59"; Bloom filters come with
   the images of other tests. */
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After them. */
#include <cmocka.h>

#include "tools/inspect/filter.h"

#define KEYS 60u
#define SEED 77u

static const uint8_t unit[] = {
	0x34, 0x5c, 0x9a, 0xcd, 0x36, 0x40, 0x9f, 0x28, 0x02, 0x70, 0xb7, 0xac, 0x1f, 0x00, 0x90, 0xb1, 0x43, 0x7a,
	0x00, 0x00, 0x00, 0xc0, 0xa4, 0x76, 0x1d, 0x1b, 0x33, 0x74, 0x51, 0x8d, 0x1a, 0x18, 0x49, 0x18, 0xcc, 0xe6,
	0xf0, 0xc7, 0x0c, 0x0c, 0x31, 0x6b, 0x32, 0xa4, 0xa6, 0xaf, 0x76, 0x02, 0x23, 0x00, 0x00, 0xa2, 0x89, 0xb6,
	0xc1, 0x23, 0xef, 0x38, 0xd7, 0x63, 0x73, 0x0f, 0x00, 0x00, 0x46, 0x43, 0x01, 0x07, 0x00, 0x00, 0x00, 0x00,
};

static bool has(const struct filter *filter, unsigned n)
{
	char key[16];

	snprintf(key, sizeof(key), "key:%u", n);
	return filter_has_key(filter, (const uint8_t *)key, (uint32_t)strlen(key));
}

static void a_cuckoo_filter_has_its_keys_and_few_others(void **state)
{
	const struct format_super super = { .hash_seed = SEED };
	struct filter filter;
	unsigned passed = 0;

	(void)state;
	filter_init(&filter, &super, unit, sizeof(unit));
	for (unsigned n = 0; n < KEYS; n++)
		assert_true(has(&filter, n));
	for (unsigned n = KEYS; n < 1000; n++)
		passed += has(&filter, n);
	assert_true(passed < 100);
}

static void an_unknown_kind_passes_all(void **state)
{
	const struct format_super super = { .hash_seed = SEED };
	uint8_t other[sizeof(unit)];
	struct filter filter;

	(void)state;
	memcpy(other, unit, sizeof(unit));
	other[sizeof(unit) - 7] = 'D';
	filter_init(&filter, &super, other, sizeof(other));
	for (unsigned n = 0; n < 1000; n++)
		assert_true(has(&filter, n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cuckoo_filter_has_its_keys_and_few_others),
		cmocka_unit_test(an_unknown_kind_passes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
