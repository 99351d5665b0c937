/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids that a daemon may have given, in a file of its state directory beside the note of its flash (instance.h). So
 * none repeats where the superblock that reserved them is gone (a flash file that was deleted, or zeroed), or where there
 * is no flash:
 *
 *   with flash      each reservation is noted once it is in the superblock
 *   without         a start reserves IDS_NOTE_WITHOUT_FLASH of them, and no more is noted
 *   clean end       the next id is noted: the rest is given back
 *
 * A start goes on at the noted id where that is the greater one. Ids can still repeat if the file is gone too, for another
 * state directory or daemon name; if more than IDS_NOTE_WITHOUT_FLASH were given without flash before a kill; and
 * for those that were given without a reservation while the device was offline (ids.h), if a kill follows.
 *
 * Threads: the one that opens, stops and closes the store; ids_note_reserved the cleaner. All do I/O.
 */
#ifndef FS_STORE_IDS_NOTE_H
#define FS_STORE_IDS_NOTE_H

#include "server/store/state/state.h"

#define IDS_NOTE_WITHOUT_FLASH (1ull << 38) /* ten days of 300 000 writes a second; 2^53 has room for 32 768 kills */

/* Reads a note: ids below *end may have been given. FS_OK; FS_ENOTFOUND: there is none, or it can't be read; FS_ECORRUPT. */
FS_MUST_CHECK int ids_note_read(const char *path, uint64_t *end);
/* Goes on behind the ids that the daemon of this name and its kin have noted in state_dir, and notes those that this run may give.
   Before any id is given. Logs what fails; the store goes on with the ids that it has. */
void ids_note_open(struct store *store, const char *state_dir, const char *name);
/* Notes the present reserve, if ids_note_open was called. */
void ids_note_reserved(struct store *store);
/* Notes that no id from the next one on was given. No id is given any more. */
void ids_note_end(struct store *store);
/* Frees it. */
void ids_note_close(struct store *store);

#endif
