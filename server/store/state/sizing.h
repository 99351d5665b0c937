/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of the flash a given memory can serve, in segments of which size, with an index of which size. */
#ifndef FS_STORE_SIZING_H
#define FS_STORE_SIZING_H

#include "server/store/store.h"

#define INDEX_LOAD 0.95 /* that a table of the index is sized for */
#define INDEX_LOAD_MOST 0.98 /* the most that it gets: above, a place for a slot is hard to find */

struct sizing {
	uint64_t flash_given,
		flash_used; /* what is there, and what segments of at most a quarter of -m can serve of it */
	uint64_t segment_bytes;
	uint64_t buckets, buckets_most; /* of the index's first table; of any that it may ever need */
	uint64_t memory_for_all; /* -m whose half is an index for all of the flash, by --flash-object-size */
	uint32_t segments, extents_most;
};

/* 0, or a code and the reason, with the option and its accepted range. */
FS_MUST_CHECK int sizing_make(const struct store_config *config, struct sizing *out, char reason[256]);
/* The longest record that gets a slot, by the segments' size; longer ones get an extent. */
uint64_t sizing_slot_record_max(uint64_t segment_bytes);

#endif
