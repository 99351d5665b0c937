/* SPDX-License-Identifier: BSD-3-Clause */
/* A region that does not belong to the flash, or is not whole, starts cold; and what a folder must be. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/server/store/state/attaching.h"

static void pairings_that_do_not_fit_start_cold(void **state)
{
	struct harness *h = *state;
	struct store_config config = h->config;

	assert_cold(h, NEW);
	run_in_killed_child(h, open_and_fill);
	h->config.boot_id = "another boot";
	assert_cold(h, BOOT);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	seconds_pass(h, 61);
	assert_cold(h, DOWNTIME);
	run_in_killed_child(h, open_and_fill);
	h->config.tag_bits = 10;
	assert_cold(h, OPTIONS);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	h->config.functions = 8;
	assert_cold(h, LAYOUT);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	unlink(region_path);
	assert_cold(h, REGION_NONE);
	run_in_killed_child(h, open_and_fill);
	atomic_fetch_sub(&h->clk.scripted_us, 1000000);
	assert_cold(h, CLOCK);
	atomic_fetch_add(&h->clk.scripted_us, 1000000);
	run_in_killed_child(h, open_and_fill);
	unlink(h->path);
	run_in_killed_child(h, only_open); /* another flash */
	assert_start(h, ATTACHED);
	harness_close(h);
}

static void left_by_the_run_before(struct harness *h)
{
	open_and_fill(h);
	atomic_fetch_sub(&h->store->kept->epoch, 1);
}

/* The pair of id and epoch that the region gets before a flash moves. */
static void seal(struct harness *h, uint64_t more)
{
	struct kept *kept;

	open_and_fill(h);
	kept = h->store->kept;
	atomic_store(&kept->next_epoch, atomic_load(&kept->epoch) + more);
	atomic_store(&kept->next_id, atomic_load(&kept->id));
	atomic_store(&kept->id, atomic_load(&kept->id) ^ 1);
}

static void sealed_for_this_epoch(struct harness *h)
{
	seal(h, 0);
}

static void sealed_for_another_epoch(struct harness *h)
{
	seal(h, 1);
}

static void a_region_of_another_epoch_starts_cold(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, left_by_the_run_before);
	assert_cold(h, REGION_OTHER_RUN);
	run_in_killed_child(h, sealed_for_another_epoch);
	assert_cold(h, REGION_OTHER_RUN);
	run_in_killed_child(h, sealed_for_this_epoch);
	assert_start(h, ATTACHED);
	assert_filled(h);
}

static void with_no_downtime_allowed_nothing_is_kept(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	h->config.restart_max_downtime_us = 0;
	assert_cold(h, OFF);
	run_in_killed_child(h, open_and_fill);
	h->config.restart_max_downtime_us = MINUTE_US;
	assert_cold(h, REGION_NONE);
}

static void a_run_without_the_region_makes_it_worthless(void **state)
{
	struct harness *h = *state;

	for (uint64_t step = 0; step < 5; step++) {
		h->config.region_dir = folder;
		run_in_killed_child(h, open_and_fill);
		if (HAVE_FAULTS) {
			fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
			run_in_killed_child(h, only_open);
			fault_disarm_all();
		}
		h->config.region_dir = NULL;
		run_in_killed_child(h, only_open);
		h->config.region_dir = folder;
		assert_cold(h, REGION_OTHER_RUN);
	}
}

struct bytes {
	char *at;
	size_t length;
};

static struct bytes file_get(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	struct bytes bytes;

	assert_int_equal(fstat(fd, &st), 0);
	bytes = (struct bytes){ mem_must_zalloc((size_t)st.st_size), (size_t)st.st_size };
	assert_int_equal(pread(fd, bytes.at, bytes.length, 0), bytes.length);
	close(fd);
	return bytes;
}

/* In place, so that the file is still the same. */
static void file_put(const char *path, const struct bytes *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, bytes->at, length, 0), length);
	assert_int_equal(ftruncate(fd, (off_t)length), 0);
	close(fd);
}

static void an_older_region_or_a_copy_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes older, copy;

	run_in_killed_child(h, open_and_fill);
	older = file_get(region_path);
	run_in_killed_child(h, only_open);
	file_put(region_path, &older, older.length);
	assert_cold(h, REGION_OTHER_RUN);
	run_in_killed_child(h, open_and_fill);
	copy = file_get(region_path);
	assert_int_equal(rename(region_path, "/dev/shm/flashield-attach-original"), 0);
	file_put(region_path, &copy, copy.length);
	unlink("/dev/shm/flashield-attach-original");
	assert_cold(h, REGION_COPY);
	mem_free(older.at);
	mem_free(copy.at);
}

static void the_region_of_another_flash_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash;

	run_in_killed_child(h, only_open);
	flash = file_get(h->path);
	unlink(h->path);
	run_in_killed_child(h, open_and_fill);
	file_put(h->path, &flash, flash.length);
	assert_cold(h, REGION_OTHER_FLASH);
	mem_free(flash.at);
}

/* Two flashes with files of one name in different folders share the name of the region. */
static void the_region_of_a_flash_of_another_size_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash;

	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	unlink(h->path);
	h->config.flash_bytes *= 2;
	run_in_killed_child(h, open_and_fill);
	h->config.flash_bytes /= 2;
	file_put(h->path, &flash, flash.length);
	assert_cold(h, REGION_LAYOUT);
	mem_free(flash.at);
}

static void a_truncated_region_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash, region;

	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	region = file_get(region_path);
	for (unsigned part = 0; part < 10; part++) {
		file_put(h->path, &flash, flash.length);
		file_put(region_path, &region, region.length * part / 10);
		assert_string_equal(store_start_word(start_again(h)), part ? "region_damaged" : "region_none");
		harness_close(h);
	}
	file_put(h->path, &flash, flash.length);
	file_put(region_path, &region, region.length);
	assert_start(h, ATTACHED);
	assert_filled(h);
	mem_free(flash.at);
	mem_free(region.at);
}

/* Memory has no checksum: a flipped bit may be taken, may lose objects, may start cold; it gives no wrong value. */
static void a_flipped_bit_never_gives_a_wrong_value(void **state)
{
	struct harness *h = *state;
	struct bytes flash, region;
	unsigned cold = 0;
	char key[KEY_BYTES];
	struct rng rng;

	rng_init(&rng, 1);
	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	region = file_get(region_path);
	for (size_t at = 0; at < 4096 * 6; at += at < 300 ? 3 : 1 + rng_below(&rng, 150)) {
		region.at[at] = (char)(region.at[at] ^ 1 << at % 8);
		file_put(h->path, &flash, flash.length);
		file_put(region_path, &region, region.length);
		harness_open(h);
		cold += !restart_is_warm(h->store);
		for (int n = 0; n < OBJECTS; n += 7) {
			struct reply reply;

			key_number(key, n);
			reply = get(h, key);
			if (reply.result == STORE_HIT)
				assert_string_equal(reply.value, key);
		}
		harness_close(h);
		region.at[at] = (char)(region.at[at] ^ 1 << at % 8);
	}
	assert_true(cold > 20);
	mem_free(flash.at);
	mem_free(region.at);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void folders_and_files_that_will_not_do_are_refused(void **state)
{
	struct harness *h = *state;

	h->config.region_dir = "/proc/self/nowhere";
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, "--region-dir: /proc/self/nowhere: No such file"));
	h->config.region_dir = "/proc";
	assert_int_equal(harness_try_open(h), FS_EINVAL);
	assert_non_null(strstr(h->reason, "is on a disk; accepted are folders on tmpfs"));
	h->config.region_dir = folder;
	only_open(h);
	harness_close(h);
	assert_int_equal(chmod(region_path, 0640), 0);
	assert_int_equal(harness_try_open(h), FS_EINVAL);
	assert_non_null(strstr(h->reason, "mode 0600"));
	assert_int_equal(chmod(region_path, 0600), 0);
	assert_start(h, ATTACHED);
}

static void another_daemon_s_region_is_refused(void **state)
{
	struct harness *h = *state, other = *h;

	only_open(h);
	other.store = NULL;
	assert_int_equal(harness_try_open(&other), FS_EBUSY);
	assert_non_null(strstr(other.reason, "another daemon uses it"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACH_TEST(pairings_that_do_not_fit_start_cold),
		ATTACH_TEST(a_region_of_another_epoch_starts_cold),
		ATTACH_TEST(with_no_downtime_allowed_nothing_is_kept),
		ATTACH_TEST(a_run_without_the_region_makes_it_worthless),
		ATTACH_TEST(an_older_region_or_a_copy_starts_cold),
		ATTACH_TEST(the_region_of_another_flash_starts_cold),
		ATTACH_TEST(the_region_of_a_flash_of_another_size_starts_cold),
		ATTACH_TEST(a_truncated_region_starts_cold),
		ATTACH_TEST(a_flipped_bit_never_gives_a_wrong_value),
		ATTACH_TEST(folders_and_files_that_will_not_do_are_refused),
		ATTACH_TEST(another_daemon_s_region_is_refused),
	};

	return cmocka_run_group_tests_name("attach_cold", tests, NULL, NULL);
}
