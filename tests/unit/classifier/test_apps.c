/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications: which keys have one, that a name keeps its number, and that there are 64 of them at the most. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"
#include "tests/unit/classifier/clf_test.h"

static void open_clf(char delimiter)
{
	clk_scripted_init(&test_clock, 1000000);
	const struct clf_config config = {
		.clock = &test_clock,
		.seed = 5,
		.threshold = 1,
		.training_window_ms = 10000,
		.memory_bytes = 64 << 10,
		.app_delimiter = delimiter,
	};

	assert_int_equal(clf_create(&clf, &config), FS_OK);
}

static unsigned app_of(const char *key)
{
	return clf_app(clf, key, strlen(key));
}

static void without_a_delimiter_all_share_zero(void **state)
{
	(void)state;
	open_clf('\0');
	assert_int_equal(app_of("app:key"), 0);
	assert_int_equal(clf_app(clf, "app\0key", 7), 0);
	assert_int_equal(clf->apps.count, 0);
}

static void keys_without_a_prefix_share_zero(void **state)
{
	(void)state;
	open_clf(':');
	assert_int_equal(app_of(""), 0);
	assert_int_equal(app_of("plain"), 0);
	assert_int_equal(clf_app(clf, "a:b", 1), 0); /* the key ends before the delimiter */
}

static void the_65th_prefix_shares_zero(void **state)
{
	(void)state;
	char key[32];

	open_clf(':');
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 200; i++) {
			snprintf(key, sizeof(key), "app%u:%u", i, round);
			assert_int_equal(app_of(key), i < 64 ? i + 1 : 0);
		}
	}
}

static void the_first_delimiter_ends_the_name(void **state)
{
	(void)state;
	open_clf('/');
	assert_int_equal(app_of("a/b/c"), 1);
	assert_int_equal(app_of("a/"), 1);
	assert_int_equal(app_of("a:b/c"), 2);
	assert_int_equal(app_of("A/b"), 3);
	assert_int_equal(app_of("aa/b"), 4);
	assert_int_equal(app_of("a"), 0);
}

/* A name may be empty, and may have any bytes; a byte with the high bit may be the delimiter. */
static void names_are_bytes(void **state)
{
	(void)state;
	open_clf(':');
	assert_int_equal(app_of(":key"), 1);
	assert_int_equal(clf_app(clf, "a\0b:key", 7), 2);
	assert_int_equal(clf_app(clf, "a\0c:key", 7), 3);
	assert_int_equal(clf_app(clf, "a\0b:", 4), 2);
	assert_int_equal(app_of(":other"), 1);
	close_clf(state);
	open_clf((char)0xfe);
	assert_int_equal(app_of("a\xfe"
				"b"),
			 1);
	assert_int_equal(app_of("a\xff"
				"b"),
			 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define NAMES 100
#define ROUNDS 300

struct asked {
	unsigned number[NAMES];
	bool changed;
};

static _Atomic unsigned ready;

static void *ask_for_all(void *argument)
{
	struct asked *asked = argument;

	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < THREADS)
		sched_yield();
	for (unsigned round = 0; round < 3; round++)
		for (unsigned name = 0; name < NAMES; name++) {
			unsigned number;
			char key[32];

			snprintf(key, sizeof(key), "app%u:%u", name, round);
			number = app_of(key);
			if (round == 0)
				asked->number[name] = number;
			asked->changed |= number != asked->number[name];
		}
	return NULL;
}

/* All threads meet the same new names at the same time. */
static void meet_all_names(void)
{
	struct asked asked[THREADS] = { { { 0 }, false } };
	unsigned users[CLF_APPS] = { 0 };
	pthread_t thread[THREADS];

	atomic_store(&ready, 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_for_all, &asked[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned name = 0; name < NAMES; name++) {
		unsigned number = asked[0].number[name];

		assert_true(number < CLF_APPS);
		users[number]++;
		for (unsigned i = 1; i < THREADS; i++)
			assert_int_equal(asked[i].number[name], number);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_false(asked[i].changed);
	assert_int_equal(users[0], NAMES - (CLF_APPS - 1));
	for (unsigned number = 1; number < CLF_APPS; number++)
		assert_int_equal(users[number], 1);
}

static void threads_agree_on_each_number(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		open_clf(':');
		meet_all_names();
		close_clf(state);
	}
}

#define TEST(test) cmocka_unit_test_teardown(test, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_delimiter_all_share_zero),
		TEST(keys_without_a_prefix_share_zero),
		TEST(the_65th_prefix_shares_zero),
		TEST(the_first_delimiter_ends_the_name),
		TEST(names_are_bytes),
		TEST(threads_agree_on_each_number),
	};

	return cmocka_run_group_tests_name("apps", tests, NULL, NULL);
}
