/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of our own reports: no name twice in a report, and texts that the guide can show. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/counters.h"
#include "base/metrics/rows.h"

static bool is_counter_of(enum row_report report, const char *name)
{
	for (int i = 0; i < CTR_COUNT; i++) {
		const struct ctr_info *info = ctr_info((enum ctr)i);

		if (strcmp(info->name, name) == 0 &&
		    ((info->group == CTR_GROUP_FLASH && report == ROW_REPORT_FLASH) ||
		     (info->group == CTR_GROUP_CLASSIFIER && report == ROW_REPORT_CLASSIFIER)))
			return true;
	}
	return false;
}

static void no_report_has_a_name_twice(void **state)
{
	(void)state;
	for (int i = 0; i < ROW_COUNT; i++) {
		const struct row_info *info = row_info((enum row)i);

		if (is_counter_of(info->report, info->name))
			fail_msg("%s is a counter of the same report", info->name);
		for (int j = 0; j < i; j++) {
			const struct row_info *other = row_info((enum row)j);

			if (other->report == info->report && strcmp(other->name, info->name) == 0)
				fail_msg("%s is there twice", info->name);
		}
	}
}

static void texts_fit_a_table(void **state)
{
	(void)state;
	for (int i = 0; i < ROW_COUNT; i++) {
		const struct row_info *info = row_info((enum row)i);
		size_t length = strlen(info->text);

		assert_true(length > 0);
		/* CLWA and DRAM begin with a capital. */
		if (strchr(info->text, '|') || info->text[length - 1] == '.' ||
		    (isupper((unsigned char)info->text[0]) && !isupper((unsigned char)info->text[1])))
			fail_msg("%s: %s", info->name, info->text);
	}
}

static void rows_are_their_own(void **state)
{
	(void)state;
	assert_string_equal(row_info(ROW_FLASH_dram_items)->name, "dram_items");
	assert_string_equal(row_info(ROW_FLASH_dram_items)->unit, "objects");
	assert_int_equal(row_info(ROW_MEMORY_limit)->report, ROW_REPORT_MEMORY);
	assert_string_equal(row_info(ROW_APPS_get_misses)->name, "get_misses");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_report_has_a_name_twice),
		cmocka_unit_test(texts_fit_a_table),
		cmocka_unit_test(rows_are_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
