/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of lines to requests with dense ids. */
#include "tests/unit/tools/tools_test.h"

#include "tools/common/trace.h"

#define HEADER "time_ms,app,op,key,key_size,value_size,ttl_s\n"
#define FIXTURE "../shared/traces/fb_kv_200rows.csv.gz"

static int read_all(struct trace_reader *reader, uint64_t *requests)
{
	struct trace_request request;
	int code;

	*requests = 0;
	while ((code = trace_reader_next(reader, &request)) == 1)
		++*requests;
	return code;
}

static void a_missing_file_is_named(void **state)
{
	struct trace_reader *reader;
	char error[256];

	(void)state;
	assert_int_equal(trace_reader_open("/nowhere/at/all.csv", TRACE_AUTO, &reader, error), FS_EIO);
	assert_non_null(strstr(error, "/nowhere/at/all.csv"));
}

static void a_file_of_no_format_is_refused(void **state)
{
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];

	(void)state;
	temporary_file(path, "hello\nworld\n", 12);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_EINVAL);
	assert_non_null(strstr(error, "hello"));
	unlink(path);
}

static void a_truncated_gzip_is_an_error(void **state)
{
	static char text[200000];
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];
	uint64_t requests;
	size_t used = (size_t)sprintf(text, HEADER);

	(void)state;
	for (unsigned i = 0; used < sizeof(text) - 100; i++)
		used += (size_t)sprintf(text + used, "%u,1,get,%u,20,%u,0\n", i, i * 7919 % 1000, i * 31 % 997);
	temporary_gzip(path, text, 500);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), FS_ECORRUPT);
	assert_true(requests > 0);
	assert_non_null(strstr(trace_reader_error(reader), "truncated"));
	trace_reader_close(reader);
	unlink(path);
}

static void an_endless_line_is_an_error(void **state)
{
	char *text = malloc(400000), path[TEST_PATH_BYTES], error[256];
	struct trace_reader *reader;
	uint64_t requests;

	(void)state;
	memset(text, '1', 400000);
	memcpy(text, HEADER, strlen(HEADER));
	temporary_file(path, text, 400000);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), FS_ECORRUPT);
	trace_reader_close(reader);
	unlink(path);
	free(text);
}

static void broken_lines_are_skipped_and_counted(void **state)
{
	static const char text[] = HEADER "1,1,get,5,20,30,0\n"
					  "1,1,get\n"
					  "\n"
					  "2,1,get,5,20,30,0\r\n"
					  "x,1,get,5,20,30,0\n"
					  "3,1,set,6,20,30,0";
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];
	uint64_t requests, line;
	const char *why;

	(void)state;
	temporary_file(path, text, strlen(text));
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), 0);
	assert_int_equal(requests, 3);
	assert_int_equal(trace_reader_broken(reader, &why, &line), 2);
	assert_int_equal(line, 3);
	assert_string_equal(why, "not 7 columns");
	assert_int_equal(trace_reader_keys(reader), 2);
	trace_reader_close(reader);
	unlink(path);
}

static void an_empty_file_has_no_request(void **state)
{
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];
	uint64_t requests;

	(void)state;
	temporary_file(path, "", 0);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), 0);
	assert_int_equal(requests, 0);
	trace_reader_close(reader);
	unlink(path);
}

static void ids_are_dense_and_per_application(void **state)
{
	static const char text[] = "0.0,7,1,20,30,99,1\n0.5,8,1,20,30,99,1\n1.0,7,1,20,30,5,1\n1.5,7,2,20,30,99,1\n";
	static const uint32_t keys[] = { 0, 1, 2, 0 }, apps[] = { 0, 1, 0, 0 };
	struct trace_reader *reader;
	struct trace_request request;
	char path[TEST_PATH_BYTES], error[256];

	(void)state;
	temporary_gzip(path, text, 0);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(trace_reader_format(reader), TRACE_MEMCACHIER);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(trace_reader_next(reader, &request), 1);
		assert_int_equal(request.key, keys[i]);
		assert_int_equal(request.app, apps[i]);
		assert_int_equal(request.time_us, i * 500000);
	}
	assert_int_equal(trace_reader_next(reader, &request), 0);
	assert_int_equal(trace_reader_app_number(reader, 1), 8);
	trace_reader_close(reader);
	unlink(path);
}

/* Short keys in neighbouring applications once met in one hash. */
static void short_keys_of_many_applications_stay_apart(void **state)
{
	static char text[1000000];
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];
	size_t used = (size_t)sprintf(text, HEADER);
	uint64_t requests;

	(void)state;
	for (unsigned app = 1; app <= 20; app++)
		for (unsigned key = 0; key < 1200; key++)
			used += (size_t)sprintf(text + used, "1,%u,get,%u,20,30,0\n", app, key);
	temporary_file(path, text, used);
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), 0);
	assert_int_equal(trace_reader_keys(reader), 24000);
	trace_reader_close(reader);
	unlink(path);
}

static void namespaces_get_numbers_by_appearance(void **state)
{
	static const char text[] = "0,nz:a,4,30,1,get,0\n0,0:b,4,30,2,get,0\n0,plain,5,30,1,set,60\n";
	struct trace_reader *reader;
	char path[TEST_PATH_BYTES], error[256];
	uint64_t requests;

	(void)state;
	temporary_file(path, text, strlen(text));
	assert_int_equal(trace_reader_open(path, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(read_all(reader, &requests), 0);
	assert_int_equal(trace_reader_apps(reader), 3);
	assert_string_equal(trace_reader_app_name(reader, 0), "nz");
	assert_int_equal(trace_reader_app_number(reader, 0), 1);
	assert_int_equal(trace_reader_app_number(reader, 1), 0);
	assert_int_equal(trace_reader_app_number(reader, 2), 3);
	trace_reader_close(reader);
	unlink(path);
}

static void the_production_fixture_is_read_whole(void **state)
{
	struct trace_reader *reader;
	char error[256];
	const char *why;
	uint64_t requests, line;

	(void)state;
	if (access(FIXTURE, R_OK) != 0) {
		print_message("skipped: %s is not here\n", FIXTURE);
		skip();
	}
	assert_int_equal(trace_reader_open(FIXTURE, TRACE_AUTO, &reader, error), FS_OK);
	assert_int_equal(trace_reader_format(reader), TRACE_FLASHIELD);
	assert_int_equal(read_all(reader, &requests), 0);
	assert_int_equal(requests, 1124);
	assert_int_equal(trace_reader_broken(reader, &why, &line), 0);
	assert_int_equal(trace_reader_keys(reader), 114);
	assert_int_equal(trace_reader_apps(reader), 24);
	trace_reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_file_of_no_format_is_refused),
		cmocka_unit_test(a_truncated_gzip_is_an_error),
		cmocka_unit_test(an_endless_line_is_an_error),
		cmocka_unit_test(broken_lines_are_skipped_and_counted),
		cmocka_unit_test(an_empty_file_has_no_request),
		cmocka_unit_test(ids_are_dense_and_per_application),
		cmocka_unit_test(short_keys_of_many_applications_stay_apart),
		cmocka_unit_test(namespaces_get_numbers_by_appearance),
		cmocka_unit_test(the_production_fixture_is_read_whole),
	};

	return cmocka_run_group_tests_name("trace_reader", tests, NULL, NULL);
}
