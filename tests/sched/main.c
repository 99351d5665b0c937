/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine under a seeded scheduler (README.md).
 *
 *   sched SEED [COUNT]            COUNT seeds from SEED on; a line for all, or for the one that has found something
 *   SCHED_SECONDS=60              no further seed after so many CPU seconds
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/build_info.h"
#include "tests/sched/finding.h"
#include "tests/sched/life.h"
#include "tests/sched/swarm.h"

#define TWICE 16u /* one seed of so many is run twice */
#define LOG_SHOWN 4096

/* Addresses decide the order of locks, and must be the same in each run. */
static void fix_addresses(char **argv)
{
	int now = personality(0xffffffff);

	if (now < 0 || (now & ADDR_NO_RANDOMIZE))
		return;
	if (personality((unsigned)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
}

static double cpu_seconds(void)
{
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
	       (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6;
}

static void show_log(int log)
{
	char text[LOG_SHOWN + 1];
	off_t size = lseek(log, 0, SEEK_END), from = size > LOG_SHOWN ? size - LOG_SHOWN : 0;
	ssize_t n = pread(log, text, LOG_SHOWN, from);

	text[n < 0 ? 0 : n] = '\0';
	fputs(text, stdout);
}

/* Lives one life in a process of its own. False: it has found something. */
static bool live(struct world *world, int log)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (!getenv("SCHED_VERBOSE"))
			dup2(log, STDERR_FILENO);
		life_live(world);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		snprintf(world->finding, sizeof(world->finding), "no process can be made");
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		return true;
	if (!world->found)
		snprintf(world->finding, sizeof(world->finding), "the process ended with status %x", (unsigned)status);
	return false;
}

struct summary {
	bool failed;
	uint64_t points, switches, hash, commands, hits, flash_hits, segments, reclaimed, starts[3];
};

static void report(const struct world *world, uint64_t seed, int log)
{
	printf("FAIL seed %" PRIu64 " step %" PRIu64 ": %s\n", seed, world->finding_point, world->finding);
	printf("  %s, life %u of %u, %s\n", strndup(build_info, strcspn(build_info, "\n")), world->life + 1,
	       world->lives, world->text);
	show_log(log);
	printf("  again: %ssched %" PRIu64 "\n", "build/sched/", seed);
}

static struct summary run(uint64_t seed)
{
	struct world *world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int log = memfd_create("log", MFD_CLOEXEC);
	struct summary summary = { .failed = false };

	if (world == MAP_FAILED || log < 0) {
		printf("BROKEN no memory for a run\n");
		exit(EXIT_FAILURE);
	}
	swarm_choose(world, seed);
	snprintf(world->folder, sizeof(world->folder), "/dev/shm/flashield-sched-%d", (int)getpid());
	files_make(&world->files, world->folder);
	for (; world->life < world->lives && !summary.failed; world->life++) {
		summary.failed = !live(world, log);
		if (summary.failed)
			break;
	}
	if (summary.failed)
		report(world, seed, log);
	summary.points = world->points;
	summary.switches = world->switches;
	summary.hash = world->hash;
	summary.commands = world->model.gets + world->model.changes;
	summary.hits = world->model.hits;
	summary.flash_hits = world->model.flash_hits;
	summary.segments = world->segments_written;
	summary.reclaimed = world->reclaimed;
	memcpy(summary.starts, world->starts, sizeof(summary.starts));
	if (getenv("SCHED_SHOW"))
		printf("seed %" PRIu64 ": %" PRIu64 " points, %" PRIu64 " switches, %" PRIu64 " commands, %" PRIu64
		       " hits, %" PRIu64 " on flash, %" PRIu64 " segments, %" PRIu64 " reclaimed, starts %" PRIu64
		       "/%" PRIu64 "/%" PRIu64 ", hash %" PRIx64 ", %s\n",
		       seed, summary.points, summary.switches, summary.commands, summary.hits, summary.flash_hits,
		       summary.segments, summary.reclaimed, summary.starts[0], summary.starts[1], summary.starts[2],
		       summary.hash, world->text);
	files_remove(world->folder);
	drive_free(&world->drive);
	munmap(world, sizeof(*world));
	close(log);
	return summary;
}

static void add(struct summary *sum, const struct summary *one)
{
	sum->points += one->points;
	sum->switches += one->switches;
	sum->commands += one->commands;
	sum->hits += one->hits;
	sum->flash_hits += one->flash_hits;
	sum->segments += one->segments;
	sum->reclaimed += one->reclaimed;
	for (unsigned i = 0; i < 3; i++)
		sum->starts[i] += one->starts[i];
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1,
		 n;
	const char *seconds = getenv("SCHED_SECONDS");
	struct summary sum = { .failed = false };

	fix_addresses(argv);
	for (n = 0; n < count && (!seconds || cpu_seconds() < atof(seconds)); n++) {
		struct summary one = run(first + n);

		if (one.failed)
			return EXIT_FAILURE;
		add(&sum, &one);
		if ((first + n) % TWICE == 0) {
			struct summary again = run(first + n);

			if (again.failed || again.hash != one.hash || again.points != one.points) {
				printf("FAIL seed %" PRIu64 " step 0: two runs of it differ\n", first + n);
				return EXIT_FAILURE;
			}
		}
	}
	printf("PASS sched seeds %" PRIu64 "..%" PRIu64 ": %" PRIu64 " points, %" PRIu64 " switches, %" PRIu64
	       " commands, %" PRIu64 " hits, %" PRIu64 " of them on flash, %" PRIu64 " segments written, %" PRIu64
	       " reclaimed, %" PRIu64 " cold starts, %" PRIu64 " warm, %" PRIu64 " rebuilt, %.1f s of CPU\n",
	       first, first + n - 1, sum.points, sum.switches, sum.commands, sum.hits, sum.flash_hits, sum.segments,
	       sum.reclaimed, sum.starts[0], sum.starts[1], sum.starts[2], cpu_seconds());
	return EXIT_SUCCESS;
}
