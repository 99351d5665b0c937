/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects with marks or an id of a client's own between DRAM and flash: they stay in DRAM, their slots are
 * gone, and of all who ask at once, one wins.
 */
#include <pthread.h>

#include "tests/unit/server/store/asking.h"

static const struct asked INVALIDATE = { .op = STORE_DELETE, .options = { .invalidate = true } };
static const struct asked VIVIFY = { .op = STORE_GET, .options = { .vivify = true } };
static const struct asked RECACHE = { .op = STORE_GET, .options = { .recache = true, .recache_seconds = 1000 } };

static struct item *item_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));
}

static void make_stale(struct harness *h, const char *key)
{
	set(h, key, "value");
	ask(h, key, INVALIDATE);
}

static void make_won(struct harness *h, const char *key)
{
	run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5, .exptime = 100);
	assert_true(ask(h, key, RECACHE).found.won);
}

static void make_own(struct harness *h, const char *key)
{
	ask(h, key, (struct asked){ .op = STORE_SET, .value = "value", .options = { .own_cas = true, .new_cas = 5 } });
}

static void make_vivified(struct harness *h, const char *key)
{
	assert_true(ask(h, key, VIVIFY).found.won);
}

static void (*const MAKERS[])(struct harness *h, const char *key) = { make_stale, make_won, make_own, make_vivified };
#define MAKER_COUNT (sizeof(MAKERS) / sizeof(MAKERS[0]))

/* ---- the way to flash ------------------------------------------------------------------------ */

static void stays(struct harness *h, const char *key)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(get(h, key).result, STORE_HIT);
	assert_false(item_of(h, key)->state & ITEM_CANDIDATE);
	for (int i = 0; i < 3; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, key), DRAM);
	assert_int_equal(slots_of(h, key), 0);
}

static void what_flash_cannot_hold_stays_in_dram_until_it_is_set_again(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned i = 0; i < MAKER_COUNT; i++) {
		MAKERS[i](h, "key");
		stays(h, "key");
		set(h, "key", "plain");
		move(h, "key");
		assert_value(h, "key", "plain");
		assert_marks(h, "key", false, false);
		run(h, STORE_DELETE, "key");
	}
}

static void what_was_a_candidate_is_none_once_it_is_marked(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	get(h, "key");
	assert_true(item_of(h, "key")->state & ITEM_CANDIDATE);
	ask(h, "key", INVALIDATE);
	stays(h, "key");
	run_number(h, STORE_INCR, "key", 1); /* not even by failing */
	stays(h, "key");
	run(h, STORE_DELETE, "key");
}

/* Nothing is copied then. */
static void what_has_room_for_marks_is_no_candidate_either_once_it_is_marked(void **state)
{
	struct harness *h = *state;
	struct item *item;
	uint64_t cas;

	harness_open(h);
	cas = set(h, "key", "value").cas;
	ask(h, "key",
	    (struct asked){ .op = STORE_SET,
			    .options = { .compare_cas = true, .invalidate = true },
			    .value = "newer",
			    .cas = cas });
	item = item_of(h, "key");
	assert_true(item_has_extra(item) && item->state & ITEM_CANDIDATE);
	ask(h, "key", INVALIDATE);
	assert_ptr_equal(item_of(h, "key"), item);
	assert_false(item->state & ITEM_CANDIDATE);
	stays(h, "key");
	run(h, STORE_DELETE, "key");
	assert_int_equal(where(h, "key"), NOWHERE);
}

static uint64_t dead_before;

static void mark_planned(struct harness *h)
{
	assert_int_equal(where(h, "key"), PLANNED);
	struct item *planned = item_of(h, "key");
	uint64_t cas = planned->cas;
	uint32_t expiry = planned->expiry;

	item_ref(planned);
	assert_true(ask(h, "key", RECACHE).found.won);
	assert_ptr_not_equal(item_of(h, "key"), planned);
	ask(h, "key", INVALIDATE);
	assert_true(planned->cas == cas && planned->expiry == expiry && !item_marked(planned));
	item_release(&h->worker[0]->context, planned);
	dead_before = ctr_sum(CTR_flash_dead_on_commit);
}

static void an_object_marked_while_its_segment_is_written_is_not_committed(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (enum phase phase = PHASE_GATHERED; phase <= PHASE_WRITTEN; phase++) {
		run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 100);
		while_planned(h, "key", phase, mark_planned);
		assert_true(ctr_sum(CTR_flash_dead_on_commit) > dead_before);
		assert_int_equal(where(h, "key"), DRAM);
		assert_int_equal(slots_of(h, "key"), 0);
		assert_marks(h, "key", true, false);
		assert_true(ASK(h, "key", 0).found.won);
		assert_value(h, "key", "value");
	}
}

static void marked_objects_are_evicted_like_others_and_nothing_is_left(void **state)
{
	struct harness *h = *state;
	uint64_t visited;

	h->config.flash_path = NULL;
	harness_open(h);
	for (unsigned i = 0; i < MAKER_COUNT; i++) {
		MAKERS[i](h, "key");
		context_settle(&h->worker[0]->context);
		uint64_t length = item_of(h, "key")->value_length;
		assert_int_equal(atomic_load(&h->store->item_bytes), mem_cost(item_bytes(ITEM_READS_EXTRA, 3, length)));
		for (int round = 0; round < 6; round++)
			evict_dram(&h->worker[0]->context, UINT64_MAX / 2, 1 << 20, EVICT_ANY, false, &visited);
		assert_missing(h, "key");
		assert_nothing_left(h);
	}
}

/* ---- looks that leave no trace --------------------------------------------------------------- */

static void a_quiet_look_moves_no_clock(void **state)
{
	static const struct asked looks[] = { { .op = STORE_GET, .options = { .keep_clock = true } },
					      { .op = STORE_GET, .options = { .uncounted = true } } };
	struct harness *h = *state;
	struct fidx_match match;

	harness_open(h);
	set(h, "key", "value");
	unsigned clock = item_clock(item_of(h, "key"));
	for (unsigned i = 0; i < 4; i++)
		assert_false(ask(h, "key", looks[i % 2]).found.fetched);
	assert_int_equal(item_clock(item_of(h, "key")), clock);
	assert_false(item_of(h, "key")->state & ITEM_FETCHED);
	move(h, "key");
	assert_true(slot_of(h, "key", &match));
	clock = match.clock;
	for (unsigned i = 0; i < 4; i++)
		assert_true(ask(h, "key", looks[i % 2]).from_flash);
	assert_true(slot_of(h, "key", &match));
	assert_int_equal(match.clock, clock);
	assert_false(match.read_on_flash);
	assert_true(ASK(h, "key", 0).from_flash);
	assert_true(slot_of(h, "key", &match));
	assert_true(match.read_on_flash);
	assert_true(ask(h, "key", looks[0]).found.fetched);
}

static void a_look_at_a_stale_object_does_not_win(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	make_stale(h, "key");
	for (int i = 0; i < 3; i++)
		assert_marks(h, "key", true, false);
	assert_true(ASK(h, "key", .keep_clock = true).found.won); /* this one is a get */
}

/* ---- at the same time ------------------------------------------------------------------------ */

static void of_two_reads_from_flash_at_once_one_wins(void **state)
{
	struct harness *h = *state;
	struct flight a, b;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 100);
	move(h, "key");
	assert_false(start_asking(h, 0, &a, "key", RECACHE));
	assert_false(start_asking(h, 1, &b, "key", RECACHE));
	struct reply first = finish(h, &a), second = finish(h, &b);
	assert_string_equal(first.value, "value");
	assert_string_equal(second.value, "value");
	assert_true(first.found.won && !first.found.win_sent);
	assert_true(second.found.win_sent && !second.found.won);
}

static void of_two_that_miss_another_key_s_slot_at_once_one_wins(void **state)
{
	struct harness *h = *state;
	struct flight a, b;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	assert_false(start_asking(h, 0, &a, "key", VIVIFY));
	assert_false(start_asking(h, 1, &b, "key", VIVIFY));
	struct reply first = finish(h, &a), second = finish(h, &b);
	fault_disarm_all();
	assert_true(first.found.won);
	assert_true(second.found.win_sent && !second.found.won);
	assert_value(h, "key", ""); /* and what could not be read doesn't come back */
	run(h, STORE_DELETE, "key");
	assert_missing(h, "key");
}

static void a_slow_invalidate_marks_what_was_set_meanwhile(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	assert_false(start_asking(h, 1, &slow, "key", INVALIDATE));
	set(h, "key", "new");
	assert_int_equal(finish(h, &slow).result, STORE_DELETED);
	assert_value(h, "key", "new");
	assert_marks(h, "key", true, false);
}

static void a_slow_invalidate_does_not_bring_back_what_was_deleted(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	set_on_flash(h, "key", "old");
	assert_false(start_asking(h, 1, &slow, "key", INVALIDATE));
	run(h, STORE_DELETE, "key");
	assert_int_equal(finish(h, &slow).result, STORE_MISS);
	assert_missing(h, "key");
}

static void a_slow_recache_does_not_bring_back_what_was_flushed(void **state)
{
	struct harness *h = *state;
	struct flight slow;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 100);
	move(h, "key");
	assert_false(start_asking(h, 1, &slow, "key", RECACHE));
	store_flush_all(h->store, 0);
	assert_int_equal(finish(h, &slow).result, STORE_MISS);
	assert_missing(h, "key");
}

static void a_slow_compared_set_sees_what_was_set_meanwhile(void **state)
{
	struct harness *h = *state;
	struct flight slow;
	struct asked asked = { .op = STORE_SET, .value = "slow", .options = { .compare_cas = true } };

	harness_open(h);
	asked.cas = set(h, "key", "old").cas;
	move(h, "key");
	assert_false(start_asking(h, 1, &slow, "key", asked));
	set(h, "key", "new");
	assert_int_equal(finish(h, &slow).result, STORE_EXISTS);
	assert_value(h, "key", "new");
}

/* The read is held back until the clock has passed its limit. */
static void time_out(struct harness *h, struct flight *f)
{
	store_worker_flush(h->worker[0]);
	seconds_pass(h, 2);
	while (!f->done)
		turn(h, 0);
	h->ram->hold = false;
}

static void what_was_made_after_a_time_out_stays(void **state)
{
	struct harness *h = *state;
	struct flight f;
	struct asked compared = { .op = STORE_SET, .value = "new", .cas = 1, .options = { .compare_cas = true } };

	harness_open(h);
	set_on_flash(h, "key", "old");
	h->ram->hold = true;
	assert_false(start_asking(h, 0, &f, "key", VIVIFY));
	time_out(h, &f);
	assert_true(f.reply.found.won);
	assert_value(h, "key", ""); /* not the old one again */
	set_on_flash(h, "key", "old");
	h->ram->hold = true;
	assert_false(start_asking(h, 0, &f, "key", compared));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_missing(h, "key");
}

static void without_memory_an_object_on_flash_stays_as_it_is(void **state)
{
	struct harness *h = *state;
	char key[24];
	unsigned stored = 0;

	h->config.evict = false;
	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 100);
	move(h, "key");
	do
		snprintf(key, sizeof(key), "other:%u", stored++);
	while (set(h, key, "value").result == STORE_STORED);
	context_settle(&h->worker[0]->context);
	int64_t rest = store_free_bytes(h->store);
	atomic_fetch_add(&h->store->item_bytes, rest); /* to the last byte */
	assert_int_equal(ask(h, "key", INVALIDATE).result, STORE_NO_MEMORY);
	assert_int_equal(ask(h, "key", RECACHE).result, STORE_NO_MEMORY);
	assert_int_equal(ask(h, "none", VIVIFY).result, STORE_NO_MEMORY);
	assert_int_equal(where(h, "key"), FLASH);
	assert_value(h, "key", "value");
	assert_missing(h, "none");
	atomic_fetch_sub(&h->store->item_bytes, rest); /* closing looks for what the items don't explain */
}

static void a_get_that_touches_ends_whatever_its_slots_do(void **state)
{
	struct harness *h = *state;
	struct asked asked = { .op = STORE_GET, .exptime = 50, .options = { .touch = true, .vivify = true } };

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_store_revalidation_fails, FAULT_ALWAYS, 0);
	struct reply reply = ask(h, "key", asked);
	fault_disarm_all();
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "value");
	assert_int_equal(reply.found.ttl_seconds, 50);
	for (uint32_t i = 0; i < h->store->stripe_count; i++)
		assert_int_equal(h->store->stripes[i].frozen, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ROUNDS 2000

struct reader {
	struct harness *h;
	unsigned worker;
	unsigned wins, invalidations;
};

static void *read_and_invalidate(void *context)
{
	struct reader *reader = context;
	struct flight f;

	for (unsigned i = 0; i < ROUNDS; i++) {
		start_asking(reader->h, reader->worker, &f, "key", (struct asked){ .op = STORE_GET });
		reader->wins += f.reply.found.won;
		if (i % 10 == reader->worker) {
			start_asking(reader->h, reader->worker, &f, "key", INVALIDATE);
			reader->invalidations++;
		}
	}
	return NULL;
}

static void each_invalidate_is_won_once_at_most(void **state)
{
	struct harness *h = *state;
	struct reader readers[WORKERS];
	pthread_t threads[WORKERS];

	h->config.flash_path = NULL;
	harness_open(h);
	set(h, "key", "value");
	for (unsigned i = 0; i < WORKERS; i++) {
		readers[i] = (struct reader){ .h = h, .worker = i };
		assert_int_equal(pthread_create(&threads[i], NULL, read_and_invalidate, &readers[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	unsigned last = ASK(h, "key", 0).found.won, wins = readers[0].wins + readers[1].wins + last;
	assert_in_range(wins, 1, readers[0].invalidations + readers[1].invalidations);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_flash_cannot_hold_stays_in_dram_until_it_is_set_again),
		TEST(what_was_a_candidate_is_none_once_it_is_marked),
		TEST(what_has_room_for_marks_is_no_candidate_either_once_it_is_marked),
		TEST(an_object_marked_while_its_segment_is_written_is_not_committed),
		TEST(marked_objects_are_evicted_like_others_and_nothing_is_left),
		TEST(a_quiet_look_moves_no_clock),
		TEST(a_look_at_a_stale_object_does_not_win),
		TEST(of_two_reads_from_flash_at_once_one_wins),
		TEST(of_two_that_miss_another_key_s_slot_at_once_one_wins),
		TEST(a_slow_invalidate_marks_what_was_set_meanwhile),
		TEST(a_slow_invalidate_does_not_bring_back_what_was_deleted),
		TEST(a_slow_recache_does_not_bring_back_what_was_flushed),
		TEST(a_slow_compared_set_sees_what_was_set_meanwhile),
		cmocka_unit_test_setup_teardown(what_was_made_after_a_time_out_stays, setup_in_memory, teardown),
		TEST(without_memory_an_object_on_flash_stays_as_it_is),
		TEST(a_get_that_touches_ends_whatever_its_slots_do),
		TEST(each_invalidate_is_won_once_at_most),
	};

	return cmocka_run_group_tests_name("store: marks between DRAM and flash", tests, NULL, NULL);
}
