/* SPDX-License-Identifier: BSD-3-Clause */
/* The study "device": drives' counters, the drive below, what may be overwritten, and what is written. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "tools/bench/device.h"
#include "tools/bench/smart.h"

#define MIB (1u << 20)
#define GIB 1073741824.0
#define PAGE 4096u

/* ---- counters: what smartctl and nvme print --------------------------------------------------- */

#define ATTRIBUTE(id, name, raw) \
	"{\"id\": " #id ", \"name\": \"" name "\", \"value\": 100, \"worst\": 100, \"thresh\": 0, " \
	"\"when_failed\": \"\", \"flags\": {\"value\": 50, \"string\": \"-O--CK \"}, " \
	"\"raw\": {\"value\": " #raw ", \"string\": \"" #raw "\"}}"
#define SMARTCTL(exit_status) \
	"\"json_format_version\": [1, 0], \"smartctl\": {\"version\": [7, 3], " \
	"\"exit_status\": " #exit_status "}, "
#define ATA(model, attributes) \
	"{" SMARTCTL(0) "\"model_name\": \"" model "\", \"logical_block_size\": 512, " \
			"\"ata_smart_attributes\": {\"revision\": 1, \"table\": [" attributes "]}}"

static struct smart_counters parsed(const char *json)
{
	struct smart_counters counters;
	char why[SMART_WHY_BYTES];

	smart_clear(&counters);
	assert_int_equal(smart_parse_smartctl(json, &counters, why), FS_OK);
	return counters;
}

static void assert_amplification(const struct smart_counters *before, const struct smart_counters *after,
				 double expected)
{
	assert_true(fabs(smart_amplification(before, after) - expected) < 1e-9);
}

static void test_what_is_no_json_object_is_refused(void **state)
{
	static const char *const texts[] = { "", "[]", "{", "smartctl 7.3 2022-02-28", "{} {}" };
	struct smart_counters counters;
	char why[SMART_WHY_BYTES];

	(void)state;
	smart_clear(&counters);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(smart_parse_smartctl(texts[i], &counters, why), FS_ECORRUPT);
		assert_int_equal(smart_parse_ocp(texts[i], &counters), FS_ECORRUPT);
	}
	assert_false(smart_counts_nand(&counters));
}

static void test_a_drive_that_could_not_be_asked_says_why(void **state)
{
	static const char json[] =
		"{\"smartctl\": {\"exit_status\": 2, \"messages\": [{\"string\": \"Permission denied\", "
		"\"severity\": \"error\"}]}}";
	struct smart_counters counters;
	char why[SMART_WHY_BYTES];

	(void)state;
	smart_clear(&counters);
	assert_int_equal(smart_parse_smartctl(json, &counters, why), FS_EOFFLINE);
	assert_non_null(strstr(why, "Permission denied"));
}

static void test_values_that_are_no_counts_are_left_out(void **state)
{
	struct smart_counters counters =
		parsed("{" SMARTCTL(4) "\"model_name\": 7, \"ata_smart_attributes\": {\"table\": [null, 3, "
				       "{\"id\": 241}, {\"name\": \"Total_LBAs_Written\"}, "
				       "{\"name\": \"Total_LBAs_Written\", \"raw\": {\"value\": \"many\"}}, "
				       "{\"name\": \"NAND_Writes_1GiB\", \"raw\": {\"value\": -5}}]}}");

	(void)state;
	assert_true(isnan(counters.host_bytes));
	assert_true(isnan(counters.nand_bytes));
	assert_string_equal(counters.model, "");
}

/* 233 is a wear indicator on one drive and bytes on another: the name tells, not the number. */
static void test_numbers_without_a_known_name_count_nothing(void **state)
{
	struct smart_counters counters = parsed(
		ATA("SSD", ATTRIBUTE(233, "Media_Wearout_Indicator", 99) "," ATTRIBUTE(249, "Unknown_Attribute", 7)));

	(void)state;
	assert_false(smart_counts_nand(&counters));
	assert_true(isnan(counters.host_bytes));
}

static void test_a_drive_that_counts_the_host_alone(void **state)
{
	struct smart_counters before = parsed(ATA("SSD", ATTRIBUTE(241, "Total_LBAs_Written", 1000)));
	struct smart_counters after = parsed(ATA("SSD", ATTRIBUTE(241, "Total_LBAs_Written", 3000)));

	(void)state;
	assert_true(smart_host_bytes(&before, &after) == 2000 * 512.0);
	assert_false(smart_counts_nand(&after));
	assert_true(isnan(smart_amplification(&before, &after)));
}

static void test_a_drive_in_the_paper_s_manner(void **state)
{
	struct smart_counters before =
		parsed(ATA("INTEL SSDSC2BW480H6",
			   ATTRIBUTE(225, "Host_Writes_32MiB", 6400) "," ATTRIBUTE(
				   241, "Host_Writes_32MiB", 6400) "," ATTRIBUTE(249, "NAND_Writes_1GiB", 300)));
	struct smart_counters after =
		parsed(ATA("INTEL SSDSC2BW480H6",
			   ATTRIBUTE(225, "Host_Writes_32MiB", 9600) "," ATTRIBUTE(
				   241, "Host_Writes_32MiB", 9600) "," ATTRIBUTE(249, "NAND_Writes_1GiB", 1100)));

	(void)state;
	assert_string_equal(after.model, "INTEL SSDSC2BW480H6");
	assert_true(after.host_bytes == 300 * GIB); /* told twice, counted once */
	assert_true(after.step_bytes == GIB);
	assert_amplification(&before, &after, 8);
}

static void test_two_kinds_of_nand_are_summed(void **state)
{
	struct smart_counters before =
		parsed(ATA("WDC", ATTRIBUTE(233, "NAND_GB_Written_TLC", 100) "," ATTRIBUTE(
					  234, "NAND_GB_Written_SLC", 200) "," ATTRIBUTE(241, "Host_Writes_GiB", 50)));
	struct smart_counters after =
		parsed(ATA("WDC", ATTRIBUTE(233, "NAND_GB_Written_TLC", 120) "," ATTRIBUTE(
					  234, "NAND_GB_Written_SLC", 210) "," ATTRIBUTE(241, "Host_Writes_GiB", 60)));

	(void)state;
	assert_amplification(&before, &after, 3);
}

static void test_pages_of_an_unknown_size_make_a_ratio(void **state)
{
	struct smart_counters before =
		parsed(ATA("Micron", ATTRIBUTE(246, "Total_LBAs_Written", 5000) "," ATTRIBUTE(
					     247, "Host_Program_Page_Count",
					     100) "," ATTRIBUTE(248, "FTL_Program_Page_Count", 1000)));
	struct smart_counters after =
		parsed(ATA("Micron", ATTRIBUTE(246, "Total_LBAs_Written", 6000) "," ATTRIBUTE(
					     247, "Host_Program_Page_Count",
					     200) "," ATTRIBUTE(248, "FTL_Program_Page_Count", 1050)));

	(void)state;
	assert_true(smart_counts_nand(&after));
	assert_amplification(&before, &after, 1.5);
	assert_true(smart_host_bytes(&before, &after) == 1000 * 512.0);
}

#define NVME(units) \
	"{" SMARTCTL(0) "\"model_name\": \"NVMe drive\", \"nvme_smart_health_information_log\": " \
			"{\"critical_warning\": 0, \"data_units_read\": 5, \"data_units_written\": " #units "}}"

static void test_nvme_counts_the_host_and_the_open_compute_log_the_nand(void **state)
{
	struct smart_counters before = parsed(NVME(1000)), after = parsed(NVME(3000));

	(void)state;
	assert_false(smart_counts_nand(&after));
	assert_true(smart_host_bytes(&before, &after) == 2000 * 512000.0);
	assert_int_equal(smart_parse_ocp("{\"Physical media units written\": {\"hi\": 0, \"lo\": 512000000}}", &before),
			 FS_OK);
	assert_int_equal(smart_parse_ocp("{\"physical_media_units_written\": 1792000000}", &after), FS_OK);
	assert_amplification(&before, &after, 1.25);
}

static void test_an_open_compute_log_without_the_count_is_refused(void **state)
{
	struct smart_counters counters;

	(void)state;
	smart_clear(&counters);
	assert_int_equal(smart_parse_ocp("{\"Physical media units read\": {\"hi\": 0, \"lo\": 1}}", &counters),
			 FS_ECORRUPT);
	assert_int_equal(smart_parse_ocp("{\"Physical media units written\": {\"hi\": 0}}", &counters), FS_ECORRUPT);
	assert_true(isnan(counters.nand_bytes));
}

static void test_counters_that_stand_still_make_no_ratio(void **state)
{
	struct smart_counters counters =
		parsed(ATA("SSD", ATTRIBUTE(241, "Host_Writes_GiB", 5) "," ATTRIBUTE(233, "Flash_Writes_GiB", 9)));

	(void)state;
	assert_true(isnan(smart_amplification(&counters, &counters)));
}

/* ---- the drive below --------------------------------------------------------------------------- */

static char folder[] = "/tmp/flashield-device-XXXXXX";

/* Runs a shell line in the folder; $1 is the folder. */
static void shell(const char *line)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && %s", folder, line);
	assert_int_equal(system(command), 0);
}

static void assert_drive(unsigned major, unsigned minor, int code, const char *expected)
{
	char sysfs[64], name[SMART_NAME_BYTES];

	snprintf(sysfs, sizeof(sysfs), "%s/sys", folder);
	assert_int_equal(smart_find_drive(sysfs, major, minor, name), code);
	if (expected)
		assert_string_equal(name, expected);
}

static void test_finds_the_drive_below(void **state)
{
	(void)state;
	shell("mkdir -p sys/dev/block sys/class/block sys/devices/nvme0n1/slaves sys/devices/nvme0n1/nvme0n1p2 "
	      "sys/devices/sda/slaves sys/devices/dm-0/slaves/nvme0n1p2 sys/devices/dm-1/slaves/dm-0 "
	      "sys/devices/md0/slaves/sda sys/devices/md0/slaves/nvme0n1p2 && "
	      "touch sys/devices/nvme0n1/nvme0n1p2/partition");
	shell("cd sys/dev/block && ln -s ../../devices/nvme0n1 259:0 && "
	      "ln -s ../../devices/nvme0n1/nvme0n1p2 259:2 && ln -s ../../devices/sda 8:0 && "
	      "ln -s ../../devices/dm-1 252:1 && ln -s ../../devices/md0 9:0");
	shell("cd sys/class/block && ln -s ../../devices/nvme0n1/nvme0n1p2 . && ln -s ../../devices/dm-0 . && "
	      "ln -s ../../devices/sda .");
	assert_drive(0, 41, FS_ENOTFOUND, NULL); /* no block device: btrfs, overlay, tmpfs */
	assert_drive(9, 0, FS_ENOTFOUND, NULL); /* several drives */
	assert_drive(8, 0, FS_OK, "sda");
	assert_drive(259, 0, FS_OK, "nvme0n1");
	assert_drive(259, 2, FS_OK, "nvme0n1"); /* a partition */
	assert_drive(252, 1, FS_OK, "nvme0n1"); /* a mapping on a mapping on a partition */
}

/* ---- what may be overwritten ------------------------------------------------------------------- */

static bool direct; /* does the folder's file system know O_DIRECT? */

static const char *in_folder(const char *name)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void assert_not_opened(const char *path, uint64_t size, bool overwrite, int code, const char *named)
{
	struct device_target target;
	char error[DEVICE_ERROR_BYTES];

	assert_int_equal(device_open(&target, path, size, overwrite, error), code);
	assert_non_null(strstr(error, named));
	assert_int_equal(target.fd, -1);
}

static void test_what_is_there_is_not_touched_without_overwrite(void **state)
{
	(void)state;
	shell("echo treasure > kept");
	assert_not_opened(in_folder("kept"), MIB, false, FS_EINVAL, "--overwrite");
	shell("grep -q treasure kept");
}

static void test_what_cannot_be_written_to_is_refused(void **state)
{
	(void)state;
	assert_not_opened(folder, MIB, true, FS_EINVAL, "neither a file nor a block device");
	assert_not_opened("/dev/null", MIB, true, FS_EINVAL, "neither a file nor a block device");
	assert_not_opened("/nowhere/at/all", MIB, true, FS_ESYS, "No such file");
}

static void test_a_file_larger_than_the_room_is_refused(void **state)
{
	(void)state;
	if (!direct)
		skip();
	assert_not_opened(in_folder("huge"), 1ull << 50, false, FS_EFULL, "free");
	assert_int_not_equal(access(in_folder("huge"), F_OK), 0);
}

static void test_a_new_file_is_never_left_behind(void **state)
{
	struct device_target target;
	char error[DEVICE_ERROR_BYTES];

	(void)state;
	if (!direct)
		skip();
	assert_int_equal(device_open(&target, in_folder("new"), MIB, false, error), FS_OK);
	assert_int_not_equal(access(in_folder("new"), F_OK), 0);
	assert_int_equal(target.bytes, MIB);
	assert_false(target.is_block);
	device_close(&target);
}

/* ---- what is written --------------------------------------------------------------------------- */

static uint8_t image[4 * MIB]; /* of the file, after a job */

/* Runs the job on a file of 3 MiB of zeros and reads the file. */
static int write_file(const struct device_job *job, struct device_written *written)
{
	struct device_target target;
	char error[DEVICE_ERROR_BYTES];
	int rc, fd;

	shell("rm -f target && head -c 3145728 /dev/zero > target");
	assert_int_equal(device_open(&target, in_folder("target"), 0, true, error), FS_OK);
	assert_int_equal(target.bytes, 3 * MIB);
	rc = device_write(&target, job, written);
	device_close(&target);
	fd = open(in_folder("target"), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, image, sizeof(image)), 3 * MIB);
	close(fd);
	return rc;
}

static unsigned written_pages(unsigned first, unsigned pages)
{
	static const uint8_t zeros[PAGE];
	unsigned count = 0;

	for (unsigned i = first; i < first + pages; i++)
		count += memcmp(image + (size_t)i * PAGE, zeros, PAGE) != 0;
	return count;
}

static void test_jobs_that_cannot_be_are_refused(void **state)
{
	static const struct device_job jobs[] = {
		{ .unit_bytes = 0, .span_bytes = MIB, .total_bytes = MIB },
		{ .unit_bytes = 1000, .span_bytes = MIB, .total_bytes = MIB },
		{ .unit_bytes = 2 * MIB, .span_bytes = MIB, .total_bytes = MIB },
		{ .unit_bytes = MIB, .span_bytes = 4 * MIB, .total_bytes = MIB },
	};
	struct device_written written;

	(void)state;
	if (!direct)
		skip();
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		assert_int_equal(write_file(&jobs[i], &written), FS_EINVAL);
	assert_int_equal(written_pages(0, 768), 0);
}

static void test_sequential_writes_cover_the_used_space_alone(void **state)
{
	/* 5 units of 64 pages in a space of 3.5 of them: three, then two again. */
	struct device_job job = { .pattern = DEVICE_SEQUENTIAL,
				  .unit_bytes = 64 * PAGE,
				  .span_bytes = 224 * PAGE,
				  .total_bytes = 4 * 64 * PAGE + 1 };
	struct device_written written;

	(void)state;
	if (!direct)
		skip();
	assert_int_equal(write_file(&job, &written), FS_OK);
	assert_int_equal(written.bytes, 5 * 64 * PAGE);
	assert_true(written.seconds > 0);
	assert_int_equal(written_pages(0, 3 * 64), 3 * 64);
	assert_int_equal(written_pages(3 * 64, 768 - 3 * 64), 0);
}

static void test_random_writes_take_whole_regions_of_the_used_space(void **state)
{
	struct device_job job = {
		.pattern = DEVICE_RANDOM, .unit_bytes = 8 * PAGE, .span_bytes = 512 * PAGE, .total_bytes = 64 * 8 * PAGE
	};
	struct device_written written;
	unsigned regions = 0;

	(void)state;
	if (!direct)
		skip();
	assert_int_equal(write_file(&job, &written), FS_OK);
	for (unsigned i = 0; i < 64; i++) {
		unsigned pages = written_pages(i * 8, 8);

		assert_true(pages == 0 || pages == 8);
		regions += pages == 8;
	}
	assert_int_equal(written_pages(512, 256), 0);
	/* 64 draws of 64 regions meet 40.6 of them on average, with a deviation of 2.6. */
	assert_in_range(regions, 25, 56);
}

static void test_data_can_neither_be_compressed_nor_deduplicated(void **state)
{
	struct device_job job = { .unit_bytes = MIB, .span_bytes = 3 * MIB, .total_bytes = 3 * MIB, .seed = 5 };
	uLongf packed_bytes = compressBound(3 * MIB);
	struct device_written written;
	uint8_t *packed = malloc(packed_bytes);

	(void)state;
	if (!direct) {
		free(packed);
		skip();
	}
	assert_non_null(packed);
	assert_int_equal(write_file(&job, &written), FS_OK);
	assert_int_equal(compress(packed, &packed_bytes, image, 3 * MIB), Z_OK);
	assert_true(packed_bytes > 3 * MIB / 1000 * 999);
	free(packed);
	for (size_t i = 0; i < 256; i++) /* one unit's page against the next one's */
		assert_memory_not_equal(image + i * PAGE, image + MIB + i * PAGE, PAGE);
}

/* ---- ------------------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	fd = open(in_folder("probe"), O_WRONLY | O_CREAT | O_DIRECT, 0600);
	direct = fd >= 0;
	if (direct)
		close(fd);
	return 0;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_json_object_is_refused),
		cmocka_unit_test(test_a_drive_that_could_not_be_asked_says_why),
		cmocka_unit_test(test_values_that_are_no_counts_are_left_out),
		cmocka_unit_test(test_numbers_without_a_known_name_count_nothing),
		cmocka_unit_test(test_a_drive_that_counts_the_host_alone),
		cmocka_unit_test(test_a_drive_in_the_paper_s_manner),
		cmocka_unit_test(test_two_kinds_of_nand_are_summed),
		cmocka_unit_test(test_pages_of_an_unknown_size_make_a_ratio),
		cmocka_unit_test(test_nvme_counts_the_host_and_the_open_compute_log_the_nand),
		cmocka_unit_test(test_an_open_compute_log_without_the_count_is_refused),
		cmocka_unit_test(test_counters_that_stand_still_make_no_ratio),
		cmocka_unit_test(test_finds_the_drive_below),
		cmocka_unit_test(test_what_is_there_is_not_touched_without_overwrite),
		cmocka_unit_test(test_what_cannot_be_written_to_is_refused),
		cmocka_unit_test(test_a_file_larger_than_the_room_is_refused),
		cmocka_unit_test(test_a_new_file_is_never_left_behind),
		cmocka_unit_test(test_jobs_that_cannot_be_are_refused),
		cmocka_unit_test(test_sequential_writes_cover_the_used_space_alone),
		cmocka_unit_test(test_random_writes_take_whole_regions_of_the_used_space),
		cmocka_unit_test(test_data_can_neither_be_compressed_nor_deduplicated),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
