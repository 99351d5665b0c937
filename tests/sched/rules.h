/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariants of ARCHITECTURE.md, and what has to be once the faults have stopped. A breach is a finding. */
#ifndef FS_TESTS_SCHED_RULES_H
#define FS_TESTS_SCHED_RULES_H

struct store;
struct world;

/* Waits until cleaner and keeper have come to rest, in bounded time; then the flash is in use, and sets are stored. The
   caller's fiber, while no client runs. */
void rules_liveness(struct world *world, struct store *store);
/* Looks at every key, segment and account. Nothing is under way. */
void rules_check(struct world *world, struct store *store);

#endif
