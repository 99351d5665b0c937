/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash as a log: objects are appended to the open segment, and the oldest segment is reclaimed when room is short. What
 * the policy keeps then is appended again.
 *
 *   oldest [segment][segment] ... [open segment] <- append
 *      |                              ^
 *      +-- reclaim: keep? --- yes ----+   (counted as written)
 *                       \---- no -----> dropped
 *
 * An object belongs to the segment in which it begins, so there is no padding. An object that is overwritten or removed
 * leaves its bytes behind until the segment is reclaimed.
 *
 * Threads: one. Memory: aborts when it is out.
 */
#ifndef FS_TOOLS_SIM_FLASH_LOG_H
#define FS_TOOLS_SIM_FLASH_LOG_H

#include <stdbool.h>

#include "tools/sim/objects.h"

struct flash_segment {
	struct object_list live;
	uint64_t bytes; /* written to it, dead ones too */
	uint64_t opened_us, opened_number; /* when, by the clock of the log */
};

/* What becomes of a segment's live object when it is reclaimed: true: it is written again. It is in no list then, its state
   is OBJECT_OUT, and its bytes are those on flash. */
typedef bool flash_keep(void *context, uint32_t object);

struct flash_log {
	struct object *objects;
	flash_keep *keep;
	void *context;
	uint64_t capacity_bytes, segment_bytes;
	struct flash_segment *ring;
	uint32_t ring_size, oldest, count; /* segments, the open one last */
	uint64_t now_us, now_number; /* the caller moves them */
	uint64_t used_bytes, written_bytes, live_objects;
	uint64_t residence_us, residence_requests; /* of the segment that was reclaimed last; 0: none yet */
};

/* segment_bytes 0: 1/64 of the capacity. capacity_bytes 0: every append is refused. fini frees. */
void flash_init(struct flash_log *log, struct object *objects, uint64_t capacity_bytes, uint64_t segment_bytes,
		flash_keep *keep, void *context);
void flash_fini(struct flash_log *log);

/* Writes an object, which is in no list and whose bytes are those that it takes on flash. False: it is larger than a
   quarter of the flash, and stays out. */
bool flash_append(struct flash_log *log, uint32_t object);

/* Forgets an object that is on flash. */
void flash_remove(struct flash_log *log, uint32_t object);

#endif
