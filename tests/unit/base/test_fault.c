/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault points: modes, counts, and arming from the environment. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/log.h"
#include "tests/unit/base/base_test.h"

#define POINT FAULT_device_read_eio

static int disarm(void **state)
{
	(void)state;
	fault_disarm_all();
	unsetenv("FLASHIELD_FAULTS");
	return 0;
}

static void bad_words_are_refused(void **state)
{
	static const char *const words[] = {
		"device_read_eio",           "nothing=always",           "device_read_eio=never",
		"device_read_eio=every",     "device_read_eio=every:",   "device_read_eio=every:x",
		"device_read_eio=every:-1",  "device_read_eio=after:1x", "device_read_eio=always:1",
		"device_read_slow=always,=", "device_read_eio=",
	};

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		setenv("FLASHIELD_FAULTS", words[i], 1);
		assert_int_equal(fault_init_from_environment(), FS_EINVAL);
	}
}

static void no_variable_is_fine(void **state)
{
	(void)state;
	assert_int_equal(fault_init_from_environment(), FS_OK);
	setenv("FLASHIELD_FAULTS", "", 1);
	assert_int_equal(fault_init_from_environment(), FS_OK);
}

static void a_disarmed_point_never_fires(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_false(fault_fires(POINT));
	assert_int_equal(fault_fired(POINT), 0);
}

#ifdef FS_FAULTS

static unsigned fires_of(unsigned calls)
{
	unsigned fires = 0;

	for (unsigned i = 0; i < calls; i++)
		fires += fault_fires(POINT);
	return fires;
}

static void modes_fire_as_they_say(void **state)
{
	(void)state;
	fault_arm(POINT, FAULT_ALWAYS, 0);
	assert_int_equal(fires_of(10), 10);
	assert_int_equal(fault_fired(POINT), 10);
	fault_arm(POINT, FAULT_EVERY, 3);
	assert_int_equal(fires_of(2), 0);
	assert_int_equal(fires_of(1), 1);
	assert_int_equal(fires_of(27), 9);
	fault_arm(POINT, FAULT_EVERY, 0);
	assert_int_equal(fires_of(10), 0);
	fault_arm(POINT, FAULT_AFTER, 4);
	assert_int_equal(fires_of(4), 0);
	assert_int_equal(fires_of(1), 1);
	assert_int_equal(fires_of(20), 0);
	fault_arm(POINT, FAULT_PROBABILITY, 0);
	assert_int_equal(fires_of(1000), 0);
	fault_arm(POINT, FAULT_PROBABILITY, 1000);
	assert_int_equal(fires_of(1000), 1000);
	fault_arm(POINT, FAULT_PROBABILITY, 100);
	assert_in_range(fires_of(10000), 850, 1150);
	assert_false(fault_fires(FAULT_store_promote));
}

static void count(void *context)
{
	(*(unsigned *)context)++;
}

static void a_call_is_made_whenever_the_point_fires(void **state)
{
	unsigned calls = 0;

	(void)state;
	fault_call(POINT, count, &calls);
	assert_int_equal(fires_of(5), 0);
	fault_arm(POINT, FAULT_EVERY, 2);
	assert_int_equal(fires_of(6), 3);
	assert_int_equal(calls, 3);
	fault_disarm_all();
	fault_arm(POINT, FAULT_ALWAYS, 0);
	assert_int_equal(fires_of(6), 6);
	assert_int_equal(calls, 3);
}

static void the_environment_arms(void **state)
{
	(void)state;
	setenv("FLASHIELD_FAULTS", "device_read_eio=every:2,store_promote=always", 1);
	assert_int_equal(fault_init_from_environment(), FS_OK);
	assert_int_equal(fires_of(10), 5);
	assert_true(fault_fires(FAULT_store_promote));
}

/* Runs the child, and returns what it says on standard error. *status: how it ended. */
static void watch_child(void (*child)(void), char said[200], int *status)
{
	ssize_t length;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDERR_FILENO);
		close(ends[1]);
		child();
		_exit(0);
	}
	close(ends[1]);
	length = read(ends[0], said, 199); /* the line comes in one write */
	assert_true(length >= 0);
	said[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, status, 0), pid);
}

static void reach_twice(void)
{
	fault_kill(FAULT_killed_in_row);
	fault_kill(FAULT_killed_in_row);
}

static void arm_and_reach(void)
{
	if (fault_init_from_environment() == FS_OK)
		reach_twice();
}

static void a_kill_of_the_environment_says_which_point(void **state)
{
	char said[200];
	int status;

	(void)state;
	setenv("FLASHIELD_FAULTS", "killed_in_row=after:1", 1);
	watch_child(arm_and_reach, said, &status);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_string_equal(said, "fault point: killed_in_row kills the process\n");
	setenv("FLASHIELD_FAULTS", "killed_in_row=after:2", 1);
	watch_child(arm_and_reach, said, &status);
	assert_true(WIFEXITED(status));
	assert_string_equal(said, "");
	fault_arm(FAULT_killed_in_row, FAULT_ALWAYS, 0);
	watch_child(reach_twice, said, &status);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_string_equal(said, "");
}

#else

static void a_kill_of_the_environment_says_which_point(void **state)
{
	(void)state;
	fault_arm(FAULT_killed_in_row, FAULT_ALWAYS, 0);
	fault_kill(FAULT_killed_in_row); /* compiled out */
}

static void modes_fire_as_they_say(void **state)
{
	(void)state;
	fault_arm(POINT, FAULT_ALWAYS, 0);
	assert_false(fault_fires(POINT)); /* compiled out */
}

static void a_call_is_made_whenever_the_point_fires(void **state)
{
	(void)state;
	skip();
}

static void the_environment_arms(void **state)
{
	(void)state;
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bad_words_are_refused, disarm),
		cmocka_unit_test_setup(no_variable_is_fine, disarm),
		cmocka_unit_test_setup(a_disarmed_point_never_fires, disarm),
		cmocka_unit_test_setup(modes_fire_as_they_say, disarm),
		cmocka_unit_test_setup(a_call_is_made_whenever_the_point_fires, disarm),
		cmocka_unit_test_setup(the_environment_arms, disarm),
		cmocka_unit_test_setup(a_kill_of_the_environment_says_which_point, disarm),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
