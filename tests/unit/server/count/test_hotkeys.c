/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot keys: what is kept of keys, what windows cover, and whether the hottest keys are found. */
#include <pthread.h>
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
#include "server/count/hotkeys.h"
#include "server/count/key_hash.h"
#include "server/store/store.h"
#include "tests/unit/server/count/zipf.h"

#define KEYS 100000u
#define REQUESTS 4000000u
#define TOP 20u
#define THREADS 3u

static uint64_t now_ms;

static int begin(void **state)
{
	(void)state;
	now_ms = 1000;
	hotkeys_init(HOTKEYS_KEYS, now_ms);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hotkeys_fini();
	return 0;
}

static void pass(uint64_t ms)
{
	for (; ms >= 1000; ms -= 1000)
		hotkeys_tick(now_ms += 1000);
}

/* A client of the sampling, as observe.c is one for each thread. */
struct client {
	int32_t until_request;
	int64_t until_bytes;
};

static void ask(struct client *client, uint32_t n, uint64_t bytes)
{
	char key[16];
	const struct store_request request = { .key = key,
					       .key_length = (uint8_t)snprintf(key, sizeof(key), "key%u", n),
					       .hash = mix64(n + 1) };

	client->until_bytes -= (int64_t)bytes;
	if (--client->until_request < 0)
		client->until_request = hotkeys_sample_request(&request, bytes);
	if (client->until_bytes < 0)
		client->until_bytes = hotkeys_sample_bytes(&request, bytes, client->until_bytes);
}

static void ask_often(uint32_t n, uint64_t bytes, unsigned times)
{
	struct client client = { 0 };

	for (unsigned i = 0; i < times; i++)
		ask(&client, n, bytes);
}

static void read_flash(uint32_t n, unsigned reads, unsigned times)
{
	char key[16];
	const struct store_request request = { .key = key,
					       .key_length = (uint8_t)snprintf(key, sizeof(key), "key%u", n),
					       .hash = mix64(n + 1) };

	for (unsigned i = 0; i < times; i++)
		hotkeys_note_reads(&request, 100, reads);
}

/* The number of the key in a row; UINT32_MAX: the key is not kept. */
static uint32_t number_of(const struct heavy_row *row)
{
	char text[16] = "";

	if (!row->key)
		return UINT32_MAX;
	assert_true(row->key[0] > 3 && row->key[0] < sizeof(text));
	memcpy(text, row->key + 1, row->key[0]);
	return (uint32_t)atol(text + 3);
}

/* The key of a rank, from 0; -1: there are fewer. */
static long ranked(enum heavy_measure by, enum hotkeys_window window, unsigned rank)
{
	struct heavy_list *list = hotkeys_read(by, window, HOTKEYS_MOST);
	long number;

	assert_non_null(list);
	number = rank < list->count ? (long)number_of(&list->rows[rank]) : -1;
	heavy_list_free(list);
	return number;
}

static uint64_t total_of(enum heavy_measure by, enum hotkeys_window window)
{
	struct heavy_list *list = hotkeys_read(by, window, 1);
	uint64_t total;

	assert_non_null(list);
	total = list->total;
	heavy_list_free(list);
	return total;
}

/* ---- what is kept ------------------------------------------------------------------------------ */

static void nothing_is_kept_when_off(void **state)
{
	(void)state;
	ask_often(1, 10, 1000);
	hotkeys_show(HOTKEYS_OFF);
	ask_often(1, 10, 1000);
	read_flash(1, 1, 1000);
	pass(20000);
	assert_null(hotkeys_read(HEAVY_REQUESTS, HOTKEYS_MINUTE, 10));
	hotkeys_show(HOTKEYS_KEYS);
	for (enum heavy_measure by = 0; by < HEAVY_MEASURES; by++) {
		assert_int_equal(total_of(by, HOTKEYS_MINUTE), 0);
		assert_int_equal(total_of(by, HOTKEYS_TEN_MINUTES), 0);
	}
}

/* A thread that was told that nothing is counted asks again soon enough. */
static void counting_begins_again(void **state)
{
	struct client client = { 0 };

	(void)state;
	hotkeys_show(HOTKEYS_OFF);
	for (unsigned i = 0; i < 10; i++)
		ask(&client, 1, 1000);
	hotkeys_show(HOTKEYS_KEYS);
	for (unsigned i = 0; i < 100000; i++)
		ask(&client, 1, 1000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 1);
	assert_int_equal(ranked(HEAVY_BYTES, HOTKEYS_MINUTE, 0), 1);
}

static void keys_that_may_not_be_dumped_are_not_kept(void **state)
{
	(void)state;
	assert_int_equal(hotkeys_allowed(HOTKEYS_KEYS, true), HOTKEYS_KEYS);
	assert_int_equal(hotkeys_allowed(HOTKEYS_KEYS, false), HOTKEYS_HASHES);
	assert_int_equal(hotkeys_allowed(HOTKEYS_HASHES, true), HOTKEYS_HASHES);
	assert_int_equal(hotkeys_allowed(HOTKEYS_OFF, false), HOTKEYS_OFF);
}

/* Lists from before go too, so that no key is left anywhere. */
static void a_change_to_hashes_forgets_keys(void **state)
{
	(void)state;
	ask_often(1, 10, 10000);
	pass(130000);
	ask_often(1, 10, 10000);
	hotkeys_show(HOTKEYS_HASHES);
	assert_int_equal(total_of(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES), 0);
	ask_often(1, 10, 10000);
	ask_often(2, 10, 5000);
	pass(10000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 0), UINT32_MAX);
	struct heavy_list *list = hotkeys_read(HEAVY_REQUESTS, HOTKEYS_MINUTE, 10);
	assert_int_equal(list->count, 2);
	assert_true(list->rows[0].shown != list->rows[1].shown && list->rows[0].shown != 0);
	heavy_list_free(list);
}

/* ---- windows ------------------------------------------------------------------------------------- */

static void a_key_leaves_the_windows(void **state)
{
	(void)state;
	ask_often(1, 10, 10000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 1);
	pass(60000);
	ask_often(2, 10, 5000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 1);
	pass(10000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 2);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 1), -1);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 0), 1);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 1), 2);
	pass(600000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 0), 2);
	pass(60000);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 0), -1);
}

/* Nothing is counted twice, and nothing lost, wherever the windows' borders lie. */
static void totals_are_those_of_the_window(void **state)
{
	uint64_t total;

	(void)state;
	for (unsigned second = 0; second < 800; second++) {
		ask_often(second % 50, 10, 10 * HOTKEYS_EACH);
		if (second == 599)
			assert_in_range(total_of(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES), 600 * 9 * HOTKEYS_EACH,
					600 * 11 * HOTKEYS_EACH);
		pass(1000);
	}
	total = total_of(HEAVY_REQUESTS, HOTKEYS_MINUTE);
	assert_in_range(total, 60 * 8 * HOTKEYS_EACH, 70 * 12 * HOTKEYS_EACH);
	total = total_of(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES);
	assert_in_range(total, 600 * 9 * HOTKEYS_EACH, 670 * 11 * HOTKEYS_EACH);
}

/* ---- by bytes and by reads ------------------------------------------------------------------------ */

/* One key has many requests, another one large values. */
static void bytes_rank_apart_from_requests(void **state)
{
	struct client client = { 0 };

	(void)state;
	for (unsigned i = 0; i < 200000; i++)
		ask(&client, i % 100 == 0 ? 2 : i % 2 ? 1 : 3 + i % 5000, i % 100 == 0 ? 50000 : 20);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 1);
	assert_int_equal(ranked(HEAVY_BYTES, HOTKEYS_MINUTE, 0), 2);
	struct heavy_list *list = hotkeys_read(HEAVY_BYTES, HOTKEYS_MINUTE, 1);
	/* 2000 requests of 50000 bytes */
	assert_in_range(list->rows[0].amount[HEAVY_BYTES], 90000000, 110000000);
	assert_in_range(list->rows[0].amount[HEAVY_REQUESTS], 1800, 2200);
	assert_in_range(list->total, 90000000, 125000000);
	heavy_list_free(list);
}

/* A value of many times the distance between two samples counts whole. */
static void a_value_larger_than_the_stride(void **state)
{
	(void)state;
	ask_often(1, 1u << 30, 1);
	assert_in_range(total_of(HEAVY_BYTES, HOTKEYS_MINUTE), 7ull << 27, 9ull << 27);
	ask_often(1, 1u << 30, 20000);
	assert_in_range(total_of(HEAVY_BYTES, HOTKEYS_MINUTE), 15000ull << 30, 25000ull << 30);
}

static void reads_rank_apart_from_requests(void **state)
{
	(void)state;
	ask_often(1, 10, 100000);
	read_flash(2, 1, 3000);
	read_flash(3, 3, 2000);
	read_flash(4, 0, 9000); /* they shared others' reads */
	assert_int_equal(ranked(HEAVY_READS, HOTKEYS_MINUTE, 0), 3);
	assert_int_equal(ranked(HEAVY_READS, HOTKEYS_MINUTE, 1), 2);
	assert_int_equal(ranked(HEAVY_READS, HOTKEYS_MINUTE, 2), -1);
	assert_in_range(total_of(HEAVY_READS, HOTKEYS_MINUTE), 7500, 10500);
}

/* ---- recall -------------------------------------------------------------------------------------- */

/* How many of the 20 keys with the most requests are among the 20 that are told? */
static unsigned recalled(double exponent, uint64_t seed)
{
	uint32_t *truth = mem_must_zalloc(KEYS * sizeof(*truth));
	struct client client = { 0 };
	struct heavy_list *list;
	unsigned found = 0;
	struct zipf zipf;

	zipf_init(&zipf, KEYS, exponent, seed);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		uint32_t n = zipf_next(&zipf);

		truth[n]++;
		ask(&client, n, 100);
		if (i % (REQUESTS / 50) == 0)
			pass(1000);
	}
	list = hotkeys_read(HEAVY_REQUESTS, HOTKEYS_MINUTE, TOP);
	assert_int_equal(list->count, TOP);
	for (unsigned i = 0; i < TOP; i++) {
		uint32_t n = number_of(&list->rows[i]), above = 0;

		for (uint32_t other = 0; other < KEYS; other++)
			above += truth[other] > truth[n];
		found += above < TOP;
	}
	heavy_list_free(list);
	zipf_fini(&zipf);
	mem_free(truth);
	return found;
}

static void the_hottest_keys_are_found(void **state)
{
	unsigned found = 0, runs = 0;

	(void)state;
	for (int tenths = 9; tenths <= 12; tenths++, runs++) {
		unsigned of_run = recalled(tenths / 10.0, (uint64_t)tenths);

		printf("zipf %.1f: %u of the top %u\n", tenths / 10.0, of_run, TOP);
		assert_true(of_run + 3 >= TOP);
		found += of_run;
		end(NULL);
		begin(NULL);
	}
	assert_true(found >= runs * TOP / 100 * 95);
}

/* ---- threads ------------------------------------------------------------------------------------- */

static void *ask_in_thread(void *context)
{
	struct client client = { 0 };

	(void)context;
	for (unsigned i = 0; i < 300000; i++) {
		ask(&client, i % 3 ? 1 : i % 1000, 100);
		if (i % 100 == 0)
			read_flash(5, 1, 1);
	}
	return NULL;
}

/* Threads sample while others read, tick, and change what is kept: sums are right in the end, and no key is shown in
   place of another. */
static void threads_together(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_in_thread, NULL), 0);
	for (unsigned i = 0; i < 30; i++) {
		struct heavy_list *list = hotkeys_read(HEAVY_REQUESTS, HOTKEYS_TEN_MINUTES, 10);

		for (unsigned r = 0; list && r < list->count; r++)
			if (list->rows[r].key)
				assert_true(list->rows[r].shown ==
					    (key_hash((const char *)list->rows[r].key + 1, list->rows[r].key[0]) | 1));
		heavy_list_free(list);
		hotkeys_show(i % 3 == 0 ? HOTKEYS_HASHES : i % 3 == 1 ? HOTKEYS_OFF : HOTKEYS_KEYS);
		pass(10000);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	hotkeys_show(HOTKEYS_OFF);
	hotkeys_show(HOTKEYS_KEYS);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_in_thread, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(ranked(HEAVY_REQUESTS, HOTKEYS_MINUTE, 0), 1);
	assert_in_range(total_of(HEAVY_REQUESTS, HOTKEYS_MINUTE), THREADS * 270000, THREADS * 330000);
}

/* A sample stands for HOTKEYS_EACH requests: itself, and those that pass until the next one. The mean of so many gaps is less
   than 1 off. */
static void samples_stand_for_all_requests(void **state)
{
	const struct store_request request = { .key = "key", .key_length = 3, .hash = mix64(1) };
	const unsigned samples = 100000;
	uint64_t requests = 0;

	(void)state;
	for (unsigned i = 0; i < samples; i++) {
		int32_t passed = hotkeys_sample_request(&request, 100);

		assert_in_range(passed, 0, 2 * HOTKEYS_EACH - 2);
		requests += 1 + (uint64_t)passed;
	}
	assert_in_range(requests, samples * (HOTKEYS_EACH - 1), samples * (HOTKEYS_EACH + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_kept_when_off, begin, end),
		cmocka_unit_test_setup_teardown(counting_begins_again, begin, end),
		cmocka_unit_test_setup_teardown(keys_that_may_not_be_dumped_are_not_kept, begin, end),
		cmocka_unit_test_setup_teardown(a_change_to_hashes_forgets_keys, begin, end),
		cmocka_unit_test_setup_teardown(a_key_leaves_the_windows, begin, end),
		cmocka_unit_test_setup_teardown(totals_are_those_of_the_window, begin, end),
		cmocka_unit_test_setup_teardown(bytes_rank_apart_from_requests, begin, end),
		cmocka_unit_test_setup_teardown(a_value_larger_than_the_stride, begin, end),
		cmocka_unit_test_setup_teardown(reads_rank_apart_from_requests, begin, end),
		cmocka_unit_test_setup_teardown(the_hottest_keys_are_found, begin, end),
		cmocka_unit_test_setup_teardown(samples_stand_for_all_requests, begin, end),
		cmocka_unit_test_setup_teardown(threads_together, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
