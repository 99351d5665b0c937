/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the copies' requests. */
#include "tests/unit/tools/tools_test.h"

#include "tools/common/schedule.h"

#define COUNT 1000

static struct spool_record records[COUNT];

static struct spool a_spool(uint16_t repeat)
{
	for (uint32_t i = 0; i < COUNT; i++)
		records[i] = (struct spool_record){ .time_app = (uint64_t)i * 10 << 16, .key = i, .repeat = repeat };
	return (struct spool){ .records = records, .count = COUNT, .requests = COUNT * repeat, .span_us = COUNT * 10 };
}

static void a_limit_ends_it(void **state)
{
	struct spool spool = a_spool(1);
	struct schedule schedule;
	struct schedule_item item;
	int count = 0;

	(void)state;
	schedule_init(&schedule, &spool, 3, 17);
	while (schedule_next(&schedule, &item))
		count++;
	assert_int_equal(count, 17);
	assert_int_equal(schedule_total(&spool, 3, 17), 17);
	schedule_fini(&schedule);
}

static void each_copy_plays_each_request_once_in_order(void **state)
{
	static const uint32_t copy_counts[] = { 1, 2, 3, 7, 16 };

	(void)state;
	for (size_t c = 0; c < sizeof(copy_counts) / sizeof(copy_counts[0]); c++) {
		uint32_t copies = copy_counts[c];
		uint32_t *seen = calloc(COUNT * copies, sizeof(*seen));
		struct spool spool = a_spool(2);
		struct schedule schedule;
		struct schedule_item item;
		int64_t last_us = 0;
		uint64_t count = 0;

		schedule_init(&schedule, &spool, copies, UINT64_MAX);
		while (schedule_next(&schedule, &item)) {
			assert_true(item.time_us >= last_us);
			assert_true(item.time_us <= spool.span_us);
			assert_int_equal(item.number, count++);
			last_us = item.time_us;
			seen[item.record->key * copies + item.copy]++;
		}
		assert_int_equal(count, schedule_total(&spool, copies, UINT64_MAX));
		for (uint32_t i = 0; i < COUNT * copies; i++)
			assert_int_equal(seen[i], 2);
		schedule_fini(&schedule);
		free(seen);
	}
}

static void copies_start_at_their_own_hour(void **state)
{
	struct spool spool = a_spool(1);
	struct schedule schedule;
	struct schedule_item item;
	uint32_t first[4] = { 0 }, seen = 0;

	(void)state;
	schedule_init(&schedule, &spool, 4, UINT64_MAX);
	while (seen < 4 && schedule_next(&schedule, &item)) {
		first[item.copy] = item.record->key;
		seen++;
	}
	for (uint32_t copy = 0; copy < 4; copy++)
		assert_int_equal(first[copy], copy * COUNT / 4);
	schedule_fini(&schedule);
}

static void unknown_times_spread_over_a_week(void **state)
{
	struct spool spool = a_spool(1);

	(void)state;
	spool.timeless = true;
	assert_int_equal(spool_time_us(&spool, 0), 0);
	assert_int_equal(spool_time_us(&spool, COUNT / 2), TRACE_WEEK_US / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_ends_it),
		cmocka_unit_test(each_copy_plays_each_request_once_in_order),
		cmocka_unit_test(copies_start_at_their_own_hour),
		cmocka_unit_test(unknown_times_spread_over_a_week),
	};

	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
