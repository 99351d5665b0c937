/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of versions, which clients see as CAS ids. Each write of the store gets one, greater than all before.
 * They begin at 1, on flash as well as without, and stay below 2^53, as some clients hold them in floating-point
 * numbers. ids_note.h has them go on where a flash is lost, or there is none.
 *
 * Over restarts with the same flash no id repeats, as the superblock reserves ids before they are given: the cleaner
 * keeps some 10^9 ahead, and a clean end gives back the rest. A kill costs that many. When the device has been offline
 * for so long that the reserve is used up, ids go on from the wall clock's range (seg_clock_cas), which reserves reach by
 * such a jump alone: the next start goes on below it, or behind it if the device was back before.
 */
#ifndef FS_STORE_IDS_H
#define FS_STORE_IDS_H

#include "server/store/state/state.h"

/* The ids that are reserved ahead: an hour of 300 000 writes a second. Two pages of the superblock are written for each
   quarter. */
#define IDS_RESERVE (1ull << 30)

/* Begins at 1, with all ids, for a store without flash. Before any id is given. */
void ids_init(struct store *store);
/* Begins with the first reservation of an open flash. FS_OK or a code of seg_reserve_cas. Waits for the device. Before
   any id is given. */
FS_MUST_CHECK int ids_open(struct store *store);
/* As ids_open for a store that only looks: begins where the first reservation would, without one. FS_OK. */
FS_MUST_CHECK int ids_look(struct store *store);
/* Reserves more if less than three quarters are left. False: some ids that were given are not reserved, so that no
   object may be written to flash. The cleaner; may wait for the device. */
FS_MUST_CHECK bool ids_reserve(struct store *store);
/* Gives back the ids that were reserved and not given. No id is given any more. Waits for the device. One thread. */
void ids_return(struct store *store);

#endif
