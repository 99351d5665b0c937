/* SPDX-License-Identifier: BSD-3-Clause */
#include "operations.h"

#define FLAGS 77
#define LIFE 100

static void act_get(struct harness *h, struct subject *s)
{
	struct reply reply = get(h, s->key);

	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "10");
	assert_int_equal(reply.flags, FLAGS);
	assert_int_equal(reply.cas, s->cas);
}

static void act_gat(struct harness *h, struct subject *s)
{
	struct reply reply = run_expiry(h, STORE_GAT, s->key, 200);

	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "10");
	assert_int_equal(reply.flags, FLAGS);
	assert_int_equal(reply.cas, s->cas);
}

static void act_touch(struct harness *h, struct subject *s)
{
	assert_int_equal(run_expiry(h, STORE_TOUCH, s->key, 200).result, STORE_TOUCHED);
}

static void stored(struct harness *h, struct subject *s, enum store_op op, const char *value, uint64_t cas)
{
	struct reply reply = run_full(h, .op = op, .key = s->key, .value = value, .length = (uint32_t)strlen(value),
				      .flags = 5, .cas = cas);

	assert_int_equal(reply.result, STORE_STORED);
	assert_true(reply.cas > s->cas);
}

static void act_set(struct harness *h, struct subject *s)
{
	stored(h, s, STORE_SET, "new", 0);
}

static void act_add(struct harness *h, struct subject *s)
{
	assert_int_equal(run_with(h, STORE_ADD, s->key, "new").result, STORE_NOT_STORED);
}

static void act_replace(struct harness *h, struct subject *s)
{
	stored(h, s, STORE_REPLACE, "new", 0);
}

static void act_append(struct harness *h, struct subject *s)
{
	stored(h, s, STORE_APPEND, "5", 0);
}

static void act_prepend(struct harness *h, struct subject *s)
{
	stored(h, s, STORE_PREPEND, "5", 0);
}

static void act_cas(struct harness *h, struct subject *s)
{
	stored(h, s, STORE_CAS, "new", s->cas);
}

static void act_stale_cas(struct harness *h, struct subject *s)
{
	assert_int_equal(
		run_full(h, .op = STORE_CAS, .key = s->key, .value = "new", .length = 3, .cas = s->cas - 1).result,
		STORE_EXISTS);
	assert_int_equal(
		run_full(h, .op = STORE_CAS, .key = s->key, .value = "new", .length = 3, .cas = s->cas + 1).result,
		STORE_EXISTS);
}

static void number(struct harness *h, struct subject *s, enum store_op op, uint64_t delta, uint64_t expected)
{
	struct reply reply = run_number(h, op, s->key, delta);

	assert_int_equal(reply.result, STORE_HIT);
	assert_int_equal(reply.number, expected);
	assert_true(reply.cas > s->cas);
}

static void act_incr(struct harness *h, struct subject *s)
{
	number(h, s, STORE_INCR, 5, 15);
}

static void act_long_incr(struct harness *h, struct subject *s)
{
	number(h, s, STORE_INCR, 990, 1000);
}

static void act_wrapping_incr(struct harness *h, struct subject *s)
{
	number(h, s, STORE_INCR, UINT64_MAX, 9);
}

static void act_decr(struct harness *h, struct subject *s)
{
	number(h, s, STORE_DECR, 5, 5);
}

static void act_decr_below_zero(struct harness *h, struct subject *s)
{
	number(h, s, STORE_DECR, 11, 0);
}

static void act_delete(struct harness *h, struct subject *s)
{
	assert_int_equal(run(h, STORE_DELETE, s->key).result, STORE_DELETED);
	assert_int_equal(run(h, STORE_DELETE, s->key).result, STORE_MISS);
}

static void act_touch_to_the_past(struct harness *h, struct subject *s)
{
	assert_int_equal(run_expiry(h, STORE_TOUCH, s->key, -1).result, STORE_TOUCHED);
}

/* name, act, value, flags, new id, lives, reads only, when absent, op */
const struct operation OPERATIONS[] = {
	{ "get", act_get, "10", FLAGS, false, LIFE, true, STORE_MISS, STORE_GET },
	{ "gat", act_gat, "10", FLAGS, false, 200, false, STORE_MISS, STORE_GAT },
	{ "touch", act_touch, "10", FLAGS, false, 200, false, STORE_MISS, STORE_TOUCH },
	{ "set", act_set, "new", 5, true, 0, false, STORE_STORED, STORE_SET },
	{ "add", act_add, "10", FLAGS, false, LIFE, true, STORE_STORED, STORE_ADD },
	{ "replace", act_replace, "new", 5, true, 0, false, STORE_NOT_STORED, STORE_REPLACE },
	{ "append", act_append, "105", FLAGS, true, LIFE, false, STORE_NOT_STORED, STORE_APPEND },
	{ "prepend", act_prepend, "510", FLAGS, true, LIFE, false, STORE_NOT_STORED, STORE_PREPEND },
	{ "cas", act_cas, "new", 5, true, 0, false, STORE_MISS, STORE_CAS },
	{ "stale cas", act_stale_cas, "10", FLAGS, false, LIFE, true, STORE_MISS, STORE_CAS },
	{ "incr", act_incr, "15", FLAGS, true, LIFE, false, STORE_MISS, STORE_INCR },
	{ "long incr", act_long_incr, "1000", FLAGS, true, LIFE, false, STORE_MISS, STORE_INCR },
	{ "wrapping incr", act_wrapping_incr, "9 ", FLAGS, true, LIFE, false, STORE_MISS, STORE_INCR },
	{ "decr", act_decr, "5 ", FLAGS, true, LIFE, false, STORE_MISS, STORE_DECR },
	{ "decr below zero", act_decr_below_zero, "0 ", FLAGS, true, LIFE, false, STORE_MISS, STORE_DECR },
	{ "delete", act_delete, NULL, 0, false, 0, false, STORE_MISS, STORE_DELETE },
	{ "touch to the past", act_touch_to_the_past, NULL, 0, false, 0, false, STORE_MISS, STORE_TOUCH },
};
const unsigned OPERATION_COUNT = sizeof(OPERATIONS) / sizeof(OPERATIONS[0]);

void subjects_make(struct harness *h, struct subject subjects[SUBJECTS], unsigned number_)
{
	for (unsigned i = 0; i < SUBJECTS; i++) {
		snprintf(subjects[i].key, sizeof(subjects[i].key), "s%u:%u", number_, i);
		struct reply reply = run_full(h, .op = STORE_SET, .key = subjects[i].key, .value = "10", .length = 2,
					      .flags = FLAGS, .exptime = LIFE);
		assert_int_equal(reply.result, STORE_STORED);
		subjects[i].cas = reply.cas;
	}
}

void subject_check(struct harness *h, const struct operation *operation, const struct subject *subject)
{
	struct reply reply = get(h, subject->key);

	if (!operation->value) {
		assert_int_equal(reply.result, STORE_MISS);
		return;
	}
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, operation->value);
	assert_int_equal(reply.length, strlen(operation->value));
	assert_int_equal(reply.flags, operation->flags);
	if (operation->new_id)
		assert_true(reply.cas > subject->cas);
	else
		assert_int_equal(reply.cas, subject->cas);
}

void subjects_expire(struct harness *h, const struct operation *operation, struct subject subjects[SUBJECTS])
{
	unsigned lives = operation->lives ? operation->lives : 1000;

	seconds_pass(h, lives - 1);
	for (unsigned i = 0; i < SUBJECTS; i++)
		subject_check(h, operation, &subjects[i]);
	seconds_pass(h, 1);
	for (unsigned i = 0; i < SUBJECTS; i++) {
		if (operation->lives)
			assert_missing(h, subjects[i].key);
		else
			subject_check(h, operation, &subjects[i]);
	}
}
