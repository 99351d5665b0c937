/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: what is dropped, what is cut, and the order of what isn't. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/events.h"
#include "tests/unit/base/base_test.h"

struct seen {
	unsigned count, per_stream[EVENT_STREAMS];
	unsigned long last_number;
	bool in_order;
	char last[EVENT_LINE_MAX + 1];
};

static void see(void *context, enum event_stream stream, const char *line, size_t length)
{
	struct seen *seen = context;
	const char *number = memmem(line, length, "gid=", 4);
	unsigned long n;

	assert_non_null(number);
	assert_true(length > 0 && length <= EVENT_LINE_MAX);
	assert_int_equal(line[length - 1], '\n');
	n = strtoul(number + 4, NULL, 10);
	seen->in_order = seen->in_order && n > seen->last_number;
	seen->last_number = n;
	seen->count++;
	seen->per_stream[stream]++;
	memcpy(seen->last, line, length);
	seen->last[length] = 0;
}

static struct seen drain(void)
{
	struct seen seen = { .in_order = true };
	int count = events_drain(see, &seen);

	assert_int_equal(count, seen.count);
	return seen;
}

static int reset(void **state)
{
	(void)state;
	(void)drain();
	events_want(0);
	return 0;
}

static void nothing_is_on_until_it_is_wanted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < EVENT_STREAMS; i++)
		assert_false(events_on((enum event_stream)i));
	events_want(1u << EVENT_FLASH);
	assert_true(events_on(EVENT_FLASH));
	assert_false(events_on(EVENT_FETCHERS));
}

static void names_are_found_whole_only(void **state)
{
	(void)state;
	assert_int_equal(events_find("rawcmds", 7), EVENT_RAWCMDS);
	assert_int_equal(events_find("rawcmds", 6), EVENT_STREAMS);
	assert_int_equal(events_find("rawcmdsx", 8), EVENT_STREAMS);
	assert_int_equal(events_find("", 0), EVENT_STREAMS);
}

static void a_full_ring_drops_and_counts_and_takes_lines_again_when_emptied(void **state)
{
	struct events_status before, after;
	struct seen seen;

	(void)state;
	events_get_status(&before);
	for (unsigned i = 0; i < 100000; i++)
		events_emit(EVENT_FETCHERS, "type=item_get key=%u", i);
	events_get_status(&after);
	assert_true(after.dropped > before.dropped);
	seen = drain();
	assert_true(seen.in_order);
	assert_int_equal(seen.count, after.written - before.written);
	assert_int_equal(seen.count + (after.dropped - before.dropped), 100000);
	events_emit(EVENT_FLASH, "type=again");
	seen = drain();
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.per_stream[EVENT_FLASH], 1);
	assert_non_null(strstr(seen.last, " type=again\n"));
}

static void a_line_that_is_too_long_is_cut_and_still_ends(void **state)
{
	char *text = malloc(2 * EVENT_LINE_MAX);
	struct seen seen;

	(void)state;
	memset(text, 'x', 2 * EVENT_LINE_MAX);
	text[2 * EVENT_LINE_MAX - 1] = 0;
	events_emit(EVENT_RAWCMDS, "%s", text);
	seen = drain();
	assert_int_equal(seen.count, 1);
	assert_int_equal(strlen(seen.last), EVENT_LINE_MAX - 1);
	free(text);
}

static void what_is_not_plain_in_a_key_is_escaped(void **state)
{
	char out[3 * 8 + 1];

	(void)state;
	assert_string_equal(events_key("a:b=%\n", 6, out), "a%3Ab%3D%25%0A");
	assert_string_equal(events_key("\xff", 1, out), "%FF");
	assert_string_equal(events_key("", 0, out), "");
	assert_string_equal(events_key("Az09-._~", 8, out), "Az09-._~");
}

#define THREADS 4
#define LINES 2000

static atomic_bool done;

static void *emit_many(void *context)
{
	(void)context;
	for (unsigned i = 0; i < LINES; i++)
		events_emit(EVENT_MUTATIONS, "type=item_store n=%u", i);
	return NULL;
}

static void *drain_until_done(void *context)
{
	struct seen *seen = context;

	while (!atomic_load(&done))
		assert_true(events_drain(see, seen) >= 0);
	assert_true(events_drain(see, seen) >= 0);
	return NULL;
}

static void each_line_of_many_threads_is_seen_or_counted_as_dropped(void **state)
{
	struct events_status before, after;
	struct seen seen = { .in_order = true };
	pthread_t threads[THREADS], drainer;

	(void)state;
	events_get_status(&before);
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&drainer, NULL, drain_until_done, &seen), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&done, true);
	pthread_join(drainer, NULL);
	events_get_status(&after);
	assert_int_equal(after.written - before.written, seen.count);
	assert_int_equal(seen.count + (after.dropped - before.dropped), THREADS * LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_on_until_it_is_wanted, reset),
		cmocka_unit_test_setup(names_are_found_whole_only, reset),
		cmocka_unit_test_setup(a_full_ring_drops_and_counts_and_takes_lines_again_when_emptied, reset),
		cmocka_unit_test_setup(a_line_that_is_too_long_is_cut_and_still_ends, reset),
		cmocka_unit_test_setup(what_is_not_plain_in_a_key_is_escaped, reset),
		cmocka_unit_test_setup(each_line_of_many_threads_is_seen_or_counted_as_dropped, reset),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	events_fini();
	return failed;
}
