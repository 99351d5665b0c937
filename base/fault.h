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
	FAULT(aio_setup, "the kernel has no asynchronous I/O context left (fs.aio-max-nr): EAGAIN") \
	FAULT(cleaner_pause_before_commit, "between a segment's write and the move of its objects to the index") \
	FAULT(cleaner_step, "a step of the work on a segment: it has no effect but a test's call") \
	FAULT(device_file_full, "a flash file that is being made meets a full file system") \
	FAULT(device_file_slow, "a flash file that is being made gets no further, and its start only the least") \
	FAULT(device_file_unreserved, "the file system of a flash file can't reserve space") \
	FAULT(device_flush_eio, "a flush of the flash file fails with EIO") \
	FAULT(device_read_again, "a submit answers EAGAIN, so that the submitter thread is used") \
	FAULT(device_read_corrupt, "a read returns one flipped bit") \
	FAULT(device_read_eio, "a read fails with EIO") \
	FAULT(device_read_slow, "a completed read is held back for 20 ms") \
	FAULT(device_write_eio, "a write fails with EIO") \
	FAULT(index_force_relocation, "an insert relocates although there is room") \
	FAULT(killed_at_slot_clear, "SIGKILL before a command clears the slots of its key, and right behind it") \
	FAULT(killed_in_close, "SIGKILL when the index has closed a victim segment, before its slots are swept") \
	FAULT(killed_in_commit, "SIGKILL when an object has its slot and is still in DRAM") \
	FAULT(killed_in_extent_move, "SIGKILL when an extent is in both tables") \
	FAULT(killed_in_flush, "SIGKILL before a flush_all is published, and right behind it") \
	FAULT(killed_in_journal, "SIGKILL before a block of the journal is written, and before its answers go on") \
	FAULT(killed_in_merge, \
	      "SIGKILL before a new chain of the frugal index is published, and at each step behind it") \
	FAULT(killed_in_move, "SIGKILL at each step of the switch to the device that the flash is moved to") \
	FAULT(killed_in_rebuild, "SIGKILL when a record of a rebuild has its slot again") \
	FAULT(killed_in_reclaim, "SIGKILL when an object of a victim segment is back in DRAM and still has its slot") \
	FAULT(killed_in_recount, "SIGKILL when a part of the slots that a killed process has left is counted again") \
	FAULT(killed_in_relocation, "SIGKILL when a slot is in both of its buckets") \
	FAULT(killed_in_rescue, "SIGKILL at each step by which a failing segment gets another home") \
	FAULT(killed_in_row, \
	      "SIGKILL when a segment is LIVE and the index has not opened it, or has just reclaimed it") \
	FAULT(killed_in_save, "SIGKILL when the clean mark is written and the region is still valid") \
	FAULT(killed_in_table, "SIGKILL when a table of the index has memory and is not live, or not live any more") \
	FAULT(killed_in_take_over, "SIGKILL at each step of a start, from the judged state to the repaired one") \
	FAULT(limits_memory, "an application that is new to --app-limit gets no memory") \
	FAULT(memory_alloc, "an allocation returns NULL; those that may not fail don't ask") \
	FAULT(memory_map, "address space is refused") \
	FAULT(net_accept, "accept4() fails with EMFILE") \
	FAULT(net_worker_hangs, "a worker does nothing more until it is told to stop, from the next second on") \
	FAULT(predecessor_hangs, "a start that has waited for the run before it waits no longer") \
	FAULT(rebuild_stands, "the rebuild after a crash walks one segment, and no further one") \
	FAULT(reclaim_walk_fails, "the walk of a victim segment fails half-way: the index is swept") \
	FAULT(recount_slow, "a step of the recount after a warm start counts few slots and takes 1 ms") \
	FAULT(region_commit, "an area of the region gets no further memory") \
	FAULT(region_full, "the file system of a region has no room for an area") \
	FAULT(saving_stands, \
	      "a clean stop stops itself (SIGSTOP) before it saves memory, and before the state of the flash") \
	FAULT(settings_memory, "\"stats settings\" gets no memory for the text of --app-limit") \
	FAULT(store_promote, "a flash hit makes a clean copy in DRAM") \
	FAULT(store_reclaim_visit, \
	      "a record of a victim segment waits for 1 ms between the look at its slot and the decision") \
	FAULT(store_revalidation_fails, "a read-modify-write finds its slots changed: another round") \
	FAULT(store_slots_kept, "a change leaves the slots of the old value: wrong, for a test that must find it") \
	FAULT(stripe_resize, "a stripe's table gets another size when an object is linked") \
	FAULT(thread_start, "a thread can't be started: EAGAIN")

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

/* The line on standard error by which a daemon tells that a point of its environment kills it. */
#define FAULT_KILL_LINE "fault point: %s kills the process"
/* Ends the process by SIGKILL if the point fires, as kill -9 would at this instruction. Any lock may be held. After
   fault_init_from_environment it writes a line to standard error first, FAULT_KILL_LINE. */
void fault_kill(enum fault_point point);

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
