/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariants of ARCHITECTURE.md, and what has to be once the faults have stopped. A breach is a finding. */
#ifndef FS_TESTS_SCHED_RULES_H
#define FS_TESTS_SCHED_RULES_H

#include <stdbool.h>

struct store;
struct world;

/* What a life may end in. */
enum rules_moment {
	MOMENT_NONE,
	MOMENT_WRITE, /* a segment is being written */
	MOMENT_READERS, /* a segment is reclaimed, and has readers left */
	MOMENT_RESCUE, /* a segment is being copied, as its reads fail */
	MOMENT_REBUILD, /* the walk after a crash of the host */
	MOMENT_LOSSES, /* the journal has had entries for a while that are not durable */
	MOMENT_MERGE, /* a chain of the frugal index is being written */
	MOMENTS
};
bool rules_is_moment(struct store *store, enum rules_moment moment);
/* Is the walk after a crash of the host under way? */
bool rules_rebuilds(const struct store *store);

/* Waits until cleaner and keeper have come to rest, in bounded time; then the flash is in use, and sets are stored. The
   caller's fiber, while no client runs. */
void rules_liveness(struct world *world, struct store *store);
/* Waits until cleaner and keeper have come to rest, in bounded time. */
void rules_rest(struct store *store);
/* Looks at one key beside everything else: an object in DRAM that is no copy has no slot, and what a get would find, in DRAM, by a
   slot or in a bin, is no older than it may be. Takes the key's stripe. */
void rules_glance(struct world *world, struct store *store, unsigned key);
/* The same for every key. */
void rules_glance_at_all(struct world *world, struct store *store);
/* Looks at every key, segment and account. Nothing is under way. */
void rules_check(struct world *world, struct store *store);

#endif
