/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
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

static void endurances_are_rates(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} cases[] = {
		{ "1200TBW/5y", 7610350 },
		{ "1200tbw/5Y", 7610350 },
		{ "31.536TBW/1y", 1000000 },
		{ "0.1TBW/0.1y", 31709 },
		{ "1DWPD/86400", 1 },
		{ "1DWPD/86400k", 1000 },
		{ "1DWPD/1920g", 22222222 },
		{ "1dwpd/1.92TB", 22222222 },
		{ "0.3DWPD/960GB", 3333333 },
		{ "1000DWPD/86.4t", 1000000000000 },
		{ "1DWPD", UNITS_RATE_DWPD | 1000000 },
		{ "0.3DWPD", UNITS_RATE_DWPD | 300000 },
		{ "0.000001dwpd", UNITS_RATE_DWPD | 1 },
		{ "1000DWPD", UNITS_RATE_DWPD | 1000000000 },
	};
	uint64_t rate;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(units_parse_rate(cases[i].text, &rate), FS_OK);
		assert_true(rate == cases[i].rate);
	}
	assert_true(units_rate_bytes(22222222) == 22222222 && units_rate_dwpd(22222222) == 0);
	assert_true(units_rate_bytes(rate) == 0 && units_rate_dwpd(rate) == 1000);
}

static void what_is_no_endurance_is_refused(void **state)
{
	static const char *const forms[] = {
		"TBW/5y",    "1TBW",      "1TBW/",      "1TBW/5",     "1TBW/y",  "1TBW/5d",   "1TBW/-5y", "1TB/5y",
		"1TBW/5yy",  "1 TBW/5y",  "1kTBW/5y",   ".5DWPD",     "DWPD",    "1DWPD/",    "1DWPD/5y", "1DWPD/x",
		"1DWPD/-1g", "1DWPD/1gg", "1DWPD/1GiB", "1DWPD/1g/s", "1DWPDs",  "1DWPD/s",   "-1DWPD",   "1DWP",
		"1DWPD /1g", "1DWPD/1b",  "1mDWPD",     "1e3DWPD",    "nanDWPD", "1TBW/nany",
	};
	static const char *const ranges[] = {
		"0TBW/5y",
		"1TBW/0y",
		"1TBW/0.09y",
		"1TBW/100.1y",
		"0.000001TBW/100y",
		"99999999999999999TBW/1y",
		"0DWPD",
		"0.0000009DWPD",
		"1000.1DWPD",
		"0DWPD/1g",
		"1DWPD/0",
		"1DWPD/86399",
		"1001DWPD/1g",
		"1000DWPD/999999999999p",
		"9223372036854775808",
		"8192p/s",
	};
	uint64_t rate = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		assert_int_equal(units_parse_rate(forms[i], &rate), FS_EINVAL);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		assert_int_equal(units_parse_rate(ranges[i], &rate), FS_ERANGE);
	assert_int_equal(rate, 77);
}

/* Bytes per second of any size, and every share of the flash. */
static void rates_read_back_the_same(void **state)
{
	char text[UNITS_TEXT_BYTES];
	struct rng rng;
	uint64_t rate;

	(void)state;
	rng_init(&rng, 11);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t bytes = rng_next(&rng) >> (1 + rng_below(&rng, 63));
		uint64_t millionths = 1 + rng_below(&rng, 1000000000);

		assert_int_equal(units_parse_rate(units_format_rate(bytes, text), &rate), FS_OK);
		assert_true(rate == bytes && units_rate_of(units_rate_bytes(rate), units_rate_dwpd(rate)) == bytes);
		assert_int_equal(units_parse_rate(units_format_rate(UNITS_RATE_DWPD | millionths, text), &rate), FS_OK);
		assert_true(rate == (UNITS_RATE_DWPD | millionths));
		assert_true(units_rate_of(units_rate_bytes(rate), units_rate_dwpd(rate)) == rate);
	}
	assert_string_equal(units_format_rate(UNITS_RATE_DWPD | 1000000, text), "1DWPD");
	assert_string_equal(units_format_rate(UNITS_RATE_DWPD | 300000, text), "0.3DWPD");
	assert_string_equal(units_format_rate(UNITS_RATE_DWPD | 10000001, text), "10.000001DWPD");
}

/* Of the letters that rates are made of: whatever is accepted is in its range, and reads back the same. */
static void garbage_is_refused_or_a_rate(void **state)
{
	static const char *const parts[] = { "TBW", "DWPD", "/", "y", "s", "k", "g", "p",
					     "b",   "i",    ".", "0", "1", "9", "-", " " };
	struct rng rng;
	unsigned accepted = 0;

	(void)state;
	rng_init(&rng, 12);
	for (unsigned i = 0; i < 300000; i++) {
		char text[64] = "", back[UNITS_TEXT_BYTES];
		uint64_t rate = 77, again;
		unsigned pieces = rng_below(&rng, 8);

		while (pieces-- > 0)
			strcat(text, parts[rng_below(&rng, sizeof(parts) / sizeof(parts[0]))]);
		if (units_parse_rate(text, &rate) != FS_OK) {
			assert_int_equal(rate, 77);
			continue;
		}
		accepted++;
		assert_true(units_rate_dwpd(rate) <= 1000);
		assert_int_equal(units_parse_rate(units_format_rate(rate, back), &again), FS_OK);
		assert_true(again == rate);
	}
	assert_true(accepted > 1000);
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
	}
	assert_string_equal(units_format_size(64 << 20, text), "64m");
	assert_string_equal(units_format_size(1536, text), "1536");
	assert_string_equal(units_format_time(90000000, text), "90s");
	assert_string_equal(units_format_time(86400000000, text), "1d");
	assert_string_equal(units_format_rate(20 << 20, text), "20m/s");
}

static void sizes_are_shown_rounded(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *shown;
	} cases[] = {
		{ 0, "0 bytes" },
		{ 1023, "1023 bytes" },
		{ 1024, "1.00 KiB" },
		{ 1536, "1.50 KiB" },
		{ 64 << 20, "64.00 MiB" },
		{ (1u << 30) - 1, "1.00 GiB" }, /* not 1024.00 MiB */
		{ 3ull << 29, "1.50 GiB" },
		{ 1ull << 40, "1.00 TiB" },
		{ UINT64_MAX, "16.00 EiB" },
	};
	char text[UNITS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(units_show_size(cases[i].bytes, text), cases[i].shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times_and_rates),
		cmocka_unit_test(endurances_are_rates),
		cmocka_unit_test(what_is_no_endurance_is_refused),
		cmocka_unit_test(rates_read_back_the_same),
		cmocka_unit_test(garbage_is_refused_or_a_rate),
		cmocka_unit_test(what_is_formatted_reads_back_the_same),
		cmocka_unit_test(sizes_are_shown_rounded),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
