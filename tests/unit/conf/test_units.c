/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "conf/units.h"

static void what_is_no_number_is_refused(void **state)
{
	static const char *const texts[] = { "",    " ",   "x",   "-1",  "+1",  ".5",  "1.",    "1..2", "0x10", "1e3",
					     "nan", "inf", "1 k", " 1k", "1kk", "1kx", "1kibs", "1k/s", "k",    "1q" };
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(units_parse_size(texts[i], 1, &value), FS_EINVAL);
		if (strcmp(texts[i], "1k/s") != 0)
			assert_int_equal(units_parse_rate(texts[i], &value), FS_EINVAL);
		assert_int_equal(units_parse_time(texts[i], &value), FS_EINVAL);
	}
	assert_int_equal(value, 77);
}

static void what_does_not_fit_is_refused(void **state)
{
	uint64_t value;

	(void)state;
	assert_int_equal(units_parse_size("18446744073709551616", 1, &value), FS_ERANGE);
	assert_int_equal(units_parse_size("16384p", 1, &value), FS_ERANGE);
	assert_int_equal(units_parse_size("999999999999999999999999999999t", 1, &value), FS_ERANGE);
	assert_int_equal(units_parse_time("300000000000d", &value), FS_ERANGE);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "1k", 1024 },
		{ "1K", 1024 },
		{ "3m", 3 << 20 },
		{ "2g", 2ull << 30 },
		{ "1t", 1ull << 40 },
		{ "1p", 1ull << 50 },
		{ "1.5k", 1536 },
		{ "4MiB", 4 << 20 },
		{ "4mb", 4 << 20 },
		{ "0.1k", 102 },
		{ "67675.0214843750k", 69299222 },
		{ "0.0009765625000000000000000000000000k", 1 },
		{ "18446744073709551615", UINT64_MAX },
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(units_parse_size(cases[i].text, 1, &bytes), FS_OK);
		assert_true(bytes == cases[i].bytes);
	}
	assert_int_equal(units_parse_size("64", 1 << 20, &bytes), FS_OK);
	assert_int_equal(bytes, 64 << 20);
	assert_int_equal(units_parse_size("64k", 1 << 20, &bytes), FS_OK);
	assert_int_equal(bytes, 64 << 10);
}

static void times_and_rates(void **state)
{
	uint64_t value;

	(void)state;
	assert_int_equal(units_parse_time("2", &value), FS_OK);
	assert_int_equal(value, 2000000);
	assert_int_equal(units_parse_time("7us", &value), FS_OK);
	assert_int_equal(value, 7);
	assert_int_equal(units_parse_time("1.5ms", &value), FS_OK);
	assert_int_equal(value, 1500);
	assert_int_equal(units_parse_time("3m", &value), FS_OK);
	assert_int_equal(value, 180000000);
	assert_int_equal(units_parse_time("2h", &value), FS_OK);
	assert_int_equal(value, 7200000000);
	assert_int_equal(units_parse_time("1d", &value), FS_OK);
	assert_int_equal(value, 86400000000);
	assert_int_equal(units_parse_rate("20MB/s", &value), FS_OK);
	assert_int_equal(value, 20 << 20);
	assert_int_equal(units_parse_rate("100", &value), FS_OK);
	assert_int_equal(value, 100);
	assert_int_equal(units_parse_rate("5/s", &value), FS_OK);
	assert_int_equal(value, 5);
}

static void what_is_formatted_reads_back_the_same(void **state)
{
	static const uint64_t values[] = { 0,        1,       1000,     1024,     1536,        1000000,
					   60000000, 1 << 20, 90000000, 3 << 30u, 86400000000, UINT64_MAX };
	char text[UNITS_TEXT_BYTES];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(units_parse_size(units_format_size(values[i], text), 1, &value), FS_OK);
		assert_true(value == values[i]);
		assert_int_equal(units_parse_time(units_format_time(values[i], text), &value), FS_OK);
		assert_true(value == values[i]);
		assert_int_equal(units_parse_rate(units_format_rate(values[i], text), &value), FS_OK);
		assert_true(value == values[i]);
	}
	assert_string_equal(units_format_size(64 << 20, text), "64m");
	assert_string_equal(units_format_size(1536, text), "1536");
	assert_string_equal(units_format_time(90000000, text), "90s");
	assert_string_equal(units_format_time(86400000000, text), "1d");
	assert_string_equal(units_format_rate(20 << 20, text), "20m/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times_and_rates),
		cmocka_unit_test(what_is_formatted_reads_back_the_same),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
