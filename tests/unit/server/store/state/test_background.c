/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of steps: it is woken, stopped and started again, and no wake is lost. */
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "server/store/state/background.h"

#define FOR_EVER_MS (1000u * 60 * 60 * 24) /* a sleep that nothing ends hangs the test */
#define BOUND_SECONDS 300

/* What the thread under test does, and how the test follows it. */
struct work {
	struct background background;
	void (*act)(struct work *work); /* the first step; all others have nothing to do */
	sem_t reached, proceed;
	_Atomic unsigned begun, steps;
	unsigned begun_at_first_step;
	char name[32];
	_Atomic bool ended; /* the first step */
};

static bool refuse_threads;

/* Stands in for libc's, so that a start can fail. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (refuse_threads)
		return EAGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, run, context);
}

static void await(sem_t *semaphore)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += BOUND_SECONDS;
	assert_int_equal(sem_timedwait(semaphore, &until), 0);
}

static void begin(void *context)
{
	atomic_fetch_add(&((struct work *)context)->begun, 1);
}

static bool step(void *context)
{
	struct work *work = context;

	if (atomic_fetch_add(&work->steps, 1) > 0)
		return false;
	work->begun_at_first_step = atomic_load(&work->begun);
	pthread_getname_np(pthread_self(), work->name, sizeof(work->name));
	if (work->act)
		work->act(work);
	work->ended = true;
	sem_post(&work->reached);
	return false;
}

static int prepare(void **state)
{
	static struct work work;

	memset(&work, 0, sizeof(work));
	sem_init(&work.reached, 0, 0);
	sem_init(&work.proceed, 0, 0);
	background_init(&work.background);
	refuse_threads = false;
	*state = &work;
	return 0;
}

static int finish(void **state)
{
	struct work *work = *state;

	background_stop(&work->background);
	background_fini(&work->background);
	sem_destroy(&work->reached);
	sem_destroy(&work->proceed);
	return 0;
}

static void run_first_step(struct work *work, void (*act)(struct work *work))
{
	work->act = act;
	assert_int_equal(background_start(&work->background, "the name", begin, step, work), FS_OK);
}

/* ---- without a thread ------------------------------------------------------------------------ */

static void without_a_thread_nothing_sleeps_and_no_wake_is_kept(void **state)
{
	struct work *work = *state;

	background_wake(&work->background);
	assert_false(work->background.woken);
	background_sleep(&work->background, FOR_EVER_MS);
	background_stop(&work->background);
	assert_false(background_is_stopping(&work->background));
	assert_int_equal(work->steps, 0);
}

static void a_thread_that_cannot_be_made_is_an_error_and_may_be_tried_again(void **state)
{
	struct work *work = *state;

	refuse_threads = true;
	errno = 0;
	assert_int_equal(background_start(&work->background, "the name", begin, step, work), FS_ESYS);
	assert_int_equal(errno, EAGAIN);
	background_sleep(&work->background, FOR_EVER_MS);
	background_stop(&work->background);
	assert_int_equal(work->begun, 0);
	refuse_threads = false;
	run_first_step(work, NULL);
	await(&work->reached);
	assert_int_equal(work->begun, 1);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void begin_comes_once_before_all_steps_in_a_thread_of_that_name(void **state)
{
	struct work *work = *state;

	run_first_step(work, NULL);
	await(&work->reached);
	background_wake(&work->background);
	background_stop(&work->background);
	assert_int_equal(work->begun_at_first_step, 1);
	assert_int_equal(work->begun, 1);
	assert_string_equal(work->name, "the name");
}

static void without_begin_the_steps_come_all_the_same(void **state)
{
	struct work *work = *state;

	assert_int_equal(background_start(&work->background, "other", NULL, step, work), FS_OK);
	await(&work->reached);
	assert_int_equal(work->begun, 0);
}

static void it_steps_again_without_being_woken(void **state)
{
	struct work *work = *state;

	run_first_step(work, NULL);
	await(&work->reached);
	while (atomic_load(&work->steps) < 4)
		sched_yield();
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void sleep_for_ever(struct work *work)
{
	sem_post(&work->reached);
	background_sleep(&work->background, FOR_EVER_MS);
}

static void a_wake_ends_a_sleep(void **state)
{
	struct work *work = *state;

	run_first_step(work, sleep_for_ever);
	await(&work->reached); /* it is about to sleep, or sleeps */
	background_wake(&work->background);
	await(&work->reached);
	background_stop(&work->background);
	assert_true(work->ended);
}

static void sleep_when_told(struct work *work)
{
	sem_post(&work->reached);
	await(&work->proceed);
	background_sleep(&work->background, FOR_EVER_MS);
}

static void wakes_before_the_sleep_keep_it_from_beginning(void **state)
{
	struct work *work = *state;

	run_first_step(work, sleep_when_told);
	await(&work->reached);
	for (int i = 0; i < 3; i++)
		background_wake(&work->background);
	assert_true(work->background.woken);
	sem_post(&work->proceed);
	await(&work->reached);
	background_stop(&work->background);
	assert_true(work->ended);
}

static void sleep_twice(struct work *work)
{
	sleep_when_told(work);
	work->begun = work->background.woken ? 100 : 200; /* nobody else writes either by then */
	sem_post(&work->reached);
	background_sleep(&work->background, FOR_EVER_MS);
}

static void a_wake_is_used_up_by_one_sleep_and_the_next_one_is_not_lost(void **state)
{
	struct work *work = *state;

	run_first_step(work, sleep_twice);
	await(&work->reached);
	background_wake(&work->background);
	sem_post(&work->proceed);
	await(&work->reached);
	assert_int_equal(work->begun, 200);
	background_wake(&work->background);
	await(&work->reached);
	background_stop(&work->background);
	assert_true(work->ended);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void stop_ends_a_sleep(void **state)
{
	struct work *work = *state;

	run_first_step(work, sleep_for_ever);
	await(&work->reached);
	background_stop(&work->background);
	assert_true(work->ended);
}

static void work_until_stopped(struct work *work)
{
	sem_post(&work->reached);
	while (!background_is_stopping(&work->background))
		sched_yield();
}

static void a_long_step_sees_the_stop_and_stop_waits_for_its_end(void **state)
{
	struct work *work = *state;

	run_first_step(work, work_until_stopped);
	await(&work->reached);
	assert_false(work->ended);
	background_stop(&work->background);
	assert_true(work->ended);
	assert_int_equal(work->steps, 1);
	assert_false(background_is_stopping(&work->background)); /* no thread is to end any more */
}

static void what_was_stopped_can_be_started_again(void **state)
{
	struct work *work = *state;

	for (unsigned i = 1; i <= 3; i++) {
		work->steps = 0;
		run_first_step(work, sleep_for_ever);
		await(&work->reached);
		background_wake(&work->background);
		await(&work->reached);
		background_stop(&work->background);
		assert_int_equal(work->begun, i);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_thread_nothing_sleeps_and_no_wake_is_kept),
		TEST(a_thread_that_cannot_be_made_is_an_error_and_may_be_tried_again),
		TEST(begin_comes_once_before_all_steps_in_a_thread_of_that_name),
		TEST(without_begin_the_steps_come_all_the_same),
		TEST(it_steps_again_without_being_woken),
		TEST(a_wake_ends_a_sleep),
		TEST(wakes_before_the_sleep_keep_it_from_beginning),
		TEST(a_wake_is_used_up_by_one_sleep_and_the_next_one_is_not_lost),
		TEST(stop_ends_a_sleep),
		TEST(a_long_step_sees_the_stop_and_stop_waits_for_its_end),
		TEST(what_was_stopped_can_be_started_again),
	};

	return cmocka_run_group_tests_name("store: a background thread", tests, NULL, NULL);
}
