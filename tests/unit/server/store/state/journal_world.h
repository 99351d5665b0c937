/* SPDX-License-Identifier: BSD-3-Clause */
/* A journal over files in memory, with a scripted clock; a helper of this folder's tests. */
#ifndef FS_TESTS_JOURNAL_WORLD_H
#define FS_TESTS_JOURNAL_WORLD_H

#include "server/store/state/journal.h"
#include "tests/unit/devices/ram_journal.h"

#define WORLD_SEGMENTS 16u
#define WORLD_FILE_BYTES 30000u
#define WORLD_MOST_BYTES 1000000u

extern const uint8_t WORLD_UUID[16];

struct world {
	struct ram_journal medium; /* first */
	struct clk clk;
	struct journal *journal;
	uint64_t epoch;
	uint64_t wall_s, store_s;
	unsigned wakes, advances;
	int64_t more_bytes; /* of the journal's memory */
	uint64_t (*during_sync)(struct world *w, uint64_t sequence, uint32_t offset); /* called once */
	/* Of the last world_read: */
	struct journal_found found;
	bool has_found;
	uint64_t seen, seen_of[256]; /* entries of DEAD and CHANGED; by sequence */
};

int world_setup(void **state);
int world_teardown(void **state);
/* world_open makes an empty journal of the next epoch. */
void world_open(struct world *w);
int world_try_create(struct world *w, struct journal **out);
void world_close(struct world *w);
/* Reads what the medium has now; the result of journal_read. */
int world_read(struct world *w);

#endif
