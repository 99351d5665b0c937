/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes and deletes between the submission of a read-modify-write's flash read and its completion. A slow flash read can never bring back a value that was overwritten or deleted
 * meanwhile; after a bounded number of rounds the stripe's commits wait.
 */
#include <pthread.h>

#include "server/store/request/lookup_internal.h"
#include "tests/unit/server/store/harness.h"

/* One completion and no more: what the read decides may start another. */
static void one_round(struct harness *h, struct flight *f)
{
	uint64_t rounds = ctr_sum(CTR_flash_revalidations);

	while (ctr_sum(CTR_flash_revalidations) == rounds && !f->done) {
		store_worker_flush(h->worker[f->worker]);
		store_worker_poll(h->worker[f->worker]);
	}
}

static void start_append(struct harness *h, struct flight *slow)
{
	assert_false(start_with(h, 0, slow, .op = STORE_APPEND, .key = "key", .value = "+", .length = 1));
}

static void by_other(struct harness *h, enum store_op op, const char *key, const char *value)
{
	struct flight f;

	if (value)
		start_with(h, 1, &f, .op = op, .key = key, .value = value, .length = (uint32_t)strlen(value));
	else
		start(h, 1, &f, op, key);
	finish(h, &f);
}

static struct stripe *stripe_of(struct harness *h, const char *key)
{
	return store_stripe(h->store, store_hash(h->store, key, strlen(key)));
}

/* ---- overwritten, deleted, flushed meanwhile ------------------------------------------------- */

static void a_slow_append_does_not_bring_back_what_was_deleted(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	by_other(h, STORE_DELETE, "key", NULL);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	assert_missing(h, "key");
}

static void a_slow_append_works_on_what_was_set_meanwhile(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	by_other(h, STORE_SET, "key", "new");
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_value(h, "key", "new+");
}

static void a_slow_append_does_not_bring_back_what_was_flushed(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	store_flush_all(h->store, 0);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	assert_missing(h, "key");
}

/* Under -M a set looks at the record first, so that it clears the slot of its own key and no other's. The flush comes between that look and the
   stripe's lock. */
static void a_set_clears_the_slot_of_what_was_flushed_behind_its_look(void **state)
{
	struct harness *h = *state;
	struct seg_record record = { .key = "key", .key_length = 3, .value = "old", .value_length = 3 };
	struct fidx_match match;
	struct flight slow;

	h->config.evict = false;
	harness_open(h);
	record.cas = set(h, "key", "old").cas;
	move(h, "key");
	assert_true(slot_of(h, "key", &match));
	assert_false(start_with(h, 0, &slow, .op = STORE_SET, .key = "key", .value = "new", .length = 3));
	store_flush_all(h->store, 0);
	lookup_decide(slow.request.lookup, &record, 0);
	assert_true(slow.done);
	assert_int_equal(slow.reply.result, STORE_STORED);
	assert_false(slot_of(h, "key", &match));
	assert_value(h, "key", "new");
}

static void a_slow_append_does_not_bring_back_what_expired(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	h->config.read_timeout_ms = 60000;
	run_full(h, .op = STORE_SET, .key = "key", .value = "old", .length = 3, .exptime = 1);
	move(h, "key");
	start_append(h, &slow);
	seconds_pass(h, 1);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	assert_missing(h, "key");
}

static void a_slow_append_does_not_bring_back_what_was_set_and_evicted(void **state)
{
	struct harness *h = *state;
	struct flight slow;
	uint64_t visited;

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	by_other(h, STORE_SET, "key", "new");
	for (int i = 0; i < 6; i++)
		evict_dram(&h->store->cleaner->context, UINT64_MAX / 2, 1 << 20, EVICT_AT_ZERO, false, &visited);
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	assert_missing(h, "key");
}

static void a_slow_cas_fails_on_what_was_set_meanwhile(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	uint64_t cas = set(h, "key", "old").cas;
	move(h, "key");
	assert_false(start_with(h, 0, &slow, .op = STORE_CAS, .key = "key", .value = "mine", .length = 4, .cas = cas));
	by_other(h, STORE_SET, "key", "new");
	move(h, "key");
	assert_int_equal(finish(h, &slow).result, STORE_EXISTS);
	assert_value(h, "key", "new");
}

static void a_slow_add_stores_where_the_key_was_deleted_meanwhile(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	assert_false(start_with(h, 0, &slow, .op = STORE_ADD, .key = "key", .value = "mine", .length = 4));
	by_other(h, STORE_DELETE, "key", NULL);
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_value(h, "key", "mine");
}

static void two_slow_increments_are_both_counted(void **state)
{
	struct harness *h = *state;
	struct flight one, two;

	harness_open(h);
	set_on_flash(h, "key", "1000");
	assert_false(start(h, 0, &one, STORE_INCR, "key"));
	assert_false(start(h, 1, &two, STORE_INCR, "key"));
	one.request.delta = 5;
	two.request.delta = 7;
	assert_int_equal(finish(h, &two).number, 1007);
	assert_int_equal(finish(h, &one).number, 1012);
	assert_value(h, "key", "1012");
}

/* ---- the slots change ------------------------------------------------------------------------ */

static void a_value_that_went_to_another_place_on_flash_is_read_again(void **state)
{
	struct harness *h = *state;
	struct flight slow;
	uint64_t rounds = ctr_sum(CTR_flash_revalidations);

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	by_other(h, STORE_SET, "key", "new");
	move(h, "key");
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_value(h, "key", "new+");
	assert_int_equal(ctr_sum(CTR_flash_revalidations), rounds + 1);
}

static void after_a_bounded_number_of_rounds_the_stripes_commits_wait(void **state)
{
	struct harness *h = *state;
	struct flight slow;
	char value[16];

	harness_open(h);
	set_on_flash(h, "key", "old");
	uint64_t freezes = ctr_sum(CTR_flash_freezes);
	start_append(h, &slow);
	for (int round = 1; round <= LOOKUP_ROUNDS_MAX; round++) {
		snprintf(value, sizeof(value), "new%d", round);
		by_other(h, STORE_SET, "key", value);
		move(h, "key");
		one_round(h, &slow);
		assert_false(slow.done);
	}
	assert_int_equal(ctr_sum(CTR_flash_freezes), freezes + 1);
	assert_int_equal(stripe_of(h, "key")->frozen, 1);
	by_other(h, STORE_SET, "key", "last");
	for (int i = 0; i < 5; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, "key"), DRAM); /* its commit waits */
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_value(h, "key", "last+");
	assert_int_equal(stripe_of(h, "key")->frozen, 0);
	move(h, "key");
	assert_value(h, "key", "last+");
}

/* The object that it met in DRAM is as good for flash as before. */
static void what_a_frozen_stripe_kept_from_flash_goes_there_later(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "old");
	fault_arm(FAULT_store_revalidation_fails, FAULT_ALWAYS, 0);
	assert_false(start_with(h, 0, &slow, .op = STORE_ADD, .key = "key", .value = "mine", .length = 4));
	for (int round = 0; round < LOOKUP_ROUNDS_MAX; round++)
		one_round(h, &slow);
	fault_disarm_all();
	by_other(h, STORE_SET, "key", "new");
	for (int i = 0; i < 5; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	move(h, "key");
	assert_value(h, "key", "new");
}

static void a_frozen_lookup_whose_key_goes_meanwhile_acts_on_nothing(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "old");
	fault_arm(FAULT_store_revalidation_fails, FAULT_ALWAYS, 0);
	start_append(h, &slow);
	for (int round = 0; round < LOOKUP_ROUNDS_MAX; round++)
		one_round(h, &slow);
	assert_int_equal(stripe_of(h, "key")->frozen, 1);
	by_other(h, STORE_DELETE, "key", NULL);
	assert_int_equal(finish(h, &slow).result, STORE_NOT_STORED);
	assert_int_equal(stripe_of(h, "key")->frozen, 0);
	assert_missing(h, "key");
}

static struct fidx_key key_of(struct harness *h, const char *key)
{
	struct fidx_key out;

	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), &out);
	return out;
}

/* Two keys that are one to the index, both on flash; the one's slot is known not to be the other's. */
static struct fidx_match put_twins_on_flash(struct harness *h, const char *one, char *other, size_t room)
{
	struct fidx_key key = key_of(h, one);
	uint64_t place = fidx_place_in(h->store->index, &key, 0);
	struct fidx_match match[FIDX_MAX_MATCHES], own = { 0 };

	for (unsigned n = 0;; n++) {
		snprintf(other, room, "twin:%u", n);
		struct fidx_key twin = key_of(h, other);
		if (fidx_place_in(h->store->index, &twin, 0) == place)
			break;
	}
	/* With tags of four bits a filler may clear either slot, as an innocent one, or stand in for
	   it: then once more. */
	for (int tries = 0; tries < 50; tries++) {
		set(h, other, "another"); /* while both are in DRAM, neither clears the other's slot */
		set_on_flash(h, one, "value");
		move(h, other);
		if (!get(h, other).from_flash || !get(h, one).from_flash)
			continue;
		/* The get learned what it read before its own slot, which is the first one now. */
		assert_true(slot_of(h, one, &own));
		unsigned matches = fidx_lookup(h->store->index, &key, match);
		for (unsigned i = 1; i < matches; i++)
			fidx_learn(h->store->index, &match[i], 1);
		assert_int_equal(slots_of(h, one), 1);
		return own;
	}
	fail_msg("%s and %s aren't on flash together", one, other);
	return own;
}

/* The table of known collisions is bounded: a slot that it rejected may match again at any time. */
static void a_slot_that_matches_again_while_frozen_is_read_too(void **state)
{
	struct harness *h = *state;
	struct fidx_match own;
	struct flight slow;
	char other[32];

	if (!HAVE_FAULTS)
		skip();
	h->config.tag_bits = 4;
	h->config.filter_bits = 0;
	harness_open(h);
	own = put_twins_on_flash(h, "key", other, sizeof(other));
	fault_arm(FAULT_store_revalidation_fails, FAULT_ALWAYS, 0);
	assert_false(start_with(h, 0, &slow, .op = STORE_ADD, .key = "key", .value = "mine", .length = 4));
	for (int round = 0; round < LOOKUP_ROUNDS_MAX; round++)
		one_round(h, &slow);
	fault_disarm_all();
	assert_int_equal(stripe_of(h, "key")->frozen, 1);
	for (uint64_t n = 1; slots_of(h, "key") == 1; n++) {
		struct fidx_match never = own;

		assert_true(n < 1u << 24);
		never.sequence = 1ull << 40 | n;
		fidx_learn(h->store->index, &never, n);
	}
	assert_true(slow.request.lookup->ready);
	slow.request.lookup->read->read.result = FS_EIO; /* the key's own record can't be read */
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_value(h, "key", "mine");
	assert_int_equal(stripe_of(h, "key")->frozen, 0);
}

static void every_command_survives_revalidations_that_fail(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	fault_arm(FAULT_store_revalidation_fails, FAULT_ALWAYS, 0);
	set_on_flash(h, "key", "10");
	assert_int_equal(run_number(h, STORE_INCR, "key", 1).number, 11);
	move(h, "key");
	assert_int_equal(run_with(h, STORE_PREPEND, "key", "1").result, STORE_STORED);
	move(h, "key");
	assert_int_equal(run_with(h, STORE_ADD, "key", "x").result, STORE_NOT_STORED);
	assert_int_equal(run_expiry(h, STORE_GAT, "key", 0).result, STORE_HIT);
	move(h, "key");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key");
	for (uint32_t i = 0; i < h->store->stripe_count; i++)
		assert_int_equal(h->store->stripes[i].frozen, 0);
}

/* ---- promoted, reclaimed meanwhile ----------------------------------------------------------- */

static void a_copy_promoted_meanwhile_is_what_is_changed(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	by_other(h, STORE_GET, "key", NULL);
	assert_int_equal(where(h, "key"), CLEAN_COPY);
	assert_int_equal(finish(h, &slow).result, STORE_STORED);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_value(h, "key", "old+");
}

struct reclaimer {
	struct harness *h;
	uint32_t segment;
	_Atomic bool released, saw_released;
};

static void *reclaim_in_thread(void *argument)
{
	struct reclaimer *r = argument;

	assert_true(reclaim_segment(r->h->store, r->segment));
	atomic_store(&r->saw_released, atomic_load(&r->released));
	return NULL;
}

/* A read of the key is in flight: its segment can't be reused before that is done. */
static void reclaim_under(struct harness *h, struct flight *slow, enum where expected)
{
	struct reclaimer r = { .h = h, .segment = segment_of(h, "key") };
	enum seg_state state;
	pthread_t thread;

	while (seg_next(h->store->segments, &(uint32_t){ 0 }, &state) == FS_OK && state == SEG_FREE)
		assert_true(write_one(h)); /* until it is full; the oldest is the next */
	r.segment = segment_of(h, "key");
	pthread_create(&thread, NULL, reclaim_in_thread, &r);
	while (where(h, "key") != expected)
		sched_yield();
	atomic_store(&r.released, true);
	finish(h, slow);
	pthread_join(thread, NULL);
	assert_true(r.saw_released);
}

static void a_pinned_read_holds_reuse_and_an_append_works_on_what_reclaim_took_back(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	reclaim_under(h, &slow, DRAM);
	assert_int_equal(slow.reply.result, STORE_STORED);
	assert_value(h, "key", "old+");
}

static void a_pinned_read_holds_reuse_and_an_append_finds_nothing_where_reclaim_dropped_it(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	start_append(h, &slow);
	reclaim_under(h, &slow, NOWHERE);
	assert_int_equal(slow.reply.result, STORE_NOT_STORED);
	assert_missing(h, "key");
}

static void a_pinned_get_is_answered_though_its_segment_is_being_reclaimed(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	assert_false(start(h, 0, &slow, STORE_GET, "key"));
	reclaim_under(h, &slow, NOWHERE);
	assert_int_equal(slow.reply.result, STORE_HIT);
	assert_string_equal(slow.reply.value, "old");
	assert_missing(h, "key");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_append_does_not_bring_back_what_was_deleted),
		TEST(a_slow_append_works_on_what_was_set_meanwhile),
		TEST(a_slow_append_does_not_bring_back_what_was_flushed),
		TEST(a_set_clears_the_slot_of_what_was_flushed_behind_its_look),
		TEST(a_slow_append_does_not_bring_back_what_expired),
		TEST(a_slow_append_does_not_bring_back_what_was_set_and_evicted),
		TEST(a_slow_cas_fails_on_what_was_set_meanwhile),
		TEST(a_slow_add_stores_where_the_key_was_deleted_meanwhile),
		TEST(two_slow_increments_are_both_counted),
		TEST(a_value_that_went_to_another_place_on_flash_is_read_again),
		TEST(after_a_bounded_number_of_rounds_the_stripes_commits_wait),
		TEST(what_a_frozen_stripe_kept_from_flash_goes_there_later),
		TEST(a_frozen_lookup_whose_key_goes_meanwhile_acts_on_nothing),
		TEST(a_slot_that_matches_again_while_frozen_is_read_too),
		TEST(every_command_survives_revalidations_that_fail),
		TEST(a_copy_promoted_meanwhile_is_what_is_changed),
		TEST(a_pinned_read_holds_reuse_and_an_append_works_on_what_reclaim_took_back),
		TEST(a_pinned_read_holds_reuse_and_an_append_finds_nothing_where_reclaim_dropped_it),
		TEST(a_pinned_get_is_answered_though_its_segment_is_being_reclaimed),
	};

	return cmocka_run_group_tests_name("store: read-modify-writes under change", tests, NULL, NULL);
}
