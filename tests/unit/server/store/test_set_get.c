/* SPDX-License-Identifier: BSD-3-Clause */
/* Set and get over DRAM and flash. */
#include "harness.h"

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

/* ---- negative cases -------------------------------------------------------------------------- */

static void a_key_that_is_nowhere_is_a_miss_without_a_read(void **state)
{
	struct harness *h = *state;
	uint64_t reads = ctr_sum(CTR_flash_reads);
	struct flight f;

	harness_open(h);
	assert_true(start(h, 0, &f, STORE_GET, "nothing"));
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
}

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

static void a_collision_that_was_met_costs_no_second_read(void **state)
{
	struct harness *h = *state;
	char twin[32];

	h->config.functions = 16;
	open_with_narrow_tags(h);
	set_on_flash(h, "owner", "its value");
	twin_of(h, "owner", twin, sizeof(twin));
	uint64_t met = ctr_sum(CTR_false_matches);
	assert_missing(h, twin);
	assert_true(ctr_sum(CTR_false_matches) > met);
	met = ctr_sum(CTR_false_matches);
	assert_missing(h, twin);
	assert_int_equal(ctr_sum(CTR_false_matches), met);
	assert_value(h, "owner", "its value");
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

static void an_object_over_a_quarter_of_a_segment_stays_in_dram(void **state)
{
	struct harness *h = *state;
	static char value[KIB(17)];

	harness_open(h);
	memset(value, 'v', sizeof(value));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "big", .value = value, .length = sizeof(value)).result,
			 STORE_STORED);
	for (int i = 0; i < 8; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, "big"), DRAM);
	assert_int_equal(get(h, "big").value_hash, hash64(value, sizeof(value), 0));
}

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

/* ---- set ------------------------------------------------------------------------------------- */

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

static void a_set_needs_no_flash_read(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	set_on_flash(h, "k", "old");
	uint64_t reads = ctr_sum(CTR_flash_reads);
	assert_true(start_with(h, 0, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3));
	assert_int_equal(f.reply.result, STORE_STORED);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	assert_int_equal(store_worker_pending(h->worker[0]), 0);
}

static void after_a_set_no_flash_read_brings_the_old_value_back(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "k", "old");
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	struct flight f;
	assert_true(start_with(h, 1, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3));
	finish(h, &slow); /* it began before the set: either value is right for it */
	assert_int_equal(slow.reply.result, STORE_HIT);
	assert_value(h, "k", "new");
	assert_int_equal(slots_of(h, "k"), 0);
	move(h, "k");
	assert_value(h, "k", "new");
}

static void a_slow_get_promotes_nothing_that_was_overwritten(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	start_with(h, 1, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3);
	finish(h, &slow);
	assert_value(h, "k", "new");
	assert_false(start(h, 0, &slow, STORE_GET, "k") && slow.reply.from_flash);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_missing(h, "k");
}

static void a_slow_get_promotes_nothing_that_was_deleted(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_int_equal(finish(h, &f).result, STORE_DELETED);
	finish(h, &slow);
	assert_int_equal(where(h, "k"), NOWHERE);
	assert_missing(h, "k");
}

/* What the protocols do where a set was refused. */
static enum store_result refuse(struct harness *h, const char *key, enum store_result why)
{
	struct flight f;

	flight_prepare(h, 0, &f, STORE_DELETE, key);
	f.request.has_options = true;
	f.request.options.refused = why;
	flight_execute(h, &f);
	return finish(h, &f).result;
}

static void what_a_refused_set_would_have_replaced_is_gone_from_both_tiers(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "k", "old");
	assert_int_equal(refuse(h, "k", STORE_TOO_LARGE), STORE_TOO_LARGE);
	assert_int_equal(where(h, "k"), NOWHERE);
	set(h, "k", "new");
	assert_int_equal(refuse(h, "k", STORE_NO_MEMORY), STORE_NO_MEMORY);
	assert_int_equal(where(h, "k"), NOWHERE);
	assert_missing(h, "k");
}

/* It clears what may be the key's, and so what is another key's too: that costs a miss, and never a wrong answer. */
static void a_delete_whose_answer_nobody_needs_reads_nothing(void **state)
{
	struct harness *h = *state;
	uint64_t reads, hits, misses;

	harness_open(h);
	set_on_flash(h, "k", "old");
	reads = ctr_sum(CTR_flash_reads), hits = ctr_sum(CTR_delete_hits), misses = ctr_sum(CTR_delete_misses);
	for (unsigned i = 0; i < 2; i++) {
		struct flight f;

		flight_prepare(h, 0, &f, STORE_DELETE, "k");
		f.request.has_options = f.request.options.blind = true;
		assert_true(flight_execute(h, &f));
		assert_int_equal(f.request.result, i == 0 ? STORE_DELETED : STORE_MISS);
		assert_int_equal(where(h, "k"), NOWHERE);
	}
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	assert_int_equal(ctr_sum(CTR_delete_hits), hits + 1);
	assert_int_equal(ctr_sum(CTR_delete_misses), misses + 1);
	assert_missing(h, "k");
}

/* ---- get ------------------------------------------------------------------------------------- */

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

static void large_objects_come_back_whole_from_their_extents(void **state)
{
	struct harness *h = *state;
	static char value[KIB(15)];

	harness_open(h);
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)(i * 31 + i / 251);
	run_full(h, .op = STORE_SET, .key = "large", .value = value, .length = sizeof(value), .flags = 9);
	move(h, "large");
	struct reply reply = get(h, "large");
	assert_true(reply.from_flash);
	assert_int_equal(reply.length, sizeof(value));
	assert_int_equal(reply.flags, 9);
	assert_int_equal(reply.value_hash, hash64(value, sizeof(value), 0));
	assert_int_equal(set(h, "large", "small").result, STORE_STORED);
	assert_int_equal(slots_of(h, "large"), 0);
	assert_value(h, "large", "small");
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

static struct store_value held;

static void hold(struct store_request *request)
{
	held = request->value;
}

static void a_value_stays_valid_until_released_whatever_becomes_of_its_segment(void **state)
{
	struct harness *h = *state;
	struct store_request request = { .op = STORE_GET, .key = "k", .key_length = 1, .done = hold };

	harness_open(h);
	set_on_flash(h, "k", "the value");
	uint32_t segment = segment_of(h, "k");
	request.hash = store_hash(h->store, "k", 1);
	held.data = NULL;
	assert_false(store_execute(h->worker[0], &request));
	drain(h, 0);
	assert_true(held.from_flash);
	set(h, "k", "new");
	reclaim_of(h, segment);
	assert_memory_equal(held.data, "the value", 9);
	store_value_release(h->worker[0], &held);
	set(h, "k", "new");
	request.op = STORE_GET; /* and one from DRAM */
	assert_true(store_execute(h->worker[0], &request));
	run(h, STORE_DELETE, "k");
	assert_memory_equal(request.value.data, "new", 3);
	store_value_release(h->worker[0], &request.value);
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

static void without_flash_it_is_a_dram_cache(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(store_worker_fds(h->worker[0]).completions, -1);
	assert_int_equal(store_worker_fds(h->worker[0]).timer, -1);
	set(h, "k", "val");
	assert_value(h, "k", "val");
	assert_int_equal(run(h, STORE_DELETE, "k").result, STORE_DELETED);
	assert_missing(h, "k");
	store_clean_step(h->store);
	assert_nothing_left(h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_that_is_nowhere_is_a_miss_without_a_read),
		TEST(another_keys_slot_is_never_answered_with),
		TEST(a_collision_that_was_met_costs_no_second_read),
		TEST(an_innocent_slot_that_goes_with_a_set_is_a_miss_never_a_wrong_answer),
		TEST(an_object_over_a_quarter_of_a_segment_stays_in_dram),
		TEST(an_expired_flash_object_is_dropped_when_met),
		TEST(a_flushed_flash_object_is_dropped_when_met),
		TEST(a_set_clears_every_slot_that_may_be_the_keys),
		TEST(a_set_needs_no_flash_read),
		TEST(after_a_set_no_flash_read_brings_the_old_value_back),
		TEST(a_slow_get_promotes_nothing_that_was_overwritten),
		TEST(a_slow_get_promotes_nothing_that_was_deleted),
		TEST(a_delete_whose_answer_nobody_needs_reads_nothing),
		TEST(what_a_refused_set_would_have_replaced_is_gone_from_both_tiers),
		TEST(a_get_on_flash_leaves_the_object_there_and_sets_clock),
		TEST(a_get_adds_one_to_clock_where_it_is_mfu_like),
		TEST(clock_bits_go_along_to_flash),
		TEST(a_ghost_that_is_read_is_live_again),
		TEST(large_objects_come_back_whole_from_their_extents),
		TEST(keys_of_any_length_and_empty_values_come_back),
		TEST(a_value_stays_valid_until_released_whatever_becomes_of_its_segment),
		TEST(many_reads_of_one_worker_are_in_flight_together),
		TEST(without_flash_it_is_a_dram_cache),
	};

	return cmocka_run_group_tests_name("store: set and get", tests, NULL, NULL);
}
