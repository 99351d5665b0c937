/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes next, for policies that may know it: for each request of a run the number of its object's next get. It takes
 * four bytes for each request and four for each object.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_SIM_FUTURE_H
#define FS_TOOLS_SIM_FUTURE_H

#include "tools/sim/sim.h"

struct future {
	uint32_t *after; /* by request */
	uint32_t *upcoming; /* by object, after the request that is played now */
};

/* Steps once through the whole trace. Aborts when memory is out, and from 2^32 - 1 requests on. */
void future_init(struct future *future, const struct sim_run *run);
/* Frees; a zeroed struct is allowed. */
void future_fini(struct future *future);

/* The request with this number, of this object, is played now. */
static inline void future_move(struct future *future, uint32_t object, uint64_t number)
{
	future->upcoming[object] = future->after[number];
}

/* next_get of struct sim_config; context is the struct future. */
uint64_t future_next_get(void *context, uint32_t object);

#endif
