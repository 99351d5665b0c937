/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of flashield-bench says. */
#ifndef FS_TOOLS_BENCH_OPTIONS_H
#define FS_TOOLS_BENCH_OPTIONS_H

#include "tools/bench/bench.h"

/* A row of STUDY_TABLE. */
struct study {
	const char *name;
	bool plain; /* is it run when none is named? */
	const char *text;
	int (*run)(struct bench *bench);
};

/*
 * studies end with one whose name is NULL; wanted[i] becomes true for those to run. Texts point into argv
 * or into static storage. Ends the program on --help, --list, --version and on an error.
 */
void bench_options_parse(int argc, char **argv, const struct study *studies, bool *wanted,
			 struct bench_options *options);

#endif
