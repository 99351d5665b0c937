/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of error codes: each has a number and a text of its own, and any number at all has a text. */
#include "base/error.h"

#include <limits.h>
#include <string.h>

#include "tests/unit/base/base_test.h"

/* The numbers as callers may have written them down, apart from the table. */
static const struct {
	int code, number;
} codes[] = {
	{ FS_OK, 0 },         { FS_ENOMEM, -1 },    { FS_EINVAL, -2 },    { FS_EIO, -3 },
	{ FS_ECORRUPT, -4 },  { FS_ESHORT, -5 },    { FS_EFULL, -6 },     { FS_EAGAIN, -7 },
	{ FS_EBUSY, -8 },     { FS_ENOTFOUND, -9 }, { FS_EVERSION, -10 }, { FS_ESYS, -11 },
	{ FS_EOFFLINE, -12 }, { FS_ERANGE, -13 },   { FS_EFOREIGN, -14 }, { FS_ELATE, -15 },
};

#define CODES (sizeof(codes) / sizeof(codes[0]))

static void numbers_without_a_code_have_the_text_for_unknown_ones(void **state)
{
	static const int unknown[] = { 1, 5, INT_MAX, INT_MIN, -(int)CODES, -1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_string_equal(fs_strerror(unknown[i]), "unknown error code");
}

static void the_list_of_this_test_is_whole(void **state)
{
	size_t rows = 0;

	(void)state;
#define COUNT(name, number, text) rows++;
	FS_ERROR_TABLE(COUNT)
#undef COUNT
	assert_int_equal(rows, CODES);
}

static void only_success_is_not_negative(void **state)
{
	(void)state;
	for (size_t i = 0; i < CODES; i++) {
		assert_int_equal(codes[i].code, codes[i].number);
		assert_int_equal(codes[i].code < 0, codes[i].code != FS_OK);
	}
}

static void each_code_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < CODES; i++) {
		const char *text = fs_strerror(codes[i].code);

		assert_non_null(text);
		assert_true(strlen(text) > 0);
		assert_string_not_equal(text, "unknown error code");
		assert_ptr_equal(text, fs_strerror(codes[i].code)); /* static storage */
		for (size_t other = 0; other < i; other++)
			assert_string_not_equal(text, fs_strerror(codes[other].code));
	}
}

static void texts_belong_to_their_codes(void **state)
{
	(void)state;
	assert_string_equal(fs_strerror(FS_OK), "success");
	assert_string_equal(fs_strerror(FS_ENOMEM), "out of memory");
	assert_string_equal(fs_strerror(FS_ECORRUPT), "stored data fails its check");
	assert_string_equal(fs_strerror(FS_ELATE), "could not be done in time");
	assert_non_null(strstr(fs_strerror(FS_ESYS), "errno"));
	assert_non_null(strstr(fs_strerror(FS_EFOREIGN), "remove the file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_without_a_code_have_the_text_for_unknown_ones),
		cmocka_unit_test(the_list_of_this_test_is_whole),
		cmocka_unit_test(only_success_is_not_negative),
		cmocka_unit_test(each_code_has_a_text_of_its_own),
		cmocka_unit_test(texts_belong_to_their_codes),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
