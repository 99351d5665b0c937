/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other files of the engine: state directory and region. They are real ones, in a folder of the run on tmpfs; the engine's
 * fsync and fdatasync end here, and keep what a power cut would leave:
 *
 *   a file     as it was when it was last synced; of what came since, each sector by chance
 *   names      as they were when the folder was last synced, or as they are, by chance
 *   region     nothing
 *
 * A kill leaves all of them as they are.
 */
#ifndef FS_TESTS_SCHED_FILES_H
#define FS_TESTS_SCHED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

#define FILES_MOST 128u

struct file_name {
	char name[96];
	uint64_t inode;
};

struct files {
	char state[160], region[160], durable[160], after[160]; /* folders */
	struct file_name name[FILES_MOST]; /* as they were synced */
	unsigned names;
	struct rng rng;
	uint32_t latency_ns, fails; /* fails: of 1,000,000 syncs, while armed */
	bool armed;
	uint64_t syncs;
};

/* Makes empty folders in that one. */
void files_make(struct files *files, const char *folder);
/* Removes the folder with all that is in it. */
void files_remove(const char *folder);
/* From now on the engine's calls are about these files, in this process. */
void files_begin(struct files *files);
/* The power fails. */
void files_power_cut(struct files *files);

#endif
