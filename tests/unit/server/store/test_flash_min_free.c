/* SPDX-License-Identifier: BSD-3-Clause */
/* A flash file that is to be made only where there is room: else a store without flash, which says so. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "harness.h"

#define MORE_THAN_THERE_IS (1ull << 60)

static bool file_is_there(const struct harness *h)
{
	return access(h->path, F_OK) == 0;
}

static void expect_without_flash(struct harness *h, const char *cause)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_false(status.flash);
	assert_non_null(status.without_flash);
	assert_non_null(strstr(status.without_flash, h->path));
	assert_non_null(strstr(status.without_flash, cause));
	assert_false(file_is_there(h));
	set(h, "key", "value");
	assert_value(h, "key", "value");
}

static void without_the_option_a_full_file_system_ends_the_start(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	fault_arm(FAULT_device_file_full, FAULT_EVERY, 1);
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, strerror(ENOSPC)));
	assert_false(file_is_there(h));
	fault_disarm_all();
}

static void with_it_memory_alone_is_used(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.flash_min_free = 1;
	fault_arm(FAULT_device_file_full, FAULT_EVERY, 1);
	expect_without_flash(h, strerror(ENOSPC));
	fault_disarm_all();
}

static void other_errors_end_the_start_all_the_same(void **state)
{
	struct harness *h = *state;

	h->config.flash_min_free = MORE_THAN_THERE_IS;
	h->config.flash_path = "/nonexistent/flash";
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, "/nonexistent/flash"));
}

static void too_little_room_makes_no_file(void **state)
{
	struct harness *h = *state;

	h->config.flash_min_free = MORE_THAN_THERE_IS;
	expect_without_flash(h, "GiB are free there, --flash-min-free asks for 1073741824.00 GiB");
}

static void a_file_of_the_size_is_used_whatever_is_free(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	harness_close(h);
	h->config.flash_min_free = MORE_THAN_THERE_IS;
	harness_open(h);
	store_get_status(h->store, &status);
	assert_true(status.flash);
	assert_null(status.without_flash);
}

/* As a start leaves it that was killed: blocks for all of it, and a size that tells how far the zeros got. */
static void what_a_cut_start_has_reserved_counts_as_free(void **state)
{
	struct harness *h = *state;
	uint64_t before = seg_free_bytes(h->path, MIB(256)), after;
	int fd = open(h->path, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)MIB(256)) != 0) {
		close(fd);
		skip();
	}
	after = seg_free_bytes(h->path, MIB(256));
	assert_true(after + MIB(128) > before); /* others write on this file system too */
	assert_int_equal(ftruncate(fd, (off_t)MIB(256)), 0);
	assert_true(seg_free_bytes(h->path, MIB(256)) == UINT64_MAX);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_the_option_a_full_file_system_ends_the_start),
		TEST(with_it_memory_alone_is_used),
		TEST(other_errors_end_the_start_all_the_same),
		TEST(too_little_room_makes_no_file),
		TEST(a_file_of_the_size_is_used_whatever_is_free),
		TEST(what_a_cut_start_has_reserved_counts_as_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
