/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/common/args.h"
#include "tools/sim/report.h"

#define PROGRESS_NS 200000000

enum { EXIT_DONE = 0, EXIT_REFUSED = 3 };

struct job {
	pid_t pid; /* 0: not started, or over */
	int answer; /* a file in memory, which the process fills */
};

struct jobs {
	const struct spec *spec;
	const struct sim_run *runs;
	struct job *list;
	double *shares; /* shared with the processes: what is done of each run */
	size_t started, over, failed;
};

/* ---- in the run's process -------------------------------------------------------------------- */

static void show_progress(void *context, double share)
{
	*(volatile double *)context = share;
}

static void write_text(int file, const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t written = write(file, text, length);

		if (written <= 0)
			_exit(EXIT_TROUBLE);
		text += written;
		length -= (size_t)written;
	}
}

static _Noreturn void play(const struct jobs *jobs, size_t number)
{
	struct sim_run run = jobs->runs[number];
	struct sim_result *result = mem_must_zalloc(sizeof(*result));
	char reason[256] = "";
	int code;

	run.progress = show_progress;
	run.progress_context = &jobs->shares[number];
	code = sim_play(&run, result, reason);
	if (code == FS_OK) {
		json_t *json = report_result(&run, result, spec_policy_name(jobs->spec, number), number);
		char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));

		must(text);
		write_text(jobs->list[number].answer, text);
		_exit(EXIT_DONE);
	}
	write_text(jobs->list[number].answer, *reason ? reason : fs_strerror(code));
	_exit(EXIT_REFUSED);
}

/* ---- in the worker --------------------------------------------------------------------------- */

static void start(struct jobs *jobs)
{
	size_t number = jobs->started++;
	struct job *job = &jobs->list[number];
	pid_t worker = getpid();

	job->answer = memfd_create("flashield-sim", MFD_CLOEXEC);
	if (job->answer < 0)
		arg_die("a file for a run's answer: %s", strerror(errno));
	job->pid = fork();
	if (job->pid < 0)
		arg_die("a process for a run: %s", strerror(errno));
	if (job->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != worker)
		_exit(EXIT_TROUBLE);
	play(jobs, number);
}

/* The caller frees it. */
static char *read_text(int file)
{
	off_t length = lseek(file, 0, SEEK_END);
	char *text = mem_must_zalloc((size_t)length + 1);

	must(pread(file, text, (size_t)length, 0) == length);
	return text;
}

static void finish(struct jobs *jobs, size_t number, int status)
{
	struct job *job = &jobs->list[number];
	char *text = read_text(job->answer), why[128];

	job->pid = 0;
	jobs->over++;
	jobs->shares[number] = 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE) {
		report_run(text);
	} else {
		jobs->failed++;
		if (WIFSIGNALED(status))
			snprintf(why, sizeof(why), "its process was ended by signal %d", WTERMSIG(status));
		else
			snprintf(why, sizeof(why), "its process failed with status %d", WEXITSTATUS(status));
		report_error(number, WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED ? text : why);
	}
	mem_free(text);
	close(job->answer);
}

static void finish_ended(struct jobs *jobs)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < jobs->started; i++)
			if (jobs->list[i].pid == pid)
				finish(jobs, i, status);
}

static void report_shares(const struct jobs *jobs)
{
	double all = 0;

	for (size_t i = 0; i < jobs->spec->run_count; i++)
		all += ((volatile double *)jobs->shares)[i];
	report_progress(all / (double)jobs->spec->run_count, jobs->over);
}

size_t jobs_play(const struct spec *spec, const struct sim_run *runs)
{
	const struct timespec patience = { .tv_nsec = PROGRESS_NS };
	struct jobs jobs = { .spec = spec, .runs = runs };
	size_t bytes = (spec->run_count + 1) * sizeof(*jobs.shares);
	sigset_t ended;

	jobs.list = mem_must_zalloc((spec->run_count + 1) * sizeof(*jobs.list));
	jobs.shares = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(jobs.shares != MAP_FAILED);
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	while (jobs.over < spec->run_count) {
		while (jobs.started < spec->run_count && jobs.started - jobs.over < spec->jobs)
			start(&jobs);
		(void)sigtimedwait(&ended, NULL, &patience);
		report_shares(&jobs);
		finish_ended(&jobs);
	}
	sigprocmask(SIG_UNBLOCK, &ended, NULL);
	munmap(jobs.shares, bytes);
	mem_free(jobs.list);
	return jobs.failed;
}
