/* SPDX-License-Identifier: BSD-3-Clause */
/* INCR and DECR: what is a number, and what they leave behind. */
#include "tests/unit/server/store/asking.h"

static void what_is_no_number_is_not_counted_on(void **state)
{
	static const char *const no_numbers[] = { "",
						  " ",
						  "x",
						  "1x",
						  "-1",
						  "+",
						  "-",
						  "+-1",
						  "- 1",
						  "18446744073709551616",
						  "123456789012345678901",
						  "9223372036854775808 -",
						  "-9223372036854775808" };
	struct harness *h = *state;

	harness_open(h);
	for (unsigned i = 0; i < 2 * sizeof(no_numbers) / sizeof(no_numbers[0]); i++) {
		set(h, "key", no_numbers[i / 2]);
		if (i % 2)
			move(h, "key");
		assert_int_equal(run_number(h, STORE_INCR, "key", 1).result, STORE_NOT_NUMBER);
		assert_int_equal(run_number(h, STORE_DECR, "key", 1).result, STORE_NOT_NUMBER);
		assert_value(h, "key", no_numbers[i / 2]);
	}
}

/* As memcached takes them, which is as strtoull does: found by comparing answers. */
static void what_counts_as_a_number(void **state)
{
	static const struct {
		const char *value;
		uint32_t length;
		uint64_t number;
	} numbers[] = {
		{ " 5", 2, 5 },
		{ "\t\n+5", 4, 5 },
		{ "5 x", 3, 5 },
		{ "5\0x", 3, 5 },
		{ "-0", 2, 0 },
		{ "5 -", 3, 5 },
		{ "0000000000000000000000005", 25, 5 },
		{ "18446744073709551615", 20, UINT64_MAX },
		{ "-18446744073709551615", 21, 1 },
		{ "-9223372036854775809", 20, INT64_MAX },
		{ "9223372036854775808\0-", 21, (uint64_t)INT64_MAX + 1 },
	};
	struct harness *h = *state;

	harness_open(h);
	for (unsigned i = 0; i < 2 * sizeof(numbers) / sizeof(numbers[0]); i++) {
		run_full(h, .op = STORE_SET, .key = "key", .value = numbers[i / 2].value,
			 .length = numbers[i / 2].length);
		if (i % 2)
			move(h, "key");
		struct reply reply = run_number(h, STORE_INCR, "key", 0);
		assert_int_equal(reply.result, STORE_HIT);
		assert_true(reply.number == numbers[i / 2].number);
	}
}

static void vivify_number(struct harness *h, const char *key)
{
	struct asked asked = { .op = STORE_INCR, .delta = 5, .options = { .vivify = true, .initial = 13 } };
	struct reply reply;

	asked.options.vivify_expiry = store_expiry(h->store, 30);
	reply = ask(h, key, asked);
	assert_int_equal(reply.result, STORE_HIT);
	assert_int_equal(reply.number, 13);
	assert_int_equal(reply.found.ttl_seconds, 30);
	assert_true(reply.cas > 0);
	assert_value(h, key, "13");
	assert_int_equal(get(h, key).cas, reply.cas);
	assert_marks(h, key, false, false);
	reply = ask(h, key, asked);
	assert_int_equal(reply.number, 18);
	run(h, STORE_DELETE, key);
	asked.op = STORE_DECR;
	asked.options.initial = UINT64_MAX;
	asked.options.touch = true;
	asked.exptime = 60;
	reply = ask(h, key, asked);
	assert_true(reply.number == UINT64_MAX);
	assert_int_equal(reply.found.ttl_seconds, 60);
	assert_int_equal(reply.found.ttl_before_seconds, 30);
	assert_value(h, key, "18446744073709551615");
}

static void incr_and_decr_make_a_number_with_its_initial_value(void **state)
{
	in_every_absence(*state, vivify_number);
}

static void count_with_options(struct harness *h, const char *key)
{
	struct asked asked = { .op = STORE_INCR, .delta = 5, .options = { .touch = true, .initial = 13 } };

	assert_int_equal(ask(h, key, asked).result, STORE_MISS);
	asked.op = STORE_DECR;
	assert_int_equal(ask(h, key, asked).result, STORE_MISS);
	assert_int_equal(get(h, key).result, STORE_MISS);
}

static void other_options_make_no_number(void **state)
{
	in_every_absence(*state, count_with_options);
}

static void number_while_sent(struct harness *h, const char *key, uint64_t cas)
{
	struct flight f;

	(void)cas;
	ask(h, key, (struct asked){ .op = STORE_DELETE, .options = { .invalidate = true } });
	flight_prepare(h, 1, &f, STORE_GET, key);
	store_worker_turn(h->worker[1]);
	assert_true(store_execute(h->worker[1], &f.request)); /* its value is being sent: no change in place */
	run_number(h, STORE_DECR, key, 5);
	assert_memory_equal(f.request.value.data, "10", 2);
	store_value_release(h->worker[1], &f.request.value);
	assert_value(h, key, "5 ");
	assert_marks(h, key, true, false);
}

static void a_number_that_is_being_sent_keeps_its_marks_too(void **state)
{
	in_every_place(*state, number_while_sent);
}

/* In place, or in a new object where the number grows; a new value begins a stay, with what is known of the key. */
static void a_counted_object_keeps_the_count_of_its_accesses(void **state)
{
	static const struct {
		const char *value;
		bool in_place;
	} rows[] = { { "10", true }, { "99", false } };
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	for (unsigned i = 0; i < 2; i++) {
		set(h, "key", rows[i].value);
		for (unsigned reads = 0; reads < 4; reads++)
			get(h, "key");
		const struct item *before = item_in_dram(h, "key");
		double worth = worth_of(h, "key");

		assert_int_equal(run_number(h, STORE_INCR, "key", 1).result, STORE_HIT);
		const struct item *item = item_in_dram(h, "key");
		assert_int_equal(item == before, rows[i].in_place);
		assert_int_equal(item_features(item).reads.count, 0);
		assert_true(worth_of(h, "key") > worth - 0.1);
		run(h, STORE_DELETE, "key");
	}
}

/* Under a model no score is asked for at a write, so what was a candidate before it has to prove itself again. */
static void a_counted_object_is_no_candidate_any_more(void **state)
{
	static const char *const values[] = { "10", "99" }; /* one is changed in place, one replaced */
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_SVM;
	harness_open(h);
	for (unsigned i = 0; i < 2; i++) {
		set(h, "key", values[i]);
		uint64_t hash = store_hash(h->store, "key", 3);
		struct stripe *stripe = store_stripe(h->store, hash);

		lock_acquire(&stripe->lock);
		candidate_set(h->store, stripe, item_in_dram(h, "key"));
		lock_release(&stripe->lock);
		assert_int_equal(h->store->candidate_count, 1);
		assert_int_equal(run_number(h, STORE_INCR, "key", 1).result, STORE_HIT);
		assert_false(item_in_dram(h, "key")->state & ITEM_CANDIDATE);
		assert_int_equal(h->store->candidate_count, 0);
		assert_int_equal(candidate_total(h->store), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_number_is_not_counted_on),
		TEST(what_counts_as_a_number),
		TEST(incr_and_decr_make_a_number_with_its_initial_value),
		TEST(other_options_make_no_number),
		TEST(a_number_that_is_being_sent_keeps_its_marks_too),
		TEST(a_counted_object_keeps_the_count_of_its_accesses),
		TEST(a_counted_object_is_no_candidate_any_more),
	};

	return cmocka_run_group_tests_name("store: numbers", tests, NULL, NULL);
}
