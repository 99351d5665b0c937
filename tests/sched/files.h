/* SPDX-License-Identifier: BSD-3-Clause */
/* The other files of the engine: state directory and region. They are real ones, in a folder of the run. */
#ifndef FS_TESTS_SCHED_FILES_H
#define FS_TESTS_SCHED_FILES_H

struct files {
	char state[160], region[160], durable[160]; /* folders */
};

/* Makes empty folders in that one. */
void files_make(struct files *files, const char *folder);
/* Removes the folder with all that is in it. */
void files_remove(const char *folder);
/* The power fails: the region is gone. */
void files_power_cut(struct files *files);

#endif
