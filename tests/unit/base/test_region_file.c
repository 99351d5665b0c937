/* SPDX-License-Identifier: BSD-3-Clause */
/* A region in a file: what a process leaves is there for the next one, and a file of any other kind is told apart. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/region.h"
#include "tests/unit/base/base_test.h"

#define MANY (3u << 20)

static const uint64_t most[REGION_AREAS] = { 100, 5000, 4096, MANY, MANY, [REGION_FRUGAL] = MANY };
static char folder[64], path[100], reason[256];

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-region-XXXXXX");
	snprintf(path, sizeof(path), "%s/file", mkdtemp(folder) ? folder : "");
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static struct region *open_as(enum region_found as, const uint64_t *sizes)
{
	struct region *region;
	enum region_found found;

	assert_int_equal(region_open(&region, sizes, folder, "file", NULL, &found, reason), FS_OK);
	assert_int_equal(found, as);
	return region;
}

static struct region *open_new(void)
{
	struct region *region = open_as(REGION_FOUND_NONE, most);

	assert_int_equal(region_reset(region), FS_OK);
	return region;
}

static uint64_t page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t blocks(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void bytes_outlive_the_process(void **state)
{
	struct region *region = open_new();

	(void)state;
	assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_OK);
	strcpy(region_area(region, REGION_TABLE_0), "there");
	region_destroy(region);
	for (int turn = 0; turn < 2; turn++) {
		region = open_as(REGION_FOUND_SAME, most);
		assert_int_equal(region_bytes(region), 0);
		assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_OK);
		assert_string_equal(region_area(region, REGION_TABLE_0), "there");
		assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK); /* grows where it is */
		assert_string_equal(region_area(region, REGION_TABLE_0), "there");
		assert_int_equal(((char *)region_area(region, REGION_TABLE_0))[MANY - 1], 0);
		region_destroy(region);
	}
	region = open_as(REGION_FOUND_SAME, most);
	assert_int_equal(region_reset(region), FS_OK);
	assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_OK);
	assert_int_equal(*(char *)region_area(region, REGION_TABLE_0), 0);
	region_destroy(region);
}

static void an_area_s_memory_is_there_when_it_is_committed(void **state)
{
	struct region *region = open_new();
	uint64_t before = blocks();

	(void)state;
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
	assert_int_equal(blocks(), before + MANY);
	assert_int_equal(region_bytes(region), MANY);
	assert_int_equal(region_untouched(region), MANY);
	assert_int_equal(region_shared(region), 0);
	memset(region_area(region, REGION_TABLE_0), 1, MANY);
	assert_int_equal(region_untouched(region), 0);
	assert_int_equal(region_shared(region), MANY);
	region_destroy(region);
}

/* What an earlier process has taken is not taken again; what somebody has punched out is. */
static void memory_that_is_there_is_not_allocated_again(void **state)
{
	struct region *region = open_new();
	uint64_t full;
	int fd;

	(void)state;
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
	full = blocks();
	region_destroy(region);
	region = open_as(REGION_FOUND_SAME, most);
	fault_arm(FAULT_region_full, FAULT_ALWAYS, 0); /* the file system has no room for more */
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
#ifdef FS_FAULTS
	assert_int_equal(region_commit(region, REGION_TABLE_1, 4096), FS_ENOMEM);
#endif
	fault_disarm_all();
	region_destroy(region);
	fd = open(path, O_RDWR);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MANY, (off_t)page()),
			 0); /* in table 0 */
	close(fd);
	assert_int_equal(blocks(), full - page());
	region = open_as(REGION_FOUND_SAME, most);
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
	assert_int_equal(blocks(), full);
	region_destroy(region);
}

/* A late reader finds zeros, and takes no memory of the file system. */
static void an_area_given_back_reads_as_zeros(void **state)
{
	struct region *region = open_new();
	uint64_t before = blocks();
	unsigned char *area = region_area(region, REGION_TABLE_0);

	(void)state;
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
	memset(area, 1, MANY);
	region_decommit(region, REGION_TABLE_0);
	for (unsigned at = 0; at < MANY; at += 1000)
		assert_int_equal(area[at], 0);
	assert_int_equal(blocks(), before);
	assert_int_equal(region_bytes(region), 0);
	assert_int_equal(region_commit(region, REGION_TABLE_0, 4096), FS_OK);
	assert_int_equal(area[0] + area[4095] + area[4096] + area[MANY - 1], 0);
	area[1] = 7;
	region_destroy(region);
	region = open_as(REGION_FOUND_SAME, most);
	assert_int_equal(region_commit(region, REGION_TABLE_0, 4096), FS_OK);
	assert_int_equal(((unsigned char *)region_area(region, REGION_TABLE_0))[1], 7);
	region_discard(region);
	region_destroy(region);
	assert_int_equal(blocks(), 0);
	region_destroy(open_as(REGION_FOUND_NONE, most));
}

/* A part that a process has left is there for the next one; between parts the file has holes. */
static void parts_outlive_the_process(void **state)
{
	struct region *region = open_new();
	uint64_t before = blocks();
	unsigned char *area = region_area(region, REGION_FRUGAL);
	enum region_found found;

	(void)state;
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 4096, 8192), FS_OK);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 40960, 4096), FS_OK);
	memset(area + 4096, 3, 8192);
	memset(area + 40960, 4, 4096);
	assert_int_equal(blocks(), before + 12288);
	assert_int_equal(region_shared(region), 12288);
	region_decommit_part(region, REGION_FRUGAL, 40960, 4096);
	assert_int_equal(blocks(), before + 8192);
	fault_arm(FAULT_region_full, FAULT_ALWAYS, 0);
#ifdef FS_FAULTS
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 40960, 4096), FS_ENOMEM);
#endif
	fault_disarm_all();
	region_destroy(region);

	assert_int_equal(region_look(&region, most, folder, "file", &found, reason), FS_OK);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 4096, 8192), FS_OK);
	area = region_area(region, REGION_FRUGAL);
	assert_int_equal(area[4096] + area[12287], 6);
	memset(area + 4096, 9, 8192); /* a copy of its own */
	region_destroy(region);

	region = open_as(REGION_FOUND_SAME, most);
	area = region_area(region, REGION_FRUGAL);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 4096, 4096), FS_OK);
	assert_int_equal(area[4096] + area[8191], 6);
	region_drop_part(region, REGION_FRUGAL, 8192, 4096); /* left over */
	assert_int_equal(blocks(), before + 4096);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 8192, 4096), FS_OK);
	assert_int_equal(area[8192], 0);
	assert_int_equal(region_bytes(region), 8192);
	assert_int_equal(region_reset(region), FS_OK);
	assert_int_equal(region_bytes(region), 0);
	assert_int_equal(region_commit_part(region, REGION_FRUGAL, 4096, 4096), FS_OK);
	assert_int_equal(area[4096], 0);
	region_destroy(region);
}

static void other_files_are_told_apart(void **state)
{
	uint64_t more[REGION_AREAS];
	char byte = 0;
	int fd;

	(void)state;
	region_destroy(open_new());
	memcpy(more, most, sizeof(more));
	more[REGION_TABLE_0] += 4096;
	region_destroy(open_as(REGION_FOUND_LAYOUT, more));
	region_destroy(open_as(REGION_FOUND_SAME, most));
	fd = open(path, O_RDWR);
	for (off_t at = 0; at < 60; at += 4) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 16;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		region_destroy(open_as(at >= 8 && at < 16 ? REGION_FOUND_VERSION : REGION_FOUND_DAMAGED, most));
		byte ^= 16;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	region_destroy(open_as(REGION_FOUND_SAME, most));
	assert_int_equal(ftruncate(fd, MANY), 0);
	region_destroy(open_as(REGION_FOUND_DAMAGED, most));
	assert_int_equal(ftruncate(fd, 100), 0);
	region_destroy(open_as(REGION_FOUND_DAMAGED, most));
	close(fd);
}

static struct stat file_of(uid_t user)
{
	struct stat st;

	assert_int_equal(chown(path, user, user), 0);
	assert_int_equal(stat(path, &st), 0);
	return st;
}

/* A daemon that starts as root and then becomes another user. */
static void a_new_file_is_its_user_s_and_another_s_is_refused(void **state)
{
	const struct region_owner owner = { .user = 12345, .group = 12346 };
	struct region *region;
	enum region_found found;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(region_open(&region, most, folder, "file", &owner, &found, reason), FS_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, owner.user);
	assert_int_equal(st.st_gid, owner.group);
	region_destroy(region);
	for (off_t bytes = 0; bytes <= 10000; bytes += 10000) {
		struct stat another;

		assert_int_equal(truncate(path, bytes), 0);
		another = file_of(owner.user + 1);
		assert_int_equal(region_open(&region, most, folder, "file", &owner, &found, reason), FS_EINVAL);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_uid, another.st_uid);
	}
	file_of(0); /* with bytes in it */
	assert_int_equal(region_open(&region, most, folder, "file", &owner, &found, reason), FS_EINVAL);
}

static void a_file_gets_another_name(void **state)
{
	struct region *region = open_new(), *other;
	enum region_found found;
	char other_path[200];

	(void)state;
	snprintf(other_path, sizeof(other_path), "%s/other", folder);
	assert_int_equal(region_commit(region, REGION_TABLE_0, 4096), FS_OK);
	((unsigned char *)region_area(region, REGION_TABLE_0))[1] = 7;
	assert_int_equal(region_rename(region, "file", reason), FS_OK);
	/* Another process has a file of that name. */
	assert_int_equal(region_open(&other, most, folder, "other", NULL, &found, reason), FS_OK);
	assert_int_equal(region_rename(region, "other", reason), FS_EBUSY);
	assert_int_equal(access(path, F_OK), 0);
	region_destroy(other);
	assert_int_equal(region_rename(region, "no/folder", reason), FS_ESYS);
	assert_int_equal(region_rename(region, "other", reason), FS_OK);
	region_destroy(region);
	assert_int_not_equal(access(path, F_OK), 0);
	/* It is the same file: not a copy. */
	assert_int_equal(region_open(&other, most, folder, "other", NULL, &found, reason), FS_OK);
	assert_int_equal(found, REGION_FOUND_SAME);
	assert_int_equal(region_commit(other, REGION_TABLE_0, 4096), FS_OK);
	assert_int_equal(((unsigned char *)region_area(other, REGION_TABLE_0))[1], 7);
	region_destroy(other);
	assert_int_equal(unlink(other_path), 0);
}

static void too_little_room_is_told(void **state)
{
	struct region *region = open_new();

	(void)state;
	assert_false(region_is_short(region, reason));
#ifndef FS_FAULTS
	region_destroy(region);
	skip();
#endif
	fault_arm(FAULT_region_full, FAULT_ALWAYS, 0);
	assert_int_equal(region_commit(region, REGION_TABLE_1, MANY), FS_ENOMEM);
	fault_disarm_all();
	assert_true(region_is_short(region, reason));
	assert_non_null(strstr(reason, path));
	assert_non_null(strstr(reason, "3.00 MiB more are needed"));
	region_destroy(region);
}

static struct region *look_as(enum region_found as, const uint64_t *sizes)
{
	struct region *region;
	enum region_found found;

	assert_int_equal(region_look(&region, sizes, folder, "file", &found, reason), FS_OK);
	assert_int_equal(found, as);
	return region;
}

static void a_look_changes_nothing(void **state)
{
	static const uint64_t others[REGION_AREAS] = { 100, 5000, 4096, MANY, 2 * MANY };
	struct region *region = look_as(REGION_FOUND_NONE, most), *owner;

	(void)state;
	region_destroy(region);
	assert_int_not_equal(access(path, F_OK), 0);
	owner = open_new();
	assert_int_equal(region_commit(owner, REGION_TABLE_0, 10000), FS_OK);
	strcpy(region_area(owner, REGION_TABLE_0), "there");
	region_destroy(look_as(REGION_FOUND_LAYOUT, others));
	region = look_as(REGION_FOUND_SAME, most); /* the owner's lock is in nobody's way */
	assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_OK);
	assert_string_equal(region_area(region, REGION_TABLE_0), "there");
	strcpy(region_area(region, REGION_TABLE_0), "a copy");
	assert_int_equal(region_reset(region), FS_OK);
	assert_int_equal(region_bytes(region), 0);
	assert_int_equal(region_commit(region, REGION_TABLE_0, MANY), FS_OK);
	assert_string_equal(region_area(region, REGION_TABLE_0), "");
	region_discard(region);
	region_destroy(region);
	assert_string_equal(region_area(owner, REGION_TABLE_0), "there");
	region_destroy(owner);
	region_destroy(open_as(REGION_FOUND_SAME, most));
}

static void a_look_at_a_file_that_ends_early_is_told(void **state)
{
	struct region *region = open_new();

	(void)state;
	assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_OK);
	region_destroy(region);
	region = look_as(REGION_FOUND_SAME, most);
	assert_int_equal(truncate(path, (off_t)page()), 0);
	assert_int_equal(region_commit(region, REGION_TABLE_0, 10000), FS_ENOMEM);
	region_destroy(region);
}

static void a_look_at_what_will_not_do_is_refused(void **state)
{
	enum region_found found;
	struct region *region = open_new();

	(void)state;
	region_destroy(region);
	assert_int_equal(region_look(&region, most, "/proc", "file", &found, reason), FS_EINVAL);
	assert_null(region);
	assert_int_equal(region_look(&region, most, "/dev/shm/none", "file", &found, reason), FS_ESYS);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(region_look(&region, most, folder, "file", &found, reason), FS_EINVAL);
	assert_non_null(strstr(reason, path));
	assert_null(region);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(region_look(&region, most, folder, "file", &found, reason), FS_EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(bytes_outlive_the_process),
		TEST(an_area_s_memory_is_there_when_it_is_committed),
		TEST(memory_that_is_there_is_not_allocated_again),
		TEST(an_area_given_back_reads_as_zeros),
		TEST(parts_outlive_the_process),
		TEST(other_files_are_told_apart),
		TEST(a_new_file_is_its_user_s_and_another_s_is_refused),
		TEST(a_file_gets_another_name),
		TEST(too_little_room_is_told),
		TEST(a_look_changes_nothing),
		TEST(a_look_at_a_file_that_ends_early_is_told),
		TEST(a_look_at_what_will_not_do_is_refused),
	};

	return cmocka_run_group_tests_name("region in a file", tests, NULL, NULL);
}
