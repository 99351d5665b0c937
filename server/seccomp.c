/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/seccomp.h"

#include <errno.h>
#include <linux/fs.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sanitizer.h"

/* The allowed calls. Some of them exist on some machines only, so they are looked up by name. The first ones are those
   of each turn of a worker. */
static const char *const allowed[] = {
	"epoll_wait",
	"epoll_pwait",
	"recvfrom",
	"recvmsg",
	"read",
	"sendmsg",
	"sendto",
	"write",
	"writev",
	"futex",
	"io_submit",
	"io_getevents",
	"io_pgetevents",
	"timerfd_settime",
	"epoll_ctl",
	"clock_gettime",
	"pwrite64",
	/* sockets */
	"accept",
	"accept4",
	"bind",
	"listen",
	"connect",
	"shutdown",
	"getsockname",
	"getpeername",
	"getsockopt",
	"setsockopt",
	"recvmmsg",
	"sendmmsg",
	"epoll_create",
	"epoll_create1",
	"epoll_pwait2",
	"eventfd2",
	"pipe2",
	"poll",
	"ppoll",
	"select",
	"pselect6",
	/* files */
	"open",
	"openat",
	"close",
	"readv",
	"pread64",
	"preadv",
	"pwritev",
	"lseek",
	"fstat",
	"stat",
	"lstat",
	"newfstatat",
	"statx",
	"statfs",
	"fstatfs",
	"access",
	"faccessat",
	"faccessat2",
	"readlink",
	"readlinkat",
	"getdents64",
	"getcwd",
	"chdir",
	"fcntl",
	"flock",
	"dup",
	"dup2",
	"dup3",
	"fsync",
	"fdatasync",
	"sync_file_range",
	"fallocate",
	"ftruncate",
	"fadvise64",
	"link",
	"linkat",
	"unlink",
	"unlinkat",
	"rename",
	"renameat",
	"renameat2",
	"umask",
	"io_setup",
	"io_destroy",
	"io_cancel",
	/* memory */
	"mmap",
	"munmap",
	"mprotect",
	"mremap",
	"madvise",
	"mincore",
	"brk",
	/* threads, signals and the end */
	"exit",
	"exit_group",
	"gettid",
	"getpid",
	"getppid",
	"set_robust_list",
	"rseq",
	"sched_yield",
	"sched_getaffinity",
	"getcpu",
	"setpriority",
	"getpriority",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sigaltstack",
	"restart_syscall",
	/* time, limits and who we are */
	"clock_getres",
	"clock_nanosleep",
	"nanosleep",
	"gettimeofday",
	"time",
	"times",
	"timerfd_create",
	"timerfd_gettime",
	"getrusage",
	"sysinfo",
	"uname",
	"getrandom",
	"getrlimit",
	"prlimit64",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
};

static int allow_by_name(scmp_filter_ctx filter)
{
	int error = 0;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && error == 0; i++) {
		int call = seccomp_syscall_resolve_name(allowed[i]);

		if (call >= 0)
			error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
		if (error == 0 && call >= 0 && i < UINT8_MAX) /* the filter checks calls in the order of this table */
			error = seccomp_syscall_priority(filter, call, (uint8_t)(UINT8_MAX - i));
	}
	return error;
}

static int allow_if(scmp_filter_ctx filter, int call, struct scmp_arg_cmp argument)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, argument);
}

static int allow_sockets(scmp_filter_ctx filter)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6 };
	int error = 0;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && error == 0; i++)
		error = allow_if(filter, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	if (error == 0)
		error = allow_if(filter, SCMP_SYS(socketpair), SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	if (error == 0) /* resolvers look for interfaces by it */
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
					 SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0));
	return error;
}

static int allow_controls(scmp_filter_ctx filter)
{
	static const unsigned long commands[] = { FIONBIO, FIONREAD, TCGETS, BLKDISCARD, BLKGETSIZE64, BLKSSZGET };
	int error = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && error == 0; i++)
		error = allow_if(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, commands[i]));
	return error;
}

/* Allows threads but no processes. The filter can't see the flags of clone3, so that fails and glibc uses clone. */
static int allow_threads(scmp_filter_ctx filter)
{
	int error = allow_if(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));

	if (error == 0)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (error == 0)
		error = allow_if(filter, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	if (error == 0)
		error = allow_if(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
	if (error == 0) /* log lines in the journal need it */
		error = allow_if(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_GET_NAME, 0));
	if (error == 0)
		error = allow_if(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_TIMERSLACK, 0));
	if (error == 0) /* the cleaner sets its own pauses and priority */
		error = allow_if(filter, SCMP_SYS(sched_setattr), SCMP_A0(SCMP_CMP_EQ, 0, 0));
	return error;
}

static int set_up_filter(scmp_filter_ctx filter)
{
	int error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (error == 0) /* a filter that reads no memory needs no protection from speculative execution */
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (error == 0)
		error = allow_by_name(filter);
	if (error == 0)
		error = allow_sockets(filter);
	if (error == 0)
		error = allow_controls(filter);
	return error == 0 ? allow_threads(filter) : error;
}

bool seccomp_is_possible(void)
{
	return !UNDER_SANITIZER;
}

int seccomp_install(char reason[256])
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int error = filter ? set_up_filter(filter) : -ENOMEM;

	if (error == 0)
		error = seccomp_load(filter);
	seccomp_release(filter);
	if (error == 0)
		return 0;
	snprintf(reason, 256, "can't install the filter of system calls (--seccomp): %s", strerror(-error));
	return -1;
}
