/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every unit test. At its end a program names the tests that started threads, each in a comment of TAP: the run
 * of all unit tests (tools/testrun/units.py) finds by them that the list of what ThreadSanitizer runs is complete. With
 * UNIT_TESTS, names between commas, it runs these tests alone. Threads of shared libraries are not seen.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TESTS_MOST 256
#define OUTSIDE 0 /* of each test, as in the setup of a group */

/* The tests of the program, from 1. The main thread fills it before each group. */
static struct {
	const char *name;
	CMFixtureFunction setup;
	atomic_bool started; /* threads */
} noted[TESTS_MOST] = { [OUTSIDE].name = "*" };
static unsigned count = 1;
static atomic_uint current = OUTSIDE, next;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t tests_count,
				   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t tests_count,
				   CMFixtureFunction setup, CMFixtureFunction teardown);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	atomic_store(&noted[atomic_load(&current)].started, true);
	return __real_pthread_create(thread, attributes, run, argument);
}

/* The setup of each test, as cmocka calls them in order. */
static int set_up(void **state)
{
	unsigned number = atomic_fetch_add(&next, 1);

	atomic_store(&current, number);
	return noted[number].setup ? noted[number].setup(state) : 0;
}

/* Is name one of the list? */
static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return true;
	return false;
}

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t tests_count,
				   CMFixtureFunction setup, CMFixtureFunction teardown)
{
	const char *chosen = getenv("UNIT_TESTS");
	struct CMUnitTest run[TESTS_MOST];
	size_t runs = 0;
	int result;

	atomic_store(&next, count);
	for (size_t i = 0; i < tests_count; i++) {
		if (chosen && !is_listed(chosen, tests[i].name))
			continue;
		if (count == TESTS_MOST)
			abort();
		noted[count].name = tests[i].name;
		noted[count++].setup = tests[i].setup_func;
		run[runs] = tests[i];
		run[runs++].setup_func = set_up;
	}
	if (runs == 0 && tests_count > 0)
		return 0;
	result = __real__cmocka_run_group_tests(name, run, runs, setup, teardown);
	atomic_store(&current, OUTSIDE);
	return result;
}

__attribute__((destructor)) static void tell(void)
{
	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&noted[i].started))
			printf("# it starts threads: %s\n", noted[i].name);
}
