/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run has left behind, with damage, and the store that starts on it: in one thread, with the flash and the journal
 * in memory and state file, saved objects and region in a folder of their own on tmpfs.
 *
 *   last_run_make      once: a store serves and ends; what it leaves is kept
 *   last_run_restore   all of it is as the store has left it
 *   (the target changes last_run.state, items, region, journal, flash)
 *   last_run_start     a look, which changes nothing, and then a start, which agrees with it
 *   last_run_serve     commands: a get answers one of its key's values, and never one that was replaced since the start;
 *                      the store ends, and the next one starts with what it has left
 */
#ifndef FS_TESTS_FUZZ_LAST_RUN_H
#define FS_TESTS_FUZZ_LAST_RUN_H

#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/attach.h"
#include "tests/fuzz/damage.h"
#include "tests/unit/devices/ram_journal.h"

#define LAST_RUN_KEYS 32u
#define LAST_RUN_JOURNALS 4u
#define LAST_RUN_SEGMENT_BYTES (64u << 10)
#define LAST_RUN_SEGMENTS 4u
#define LAST_RUN_FLASH_BYTES ((LAST_RUN_SEGMENTS + 1) * LAST_RUN_SEGMENT_BYTES) /* the first is the superblock's */

enum last_run_way { ENDED_CLEANLY, WAS_KILLED, HOST_CRASHED };

struct last_run {
	enum last_run_way way;
	/* What the target may change. length 0: there is none. */
	struct damaged flash, state, items, region, journal[LAST_RUN_JOURNALS];
	uint32_t journal_number[LAST_RUN_JOURNALS];
	unsigned journals;
	bool older; /* the damage can bring back an object that was replaced or deleted before the start */
	bool any; /* it can bring objects of any bytes */

	/* Private: */
	struct clk clk;
	struct store_config config;
	struct store *store;
	struct store_worker *worker;
	struct ram_journal medium;
	struct damaged left[4 + LAST_RUN_JOURNALS]; /* of the fields above, in their order */
	uint8_t *device; /* memory of the flash */
	int8_t version[LAST_RUN_KEYS]; /* that the key has; 0: none */
	bool written[LAST_RUN_KEYS]; /* by a command since the start: no other version may be seen */
	unsigned hits; /* of keys, after a start without damage */
	bool differs; /* this start has damage */
	unsigned fillers;
};

/* Returns the run that ended so: it is made once. NULL: the machine has no tmpfs for it, and the target can't run. */
struct last_run *last_run_make(enum last_run_way way);
void last_run_restore(struct last_run *run);
/* Has a file other bytes than it was left with? */
bool last_run_differs(struct last_run *run);
/* Returns whether there is a store, with or without objects; only a flash that can't be used leaves none. Without damage
   it is warm. */
bool last_run_start(struct last_run *run);
/* Serves and ends. depth, by its low three bits: below 6 gets alone, which take little time; 6 also writes, and a start
   on what this store leaves; 7 also writes segments until each of the last run's is reclaimed. */
void last_run_serve(struct last_run *run, unsigned depth);

#endif
