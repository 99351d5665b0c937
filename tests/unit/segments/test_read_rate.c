/* SPDX-License-Identifier: BSD-3-Clause */
/* How many reads a drive is given, which are refused, and when it is called silent: by a scripted time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "segments/read_rate_internal.h"

#define MS 1000000ull
#define MOST 128u

/* The reader looked at every moment. */
static void answer(struct read_rate *rate, unsigned times, uint64_t latency_ns, unsigned company, uint64_t now_ns)
{
	read_rate_looked(rate, now_ns);
	while (times-- > 0)
		read_rate_answered(rate, now_ns - latency_ns, company, now_ns);
}

static bool admits(const struct read_rate *rate, unsigned with_drive, uint64_t waiting, bool begun)
{
	const struct read_queue queue = { .with_drive = with_drive,
					  .fresh = with_drive,
					  .oldest_ns = 1000 * MS,
					  .company = with_drive,
					  .waiting = waiting };

	return read_rate_admits(rate, &queue, begun, 1000 * MS);
}

static void without_patience_nothing_is_refused(void **state)
{
	struct read_rate rate = { 0 };

	(void)state;
	answer(&rate, 50, 3600000 * MS, 1, 3600000 * MS);
	read_rate_late(&rate, 3600000 * MS);
	assert_int_equal(read_rate_depth(&rate, MOST), MOST);
	assert_true(admits(&rate, MOST, 1000000, false));
	assert_false(read_rate_silent(&rate, 7200000 * MS));
}

static void a_drive_that_nothing_is_known_of_gets_all(void **state)
{
	struct read_rate rate = { .patience_ns = 1 };

	(void)state;
	assert_int_equal(read_rate_depth(&rate, MOST), MOST);
	assert_true(admits(&rate, MOST, 1000000, false));
}

static void the_depth_is_what_the_drive_does_in_half_the_patience(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };

	(void)state;
	answer(&rate, 200, 10 * MS, 10, 1000 * MS); /* a thousand a second */
	assert_in_range(read_rate_depth(&rate, MOST), 98, 100);
	answer(&rate, 200, 100 * MS, 10, 1000 * MS);
	assert_in_range(read_rate_depth(&rate, MOST), 9, 10);
	answer(&rate, 200, 1000 * MS, 10, 1000 * MS);
	assert_int_equal(read_rate_depth(&rate, MOST), READ_RATE_DEPTH_LEAST);
	assert_int_equal(read_rate_depth(&rate, 1), 1);
	answer(&rate, 200, MS, 10, 1000 * MS);
	assert_int_equal(read_rate_depth(&rate, MOST), MOST);
}

static void a_queue_beyond_three_quarters_of_the_patience_is_refused_and_beyond_all_of_it_to_all(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };

	(void)state;
	answer(&rate, 200, 10 * MS, 10, 1000 * MS); /* 150 in three quarters, 200 in all */
	assert_true(admits(&rate, 100, 45, false));
	assert_false(admits(&rate, 100, 55, false));
	assert_true(admits(&rate, 100, 55, true));
	assert_true(admits(&rate, 100, 95, true));
	assert_false(admits(&rate, 100, 105, true));
}

static void a_drive_without_work_is_always_asked(void **state)
{
	struct read_rate rate = { .patience_ns = 10 * MS };

	(void)state;
	answer(&rate, 200, 1000 * MS, 1, 1000 * MS);
	assert_true(admits(&rate, 0, 0, false));
	assert_false(admits(&rate, 1, 0, false));
}

/* Long before any of its reads is answered or late. */
static void a_drive_that_stops_answering_is_given_less(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };
	struct read_queue queue = { .with_drive = 100, .fresh = 100, .oldest_ns = 1000 * MS, .company = 100 };

	(void)state;
	answer(&rate, 200, 1 * MS, 10, 1000 * MS);
	assert_true(read_rate_admits(&rate, &queue, false, 1000 * MS));
	read_rate_looked(&rate, 1100 * MS);
	assert_true(read_rate_admits(&rate, &queue, false, 1100 * MS));
	read_rate_looked(&rate, 1160 * MS);
	assert_false(read_rate_admits(&rate, &queue, false, 1160 * MS));
}

/* The machine had no time for us, and then everything is there at once. */
static void what_nobody_looked_at_is_no_sign_of_a_slow_drive(void **state)
{
	struct read_rate rate = { .patience_ns = 1000 * MS };
	struct read_queue queue = { .with_drive = 2, .fresh = 2, .oldest_ns = 1000 * MS, .company = 2, .waiting = 98 };

	(void)state;
	answer(&rate, 200, 1 * MS, 2, 1000 * MS);
	assert_true(read_rate_admits(&rate, &queue, false, 1900 * MS));
	read_rate_answered(&rate, 1000 * MS, 2, 1900 * MS);
	read_rate_answered(&rate, 1000 * MS, 2, 1900 * MS);
	assert_true(rate.service_ns < 2 * MS);
	read_rate_looked(&rate, 1900 * MS);
	queue.oldest_ns = 1001 * MS; /* this one was not among them: it is slow indeed */
	assert_false(read_rate_admits(&rate, &queue, false, 1900 * MS));
}

/* The last one of many that were sent together has waited long, but for all of them. */
static void the_last_of_a_batch_is_no_sign_of_a_slow_drive(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };
	struct read_queue queue = { .with_drive = 1, .fresh = 1, .oldest_ns = 1000 * MS, .company = 100 };

	(void)state;
	answer(&rate, 200, 1 * MS, 1, 1000 * MS);
	queue.waiting = 140;
	assert_true(read_rate_admits(&rate, &queue, false, 1100 * MS));
}

static void while_all_is_late_one_read_is_taken_at_a_time(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };
	struct read_queue queue = { .with_drive = 5 }, waiting = { .with_drive = 5, .waiting = 1 };
	struct read_queue fresh = { .with_drive = 5, .fresh = 1, .oldest_ns = 1300 * MS, .company = 1 };

	(void)state;
	answer(&rate, 200, 1 * MS, 10, 1000 * MS);
	read_rate_late(&rate, 1300 * MS);
	assert_true(read_rate_admits(&rate, &queue, false, 1300 * MS));
	assert_false(read_rate_admits(&rate, &waiting, true, 1300 * MS));
	assert_false(read_rate_admits(&rate, &fresh, true, 1300 * MS));
	answer(&rate, 1, 1 * MS, 1, 1301 * MS);
	assert_true(read_rate_admits(&rate, &fresh, true, 1301 * MS));
}

static void a_single_late_read_among_many_is_no_silence(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		answer(&rate, 9, 1 * MS, 1, (1000 + 10 * i) * MS);
		read_rate_late(&rate, (1001 + 10 * i) * MS);
		assert_false(read_rate_silent(&rate, (1001 + 10 * i) * MS));
	}
}

static void half_of_the_reads_late_is_silence(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };
	unsigned n = 0;

	(void)state;
	while (!read_rate_silent(&rate, (1000 + n) * MS)) {
		answer(&rate, 1, 1 * MS, 1, (1000 + n) * MS);
		read_rate_late(&rate, (1000 + n) * MS);
		n++;
	}
	assert_int_equal(n, 8);
	read_rate_forgive(&rate);
	assert_false(read_rate_silent(&rate, (1000 + n) * MS));
}

/* 100 000 answers of before are no reason to believe in it. */
static void what_a_drive_did_before_it_stopped_is_soon_forgotten(void **state)
{
	struct read_rate rate = { .patience_ns = 1000 * MS };

	(void)state;
	for (unsigned ms = 0; ms < 3000; ms++)
		answer(&rate, 30, MS / 10, 3, ms * MS);
	for (unsigned i = 0; i < 100; i++)
		read_rate_late(&rate, 3000 * MS);
	assert_false(read_rate_silent(&rate, 3000 * MS));
	for (unsigned i = 0; i < 100; i++)
		read_rate_late(&rate, 4000 * MS);
	assert_true(read_rate_silent(&rate, 5001 * MS));
}

static void the_only_read_that_is_never_answered_is_silence_after_a_while(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };

	(void)state;
	answer(&rate, 3, 1 * MS, 1, 1000 * MS);
	read_rate_late(&rate, 10000 * MS);
	assert_false(read_rate_silent(&rate, 11399 * MS));
	assert_true(read_rate_silent(&rate, 11400 * MS));
	answer(&rate, 1, 1 * MS, 1, 11401 * MS);
	assert_false(read_rate_silent(&rate, 20000 * MS));
}

static void an_answer_that_came_late_is_none(void **state)
{
	struct read_rate rate = { .patience_ns = 200 * MS };

	(void)state;
	read_rate_late(&rate, 1000 * MS);
	answer(&rate, 50, 250 * MS, 1, 1050 * MS);
	assert_true(read_rate_silent(&rate, 2400 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_patience_nothing_is_refused),
		cmocka_unit_test(a_drive_that_nothing_is_known_of_gets_all),
		cmocka_unit_test(the_depth_is_what_the_drive_does_in_half_the_patience),
		cmocka_unit_test(a_queue_beyond_three_quarters_of_the_patience_is_refused_and_beyond_all_of_it_to_all),
		cmocka_unit_test(a_drive_without_work_is_always_asked),
		cmocka_unit_test(a_drive_that_stops_answering_is_given_less),
		cmocka_unit_test(what_nobody_looked_at_is_no_sign_of_a_slow_drive),
		cmocka_unit_test(the_last_of_a_batch_is_no_sign_of_a_slow_drive),
		cmocka_unit_test(while_all_is_late_one_read_is_taken_at_a_time),
		cmocka_unit_test(a_single_late_read_among_many_is_no_silence),
		cmocka_unit_test(half_of_the_reads_late_is_silence),
		cmocka_unit_test(what_a_drive_did_before_it_stopped_is_soon_forgotten),
		cmocka_unit_test(the_only_read_that_is_never_answered_is_silence_after_a_while),
		cmocka_unit_test(an_answer_that_came_late_is_none),
	};

	return cmocka_run_group_tests_name("read rate", tests, NULL, NULL);
}
