/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device's health makes of records that fail their check, and what the log says of it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)

static FILE *caught;
static int standard_error = -1;

static void catch_log(void)
{
	caught = tmpfile();
	assert_non_null(caught);
	fflush(stderr);
	standard_error = dup(STDERR_FILENO);
	assert_true(standard_error >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0);
}

/* Ends the catching: the lines with this text, the last one in line. */
static unsigned release_log(const char *text, char line[256])
{
	unsigned count = 0;
	char next[256];

	assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
	close(standard_error);
	rewind(caught);
	line[0] = 0;
	while (fgets(next, sizeof(next), caught))
		if (strstr(next, text)) {
			count++;
			memcpy(line, next, sizeof(next));
		}
	fclose(caught);
	return count;
}

static bool is_offline(const struct flash *flash, const char *reason)
{
	struct seg_status status;

	seg_get_status(flash->seg, &status);
	return status.offline && strstr(status.offline_reason, reason);
}

static void corrupt_reads_beyond_the_budget_take_the_device_offline(void **state)
{
	struct flash flash;
	char line[256];

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	catch_log();
	for (unsigned i = 0; i < flash.config.error_budget; i++)
		seg_report_corrupt(flash.seg, 1, i);
	assert_false(health_offline(flash.seg));
	seg_report_corrupt(flash.seg, 1, 99);
	seg_report_corrupt(flash.seg, 1, 100);
	assert_int_equal(release_log("flash is offline", line), 1);
	assert_non_null(strstr(line, fs_strerror(FS_ECORRUPT)));
	assert_true(is_offline(&flash, fs_strerror(FS_ECORRUPT)));
	clk_scripted_advance(&flash.clock, 1000000);
	assert_true(health_online(flash.seg));
	flash_close(&flash);
}

static void corrupt_reads_far_apart_are_no_reason(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned i = 0; i < 50; i++) {
		seg_report_corrupt(flash.seg, 0, i);
		clk_scripted_advance(&flash.clock, 16000000);
	}
	log_set_level(LOG_LEVEL_NOTICE);
	assert_false(health_offline(flash.seg));
	flash_close(&flash);
}

static void the_log_names_corrupt_reads_once_a_minute(void **state)
{
	struct flash flash;
	char line[256];

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	flash.seg->health.budget = HEALTH_ERRORS_MAX;
	catch_log();
	seg_report_corrupt(flash.seg, 1, 8192);
	assert_int_equal(release_log("fails its check", line), 1);
	assert_non_null(strstr(line, "line: 1, the latest in segment 1 at offset 8192"));
	catch_log();
	clk_scripted_advance(&flash.clock, 59000000);
	for (unsigned i = 0; i < 20; i++)
		seg_report_corrupt(flash.seg, 0, i);
	assert_int_equal(release_log("fails its check", line), 0);
	catch_log();
	clk_scripted_advance(&flash.clock, 1000000);
	seg_report_corrupt(flash.seg, 0, 4097);
	seg_report_corrupt(flash.seg, 0, 5000);
	assert_int_equal(release_log("fails its check", line), 1);
	assert_non_null(strstr(line, "line: 21, the latest in segment 0 at offset 4097"));
	flash_close(&flash);
}

/* A segment that was written says nothing about reads: the pauses grow while these fail again and again. A time without
   failures ends that. */
static void the_back_off_grows_while_reads_fail_though_segments_are_written(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 10, SEGMENT, 16, NULL), FS_OK);
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned round = 0; round < 9; round++) {
		uint64_t seconds = round < 6 ? 1u << round : 60;
		uint32_t segment;
		struct batch batch;

		for (unsigned i = 0; i <= flash.config.error_budget; i++)
			health_read_error(flash.seg, 0, 5);
		assert_true(is_offline(&flash, "a read failed"));
		clk_scripted_advance(&flash.clock, seconds * 1000000 - 1000);
		assert_false(health_online(flash.seg));
		clk_scripted_advance(&flash.clock, 1000);
		batch_make(&batch, 1, 100, 10, 20);
		assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
		batch_fini(&batch);
		assert_true(health_online(flash.seg));
	}
	clk_scripted_advance(&flash.clock, 61000000);
	health_silent(flash.seg, 10);
	clk_scripted_advance(&flash.clock, 1000000);
	assert_true(health_online(flash.seg));
	log_set_level(LOG_LEVEL_NOTICE);
	flash_close(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corrupt_reads_beyond_the_budget_take_the_device_offline),
		cmocka_unit_test(corrupt_reads_far_apart_are_no_reason),
		cmocka_unit_test(the_log_names_corrupt_reads_once_a_minute),
		cmocka_unit_test(the_back_off_grows_while_reads_fail_though_segments_are_written),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
