/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault points: named points in the code at which a test makes a rare event happen.
 *
 * They are compiled in if FS_FAULTS is defined, in each build but release; else fault_fires() is the constant false. A
 * test arms a point by fault_arm(), or by the environment:
 * FLASHIELD_FAULTS="name=every:N,name=after:N,name=always,name=prob:PERMILLE".
 *
 * Threads: any, as the state is atomic, except that fault_call is called while the point is off.
 */
#ifndef FS_BASE_FAULT_H
#define FS_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* FAULT(name, text), sorted. */
#define FAULT_TABLE(FAULT) \
	FAULT(cleaner_pause_before_commit, "between a segment's write and the move of its objects to the index") \
	FAULT(cleaner_step, "a step of the work on a segment: it has no effect but a test's call") \
	FAULT(device_file_full, "a flash file that is being made meets a full file system") \
	FAULT(device_read_again, "a submit answers EAGAIN, so that the submitter thread is used") \
	FAULT(device_read_corrupt, "a read returns one flipped bit") \
	FAULT(device_read_eio, "a read fails with EIO") \
	FAULT(device_read_slow, "a completed read is held back for 20 ms") \
	FAULT(device_write_eio, "a write fails with EIO") \
	FAULT(index_force_relocation, "an insert relocates although there is room") \
	FAULT(net_worker_hangs, "a worker does nothing more until it is told to stop, from the next second on") \
	FAULT(reclaim_walk_fails, "the walk of a victim segment fails half-way: the index is swept") \
	FAULT(store_promote, "a flash hit makes a clean copy in DRAM") \
	FAULT(store_reclaim_visit, \
	      "a record of a victim segment waits for 1 ms between the look at its slot and the decision") \
	FAULT(store_revalidation_fails, "a read-modify-write finds its slots changed: another round")

enum fault_point {
#define FAULT_ENUM(name, text) FAULT_##name,
	FAULT_TABLE(FAULT_ENUM)
#undef FAULT_ENUM
		FAULT_POINTS
};

enum fault_mode { FAULT_OFF, FAULT_ALWAYS, FAULT_EVERY, FAULT_AFTER, FAULT_PROBABILITY };

/* Arms a point. EVERY n: each n-th call fires. AFTER n: call n + 1 fires, once. PROBABILITY n: n of 1000 calls fire,
   the same ones in each run. Arming starts the point's counts anew. */
void fault_arm(enum fault_point point, enum fault_mode mode, uint64_t n);
/* Turns all points off and forgets their calls. */
void fault_disarm_all(void);
/* Returns the number of times that the point has fired since it was armed. */
uint64_t fault_fired(enum fault_point point);
/* Sets a call that the point makes whenever it fires, in the thread that reaches it, so that a test can act at this
   very point without waiting. It is set before the point is armed; fault_disarm_all ends it. */
void fault_call(enum fault_point point, void (*call)(void *context), void *context);
/* Arms the points that FLASHIELD_FAULTS names. FS_EINVAL, with the wrong word logged, or FS_ENOMEM. */
FS_MUST_CHECK int fault_init_from_environment(void);

/* Does the rare event happen at this call? */
#ifdef FS_FAULTS
bool fault_fires(enum fault_point point);
#else
static inline bool fault_fires(enum fault_point point)
{
	(void)point;
	return false;
}
#endif

#endif
