/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's index: 16 single slots for each key, and a filter for each segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "tools/bench/paper_index.h"

#define SLOTS 4096u
#define SEGMENTS 8u
#define EACH 256u /* half of the slots */

static void sizes_out_of_range_are_refused(void **state)
{
	struct paper_index *index;

	(void)state;
	assert_int_equal(paper_index_create(&index, 15, 1, 1, 10), FS_EINVAL);
	assert_int_equal(paper_index_create(&index, 16, 0, 1, 10), FS_EINVAL);
	assert_int_equal(paper_index_create(&index, 16, 1, 0, 10), FS_EINVAL);
	assert_int_equal(paper_index_create(&index, 16, 1, 1, 0), FS_EINVAL);
	assert_int_equal(paper_index_create(&index, 16, 1, 1, 33), FS_EINVAL);
}

/* Of a key's own segment and function, or 0. */
static unsigned times_found(const struct paper_index *index, uint64_t number)
{
	struct paper_index_match matches[PAPER_INDEX_CHOICES];
	uint64_t asked = 0;
	unsigned times = 0, count = paper_index_lookup(index, mix64(number), &asked, matches);

	assert_true(count <= asked && asked <= PAPER_INDEX_CHOICES);
	for (unsigned i = 0; i < count; i++)
		times += matches[i].segment == number / EACH && matches[i].function == number % 16;
	return times;
}

static void keys_are_found_until_they_are_removed(void **state)
{
	struct paper_index *index;

	(void)state;
	assert_int_equal(paper_index_create(&index, SLOTS, SEGMENTS, EACH, 10), FS_OK);
	assert_int_equal(paper_index_bytes(index), 4 * SLOTS + SEGMENTS * EACH * 10 / 8);
	for (uint64_t number = 0; number < SEGMENTS * EACH; number++)
		assert_true(paper_index_insert(index, mix64(number), (uint32_t)(number / EACH), number % 16));
	for (uint64_t number = 0; number < SEGMENTS * EACH; number++)
		assert_true(times_found(index, number) >= 1);
	for (uint64_t number = 0; number < EACH; number++)
		paper_index_remove(index, mix64(number), 0, number % 16);
	for (uint64_t number = 0; number < EACH; number++)
		assert_int_equal(times_found(index, number), 0);
	paper_index_destroy(index);
}

/* A filter that is emptied rejects what it had; with 32 bits for each key it hardly passes another. */
static void the_filter_of_its_segment_decides(void **state)
{
	struct paper_index_match matches[PAPER_INDEX_CHOICES];
	struct paper_index *index;
	uint64_t asked = 0;
	unsigned strangers = 0;

	(void)state;
	assert_int_equal(paper_index_create(&index, SLOTS, 1, SLOTS / 2, 32), FS_OK);
	for (uint64_t number = 0; number < SLOTS / 2; number++)
		(void)!paper_index_insert(index, mix64(number), 0, 3);
	for (uint64_t number = SLOTS; number < 2ull * SLOTS; number++)
		strangers += paper_index_lookup(index, mix64(number), &asked, matches);
	assert_true(strangers < 10);
	assert_true(asked > 6 * SLOTS && asked < 10 * SLOTS); /* half of 16 slots are taken */
	paper_index_open(index, 0);
	for (uint64_t number = 0; number < SLOTS / 2; number++)
		assert_int_equal(paper_index_lookup(index, mix64(number), &asked, matches), 0);
	paper_index_destroy(index);
}

/* With all slots taken, an insert takes the slot of another key. */
static void a_full_table_evicts(void **state)
{
	struct paper_index *index;
	unsigned evicted = 0;

	(void)state;
	assert_int_equal(paper_index_create(&index, 16, 1, 64, 10), FS_OK);
	for (uint64_t number = 0; number < 64; number++)
		evicted += !paper_index_insert(index, mix64(number), 0, 0);
	assert_true(evicted >= 64 - 16);
	paper_index_destroy(index);
	paper_index_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_out_of_range_are_refused),
		cmocka_unit_test(keys_are_found_until_they_are_removed),
		cmocka_unit_test(the_filter_of_its_segment_decides),
		cmocka_unit_test(a_full_table_evicts),
	};

	return cmocka_run_group_tests_name("paper_index", tests, NULL, NULL);
}
