/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes follow from -m and the flash. */
#include "tests/unit/server/store/harness.h"

static void assert_refused(struct harness *h, int code, const char *option, const char *range)
{
	int result = harness_try_open(h);

	if (result == FS_OK)
		harness_close(h);
	assert_int_equal(result, code);
	if (!strstr(h->reason, option) || (range && !strstr(h->reason, range)))
		fail_msg("the reason does not name %s and %s: %s", option, range ? range : "-", h->reason);
}

/* ---- refusals ------------------------------------------------------------------------------------ */

static void a_segment_size_out_of_range_is_refused_with_the_range(void **state)
{
	struct harness *h = *state;

	h->config.segment_bytes = KIB(32);
	assert_refused(h, FS_ERANGE, "segment-size", "65536");
	h->config.segment_bytes = MIB(4); /* more than a quarter of -m */
	assert_refused(h, FS_ERANGE, "segment-size", "2097152");
	h->config.segment_bytes = MIB(1024);
	assert_refused(h, FS_ERANGE, "segment-size", "2097152");
}

static void a_flash_of_less_than_two_segments_is_refused(void **state)
{
	struct harness *h = *state;

	h->config.flash_bytes = KIB(128);
	assert_refused(h, FS_ERANGE, "flash-size", "two segments");
	h->config.flash_bytes = 0;
	assert_true(harness_try_open(h) != FS_OK);
	assert_non_null(strstr(h->reason, "flash-"));
}

/* ---- sizes --------------------------------------------------------------------------------------- */

static void a_flash_with_more_objects_than_memory_can_index_is_used_all_the_same(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	h->config.memory_bytes = MIB(4);
	h->config.flash_bytes = MIB(64); /* two million objects: 8 MiB of index */
	harness_open(h);
	store_get_status(h->store, &status);
	assert_in_range(status.info.segments * status.info.segment_bytes, MIB(60), MIB(64));
	assert_in_range(status.index.slots * sizeof(uint32_t), KIB(900), MIB(1)); /* a quarter of -m for a guess */
	assert_true(status.dram_budget >= MIB(4) / 8);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

static void an_enormous_flash_just_starts(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(1);
	h->config.segment_bytes = 0;
	h->config.flash_bytes = 1ull << 40; /* -m 64 and ext_path of a terabyte is a real command line */
	harness_open(h);
	set(h, "key", "value");
	assert_value(h, "key", "value");
}

static void the_default_segment_follows_from_memory_and_is_a_mebibyte_unless_that_is_much_of_it(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	h->config.memory_bytes = MIB(64);
	h->config.segment_bytes = 0;
	h->config.flash_bytes = MIB(20);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.info.segment_bytes, MIB(2));
	harness_close(h);
	h->config.memory_bytes = MIB(16);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.info.segment_bytes, MIB(1));
	harness_close(h);
	h->config.memory_bytes = MIB(4);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.info.segment_bytes, KIB(256));
}

/* An operator who gave no segment size is not to be told that it is wrong. */
static void the_least_memory_starts_with_default_segments(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	h->config.memory_bytes = MIB(2);
	h->config.segment_bytes = 0;
	h->config.flash_bytes = MIB(4);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_in_range(status.info.segment_bytes, KIB(64), MIB(2) / 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_segment_size_out_of_range_is_refused_with_the_range),
		TEST(a_flash_of_less_than_two_segments_is_refused),
		TEST(a_flash_with_more_objects_than_memory_can_index_is_used_all_the_same),
		TEST(an_enormous_flash_just_starts),
		TEST(the_default_segment_follows_from_memory_and_is_a_mebibyte_unless_that_is_much_of_it),
		TEST(the_least_memory_starts_with_default_segments),
	};

	return cmocka_run_group_tests_name("store: sizes", tests, NULL, NULL);
}
