/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats slow", whatever a server makes of them. */
#include "tests/unit/tools/top/top_test.h"

static struct sample sample;

static int fresh(void **state)
{
	(void)state;
	a_sample(&sample, 1);
	return 0;
}

static void take(const char *name, const char *value)
{
	give(&sample, REPORT_SLOW, name, value);
}

static void rows_that_are_none(void **state)
{
	static const char *const names[] = { "", "threshold_us", "newest", "0", "-1", "x1", "1x" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		take(names[i], "cmd=get total_us=5");
	take("1", "");
	take("1", "total_us=5 command=get");
	take("1", "cmd=");
	assert_int_equal(sample.slow_count, 0);
	assert_true(sample.has[REPORT_SLOW]);
}

static void values_that_are_damaged(void **state)
{
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), "cmd=%0100d status=%0100d key=%0150d total_us=-5 together=x", 1, 2, 3);
	take("7", text);
	assert_int_equal(sample.slow_count, 1);
	assert_int_equal(strlen(sample.slow[0].command), SLOW_WORD_BYTES - 1);
	assert_int_equal(strlen(sample.slow[0].status), SLOW_WORD_BYTES - 1);
	assert_int_equal(strlen(sample.slow[0].name), HOT_KEY_BYTES - 1);
	assert_string_equal(sample.slow[0].tier, "-");
	assert_unknown(sample.slow[0].at);
	assert_unknown(sample.slow[0].together);
	for (int i = 0; i < SLOW_PARTS; i++)
		assert_unknown(sample.slow[0].us[i]);
}

static void parts_of_a_request(void **state)
{
	const struct slow_request *request = &sample.slow[0];

	(void)state;
	take("9",
	     "at=1795727331 cmd=get status=found from=flash hash=5822fbbc1245ab15 size=257 total_us=1550 queue_us=20 run_us=0 "
	     "flash_us=1480 send_us=50 reads=1 together=1 cfd=27 peer=127.0.0.1:4711");
	assert_string_equal(request->command, "get");
	assert_string_equal(request->status, "found");
	assert_string_equal(request->tier, "flash");
	assert_string_equal(request->name, "hash=5822fbbc1245ab15");
	assert_string_equal(request->peer, "127.0.0.1:4711");
	assert_number(request->at, 1795727331);
	assert_number(request->us[SLOW_TOTAL], 1550);
	assert_number(request->us[SLOW_QUEUE], 20);
	assert_number(request->us[SLOW_RUN], 0);
	assert_number(request->us[SLOW_FLASH], 1480);
	assert_number(request->us[SLOW_SEND], 50);
	assert_number(request->together, 1);
	for (unsigned i = 0; i < 2 * SLOW_REQUESTS; i++)
		take("8", "cmd=set key=k");
	assert_int_equal(sample.slow_count, SLOW_REQUESTS);
	assert_string_equal(sample.slow[SLOW_REQUESTS - 1].name, "k");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rows_that_are_none, fresh),
		cmocka_unit_test_setup(values_that_are_damaged, fresh),
		cmocka_unit_test_setup(parts_of_a_request, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
