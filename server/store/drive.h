/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a test of the whole daemon drives in the store, in builds with fault points. A further header of the store's
 * interface; elsewhere none of this exists.
 *
 * Threads: one that is none of the store's, between store_start and store_stop. Both functions wait for threads of the
 * store, and end soon after *cancelled is true.
 */
#ifndef FS_STORE_DRIVE_H
#define FS_STORE_DRIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct store;

struct store_place_key {
	const char *key;
	size_t length;
};

#ifdef FS_FAULTS
/* Puts the objects of these keys on flash, in segments that the cleaner writes now for them alone, whatever the admission
   rule says of them. keys NULL: all objects that lie in DRAM alone and that a record can hold. Returns how many were moved;
   a key whose object isn't in DRAM counts as none. */
unsigned store_place(struct store *store, const struct store_place_key *keys, unsigned count,
		     const _Atomic bool *cancelled);
/* Returns when keeper and cleaner have come round and found nothing to do at once. */
void store_rest(struct store *store, const _Atomic bool *cancelled);
#endif

#endif
