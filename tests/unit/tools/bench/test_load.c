/* SPDX-License-Identifier: BSD-3-Clause */
/* The load generator against servers that lie, break off and answer in pieces, and what an honest one sees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tools/bench/fake_server.h"
#include "tools/bench/load_internal.h"

#define NOBODY UINT64_MAX

static struct load_spec spec;
static struct load_result result;
static struct fake_server fake;

static int begin(void **state)
{
	(void)state;
	spec = (struct load_spec){ .kind = LOAD_GET, .keys = 100, .value_bytes = 257, .operations = 100, .cpu = -1 };
	memset(&fake, 0, sizeof(fake));
	fake.spec = &spec;
	fake.present_keys = NOBODY;
	fake.lie_key = NOBODY;
	return 0;
}

static int end(void **state)
{
	(void)state;
	load_result_fini(&result);
	return 0;
}

static int run(void)
{
	int code;

	load_result_fini(&result);
	fake_start(&fake);
	code = load_run(&spec, &fake.server, &result);
	fake_join(&fake);
	return code;
}

/* One of the keys has all its bytes compared. */
static uint64_t whole_key(void)
{
	uint64_t number = 0;

	while (!value_is_checked_whole(number))
		number++;
	assert_true(number < spec.keys);
	return number;
}

static void assert_one_wrong(enum fake_lie lie, uint64_t key, uint32_t at)
{
	fake.lie = lie;
	fake.lie_key = key;
	fake.lie_at = at;
	assert_int_equal(run(), 0);
	assert_int_equal(result.wrong, 1);
	assert_int_equal(result.hits, spec.operations);
	assert_int_equal(result.operations, spec.operations);
	assert_int_not_equal(result.first_error[0], 0);
}

/* --- servers that lie --- */

static void a_flipped_byte_in_front_or_back_is_wrong(void **state)
{
	(void)state;
	assert_one_wrong(FAKE_FLIPS_BYTE, 17, 0);
	assert_one_wrong(FAKE_FLIPS_BYTE, 17, 7);
	assert_one_wrong(FAKE_FLIPS_BYTE, 99, 249);
	assert_one_wrong(FAKE_FLIPS_BYTE, 99, 256);
}

static void a_flipped_byte_in_the_middle_is_wrong_where_all_are_compared(void **state)
{
	(void)state;
	assert_one_wrong(FAKE_FLIPS_BYTE, whole_key(), 100);
	fake.piece = 1;
	assert_one_wrong(FAKE_FLIPS_BYTE, whole_key(), 100);
}

static void another_value_key_length_or_flags_are_wrong(void **state)
{
	(void)state;
	assert_one_wrong(FAKE_OTHER_VALUE, 5, 0);
	assert_one_wrong(FAKE_OTHER_KEY, 5, 0);
	assert_one_wrong(FAKE_SHORTENS, 5, 0);
	assert_one_wrong(FAKE_HAS_FLAGS, 5, 0);
}

static void a_value_that_comes_twice_is_wrong(void **state)
{
	(void)state;
	spec.keys_per_get = 10;
	fake.lie = FAKE_REPEATS_VALUE;
	fake.lie_key = 14;
	assert_int_equal(run(), 0);
	assert_int_equal(result.wrong, 1);
	assert_int_equal(result.hits, 101);
}

static void wrong_values_of_the_warmup_count(void **state)
{
	(void)state;
	spec.warmup_share = 0.5;
	fake.lie = FAKE_OTHER_VALUE;
	fake.lie_key = 5;
	assert_int_equal(run(), 0);
	assert_int_equal(result.wrong, 1);
	assert_int_equal(result.operations, 50);
	assert_int_equal(result.hits, 50);
}

static void a_hit_where_none_can_be_is_wrong(void **state)
{
	(void)state;
	spec.expect_misses = true;
	fake.present_first = 30;
	fake.present_keys = 2;
	assert_int_equal(run(), 0);
	assert_int_equal(result.wrong, 2);
	assert_int_equal(result.hits, 2);
}

static void assert_breaks(enum fake_lie lie, int code)
{
	fake.lie = lie;
	fake.lie_key = 50;
	assert_int_equal(run(), code);
	assert_int_equal(result.operations, lie == FAKE_ANSWERS_TWICE ? 51 : 50);
	assert_non_null(result.get_latency);
}

static void what_is_no_answer_ends_the_run(void **state)
{
	(void)state;
	assert_breaks(FAKE_TRUNCATES, FS_ECORRUPT);
	assert_breaks(FAKE_ANSWERS_TWICE, FS_ECORRUPT);
	assert_breaks(FAKE_UNKNOWN_LINE, FS_ECORRUPT);
	assert_breaks(FAKE_ENDLESS_LINE, FS_ECORRUPT);
	assert_breaks(FAKE_BARE_NEWLINE, FS_ECORRUPT);
}

static void a_connection_that_breaks_ends_the_run(void **state)
{
	(void)state;
	assert_breaks(FAKE_CLOSES, FS_ESYS);
}

static void a_server_that_is_not_there_is_an_error(void **state)
{
	struct load *load;
	struct load_server nobody = { 0 };

	(void)state;
	/* A port that was just free: that of a fake server that has ended. */
	assert_int_equal(run(), 0);
	nobody.port = fake.server.port;
	assert_int_equal(load_start(&load, &spec, &nobody), FS_ESYS);
	assert_null(load);
}

static void errors_are_counted_and_the_run_goes_on(void **state)
{
	(void)state;
	fake.lie = FAKE_SERVER_ERROR;
	fake.lie_key = 3;
	assert_int_equal(run(), 0);
	assert_int_equal(result.errors, 1);
	assert_int_equal(result.hits, 99);
	assert_int_equal(result.wrong, 0);
	assert_string_equal(result.first_error, "SERVER_ERROR out of patience");

	/* In the middle of a multiget: what came before counts, the rest isn't there. */
	spec.keys_per_get = 10;
	assert_int_equal(run(), 0);
	assert_int_equal(result.errors, 1);
	assert_int_equal(result.hits, 93);
	assert_int_equal(result.operations, 100);

	spec.kind = LOAD_SET;
	assert_int_equal(run(), 0);
	assert_int_equal(result.errors, 1);
	assert_int_equal(result.stored, 99);
	assert_int_equal(result.sets, 100);
}

static void a_value_refused_before_it_is_sent_is_sent_to_its_end(void **state)
{
	(void)state;
	spec.kind = LOAD_SET;
	spec.value_bytes = 16 << 20; /* far more than sockets hold */
	spec.keys = 1;
	spec.operations = 3;
	fake.lie = FAKE_REFUSES_EARLY;
	fake.lie_key = 0;
	assert_int_equal(run(), 0);
	assert_false(fake.senseless);
	assert_int_equal(fake.sets, 3);
	assert_int_equal(result.errors, 3);
	assert_int_equal(result.stored, 0);
}

/* --- an honest server --- */

static void answers_in_any_pieces_are_understood(void **state)
{
	static const unsigned pieces[] = { 1, 2, 3, 7, 64, 301, 4096 };

	(void)state;
	spec.pipeline = 8;
	spec.keys_per_get = 3;
	fake.present_first = 20;
	fake.present_keys = 70;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		fake.piece = pieces[i];
		assert_int_equal(run(), 0);
		assert_int_equal(result.operations, 100);
		assert_int_equal(result.hits, 70);
		assert_int_equal(result.wrong + result.errors, 0);
	}
}

static void exactly_the_operations_asked_for_are_done(void **state)
{
	(void)state;
	spec.connections = 7;
	spec.pipeline = 4;
	spec.keys_per_get = 9;
	spec.warmup_share = 0.3;
	spec.operations = 1000;
	assert_int_equal(run(), 0);
	assert_int_equal(fake.get_keys, 1000);
	assert_int_equal(result.operations, 700);
	assert_int_equal(result.gets, 700);
	assert_int_equal(result.hits, 700);
	assert_int_equal(fake.longest_get, 9);
	/* Each batch is full but for those that a phase's end cut off. */
	assert_int_equal(atomic_load(&result.get_latency->count), 78);
}

static void a_sequential_fill_sets_each_key_once(void **state)
{
	(void)state;
	spec.kind = LOAD_SET;
	spec.first_key = 1000;
	spec.keys = spec.operations = 3001;
	spec.connections = 13;
	spec.pipeline = 5;
	spec.value_bytes = 3;
	spec.value_bytes_most = 5000;
	assert_int_equal(run(), 0);
	assert_int_equal(result.stored, 3001);
	assert_int_equal(fake.bad_sets, 0);
	for (unsigned i = 0; i < FAKE_KEYS; i++)
		assert_int_equal(fake.set[i], i < 3001);
	assert_int_equal(atomic_load(&result.set_latency->count), 3001);
}

static void what_is_set_is_read_in_the_next_batch(void **state)
{
	(void)state;
	spec.kind = LOAD_SET_GET;
	spec.keys = 501;
	spec.operations = 1001; /* rounded up */
	spec.connections = 3;
	spec.pipeline = 8;
	spec.keys_per_get = 3;
	assert_int_equal(run(), 0);
	assert_int_equal(result.operations, 1002);
	assert_int_equal(result.sets, 501);
	assert_int_equal(result.hits, 501);
	assert_int_equal(fake.read_back, 501);
	assert_int_equal(fake.longest_get, 3);
	assert_int_equal(result.wrong + result.errors + fake.bad_sets, 0);
}

static void a_mix_has_its_share_of_sets(void **state)
{
	(void)state;
	spec.kind = LOAD_MIXED;
	spec.order = LOAD_UNIFORM;
	spec.set_share = 0.1;
	spec.operations = 10000;
	spec.connections = 4;
	spec.pipeline = 16;
	assert_int_equal(run(), 0);
	assert_int_equal(result.gets + result.sets, 10000);
	assert_in_range(result.sets, 850, 1150); /* five standard deviations */
	assert_int_equal(result.hits, result.gets);
	assert_int_equal(fake.most_pipelined, 16);
}

static void large_values_arrive_whole_both_ways(void **state)
{
	(void)state;
	spec.value_bytes = 200000;
	spec.operations = spec.keys = 20;
	spec.pipeline = 3;
	spec.kind = LOAD_SET;
	assert_int_equal(run(), 0);
	assert_int_equal(result.stored, 20);
	assert_int_equal(fake.bad_sets, 0);
	spec.kind = LOAD_GET;
	assert_int_equal(run(), 0);
	assert_int_equal(result.hits, 20);
	assert_int_equal(result.wrong, 0);
}

static void a_paced_load_does_the_same(void **state)
{
	(void)state;
	spec.rate = 1e6;
	spec.connections = 3;
	spec.pipeline = 7;
	assert_int_equal(run(), 0);
	assert_int_equal(result.hits, 100);
	assert_int_equal(result.operations, 100);
}

static void gets_with_a_hit_have_a_latency_of_their_own(void **state)
{
	(void)state;
	spec.keys_per_get = 10;
	spec.pipeline = 2;
	fake.present_first = 25;
	fake.present_keys = 20; /* keys of three of the ten gets */
	assert_int_equal(run(), 0);
	assert_int_equal(atomic_load(&result.get_latency->count), 10);
	assert_int_equal(atomic_load(&result.hit_latency->count), 3);
	spec.kind = LOAD_SET;
	assert_int_equal(run(), 0);
	assert_int_equal(atomic_load(&result.hit_latency->count), 0);
}

static void what_is_forgotten_amid_a_load_is_not_counted(void **state)
{
	struct load *load;

	(void)state;
	spec.operations = 0;
	spec.seconds = 1e6;
	spec.connections = 4;
	fake_start(&fake);
	assert_int_equal(load_start(&load, &spec, &fake.server), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sem_wait(&fake.served), 0);
	load_forget(load);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sem_wait(&fake.served), 0);
	load_stop(load);
	assert_int_equal(load_join(load, &result), 0);
	fake_join(&fake);
	assert_true(fake.get_keys >= 2000);
	assert_in_range(result.hits, 1, fake.get_keys - 996);
	assert_int_equal(atomic_load(&result.get_latency->count), result.hits);
}

static void a_load_without_an_end_stops_when_asked(void **state)
{
	struct load *load;

	(void)state;
	spec.operations = 0;
	spec.seconds = 1e6;
	spec.connections = 4;
	fake_start(&fake);
	assert_int_equal(load_start(&load, &spec, &fake.server), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sem_wait(&fake.served), 0);
	assert_true(load_running(load));
	load_stop(load);
	assert_int_equal(load_join(load, &result), 0);
	fake_join(&fake);
	assert_true(result.hits >= 996);
	assert_int_equal(result.hits, fake.get_keys);
}

static void a_spec_that_contradicts_itself_is_refused(void **state)
{
	struct load_spec good = spec;
	struct load *load;

	(void)state;
	spec.operations = 0;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.keys = 0;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.warmup_share = 1;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.key_bytes = 15;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.zipf_exponent = 1; /* has no such integral */
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.silence_seconds = -1;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
	spec = good;
	spec.key_bytes = 20;
	spec.first_key = 100000000000000 - 99;
	assert_int_equal(load_start(&load, &spec, &fake.server), FS_EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flipped_byte_in_front_or_back_is_wrong),
		TEST(a_flipped_byte_in_the_middle_is_wrong_where_all_are_compared),
		TEST(another_value_key_length_or_flags_are_wrong),
		TEST(a_value_that_comes_twice_is_wrong),
		TEST(wrong_values_of_the_warmup_count),
		TEST(a_hit_where_none_can_be_is_wrong),
		TEST(what_is_no_answer_ends_the_run),
		TEST(a_connection_that_breaks_ends_the_run),
		TEST(a_server_that_is_not_there_is_an_error),
		TEST(errors_are_counted_and_the_run_goes_on),
		TEST(a_value_refused_before_it_is_sent_is_sent_to_its_end),
		TEST(answers_in_any_pieces_are_understood),
		TEST(exactly_the_operations_asked_for_are_done),
		TEST(a_sequential_fill_sets_each_key_once),
		TEST(what_is_set_is_read_in_the_next_batch),
		TEST(a_mix_has_its_share_of_sets),
		TEST(large_values_arrive_whole_both_ways),
		TEST(a_paced_load_does_the_same),
		TEST(gets_with_a_hit_have_a_latency_of_their_own),
		TEST(what_is_forgotten_amid_a_load_is_not_counted),
		TEST(a_load_without_an_end_stops_when_asked),
		TEST(a_spec_that_contradicts_itself_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
