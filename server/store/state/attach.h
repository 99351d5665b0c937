/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects on flash over a kill: the region lies in a file of --region-dir, and the next process attaches to it. This is
 * the store's own part of the region, and the judgement on all of it.
 *
 * To whom the region belongs: superblock and region have the random id of a run. A region is valid if it has the attach
 * epoch and the id of the superblock, in one of two fields, so that there is no instant at which a killed start leaves
 * neither the old nor the new state valid:
 *
 *   judge     the region is valid by (epoch, id), or by (next_epoch, next_id): a start was killed right behind its write
 *   seal      next_id = 0, next_epoch = the epoch to come, next_id = a new random number
 *   write     the superblock gets that epoch and that id, durably, in one write (seg_take_over)
 *   confirm   id = 0, epoch, id = the new ones, next_id = 0
 *   repair    what the killed process had begun is finished (flashindex/attach.c); it can be begun any number of times
 *   recount   slots and extents are counted while clients are served (recount.h); the next start can begin it anew
 *
 * Nothing here touches all of the index: the time follows from the number of segments.
 *
 * Before the write the old pair is valid, behind it the next one; no other run can have the same id. A run without a
 * region writes id 0, which is no region's. A cold start empties the region once it has judged it, and a start from a
 * state file fills it, both before they seal it; a region that is not sealed yet has no id. So at most one of saved
 * state and region is used: the region if it is valid, else the state file. With --restart-max-downtime=0 the region is
 * never sealed.
 *
 * What a killed thread leaves is told in base/region.h. Why nothing stale comes back: a slot is cleared before the
 * command that makes it invalid is answered, and a flush_all is in the region before it is answered. What DRAM held is
 * lost. Ids are reserved in the superblock anew at each start.
 *
 * Threads: the one that opens, stops and closes the store; kept_flush_* any; kept_alive the keeper.
 */
#ifndef FS_STORE_ATTACH_H
#define FS_STORE_ATTACH_H

#include "server/store/state/restart.h"

/* In REGION_STORE. Times are the boot-time clock's. */
struct kept {
	uint8_t uuid[16]; /* of the flash */
	char boot_id[BOOT_ID_BYTES];
	uint64_t segment_bytes, origin_us;
	_Atomic uint64_t epoch, id; /* of the run whose state this is; id 0: of none */
	_Atomic uint64_t next_epoch, next_id; /* of a start that takes over; next_id 0: there is none */
	_Atomic uint64_t alive_us; /* restart_served_us, to a second */
	_Atomic uint64_t flush_cas; /* as in struct store; only rises */
	_Atomic uint64_t flush_at;
};

/* Makes the region, in its file if there is a folder for it; most[REGION_STORE] is filled in here. FS_OK; a code of
   region_open with reason; FS_ENOMEM. */
FS_MUST_CHECK int attach_open(struct store *store, uint64_t most[REGION_AREAS], char reason[256]);
/* Makes store->index of the region, if it is valid for this flash, and takes the store's fields from it; seg_look came
   before. Changes nothing in region and flash. Fills store->start in when there is a folder. RESTART_WARM, or
   RESTART_COLD: there is no index, and the caller goes on with attach_empty. */
enum restart attach_load(struct store *store, const struct fidx_config *index);
/* Empties region and segment table for a run that begins without them. FS_OK; FS_ENOMEM; FS_ESYS. */
FS_MUST_CHECK int attach_empty(struct store *store);
/* Takes flash and region over, as above, and finishes what a killed process had begun. FS_OK, or a code of
   seg_take_over. */
FS_MUST_CHECK int attach_take_over(struct store *store);

/*
 * While the flash moves to another device (cleaner/move.c), in this order. The cleaner.
 */
/* Notes in the state directory that this daemon's flash is the one at path, or the other one; other is NULL where there is no
   doubt. False, with errno: it can't be written. */
FS_MUST_CHECK bool attach_note_flash(const struct store *store, const char *path, const char *other);
/* Lets the region be valid for a superblock with this epoch and the id that is returned, too; 0: there is no region that
   a start may use. */
uint64_t attach_seal(struct store *store, uint64_t epoch);
/* Takes that back. */
void attach_unseal(struct store *store);
/* Gives the region the name of the flash at path. A failure is logged: a start after a kill will not find it. */
void attach_rename(struct store *store, const char *path);
/* The region is valid for that superblock alone. */
void attach_confirm(struct store *store, uint64_t epoch, uint64_t id);

/* Notes restart_served_us. The keeper, once a second; and before other threads run. */
void kept_alive(struct store *store);
/* The region is of no use to a later start, and its file is emptied when the store is closed. */
void kept_end(struct store *store);
/* The store's times and flushes are others than at the takeover: those of saved objects of DRAM. The flash is empty, so that a
   kill in between does no harm. Before any other thread runs. */
void kept_take(struct store *store);
/* Notes a flush mark, or the second of a pending flush_all (0: none), before it is published. */
void kept_flush_mark(struct store *store, uint64_t mark);
void kept_flush_at(struct store *store, uint32_t at);
/* The flush_all pending for that second has been carried out. */
void kept_flush_done(struct store *store, uint32_t at);

#endif
