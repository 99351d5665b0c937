/* SPDX-License-Identifier: BSD-3-Clause */
/* The log on flash: what finds no room, what is kept, and that it ends when all would be kept. */
#include "sim_test.h"
#include "tools/sim/flash_log.h"

#define OBJECTS 64

static struct object objects[OBJECTS];
static struct flash_log flash;
static uint64_t kept; /* a bit for each object that is to be kept */

static bool keep(void *context, uint32_t object)
{
	assert_ptr_equal(context, &flash);
	assert_int_equal(objects[object].state, OBJECT_OUT);
	return kept >> object & 1;
}

static void start(uint64_t capacity, uint64_t segment)
{
	memset(objects, 0, sizeof(objects));
	kept = 0;
	flash_init(&flash, objects, capacity, segment, keep, &flash);
}

static bool append(uint32_t object, uint64_t bytes)
{
	objects[object].bytes = bytes;
	flash.now_number++;
	flash.now_us += 10;
	return flash_append(&flash, object);
}

static void test_refuses_what_is_larger_than_a_quarter(void **state)
{
	(void)state;
	start(0, 0);
	assert_false(append(0, 1));
	flash_fini(&flash);
	start(100, 10);
	assert_false(append(0, 26));
	assert_int_equal(objects[0].state, OBJECT_OUT);
	assert_true(append(0, 25));
	assert_int_equal(objects[0].state, OBJECT_ON_FLASH);
	flash_fini(&flash);
}

static void test_reclaims_the_oldest_and_measures_the_residence(void **state)
{
	(void)state;
	start(40, 10);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(append(i, 10));
	assert_int_equal(flash.residence_us, 0);
	assert_true(append(4, 10));
	assert_int_equal(objects[0].state, OBJECT_OUT);
	assert_int_equal(objects[1].state, OBJECT_ON_FLASH);
	assert_int_equal(flash.residence_us, 40);
	assert_int_equal(flash.residence_requests, 4);
	assert_int_equal(flash.written_bytes, 50);
	assert_int_equal(flash.live_objects, 4);
	flash_fini(&flash);
}

static void test_dead_bytes_stay_until_reclaim(void **state)
{
	(void)state;
	start(40, 20);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(append(i, 10));
	flash_remove(&flash, 3);
	assert_int_equal(flash.live_objects, 3);
	assert_int_equal(flash.used_bytes, 40);
	assert_true(append(4, 10)); /* the segment of 0 and 1 makes room, not what 3 left */
	assert_int_equal(objects[0].state, OBJECT_OUT);
	assert_int_equal(objects[1].state, OBJECT_OUT);
	assert_int_equal(objects[2].state, OBJECT_ON_FLASH);
	flash_fini(&flash);
}

static void test_what_is_kept_is_written_again(void **state)
{
	(void)state;
	start(40, 10);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(append(i, 10));
	kept = 1;
	assert_true(append(4, 10));
	assert_int_equal(objects[0].state, OBJECT_ON_FLASH);
	assert_int_equal(objects[1].state, OBJECT_OUT);
	assert_int_equal(flash.written_bytes, 60);
	flash_fini(&flash);
}

static void test_ends_when_all_would_be_kept(void **state)
{
	(void)state;
	start(80, 10);
	kept = UINT64_MAX;
	for (uint32_t i = 0; i < OBJECTS; i++)
		assert_true(append(i, 10));
	assert_int_equal(flash.used_bytes, 80);
	assert_int_equal(flash.live_objects, 8);
	flash_fini(&flash);
}

static void test_objects_larger_than_segments_fill_no_more_than_there_is(void **state)
{
	(void)state;
	start(100, 1);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		assert_true(append(i, 1 + i % 25));
		assert_true(flash.used_bytes <= 100);
	}
	flash_fini(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_is_larger_than_a_quarter),
		cmocka_unit_test(test_reclaims_the_oldest_and_measures_the_residence),
		cmocka_unit_test(test_dead_bytes_stay_until_reclaim),
		cmocka_unit_test(test_what_is_kept_is_written_again),
		cmocka_unit_test(test_ends_when_all_would_be_kept),
		cmocka_unit_test(test_objects_larger_than_segments_fill_no_more_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
