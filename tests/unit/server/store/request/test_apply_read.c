/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What GET, GAT and TOUCH answer and leave behind with options, the same for an object in DRAM, as a clean copy there, on
 * flash and on its way; and for keys that are not there. As memcached 1.6.18 was seen to answer.
 */
#include "tests/unit/server/store/asking.h"

/* ---- nothing asked, nothing changed ---------------------------------------------------------- */

static void look(struct harness *h, const char *key, uint64_t cas)
{
	enum where before = where(h, key);
	bool read_before = before == CLEAN_COPY; /* by what made it one */

	seconds_pass(h, 3);
	struct reply reply = ASK(h, key, .keep_clock = true);
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "10");
	assert_int_equal(reply.flags, 77);
	assert_int_equal(reply.cas, cas);
	assert_int_equal(reply.found.ttl_seconds, 97);
	assert_int_equal(reply.found.ttl_before_seconds, 97);
	assert_in_range(reply.found.idle_seconds, before == DRAM ? 3 : 2, 3);
	assert_false(reply.found.fetched || reply.found.stale || reply.found.won || reply.found.win_sent);
	assert_int_equal(where(h, key), before);
	assert_int_equal(reply.from_flash, before == FLASH);
	reply = ASK(h, key, .uncounted = true);
	assert_false(reply.found.fetched);
	reply = ASK(h, key, .vivify = true, .vivify_expiry = store_expiry(h->store, 5));
	assert_string_equal(reply.value, "10");
	assert_false(reply.found.fetched || reply.found.won);
	reply = ASK(h, key, .recache = true, .recache_seconds = 97);
	assert_true(reply.found.fetched || read_before);
	assert_false(reply.found.won || reply.found.win_sent);
	assert_int_equal(where(h, key), before);
	assert_int_equal(reply.from_flash, before == FLASH);
}

static void a_look_finds_the_object_as_it_is_and_leaves_it_where_it_is(void **state)
{
	in_every_place(*state, look);
}

static void look_at_nothing(struct harness *h, const char *key)
{
	static const enum store_op ops[] = { STORE_GET, STORE_GAT, STORE_TOUCH, STORE_INCR, STORE_DECR, STORE_DELETE };

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct asked asked = { .op = ops[i],
				       .cas = 1,
				       .options = { .compare_cas = true,
						    .recache = true,
						    .touch = true,
						    .invalidate = true,
						    .recache_seconds = 1000 } };

		assert_int_equal(ask(h, key, asked).result, STORE_MISS);
		asked.options.drop_value = true;
		assert_int_equal(ask(h, key, asked).result, STORE_MISS);
		assert_missing(h, key);
	}
}

static void nothing_is_made_of_nothing_without_vivify(void **state)
{
	in_every_absence(*state, look_at_nothing);
}

/* ---- vivify ---------------------------------------------------------------------------------- */

static void vivify(struct harness *h, const char *key)
{
	uint32_t soon = store_expiry(h->store, 30);
	struct reply reply = ASK(h, key, .vivify = true, .vivify_expiry = soon);

	assert_int_equal(reply.result, STORE_HIT);
	assert_int_equal(reply.length, 0);
	assert_int_equal(reply.flags, 0);
	assert_true(reply.found.won);
	assert_false(reply.found.fetched || reply.found.stale || reply.found.win_sent);
	assert_int_equal(reply.found.ttl_seconds, 30);
	assert_int_equal(where(h, key), DRAM);
	assert_int_equal(slots_of(h, key), 0);
	uint64_t cas = reply.cas;
	reply = ASK(h, key, .vivify = true, .vivify_expiry = store_expiry(h->store, 99));
	assert_int_equal(reply.result, STORE_HIT);
	assert_true(reply.found.win_sent && reply.found.fetched);
	assert_false(reply.found.won || reply.found.stale);
	assert_int_equal(reply.found.ttl_seconds, 30);
	assert_int_equal(reply.cas, cas);
	assert_int_equal(run_with(h, STORE_ADD, key, "x").result, STORE_NOT_STORED);
	assert_value(h, key, "");
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = key, .value = "new", .length = 3, .cas = cas).result,
			 STORE_STORED);
	assert_marks(h, key, false, false);
	assert_value(h, key, "new");
}

static void the_first_get_that_makes_an_absent_object_wins_the_next_ones_learn_so(void **state)
{
	in_every_absence(*state, vivify);
}

static void vivify_and_touch(struct harness *h, const char *key)
{
	struct asked asked = { .op = STORE_GET, .exptime = 60, .options = { .vivify = true, .touch = true } };
	struct reply reply;

	asked.options.vivify_expiry = store_expiry(h->store, 30);
	reply = ask(h, key, asked);
	assert_true(reply.found.won);
	assert_int_equal(reply.found.ttl_before_seconds, 30);
	assert_int_equal(reply.found.ttl_seconds, 60);
	run(h, STORE_DELETE, key);
	asked.options.vivify_last = asked.options.keep_clock = true;
	reply = ask(h, key, asked);
	assert_int_equal(reply.found.ttl_before_seconds, 60);
	assert_int_equal(reply.found.ttl_seconds, 30);
	reply = ask(h, key, asked); /* touched, and nothing else */
	assert_int_equal(reply.found.ttl_before_seconds, 30);
	assert_int_equal(reply.found.ttl_seconds, 60);
	assert_false(ASK(h, key, .uncounted = true).found.fetched);
	run(h, STORE_DELETE, key);
	asked.options.vivify_last = asked.options.keep_clock = false;
	asked.op = STORE_TOUCH;
	assert_int_equal(ask(h, key, asked).result, STORE_TOUCHED);
	seconds_pass(h, 59);
	assert_value(h, key, "");
	seconds_pass(h, 1);
	assert_missing(h, key);
}

static void what_is_made_by_get_and_touch_has_the_touch_s_life(void **state)
{
	in_every_absence(*state, vivify_and_touch);
}

/* ---- touch and recache ----------------------------------------------------------------------- */

static void touch(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_GET, .exptime = 200, .options = { .touch = true } };
	struct reply reply = ask(h, key, asked);

	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "10");
	assert_int_equal(reply.cas, cas);
	assert_int_equal(reply.found.ttl_before_seconds, 100);
	assert_int_equal(reply.found.ttl_seconds, 200);
	assert_int_equal(where(h, key), DRAM);
	assert_int_equal(slots_of(h, key), 0);
	assert_true(ASK(h, key, .uncounted = true).found.fetched);
	asked.op = STORE_INCR;
	asked.exptime = 0;
	asked.delta = 1;
	reply = ask(h, key, asked);
	assert_int_equal(reply.number, 11);
	assert_int_equal(reply.found.ttl_seconds, -1);
	seconds_pass(h, 1000);
	assert_value(h, key, "11");
}

static void get_and_incr_can_touch(void **state)
{
	in_every_place(*state, touch);
}

static void recache(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_GET,
			       .exptime = 30,
			       .options = { .touch = true, .recache = true, .recache_seconds = 31 } };
	struct reply reply = ASK(h, key, .recache = true, .recache_seconds = 101);

	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "10");
	assert_int_equal(reply.flags, 77);
	assert_int_equal(reply.cas, cas);
	assert_true(reply.found.won);
	assert_false(reply.found.stale || reply.found.win_sent);
	assert_int_equal(where(h, key), DRAM);
	assert_int_equal(slots_of(h, key), 0);
	assert_value(h, key, "10"); /* a classic get is none of their business */
	reply = ASK(h, key, .recache = true, .recache_seconds = 101);
	assert_true(reply.found.win_sent && !reply.found.won);
	run_expiry(h, STORE_TOUCH, key, 1000);
	assert_marks(h, key, false, true);
	set(h, key, "new");
	assert_marks(h, key, false, false);
	reply = ask(h, key, asked);
	assert_true(reply.found.won);
	assert_int_equal(reply.found.ttl_seconds, 30);
}

static void who_asks_first_before_the_end_wins(void **state)
{
	in_every_place(*state, recache);
}

static void recache_and_touch(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_GET,
			       .exptime = 60,
			       .options = { .touch = true, .recache = true, .recache_seconds = 61 } };
	struct reply reply = ask(h, key, asked);

	assert_true(reply.found.won);
	assert_int_equal(reply.found.ttl_seconds, 60);
	assert_int_equal(reply.cas, cas);
	assert_marks(h, key, false, true);
	run_full(h, .op = STORE_SET, .key = key, .value = "for ever", .length = 8);
	reply = ASK(h, key, .recache = true, .recache_seconds = UINT32_MAX);
	assert_false(reply.found.won);
	run_full(h, .op = STORE_SET, .key = key, .value = "short", .length = 5, .exptime = 10);
	reply = ask(h, key, asked);
	assert_true(reply.found.won);
	run_full(h, .op = STORE_SET, .key = key, .value = "short", .length = 5, .exptime = 10);
	asked.options.recache_seconds = 60;
	assert_false(ask(h, key, asked).found.won); /* the touch came first */
}

static void recache_looks_at_the_life_after_the_touch(void **state)
{
	in_every_place(*state, recache_and_touch);
}

/* ---- stale ----------------------------------------------------------------------------------- */

static void stale(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_DELETE, .options = { .invalidate = true } };
	struct reply reply = ask(h, key, asked);

	assert_int_equal(reply.result, STORE_DELETED);
	assert_int_equal(reply.found.ttl_seconds, 100);
	assert_int_equal(where(h, key), DRAM);
	assert_int_equal(slots_of(h, key), 0);
	assert_value(h, key, "10");
	assert_true(get(h, key).cas > cas);
	assert_marks(h, key, true, false);
	reply = ASK(h, key, 0);
	assert_true(reply.found.stale && reply.found.won && !reply.found.win_sent);
	assert_int_equal(reply.flags, 77);
	reply = ASK(h, key, 0);
	assert_true(reply.found.stale && !reply.found.won && reply.found.win_sent);
	asked.options.touch = true;
	asked.exptime = 5;
	reply = ask(h, key, asked); /* again: whoever comes next wins anew */
	assert_int_equal(reply.found.ttl_seconds, 5);
	assert_true(ASK(h, key, 0).found.won);
	seconds_pass(h, 5);
	assert_missing(h, key);
}

static void an_invalidated_object_stays_and_one_reader_wins(void **state)
{
	in_every_place(*state, stale);
}

static void stale_until_set(struct harness *h, const char *key, uint64_t cas)
{
	const struct asked invalidate = { .op = STORE_DELETE, .options = { .invalidate = true } };

	(void)cas;
	ask(h, key, invalidate);
	run_number(h, STORE_DECR, key, 5); /* "5 ": the same length, the same object */
	assert_marks(h, key, true, false);
	run_number(h, STORE_INCR, key, 200); /* longer: another one */
	assert_value(h, key, "205");
	assert_marks(h, key, false, false);
	ask(h, key, invalidate);
	run_expiry(h, STORE_TOUCH, key, 50);
	run_expiry(h, STORE_GAT, key, 50);
	run_with(h, STORE_ADD, key, "x");
	assert_marks(h, key, true, false);
	run_with(h, STORE_APPEND, key, "x");
	assert_marks(h, key, false, false);
	ask(h, key, invalidate);
	run_with(h, STORE_REPLACE, key, "x");
	assert_marks(h, key, false, false);
	ask(h, key, invalidate);
	run_full(h, .op = STORE_CAS, .key = key, .value = "y", .length = 1, .cas = get(h, key).cas);
	assert_marks(h, key, false, false);
	ask(h, key, invalidate);
	set(h, key, "z");
	assert_marks(h, key, false, false);
}

static void an_object_is_stale_until_a_new_value_is_stored(void **state)
{
	in_every_place(*state, stale_until_set);
}

/* ---- values under way ------------------------------------------------------------------------ */

#define UNDER_WAY (2 * ITEM_REFS_MAX + 5)

static enum store_result get_and_hold(struct harness *h, struct store_value *value)
{
	struct flight f;

	flight_prepare(h, 0, &f, STORE_GET, "key");
	store_worker_turn(h->worker[0]);
	assert_true(store_execute(h->worker[0], &f.request));
	*value = f.request.value;
	return f.request.result;
}

static int64_t bytes_of_items(struct harness *h)
{
	context_settle(&h->worker[0]->context);
	return atomic_load(&h->store->item_bytes);
}

/* More clients than a reference count can tell wait for one value. */
static void values_under_way_take_a_copy_when_references_are_used_up(void **state)
{
	struct store_value *held = mem_must_zalloc(UNDER_WAY * sizeof(*held));
	struct harness *h = *state;
	struct item *first;
	uint64_t cas;
	int64_t one;

	h->config.flash_path = NULL;
	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "the value", .length = 9, .flags = 77, .exptime = 100);
	first = item_in_dram(h, "key");
	cas = first->cas;
	one = bytes_of_items(h);
	for (unsigned i = 0; i < UNDER_WAY; i++)
		assert_int_equal(get_and_hold(h, &held[i]), STORE_HIT);
	assert_int_equal(bytes_of_items(h), 3 * one);
	assert_ptr_not_equal(item_in_dram(h, "key"), first);
	assert_int_equal(store_dram_items(h->store), 1);
	for (unsigned i = 0; i < UNDER_WAY; i++) {
		assert_int_equal(held[i].length, 9);
		assert_memory_equal(held[i].data, "the value", 9);
		assert_int_equal(held[i].client_flags, 77);
		assert_true(held[i].cas == cas);
		store_value_release(h->worker[0], &held[i]);
	}
	assert_int_equal(bytes_of_items(h), one);
	assert_int_equal(item_in_dram(h, "key")->refs, 1);
	assert_true(item_in_dram(h, "key")->state & ITEM_FETCHED);
	assert_int_equal(ASK(h, "key", .uncounted = true).found.ttl_seconds, 100);
	mem_free(held);
}

/* Among them marks, a client's own id, and the mark of a candidate. */
static void the_copy_has_all_that_the_object_had(void **state)
{
	struct store_value *held = mem_must_zalloc(UNDER_WAY * sizeof(*held));
	struct harness *h = *state;
	struct item *item;

	harness_open(h);
	for (unsigned extra = 0; extra < 2; extra++) {
		run(h, STORE_DELETE, "key");
		ask(h, "key",
		    (struct asked){ .op = STORE_SET,
				    .value = "12345",
				    .options = { .own_cas = extra, .new_cas = extra ? 4711 : 0 } });
		item = item_in_dram(h, "key");
		assert_int_equal(item_has_extra(item), extra);
		assert_int_equal(!!(item->state & ITEM_CANDIDATE), !extra);
		for (unsigned i = 0; i < ITEM_REFS_MAX; i++)
			assert_int_equal(get_and_hold(h, &held[i]), STORE_HIT);
		assert_ptr_not_equal(item_in_dram(h, "key"), item);
		item = item_in_dram(h, "key");
		assert_int_equal(item_has_extra(item), extra);
		assert_true(item_shown_cas(item) == held[0].cas);
		assert_int_equal(!!(item->state & ITEM_CANDIDATE), !extra);
		assert_int_equal(h->store->candidate_count, !extra);
		for (unsigned i = 0; i < ITEM_REFS_MAX; i++)
			store_value_release(h->worker[0], &held[i]);
	}
	mem_free(held);
}

static void without_memory_for_the_copy_a_get_is_refused_until_values_are_gone(void **state)
{
	struct store_value *held = mem_must_zalloc(UNDER_WAY * sizeof(*held)), more;
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.flash_path = NULL;
	harness_open(h);
	set(h, "key", "value");
	for (unsigned i = 0; i < ITEM_REFS_MAX - 1; i++)
		assert_int_equal(get_and_hold(h, &held[i]), STORE_HIT);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	assert_int_equal(get_and_hold(h, &more), STORE_NO_MEMORY);
	store_value_release(h->worker[0], &held[0]);
	assert_int_equal(get_and_hold(h, &held[0]), STORE_HIT);
	fault_disarm_all();
	for (unsigned i = 0; i < ITEM_REFS_MAX - 1; i++)
		store_value_release(h->worker[0], &held[i]);
	mem_free(held);
}

/* ---- no memory for a new expiry -------------------------------------------------------------- */

/* A GAT that can't be refused, with this life; 0 is for ever. */
static struct reply gat_never_refused(struct harness *h, const char *key, int64_t exptime)
{
	struct flight f;

	flight_prepare(h, 0, &f, STORE_GAT, key);
	f.request.never_refused = true;
	f.request.expiry = store_expiry(h->store, exptime);
	flight_execute(h, &f);
	return finish(h, &f);
}

static void assert_answered(struct reply reply)
{
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "value");
	assert_int_equal(reply.flags, 7);
}

static void set_living(struct harness *h, const char *key, int64_t exptime)
{
	run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5, .flags = 7, .exptime = exptime);
}

/* Under -M, to the last byte. Returns how many were free. */
static int64_t fill_memory(struct harness *h)
{
	char key[24];
	unsigned stored = 0;

	do
		snprintf(key, sizeof(key), "other:%u", stored++);
	while (set(h, key, "value").result == STORE_STORED);
	context_settle(&h->worker[0]->context);
	int64_t rest = store_free_bytes(h->store);
	atomic_fetch_add(&h->store->item_bytes, rest);
	return rest;
}

static void an_object_on_flash_is_answered_and_lives_no_longer_than_asked_for(void **state)
{
	struct harness *h = *state;

	h->config.evict = false;
	harness_open(h);
	set_living(h, "key", 100);
	move(h, "key");
	set_living(h, "for ever", 0);
	move(h, "for ever");
	int64_t rest = fill_memory(h);
	assert_int_equal(run_expiry(h, STORE_GAT, "key", 200).result, STORE_NO_MEMORY); /* of who can be told */
	assert_answered(gat_never_refused(h, "key", 200));
	assert_answered(gat_never_refused(h, "key", 100));
	assert_answered(gat_never_refused(h, "key", 0));
	assert_int_equal(where(h, "key"), FLASH);
	assert_int_equal(ASK(h, "key", .uncounted = true).found.ttl_seconds, 100);
	assert_answered(gat_never_refused(h, "for ever", 0));
	assert_int_equal(where(h, "for ever"), FLASH);
	assert_answered(gat_never_refused(h, "key", 99));
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_missing(h, "key");
	assert_answered(gat_never_refused(h, "for ever", 1000));
	assert_missing(h, "for ever");
	assert_int_equal(gat_never_refused(h, "key", 0).result, STORE_MISS);
	atomic_fetch_sub(&h->store->item_bytes, rest); /* closing looks for what the items don't explain */
}

static void gat_on_its_way(struct harness *h)
{
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	assert_answered(gat_never_refused(h, "key", 200));
	assert_int_equal(where(h, "key"), PLANNED);
	if (h->hook_argument)
		assert_answered(gat_never_refused(h, "key", 50));
	fault_disarm_all();
}

static void so_is_an_object_on_its_way_to_flash(void **state)
{
	struct harness *h = *state;
	bool goes = false;

	if (!HAVE_FAULTS)
		skip();
	for (unsigned i = 0; i < 2; i++, goes = true) {
		harness_open(h);
		set_living(h, "key", 100);
		h->hook_argument = goes ? h : NULL;
		while_planned(h, "key", PHASE_WRITTEN, gat_on_its_way);
		assert_int_equal(where(h, "key"), goes ? NOWHERE : FLASH);
		if (!goes)
			assert_in_range(ASK(h, "key", .uncounted = true).found.ttl_seconds, 99, 100);
		harness_close(h);
	}
}

/* ---- CLOCK ------------------------------------------------------------------------------------ */

static void expect_clocks(struct harness *h, enum fidx_clock_mode mode, const unsigned clocks[4])
{
	h->config.clock_mode = mode;
	harness_open(h);
	set(h, "key", "value");
	item_set_clock(item_in_dram(h, "key"), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(get(h, "key").result, STORE_HIT);
		assert_int_equal(item_clock(item_in_dram(h, "key")), clocks[i]);
	}
	harness_close(h);
}

static void a_hit_in_dram_sets_both_bits_in_mode_lru_and_counts_up_to_3_in_mode_mfu(void **state)
{
	expect_clocks(*state, FIDX_CLOCK_LRU, (const unsigned[]){ 3, 3, 3, 3 });
	expect_clocks(*state, FIDX_CLOCK_MFU, (const unsigned[]){ 1, 2, 3, 3 });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_look_finds_the_object_as_it_is_and_leaves_it_where_it_is),
		TEST(nothing_is_made_of_nothing_without_vivify),
		TEST(the_first_get_that_makes_an_absent_object_wins_the_next_ones_learn_so),
		TEST(what_is_made_by_get_and_touch_has_the_touch_s_life),
		TEST(get_and_incr_can_touch),
		TEST(who_asks_first_before_the_end_wins),
		TEST(recache_looks_at_the_life_after_the_touch),
		TEST(an_invalidated_object_stays_and_one_reader_wins),
		TEST(an_object_is_stale_until_a_new_value_is_stored),
		TEST(values_under_way_take_a_copy_when_references_are_used_up),
		TEST(the_copy_has_all_that_the_object_had),
		TEST(without_memory_for_the_copy_a_get_is_refused_until_values_are_gone),
		TEST(an_object_on_flash_is_answered_and_lives_no_longer_than_asked_for),
		TEST(so_is_an_object_on_its_way_to_flash),
		TEST(a_hit_in_dram_sets_both_bits_in_mode_lru_and_counts_up_to_3_in_mode_mfu),
	};

	return cmocka_run_group_tests_name("store: reads with options", tests, NULL, NULL);
}
