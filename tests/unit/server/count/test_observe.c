/* SPDX-License-Identifier: BSD-3-Clause */
/* Which application a request is counted for, however often and in whatever order its name comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/hash.h"
#include "conf/conf.h"
#include "server/admin/admin.h"
#include "server/conn/conn.h"
#include "server/count/hotkeys.h"
#include "server/count/observe.h"
#include "server/count/slow.h"

#define REQUESTS 20000u
#define THREADS 4u
#define ROUNDS 5000u

/* ---- requests, and what is said of them ------------------------------------------------------ */

static bool from_flash; /* hits are */

/* The key without anything behind it, so that the sanitizer sees a byte too many read. */
static void ask_as(const char *user, enum store_op op, enum store_result result, const char *key, size_t length)
{
	struct conn conn = { .user = (char *)(uintptr_t)user };
	struct store_request request = { .op = op, .key_length = (uint8_t)length, .result = result };
	char *copy = malloc(length);

	assert_non_null(copy);
	memcpy(copy, key, length);
	request.key = copy;
	request.hash = hash64(key, length, 0);
	request.value.length = result == STORE_HIT ? 10 : 0;
	request.value.from_flash = result == STORE_HIT && from_flash;
	request.number = 7;
	observe(&conn, &request);
	free(copy);
}

static void get(const char *key)
{
	ask_as(NULL, STORE_GET, STORE_MISS, key, strlen(key));
}

struct wanted {
	const char *row;
	char value[32]; /* empty: there was no such row */
};

static void see_row(struct stats_out *out, const char *name, const char *value)
{
	struct wanted *wanted = out->context;

	if (strcmp(name, wanted->row) == 0)
		snprintf(wanted->value, sizeof(wanted->value), "%s", value);
}

/* -1: there is no such row. */
static long counted(const char *row)
{
	struct wanted wanted = { .row = row };
	struct stats_out out = { .row = see_row, .context = &wanted };

	stats_apps(NULL, &out);
	return wanted.value[0] ? atol(wanted.value) : -1;
}

static long gets_of(const char *app)
{
	char row[300];

	snprintf(row, sizeof(row), "%s:get_count", app);
	return counted(row);
}

static int begin(void **state)
{
	static const struct conf conf = { .app_delimiter = ':', .detail_delimiter = ':' };

	(void)state;
	observe_init(&conf);
	return 0;
}

static int end(void **state)
{
	(void)state;
	observe_fini();
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void no_application(void **state)
{
	static const char *const keys[] = { "a", "abcdefg", "abcdefgh",   "a-key-of-many-bytes",
					    ":", ":key",    ":a-long-key" };

	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			get(keys[i]);
	assert_int_equal(counted("apps"), 0);
	assert_int_equal(gets_of("(none)"), 14);
}

/* What a key without a delimiter starts with is no application's name, seen or not. */
static void a_name_is_not_its_own_key(void **state)
{
	(void)state;
	get("app:x");
	get("app");
	get("app-of-mine:x");
	get("app-of-mine");
	get("app-of-mine-too");
	assert_int_equal(gets_of("app"), 1);
	assert_int_equal(gets_of("app-of-mine"), 1);
	assert_int_equal(gets_of("(none)"), 3);
}

static void get_of_app(const char *app)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:k", app);
	get(key);
}

/* The last names are remembered by their first bytes. */
static void names_that_differ_in_one_byte_are_two(void **state)
{
	static const char *const pairs[][2] = {
		{ "a", "b" },
		{ "ca", "cb" },
		{ "ac", "bc" },
		{ "afternoon", "bfternoon" },
		{ "evening1", "evening2" },
		{ "morning-1", "morning-2" },
	};

	(void)state;
	for (unsigned round = 1; round <= 3; round++)
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
			get_of_app(pairs[i][0]);
			get_of_app(pairs[i][1]);
			assert_int_equal(gets_of(pairs[i][0]), round);
			assert_int_equal(gets_of(pairs[i][1]), round);
		}
}

/* Names of 1 to 20 bytes, each the start of the next, so that short and long ones meet. */
static void names_that_start_alike(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrst";
	char key[64], name[32];

	(void)state;
	for (unsigned round = 0; round < 3; round++)
		for (int length = 1; length <= 20; length++) {
			snprintf(key, sizeof(key), "%.*s:%u:more", length, letters, round);
			for (int i = 0; i < length; i++)
				get(key);
		}
	assert_int_equal(counted("apps"), 20);
	for (int length = 1; length <= 20; length++) {
		snprintf(name, sizeof(name), "%.*s", length, letters);
		assert_int_equal(gets_of(name), 3 * length);
	}
	assert_int_equal(gets_of("(none)"), 0);
}

/* Bytes of any kind: a zero is one like the others, and what lies behind a short key is none. */
static void bytes_of_any_kind(void **state)
{
	(void)state;
	ask_as(NULL, STORE_GET, STORE_MISS, "a\0:x", 4);
	ask_as(NULL, STORE_GET, STORE_MISS, "a:x", 3);
	ask_as(NULL, STORE_GET, STORE_MISS, "a\0:yyyyyyy", 10);
	ask_as(NULL, STORE_GET, STORE_MISS, "a\0", 2);
	ask_as(NULL, STORE_GET, STORE_MISS, "\0\0\0\0\0\0\0\0\0", 9);
	ask_as(NULL, STORE_GET, STORE_MISS, "\xba\xba\xba\xba:\xba:\xba:", 9); /* a delimiter but for its highest bit */
	ask_as(NULL, STORE_GET, STORE_MISS, "\x3b\x39:;:9999999", 12); /* a delimiter give or take one */
	assert_int_equal(gets_of("a%00"), 2);
	assert_int_equal(gets_of("a"), 1);
	assert_int_equal(gets_of("%BA%BA%BA%BA"), 1);
	assert_int_equal(gets_of("%3B9"), 1);
	assert_int_equal(gets_of("(none)"), 2);
}

/* More than there are places for: at hand, and at all. */
static void too_many_names(void **state)
{
	char key[64];

	(void)state;
	for (unsigned i = 0; i < REQUESTS; i++) {
		snprintf(key, sizeof(key), i % 2 ? "app%u:key" : "application%u:key", i / 2 % (APPS_MAX / 2));
		get(key);
	}
	assert_int_equal(counted("apps"), APPS_MAX);
	for (unsigned i = 0; i < APPS_MAX / 2; i++) {
		unsigned times = REQUESTS / APPS_MAX + (i < REQUESTS % APPS_MAX / 2);

		snprintf(key, sizeof(key), "app%u", i);
		assert_int_equal(gets_of(key), times);
		snprintf(key, sizeof(key), "application%u", i);
		assert_int_equal(gets_of(key), times);
	}
	for (unsigned i = 0; i < 10; i++)
		get(i % 2 ? "late:key" : "late-application:key");
	get("app0:key");
	assert_int_equal(counted("apps"), APPS_MAX);
	assert_int_equal(gets_of("(none)"), 10);
}

/* ---- what is counted ------------------------------------------------------------------------- */

static void each_kind(void **state)
{
	static const struct {
		enum store_op op;
		const char *row;
	} kinds[] = {
		{ STORE_GET, "a:get_count" },     { STORE_GAT, "a:get_count" },     { STORE_SET, "a:set_count" },
		{ STORE_ADD, "a:set_count" },     { STORE_REPLACE, "a:set_count" }, { STORE_APPEND, "a:set_count" },
		{ STORE_PREPEND, "a:set_count" }, { STORE_CAS, "a:set_count" },     { STORE_INCR, "a:other_count" },
		{ STORE_DECR, "a:other_count" },  { STORE_TOUCH, "a:other_count" }, { STORE_DELETE, "a:delete_count" },
	};

	(void)state;
	get("a:k");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		long before = counted(kinds[i].row);

		ask_as(NULL, kinds[i].op, STORE_MISS, "a:k", 3);
		assert_int_equal(counted(kinds[i].row), before + 1);
	}
	assert_int_equal(counted("a:get_hits"), 0);
	assert_int_equal(counted("a:value_bytes_read"), 0);
	ask_as(NULL, STORE_INCR, STORE_HIT, "a:k", 3); /* no get: no hit */
	assert_int_equal(counted("a:get_hits"), 0);
	ask_as(NULL, STORE_GET, STORE_HIT, "a:k", 3);
	ask_as(NULL, STORE_GAT, STORE_HIT, "a:k", 3);
	assert_int_equal(counted("a:get_hits"), 2);
	assert_int_equal(counted("a:value_bytes_read"), 20);
	assert_int_equal(counted("a:flash_hits"), 0);
}

static void hits_by_tier_and_bytes(void **state)
{
	(void)state;
	ask_as(NULL, STORE_GET, STORE_HIT, "a:k", 3);
	from_flash = true;
	ask_as(NULL, STORE_GET, STORE_HIT, "a:k", 3);
	ask_as(NULL, STORE_GAT, STORE_HIT, "a:k", 3);
	from_flash = false;
	get("a:k");
	ask_as(NULL, STORE_SET, STORE_STORED, "a:key", 5);
	ask_as(NULL, STORE_ADD, STORE_NOT_STORED, "a:key", 5); /* nothing was written ... */
	ask_as(NULL, STORE_APPEND, STORE_TOO_LARGE, "a:key", 5);
	ask_as(NULL, STORE_INCR, STORE_HIT, "a:key", 5); /* ... nor is this a storage command */
	assert_int_equal(counted("a:get_count"), 4);
	assert_int_equal(counted("a:get_hits"), 3);
	assert_int_equal(counted("a:dram_hits"), 1);
	assert_int_equal(counted("a:flash_hits"), 2);
	assert_int_equal(counted("a:get_misses"), 1);
	assert_int_equal(counted("a:set_count"), 3);
	assert_int_equal(counted("a:bytes_written"), 5 + 7);
}

/* What /metrics reads never goes back. */
static void totals_outlive_a_reset(void **state)
{
	struct observe_app app;

	(void)state;
	get("no application");
	get("a\n:k");
	ask_as(NULL, STORE_GET, STORE_HIT, "b:k", 3);
	ask_as(NULL, STORE_SET, STORE_STORED, "b:k", 3);
	observe_reset();
	ask_as(NULL, STORE_GET, STORE_HIT, "b:k", 3);
	assert_int_equal(counted("b:get_count"), 1);
	assert_true(observe_app(0, &app));
	assert_int_equal(app.name_length, 0);
	assert_int_equal(app.misses, 1);
	assert_true(observe_app(1, &app));
	assert_int_equal(app.name_length, 2);
	assert_memory_equal(app.name, "a\n", 2);
	assert_int_equal(app.misses, 1);
	assert_int_equal(app.dram_hits, 0);
	assert_true(observe_app(2, &app));
	assert_memory_equal(app.name, "b", 1);
	assert_int_equal(app.dram_hits, 2);
	assert_int_equal(app.flash_hits, 0);
	assert_int_equal(app.misses, 0);
	assert_int_equal(app.sets, 1);
	assert_int_equal(app.written_bytes, 3 + 7);
	assert_false(observe_app(3, &app));
	assert_false(observe_app(UINT32_MAX, &app));
}

static void reset_begins_at_zero(void **state)
{
	(void)state;
	get("a:k");
	get("a:k");
	observe_reset();
	assert_int_equal(gets_of("a"), 0);
	get("a:k");
	assert_int_equal(gets_of("a"), 1);
}

/* A thread that outlives what it has counted for finds nothing of it in the next. */
static void a_second_life(void **state)
{
	get("first:k");
	get("first-application:k");
	get("k");
	end(state);
	begin(state);
	assert_int_equal(counted("apps"), 0);
	get("second:k");
	get("first:k");
	get("first-application:k");
	get("k");
	assert_int_equal(counted("apps"), 3);
	assert_int_equal(gets_of("first"), 1);
	assert_int_equal(gets_of("first-application"), 1);
	assert_int_equal(gets_of("second"), 1);
	assert_int_equal(gets_of("(none)"), 1);
}

static void by_user(void **state)
{
	static const struct conf conf = { .app_delimiter = ':',
					  .detail_delimiter = ':',
					  .app_source = CONF_APP_SOURCE_USER };

	end(state);
	observe_init(&conf);
	for (unsigned round = 0; round < 3; round++) {
		ask_as("jane", STORE_GET, STORE_MISS, "a:k", 3);
		ask_as("jane-of-the-long-name", STORE_GET, STORE_MISS, "a:k", 3);
		ask_as(NULL, STORE_GET, STORE_MISS, "jane:k", 6);
	}
	assert_int_equal(counted("apps"), 2);
	assert_int_equal(gets_of("jane"), 3);
	assert_int_equal(gets_of("jane-of-the-long-name"), 3);
	assert_int_equal(gets_of("(none)"), 3);
}

/* ---- detail ---------------------------------------------------------------------------------- */

static void detail(void **state)
{
	char line[512];
	unsigned at = 0;

	(void)state;
	get("p:k");
	observe_switch_detail(true);
	get("p:k");
	get("none");
	ask_as(NULL, STORE_GET, STORE_HIT, "p:k", 3);
	ask_as(NULL, STORE_SET, STORE_STORED, "p:k", 3);
	ask_as(NULL, STORE_DELETE, STORE_DELETED, "p:k", 3);
	ask_as(NULL, STORE_TOUCH, STORE_TOUCHED, "p:k", 3);
	observe_switch_detail(false);
	get("p:k");
	assert_true(observe_detail_line(&at, line) > 0);
	assert_string_equal(line, "PREFIX p get 2 hit 1 set 1 del 1\r\n");
	assert_int_equal(observe_detail_line(&at, line), 0);
}

/* After a reset a prefix has a line once it is counted again. */
static void detail_forgets_at_a_reset(void **state)
{
	char line[512];
	unsigned at = 0;

	(void)state;
	observe_switch_detail(true);
	get("p:k");
	get("q:k");
	ask_as(NULL, STORE_DELETE, STORE_DELETED, "r:k", 3);
	observe_reset();
	assert_int_equal(observe_detail_line(&at, line), 0);
	at = 0;
	ask_as(NULL, STORE_SET, STORE_STORED, "q:k", 3);
	assert_true(observe_detail_line(&at, line) > 0);
	assert_string_equal(line, "PREFIX q get 0 hit 0 set 1 del 0\r\n");
	assert_int_equal(observe_detail_line(&at, line), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *ask_often(void *context)
{
	(void)context;
	for (unsigned i = 0; i < ROUNDS; i++) {
		get("shared:k");
		get("shared-application:k");
		get("k");
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(gets_of("shared"), THREADS * ROUNDS);
	assert_int_equal(gets_of("shared-application"), THREADS * ROUNDS);
	assert_int_equal(gets_of("(none)"), THREADS * ROUNDS);
}

/* ---- slow requests ----------------------------------------------------------------------------- */

static void the_slow_log_is_set(void **state)
{
	struct slow_settings settings;

	(void)state;
	assert_false(slow_is_on());
	observe_set_slow(&(struct slow_settings){ .threshold_us = 1500, .keys = true });
	slow_get(&settings);
	assert_int_equal(settings.threshold_us, 1500);
	assert_true(settings.keys);
	assert_true(slow_is_on());
	observe_set_slow(&(struct slow_settings){ .threshold_us = 0 });
	assert_false(slow_is_on());
}

/* ---- hot keys ---------------------------------------------------------------------------------- */

static uint64_t heaviest(enum heavy_measure by, const char *key)
{
	struct heavy_list *list = hotkeys_read(by, HOTKEYS_MINUTE, 1);
	uint64_t amount = 0;

	assert_non_null(list);
	if (list->count > 0 && list->rows[0].key[0] == strlen(key) &&
	    memcmp(list->rows[0].key + 1, key, strlen(key)) == 0)
		amount = list->rows[0].amount[by];
	heavy_list_free(list);
	return amount;
}

/* Each kind of request counts for its key, with and without an application; a value counts by its bytes when it is found or
   stored, and reads by those that were made. */
static void hot_keys_are_those_of_requests(void **state)
{
	struct store_request waited = { .op = STORE_GET, .key = "read", .key_length = 4, .hash = 3, .flash_reads = 2 };
	struct conn conn = { 0 };

	(void)state;
	for (unsigned i = 0; i < REQUESTS; i++) {
		ask_as(NULL, i % 2 ? STORE_TOUCH : STORE_GET, STORE_MISS, "app:often", 9);
		ask_as(NULL, STORE_SET, STORE_TOO_LARGE, "no-app", 6);
		observe_waited(&conn, &waited, 0);
	}
	assert_in_range(heaviest(HEAVY_READS, "read"), REQUESTS, 3 * REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++)
		ask_as(NULL, STORE_SET, STORE_STORED, "a:stored", 8); /* 7 bytes each */
	assert_in_range(heaviest(HEAVY_BYTES, "a:stored"), 5 * REQUESTS, 9 * REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++)
		ask_as(NULL, STORE_GET, STORE_HIT, "found", 5); /* 10 bytes each */
	assert_in_range(heaviest(HEAVY_BYTES, "found"), 8 * REQUESTS, 12 * REQUESTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_application, begin, end),
		cmocka_unit_test_setup_teardown(a_name_is_not_its_own_key, begin, end),
		cmocka_unit_test_setup_teardown(names_that_differ_in_one_byte_are_two, begin, end),
		cmocka_unit_test_setup_teardown(names_that_start_alike, begin, end),
		cmocka_unit_test_setup_teardown(bytes_of_any_kind, begin, end),
		cmocka_unit_test_setup_teardown(too_many_names, begin, end),
		cmocka_unit_test_setup_teardown(each_kind, begin, end),
		cmocka_unit_test_setup_teardown(hits_by_tier_and_bytes, begin, end),
		cmocka_unit_test_setup_teardown(totals_outlive_a_reset, begin, end),
		cmocka_unit_test_setup_teardown(reset_begins_at_zero, begin, end),
		cmocka_unit_test_setup_teardown(a_second_life, begin, end),
		cmocka_unit_test_setup_teardown(by_user, begin, end),
		cmocka_unit_test_setup_teardown(detail, begin, end),
		cmocka_unit_test_setup_teardown(detail_forgets_at_a_reset, begin, end),
		cmocka_unit_test_setup_teardown(many_threads, begin, end),
		cmocka_unit_test_setup_teardown(the_slow_log_is_set, begin, end),
		cmocka_unit_test_setup_teardown(hot_keys_are_those_of_requests, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
