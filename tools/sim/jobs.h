/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays the runs of a spec, each in a process of its own, as the engine's counters belong to the process; so many at a
 * time. What comes out is printed as in report.h, in the order in which runs end.
 *
 * Threads: one, with SIGCHLD blocked meanwhile.
 */
#ifndef FS_TOOLS_SIM_JOBS_H
#define FS_TOOLS_SIM_JOBS_H

#include "tools/sim/spec.h"

/* Returns how many runs failed. */
size_t jobs_play(const struct spec *spec, const struct sim_run *runs);

#endif
