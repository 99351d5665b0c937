/* SPDX-License-Identifier: BSD-3-Clause */
/* -M: what was answered STORED is there until its client changes it, whatever is full and whatever a slot may be taken for. */
#include "harness.h"
#include "segments/segments_internal.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)

static char big[KIB(100)];

static void open_with_narrow_tags(struct harness *h)
{
	h->config.evict = false;
	h->config.tag_bits = 2;
	h->config.filter_bits = 0;
	harness_use_ram(h);
	harness_open(h);
	keep_no_reads(h);
}

static uint64_t place(struct harness *h, const char *key)
{
	struct fidx_key k;

	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), &k);
	return fidx_place_in(h->store->index, &k, 0);
}

/* Another key that is the same to the index. */
static void twin_of(struct harness *h, const char *key, char *out, size_t room)
{
	uint64_t wanted = place(h, key);
	unsigned n = 0;

	do
		snprintf(out, room, "twin:%u", n++);
	while (place(h, out) != wanted);
}

/* ---- what a slot may be taken for ------------------------------------------------------------ */

/* Each command that would clear the slot of a twin blindly, or when it had found nothing. */
static void no_command_costs_another_key_its_object(void **state)
{
	static const enum store_op ops[] = { STORE_SET,    STORE_ADD,  STORE_REPLACE, STORE_APPEND, STORE_CAS,
					     STORE_DELETE, STORE_INCR, STORE_TOUCH,   STORE_GAT,    STORE_GET };
	struct harness *h = *state;
	char twin[32];

	open_with_narrow_tags(h);
	set_on_flash(h, "key", "value");
	twin_of(h, "key", twin, sizeof(twin));
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool brings = ops[i] >= STORE_SET && ops[i] <= STORE_CAS;

		(void)(brings ? run_with(h, ops[i], twin, "another") : run(h, ops[i], twin));
		assert_int_equal(where(h, "key"), FLASH);
		assert_value(h, "key", "value");
		run(h, STORE_DELETE, twin);
		assert_value(h, "key", "value");
	}
}

static void a_blind_delete_looks_all_the_same(void **state)
{
	struct harness *h = *state;
	struct flight f;
	char twin[32];

	open_with_narrow_tags(h);
	set_on_flash(h, "key", "value");
	twin_of(h, "key", twin, sizeof(twin));
	flight_prepare(h, 0, &f, STORE_DELETE, twin);
	f.request.has_options = f.request.options.blind = true;
	assert_false(flight_execute(h, &f));
	assert_int_equal(finish(h, &f).result, STORE_MISS);
	flight_prepare(h, 0, &f, STORE_DELETE, twin);
	f.request.has_options = true;
	f.request.options.refused = STORE_TOO_LARGE;
	flight_execute(h, &f);
	assert_int_equal(finish(h, &f).result, STORE_TOO_LARGE);
	assert_value(h, "key", "value");
	flight_prepare(h, 0, &f, STORE_DELETE, "key");
	f.request.has_options = f.request.options.blind = true;
	assert_false(flight_execute(h, &f));
	assert_int_equal(finish(h, &f).result, STORE_DELETED);
	assert_int_equal(where(h, "key"), NOWHERE);
}

/* Both on flash, under one place: each is changed, and the other stays. */
static void of_two_keys_with_one_place_only_the_own_slot_goes(void **state)
{
	static const enum store_op ops[] = { STORE_SET, STORE_REPLACE, STORE_APPEND, STORE_DELETE, STORE_TOUCH };
	struct harness *h = *state;
	char twin[32];

	open_with_narrow_tags(h);
	twin_of(h, "key", twin, sizeof(twin));
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool brings = ops[i] < STORE_CAS;

		set(h, "key", "value");
		set(h, twin, "another");
		move(h, "key");
		move(h, twin);
		assert_true(slots_of(h, "key") >= 2);
		(void)(brings ? run_with(h, ops[i], "key", "new") : run(h, ops[i], "key"));
		assert_value(h, twin, "another");
		(void)(brings ? run_with(h, ops[i], twin, "new") : run(h, ops[i], twin));
		assert_int_equal(slots_of(h, "key"), slots_of(h, twin));
		if (ops[i] == STORE_SET)
			assert_value(h, "key", "new");
		run(h, STORE_DELETE, "key");
		run(h, STORE_DELETE, twin);
		assert_missing(h, "key");
		assert_missing(h, twin);
	}
}

/* Each slot of both buckets that the key may have is one that no move makes free. */
static void fill_places_of(struct harness *h, const char *key, uint32_t segment)
{
	struct fidx_key k;

	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), &k);
	while (fidx_insert(h->store->index, &k, segment, 0, 3, FIDX_DROP_NONE))
		;
}

static void what_finds_no_place_in_the_index_stays_in_dram_and_nothing_is_dropped(void **state)
{
	struct harness *h = *state;
	uint64_t drops = ctr_sum(CTR_index_drops), unmoved;
	unsigned slots;

	h->config.evict = false;
	harness_use_ram(h);
	harness_open(h);
	set_on_flash(h, "first", "value");
	assert_int_equal(set(h, "key", "value").result, STORE_STORED);
	fill_places_of(h, "key", segment_of(h, "first"));
	slots = slots_of(h, "key");
	assert_true(slots >= FIDX_BUCKET_SLOTS);
	unmoved = ctr_sum(CTR_flash_dead_on_commit);
	assert_true(write_one(h));
	assert_true(ctr_sum(CTR_flash_dead_on_commit) > unmoved); /* it was in the segment */
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(slots_of(h, "key"), slots);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_value(h, "key", "value");
}

/* ---- what can't be read ---------------------------------------------------------------------- */

static void refuses_what_it_cannot_read(struct harness *h, const char *key)
{
	static const enum store_op ops[] = { STORE_SET,    STORE_ADD,  STORE_REPLACE, STORE_APPEND, STORE_CAS,
					     STORE_DELETE, STORE_INCR, STORE_TOUCH,   STORE_GAT };

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool brings = ops[i] >= STORE_SET && ops[i] <= STORE_CAS;
		struct reply reply = brings ? run_with(h, ops[i], key, "another") : run(h, ops[i], key);

		assert_int_equal(reply.result, STORE_NO_MEMORY);
		assert_int_equal(where(h, "key"), FLASH);
	}
	assert_missing(h, key); /* a get may miss what it can't have in time */
}

/* A key that can't be on flash, as its slot would be another one. With narrow tags one in some may be there. */
static bool keeps_another(struct harness *h)
{
	char key[24];

	for (unsigned i = 0; i < 64; i++) {
		snprintf(key, sizeof(key), "in DRAM %u", i);
		if (set(h, key, "value").result == STORE_STORED)
			return true;
	}
	return false;
}

static void while_flash_is_offline_what_may_be_there_is_not_changed(void **state)
{
	struct harness *h = *state;
	char twin[32];

	open_with_narrow_tags(h);
	set_on_flash(h, "key", "value");
	twin_of(h, "key", twin, sizeof(twin));
	health_silent(h->store->segments, 1000);
	assert_true(seg_offline(h->store->segments));
	refuses_what_it_cannot_read(h, "key");
	refuses_what_it_cannot_read(h, twin);
	assert_true(keeps_another(h));
	seconds_pass(h, 100);
	for (unsigned i = 0; i < 100 && seg_offline(h->store->segments); i++) {
		seconds_pass(h, 5);
		store_clean_step(h->store);
	}
	assert_false(seg_offline(h->store->segments));
	assert_value(h, "key", "value");
	assert_int_equal(set(h, twin, "another").result, STORE_STORED);
	assert_value(h, "key", "value");
}

static void a_change_that_times_out_changes_nothing(void **state)
{
	static const enum store_op ops[] = { STORE_SET, STORE_APPEND, STORE_DELETE, STORE_TOUCH };
	struct harness *h = *state;

	open_with_narrow_tags(h);
	set_on_flash(h, "key", "value");
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool brings = ops[i] < STORE_CAS;
		struct flight f;

		h->ram->hold = true;
		if (brings)
			assert_false(start_with(h, 0, &f, .op = ops[i], .key = "key", .value = "new", .length = 3));
		else
			assert_false(start(h, 0, &f, ops[i], "key"));
		seconds_pass(h, 2);
		turn(h, 0);
		assert_true(f.done);
		assert_int_equal(f.reply.result, STORE_NO_MEMORY);
		h->ram->hold = false;
		drain(h, 0);
		assert_value(h, "key", "value");
	}
}

/* ---- what is full ---------------------------------------------------------------------------- */

/* The value, in big, begins with the key. */
static void name_and_value(unsigned n, uint32_t bytes, char key[24])
{
	memset(key, 0, 24);
	snprintf(key, 24, "object:%u", n);
	memcpy(big, key, bytes < 24 ? bytes : 24);
}

static enum store_result set_sized(struct harness *h, unsigned n, uint32_t bytes)
{
	char key[24];

	name_and_value(n, bytes, key);
	return run_full(h, .op = STORE_SET, .key = key, .value = big, .length = bytes).result;
}

static bool is_there(struct harness *h, unsigned n, uint32_t bytes)
{
	char key[24];

	name_and_value(n, bytes, key);
	struct reply reply = get(h, key);
	return reply.result == STORE_HIT && reply.length == bytes && reply.value_hash == hash64(big, bytes, 0);
}

#define MANY_OBJECTS 400000u /* more than there is room for */

static void until_everything_is_full(struct harness *h, uint32_t bytes, uint32_t object_bytes)
{
	static unsigned stored[MANY_OBJECTS];
	unsigned count = 0, n = 0, missing = 0;
	struct seg_status segments;

	h->config.evict = false;
	h->config.memory_bytes = MIB(8);
	h->config.flash_bytes = MIB(8);
	h->config.segment_bytes = KIB(512);
	h->config.flash_object_bytes = object_bytes;
	h->config.placement = SEG_PLACE_SWEEP;
	harness_use_ram(h);
	harness_open(h);
	for (unsigned refused = 0; refused < 300 && count < MANY_OBJECTS; n++) {
		if (set_sized(h, n, bytes) == STORE_STORED) {
			stored[count++] = n;
			refused = 0;
		} else {
			refused++;
		}
		if (n % 64 == 0)
			(void)write_segment(h->store, EVERY_GROUP);
		if (refused % 32 == 31)
			store_clean_step(h->store);
	}
	seg_get_status(h->store->segments, &segments);
	for (unsigned i = 0; i < count; i++)
		missing += !is_there(h, stored[i], bytes);
	print_message("%u B objects, index for %u B: %u stored, %u refused, %u missing, %u of %u segments\n", bytes,
		      object_bytes, count, n - count, missing, segments.live, segments.total);
	assert_int_equal(missing, 0);
	assert_true(n > count);
	assert_true((uint64_t)count * seg_record_length(12, bytes) > MIB(6));
	harness_close(h);
}

static void until_all_is_full_what_was_stored_is_there_and_the_rest_refused(void **state)
{
	static const uint32_t sizes[] = { 20, 300, KIB(100) };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		until_everything_is_full(*state, sizes[i], 400);
		until_everything_is_full(*state, sizes[i], 1048576);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_command_costs_another_key_its_object),
		TEST(a_blind_delete_looks_all_the_same),
		TEST(of_two_keys_with_one_place_only_the_own_slot_goes),
		TEST(what_finds_no_place_in_the_index_stays_in_dram_and_nothing_is_dropped),
		TEST(while_flash_is_offline_what_may_be_there_is_not_changed),
		TEST(a_change_that_times_out_changes_nothing),
		TEST(until_all_is_full_what_was_stored_is_there_and_the_rest_refused),
	};

	return cmocka_run_group_tests_name("store: -M", tests, NULL, NULL);
}
