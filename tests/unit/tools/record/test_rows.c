/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests become of which events. A script is a list of words; what comes out is one too. */
#include "tests/unit/tools/tools_test.h"

#include "tools/record/rows.h"

#define WINDOW_US 1000000

static struct rows rows;
static char out[4096];

static void put_row(const struct row *row)
{
	static const char *const words[] = { "get", "set", "delete" };
	size_t used = strlen(out);

	snprintf(out + used, sizeof(out) - used, "%s%s %c %d/%u", used ? ", " : "", words[row->op], (char)row->key,
		 row->size, row->ttl_s);
}

static void take(const struct event *event)
{
	struct row row;

	rows_add(&rows, event);
	while (rows_next(&rows, false, &row))
		put_row(&row);
}

static const char *settled(void)
{
	struct row row;

	while (rows_next(&rows, true, &row))
		put_row(&row);
	return out;
}

static int setup(void **state)
{
	(void)state;
	rows_init(&rows, WINDOW_US);
	out[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rows_fini(&rows);
	return 0;
}

static struct event event_of(enum line_kind kind, char key, int64_t time_us)
{
	return (struct event){
		.kind = (uint8_t)kind, .key = (uint64_t)key, .time_us = time_us, .size = -1, .connection = 7
	};
}

static void get(char key, int64_t time_us, int size, int connection)
{
	struct event event = event_of(LINE_GET, key, time_us);

	event.found = size >= 0;
	event.size = size < 0 ? 0 : size;
	event.connection = connection;
	take(&event);
}

static void store(char key, int64_t time_us, int size, int connection)
{
	struct event event = event_of(LINE_STORE, key, time_us);

	event.found = event.fills = true;
	event.size = size;
	event.ttl_s = 60;
	event.connection = connection;
	take(&event);
}

/* A set as memcached tells it. */
static void set(char key, int64_t time_us, int size, int old_size, int connection)
{
	get(key, time_us, old_size, connection);
	store(key, time_us + 2, size, connection);
}

static void a_look_up_is_no_request(void **state)
{
	(void)state;
	set('a', 1, 5, -1, 7);
	set('a', 10, 6, 5, 7);
	get('a', 20, 6, 7);
	assert_string_equal(settled(), "set a 5/60, set a 6/60, get a 6/0");
	assert_int_equal(rows.counts.look_ups, 2);
}

static void a_get_of_another_connection_is_no_look_up(void **state)
{
	(void)state;
	get('a', 1, 5, 8);
	store('a', 2, 6, 7);
	assert_string_equal(settled(), "get a 5/0, set a 6/60");
}

static void a_get_long_before_is_no_look_up(void **state)
{
	(void)state;
	get('a', 1, 5, 7);
	store('a', 200000, 6, 7);
	assert_string_equal(settled(), "get a 5/0, set a 6/60");
}

static void flashields_gets_are_requests(void **state)
{
	struct event event = event_of(LINE_GET, 'a', 1);

	(void)state;
	event.tells_tier = event.found = true;
	event.size = 5;
	take(&event);
	store('a', 2, 6, 7);
	assert_string_equal(settled(), "get a 5/0, set a 6/60");
	assert_int_equal(rows.counts.look_ups, 0);
}

static void a_set_after_a_miss_is_part_of_the_get(void **state)
{
	(void)state;
	get('a', 1, -1, 7);
	get('b', 2, -1, 7);
	set('a', 5000, 5, -1, 7);
	set('a', 6000, 9, 5, 7); /* another one is a request */
	get('a', 7000, 9, 7);
	assert_string_equal(settled(), "get a 5/60, get b -1/0, set a 9/60, get a 9/0");
	assert_int_equal(rows.counts.fills, 1);
}

static void all_that_missed_are_filled(void **state)
{
	(void)state;
	get('a', 1, -1, 7);
	get('a', 2, -1, 8);
	set('a', 5000, 5, -1, 9);
	set('a', 5001, 5, 5, 8); /* the other one's */
	assert_string_equal(settled(), "get a 5/60, get a 5/60, set a 5/60");
}

static void a_miss_before_a_hit_is_not_filled(void **state)
{
	(void)state;
	get('a', 1, -1, 7);
	get('a', 2, 4, 8);
	set('a', 5000, 5, 4, 9);
	assert_string_equal(settled(), "get a -1/0, get a 4/0, set a 5/60");
}

static void a_miss_leaves_with_the_window(void **state)
{
	(void)state;
	get('a', 1, -1, 7);
	set('b', 2 + WINDOW_US, 3, -1, 7);
	assert_string_equal(out, "get a -1/0");
	set('a', 3 + WINDOW_US, 5, -1, 7);
	assert_string_equal(settled(), "get a -1/0, set b 3/60, set a 5/60");
}

static void without_a_window_every_set_is_written(void **state)
{
	(void)state;
	rows.window_us = 0;
	get('a', 1, -1, 7);
	set('a', 5, 5, -1, 7);
	assert_string_equal(settled(), "get a -1/0, set a 5/60");
}

static void what_is_refused_is_left_out(void **state)
{
	struct event event = event_of(LINE_STORE, 'a', 3);

	(void)state;
	get('a', 1, 5, 7);
	get('a', 2, 5, 7);
	take(&event);
	assert_string_equal(settled(), "get a 5/0");
	assert_int_equal(rows.counts.refused, 1);
}

static void deletes(void **state)
{
	struct event event = event_of(LINE_DELETED, 'a', 3), own = event_of(LINE_DELETE, 'b', 4);
	struct event expired = event_of(LINE_STORE, 'c', 5);

	(void)state;
	get('a', 1, 5, 8);
	get('a', 2, 5, 7);
	event.connection = -1;
	take(&event);
	take(&own);
	expired.found = expired.expired = expired.fills = true;
	take(&expired);
	assert_string_equal(settled(), "get a 5/0, delete a -1/0, delete b -1/0, delete c -1/0");
}

static void updates_are_gets(void **state)
{
	struct event event = event_of(LINE_UPDATE, 'a', 3);

	(void)state;
	event.found = true;
	event.ttl_s = 50;
	take(&event);
	assert_string_equal(settled(), "get a -1/0");
	assert_int_equal(rows.counts.updates, 1);
}

static void time_never_goes_back(void **state)
{
	struct row row;

	(void)state;
	get('a', 5000, 1, 7);
	get('b', 4000, 1, 7);
	for (int i = 0; i < 2; i++) {
		assert_true(rows_next(&rows, true, &row));
		assert_int_equal(row.time_us, 5000);
	}
}

static void a_full_ring_gives_its_oldest(void **state)
{
	struct row row;

	(void)state;
	for (uint64_t i = 0; i < ROWS_MAX + 5; i++) {
		struct event event = event_of(LINE_GET, 'a', 1);

		event.key = i;
		rows_add(&rows, &event);
		assert_int_equal(rows_next(&rows, false, &row), i + 1 >= ROWS_MAX);
		if (i + 1 >= ROWS_MAX)
			assert_int_equal(row.key, i + 1 - ROWS_MAX);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_look_up_is_no_request),
		TEST(a_get_of_another_connection_is_no_look_up),
		TEST(a_get_long_before_is_no_look_up),
		TEST(flashields_gets_are_requests),
		TEST(a_set_after_a_miss_is_part_of_the_get),
		TEST(all_that_missed_are_filled),
		TEST(a_miss_before_a_hit_is_not_filled),
		TEST(a_miss_leaves_with_the_window),
		TEST(without_a_window_every_set_is_written),
		TEST(what_is_refused_is_left_out),
		TEST(deletes),
		TEST(updates_are_gets),
		TEST(time_never_goes_back),
		TEST(a_full_ring_gives_its_oldest),
	};

	return cmocka_run_group_tests_name("record: rows", tests, NULL, NULL);
}
