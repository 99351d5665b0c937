/* SPDX-License-Identifier: BSD-3-Clause */
/* The rebuild of the index: what comes back, and what commands do meanwhile. */
#include "tests/unit/server/store/crash.h"

#define OBJECTS 30

static void name(char out[16], unsigned n)
{
	snprintf(out, 16, "object-%u", n);
}

static void fill(struct crash *c)
{
	char key[16];

	for (unsigned n = 0; n < OBJECTS; n++) {
		name(key, n);
		set(&c->h, key, key);
	}
	for (unsigned n = 0; n < OBJECTS; n++) {
		name(key, n);
		if (where(&c->h, key) != FLASH)
			move(&c->h, key);
	}
	assert_true(write_one(&c->h)); /* it is walked first */
}

static unsigned count(struct crash *c)
{
	unsigned there = 0;
	char key[16];

	for (unsigned n = 0; n < OBJECTS; n++) {
		struct reply reply;

		name(key, n);
		reply = get(&c->h, key);
		if (reply.result == STORE_HIT)
			assert_string_equal(reply.value, key);
		there += reply.result == STORE_HIT;
	}
	return there;
}

static void all_of_it_comes_back(void **state)
{
	struct crash *c = *state;
	struct store_status before, after;

	fill(c);
	store_get_status(c->h.store, &before);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_int_equal(count(c), 0);
	crash_rebuild(c);
	assert_int_equal(count(c), OBJECTS);
	store_get_status(c->h.store, &after);
	assert_int_equal(after.index.used + after.index.extents_used, before.index.used + before.index.extents_used);
	assert_int_equal(after.rebuilt_segments, after.rebuild_segments);
	assert_int_equal(after.segments.live, before.segments.live);
	assert_int_equal(after.index.filter_bytes, before.index.filter_bytes);
	/* Life goes on: the ring, and its reclaims. */
	for (int i = 0; i < 20; i++)
		assert_true(write_one(&c->h));
	(void)count(c);
}

static void what_commands_touch_meanwhile_stays_as_they_left_it(void **state)
{
	struct crash *c = *state;

	fill(c);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	set(&c->h, "object-1", "new");
	assert_int_equal(run(&c->h, STORE_DELETE, "object-2").result, STORE_MISS);
	assert_int_equal(run_with(&c->h, STORE_APPEND, "object-3", "x").result, STORE_NOT_STORED);
	assert_int_equal(run_with(&c->h, STORE_ADD, "object-4", "new").result, STORE_STORED);
	assert_int_equal(run(&c->h, STORE_DELETE, "object-4").result, STORE_DELETED);
	assert_int_equal(run_expiry(&c->h, STORE_TOUCH, "object-5", 100).result, STORE_MISS);
	assert_missing(&c->h, "object-6");
	crash_rebuild(c);
	assert_value(&c->h, "object-1", "new");
	for (unsigned n = 2; n <= 5; n++) {
		char key[16];

		name(key, n);
		assert_missing(&c->h, key);
	}
	assert_value(&c->h, "object-6", "object-6");
}

/* The commands of the first rebuild are known to the second one. */
static void a_crash_within_a_rebuild(void **state)
{
	struct crash *c = *state;

	fill(c);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	set(&c->h, "object-1", "new");
	(void)run(&c->h, STORE_DELETE, "object-2");
	assert_true(cleaner_step(c->h.store));
	assert_non_null(c->h.store->rebuild);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "object-1");
	assert_missing(&c->h, "object-2");
	assert_value(&c->h, "object-3", "object-3");
	/* And to a third one, with newer objects of the same keys in newer segments. */
	set_on_flash(&c->h, "object-1", "newest");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "object-1", "newest");
	assert_missing(&c->h, "object-2");
}

/* A key that a rebuild's command has changed has a newer object in a newer segment, and further rebuilds follow, each with
   commands of its own: they are not about that key. What was deleted stays away, however many there are. */
static void each_rebuild_s_changes_are_about_its_own_segments(void **state)
{
	struct crash *c = *state;

	fill(c);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(crash(c), STORE_START_REBUILT);
		if (i == 0) {
			(void)run(&c->h, STORE_DELETE, "object-1");
			(void)run(&c->h, STORE_DELETE, "object-2");
		} else {
			(void)run(&c->h, STORE_DELETE, "another");
		}
		crash_rebuild(c);
		if (i == 0)
			set_on_flash(&c->h, "object-1", "newest");
		else
			set_on_flash(&c->h, "filler", "newer segment");
		assert_missing(&c->h, "object-2");
		if (i < 8)
			assert_value(&c->h, "object-1", "newest");
		else if (get(&c->h, "object-1").result == STORE_HIT)
			assert_value(&c->h, "object-1", "newest");
	}
}

static void a_flush_meanwhile(void **state)
{
	struct crash *c = *state;

	fill(c);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	store_flush_all(c->h.store, 0);
	crash_rebuild(c);
	assert_int_equal(count(c), 0);
}

static uint8_t *segment_at_rest(struct crash *c, uint32_t segment)
{
	return c->memory + (64u << 10) + segment * c->h.store->segment_bytes;
}

/* A segment whose header or tail is gone is left out, also by the next rebuild when it is whole again. */
static void a_torn_segment_is_left_out(void **state)
{
	struct crash *c = *state;
	uint32_t segment;
	uint8_t *byte;
	unsigned kept;

	fill(c);
	segment = segment_of(&c->h, "object-7");
	byte = segment_at_rest(c, segment) + 60;
	*byte ^= 1;
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "object-7");
	kept = count(c);
	set(&c->h, "object-7", "new");
	*byte ^= 1;
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "object-7");
	assert_true(count(c) <= kept);
}

static void a_broken_record_leaves_its_segment_out_of_the_next_rebuild(void **state)
{
	struct crash *c = *state;
	struct fidx_match match;
	struct fidx_key key;
	uint64_t hash, offset;

	fill(c);
	assert_true(slot_of(&c->h, "object-7", &match));
	hash = store_hash(c->h.store, "object-7", 8);
	fidx_key_of(c->h.store->index, hash, &key);
	offset = seg_position(c->h.store->segments, match.segment, fidx_place(c->h.store->index, &key, match.segment),
			      match.function);
	segment_at_rest(c, match.segment)[offset + 33] ^= 1;
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "object-7");
	segment_at_rest(c, match.segment)[offset + 33] ^= 1; /* readable again */
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "object-7");
}

/* As if the cleaner's thread were asked to end. */
static void stopping(struct crash *c, bool on)
{
	c->h.store->cleaner->background.threaded = on;
	atomic_store(&c->h.store->cleaner->background.stopping, on);
}

/* The next start begins it again, whatever the stop met: between two segments, or within one. */
static void a_clean_stop_in_the_middle_loses_nothing(void **state)
{
	struct crash *c = *state;

	fill(c);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	(void)run(&c->h, STORE_DELETE, "object-2");
	assert_true(cleaner_step(c->h.store));
	assert_false(store_save(c->h.store));
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_true(cleaner_step(c->h.store));
	stopping(c, true);
	(void)cleaner_step(c->h.store);
	(void)cleaner_step(c->h.store); /* does nothing more */
	stopping(c, false);
	assert_non_null(c->h.store->rebuild);
	assert_false(store_save(c->h.store));
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_int_equal(count(c), OBJECTS - 1);
}

/* Nothing but a whole journal lets the next start begin again, and with a region it would not look there. */
static void a_rebuild_that_could_not_begin_again_is_saved_as_it_is(void **state)
{
	struct crash *c = *state;

	assert_false(losses_rebuild_again(c->h.store));
	fill(c);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_true(losses_rebuild_again(c->h.store));
	c->h.store->config.region_dir = "/nowhere";
	assert_false(losses_rebuild_again(c->h.store));
	c->h.store->config.region_dir = NULL;
	c->journal.fail_sync = -5;
	(void)run(&c->h, STORE_DELETE, "object-2");
	c->journal.fail_sync = 0;
	assert_false(losses_rebuild_again(c->h.store));
	crash_rebuild(c);
	assert_false(losses_rebuild_again(c->h.store));
	assert_int_equal(count(c), OBJECTS - 1);
}

static uint64_t losses_bytes(const struct crash *c)
{
	return atomic_load(&c->h.store->losses_bytes);
}

static void its_memory_counts_until_it_is_done(void **state)
{
	struct crash *c = *state;
	uint64_t before, budget;

	/* The journal has room for entries once one has waited, as in each start that goes on with an earlier run. */
	losses_served(c->h.store);
	before = losses_bytes(c);
	fill(c);
	for (unsigned n = 0; n < 10; n++) {
		char key[16];

		name(key, n);
		(void)run(&c->h, STORE_DELETE, key);
	}
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_true(losses_bytes(c) > before + (64u << 10));
	budget = store_item_budget(c->h.store);
	crash_rebuild(c);
	assert_int_equal(losses_bytes(c), before);
	assert_true(store_item_budget(c->h.store) > budget);
	/* Of an earlier rebuild's changes too. */
	assert_int_equal(crash(c), STORE_START_REBUILT);
	(void)run(&c->h, STORE_DELETE, "object-20");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_true(losses_bytes(c) > before + (128u << 10));
	crash_rebuild(c);
	assert_int_equal(losses_bytes(c), before);
}

/* With ever less memory: first all is walked, then fewer segments, of which the journal keeps no more losses than of the
   others. None of it is stale. */
static void what_has_no_room_is_left_out_from_the_oldest_on(void **state)
{
	struct crash *c = *state;
	uint32_t all;
	bool left_out = false;

	fill(c);
	(void)run(&c->h, STORE_DELETE, "object-0");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	all = c->h.store->rebuild_segments;
	assert_true(all >= 2);
	for (unsigned i = 0; i < 200 && !left_out; i++) {
		c->h.config.memory_bytes -= 64u << 10;
		if (crash(c) != STORE_START_REBUILT)
			break;
		left_out = c->h.store->rebuild_segments < all;
	}
	assert_true(left_out);
	crash_rebuild(c);
	assert_missing(&c->h, "object-0");
	assert_true(count(c) < OBJECTS - 1);
	set(&c->h, "object-1", "new"); /* of which nothing may be written down */
	c->h.config.memory_bytes = 8u << 20;
	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_true(c->h.store->rebuild_segments < all);
	crash_rebuild(c);
	assert_missing(&c->h, "object-0");
	if (get(&c->h, "object-1").result == STORE_HIT)
		fail();
}

/* A segment that is reclaimed before its turn, as on a move to a smaller flash, takes no older one along. */
static void an_early_reclaim_costs_no_older_segment(void **state)
{
	struct crash *c = *state;
	uint32_t oldest, early;

	set_on_flash(&c->h, "old", "value");
	fill(c);
	early = segment_of(&c->h, "object-1");
	assert_true(seg_oldest(c->h.store->segments, &oldest));
	assert_int_not_equal(segment_of(&c->h, "old"), early);
	assert_int_not_equal(oldest, early);
	assert_true(reclaim_segment(c->h.store, early));
	set(&c->h, "object-1", "newer");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "old", "value");
	assert_missing(&c->h, "object-1");
	(void)count(c);
}

static void nothing_to_walk(void **state)
{
	struct crash *c = *state;

	assert_int_equal(crash(c), STORE_START_REBUILT);
	assert_null(c->h.store->rebuild);
	fill(c);
	assert_int_equal(count(c), OBJECTS);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, crash_setup, crash_teardown)
	const struct CMUnitTest tests[] = {
		CASE(all_of_it_comes_back),
		CASE(what_commands_touch_meanwhile_stays_as_they_left_it),
		CASE(a_crash_within_a_rebuild),
		CASE(each_rebuild_s_changes_are_about_its_own_segments),
		CASE(a_flush_meanwhile),
		CASE(a_torn_segment_is_left_out),
		CASE(a_broken_record_leaves_its_segment_out_of_the_next_rebuild),
		CASE(a_clean_stop_in_the_middle_loses_nothing),
		CASE(a_rebuild_that_could_not_begin_again_is_saved_as_it_is),
		CASE(its_memory_counts_until_it_is_done),
		CASE(what_has_no_room_is_left_out_from_the_oldest_on),
		CASE(an_early_reclaim_costs_no_older_segment),
		CASE(nothing_to_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
