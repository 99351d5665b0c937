/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log as a file: standard error becomes the file, so that all that is written there is in it, and a line of a crash too.
 *
 *   log_file_open --> standard error is the file; the old one is kept for log_file_tell
 *   log_file_settle --> the old one is closed, when the start is over
 *   log_file_reopen --> after a rotation: the file of that name, made if it is missing
 *
 * Threads: open, settle and reopen belong to the main thread; other threads may log meanwhile, and each of their lines is in
 * one of the files.
 */
#ifndef FS_BASE_LOG_FILE_H
#define FS_BASE_LOG_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Appends to the file, which is made with mode 0640 if it is missing, and then belongs to this user and group. A relative
 * path stays one from the present folder. FS_OK; FS_ESYS (errno) with the reason, and standard error is as before. Call it
 * once, before other threads run.
 */
FS_MUST_CHECK int log_file_open(const char *path, uid_t user, gid_t group, char reason[256]);

/* Is the log a file? */
bool log_file_is_open(void);

/* Writes a line to the old standard error: for the person who has started the process. Nothing once it is closed. */
void log_file_tell(const char *line);

/* Closes the old standard error. */
void log_file_settle(void);

/* Opens the file anew. FS_OK, also without a file; FS_ESYS (errno) with the reason: the log goes on in the old one. */
FS_MUST_CHECK int log_file_reopen(char reason[256]);

/* Could the process append to the file, or make it? Changes nothing. FS_OK; FS_ESYS (errno) with the reason. */
FS_MUST_CHECK int log_file_check(const char *path, char reason[256]);

#endif
