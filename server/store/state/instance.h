/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which flash a daemon had last. A state directory may serve several daemons, each known by what it listens to
 * (endpoints.h). What one of them has saved of a flash is right as long as no later run of the same daemon has served
 * without that flash: such a run changes values that the flash still has. So each run notes its flash in the state
 * directory, before it serves, and the next one removes what was saved of another.
 *
 *   run 1, flash A   saves A.state, or is killed and leaves A.region, or the host crashes and leaves A.journal.1
 *   run 2, without   finds the note "A", removes all of them, notes ""
 *   run 3, flash A   finds none: cold
 *
 * Note and removal are durable before the run serves, because a journal outlives a crash of the host.
 *
 * One thread: the one that opens the store.
 */
#ifndef FS_STORE_INSTANCE_H
#define FS_STORE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define INSTANCE_PATH_BYTES 8300 /* of a folder and a file's name */
/* Of a note: the path of the flash, a line end, and the folder of its region, which may be empty. While the flash moves, a
   third line has the path that it may still be at. */
#define INSTANCE_NOTE_BYTES 16500
#define INSTANCE_REGION_SUFFIX ".region" /* behind the name of the flash */

/* Fills out with the path of the state file of the flash at flash_path: its name follows from the last part of that. */
void instance_state_path(const char *state_dir, const char *flash_path, char out[INSTANCE_PATH_BYTES]);
/* Fills out with the path of the journal of that flash, as of journal_directory. */
void instance_journal_path(const char *state_dir, const char *flash_path, char out[INSTANCE_PATH_BYTES]);
/* Removes the journal of that flash, durably. Logs when that fails. */
void instance_remove_journal(const char *state_dir, const char *flash_path);
/* Fills out with the path of the note of that daemon's ids (ids_note.h). */
void instance_ids_path(const char *state_dir, const char *name, char out[INSTANCE_PATH_BYTES]);
/* Fills out with the path of that daemon's lock (daemon_lock.h). */
void instance_lock_path(const char *state_dir, const char *name, char out[INSTANCE_PATH_BYTES]);
/* Is this the name of such a note, or lock, in its folder? */
FS_MUST_CHECK bool instance_is_ids(const char *file_name);
FS_MUST_CHECK bool instance_is_lock(const char *file_name);
/* Reads a note. False: there is none, or it can't be read. */
FS_MUST_CHECK bool instance_read(const char *path, char note[INSTANCE_NOTE_BYTES]);
/* Writes a note durably, in place of the one before. A kill or a crash of the host in between leaves either. False, with
   errno: the old one stays. */
FS_MUST_CHECK bool instance_write(const char *path, const char *note);
/* Notes that the daemon of this name serves with the flash at flash_path ("": without one) from now on, after it has
   removed state, region and journal of other flashes that the last note names; region and journal stay where another process
   serves with that flash. region_dir: where the region lies; NULL: it is
   in no file. Logs what it removes and what fails. */
void instance_note(const char *state_dir, const char *region_dir, const char *name, const char *flash_path);
/* Removes the same of the flashes that the daemon of this name, which doesn't run, has noted, but for that at flash_path. Then
   notes that it serves without: the note of the caller's daemon names that flash from now on, and has to be durable before. */
void instance_forget(const char *state_dir, const char *name, const char *flash_path);
/* Notes that the daemon of this name serves with that flash, or with the other one (NULL: there is none): of two that a move
   leads from and to, the next run removes what it finds of the one that it doesn't serve with. Removes nothing itself. False,
   with errno: the note is as it was. Any one thread. */
FS_MUST_CHECK bool instance_note_move(const char *state_dir, const char *region_dir, const char *name,
				      const char *flash_path, const char *other);
/* Removes the region of the flash at flash_path, unless a daemon has it open: the region of another flash whose file has
   the same name, which took its place. Logs when that fails. */
void instance_remove_region(const char *region_dir, const char *flash_path);

#endif
