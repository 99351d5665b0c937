/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow log: which requests it has, the parts of their time, and what it keeps of keys. Time is a scripted clock. */
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
#include "base/metrics/counters.h"
#include "server/conn/conn.h"
#include "server/count/durations.h"
#include "server/count/key_hash.h"
#include "server/count/observe.h"
#include "server/count/slow.h"

#define MANY (3 * SLOW_ENTRIES + 7)

static struct clk clock_;
static struct store *store;
static struct store_worker *worker;
static struct durations durations;
static struct conn conn;
static uint64_t counted; /* slow_requests before the test */

/* Instead of server/net: what an entry says of its connection. */
int conn_number(const struct conn *of)
{
	return of == &conn ? 27 : -1;
}

const char *conn_peer(const struct conn *of, char out[128])
{
	snprintf(out, 128, "%s", of == &conn ? "127.0.0.1:4711" : "?");
	return out;
}

static void pass(uint64_t us)
{
	clk_scripted_advance(&clock_, us);
}

static void turn(void)
{
	durations_turn(&durations, store_worker_turn(worker));
}

static void set(uint64_t threshold_us, bool keys)
{
	slow_set(&(struct slow_settings){ .threshold_us = threshold_us, .keys = keys });
}

static int begin(void **state)
{
	struct store_config config;
	char reason[256];

	(void)state;
	clk_scripted_init(&clock_, 1000000);
	store_config_init(&config);
	config.clock = &clock_;
	if (store_open(&store, &config, reason) != FS_OK || store_worker_create(&worker, store) != FS_OK)
		return -1;
	conn = (struct conn){ .store = worker };
	durations = (struct durations){ .since_ns = 0 };
	key_hash_init();
	slow_init();
	set(1000, false);
	counted = ctr_total(CTR_slow_requests);
	turn();
	return 0;
}

static int end(void **state)
{
	(void)state;
	slow_fini();
	store_worker_destroy(worker);
	store_close(store);
	return 0;
}

static struct store_request request_of(const char *key, enum store_op op, enum store_result result)
{
	return (struct store_request){ .op = op,
				       .key = key,
				       .key_length = (uint8_t)strlen(key),
				       .result = result,
				       .number = 7,
				       .value.length = result == STORE_HIT ? 10 : 0 };
}

/* A request that takes so long by itself. */
static void run(const char *key, uint64_t us)
{
	const struct store_request request = request_of(key, STORE_GET, STORE_HIT);

	pass(us);
	slow_note(&conn, &request);
}

static void sent(uint64_t us)
{
	pass(us);
	durations_sent(&durations, worker);
}

/* Copies of the newest entries, whose keys are freed at once; key[i] tells whether there was one. */
static struct slow_entry entries[SLOW_ENTRIES];
static bool has_key[SLOW_ENTRIES];
static uint64_t newest;

static unsigned look(unsigned most)
{
	unsigned count = slow_copy(entries, most, &newest);

	for (unsigned i = 0; i < count; i++) {
		has_key[i] = entries[i].key != NULL;
		mem_free(entries[i].key);
	}
	return count;
}

static void assert_times(const struct slow_entry *entry, uint64_t total, uint64_t queue, uint64_t run_us,
			 uint64_t flash, uint64_t send)
{
	assert_int_equal(entry->total_us, total);
	assert_int_equal(entry->queue_us, queue);
	assert_int_equal(entry->run_us, run_us);
	assert_int_equal(entry->flash_us, flash);
	assert_int_equal(entry->send_us, send);
}

/* ---- nothing is slow ------------------------------------------------------------------------------ */

static void nothing_was_noted(void **state)
{
	(void)state;
	pass(5000);
	durations_sent(&durations, worker);
	assert_int_equal(look(10), 0);
	assert_int_equal(newest, 0);
	assert_int_equal(ctr_total(CTR_slow_requests), counted);
}

static void below_the_threshold(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		turn();
		run("a", 500);
		sent(499);
	}
	assert_int_equal(look(10), 0);
}

/* Times of a turn that began before the log was switched on are not those of its requests. */
static void switched_on_within_a_turn(void **state)
{
	(void)state;
	set(0, false);
	pass(1000000);
	set(1000, false);
	run("a", 10);
	sent(10);
	assert_int_equal(look(10), 0);
	turn();
	run("a", 990);
	sent(10);
	assert_int_equal(look(10), 1);
}

static void off_again(void **state)
{
	(void)state;
	run("a", 5000);
	set(0, false);
	assert_false(slow_is_on());
	sent(1);
	assert_int_equal(look(10), 0);
	set(1000, false);
	turn();
	assert_int_equal(look(10), 0);
}

/* ---- executed at once ------------------------------------------------------------------------------ */

static void a_request_alone(void **state)
{
	(void)state;
	run("a", 800);
	sent(200);
	assert_int_equal(look(10), 1);
	assert_int_equal(newest, 1);
	assert_int_equal(entries[0].number, 1);
	assert_times(&entries[0], 1000, 0, 800, 0, 200);
	assert_int_equal(entries[0].together, 1);
	assert_string_equal(entries[0].command, "get");
	assert_string_equal(entries[0].result, "found");
	assert_int_equal(entries[0].tier, SLOW_DRAM);
	assert_int_equal(entries[0].bytes, 10);
	assert_int_equal(entries[0].conn, 27);
	assert_string_equal(entries[0].peer, ""); /* only the sending made it slow */
	assert_true(entries[0].hash == key_hash("a", 1));
	assert_int_equal(ctr_total(CTR_slow_requests), counted + 1);
}

/* The log has the one that took longest by itself; all of them are counted, as all of them waited. */
static void the_slowest_of_a_batch(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		run("before", 10);
	run("slow", 3000);
	for (int i = 0; i < 10; i++)
		run("after", 20);
	sent(50);
	assert_int_equal(look(10), 1);
	assert_true(entries[0].hash == key_hash("slow", 4));
	assert_times(&entries[0], 3350, 100, 3000, 0, 250);
	assert_int_equal(entries[0].together, 21);
	assert_string_equal(entries[0].peer, "127.0.0.1:4711");
	assert_int_equal(ctr_total(CTR_slow_requests), counted + 21);
	run("next", 10); /* of the same turn, answered for itself */
	sent(10);
	assert_int_equal(look(10), 1);
}

static void other_commands(void **state)
{
	struct store_request set_request = request_of("s", STORE_SET, STORE_STORED);
	struct store_request refused = request_of("r", STORE_DELETE, STORE_TOO_LARGE);
	struct store_request missed = request_of("m", STORE_INCR, STORE_MISS);

	(void)state;
	refused.has_options = true;
	refused.options.refused = STORE_TOO_LARGE;
	const struct store_request *const requests[] = { &set_request, &refused, &missed };
	for (size_t i = 0; i < 3; i++) {
		turn();
		pass(2000);
		slow_note(&conn, requests[i]);
		sent(0);
	}
	assert_int_equal(look(10), 3);
	assert_string_equal(entries[2].command, "set");
	assert_string_equal(entries[2].result, "stored");
	assert_int_equal(entries[2].bytes, 7);
	assert_string_equal(entries[1].command, "set");
	assert_string_equal(entries[1].result, "too_large");
	assert_string_equal(entries[0].command, "incr");
	assert_string_equal(entries[0].result, "not_found");
	assert_int_equal(entries[0].tier, SLOW_NOWHERE);
	assert_int_equal(entries[0].number, 3);
}

/* ---- requests that waited --------------------------------------------------------------------------- */

/* Ends a request that was received at 2 ms of its life. from, to: when the drive had its reads; done: when it was done. */
static void wait_for_flash(uint64_t from_us, uint64_t to_us, uint64_t done_us, unsigned reads)
{
	struct store_request request = request_of("flash", STORE_GET, STORE_HIT);
	uint64_t since_ns;

	turn();
	since_ns = durations.since_ns;
	pass(done_us);
	turn();
	request.value.from_flash = true;
	request.flash_reads = (uint8_t)reads;
	request.flash_from_ns = from_us == UINT64_MAX ? UINT64_MAX : from_us == 0 ? 0 : since_ns + from_us * 1000;
	request.flash_to_ns = to_us == UINT64_MAX ? UINT64_MAX : since_ns + to_us * 1000;
	slow_note_waited(&conn, &request, since_ns);
	sent(30);
}

static void parts_of_a_flash_read(void **state)
{
	(void)state;
	wait_for_flash(20, 1500, 1520, 1);
	assert_int_equal(look(10), 1);
	assert_times(&entries[0], 1550, 20, 0, 1480, 50);
	assert_int_equal(entries[0].tier, SLOW_FLASH);
	assert_int_equal(entries[0].reads, 1);
	assert_int_equal(entries[0].together, 1);
	assert_string_equal(entries[0].peer, "127.0.0.1:4711");
	wait_for_flash(100, UINT64_MAX, 2000, 1); /* it gave up waiting for the drive */
	assert_int_equal(look(10), 2);
	assert_times(&entries[0], 2030, 100, 0, 1900, 30);
	wait_for_flash(UINT64_MAX, UINT64_MAX, 3000, 0); /* the drive never got it */
	assert_int_equal(look(10), 3);
	assert_times(&entries[0], 3030, 3000, 0, 0, 30);
	wait_for_flash(0, 0, 1200, 0); /* it waited for the journal alone */
	assert_int_equal(look(10), 4);
	assert_times(&entries[0], 1230, 0, 0, 0, 1230);
	wait_for_flash(20, 900, 950, 1); /* it is fast */
	assert_int_equal(look(10), 4);
	assert_int_equal(ctr_total(CTR_slow_requests), counted + 4);
}

/* A read that others had asked for earlier, or whose bytes were kept, costs no time before the request was there. */
static void a_read_that_is_older_than_the_request(void **state)
{
	struct store_request request = request_of("flash", STORE_GET, STORE_HIT);
	uint64_t since_ns;

	(void)state;
	pass(5000);
	turn();
	since_ns = durations.since_ns;
	pass(1000);
	turn();
	request.flash_from_ns = since_ns - 3000000;
	request.flash_to_ns = since_ns - 1000000;
	slow_note_waited(&conn, &request, since_ns);
	sent(0);
	assert_int_equal(look(10), 1);
	assert_times(&entries[0], 1000, 0, 0, 0, 1000);
	request.flash_to_ns = since_ns + 900000;
	slow_note_waited(&conn, &request, since_ns);
	sent(0);
	assert_int_equal(look(10), 2);
	assert_times(&entries[0], 1000, 0, 0, 900, 100);
}

/* More of them in one turn than are kept until they are sent. */
static void many_that_waited(void **state)
{
	struct store_request request = request_of("flash", STORE_GET, STORE_MISS);
	uint64_t since_ns = durations.since_ns;

	(void)state;
	pass(2000);
	turn();
	for (unsigned i = 0; i < 200; i++)
		slow_note_waited(&conn, &request, since_ns);
	sent(100);
	assert_int_equal(look(SLOW_ENTRIES), 200);
	assert_int_equal(ctr_total(CTR_slow_requests), counted + 200);
}

/* ---- the ring, and keys ------------------------------------------------------------------------------ */

static void the_oldest_go(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		turn();
		run("a", 1000 + i);
		sent(0);
	}
	assert_int_equal(look(SLOW_ENTRIES), SLOW_ENTRIES);
	assert_int_equal(newest, MANY);
	for (unsigned i = 0; i < SLOW_ENTRIES; i++) {
		assert_int_equal(entries[i].number, MANY - i);
		assert_int_equal(entries[i].total_us, 1000 + MANY - 1 - i);
	}
	assert_int_equal(look(3), 3);
	assert_int_equal(entries[0].number, MANY);
}

static void keys_are_kept_if_that_is_asked_for(void **state)
{
	struct slow_settings settings;
	unsigned char *key;

	(void)state;
	run("a-key", 2000);
	sent(0);
	assert_int_equal(look(1), 1);
	assert_false(has_key[0]);
	set(1000, true);
	slow_get(&settings);
	assert_int_equal(settings.threshold_us, 1000);
	assert_true(settings.keys);
	turn();
	run("b-key", 2000);
	sent(0);
	assert_int_equal(slow_copy(entries, 1, &newest), 1);
	key = entries[0].key;
	assert_non_null(key);
	assert_int_equal(key[0], 5);
	assert_memory_equal(key + 1, "b-key", 5);
	mem_free(key);
	turn();
	run("c-key", 2000);
	set(1000, false); /* forgets them, also that of a request that is about to be sent */
	sent(0);
	assert_int_equal(look(3), 3);
	assert_false(has_key[0] || has_key[1] || has_key[2]);
}

static void *be_slow(void *context)
{
	(void)context;
	for (unsigned i = 0; i < 2000; i++) {
		struct store_request request = request_of("thread", STORE_GET, STORE_HIT);

		slow_turn(1);
		slow_note(&conn, &request);
		slow_sent(worker);
	}
	return NULL;
}

/* Several threads add entries while others read them and switch keys on and off: each number comes once. */
static void threads_together(void **state)
{
	pthread_t threads[3];

	(void)state;
	set(1, true);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_slow, NULL), 0);
	for (unsigned i = 0; i < 200; i++) {
		unsigned count = look(50);

		for (unsigned at = 1; at < count; at++)
			assert_int_equal(entries[at].number + 1, entries[at - 1].number);
		if (i % 20 == 0)
			set(1, i % 40 == 0);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	set(1, false);
	look(1);
	assert_int_equal(ctr_total(CTR_slow_requests) - counted, newest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_was_noted, begin, end),
		cmocka_unit_test_setup_teardown(below_the_threshold, begin, end),
		cmocka_unit_test_setup_teardown(switched_on_within_a_turn, begin, end),
		cmocka_unit_test_setup_teardown(off_again, begin, end),
		cmocka_unit_test_setup_teardown(a_request_alone, begin, end),
		cmocka_unit_test_setup_teardown(the_slowest_of_a_batch, begin, end),
		cmocka_unit_test_setup_teardown(other_commands, begin, end),
		cmocka_unit_test_setup_teardown(parts_of_a_flash_read, begin, end),
		cmocka_unit_test_setup_teardown(a_read_that_is_older_than_the_request, begin, end),
		cmocka_unit_test_setup_teardown(many_that_waited, begin, end),
		cmocka_unit_test_setup_teardown(the_oldest_go, begin, end),
		cmocka_unit_test_setup_teardown(keys_are_kept_if_that_is_asked_for, begin, end),
		cmocka_unit_test_setup_teardown(threads_together, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
