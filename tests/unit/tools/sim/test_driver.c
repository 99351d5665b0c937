/* SPDX-License-Identifier: BSD-3-Clause */
/* A run from a trace's records to counts: warm-up, unknown sizes, samples, changed sizes, and what comes next. */
#include "sim_test.h"

#include "base/alloc.h"
#include "tools/sim/future.h"

#define RECORDS 400u

static struct spool_record records[RECORDS];
static struct spool_app apps[2] = { { "0", 0 }, { "1", 1 } };

/* A get of four keys in turn each second, by two applications. */
static struct spool make_spool(void)
{
	for (uint32_t i = 0; i < RECORDS; i++)
		records[i] = (struct spool_record){ .time_app = (uint64_t)i * 1000000 << 16 | i % 2,
						    .key = i % 4,
						    .value_size = 100,
						    .repeat = 1,
						    .key_size = 10,
						    .op = TRACE_GET };
	return (struct spool){ .records = records,
			       .apps = apps,
			       .count = RECORDS,
			       .requests = RECORDS,
			       .span_us = RECORDS * 1000000,
			       .keys = 4,
			       .app_count = 2 };
}

static struct sim_run run_of(const struct spool *spool, const char *policy, uint64_t dram)
{
	struct sim_run run = { .spool = spool, .copies = 1, .limit = UINT64_MAX };
	char reason[256];

	assert_int_equal(sim_policy_parse(policy, &run.policy, &run.config.reinsert, &run.config.parameter, reason),
			 FS_OK);
	run.config.space = (struct sim_space){ .dram_bytes = dram };
	run.config.objects = spool->keys;
	run.config.apps = spool->app_count;
	return run;
}

static struct sim_counts play(const struct sim_run *run)
{
	struct sim_result *result = mem_must_zalloc(sizeof(*result));
	struct sim_counts counts;
	char reason[256];

	assert_int_equal(sim_play(run, result, reason), FS_OK);
	assert_int_equal(result->apps[0].gets + result->apps[1].gets, result->all.gets);
	counts = result->all;
	mem_free(result->apps);
	sample_set_fini(&result->samples);
	mem_free(result);
	return counts;
}

static void test_an_empty_cache_hits_nothing(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 0);
	struct sim_counts counts = play(&run);

	(void)state;
	assert_int_equal(counts.gets, RECORDS);
	assert_int_equal(counts.hits, 0);
	assert_int_equal(counts.sets, RECORDS);
	assert_int_equal(counts.requests, RECORDS); /* filled sets are no requests of the trace */
	assert_int_equal(counts.app_bytes_written, RECORDS * 110);
}

static void test_a_get_of_unknown_size_fills_nothing(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 1000000);
	struct sim_counts counts;

	(void)state;
	for (unsigned i = 0; i < RECORDS; i++)
		records[i].value_size = SPOOL_UNKNOWN_SIZE;
	counts = play(&run);
	assert_int_equal(counts.hits, 0);
	assert_int_equal(counts.sets, 0);
}

static void test_warm_up_is_in_no_count(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 440);
	struct sim_counts counts = play(&run);

	(void)state;
	assert_int_equal(counts.hits, RECORDS - 4);
	run.warmup_us = 100 * 1000000ull;
	counts = play(&run);
	assert_int_equal(counts.gets, RECORDS - 100);
	assert_int_equal(counts.hits, RECORDS - 100);
	assert_int_equal(counts.app_bytes_written, 0);
	run.warmup_us = (uint64_t)spool.span_us;
	assert_int_equal(play(&run).gets, 0);
}

static void test_the_series_ends_with_the_run(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "victim", 220);
	struct sim_result *result = mem_must_zalloc(sizeof(*result));
	char reason[256];

	(void)state;
	for (uint64_t limit = 1; limit < RECORDS; limit += 13) {
		run.limit = limit;
		assert_int_equal(sim_play(&run, result, reason), FS_OK);
		assert_in_range(result->points, 1, SIM_SERIES);
		assert_int_equal(result->series[result->points - 1].counts.requests, limit);
		mem_free(result->apps);
		sample_set_fini(&result->samples);
	}
	mem_free(result);
}

static void test_deletes_and_sets_of_the_trace_are_played(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 440);
	struct sim_counts counts;

	(void)state;
	records[8].op = TRACE_DELETE; /* of key 0, whose next get misses */
	records[13].op = TRACE_SET;
	counts = play(&run);
	assert_int_equal(counts.requests, RECORDS);
	assert_int_equal(counts.deletes, 1);
	assert_int_equal(counts.gets, RECORDS - 2);
	assert_int_equal(counts.hits, RECORDS - 2 - 5);
	assert_int_equal(counts.sets, 6);
}

static void test_a_changed_size_is_an_update_if_asked_for(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 1000);
	struct sim_counts counts;

	(void)state;
	records[100].value_size = 90; /* and 104 has another one than 100 */
	assert_int_equal(play(&run).hits, RECORDS - 4);
	run.changed_is_update = true;
	counts = play(&run);
	assert_int_equal(counts.hits, RECORDS - 4 - 2);
	assert_int_equal(counts.sets, 6);
	assert_int_equal(counts.app_bytes_written, 4 * 110 + 100 + 110);
}

static void test_a_sample_has_all_requests_of_its_objects(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 1000);
	uint64_t gets;

	(void)state;
	run.copies = 64;
	run.config.objects = 4ull * 64;
	run.sample = 4;
	gets = play(&run).gets;
	assert_int_equal(gets % (RECORDS / 4), 0);
	assert_in_range(gets, 64 * RECORDS / 8, 64 * RECORDS * 3 / 8);
}

static void test_the_future_ends_at_sets_deletes_and_changed_sizes(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "oracle", 0);
	struct future future;

	(void)state;
	records[4].op = TRACE_SET; /* of key 0 */
	records[5].op = TRACE_DELETE; /* of key 1 */
	records[6].value_size = 50; /* of key 2 */
	run.changed_is_update = true;
	future_init(&future, &run);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(future_next_get(&future, i) == UINT64_MAX); /* nothing was played yet */
		future_move(&future, i, i);
	}
	assert_true(future_next_get(&future, 0) == UINT64_MAX);
	assert_true(future_next_get(&future, 1) == UINT64_MAX);
	assert_true(future_next_get(&future, 2) == UINT64_MAX);
	assert_int_equal(future_next_get(&future, 3), 7);
	future_move(&future, 0, 4);
	assert_int_equal(future_next_get(&future, 0), 8);
	future_move(&future, 3, RECORDS - 1);
	assert_true(future_next_get(&future, 3) == UINT64_MAX);
	future_fini(&future);
}

static void test_the_referee_takes_a_set_for_an_access(void **state)
{
	struct spool spool = make_spool();
	struct sim_run run = run_of(&spool, "lru", 440);
	struct sim_counts counts;

	(void)state;
	for (unsigned i = 0; i < RECORDS; i += 3)
		records[i].op = TRACE_SET;
	records[100].value_size = 200; /* too large for four: own-B alone sees it */
	run.config.space.sizes = SIM_SIZES_KEPT;
	counts = play(&run);
	assert_int_equal(counts.gets, RECORDS);
	assert_int_equal(counts.hits, RECORDS - 4);
	run.config.space.sizes = SIM_SIZES_OF_ACCESSES;
	assert_true(play(&run).hits < RECORDS - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_cache_hits_nothing),
		cmocka_unit_test(test_a_get_of_unknown_size_fills_nothing),
		cmocka_unit_test(test_warm_up_is_in_no_count),
		cmocka_unit_test(test_the_series_ends_with_the_run),
		cmocka_unit_test(test_deletes_and_sets_of_the_trace_are_played),
		cmocka_unit_test(test_a_changed_size_is_an_update_if_asked_for),
		cmocka_unit_test(test_a_sample_has_all_requests_of_its_objects),
		cmocka_unit_test(test_the_future_ends_at_sets_deletes_and_changed_sizes),
		cmocka_unit_test(test_the_referee_takes_a_set_for_an_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
