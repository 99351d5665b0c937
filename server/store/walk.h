/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over all objects, for dumps and reports. A part of the store's interface: store.h includes it. */
#ifndef FS_STORE_WALK_H
#define FS_STORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;

/* An object as a walk meets it. */
struct store_seen {
	const char *key; /* valid during the call */
	uint8_t key_length;
	bool fetched, from_flash;
	uint32_t value_length;
	uint32_t client_flags;
	int64_t expires; /* wall seconds, -1: never */
	int64_t accessed; /* wall seconds of the last access; of flash objects coarse, up to their write there */
	uint64_t cas;
	unsigned class; /* of store_class_status; of a flash object the class that it would have in DRAM */
	uint32_t bytes; /* of the item in DRAM, header and key included; of a flash object as it would be there */
};

/*
 * Calls see() for each live object: DRAM first, stripe by stripe, then, with flash, each segment with large reads. The
 * walk holds no lock and no pin during see(), so see() may take as long as a slow client and may call the store. see()
 * returns false to stop. An object that moves between the tiers meanwhile may be seen twice or not at all; one that
 * stays in its tier is seen once. Any thread except a worker's, as the walk waits for the device and takes 0.1 us or
 * more for an object; several walks at a time may run. Sleeps as struct store_crawler says. FS_OK, also when stopped;
 * FS_ENOMEM: the walk ended early; FS_EIO: a segment or a record could not be read, all others were. (memcached:
 * lru_crawler metadump.)
 */
FS_MUST_CHECK int store_walk(struct store *store, bool flash,
			     bool (*see)(void *context, const struct store_seen *object), void *context);

#define STORE_SIZE_STEP 32u
#define STORE_SIZE_FINE (1u << 20)
/*
 * For stats sizes: counts the objects in DRAM by size (store_seen's bytes), by a walk over DRAM of some 50 ns an
 * object. Then it calls see() for each size that occurs, ascending: bytes is a multiple of STORE_SIZE_STEP up to
 * STORE_SIZE_FINE, and a size class's above. FS_OK or FS_ENOMEM. With many objects it is long for a worker's thread.
 */
FS_MUST_CHECK int store_count_sizes(struct store *store, void (*see)(void *context, uint32_t bytes, uint64_t objects),
				    void *context);

#endif
