/* SPDX-License-Identifier: BSD-3-Clause */
/* Space-saving summaries: what they say of a key is true to within the error that they tell, merged or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "server/count/heavy.h"
#include "server/count/key_hash.h"
#include "tests/unit/server/count/zipf.h"

#define KEYS 20000u
#define ADDED 200000u
#define ALL (HEAVY_SETS * HEAVY_WAYS)

/* The hash of key number n: as store_hash, it has no order. */
static uint64_t hash_of(uint32_t n)
{
	return mix64(n + 0x1000u) | 1;
}

static void add(struct heavy *heavy, uint32_t n, uint64_t requests, uint64_t bytes, uint64_t reads)
{
	const uint64_t amount[HEAVY_MEASURES] = { requests, bytes, reads };
	char text[16];
	int length = snprintf(text, sizeof(text), "key%u", n);

	heavy_add(heavy,
		  &(struct heavy_key){ .hash = hash_of(n), .text = text, .length = (size_t)length, .keep = true },
		  amount);
}

static const struct heavy_row *row_of(const struct heavy_list *list, uint32_t n)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->rows[i].hash == hash_of(n))
			return &list->rows[i];
	return NULL;
}

static bool is_key(const struct heavy_row *row, const char *text)
{
	return row->key && row->key[0] == strlen(text) && memcmp(row->key + 1, text, row->key[0]) == 0;
}

static int begin(void **state)
{
	(void)state;
	key_hash_init();
	return 0;
}

/* ---- one summary ------------------------------------------------------------------------------- */

static void nothing_was_added(void **state)
{
	struct heavy *heavy = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list = heavy_list_create(heavy, 5, 10);

	(void)state;
	assert_non_null(list);
	assert_int_equal(list->count, 0);
	assert_int_equal(list->total, 0);
	assert_int_equal(list->floor, 0);
	assert_int_equal(list->since, 5);
	heavy_list_free(list);
	heavy_list_free(NULL);
	heavy_destroy(heavy);
	heavy_destroy(NULL);
}

/* A counter that another key had: the key is known from its second time on, and the other key is gone. */
static void a_key_that_comes_once_is_not_copied(void **state)
{
	struct heavy *heavy = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list;
	uint32_t taken = 0;

	(void)state;
	for (uint32_t n = 0; n < 64 * ALL; n++, taken = n)
		add(heavy, n, 1, 0, 0);
	list = heavy_list_create(heavy, 0, ALL);
	assert_int_equal(list->count, 0); /* each counter has gone from key to key */
	assert_true(list->floor >= 64);
	heavy_list_free(list);
	for (unsigned i = 0; i < 2; i++)
		add(heavy, taken, 1, 0, 0);
	list = heavy_list_create(heavy, 0, ALL);
	assert_int_equal(list->count, 1);
	assert_int_equal(list->rows[0].amount[HEAVY_REQUESTS], 2);
	assert_true(list->rows[0].error > 0);
	heavy_list_free(list);
	heavy_destroy(heavy);
}

static void keys_that_may_not_be_kept(void **state)
{
	const uint64_t amount[HEAVY_MEASURES] = { 1, 2, 3 };
	struct heavy *heavy = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list;

	(void)state;
	heavy_add(heavy, &(struct heavy_key){ .hash = 7, .text = "secret", .length = 6 }, amount);
	list = heavy_list_create(heavy, 0, 10);
	assert_int_equal(list->count, 1);
	assert_null(list->rows[0].key);
	assert_true(list->rows[0].shown == (key_hash("secret", 6) | 1));
	heavy_list_free(list);
	heavy_destroy(heavy);
}

static void keys_of_any_bytes(void **state)
{
	const uint64_t amount[HEAVY_MEASURES] = { 1, 0, 0 };
	char longest[250] = "a\0b \r\n\xff%";
	struct heavy *heavy = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list;

	(void)state;
	heavy_add(heavy, &(struct heavy_key){ .hash = 1, .text = longest, .length = 250, .keep = true }, amount);
	heavy_add(heavy, &(struct heavy_key){ .hash = 2, .text = "\0", .length = 1, .keep = true }, amount);
	list = heavy_list_create(heavy, 0, 10);
	assert_int_equal(list->count, 2);
	assert_int_equal(list->rows[0].key[0], 250);
	assert_memory_equal(list->rows[0].key + 1, longest, 250);
	assert_int_equal(list->rows[1].key[0], 1);
	heavy_list_free(list);
	heavy_destroy(heavy);
}

static void each_measure_ranks(void **state)
{
	(void)state;
	for (enum heavy_measure by = 0; by < HEAVY_MEASURES; by++) {
		struct heavy *heavy = heavy_create(by);
		struct heavy_list *list;

		add(heavy, 0, 30, 10, 20);
		add(heavy, 1, 10, 20, 30);
		add(heavy, 2, 20, 30, 10);
		assert_int_equal(heavy_total(heavy), 60);
		list = heavy_list_create(heavy, 0, 2);
		assert_int_equal(list->count, 2);
		assert_int_equal(list->floor, 10);
		heavy_list_rank(list, by);
		assert_int_equal(list->rows[0].amount[by], 30);
		assert_int_equal(list->rows[1].amount[by], 20);
		heavy_list_free(list);
		heavy_clear(heavy);
		assert_int_equal(heavy_total(heavy), 0);
		heavy_destroy(heavy);
	}
}

/* ---- bounds ------------------------------------------------------------------------------------ */

/* Is what the list says of each key true? */
static void check_bounds(const struct heavy_list *list, const uint64_t *truth, uint64_t sum)
{
	unsigned seen = 0;

	assert_int_equal(list->total, sum);
	for (uint32_t n = 0; n < KEYS; n++) {
		const struct heavy_row *row = row_of(list, n);

		if (!row) {
			assert_true(truth[n] <= list->floor);
			continue;
		}
		seen++;
		assert_true(row->amount[HEAVY_REQUESTS] <= truth[n]);
		assert_true(truth[n] <= row->amount[HEAVY_REQUESTS] + row->error);
		assert_int_equal(row->amount[HEAVY_BYTES], 3 * row->amount[HEAVY_REQUESTS]);
	}
	assert_int_equal(seen, list->count);
	for (unsigned i = 1; i < list->count; i++)
		assert_true(list->rows[i - 1].hash < list->rows[i].hash);
}

static void what_is_said_is_true(void **state)
{
	uint64_t *truth = mem_must_zalloc(KEYS * sizeof(*truth)), sum = 0;
	struct heavy *heavy = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list;
	struct zipf zipf;

	(void)state;
	zipf_init(&zipf, KEYS, 0.9, 1);
	for (uint32_t i = 0; i < ADDED; i++) {
		uint32_t n = zipf_next(&zipf);
		uint64_t weight = 1 + i % 3;

		add(heavy, n, weight, 3 * weight, 0);
		truth[n] += weight;
		sum += weight;
	}
	list = heavy_list_create(heavy, 0, ALL);
	check_bounds(list, truth, sum);
	heavy_list_free(list);
	list = heavy_list_create(heavy, 0, 30); /* a short list's floor is higher */
	assert_int_equal(list->count, 30);
	check_bounds(list, truth, sum);
	for (uint32_t n = 0; n < 10; n++)
		assert_non_null(row_of(list, n));
	heavy_list_free(list);
	heavy_destroy(heavy);
	zipf_fini(&zipf);
	mem_free(truth);
}

/* Parts of a stream, merged in turn: nothing is lost, and the bounds hold. */
static void merged_summaries_say_the_truth(void **state)
{
	uint64_t *truth = mem_must_zalloc(KEYS * sizeof(*truth)), sum = 0;
	struct heavy *all = heavy_create(HEAVY_REQUESTS), *part = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *list;
	struct zipf zipf;
	char text[16];

	(void)state;
	zipf_init(&zipf, KEYS, 1.0, 2);
	for (uint32_t i = 0; i < ADDED; i++) {
		uint32_t n = zipf_next(&zipf);

		add(part, n, 2, 6, 0);
		truth[n] += 2;
		sum += 2;
		if (i % (ADDED / 7) == 0 || i == ADDED - 1) {
			heavy_merge(all, part);
			assert_int_equal(heavy_total(part), 0);
		}
	}
	heavy_merge(all, part); /* which is empty */
	list = heavy_list_create(all, 0, ALL);
	check_bounds(list, truth, sum);
	for (uint32_t n = 0; n < 10; n++) {
		snprintf(text, sizeof(text), "key%u", n);
		assert_non_null(row_of(list, n));
		assert_true(is_key(row_of(list, n), text));
	}
	heavy_list_free(list);
	heavy_destroy(all);
	heavy_destroy(part);
	zipf_fini(&zipf);
	mem_free(truth);
}

/* Lists of parts of a stream, joined: a list that lacks a key may have lost as much as its floor. */
static void joined_lists_say_the_truth(void **state)
{
	uint64_t *truth = mem_must_zalloc(KEYS * sizeof(*truth)), sum = 0;
	struct heavy *part = heavy_create(HEAVY_REQUESTS);
	struct heavy_list *lists[8] = { NULL }, *list;
	struct zipf zipf;
	unsigned count = 1; /* the first of the lists is missing */

	(void)state;
	zipf_init(&zipf, KEYS, 1.0, 3);
	for (uint32_t i = 0; i < ADDED; i++) {
		uint32_t n = zipf_next(&zipf);

		add(part, n, 1, 3, 0);
		truth[n]++;
		sum++;
		if ((i + 1) % (ADDED / 7 + 1) == 0 || i == ADDED - 1) {
			lists[count] = heavy_list_create(part, 100 - (int64_t)count, 64);
			heavy_clear(part);
			count++;
		}
	}
	assert_int_equal(count, 8);
	list = heavy_list_join(lists, count, HEAVY_REQUESTS, 50);
	assert_int_equal(list->count, 50);
	assert_int_equal(list->since, 100 - 7);
	check_bounds(list, truth, sum);
	assert_int_equal(row_of(list, 0)->since, 93);
	assert_true(is_key(row_of(list, 0), "key0"));
	heavy_list_free(list);
	for (unsigned i = 0; i < count; i++)
		heavy_list_free(lists[i]);
	heavy_destroy(part);
	zipf_fini(&zipf);
	mem_free(truth);
}

/* ---- numbers in place of keys -------------------------------------------------------------------- */

static void numbers_tell_keys_apart(void **state)
{
	uint64_t before = key_hash("a", 1);

	(void)state;
	assert_true(key_hash("a", 1) == before);
	assert_true(key_hash("b", 1) != before);
	assert_true(key_hash("a\0", 2) != before);
	key_hash_init();
	assert_true(key_hash("a", 1) != before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_was_added),
		cmocka_unit_test(a_key_that_comes_once_is_not_copied),
		cmocka_unit_test(keys_that_may_not_be_kept),
		cmocka_unit_test(keys_of_any_bytes),
		cmocka_unit_test(each_measure_ranks),
		cmocka_unit_test(what_is_said_is_true),
		cmocka_unit_test(merged_summaries_say_the_truth),
		cmocka_unit_test(joined_lists_say_the_truth),
		cmocka_unit_test(numbers_tell_keys_apart),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
