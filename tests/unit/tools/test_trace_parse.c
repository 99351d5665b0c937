/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of each trace format: what is refused, and what comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/common/trace.h"

static int parse(enum trace_format format, const char *line, struct trace_row *row)
{
	const char *why = NULL;
	int code = trace_parse_row(format, &trace_meta_columns, line, strlen(line), row, &why);

	assert_true((code == FS_OK) == (why == NULL));
	return code;
}

static void assert_broken(enum trace_format format, const char *const *lines)
{
	struct trace_row row;

	for (; *lines; lines++)
		if (parse(format, *lines, &row) != FS_EINVAL)
			fail_msg("not refused: \"%s\"", *lines);
}

static void broken_flashield_lines_are_refused(void **state)
{
	static const char *const lines[] = { "",
					     ",,,,,,",
					     "1,1,get,0,48,87",
					     "1,1,get,0,48,87,0,0",
					     "x,1,get,0,48,87,0",
					     "1.5,1,get,0,48,87,0",
					     "1,-1,get,0,48,87,0",
					     "1,,get,0,48,87,0",
					     "1,1,fetch,0,48,87,0",
					     "1,1,,0,48,87,0",
					     "1,1,get,,48,87,0",
					     "1,1,get,-1,48,87,0",
					     "1,1,get,0,-2,87,0",
					     "1,1,get,0,70000,87,0",
					     "1,1,get,0,48,8 7,0",
					     "1,1,get,0,48,1073741825,0",
					     "1,1,get,0,48,87,x",
					     "1,1,get,0,48,99999999999999999999,0",
					     "time_ms,app,op,key,key_size,value_size,ttl_s",
					     NULL };

	(void)state;
	assert_broken(TRACE_FLASHIELD, lines);
}

static void broken_memcachier_lines_are_refused(void **state)
{
	static const char *const lines[] = { "",
					     "1.0,1,1,20,50,7",
					     "1.0,1,1,20,50,7,1,1",
					     "1.0,1,0,20,50,7,1",
					     "1.0,1,8,20,50,7,1",
					     "1.0.0,1,1,20,50,7,1",
					     "a,1,1,20,50,7,1",
					     "1.0,1,get,20,50,7,1",
					     "1.0,1,1,20,50,k,1",
					     NULL };

	(void)state;
	assert_broken(TRACE_MEMCACHIER, lines);
}

static void broken_twitter_lines_are_refused(void **state)
{
	static const char *const lines[] = { "",
					     ",",
					     ",,,,,,",
					     "1,k,5,10,2,get",
					     "1,,5,10,2,get,0",
					     "t,k,5,10,2,get,0",
					     "1,k,five,10,2,get,0",
					     "1,k,5,10,2,7,0",
					     "1,k,5,10,2,get,soon",
					     NULL };

	(void)state;
	assert_broken(TRACE_TWITTER, lines);
}

static void broken_meta_lines_are_refused(void **state)
{
	static const char *const lines[] = { "",
					     "1,k,5",
					     "1,,5,GET,1,10,0,0,4,2",
					     "1,k,5,9,1,10,0,0,4",
					     "1,k,5,GET,0,10,0,0,4",
					     "1,k,5,GET,99999,10,0,0,4",
					     "1,k,5,GET,1,ten,0,0,4",
					     NULL };

	(void)state;
	assert_broken(TRACE_META, lines);
}

static void a_meta_header_without_its_columns_is_refused(void **state)
{
	static const char *const lines[] = { "", "a,b,c", "op_time,key,op", "key,size", NULL };
	struct trace_columns columns;

	(void)state;
	for (const char *const *line = lines; *line; line++)
		assert_int_equal(trace_parse_meta_header(*line, strlen(*line), &columns), FS_EINVAL);
}

static void unknown_first_lines_are_of_no_format(void **state)
{
	static const char *const lines[] = { "", "hello", "1,2,3", "a,b,c,d,e,f,g", "1;2;3;4;5;6;7", NULL };
	bool is_header;

	(void)state;
	for (const char *const *line = lines; *line; line++)
		if (trace_detect(*line, strlen(*line), &is_header) != TRACE_AUTO)
			fail_msg("\"%s\" was taken for a trace", *line);
}

static void flashield_rows_are_read(void **state)
{
	struct trace_row row;

	(void)state;
	assert_int_equal(parse(TRACE_FLASHIELD, "604038471000,3,set,17,48,87,60", &row), FS_OK);
	assert_int_equal(row.time_us, 604038471000000);
	assert_int_equal(row.op, TRACE_SET);
	assert_int_equal(row.key_size, 48);
	assert_int_equal(row.value_size, 87);
	assert_int_equal(row.ttl_s, 60);
	assert_int_equal(row.repeat, 1);
	assert_memory_equal(row.key, "17", row.key_length);
	assert_memory_equal(row.app, "3", row.app_length);
	assert_int_equal(parse(TRACE_FLASHIELD, "91,shop,get,7f3a,72,209,0", &row), FS_OK);
	assert_memory_equal(row.key, "7f3a", row.key_length);
	assert_memory_equal(row.app, "shop", row.app_length);
	assert_int_equal(parse(TRACE_FLASHIELD, "-1,3,delete,17,-1,-1,0", &row), FS_OK);
	assert_int_equal(row.time_us, -1);
	assert_int_equal(row.op, TRACE_DELETE);
	assert_int_equal(row.key_size, -1);
	assert_int_equal(row.value_size, -1);
}

static void memcachier_rows_are_read(void **state)
{
	static const enum trace_op ops[] = { TRACE_GET,  TRACE_SET,   TRACE_DELETE, TRACE_ADD,
					     TRACE_INCR, TRACE_OTHER, TRACE_OTHER };
	struct trace_row row;
	char line[] = "604799.123456,19,1,24,-1,88,0";

	(void)state;
	assert_int_equal(parse(TRACE_MEMCACHIER, line, &row), FS_OK);
	assert_int_equal(row.time_us, 604799123456);
	assert_int_equal(row.value_size, -1);
	for (int type = 1; type <= 7; type++) {
		line[17] = (char)('0' + type);
		assert_int_equal(parse(TRACE_MEMCACHIER, line, &row), FS_OK);
		assert_int_equal(row.op, ops[type - 1]);
	}
}

static void twitter_keys_may_hold_commas(void **state)
{
	struct trace_row row;

	(void)state;
	assert_int_equal(parse(TRACE_TWITTER, "12,nz:u:a,b,20,300,5,gets,0", &row), FS_OK);
	assert_int_equal(row.key_length, 8);
	assert_memory_equal(row.key, "nz:u:a,b", 8);
	assert_int_equal(row.app_length, 2);
	assert_memory_equal(row.app, "nz", 2);
	assert_int_equal(row.op, TRACE_GET);
	assert_int_equal(row.time_us, 12000000);
	assert_int_equal(parse(TRACE_TWITTER, "12,key,20,0,5,get,0", &row), FS_OK);
	assert_int_equal(row.value_size, -1);
	assert_int_equal(parse(TRACE_TWITTER, "12,key,20,10,5,decr,0", &row), FS_OK);
	assert_int_equal(row.op, TRACE_INCR);
	assert_int_equal(parse(TRACE_TWITTER, "12,key,20,10,5,cas,90", &row), FS_OK);
	assert_int_equal(row.op, TRACE_SET);
	assert_int_equal(row.ttl_s, 90);
}

static void meta_rows_follow_their_header(void **state)
{
	static const char header[] = "key,op,size,op_count,key_size,ttl,usecase";
	static const char line[] = "3344,SET_LEASE,100,7,40,3600,12";
	struct trace_columns columns;
	struct trace_row row;
	const char *why;

	(void)state;
	assert_int_equal(trace_parse_meta_header(header, strlen(header), &columns), FS_OK);
	assert_int_equal(trace_parse_row(TRACE_META, &columns, line, strlen(line), &row, &why), FS_OK);
	assert_int_equal(row.time_us, -1);
	assert_int_equal(row.op, TRACE_SET);
	assert_int_equal(row.value_size, 100);
	assert_int_equal(row.repeat, 7);
	assert_int_equal(row.key_size, 40);
	assert_int_equal(row.ttl_s, 3600);
	assert_memory_equal(row.app, "12", row.app_length);
	assert_int_equal(parse(TRACE_META, "5,3344,40,GET,3,0,0,0,12,7", &row), FS_OK);
	assert_int_equal(row.value_size, -1);
	assert_int_equal(row.repeat, 3);
}

static void each_format_is_known_by_its_first_line(void **state)
{
	static const struct {
		const char *line;
		enum trace_format format;
		bool is_header;
	} cases[] = {
		{ "time_ms,app,op,key,key_size,value_size,ttl_s", TRACE_FLASHIELD, true },
		{ "5,1,get,0,48,87,0", TRACE_FLASHIELD, false },
		{ "0.5,1,1,24,48,87,1", TRACE_MEMCACHIER, false },
		{ "0,nz:u:x,24,48,87,get,0", TRACE_TWITTER, false },
		{ "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase", TRACE_META, true },
		{ "0,8899,24,GET,1,48,1,0,4,3", TRACE_META, false },
	};
	bool is_header;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(trace_detect(cases[i].line, strlen(cases[i].line), &is_header), cases[i].format);
		assert_int_equal(is_header, cases[i].is_header);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_flashield_lines_are_refused),
		cmocka_unit_test(broken_memcachier_lines_are_refused),
		cmocka_unit_test(broken_twitter_lines_are_refused),
		cmocka_unit_test(broken_meta_lines_are_refused),
		cmocka_unit_test(a_meta_header_without_its_columns_is_refused),
		cmocka_unit_test(unknown_first_lines_are_of_no_format),
		cmocka_unit_test(flashield_rows_are_read),
		cmocka_unit_test(memcachier_rows_are_read),
		cmocka_unit_test(twitter_keys_may_hold_commas),
		cmocka_unit_test(meta_rows_follow_their_header),
		cmocka_unit_test(each_format_is_known_by_its_first_line),
	};

	return cmocka_run_group_tests_name("trace_parse", tests, NULL, NULL);
}
