/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-sim-worker: what of flashield-sim must be fast or needs the engine.
 *
 *   flashield-sim-worker run < JSON       reads the trace, plays the runs (spec.h), answers as in report.h
 *   flashield-sim-worker policies         a JSON array: name, help, and what each policy takes
 *   flashield-sim-worker version          the version
 *
 * Exit status: 0 done; 2 anything else, with a line on standard error or {"error": ...}.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/version.h"
#include "tools/common/args.h"
#include "tools/sim/jobs.h"
#include "tools/sim/report.h"

static int run(void)
{
	struct spec spec;
	struct spool spool;
	struct progress progress;
	struct spec_working_set set;
	struct sim_run *runs;
	size_t failed;

	spec_read(&spec);
	progress_init(&progress, true);
	spool_load(&spool, &spec.trace, &progress);
	set = spec_working_set(&spool);
	runs = mem_must_zalloc((spec.run_count + 1) * sizeof(*runs));
	for (size_t i = 0; i < spec.run_count; i++)
		runs[i] = spec_run(&spec, i, &spool, &set);
	report_trace(&spool, &set);
	failed = jobs_play(&spec, runs);
	mem_free(runs);
	spool_unload(&spool);
	spec_fini(&spec);
	return failed ? EXIT_TROUBLE : 0;
}

static int list_policies(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; sim_policies[i]; i++) {
		const struct sim_policy_ops *policy = sim_policies[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:s?, s:f}", "name", policy->name, "help",
						      policy->help, "reinserts", policy->reinserts, "textbook",
						      policy->textbook, "parameter", policy->parameter, "default",
						      policy->parameter_default));
	}
	report_line("policies", list);
	return 0;
}

int main(int argc, char **argv)
{
	program_invocation_short_name = (char *)(uintptr_t) "flashield-sim"; /* who is to read the lines on errors */
	if (argc == 2 && strcmp(argv[1], "run") == 0)
		return run();
	if (argc == 2 && strcmp(argv[1], "policies") == 0)
		return list_policies();
	if (argc != 2 || strcmp(argv[1], "version") != 0)
		arg_die("its worker serves flashield-sim alone, which gives it one command");
	puts(FS_VERSION);
	return 0;
}
