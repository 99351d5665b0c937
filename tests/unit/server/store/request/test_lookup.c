/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of flash: matches that are other keys', reads that fail, and what a hit leaves behind. */
#include "tests/unit/server/store/harness.h"

/* ---- helpers --------------------------------------------------------------------------------- */

/* Another key with the same tag and bucket pair: one to the index. Narrow tags only. */
static void twin_of(struct harness *h, const char *key, char *out, size_t room)
{
	struct fidx_key own, other;

	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), &own);
	for (unsigned n = 0;; n++) {
		snprintf(out, room, "twin:%u", n);
		fidx_key_of(h->store->index, store_hash(h->store, out, strlen(out)), &other);
		if (fidx_place_in(h->store->index, &other, 0) == fidx_place_in(h->store->index, &own, 0))
			return;
	}
}

static void open_with_narrow_tags(struct harness *h)
{
	h->config.tag_bits = 2;
	h->config.filter_bits = 0;
	harness_open(h);
}

static struct fidx_match match_of(struct harness *h, const char *key)
{
	struct fidx_match match;

	assert_true(slot_of(h, key, &match));
	return match;
}

/* ---- other keys' slots ----------------------------------------------------------------------- */

static void another_keys_slot_is_never_answered_with(void **state)
{
	struct harness *h = *state;
	char twin[32];

	open_with_narrow_tags(h);
	set_on_flash(h, "owner", "its value");
	twin_of(h, "owner", twin, sizeof(twin));
	assert_true(slots_of(h, twin) > 0);
	assert_missing(h, twin);
	assert_value(h, "owner", "its value");
}

/* Does the owner's slot count as one of the twin's? */
static bool is_met_by(struct harness *h, const char *owner, const char *twin)
{
	struct fidx_match own = match_of(h, owner), match[FIDX_MAX_MATCHES];
	struct fidx_key key;

	fidx_key_of(h->store->index, store_hash(h->store, twin, strlen(twin)), &key);
	for (unsigned i = fidx_lookup(h->store->index, &key, match); i-- > 0;)
		if (fidx_same(&match[i], &own))
			return true;
	return false;
}

/* A record of which the first read has only a part teaches nothing, so there are several owners. */
static void a_collision_that_was_met_costs_no_second_read(void **state)
{
	struct harness *h = *state;
	char owner[32], twin[32];
	bool learnt = false;

	h->config.functions = 16;
	open_with_narrow_tags(h);
	for (unsigned n = 0; n < 8 && !learnt; n++) {
		snprintf(owner, sizeof(owner), "owner:%u", n);
		set_on_flash(h, owner, "its value");
		twin_of(h, owner, twin, sizeof(twin));
		assert_true(is_met_by(h, owner, twin));
		uint64_t met = ctr_sum(CTR_false_matches);
		assert_missing(h, twin);
		assert_true(ctr_sum(CTR_false_matches) > met);
		learnt = !is_met_by(h, owner, twin);
		assert_value(h, owner, "its value");
	}
	assert_true(learnt);
}

static void an_innocent_slot_that_goes_with_a_set_is_a_miss_never_a_wrong_answer(void **state)
{
	struct harness *h = *state;
	char twin[32];

	open_with_narrow_tags(h);
	set_on_flash(h, "owner", "its value");
	twin_of(h, "owner", twin, sizeof(twin));
	set(h, twin, "another");
	assert_int_equal(slots_of(h, "owner"), 0);
	assert_missing(h, "owner");
	assert_value(h, twin, "another");
}

static void set_for_a_while(struct harness *h)
{
	run_full(h, .op = STORE_SET, .key = h->hook_argument, .value = "value", .length = 5, .exptime = 100);
}

/* The owner's slot comes after the set of its twin, so that the get of the twin finds that expired in DRAM, and reads. */
static void what_has_expired_is_gone_before_another_keys_slot_is_read(void **state)
{
	struct harness *h = *state;
	char twin[32];
	uint64_t met;
	int64_t bytes;

	open_with_narrow_tags(h);
	set(h, "owner", "its value");
	twin_of(h, "owner", twin, sizeof(twin));
	h->hook_argument = twin;
	while_planned(h, "owner", PHASE_GATHERED, set_for_a_while);
	assert_int_equal(where(h, "owner"), FLASH);
	assert_int_equal(where(h, twin), DRAM);
	context_settle(&h->worker[0]->context);
	bytes = atomic_load(&h->store->item_bytes);
	seconds_pass(h, 200);
	met = ctr_sum(CTR_false_matches);
	assert_missing(h, twin);
	assert_true(ctr_sum(CTR_false_matches) > met);
	context_settle(&h->worker[0]->context);
	assert_true(atomic_load(&h->store->item_bytes) < bytes);
	assert_value(h, "owner", "its value");
}

static void a_set_clears_every_slot_that_may_be_the_keys(void **state)
{
	struct harness *h = *state;

	open_with_narrow_tags(h);
	set_on_flash(h, "k", "old");
	for (int i = 0; i < 6 || slots_of(h, "k") == 0; i++) /* with two bits many others' may be its */
		assert_true(write_one(h));
	assert_int_equal(set(h, "k", "new").result, STORE_STORED);
	assert_int_equal(slots_of(h, "k"), 0);
	assert_int_equal(where(h, "k"), DRAM);
	assert_value(h, "k", "new");
}

/* ---- reads that fail ------------------------------------------------------------------------- */

/* The object goes: a bad block would fail all later gets too, until the device is taken offline. */
static void a_failed_read_is_a_miss_with_its_own_counter(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_read_errors), misses = ctr_sum(CTR_get_misses);
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_missing(h, "key");
	assert_int_equal(ctr_sum(CTR_flash_read_errors), errors + 1);
	assert_int_equal(ctr_sum(CTR_get_misses), misses + 1);
	assert_missing(h, "key");
	assert_int_equal(ctr_sum(CTR_flash_read_errors), errors + 1); /* there is nothing to read */
	assert_int_equal(where(h, "key"), NOWHERE);
}

static void a_corrupt_read_is_a_miss_with_its_own_counter(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_checksum_errors), bad = ctr_sum(CTR_false_matches), met = bad + errors;
	fault_arm(FAULT_device_read_corrupt, FAULT_ALWAYS, 0);
	assert_missing(h, "key");
	assert_true(ctr_sum(CTR_flash_checksum_errors) + ctr_sum(CTR_false_matches) > met);
	if (ctr_sum(CTR_flash_checksum_errors) > errors)
		assert_int_equal(where(h, "key"), NOWHERE);
	fault_disarm_all();
}

/* What an absent key was answered with must stay true: the value can't come back later. */
static void after_a_failed_read_no_command_brings_the_value_back(void **state)
{
	static const enum store_op ops[] = { STORE_DELETE, STORE_TOUCH, STORE_INCR, STORE_GAT };
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		set_on_flash(h, "key", "10");
		fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
		assert_int_equal(run(h, ops[i], "key").result, STORE_MISS);
		assert_missing(h, "key");
	}
	set_on_flash(h, "key", "10");
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_int_equal(run_with(h, STORE_ADD, "key", "new").result, STORE_STORED);
	assert_value(h, "key", "new");
}

/* ---- dead objects ---------------------------------------------------------------------------- */

static void an_expired_flash_object_is_dropped_when_met(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "k", .value = "val", .length = 3, .exptime = 10);
	move(h, "k");
	seconds_pass(h, 9);
	assert_value(h, "k", "val");
	assert_int_equal(slots_of(h, "k"), 1);
	seconds_pass(h, 2);
	assert_missing(h, "k");
	assert_int_equal(slots_of(h, "k"), 0);
}

static void a_flushed_flash_object_is_dropped_when_met(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "k", "val");
	store_flush_all(h->store, 0);
	assert_int_equal(slots_of(h, "k"), 1);
	assert_missing(h, "k");
	assert_int_equal(slots_of(h, "k"), 0);
}

/* ---- hits ------------------------------------------------------------------------------------ */

static void a_get_on_flash_leaves_the_object_there_and_sets_clock(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "k", "val");
	uint64_t items = store_dram_items(h->store), reads = ctr_sum(CTR_flash_reads);
	uint64_t hits = ctr_sum(CTR_flash_hits);
	struct reply reply = get(h, "k");
	assert_true(reply.from_flash);
	assert_string_equal(reply.value, "val");
	assert_int_equal(store_dram_items(h->store), items);
	assert_int_equal(where(h, "k"), FLASH);
	assert_int_equal(match_of(h, "k").clock, 3);
	assert_true(match_of(h, "k").read_on_flash);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads + 1); /* one read a hit */
	assert_int_equal(ctr_sum(CTR_flash_hits), hits + 1);
}

static void a_get_adds_one_to_clock_where_it_is_mfu_like(void **state)
{
	struct harness *h = *state;

	h->config.clock_mode = FIDX_CLOCK_MFU;
	harness_open(h);
	set_on_flash(h, "k", "val");
	unsigned before = match_of(h, "k").clock;
	get(h, "k");
	assert_int_equal(match_of(h, "k").clock, before + 1);
}

static void a_ghost_that_is_read_is_live_again(void **state)
{
	struct harness *h = *state;
	struct fidx_status status;
	uint64_t visited;

	harness_open(h);
	set_on_flash(h, "k", "val");
	fidx_get_status(h->store->index, &status);
	for (int turn_of_hand = 0; turn_of_hand < 8; turn_of_hand++)
		fidx_hand(h->store->index, status.slots, UINT64_MAX / 2, &visited);
	assert_true(match_of(h, "k").ghost);
	assert_true(get(h, "k").from_flash);
	assert_false(match_of(h, "k").ghost);
	assert_true(match_of(h, "k").read_on_flash);
}

static void keys_of_any_length_and_empty_values_come_back(void **state)
{
	struct harness *h = *state;
	char key[STORE_KEY_MAX + 1];

	harness_open(h);
	memset(key, 'k', STORE_KEY_MAX);
	key[STORE_KEY_MAX] = '\0';
	set_on_flash(h, key, "");
	struct reply reply = get(h, key);
	assert_int_equal(reply.result, STORE_HIT);
	assert_true(reply.from_flash);
	assert_int_equal(reply.length, 0);
	set_on_flash(h, "xyz", "");
	assert_value(h, "xyz", "");
}

static void many_reads_of_one_worker_are_in_flight_together(void **state)
{
	struct harness *h = *state;
	static struct flight flight[100];
	char key[16];

	harness_open(h);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		set(h, key, key);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		move(h, key);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_false(start(h, 0, &flight[i], STORE_GET, key));
	}
	assert_int_equal(store_worker_pending(h->worker[0]), 100);
	for (int i = 99; i >= 0; i--) {
		finish(h, &flight[i]);
		assert_string_equal(flight[i].reply.value, flight[i].key);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_keys_slot_is_never_answered_with),
		TEST(a_collision_that_was_met_costs_no_second_read),
		TEST(an_innocent_slot_that_goes_with_a_set_is_a_miss_never_a_wrong_answer),
		TEST(what_has_expired_is_gone_before_another_keys_slot_is_read),
		TEST(a_set_clears_every_slot_that_may_be_the_keys),
		TEST(a_failed_read_is_a_miss_with_its_own_counter),
		TEST(a_corrupt_read_is_a_miss_with_its_own_counter),
		TEST(after_a_failed_read_no_command_brings_the_value_back),
		TEST(an_expired_flash_object_is_dropped_when_met),
		TEST(a_flushed_flash_object_is_dropped_when_met),
		TEST(a_get_on_flash_leaves_the_object_there_and_sets_clock),
		TEST(a_get_adds_one_to_clock_where_it_is_mfu_like),
		TEST(a_ghost_that_is_read_is_live_again),
		TEST(keys_of_any_length_and_empty_values_come_back),
		TEST(many_reads_of_one_worker_are_in_flight_together),
	};

	return cmocka_run_group_tests_name("store: lookups", tests, NULL, NULL);
}
