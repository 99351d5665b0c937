/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run stands on: machine, kernel, file system, time, load. Threads: one. */
#ifndef FS_TOOLS_BENCH_MACHINE_H
#define FS_TOOLS_BENCH_MACHINE_H

#include "tools/bench/bench.h"

/* Adds facts by figures_about. What the machine doesn't tell is "unknown". */
void machine_about(const struct bench *bench);

/* CPUs that this process may run on; at least 1. */
unsigned machine_cpus(void);

#endif
