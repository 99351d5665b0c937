/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in /metrics: what Prometheus takes, each once, and as its conventions have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/metrics.h"

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

/* [a-z][a-z0-9_]*, without a double underscore: what all of ours are of what is allowed. */
static bool valid(const char *name, size_t length)
{
	if (length == 0 || name[0] < 'a' || name[0] > 'z')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '_') ||
		    (name[i] == '_' && name[i - 1] == '_'))
			return false;
	return name[length - 1] != '_';
}

static const char *name_of(int number)
{
	return number < METRIC_COUNT ? metric_info((enum metric)number)->name
				     : metric_counter_name((enum ctr)(number - METRIC_COUNT));
}

static void the_check_of_names_checks(void **state)
{
	static const char *const wrong[] = { "", "_a", "a_", "a__b", "A", "a-b", "1a", "a b" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(valid(wrong[i], strlen(wrong[i])));
	assert_true(valid("a_b1", 4));
}

static void names_are_valid_and_ours(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT + CTR_COUNT; i++) {
		if (!valid(name_of(i), strlen(name_of(i))) || strncmp(name_of(i), "flashield_", 10) != 0)
			fail_msg("%s", name_of(i));
	}
}

/* What a histogram is shown as takes three names. */
static void each_name_is_there_once(void **state)
{
	static const char *const suffixes[] = { "", "_count", "_sum", "_bucket" };
	char taken[128];

	(void)state;
	for (int i = 0; i < METRIC_COUNT + CTR_COUNT; i++)
		for (int j = 0; j < METRIC_COUNT + CTR_COUNT; j++) {
			bool histogram = i < METRIC_COUNT && metric_info((enum metric)i)->type == METRIC_TYPE_HISTOGRAM;

			for (int k = 0; k < (histogram ? 4 : 1); k++) {
				snprintf(taken, sizeof(taken), "%s%s", name_of(i), suffixes[k]);
				if ((i != j || k > 0) && strcmp(taken, name_of(j)) == 0)
					fail_msg("%s", taken);
			}
		}
}

/* _total says counter, and nothing else is one; _count, _sum and _bucket are for histograms. */
static void ends_tell_the_type(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *info = metric_info((enum metric)i);

		if (ends_with(info->name, "_total") != (info->type == METRIC_TYPE_COUNTER))
			fail_msg("%s", info->name);
	}
	for (int i = 0; i < METRIC_COUNT + CTR_COUNT; i++)
		if (ends_with(name_of(i), "_count") || ends_with(name_of(i), "_sum") ||
		    ends_with(name_of(i), "_bucket") || ends_with(name_of(i), "_total_total") ||
		    ends_with(name_of(i), "_num_total"))
			fail_msg("%s", name_of(i));
}

static void counters_are_named_after_their_rows(void **state)
{
	(void)state;
	assert_string_equal(metric_counter_name(CTR_get_hits), "flashield_get_hits_total");
	assert_string_equal(metric_counter_name(CTR_total_connections), "flashield_connections_total");
	assert_string_equal(metric_counter_name(CTR_total_items), "flashield_items_total");
	assert_string_equal(metric_counter_name(CTR_listen_disabled_num), "flashield_listen_disabled_total");
}

static void durations_are_in_seconds_and_sizes_in_bytes(void **state)
{
	static const char *const wrong[] = { "_ms", "_us", "_ns", "_milliseconds", "_kb", "_mb", "_percent", "_time" };

	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const char *name = metric_info((enum metric)i)->name;

		for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++)
			if (ends_with(name, wrong[j]))
				fail_msg("%s", name);
		if (metric_info((enum metric)i)->type == METRIC_TYPE_HISTOGRAM)
			assert_true(ends_with(name, "_seconds"));
	}
}

/* "le" is a histogram's own. Help is a line. */
static void labels_and_help(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *info = metric_info((enum metric)i);
		const char *label = info->labels;

		assert_true(info->text[0]);
		assert_null(strchr(info->text, '\n'));
		while (*label) {
			size_t length = strcspn(label, ",");

			if (!valid(label, length) || (length == 2 && memcmp(label, "le", 2) == 0))
				fail_msg("%s: %s", info->name, label);
			label += length + (label[length] == ',');
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_check_of_names_checks),
		cmocka_unit_test(names_are_valid_and_ours),
		cmocka_unit_test(each_name_is_there_once),
		cmocka_unit_test(ends_tell_the_type),
		cmocka_unit_test(counters_are_named_after_their_rows),
		cmocka_unit_test(durations_are_in_seconds_and_sizes_in_bytes),
		cmocka_unit_test(labels_and_help),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
