/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes follow from -m and the flash; a store that can't be opened says why. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void assert_refused(struct harness *h, int code, const char *option, const char *range)
{
	int result = harness_try_open(h);

	if (result == FS_OK)
		harness_close(h);
	assert_int_equal(result, code);
	if (!strstr(h->reason, option) || (range && !strstr(h->reason, range)))
		fail_msg("the reason does not name %s and %s: %s", option, range ? range : "-", h->reason);
}

/* ---- refusals -------------------------------------------------------------------------------- */

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

static void a_path_that_can_not_be_is_refused_with_its_name(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = "/nowhere/at/all/flash";
	assert_refused(h, FS_ESYS, "flash-path", "/nowhere/at/all/flash");
	assert_non_null(strstr(h->reason, "No such file"));
	h->config.flash_path = "/tmp";
	assert_true(harness_try_open(h) != FS_OK);
	assert_non_null(strstr(h->reason, "flash-path"));
	h->config.flash_path = "/dev/null";
	assert_true(harness_try_open(h) != FS_OK);
	assert_non_null(strstr(h->reason, "flash-path"));
}

static void a_second_opener_is_refused(void **state)
{
	struct harness *h = *state;
	struct store *second = NULL;
	char reason[256];

	harness_open(h);
	assert_int_equal(store_open(&second, &h->config, reason), FS_EBUSY);
	assert_non_null(strstr(reason, h->path));
	set_on_flash(h, "key", "value"); /* the first is none the worse */
	assert_value(h, "key", "value");
}

static void a_second_process_is_refused(void **state)
{
	struct harness *h = *state;
	int status;

	harness_open(h);
	pid_t child = fork();
	if (child == 0) {
		struct store *second = NULL;
		char reason[256];

		_exit(store_open(&second, &h->config, reason) == FS_EBUSY ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void after_a_refusal_the_same_path_opens(void **state)
{
	struct harness *h = *state;

	h->config.segment_bytes = KIB(32);
	assert_refused(h, FS_ERANGE, "segment-size", NULL);
	h->config.segment_bytes = KIB(64);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

/* ---- sizes ----------------------------------------------------------------------------------- */

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
/* Segments of an operator's choice may leave too little for objects: better no start than a cache that keeps nothing. */
static void too_little_memory_for_the_segments_is_refused_with_what_is_enough(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	unsigned enough = 0;

	h->config.memory_bytes = MIB(4);
	h->config.segment_bytes = KIB(64);
	h->config.flash_bytes = MIB(4096); /* in so many segments that their table is larger than -m */
	assert_refused(h, FS_ERANGE, "memory-limit: 4.00 MiB", "segments of 64 KiB");
	assert_int_equal(sscanf(strstr(h->reason, ", -m "), ", -m %u", &enough), 1);
	assert_in_range(enough, 5, 32);
	h->config.memory_bytes = MIB(enough);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_true(status.dram_budget >= MIB(enough) / 4);
}

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

static void tags_take_all_bits_left_over_unless_fewer_are_asked_for(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.info.segments, 16);
	assert_int_equal(status.tag_bits, 32 - 7 - 5); /* 16 numbers and "empty" take five bits */
	harness_close(h);
	h->config.tag_bits = 3;
	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.tag_bits, 3);
}

static void a_file_of_other_content_is_refused(void **state)
{
	struct harness *h = *state;
	char junk[4096];
	int fd = open(h->path, O_CREAT | O_WRONLY, 0600);

	memset(junk, 'j', sizeof(junk));
	for (int i = 0; i < 300; i++)
		assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	assert_refused(h, FS_EFOREIGN, "flash-path", "remove the file");
	assert_non_null(strstr(h->reason, h->path));
	unlink(h->path);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

static void the_same_file_opens_again_and_again_with_other_sizes(void **state)
{
	struct harness *h = *state;

	for (unsigned i = 1; i <= 4; i++) {
		h->config.segment_bytes = KIB(64) * i;
		h->config.functions = 4 * i;
		harness_open(h);
		assert_missing(h, "key");
		set_on_flash(h, "key", "value");
		assert_value(h, "key", "value");
		harness_close(h);
	}
}

static void threads_start_and_stop_as_often_as_asked(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_start(h->store), FS_OK);
		set(h, "key", "value");
		store_stop(h->store);
	}
	assert_value(h, "key", "value");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_segment_size_out_of_range_is_refused_with_the_range),
		TEST(a_flash_of_less_than_two_segments_is_refused),
		TEST(a_path_that_can_not_be_is_refused_with_its_name),
		TEST(a_second_opener_is_refused),
		TEST(a_second_process_is_refused),
		TEST(after_a_refusal_the_same_path_opens),
		TEST(a_flash_with_more_objects_than_memory_can_index_is_used_all_the_same),
		TEST(an_enormous_flash_just_starts),
		TEST(the_default_segment_follows_from_memory_and_is_a_mebibyte_unless_that_is_much_of_it),
		TEST(too_little_memory_for_the_segments_is_refused_with_what_is_enough),
		TEST(the_least_memory_starts_with_default_segments),
		TEST(tags_take_all_bits_left_over_unless_fewer_are_asked_for),
		TEST(a_file_of_other_content_is_refused),
		TEST(the_same_file_opens_again_and_again_with_other_sizes),
		TEST(threads_start_and_stop_as_often_as_asked),
	};

	return cmocka_run_group_tests_name("store: opening", tests, NULL, NULL);
}
