/* SPDX-License-Identifier: BSD-3-Clause */
/* A flash file that is being made, or has grown, over a clean stop. */
#include "tests/unit/server/store/state/restarting.h"

/* ---- a flash that has grown ------------------------------------------------------------------ */

static void a_larger_flash_keeps_its_objects(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	uint32_t segments;

	h->config.filter_bits = 4;
	harness_open(h);
	fill(h);
	store_get_status(h->store, &status);
	segments = status.segments.total;
	stop_cleanly(h);
	h->config.flash_bytes += 4 * h->config.segment_bytes;
	assert_int_equal(start_again(h), STORE_START_WARM);
	store_get_status(h->store, &status);
	assert_int_equal(status.segments.total, segments + 4);
	assert_int_equal(status.info.flash_bytes, h->config.flash_bytes);
	assert_filled(h);
	assert_true(fidx_verify(h->store->index));
	for (uint32_t n = 0; n < 2 * status.segments.total; n++)
		set_on_flash(h, "key", "value");
	store_get_status(h->store, &status);
	assert_true(status.segments.live >= segments + 4 - 1);
	assert_value(h, "key", "value");
	restart(h);
	assert_value(h, "key", "value");
}

/* The segments that came with it are taken first, so that a full flash loses nothing sooner for having grown. */
static void a_full_flash_goes_on_where_it_has_grown(void **state)
{
	struct harness *h = *state;
	enum seg_state segment_state;
	uint32_t segment, segments;
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	segments = status.segments.total;
	for (uint32_t n = 0; n < segments + 3; n++)
		set_on_flash(h, "key", "value");
	assert_int_equal(seg_next(h->store->segments, &segment, &segment_state), FS_OK);
	assert_true(segment < segments && segment_state == SEG_LIVE);
	stop_cleanly(h);
	h->config.flash_bytes += 2 * h->config.segment_bytes;
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_int_equal(seg_next(h->store->segments, &segment, &segment_state), FS_OK);
	assert_true(segment == segments && segment_state == SEG_FREE);
	set_on_flash(h, "key", "new");
	assert_value(h, "key", "new");
	/* It is no smaller flash that is taken warm. */
	stop_cleanly(h);
	h->config.flash_bytes -= 2 * h->config.segment_bytes;
	assert_int_equal(start_again(h), STORE_START_LAYOUT);
	assert_missing(h, "key");
}

/* The numbers of its segments take a bit more, so tags have one less, and tags decide where records lie. */
static void a_flash_that_has_grown_too_much_starts_cold(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	h->config.flash_bytes += 20 * h->config.segment_bytes;
	assert_int_equal(start_again(h), STORE_START_LAYOUT);
	assert_missing(h, "key");
	set_on_flash(h, "key", "new");
	assert_value(h, "key", "new");
	restart(h);
	assert_value(h, "key", "new");
}

/* After a kill there is nothing to keep. */
static void a_larger_flash_after_a_kill_starts_cold(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	harness_close(h);
	h->config.flash_bytes += 4 * h->config.segment_bytes;
	assert_int_equal(start_again(h), STORE_START_LAYOUT);
	assert_missing(h, "key");
}

/* ---- a file that is being made ----------------------------------------------------------------- */

static void begin_file(struct harness *h)
{
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	h->config.flash_bytes = MIB(12) + KIB(64);
	harness_open(h);
	assert_int_equal(seg_allocated(h->store->segments), 0);
	fault_disarm_all();
}

static off_t file_size(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Memory serves while nothing of the file can be used, and the flash comes in as it gets there. */
static void memory_serves_while_the_file_is_made(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	begin_file(h);
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	for (int n = 0; n < 5; n++) {
		set(h, "key", "value");
		assert_false(store_clean_step(h->store));
		assert_value(h, "key", "value");
	}
	fault_disarm_all();
	assert_true(store_clean_step(h->store));
	assert_true(seg_allocated(h->store->segments) > 0);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

static void a_file_that_is_half_made_is_taken_warm(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	begin_file(h);
	assert_true(store_clean_step(h->store));
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	assert_true(file_size(h->path) < (off_t)h->config.flash_bytes);
	fault_arm(FAULT_device_file_slow, FAULT_ALWAYS, 0);
	assert_int_equal(start_again(h), STORE_START_WARM);
	fault_disarm_all();
	assert_value(h, "key", "value");
	while (seg_allocated_bytes(h->store->segments) < h->config.flash_bytes)
		(void)store_clean_step(h->store);
	assert_value(h, "key", "value");
	assert_int_equal(file_size(h->path), h->config.flash_bytes);
	assert_true(fidx_verify(h->store->index));
}

/* A kill meanwhile: the next start finds a flash of its own, and nothing on it. */
static void a_file_that_is_half_made_survives_a_kill(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	begin_file(h);
	harness_close(h);
	assert_cold(h, UNCLEAN);
	harness_close(h);
	/* One copy of the superblock, and none. */
	assert_int_equal(truncate(h->path, SEG_PAGE), 0);
	assert_cold(h, UNCLEAN);
	harness_close(h);
	assert_int_equal(truncate(h->path, 0), 0);
	assert_cold(h, NEW);
}

static void a_file_without_its_end_starts_cold(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	assert_int_equal(truncate(h->path, SUPER_AREA), 0);
	assert_cold(h, TRUNCATED);
	store_get_status(h->store, &status);
	assert_int_equal(status.segments.allocated_bytes, h->config.flash_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESTART_TEST(a_larger_flash_keeps_its_objects),
		RESTART_TEST(a_full_flash_goes_on_where_it_has_grown),
		RESTART_TEST(a_flash_that_has_grown_too_much_starts_cold),
		RESTART_TEST(a_larger_flash_after_a_kill_starts_cold),
		RESTART_TEST(memory_serves_while_the_file_is_made),
		RESTART_TEST(a_file_that_is_half_made_is_taken_warm),
		RESTART_TEST(a_file_that_is_half_made_survives_a_kill),
		RESTART_TEST(a_file_without_its_end_starts_cold),
	};

	return cmocka_run_group_tests_name("restart: growth", tests, NULL, NULL);
}
