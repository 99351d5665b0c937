/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of the region: apart from each other, aligned, zeroed. */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/region.h"
#include "tests/unit/base/base_test.h"

static void more_than_there_is_fails(void **state)
{
	uint64_t too_much[REGION_AREAS] = { [REGION_TABLE_0] = UINT64_MAX };
	uint64_t more_than_address_space[REGION_AREAS] = { [REGION_TABLE_0] = (uint64_t)1 << 55 };
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, too_much), FS_ENOMEM);
	assert_null(region);
	assert_int_equal(region_create(&region, more_than_address_space), FS_ENOMEM);
	region_destroy(NULL);
}

static void an_area_gets_no_more_than_its_most(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most[REGION_AREAS] = { [REGION_SEGMENTS] = page + 1000 };
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	assert_int_equal(region_commit(region, REGION_SEGMENTS, 2 * page + 1), FS_ERANGE);
	assert_int_equal(region_commit(region, REGION_STORE, 1), FS_ERANGE);
	assert_int_equal(region_bytes(region), 0);
	assert_int_equal(region_commit(region, REGION_SEGMENTS, 2 * page), FS_OK);
	assert_int_equal(region_most(region, REGION_SEGMENTS), 2 * page);
	region_destroy(region);
}

static void an_area_that_may_have_nothing_is_null(void **state)
{
	uint64_t most[REGION_AREAS] = { [REGION_SEGMENTS] = 100 };
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	assert_null(region_area(region, REGION_STORE));
	assert_non_null(region_area(region, REGION_SEGMENTS));
	assert_null(region_area(region, REGION_TABLE_0));
	region_destroy(region);
}

static void areas_are_aligned_zeroed_and_apart(void **state)
{
	uint64_t most[REGION_AREAS] = { 1, 100, 4096, 4096, 65, 1, 5000000, 12, 3 };
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	assert_int_equal(region_bytes(region), 0);
	for (int a = 0; a < REGION_AREAS; a++) {
		unsigned char *area = region_area(region, (enum region_area)a);

		assert_int_equal(region_commit(region, (enum region_area)a, most[a]), FS_OK);
		assert_int_equal((uintptr_t)area % page, 0);
		for (uint64_t i = 0; i < most[a]; i++)
			assert_int_equal(area[i], 0);
		memset(area, a + 1, most[a]);
	}
	assert_in_range(region_bytes(region), 5000000 + 8 * page, 5000000 + 9 * page);
	for (int a = 0; a < REGION_AREAS; a++) {
		const unsigned char *area = region_area(region, (enum region_area)a);

		for (uint64_t i = 0; i < most[a]; i++)
			assert_int_equal(area[i], a + 1);
	}
	region_destroy(region);
}

static void an_area_grows_where_it_is(void **state)
{
	uint64_t most[REGION_AREAS] = { [REGION_TABLE_1] = 100000 };
	struct region *region;
	unsigned char *area;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	area = region_area(region, REGION_TABLE_1);
	assert_int_equal(region_commit(region, REGION_TABLE_1, 10000), FS_OK);
	area[9999] = 7;
	assert_int_equal(region_commit(region, REGION_TABLE_1, 100000), FS_OK);
	assert_ptr_equal(region_area(region, REGION_TABLE_1), area);
	assert_int_equal(area[9999], 7);
	assert_int_equal(area[99999], 0);
	region_destroy(region);
}

/* A late reader finds nothing, and harms nobody. */
static void an_area_without_memory_reads_as_zeros(void **state)
{
	uint64_t most[REGION_AREAS] = { [REGION_TABLE_2] = 1 << 20 };
	struct region *region;
	unsigned char *area;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	area = region_area(region, REGION_TABLE_2);
	region_decommit(region, REGION_TABLE_2); /* it has none: nothing happens */
	assert_int_equal(region_commit(region, REGION_TABLE_2, 1 << 20), FS_OK);
	memset(area, 1, 1 << 20);
	region_decommit(region, REGION_TABLE_2);
	assert_int_equal(region_bytes(region), 0);
	for (unsigned i = 0; i < 1 << 20; i += 100)
		assert_int_equal(area[i], 0);
	assert_int_equal(region_commit(region, REGION_TABLE_2, 8192), FS_OK);
	assert_in_range(region_bytes(region), 8192, 8191 + sysconf(_SC_PAGESIZE));
	assert_int_equal(area[0], 0);
	assert_int_equal(area[(1 << 20) - 1], 0); /* what it had before stays readable */
	region_destroy(region);
}

static void parts_beyond_the_area_are_refused(void **state)
{
	uint64_t most[REGION_AREAS] = { [REGION_FRUGAL] = 40960 };
	struct region *region;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 0, 45056), FS_ERANGE);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 40960, 4096), FS_ERANGE);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, UINT64_MAX - 4095, 4096), FS_ERANGE);
	assert_int_equal(region_bytes(region), 0);
	region_destroy(region);
}

static void parts_come_and_go_by_themselves(void **state)
{
	uint64_t most[REGION_AREAS] = { [REGION_FRUGAL] = 1 << 20 };
	struct region *region;
	unsigned char *area;

	(void)state;
	assert_int_equal(region_create(&region, most), FS_OK);
	assert_int_equal(region_unit(region), 4096);
	area = region_area(region, REGION_FRUGAL);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 8192, 8192), FS_OK);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 40960, 4096), FS_OK);
	assert_int_equal(region_bytes(region), 12288);
	assert_true(region_untouched(region) <= 12288);
	memset(area + 8192, 1, 8192);
	memset(area + 40960, 2, 4096);
	assert_int_equal(region_untouched(region), 0);
	region_decommit_part(region, REGION_FRUGAL, 8192, 8192);
	assert_int_equal(region_bytes(region), 4096);
	assert_int_equal(area[40960], 2);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 8192, 4096), FS_OK);
	assert_int_equal(area[8192], 0);
	region_drop_part(region, REGION_FRUGAL, 16384, 4096); /* nothing was left there */
	assert_int_equal(region_bytes(region), 8192);
	region_destroy(region);
}

static void an_area_that_is_refused_stays_as_it_was(void **state)
{
	const uint64_t most[REGION_AREAS] = { [REGION_TABLE_1] = 1 << 20 };
	struct region *region;
	uint8_t *area;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_memory_map, FAULT_ALWAYS, 0);
	assert_int_equal(region_create(&region, most), FS_ENOMEM);
	assert_null(region);
	fault_disarm_all();
	assert_int_equal(region_create(&region, most), FS_OK);
	area = region_area(region, REGION_TABLE_1);
	assert_int_equal(region_commit(region, REGION_TABLE_1, 4096), FS_OK);
	area[4095] = 7;
	fault_arm(FAULT_region_commit, FAULT_ALWAYS, 0);
	assert_int_equal(region_commit(region, REGION_TABLE_1, region_bytes(region) + 1), FS_ENOMEM);
	fault_disarm_all();
	assert_int_equal(region_bytes(region), sysconf(_SC_PAGESIZE));
	assert_int_equal(area[4095], 7);
	region_destroy(region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_there_is_fails),
		cmocka_unit_test(an_area_gets_no_more_than_its_most),
		cmocka_unit_test(an_area_that_is_refused_stays_as_it_was),
		cmocka_unit_test(parts_beyond_the_area_are_refused),
		cmocka_unit_test(an_area_that_may_have_nothing_is_null),
		cmocka_unit_test(parts_come_and_go_by_themselves),
		cmocka_unit_test(areas_are_aligned_zeroed_and_apart),
		cmocka_unit_test(an_area_grows_where_it_is),
		cmocka_unit_test(an_area_without_memory_reads_as_zeros),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
