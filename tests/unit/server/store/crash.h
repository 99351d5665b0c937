/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a journal, both in memory, over crashes of the host; a helper of the store's tests. */
#ifndef FS_TESTS_CRASH_H
#define FS_TESTS_CRASH_H

#include "server/store/state/losses.h"
#include "tests/unit/devices/ram_journal.h"
#include "tests/unit/server/store/harness.h"

struct crash {
	struct harness h; /* first: harness and world are one test's state */
	struct ram_journal journal;
	uint8_t *memory;
};

/* cmocka fixtures: the store is open. */
int crash_setup(void **state);
int crash_teardown(void **state);
/* The host goes down and comes back; returns how the store starts. What was written is there. */
enum store_start crash(struct crash *c);
/* The same without opening the store: the test does that by crash_open. */
void crash_down(struct crash *c);
enum store_start crash_open(struct crash *c);
/* Walks all segments. */
void crash_rebuild(struct crash *c);
/* The journal's wall clock; each crash takes no time by itself. */
void crash_wall_advance(int64_t seconds);

#endif
