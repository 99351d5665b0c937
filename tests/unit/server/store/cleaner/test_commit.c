/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands on objects in flight between DRAM and flash, from when they are gathered to when their segment is committed:
 * only what is still current goes into the index.
 */
#include "tests/unit/server/store/operations.h"

static const struct operation *acting;
static struct subject subjects[SUBJECTS];
static unsigned acted_on;

static void act_on_planned(struct harness *h)
{
	for (unsigned i = 0; i < SUBJECTS; i++) {
		assert_int_equal(where(h, subjects[i].key), PLANNED);
		acting->act(h, &subjects[i]);
		subject_check(h, acting, &subjects[i]);
		acted_on++;
	}
}

static void check_after_commit(struct harness *h)
{
	for (unsigned i = 0; i < SUBJECTS; i++) {
		if (!acting->reads_only)
			assert_int_equal(slots_of(h, subjects[i].key), 0);
		subject_check(h, acting, &subjects[i]);
	}
	for (unsigned i = 0; i < SUBJECTS; i++)
		if (where(h, subjects[i].key) == DRAM)
			move(h, subjects[i].key);
	for (unsigned i = 0; i < SUBJECTS; i++)
		subject_check(h, acting, &subjects[i]);
	subjects_expire(h, acting, subjects);
}

static void run_in_flight(struct harness *h, enum phase phase)
{
	for (unsigned n = 0; n < OPERATION_COUNT; n++) {
		uint64_t dead = ctr_sum(CTR_flash_dead_on_commit);

		acting = &OPERATIONS[n];
		acted_on = 0;
		subjects_make(h, subjects, n);
		while_planned(h, subjects[0].key, phase, act_on_planned);
		assert_int_equal(acted_on, SUBJECTS);
		if (!acting->reads_only) /* a change leaves dead bytes in the segment */
			assert_true(ctr_sum(CTR_flash_dead_on_commit) > dead);
		check_after_commit(h);
	}
}

static void each_command_on_an_object_that_is_gathered(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_in_flight(h, PHASE_GATHERED);
}

static void each_command_on_an_object_that_is_written_but_not_committed(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_in_flight(h, PHASE_WRITTEN);
}

/* ---- immutable items ------------------------------------------------------------------------- */

static struct item *planned_item;
static char planned_value[32];

static struct item *item_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));
}

static void change_in_every_way(struct harness *h)
{
	planned_item = item_of(h, "n");
	assert_true(planned_item->state & ITEM_PLANNED);
	uint64_t cas = planned_item->cas;
	uint32_t expiry = planned_item->expiry;
	item_ref(planned_item);
	assert_int_equal(run_number(h, STORE_INCR, "n", 1).result, STORE_HIT);
	assert_ptr_not_equal(item_of(h, "n"), planned_item);
	run_number(h, STORE_INCR, "n", 1);
	run_expiry(h, STORE_TOUCH, "n", 50);
	run_with(h, STORE_APPEND, "n", "0");
	run(h, STORE_DELETE, "n");
	set(h, "n", "other");
	assert_int_equal(planned_item->cas, cas);
	assert_int_equal(planned_item->expiry, expiry);
	memcpy(planned_value, item_value(planned_item), planned_item->value_length);
	item_release(&h->worker[0]->context, planned_item);
}

static void an_item_in_a_plan_is_immutable_a_change_replaces_it(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "n", "41");
	while_planned(h, "n", PHASE_WRITTEN, change_in_every_way);
	assert_string_equal(planned_value, "41");
	assert_int_equal(where(h, "n"), DRAM);
	assert_value(h, "n", "other");
}

static void touch_first(struct harness *h)
{
	struct item *old = item_of(h, "n");

	assert_int_equal(run_expiry(h, STORE_TOUCH, "n", 50).result, STORE_TOUCHED);
	assert_ptr_not_equal(item_of(h, "n"), old);
	assert_int_equal(old->expiry, 0);
}

static void a_touch_replaces_a_planned_item_too(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "n", "41");
	while_planned(h, "n", PHASE_WRITTEN, touch_first);
	assert_int_equal(where(h, "n"), DRAM);
	seconds_pass(h, 49);
	assert_value(h, "n", "41");
	seconds_pass(h, 1);
	assert_missing(h, "n");
}

/* ---- what goes along ------------------------------------------------------------------------- */

static void flush_while_planned(struct harness *h)
{
	store_flush_all(h->store, 0);
	assert_missing(h, "k");
}

static void what_is_flushed_while_planned_does_not_reach_the_index(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "k", "value");
	while_planned(h, "k", PHASE_WRITTEN, flush_while_planned);
	assert_missing(h, "k");
	struct fidx_status status;
	fidx_get_status(h->store->index, &status);
	assert_int_equal(status.used, 0);
}

static void pass_ten_seconds(struct harness *h)
{
	seconds_pass(h, 10);
}

static void what_expires_while_planned_is_missing_afterwards(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "k", .value = "val", .length = 3, .exptime = 10);
	while_planned(h, "k", PHASE_WRITTEN, pass_ten_seconds);
	assert_missing(h, "k");
}

static void read_while_planned(struct harness *h)
{
	get(h, "k");
}

static void clock_of_a_read_while_planned_goes_along(void **state)
{
	struct harness *h = *state;
	struct fidx_match match;

	harness_open(h);
	for (int i = 0; i < 50; i++) {
		set(h, "k", "value");
		while_planned(h, "k", PHASE_WRITTEN, read_while_planned);
		if (where(h, "k") == FLASH)
			break;
	}
	assert_true(slot_of(h, "k", &match));
	assert_int_equal(match.clock, 3);
}

static struct fidx_match match_of(struct harness *h, const char *key)
{
	struct fidx_match match;

	assert_true(slot_of(h, key, &match));
	return match;
}

static void clock_bits_go_along_to_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "read", "val");
	get(h, "read");
	move(h, "read");
	assert_int_equal(match_of(h, "read").clock, 3);
	assert_false(match_of(h, "read").read_on_flash);
	set_on_flash(h, "unread", "val");
	assert_int_equal(match_of(h, "unread").clock, 1);
}

/* ---- accounts -------------------------------------------------------------------------------- */

static void replace_all(struct harness *h)
{
	char key[16];

	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		if (i % 3 == 0)
			run(h, STORE_DELETE, key);
		else if (i % 3 == 1)
			run_with(h, STORE_APPEND, key, "more");
		else
			run_expiry(h, STORE_TOUCH, key, 100);
	}
}

static void the_accounts_return_to_where_they_were(void **state)
{
	struct harness *h = *state;
	char key[16];

	harness_open(h);
	uint64_t used = store_used_bytes(h->store);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 300; i++) {
			snprintf(key, sizeof(key), "key:%d", i);
			set(h, key, "some value that is there");
		}
		while_planned(h, "key:1", round % 2 ? PHASE_WRITTEN : PHASE_GATHERED, replace_all);
	}
	store_flush_all(h->store, 0);
	seconds_pass(h, 61);
	store_clean_step(h->store); /* the crawler takes what was flushed */
	seconds_pass(h, 61);
	store_clean_step(h->store);
	assert_nothing_left(h);
	assert_in_range(store_used_bytes(h->store), used, used + KIB(256)); /* grown tables, read buffers */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_command_on_an_object_that_is_gathered),
		TEST(each_command_on_an_object_that_is_written_but_not_committed),
		TEST(an_item_in_a_plan_is_immutable_a_change_replaces_it),
		TEST(a_touch_replaces_a_planned_item_too),
		TEST(what_is_flushed_while_planned_does_not_reach_the_index),
		TEST(what_expires_while_planned_is_missing_afterwards),
		TEST(clock_of_a_read_while_planned_goes_along),
		TEST(clock_bits_go_along_to_flash),
		TEST(the_accounts_return_to_where_they_were),
	};

	return cmocka_run_group_tests_name("store: commit", tests, NULL, NULL);
}
