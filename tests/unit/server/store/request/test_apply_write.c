/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What SET, CAS, APPEND and DELETE leave behind, and requests that compare ids or give ids of the clients' own, the same
 * wherever the object lies. As memcached 1.6.18 was seen to answer, where it knows them.
 */
#include "classifier/classifier_internal.h"
#include "tests/unit/server/store/asking.h"

/* ---- ids ------------------------------------------------------------------------------------- */

static void refused(struct harness *h, const char *key, uint64_t cas)
{
	static const enum store_op ops[] = { STORE_SET,     STORE_REPLACE, STORE_CAS,  STORE_APPEND,
					     STORE_PREPEND, STORE_INCR,    STORE_DECR, STORE_DELETE };
	struct asked asked = { .options = { .compare_cas = true } };
	enum where before = where(h, key);

	for (unsigned i = 0; i < 3 * sizeof(ops) / sizeof(ops[0]); i++) {
		const uint64_t others[] = { cas + 1, cas - 1, 0 };

		asked.op = ops[i / 3];
		asked.cas = others[i % 3];
		asked.value = asked.op == STORE_INCR || asked.op == STORE_DECR || asked.op == STORE_DELETE ? NULL : "1";
		assert_int_equal(ask(h, key, asked).result, STORE_EXISTS);
		asked.options.own_cas = true; /* and what an id of its own needs is given back */
		asked.options.new_cas = 4;
		assert_int_equal(ask(h, key, asked).result, STORE_EXISTS);
		asked.options.own_cas = false;
	}
	asked = (struct asked){ .op = STORE_DELETE,
				.options = { .compare_cas = true, .invalidate = true },
				.cas = cas + 1 };
	assert_int_equal(ask(h, key, asked).result, STORE_EXISTS);
	asked = (struct asked){ .op = STORE_ADD, .options = { .compare_cas = true }, .cas = cas, .value = "1" };
	assert_int_equal(ask(h, key, asked).result, STORE_NOT_STORED);
	assert_value(h, key, "10");
	assert_int_equal(get(h, key).cas, cas);
	assert_int_equal(where(h, key), before);
}

static void a_differing_id_changes_nothing(void **state)
{
	in_every_place(*state, refused);
}

static uint64_t changed(struct harness *h, const char *key, struct asked asked, const char *value)
{
	struct reply reply;
	uint64_t before = asked.cas;

	asked.options.compare_cas = true;
	reply = ask(h, key, asked);
	assert_true(reply.result == STORE_STORED || reply.result == STORE_HIT);
	assert_true(reply.cas > before);
	assert_value(h, key, value);
	assert_int_equal(get(h, key).cas, reply.cas);
	return reply.cas;
}

static void accepted(struct harness *h, const char *key, uint64_t cas)
{
	cas = changed(h, key, (struct asked){ .op = STORE_INCR, .cas = cas, .delta = 1 }, "11");
	cas = changed(h, key, (struct asked){ .op = STORE_DECR, .cas = cas, .delta = 10 }, "1 ");
	cas = changed(h, key, (struct asked){ .op = STORE_APPEND, .cas = cas, .value = "b" }, "1 b");
	cas = changed(h, key, (struct asked){ .op = STORE_PREPEND, .cas = cas, .value = "a" }, "a1 b");
	cas = changed(h, key, (struct asked){ .op = STORE_REPLACE, .cas = cas, .value = "c" }, "c");
	cas = changed(h, key, (struct asked){ .op = STORE_SET, .cas = cas, .value = "d" }, "d");
	cas = changed(h, key, (struct asked){ .op = STORE_CAS, .cas = cas, .value = "e" }, "e");
	ask(h, key,
	    (struct asked){ .op = STORE_DELETE, .cas = cas, .options = { .compare_cas = true, .invalidate = true } });
	assert_marks(h, key, true, false);
	cas = get(h, key).cas;
	struct asked asked = { .op = STORE_DELETE, .cas = cas, .options = { .compare_cas = true } };
	assert_int_equal(ask(h, key, asked).result, STORE_DELETED);
	assert_missing(h, key);
}

static void the_same_id_lets_the_command_act(void **state)
{
	in_every_place(*state, accepted);
}

static void first_compared(struct harness *h, const char *key, uint64_t cas)
{
	static const enum store_op ops[] = { STORE_SET, STORE_REPLACE, STORE_APPEND };

	ask(h, key, (struct asked){ .op = ops[cas % 3], .cas = cas, .value = "x", .options = { .compare_cas = true } });
	assert_value(h, key, ops[cas % 3] == STORE_APPEND ? "10x" : "x");
}

static void a_compared_set_is_a_read_modify_write_wherever_the_object_lies(void **state)
{
	in_every_place(*state, first_compared);
}

static void older(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = {
		.op = STORE_SET, .value = "late", .cas = cas + 1, .options = { .compare_cas = true, .invalidate = true }
	};

	assert_int_equal(ask(h, key, asked).result, STORE_EXISTS);
	asked.cas = cas - 1;
	struct reply reply = ask(h, key, asked);
	assert_int_equal(reply.result, STORE_STORED);
	assert_true(reply.cas > cas);
	assert_value(h, key, "late");
	assert_marks(h, key, true, false);
	asked.op = STORE_APPEND;
	assert_int_equal(ask(h, key, asked).result, STORE_EXISTS);
	asked.op = STORE_REPLACE;
	asked.value = "later";
	assert_int_equal(ask(h, key, asked).result, STORE_STORED);
	assert_marks(h, key, true, false);
	asked.op = STORE_SET;
	asked.cas = get(h, key).cas;
	assert_int_equal(ask(h, key, asked).result, STORE_STORED);
	assert_marks(h, key, false, false);
}

static void a_set_with_an_older_id_may_be_stored_stale(void **state)
{
	in_every_place(*state, older);
}

static void compared_with_nothing(struct harness *h, const char *key)
{
	struct asked asked = {
		.op = STORE_SET, .value = "x", .cas = 5, .options = { .compare_cas = true, .invalidate = true }
	};

	assert_int_equal(ask(h, key, asked).result, STORE_MISS);
	asked.op = STORE_REPLACE;
	assert_int_equal(ask(h, key, asked).result, STORE_MISS);
	asked.op = STORE_CAS;
	assert_int_equal(ask(h, key, asked).result, STORE_MISS);
	asked.op = STORE_APPEND;
	assert_int_equal(ask(h, key, asked).result, STORE_NOT_STORED);
	assert_missing(h, key);
	asked.op = STORE_ADD;
	assert_int_equal(ask(h, key, asked).result, STORE_STORED);
	assert_value(h, key, "x");
	assert_marks(h, key, false, false);
}

static void nothing_has_no_id(void **state)
{
	in_every_absence(*state, compared_with_nothing);
}

static void own_id(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_INCR, .delta = 1, .options = { .own_cas = true, .new_cas = 7 } };

	(void)cas;
	assert_int_equal(ask(h, key, asked).cas, 7);
	assert_value(h, key, "11");
	assert_int_equal(get(h, key).cas, 7);
	asked.options.new_cas = 6; /* smaller, in place */
	assert_int_equal(ask(h, key, asked).cas, 6);
	assert_int_equal(get(h, key).cas, 6);
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = key, .value = "c", .length = 1, .cas = 7).result,
			 STORE_EXISTS);
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = key, .value = "5", .length = 1, .cas = 6).result,
			 STORE_STORED);
	assert_true(get(h, key).cas > cas);
	asked.op = STORE_APPEND;
	asked.value = "0";
	asked.options.new_cas = UINT64_MAX;
	assert_true(ask(h, key, asked).cas == UINT64_MAX);
	assert_value(h, key, "50");
	assert_true(run_number(h, STORE_INCR, key, 1).cas < UINT64_MAX); /* one of ours again, in place */
	asked.op = STORE_SET;
	asked.value = "set";
	asked.flags = 3;
	asked.options.new_cas = 1;
	assert_int_equal(ask(h, key, asked).cas, 1);
	assert_int_equal(get(h, key).cas, 1);
	assert_int_equal(get(h, key).flags, 3);
	asked = (struct asked){ .op = STORE_DELETE, .options = { .invalidate = true, .own_cas = true, .new_cas = 2 } };
	ask(h, key, asked);
	assert_int_equal(get(h, key).cas, 2);
	assert_marks(h, key, true, false);
	run_expiry(h, STORE_TOUCH, key, 50);
	assert_int_equal(get(h, key).cas, 2);
	store_flush_all(h->store, 0);
	assert_missing(h, key);
}

static void an_id_of_the_client_s_own_is_shown_and_compared(void **state)
{
	in_every_place(*state, own_id);
}

static void own_id_of_nothing(struct harness *h, const char *key)
{
	struct asked asked = { .op = STORE_GET, .options = { .vivify = true, .own_cas = true, .new_cas = 9 } };

	assert_int_equal(ask(h, key, asked).cas, 9);
	run(h, STORE_DELETE, key);
	asked.op = STORE_INCR;
	assert_int_equal(ask(h, key, asked).cas, 9);
	run(h, STORE_DELETE, key);
	asked.op = STORE_PREPEND;
	asked.value = "v";
	assert_int_equal(ask(h, key, asked).cas, 9);
	assert_int_equal(get(h, key).cas, 9);
}

static void what_vivify_makes_may_have_one_too(void **state)
{
	in_every_absence(*state, own_id_of_nothing);
}

static void without_ids_none_is_the_same(void **state)
{
	struct harness *h = *state;
	struct asked asked = { .op = STORE_SET, .value = "7", .options = { .compare_cas = true, .invalidate = true } };

	h->config.cas = false;
	harness_open(h);
	uint64_t cas = set(h, "key", "5").cas;
	for (int i = 0; i < 2; i++, asked.cas = cas) {
		asked.op = STORE_SET;
		assert_int_equal(ask(h, "key", asked).result, STORE_EXISTS);
		asked.op = STORE_APPEND;
		assert_int_equal(ask(h, "key", asked).result, STORE_STORED);
	}
	asked = (struct asked){ .op = STORE_INCR, .delta = 1, .cas = cas, .options = { .compare_cas = true } };
	assert_int_equal(ask(h, "key", asked).result, STORE_EXISTS);
	asked.op = STORE_DELETE;
	assert_int_equal(ask(h, "key", asked).result, STORE_EXISTS);
	assert_value(h, "key", "577");
}

/* ---- pieces and values ----------------------------------------------------------------------- */

static void joining_beyond_the_limit_leaves_the_object_as_it_is(void **state)
{
	struct harness *h = *state;
	char half[700];

	h->config.max_item_bytes = 1024;
	harness_open(h);
	memset(half, 'h', sizeof(half));
	for (int on_flash = 0; on_flash < 2; on_flash++) {
		run_full(h, .op = STORE_SET, .key = "k", .value = half, .length = sizeof(half));
		if (on_flash)
			move(h, "k");
		assert_int_equal(
			run_full(h, .op = STORE_APPEND, .key = "k", .value = half, .length = sizeof(half)).result,
			STORE_TOO_LARGE);
		assert_int_equal(get(h, "k").length, sizeof(half));
	}
}

static void vivify_piece(struct harness *h, const char *key)
{
	struct asked asked = { .op = STORE_APPEND, .value = "piece", .flags = 9, .exptime = 0 };

	assert_int_equal(ask(h, key, asked).result, STORE_NOT_STORED);
	asked.options.vivify = true;
	asked.options.vivify_expiry = store_expiry(h->store, 30);
	struct reply reply = ask(h, key, asked);
	assert_int_equal(reply.result, STORE_STORED);
	assert_int_equal(reply.number, 5);
	assert_int_equal(reply.found.ttl_seconds, 30);
	assert_int_equal(get(h, key).flags, 9);
	asked.op = STORE_PREPEND;
	reply = ask(h, key, asked);
	assert_int_equal(reply.number, 10);
	assert_value(h, key, "piecepiece");
	seconds_pass(h, 30);
	assert_missing(h, key);
}

static void append_and_prepend_make_the_piece_the_value(void **state)
{
	in_every_absence(*state, vivify_piece);
}

static void drop(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_DELETE, .options = { .drop_value = true } };

	assert_int_equal(ask(h, key, asked).result, STORE_DELETED);
	struct reply reply = ASK(h, key, .keep_clock = true);
	assert_int_equal(reply.result, STORE_HIT);
	assert_int_equal(reply.length, 0);
	assert_int_equal(reply.flags, 0);
	assert_true(reply.cas > cas);
	assert_int_equal(reply.found.ttl_seconds, 100);
	assert_false(reply.found.stale || reply.found.won);
	asked.options.invalidate = asked.options.touch = asked.options.own_cas = true;
	asked.options.new_cas = 12;
	asked.exptime = 20;
	assert_int_equal(ask(h, key, asked).cas, 12);
	reply = ASK(h, key, 0);
	assert_true(reply.found.stale && reply.found.won);
	assert_int_equal(reply.found.ttl_seconds, 20);
	assert_int_equal(reply.cas, 12);
}

static void a_value_is_dropped_and_its_object_stays(void **state)
{
	in_every_place(*state, drop);
}

static void stale_set(struct harness *h, const char *key, uint64_t cas)
{
	struct asked asked = { .op = STORE_SET,
			       .value = "made of old",
			       .cas = cas - 1,
			       .exptime = 20,
			       .options = { .compare_cas = true, .invalidate = true } };
	struct reply reply = ask(h, key, asked);

	assert_int_equal(reply.result, STORE_STORED);
	reply = ASK(h, key, 0);
	assert_string_equal(reply.value, "made of old");
	assert_true(reply.found.stale && reply.found.won);
	assert_int_equal(reply.found.ttl_seconds, 100);
}

static void what_is_made_of_something_old_expires_when_that_did(void **state)
{
	in_every_place(*state, stale_set);
}

/* ---- what was there before ------------------------------------------------------------------- */

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

/* The count is the key's, whatever its value; a set that finds no object in DRAM asks the table of counts. */
static void a_value_that_is_set_anew_or_appended_to_keeps_the_count_of_accesses(void **state)
{
	struct harness *h = *state;
	double worth;

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	assert_missing(h, "key");
	set(h, "key", "value");
	assert_int_equal(item_in_dram(h, "key")->past, past_code(1)); /* the miss */
	for (unsigned reads = 0; reads < 7; reads++)
		get(h, "key");
	worth = worth_of(h, "key");
	set(h, "key", "other");
	assert_int_equal(item_features(item_in_dram(h, "key")).reads.count, 0);
	assert_true(worth_of(h, "key") > worth - 0.1);
	assert_int_equal(run_with(h, STORE_APPEND, "key", "!").result, STORE_STORED);
	assert_true(worth_of(h, "key") > worth - 0.2); /* it is a byte longer */
}

/* What makes an object without a value knows the key as well as a write does. */
static void an_object_that_begins_empty_keeps_the_count_of_accesses(void **state)
{
	struct harness *h = *state;
	struct asked asked = { .op = STORE_GET, .options = { .vivify = true } };

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	assert_missing(h, "made");
	assert_int_equal(ask(h, "made", asked).result, STORE_HIT);
	assert_int_equal(item_in_dram(h, "made")->past, past_code(2)); /* this miss and the one before */
	set(h, "made", "value");
	assert_int_equal(item_in_dram(h, "made")->past, past_code(2));

	set(h, "emptied", "value");
	for (unsigned reads = 0; reads < 4; reads++)
		get(h, "emptied");
	asked = (struct asked){ .op = STORE_DELETE, .options = { .drop_value = true } };
	assert_int_equal(ask(h, "emptied", asked).result, STORE_DELETED);
	assert_int_equal(item_in_dram(h, "emptied")->past, past_code(4));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_differing_id_changes_nothing),
		TEST(the_same_id_lets_the_command_act),
		TEST(a_compared_set_is_a_read_modify_write_wherever_the_object_lies),
		TEST(a_set_with_an_older_id_may_be_stored_stale),
		TEST(nothing_has_no_id),
		TEST(an_id_of_the_client_s_own_is_shown_and_compared),
		TEST(what_vivify_makes_may_have_one_too),
		TEST(without_ids_none_is_the_same),
		TEST(joining_beyond_the_limit_leaves_the_object_as_it_is),
		TEST(append_and_prepend_make_the_piece_the_value),
		TEST(a_value_is_dropped_and_its_object_stays),
		TEST(what_is_made_of_something_old_expires_when_that_did),
		TEST(after_a_set_no_flash_read_brings_the_old_value_back),
		TEST(what_a_refused_set_would_have_replaced_is_gone_from_both_tiers),
		TEST(a_value_that_is_set_anew_or_appended_to_keeps_the_count_of_accesses),
		TEST(an_object_that_begins_empty_keeps_the_count_of_accesses),
	};

	return cmocka_run_group_tests_name("store: writes", tests, NULL, NULL);
}
