/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of the region: apart from each other, aligned, zeroed. */
#include <string.h>

#include "base/error.h"
#include "base/region.h"
#include "tests/unit/base/base_test.h"

static void more_than_there_is_fails(void **state)
{
	uint64_t too_much[REGION_AREAS] = {[REGION_INDEX] = UINT64_MAX};
	uint64_t more_than_address_space[REGION_AREAS] = {[REGION_INDEX] = (uint64_t)1 << 55};
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, too_much), FS_ENOMEM);
	assert_null(region);
	assert_int_equal(region_create(&region, more_than_address_space), FS_ENOMEM);
	region_destroy(NULL);
}

static void an_empty_area_is_null(void **state)
{
	uint64_t bytes[REGION_AREAS] = {[REGION_SEGMENTS] = 100};
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, bytes), FS_OK);
	assert_null(region_area(region, REGION_STORE));
	assert_non_null(region_area(region, REGION_SEGMENTS));
	assert_null(region_area(region, REGION_INDEX));
	region_destroy(region);
}

static void areas_are_aligned_zeroed_and_apart(void **state)
{
	uint64_t bytes[REGION_AREAS] = {1, 100, 4096, 65};
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, bytes), FS_OK);
	assert_true(region_bytes(region) >= 1 + 100 + 4096 + 65);
	for (int a = 0; a < REGION_AREAS; a++) {
		unsigned char *area = region_area(region, (enum region_area)a);

		assert_int_equal((uintptr_t)area % 64, 0);
		for (uint64_t i = 0; i < bytes[a]; i++)
			assert_int_equal(area[i], 0);
		memset(area, a + 1, bytes[a]);
	}
	for (int a = 0; a < REGION_AREAS; a++) {
		const unsigned char *area = region_area(region, (enum region_area)a);

		for (uint64_t i = 0; i < bytes[a]; i++)
			assert_int_equal(area[i], a + 1);
	}
	region_destroy(region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_there_is_fails),
		cmocka_unit_test(an_empty_area_is_null),
		cmocka_unit_test(areas_are_aligned_zeroed_and_apart),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
