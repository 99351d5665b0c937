/* SPDX-License-Identifier: BSD-3-Clause */
/* store_walk and store_count_sizes: each live object once, nothing else, and nothing held while it is shown. */
#include "tests/unit/server/store/harness.h"

#define SEEN_MAX 20000u

struct sight {
	char key[STORE_KEY_MAX + 1];
	struct store_seen object; /* but for its key */
};

struct sights {
	struct harness *h;
	struct sight sight[SEEN_MAX];
	unsigned count, stop_after;
	void (*meanwhile)(struct harness *h, unsigned n); /* called in see() */
};

static struct sights sights;

static bool see(void *context, const struct store_seen *object)
{
	struct sights *all = context;
	struct sight *sight = &all->sight[all->count];

	assert_in_range(all->count, 0, SEEN_MAX - 1);
	memcpy(sight->key, object->key, object->key_length);
	sight->key[object->key_length] = '\0';
	sight->object = *object;
	all->count++;
	if (all->meanwhile)
		all->meanwhile(all->h, all->count);
	return all->stop_after == 0 || all->count < all->stop_after;
}

static int walk_with(struct harness *h, bool flash, unsigned stop_after,
		     void (*meanwhile)(struct harness *h, unsigned n))
{
	sights.h = h;
	sights.count = 0;
	sights.stop_after = stop_after;
	sights.meanwhile = meanwhile;
	return store_walk(h->store, flash, see, &sights);
}

static void walk(struct harness *h)
{
	assert_int_equal(walk_with(h, true, 0, NULL), FS_OK);
}

/* How often it was seen; *last: then. */
static unsigned times_seen(const char *key, const struct store_seen **last)
{
	unsigned times = 0;

	for (unsigned i = 0; i < sights.count; i++) {
		if (strcmp(sights.sight[i].key, key) != 0)
			continue;
		times++;
		if (last)
			*last = &sights.sight[i].object;
	}
	return times;
}

static const struct store_seen *seen_once(const char *key)
{
	const struct store_seen *object = NULL;

	assert_int_equal(times_seen(key, &object), 1);
	return object;
}

static void set_many(struct harness *h, const char *prefix, unsigned count)
{
	char key[32];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%s:%u", prefix, n);
		assert_int_equal(set(h, key, "value").result, STORE_STORED);
	}
}

static void assert_each_seen_once(const char *prefix, unsigned count)
{
	static unsigned times[SEEN_MAX];
	size_t length = strlen(prefix);

	memset(times, 0, sizeof(times));
	for (unsigned i = 0; i < sights.count; i++)
		if (strncmp(sights.sight[i].key, prefix, length) == 0 && sights.sight[i].key[length] == ':')
			times[strtoul(sights.sight[i].key + length + 1, NULL, 10)]++;
	for (unsigned n = 0; n < count; n++)
		if (times[n] != 1)
			fail_msg("%s:%u was seen %u times", prefix, n, times[n]);
}

/* ---- what is not shown ----------------------------------------------------------------------- */

static void an_empty_store_shows_nothing(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	walk(h);
	assert_int_equal(sights.count, 0);
}

static void what_is_gone_is_not_shown(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "deleted", "value");
	run(h, STORE_DELETE, "deleted");
	run_full(h, .op = STORE_SET, .key = "expired", .value = "value", .length = 5, .exptime = 10);
	set(h, "kept", "value");
	seconds_pass(h, 10);
	walk(h);
	assert_int_equal(sights.count, 1);
	seen_once("kept");
	store_flush_all(h->store, 0);
	walk(h);
	assert_int_equal(sights.count, 0);
}

static void what_is_gone_from_flash_is_not_shown(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "deleted", "value");
	run(h, STORE_DELETE, "deleted");
	run_full(h, .op = STORE_SET, .key = "expired", .value = "value", .length = 5, .exptime = 10);
	move(h, "expired");
	set_on_flash(h, "replaced", "old");
	set_on_flash(h, "kept", "value");
	set(h, "replaced", "new value");
	seconds_pass(h, 10);
	walk(h);
	assert_int_equal(times_seen("deleted", NULL), 0);
	assert_int_equal(times_seen("expired", NULL), 0);
	assert_int_equal(seen_once("replaced")->value_length, strlen("new value"));
	assert_false(seen_once("replaced")->from_flash);
	assert_true(seen_once("kept")->from_flash);
	store_flush_all(h->store, 0);
	walk(h);
	assert_int_equal(sights.count, 0);
}

static void flash_is_left_out_where_it_is_not_asked_for(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	set(h, "other", "value");
	assert_int_equal(walk_with(h, false, 0, NULL), FS_OK);
	assert_int_equal(times_seen("key", NULL), 0);
	seen_once("other");
}

static void a_see_that_says_no_is_not_called_again(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_many(h, "dram", 100);
	assert_int_equal(walk_with(h, true, 7, NULL), FS_OK);
	assert_int_equal(sights.count, 7);
}

static void nor_is_one_that_says_no_on_flash(void **state)
{
	struct harness *h = *state;
	unsigned dram;

	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_int_equal(walk_with(h, false, 0, NULL), FS_OK);
	dram = sights.count;
	assert_int_equal(walk_with(h, true, dram + 3, NULL), FS_OK);
	assert_int_equal(sights.count, dram + 3);
	assert_true(sights.sight[dram + 2].object.from_flash);
}

static void a_segment_that_cannot_be_read_is_reported_and_the_others_are_walked(void **state)
{
	struct harness *h = *state;
	unsigned all;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "first", "value");
	while (seg_sequence(h->store->segments, 3) == 0)
		assert_true(write_one(h));
	walk(h);
	all = sights.count;
	fault_arm(FAULT_reclaim_walk_fails, FAULT_AFTER, 0);
	assert_int_equal(walk_with(h, true, 0, NULL), FS_EIO);
	fault_arm(FAULT_reclaim_walk_fails, FAULT_OFF, 0);
	assert_in_range(sights.count, all / 2, all - 1);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void an_object_is_shown_as_it_is(void **state)
{
	struct harness *h = *state;
	const struct store_seen *object;
	int64_t now = clk_wall_seconds(), later; /* the wall clock isn't scripted */
	uint64_t cas;

	harness_open(h);
	cas = run_full(h, .op = STORE_SET, .key = "key", .value = "0123456789", .length = 10, .flags = 77,
		       .exptime = 1000)
		      .cas;
	set(h, "for ever", "");
	seconds_pass(h, 100);
	walk(h);
	later = clk_wall_seconds();
	object = seen_once("key");
	assert_int_equal(object->key_length, 3);
	assert_int_equal(object->value_length, 10);
	assert_int_equal(object->client_flags, 77);
	assert_true(object->cas == cas);
	assert_false(object->fetched);
	assert_false(object->from_flash);
	assert_in_range(object->expires, now + 899, later + 901);
	assert_in_range(object->accessed, now - 101, later - 99);
	assert_int_equal(object->bytes, item_bytes(ITEM_READS_FLAGS, 3, 10));
	assert_int_equal(store_class_bytes(object->class), 64);
	assert_true(seen_once("for ever")->expires == -1);
	get(h, "key");
	walk(h);
	assert_true(seen_once("key")->fetched);
	assert_in_range(seen_once("key")->accessed, now - 1, clk_wall_seconds() + 1);
}

static void an_object_on_flash_is_shown_as_it_was(void **state)
{
	struct harness *h = *state;
	const struct store_seen *object;
	int64_t now = clk_wall_seconds(), later; /* the wall clock isn't scripted */
	uint64_t cas;

	harness_open(h);
	cas = run_full(h, .op = STORE_SET, .key = "key", .value = "0123456789", .length = 10, .flags = 77,
		       .exptime = 1000)
		      .cas;
	seconds_pass(h, 100);
	move(h, "key");
	walk(h);
	later = clk_wall_seconds();
	object = seen_once("key");
	assert_true(object->from_flash);
	assert_int_equal(object->value_length, 10);
	assert_int_equal(object->client_flags, 77);
	assert_true(object->cas == cas);
	assert_false(object->fetched);
	assert_in_range(object->expires, now + 899, later + 901);
	assert_in_range(object->accessed, now - 106, later - 94);
	assert_int_equal(store_class_bytes(object->class), 64);
	assert_true(get(h, "key").from_flash);
	walk(h);
	assert_true(seen_once("key")->fetched);
}

static void each_object_is_shown_once_in_both_tiers(void **state)
{
	struct harness *h = *state;

	h->config.flash_bytes = MIB(4) + KIB(64); /* segments of a chain must not push the objects out */
	harness_open(h);
	set_many(h, "flash", 100);
	for (unsigned n = 0; n < 100; n++) {
		char key[32];

		snprintf(key, sizeof(key), "flash:%u", n);
		move(h, key);
	}
	set_many(h, "dram", 3000);
	walk(h);
	assert_each_seen_once("flash", 100);
	assert_each_seen_once("dram", 3000);
}

static void a_large_object_on_flash_is_shown(void **state)
{
	struct harness *h = *state;
	static char value[KIB(8)];

	harness_open(h);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = value, .length = sizeof(value)).result,
			 STORE_STORED);
	move(h, "large");
	walk(h);
	assert_true(seen_once("large")->from_flash);
	assert_int_equal(seen_once("large")->value_length, sizeof(value));
}

static void a_copy_for_reading_and_its_object_are_one(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	make_clean_copy(h, "key");
	walk(h);
	assert_int_equal(seen_once("key")->from_flash, !h->store->frugal);
	assert_int_equal(walk_with(h, false, 0, NULL), FS_OK);
	assert_false(seen_once("key")->from_flash);
}

static void keys_as_long_as_can_be_have_room(void **state)
{
	struct harness *h = *state;
	char key[STORE_KEY_MAX + 1];

	harness_open(h);
	memset(key, 'k', sizeof(key));
	key[STORE_KEY_MAX] = '\0';
	for (unsigned n = 0; n < 2000; n++) {
		snprintf(key, sizeof(key), "%u:%0*u", n, STORE_KEY_MAX - 6, n);
		memset(key + strlen(key), 'k', sizeof(key) - 1 - strlen(key));
		assert_int_equal(set(h, key, "").result, STORE_STORED);
	}
	walk(h);
	assert_int_equal(sights.count, 2000);
	for (unsigned i = 0; i < sights.count; i++)
		assert_int_equal(strlen(sights.sight[i].key), STORE_KEY_MAX);
}

/* ---- what happens meanwhile ------------------------------------------------------------------ */

static void more_are_set(struct harness *h, unsigned n)
{
	char key[32];

	for (unsigned i = 0; n <= 400 && i < 40; i++) {
		snprintf(key, sizeof(key), "later:%u", n * 40 + i);
		assert_int_equal(set(h, key, "").result, STORE_STORED);
	}
}

/* The buckets of every stripe double several times while the walk is in them. */
static void what_is_there_all_the_time_is_shown_once_though_the_table_grows(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	set_many(h, "before", 1000);
	assert_int_equal(walk_with(h, true, 0, more_are_set), FS_OK);
	assert_each_seen_once("before", 1000);
}

static void its_segment_goes(struct harness *h, unsigned n)
{
	(void)n;
	if (sights.sight[sights.count - 1].object.from_flash) {
		sights.meanwhile = NULL;
		/* Without a thread a reclaim waits for pins for ever: this returns because there is none. */
		reclaim_of(h, 0);
	}
}

static void a_segment_may_be_reclaimed_while_its_object_is_shown(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	while (seg_sequence(h->store->segments, 0) == 0)
		assert_true(write_one(h));
	assert_int_equal(walk_with(h, true, 0, its_segment_goes), FS_OK);
	assert_null(sights.meanwhile);
}

static void the_object_is_changed(struct harness *h, unsigned n)
{
	(void)n;
	sights.meanwhile = NULL;
	assert_int_equal(run(h, STORE_DELETE, sights.sight[0].key).result, STORE_DELETED);
}

static void an_object_may_be_changed_while_it_is_shown(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	assert_int_equal(walk_with(h, true, 0, the_object_is_changed), FS_OK);
	seen_once("key");
	assert_missing(h, "key");
	assert_nothing_left(h);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct size_rows {
	struct {
		uint32_t bytes;
		uint64_t objects;
	} row[32];
	unsigned count;
};

static void note_size(void *context, uint32_t bytes, uint64_t objects)
{
	struct size_rows *rows = context;

	assert_in_range(rows->count, 0, 31);
	rows->row[rows->count].bytes = bytes;
	rows->row[rows->count++].objects = objects;
}

static void sizes_are_counted_in_steps(void **state)
{
	struct harness *h = *state;
	static char value[KIB(1280)];
	struct size_rows rows = { 0 };

	h->config.flash_path = NULL;
	h->config.max_item_bytes = 2 << 20;
	harness_open(h);
	assert_int_equal(store_count_sizes(h->store, note_size, &rows), FS_OK);
	assert_int_equal(rows.count, 0);
	run_full(h, .op = STORE_SET, .key = "a", .value = value, .length = 64 - sizeof(struct item) - 1);
	run_full(h, .op = STORE_SET, .key = "b", .value = value, .length = 64 - sizeof(struct item));
	run_full(h, .op = STORE_SET, .key = "c", .value = value, .length = 96 - sizeof(struct item) - 1);
	run_full(h, .op = STORE_SET, .key = "gone", .value = value, .exptime = -1);
	run_full(h, .op = STORE_SET, .key = "d", .value = value, .length = STORE_SIZE_FINE);
	assert_int_equal(store_count_sizes(h->store, note_size, &rows), FS_OK);
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.row[0].bytes, 64);
	assert_int_equal(rows.row[0].objects, 1);
	assert_int_equal(rows.row[1].bytes, 96);
	assert_int_equal(rows.row[1].objects, 2);
	assert_int_equal(rows.row[2].bytes, STORE_SIZE_FINE + STORE_SIZE_FINE / 4);
	assert_int_equal(rows.row[2].objects, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_store_shows_nothing),
		TEST(what_is_gone_is_not_shown),
		TEST(what_is_gone_from_flash_is_not_shown),
		TEST(flash_is_left_out_where_it_is_not_asked_for),
		TEST(a_see_that_says_no_is_not_called_again),
		TEST(nor_is_one_that_says_no_on_flash),
		TEST(a_segment_that_cannot_be_read_is_reported_and_the_others_are_walked),
		TEST(an_object_is_shown_as_it_is),
		TEST(an_object_on_flash_is_shown_as_it_was),
		TEST(each_object_is_shown_once_in_both_tiers),
		TEST(a_large_object_on_flash_is_shown),
		TEST(a_copy_for_reading_and_its_object_are_one),
		TEST(keys_as_long_as_can_be_have_room),
		TEST(what_is_there_all_the_time_is_shown_once_though_the_table_grows),
		TEST(a_segment_may_be_reclaimed_while_its_object_is_shown),
		TEST(an_object_may_be_changed_while_it_is_shown),
		TEST(sizes_are_counted_in_steps),
	};

	return cmocka_run_group_tests_name("store: walk", tests, NULL, NULL);
}
