/* SPDX-License-Identifier: BSD-3-Clause */
/* What a seed chooses: options of the engine, of the scheduler, of the drive, and how each life ends. */
#ifndef FS_TESTS_SCHED_SWARM_H
#define FS_TESTS_SCHED_SWARM_H

#include <stdint.h>

struct world;

/* Fills a zeroed world, and makes its drive. */
void swarm_choose(struct world *world, uint64_t seed);

#endif
