/* SPDX-License-Identifier: BSD-3-Clause */
/* Floors and ceilings of bytes on flash: what is counted, what reclaim keeps and drops, what isn't written. */
#include "server/store/dram/limits.h"
#include "tests/unit/server/store/harness.h"

#define LENGTH 400u /* of a shop's value; others' are shorter, and so are placed after them */

static char filler[LENGTH];
static struct app_limits wanted;
static char why[APP_LIMITS_WHY_BYTES];

static const struct app_limits *limits_from(const char *text)
{
	assert_int_equal(app_limits_parse(text, ':', &wanted, why), FS_OK);
	return &wanted;
}

static void open_with(struct harness *h, const char *text)
{
	h->config.limits = limits_from(text);
	harness_open(h);
}

static struct store_limited limited(struct harness *h, const char *name)
{
	struct store_limited app;

	for (unsigned n = 0; store_get_limited(h->store, n, &app); n++)
		if (strcmp(app.limit.name, name) == 0)
			return app;
	fail_msg("%s has no account", name);
	return app;
}

static uint64_t record_bytes(const char *key)
{
	return seg_record_length((unsigned)strlen(key), LENGTH);
}

static void set_some(struct harness *h, const char *app, unsigned from, unsigned count)
{
	char key[40];

	for (unsigned n = from; n < from + count; n++) {
		snprintf(key, sizeof(key), "%s:%05u", app, n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler,
					  .length = LENGTH - (strcmp(app, "shop") == 0 ? 0 : 50))
					 .result,
				 STORE_STORED);
	}
}

static unsigned on_flash(struct harness *h, const char *app, unsigned count)
{
	char key[40];
	unsigned there = 0;

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%s:%05u", app, n);
		there += where(h, key) == FLASH;
	}
	return there;
}

/* Sets objects of others and writes segments, until the flash was written so many times. */
static void turn_flash(struct harness *h, unsigned turns)
{
	static unsigned next;

	for (unsigned n = 0; n < turns * 17; n++) {
		set_some(h, "other", next, 160);
		next += 160;
		assert_true(write_one(h));
	}
}

/* ---- what is counted ------------------------------------------------------------------------- */

static void nothing_is_counted_without_limits(void **state)
{
	struct harness *h = *state;

	open_with(h, "");
	set_some(h, "shop", 0, 400);
	assert_true(write_one(h));
	assert_null(store_limits(h->store));
}

/* Deletes every second object: the first of two, or the other one. Then a segment is written, so that sums are made anew. */
static void delete_half(struct harness *h, unsigned first)
{
	uint32_t fillers = h->fillers;
	char key[40];

	for (unsigned n = first; n < 140; n += 2) {
		snprintf(key, sizeof(key), "shop:%05u", n);
		run(h, STORE_DELETE, key);
		snprintf(key, sizeof(key), "next:%05u", n);
		run(h, STORE_DELETE, key);
	}
	for (unsigned n = first; n < fillers; n += 2) { /* as write_one names them */
		snprintf(key, sizeof(key), "%c%c", (char)(0x80 + n % 127), (char)(0x80 + n / 127));
		run(h, STORE_DELETE, key);
	}
	assert_true(write_one(h));
}

static void what_is_deleted_counts_no_more(void **state)
{
	struct harness *h = *state;
	uint64_t all;
	unsigned there;

	open_with(h, "shop:flash=-1m");
	set_some(h, "shop", 0, 140); /* less than a segment, which others fill up */
	set_some(h, "next", 0, 140);
	while (limited(h, "shop").dram_items > 0)
		assert_true(write_one(h));
	there = on_flash(h, "shop", 140);
	assert_int_equal(there, 140);
	all = limited(h, "shop").flash_bytes;
	assert_int_equal(all, 140 * record_bytes("shop:00000"));
	assert_true(limited(h, "shop").flash_counted > 0.999);
	/* No segment is reclaimed meanwhile. */
	delete_half(h, 0);
	assert_in_range(limited(h, "shop").flash_bytes, all * 45 / 100, all * 55 / 100);
	delete_half(h, 1);
	assert_int_equal(limited(h, "shop").flash_bytes, 0);
	assert_true(limited(h, "shop").flash_counted > 0.999);
}

static void segments_from_before_the_limits_are_not_counted(void **state)
{
	struct harness *h = *state;

	open_with(h, "");
	set_some(h, "shop", 0, 400);
	assert_true(write_one(h));
	assert_int_equal(store_set_limits(h->store, limits_from("shop:flash=-1m")), FS_OK);
	assert_true(limited(h, "shop").flash_counted < 0.001);
	set_some(h, "shop", 400, 400);
	assert_true(write_one(h));
	assert_in_range((int)(1000 * limited(h, "shop").flash_counted), 300, 700); /* one of two, or two of three */
	assert_true(limited(h, "shop").flash_bytes > KIB(30));
	turn_flash(h, 1);
	assert_true(limited(h, "shop").flash_counted > 0.999);
	assert_true(limited(h, "shop").flash_bytes == 0 || on_flash(h, "shop", 800) > 0);
}

/* ---- ceilings -------------------------------------------------------------------------------- */

static void at_its_ceiling_an_application_writes_no_more(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:flash=-100k");
	for (unsigned n = 0; n < 8; n++) {
		set_some(h, "shop", n * 200, 200);
		set_some(h, "next", n * 200, 200);
		(void)write_one(h);
		assert_true(limited(h, "shop").flash_bytes <= KIB(100));
	}
	assert_true(limited(h, "shop").flash_bytes > KIB(90));
	assert_true(limited(h, "shop").write_refusals > 0);
	assert_true(on_flash(h, "next", 1600) > 300);
}

/* ---- floors ---------------------------------------------------------------------------------- */

static void floors_are_at_most_three_quarters_of_the_flash(void **state)
{
	struct harness *h = *state;

	open_with(h, "a:flash=2m-,b:flash=1m-");
	assert_in_range(limited(h, "a").flash_floor_held + limited(h, "b").flash_floor_held,
			h->store->flash_capacity / 4 * 3 - 16, h->store->flash_capacity / 4 * 3);
	assert_int_equal(limited(h, "a").limit.flash_floor, MIB(2));
}

static void what_a_floor_lacks_comes_first_in_a_plan(void **state)
{
	struct harness *h = *state;
	struct gathered gathered;

	open_with(h, "shop:flash=64k-");
	set_some(h, "other", 0, 400);
	set_some(h, "shop", 0, 300);
	gather_candidates(h->store, 1u << GROUP_SMALL, MIB(1), 0, &gathered);
	assert_int_equal(gathered.count, 700);
	for (uint32_t n = 0; n < 700; n++) { /* as many as the floor lacks; the others are as good as anybody's */
		bool shops = memcmp(item_key(gathered.candidates[n].item), "shop:", 5) == 0;

		if (n * record_bytes("shop:00000") < KIB(64))
			assert_true(shops);
	}
	gathered_release(h->store, &gathered);
}

static void without_a_floor_a_turn_of_the_flash_takes_all(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:write=1g");
	set_some(h, "shop", 0, 200);
	while (limited(h, "shop").dram_items > 0) {
		set_some(h, "next", 0, 100);
		assert_true(write_one(h));
	}
	turn_flash(h, 2);
	assert_int_equal(on_flash(h, "shop", 200), 0);
}

static void what_a_floor_needs_outlives_turns_of_the_flash(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:flash=128k-");
	set_some(h, "shop", 0, 200);
	while (limited(h, "shop").dram_items > 0) {
		set_some(h, "next", 0, 100);
		assert_true(write_one(h));
	}
	turn_flash(h, 3);
	assert_int_equal(on_flash(h, "shop", 200) + limited(h, "shop").dram_items, 200);
	assert_true(limited(h, "shop").write_bytes > 2 * 200 * record_bytes("shop:00000")); /* they were written anew */
}

/* What reclaims took back counts for the floor until it is written. Some of it never is, so a part is forgotten at each reclaim. */
static void what_was_taken_back_counts_until_it_is_written(void **state)
{
	struct harness *h = *state;
	struct limited *app;

	open_with(h, "shop:flash=128k-");
	app = limits_find(store_limits(h->store), "shop:", 5);
	app->flash_kept = 3 * record_bytes("shop:00000");
	set_some(h, "shop", 0, 2);
	while (limited(h, "shop").dram_items > 0)
		assert_true(write_one(h));
	assert_int_equal(app->flash_kept, record_bytes("shop:00000"));
	set_some(h, "shop", 0, 2);
	while (limited(h, "shop").dram_items > 0)
		assert_true(write_one(h));
	assert_int_equal(app->flash_kept, 0);
	app->flash_kept = 800;
	flash_limits_close(h->store, 0);
	assert_int_equal(app->flash_kept, 700);
}

static void what_is_above_a_floor_goes_like_others(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:flash=64k-");
	for (unsigned n = 0; n < 5; n++) {
		set_some(h, "shop", n * 200, 200);
		(void)write_one(h);
	}
	turn_flash(h, 4);
	assert_in_range(limited(h, "shop").flash_bytes + limited(h, "shop").dram_bytes, KIB(50), KIB(160));
}

static void with_an_empty_bucket_a_floor_is_not_written_anew(void **state)
{
	struct harness *h = *state;
	struct limited *app;

	open_with(h, "shop:flash=128k-,write=1");
	app = limits_find(store_limits(h->store), "shop:", 5);
	atomic_store(&app->tokens, (int64_t)MIB(1));
	set_some(h, "shop", 0, 200);
	while (limited(h, "shop").dram_items > 0) {
		set_some(h, "next", 0, 100);
		assert_true(write_one(h));
	}
	atomic_store(&app->tokens, -(int64_t)MIB(1));
	turn_flash(h, 2);
	assert_int_equal(on_flash(h, "shop", 200), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_counted_without_limits),
		TEST(what_is_deleted_counts_no_more),
		TEST(segments_from_before_the_limits_are_not_counted),
		TEST(at_its_ceiling_an_application_writes_no_more),
		TEST(floors_are_at_most_three_quarters_of_the_flash),
		TEST(what_a_floor_lacks_comes_first_in_a_plan),
		TEST(without_a_floor_a_turn_of_the_flash_takes_all),
		TEST(what_a_floor_needs_outlives_turns_of_the_flash),
		TEST(what_was_taken_back_counts_until_it_is_written),
		TEST(what_is_above_a_floor_goes_like_others),
		TEST(with_an_empty_bucket_a_floor_is_not_written_anew),
	};

	return cmocka_run_group_tests_name("store: limits on flash", tests, NULL, NULL);
}
