/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls, in a child of the test's own: what ends it, what is only refused, what goes on. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/privileges.h"
#include "server/seccomp.h"

#define NOT_INSTALLED 77

/* How a child ends that installs the filter and then acts: its exit code is what act() returns. */
static int status_of(int (*act)(void))
{
	const struct rlimit no_core = { 0, 0 };
	char reason[256];
	pid_t child = fork();
	int status;

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		if (privileges_drop(reason) != 0 || seccomp_install(reason) != 0)
			_exit(NOT_INSTALLED);
		_exit(act());
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void expect_end(int (*act)(void))
{
	int status = status_of(act);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void expect_code(int (*act)(void), int code)
{
	int status = status_of(act);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

static int act_exec(void)
{
	char name[] = "/bin/true", *words[] = { name, NULL };

	return execv(name, words);
}

static int act_fork(void)
{
	return fork() < 0;
}

static int act_ptrace(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0;
}

static int act_packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0;
}

static int act_signal_another(void)
{
	return kill(getppid(), 0) != 0;
}

static int act_signal_another_thread(void)
{
	return (int)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static int act_change_mode(void)
{
	return chmod("/tmp", 0777);
}

static int act_new_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static void *exec_in_thread(void *context)
{
	(void)context;
	act_exec();
	return NULL;
}

static int act_exec_in_new_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, exec_in_thread, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	return 2;
}

static void what_no_cache_does_ends_the_process(void **state)
{
	(void)state;
	if (!seccomp_is_possible())
		skip(); /* a sanitizer's runtime makes calls of its own */
	expect_end(act_exec);
	expect_end(act_fork);
	expect_end(act_ptrace);
	expect_end(act_packet_socket);
	expect_end(act_signal_another);
	expect_end(act_signal_another_thread);
	expect_end(act_change_mode);
	expect_end(act_new_namespace);
	expect_end(act_exec_in_new_thread);
}

/* Threads that run already are under it too. */
static int waiting[2];

static void *exec_when_told(void *context)
{
	char byte;

	if (read(waiting[0], &byte, 1) == 1)
		act_exec();
	return context;
}

static void threads_that_run_already_are_bound_too(void **state)
{
	char reason[256];
	pthread_t thread;
	pid_t child;
	int status;

	(void)state;
	if (!seccomp_is_possible())
		skip(); /* a sanitizer's runtime makes calls of its own */
	assert_int_equal(pipe(waiting), 0);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		if (privileges_drop(reason) != 0 || pthread_create(&thread, NULL, exec_when_told, NULL) != 0 ||
		    seccomp_install(reason) != 0 || write(waiting[1], "", 1) != 1)
			_exit(NOT_INSTALLED);
		pthread_join(thread, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static int act_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0 ? errno : 0;
}

static void *nothing(void *context)
{
	return context;
}

static int act_as_a_daemon(void)
{
	char line[64];
	pthread_t thread;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && read(fd, line, sizeof(line)) > 0 && close(fd) == 0;

	good = good && socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && socket(AF_INET6, SOCK_STREAM, 0) >= 0;
	good = good && pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
	good = good && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
	return good ? 42 : errno;
}

static void what_libraries_try_is_an_error(void **state)
{
	(void)state;
	if (!seccomp_is_possible())
		skip(); /* a sanitizer's runtime makes calls of its own */
	expect_code(act_netlink, EAFNOSUPPORT);
}

static void what_a_daemon_does_goes_on(void **state)
{
	(void)state;
	if (!seccomp_is_possible())
		skip(); /* a sanitizer's runtime makes calls of its own */
	expect_code(act_as_a_daemon, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_cache_does_ends_the_process),
		cmocka_unit_test(threads_that_run_already_are_bound_too),
		cmocka_unit_test(what_libraries_try_is_an_error),
		cmocka_unit_test(what_a_daemon_does_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
