/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of single objects and segments, for watchers and reports. A part of the store's interface: store.h includes it. */
#ifndef FS_STORE_VIEWS_H
#define FS_STORE_VIEWS_H

#include <stdint.h>

struct store;
struct store_request;

/* ---- the object of a request ----------------------------------------------------------------- */

/* What was under the key before the request. A SET, and a blind DELETE, don't read flash: a slot that may be the key's
   stands for its object there. */
enum store_met {
	STORE_MET_UNKNOWN, /* nobody watched fetchers or deletions when the request was executed */
	STORE_MET_NOTHING,
	STORE_MET_IN_DRAM,
	STORE_MET_ON_FLASH
};

/* A watcher's view of the object that a request has found, stored or deleted, or could not store. */
struct store_told {
	unsigned class; /* size class (store_class_status); of a joined piece, the piece's; 0: there was no object */
	uint32_t value_bytes; /* GET, GAT, SET .. CAS; else 0 */
	uint32_t object_bytes; /* GET, GAT: store_seen's bytes; else 0 */
	uint32_t ttl_seconds; /* SET .. CAS, GAT, TOUCH: left; 0: never expires; UINT32_MAX: has expired */
	enum store_met met;
	unsigned met_class; /* of the object that was there before; 0: there was none, or it was not read */
	uint32_t met_bytes; /* of its value; 0 likewise */
};
/* Fills out for a request that is done and whose value is not released yet. The worker's thread. */
void store_tell(const struct store *store, const struct store_request *request, struct store_told *out);

/* ---- segments -------------------------------------------------------------------------------- */

struct store_segment {
	uint64_t sequence; /* 0: it holds nothing that may be read; it is free, being written, or retired */
	/* Of objects that the index leads to, ghosts included; by the segment's mean size. Small ones in a frugal index: at most. */
	uint64_t live_bytes;
};

/* Returns the number of segments; 0 without flash. Any thread. */
uint32_t store_segment_count(const struct store *store);
/* Fills out for segment number 0 .. store_segment_count() - 1. Any thread; takes a leaf lock. */
void store_get_segment(struct store *store, uint32_t number, struct store_segment *out);

#endif
