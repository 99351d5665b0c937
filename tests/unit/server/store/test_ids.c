/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended requests that compare ids or give ids of the clients' own, the same wherever the object lies. As
 * memcached 1.6.18 was seen to answer, where it knows them.
 */
#include "asking.h"

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_has_no_id),
		TEST(a_differing_id_changes_nothing),
		TEST(without_ids_none_is_the_same),
		TEST(the_same_id_lets_the_command_act),
		TEST(a_compared_set_is_a_read_modify_write_wherever_the_object_lies),
		TEST(a_set_with_an_older_id_may_be_stored_stale),
		TEST(an_id_of_the_client_s_own_is_shown_and_compared),
		TEST(what_vivify_makes_may_have_one_too),
	};

	return cmocka_run_group_tests_name("store: ids that are compared and given", tests, NULL, NULL);
}
