/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes follow from -m and the flash. */
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
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

/* ---- refusals -------------------------------------------------------------------------------- */

static void a_segment_size_out_of_range_is_refused_with_the_range(void **state)
{
	struct harness *h = *state;

	h->config.segment_bytes = KIB(32);
	assert_refused(h, FS_ERANGE, "segment-size 32 KiB", "64 KiB");
	h->config.segment_bytes = MIB(4); /* more than a quarter of -m */
	assert_refused(h, FS_ERANGE, "segment-size 4096 KiB", "2048 KiB");
	h->config.segment_bytes = MIB(1024);
	assert_refused(h, FS_ERANGE, "segment-size 1048576 KiB", "2048 KiB");
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

/* sizing_make without a file: the device's size is given. */
static int make_for(uint64_t memory, uint64_t flash, uint64_t segment, struct sizing *out, char reason[256])
{
	struct dev device = { 0 }; /* only the fact that there is one counts */
	struct store_config config;

	store_config_init(&config);
	config.memory_bytes = memory;
	config.flash_path = "a device of the test";
	config.flash_device = &device;
	config.flash_bytes = flash;
	config.segment_bytes = segment;
	memset(out, 0, sizeof(*out));
	reason[0] = '\0';
	return sizing_make(&config, out, reason);
}

static void what_is_no_flash_is_refused_with_its_path_and_the_reason(void **state)
{
	struct store_config config;
	struct sizing sizing;
	char reason[256];

	(void)state;
	store_config_init(&config);
	config.memory_bytes = MIB(8);
	config.flash_path = "/tmp"; /* a folder */
	assert_int_equal(sizing_make(&config, &sizing, reason), FS_EINVAL);
	assert_string_equal(reason, "flash-path /tmp: is neither a regular file nor a block device");
	config.flash_path = "/nowhere/at/all/flash";
	assert_int_equal(sizing_make(&config, &sizing, reason), FS_ERANGE);
	assert_non_null(strstr(reason, "/nowhere/at/all/flash: is missing or empty: --flash-size"));
}

/* What memory of 64 GiB can serve has no room on any disk; what the file has already, it keeps. */
static void a_file_without_room_is_sized_by_what_it_has(void **state)
{
	struct harness *h = *state;
	struct sizing sizing = { 0 };
	int fd = open(h->path, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	h->config.memory_bytes = MIB(64 << 10);
	h->config.segment_bytes = 0;
	h->config.flash_bytes = 1ull << 50;
	assert_int_equal(sizing_make(&h->config, &sizing, h->reason), FS_OK);
	assert_true(sizing.flash_used == sizing.flash_asked); /* nothing fits: the start will say so */
	if (posix_fallocate(fd, 0, MIB(32)) != 0 || fsync(fd) != 0) {
		close(fd);
		skip();
	}
	close(fd);
	assert_int_equal(sizing_make(&h->config, &sizing, h->reason), FS_OK);
	assert_string_equal(h->reason, "");
	assert_true(sizing.flash_used == MIB(32) && sizing.flash_asked > MIB(1 << 20));
	assert_true(sizing.segments >= 2 && sizing.segments * sizing.segment_bytes <= MIB(32));
	assert_int_equal(truncate(h->path, SEG_PAGE), 0); /* less than two segments: as if it had nothing */
	assert_int_equal(sizing_make(&h->config, &sizing, h->reason), FS_OK);
	assert_string_equal(h->reason, "");
	assert_true(sizing.flash_used == sizing.flash_asked && sizing.flash_used > MIB(1 << 20));
}

static void one_segment_less_than_two_is_refused_and_two_are_taken(void **state)
{
	struct sizing sizing;
	char reason[256];
	uint64_t flash = KIB(128);

	(void)state;
	while (seg_count_for(flash, KIB(64)) < 2)
		flash += SEG_PAGE;
	assert_int_equal(make_for(MIB(8), flash - SEG_PAGE, KIB(64), &sizing, reason), FS_ERANGE);
	assert_non_null(strstr(reason, "at least two segments of 64 KiB"));
	assert_int_equal(make_for(MIB(8), flash, KIB(64), &sizing, reason), FS_OK);
	assert_int_equal(sizing.segments, 2);
}

static void a_segment_of_a_quarter_of_memory_is_taken_and_a_page_more_is_not(void **state)
{
	struct sizing sizing;
	char reason[256];

	(void)state;
	assert_int_equal(make_for(MIB(8), MIB(64), MIB(2) + SEG_PAGE, &sizing, reason), FS_ERANGE);
	assert_int_equal(make_for(MIB(8), MIB(64), MIB(2), &sizing, reason), FS_OK);
	assert_int_equal(sizing.segment_bytes, MIB(2));
	assert_int_equal(make_for(MIB(8), MIB(64), MIB(2) + SEG_PAGE - 1, &sizing, reason), FS_OK);
	assert_int_equal(sizing.segment_bytes, MIB(2)); /* whole pages */
	assert_int_equal(make_for(MIB(8), MIB(64), KIB(64) - 1, &sizing, reason), FS_ERANGE);
	assert_int_equal(make_for(64 * MIB(1024), 64 * MIB(1024), MIB(512) + SEG_PAGE, &sizing, reason), FS_ERANGE);
	assert_int_equal(make_for(64 * MIB(1024), 64 * MIB(1024), MIB(512), &sizing, reason), FS_OK);
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

static void the_longest_record_with_a_slot_is_a_64th_of_the_segment_and_64_kib_at_most(void **state)
{
	(void)state;
	assert_int_equal(slot_record_max(KIB(64)), KIB(1));
	assert_int_equal(slot_record_max(MIB(4) - SEG_PAGE), KIB(64) - 64);
	assert_int_equal(slot_record_max(MIB(4)), KIB(64));
	assert_int_equal(slot_record_max(MIB(512)), KIB(64));
}

static void a_given_bound_of_slots_is_taken_and_makes_room_for_as_many_large_objects(void **state)
{
	struct dev device = { 0 };
	struct store_config config;
	struct sizing sizing;
	uint32_t extents;
	char reason[256];

	(void)state;
	store_config_init(&config);
	config.memory_bytes = MIB(64);
	config.flash_path = "a device of the test";
	config.flash_device = &device;
	config.flash_bytes = MIB(256);
	config.segment_bytes = MIB(4);
	assert_int_equal(sizing_make(&config, &sizing, reason), FS_OK);
	assert_int_equal(sizing.slot_record_bytes, KIB(64));
	extents = sizing.extents_most;
	config.slot_record_bytes = KIB(16);
	assert_int_equal(sizing_make(&config, &sizing, reason), FS_OK);
	assert_int_equal(sizing.slot_record_bytes, KIB(16));
	assert_true(sizing.extents_most > extents);
}

/* From a memory of 1 MiB to one of 1 TiB, and a flash of 1 MiB to one of 1 PiB: what follows is within its bounds. */
static void default_sizes_are_within_their_bounds_for_each_memory_and_flash(void **state)
{
	struct sizing sizing;
	char reason[256];

	(void)state;
	for (uint64_t memory = MIB(1); memory <= 1ull << 40; memory += memory / 2) {
		for (uint64_t flash = MIB(1); flash <= 1ull << 50; flash += flash / 3 * 2) {
			assert_int_equal(make_for(memory, flash, 0, &sizing, reason), FS_OK);
			assert_in_range(sizing.segment_bytes, SEG_MIN_BYTES, SEG_MAX_BYTES);
			assert_int_equal(sizing.segment_bytes % SEG_PAGE, 0);
			assert_true(sizing.segment_bytes <= memory / 8);
			assert_in_range(sizing.segments, 2, SEG_MAX_SEGMENTS);
			assert_int_equal(sizing.flash_given, flash);
			assert_true(sizing.flash_used <= flash);
			assert_true(sizing.segments * sizing.segment_bytes <= sizing.flash_used);
			assert_true(sizing.buckets * FIDX_BUCKET_SLOTS * sizeof(uint32_t) <= memory / 4);
			assert_in_range(sizing.buckets_most, sizing.buckets, UINT32_MAX);
			assert_true(sizing.memory_for_all > 0);
			assert_in_range(sizing.extents_most, 64, 1u << 26);
		}
	}
}

/* Segments of the operator's size: flash that the most of them can't cover stays unused. */
static void flash_beyond_the_most_segments_stays_unused(void **state)
{
	struct sizing sizing;
	char reason[256];

	(void)state;
	assert_int_equal(make_for(MIB(1024), 1ull << 40, KIB(64), &sizing, reason), FS_OK);
	assert_int_equal(sizing.segments, SEG_MAX_SEGMENTS);
	assert_in_range(sizing.flash_used, SEG_MAX_SEGMENTS * KIB(64), SEG_MAX_SEGMENTS * KIB(64) + MIB(2));
	assert_int_equal(sizing.flash_given, 1ull << 40);
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
static unsigned said_megabytes; /* of the start's line; 0: it names none */

static bool note_megabytes(const struct log_record *record)
{
	const char *found = strstr(record->text, "it takes -m ");

	if (found)
		said_megabytes = (unsigned)strtoul(found + strlen("it takes -m "), NULL, 10);
	return true;
}

static unsigned megabytes_said_with(struct harness *h, unsigned megabytes)
{
	said_megabytes = 0;
	h->config.memory_bytes = MIB(megabytes);
	log_set_level(LOG_LEVEL_NOTICE);
	log_set_sink(note_megabytes);
	harness_open(h);
	log_set_sink(NULL);
	harness_close(h);
	return said_megabytes;
}

static void the_start_names_the_least_memory_that_uses_all_of_the_flash(void **state)
{
	struct harness *h = *state;
	unsigned least;

	h->config.flash_bytes = MIB(32);
	h->config.flash_object_bytes = 34;
	least = megabytes_said_with(h, 6);
	assert_true(least > 6);
	assert_int_equal(megabytes_said_with(h, least - 1), least);
	assert_int_equal(megabytes_said_with(h, least), 0);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_segment_size_out_of_range_is_refused_with_the_range),
		TEST(a_flash_of_less_than_two_segments_is_refused),
		TEST(what_is_no_flash_is_refused_with_its_path_and_the_reason),
		TEST(a_file_without_room_is_sized_by_what_it_has),
		TEST(one_segment_less_than_two_is_refused_and_two_are_taken),
		TEST(a_segment_of_a_quarter_of_memory_is_taken_and_a_page_more_is_not),
		TEST(the_longest_record_with_a_slot_is_a_64th_of_the_segment_and_64_kib_at_most),
		TEST(a_given_bound_of_slots_is_taken_and_makes_room_for_as_many_large_objects),
		TEST(default_sizes_are_within_their_bounds_for_each_memory_and_flash),
		TEST(flash_beyond_the_most_segments_stays_unused),
		TEST(a_flash_with_more_objects_than_memory_can_index_is_used_all_the_same),
		TEST(an_enormous_flash_just_starts),
		TEST(the_default_segment_follows_from_memory_and_is_a_mebibyte_unless_that_is_much_of_it),
		TEST(the_start_names_the_least_memory_that_uses_all_of_the_flash),
		TEST(the_least_memory_starts_with_default_segments),
	};

	return cmocka_run_group_tests_name("store: sizes", tests, NULL, NULL);
}
