/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <syslog.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_file.h"
#include "conf/conf.h"
#include "server/failed_start.h"
#include "server/privileges.h"
#include "server/service.h"

#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/enabled"
#define MALLOC_HUGE "thp:always"

/* ---- background ------------------------------------------------------------------------------ */

/* The parent waits until the daemon serves or has ended. Does not return. */
static _Noreturn void wait_for(pid_t child, int fd)
{
	char word;
	int status;
	ssize_t got;

	do
		got = read(fd, &word, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1) {
		service_hand_over(child);
		_exit(EXIT_SUCCESS);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EX_OSERR);
}

static int detach_from_parent(struct process *process)
{
	int pipe_fds[2];
	pid_t child;

	if (pipe2(pipe_fds, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		fprintf(stderr, "can't go into the background: %m\n");
		return EX_OSERR;
	}
	if (child > 0) {
		close(pipe_fds[1]);
		wait_for(child, pipe_fds[0]);
	}
	close(pipe_fds[0]);
	process->ready_fd = pipe_fds[1];
	return setsid() < 0 ? EX_OSERR : 0;
}

/* With -v the log stays on standard error, as memcached's does. */
static bool logs_to_syslog(const struct conf *conf)
{
	return conf->daemonize && conf->verbose == 0 && !conf->log_file;
}

bool process_log_moved(const struct process *process)
{
	return log_file_is_open() || logs_to_syslog(process->conf);
}

static bool to_syslog(const struct log_record *record)
{
	syslog(record->priority, "%s", record->text);
	return true;
}

void process_detach_done(struct process *process)
{
	int null_fd;

	log_file_settle();
	if (process->ready_fd < 0)
		return;
	null_fd = chdir("/") == 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
		if (logs_to_syslog(process->conf)) {
			if (!log_to_journal())
				log_set_sink(to_syslog);
			dup2(null_fd, STDERR_FILENO);
		}
		close(null_fd);
	}
	if (write(process->ready_fd, "", 1) != 1)
		fprintf(stderr, "the parent process has ended\n");
	close(process->ready_fd);
	process->ready_fd = -1;
}

/* ---- limits and memory ------------------------------------------------------------------------ */

/* Raises a soft limit to infinity, or else to the hard limit. Returns the soft limit that is in force then. */
static rlim_t raise_limit(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(resource, &limit) != 0 && getrlimit(resource, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(resource, &limit); /* the caller judges by the limit in force */
	}
	return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : 0;
}

/*
 * Pages are locked when they are first used, so memory that is only reserved (stacks, room for growth) takes none.
 * Nothing is locked if there is a limit: the kernel would refuse later allocations beyond it, instead of not locking
 * them.
 */
static void lock_memory(void)
{
	struct rlimit limit;

	if (geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		log_warn("-k invalid, locked memory is limited to %llu bytes (ulimit -l, LimitMEMLOCK=)",
			 (unsigned long long)limit.rlim_cur);
	else if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		log_warn("-k invalid, mlockall() failed: %m");
}

static bool kernel_has_large_pages(void)
{
	char text[64] = "";
	FILE *file = fopen(HUGE_PAGES, "re");

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = 0;
		fclose(file);
	}
	return *text && !strstr(text, "[never]");
}

void process_use_large_pages(const struct conf *conf, char **argv)
{
	const char *before = getenv("MALLOC_CONF");
	char settings[1024], path[4096];
	ssize_t length;

	if (!conf->large_pages || (before && strstr(before, "thp:")))
		return;
#ifdef FS_LIBC_MALLOC
	log_warn("-L is without effect in this build, whose malloc is the C library's");
	return;
#endif
	if (!kernel_has_large_pages()) {
		log_warn("-L is without effect: the kernel offers no large pages (" HUGE_PAGES ")");
		return;
	}
	snprintf(settings, sizeof(settings), "%s%s" MALLOC_HUGE, before ? before : "", before && *before ? "," : "");
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length > 0) {
		path[length] = 0;
		if (setenv("MALLOC_CONF", settings, 1) == 0)
			execv(path, argv);
	}
	log_warn("-L is without effect: the program can't be started anew: %m");
}

/* ---- user ------------------------------------------------------------------------------------ */

static int find_run_user(struct process *process)
{
	const struct passwd *user;
	char reason[320];

	if (getuid() != 0 && geteuid() != 0)
		return 0;
	if (!process->conf->user || !*process->conf->user) {
		return failed_start("can't run as root without the -u switch", EX_USAGE, 0);
	}
	user = getpwnam(process->conf->user);
	if (!user) {
		snprintf(reason, sizeof(reason), "can't find the user %s to switch to", process->conf->user);
		return failed_start(reason, EX_NOUSER, 0);
	}
	process->uid = user->pw_uid;
	process->gid = user->pw_gid;
	process->switch_user = true;
	return 0;
}

int process_become_user(struct process *process, char reason[256])
{
	if (process->conf->lock_memory)
		raise_limit(RLIMIT_MEMLOCK); /* while the process is still root */
	if (process->switch_user && privileges_become(process->conf->user, process->uid, process->gid, reason) != 0)
		return -1;
	if (process->conf->lock_memory)
		lock_memory(); /* after the limit was raised, so that this needs no capability */
	if (privileges_drop(reason) != 0)
		return -1;
	/* The kernel writes no core of a process that was root, unless the process allows it. */
	if (process->conf->coredumps && prctl(PR_SET_DUMPABLE, 1) != 0)
		log_warn("-r: core dumps can't be allowed: %m");
	return 0;
}

int process_prepare(struct process *process, const struct conf *conf)
{
	char reason[256] = "";
	int exit_code;

	*process = (struct process){ .conf = conf, .ready_fd = -1 };
	exit_code = find_run_user(process);
	if (exit_code == 0 && conf->coredumps && raise_limit(RLIMIT_CORE) == 0)
		exit_code = failed_start("failed to ensure corefile creation", EX_OSERR, 0);
	if (exit_code == 0 && conf->log_file &&
	    log_file_open(conf->log_file, process->uid, process->gid, reason) != FS_OK)
		exit_code = failed_start(reason, EX_OSERR, FS_ESYS);
	if (exit_code == 0 && conf->daemonize)
		exit_code = detach_from_parent(process);
	if (exit_code == 0 && logs_to_syslog(conf) && !log_to_journal())
		openlog("flashield", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	return exit_code;
}

/* ---- pid file -------------------------------------------------------------------------------- */

/* Returns the process that a pid file names, or 0 if there is no such file. */
static pid_t pid_in(const char *path)
{
	FILE *file = fopen(path, "re");
	long pid = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%ld", &pid) != 1 || pid < 0 || pid > 1 << 30)
		pid = 0;
	fclose(file);
	return (pid_t)pid;
}

/* Writes the pid file under another name and renames it, so that nobody reads half of it. */
static bool write_beside(const char *path, const char *beside)
{
	FILE *file = fopen(beside, "we");
	bool written;

	if (!file) {
		log_warn("can't write the pid file %s: %m", path);
		return false;
	}
	written = fprintf(file, "%ld\n", (long)getpid()) > 0;
	if (fclose(file) == 0 && written && rename(beside, path) == 0)
		return true;
	log_warn("can't write the pid file %s: %m", path);
	unlink(beside);
	return false;
}

void process_write_pid(struct process *process)
{
	const char *path = process->conf->pidfile;
	char beside[4096 + 8];
	pid_t other;

	if (!path)
		return;
	other = pid_in(path);
	if (other > 0 && other != getpid() && (kill(other, 0) == 0 || errno == EPERM))
		log_warn("the pid file %s named the running process %ld; it names this one now", path, (long)other);
	snprintf(beside, sizeof(beside), "%s.tmp", path);
	if (write_beside(path, beside))
		process->pid_path = realpath(path, NULL);
}

void process_remove_pid(struct process *process)
{
	if (process->pid_path && pid_in(process->pid_path) == getpid() && unlink(process->pid_path) != 0)
		log_warn("can't remove the pid file %s: %m", process->pid_path);
	free(process->pid_path);
	process->pid_path = NULL;
}
