/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of applications (conf/app_limits.h). A part of store.h, which has the rest of the contract.
 *
 * Memory. The account of an application with limits is the cost of its objects in DRAM: what the allocator spends on
 * them, clean copies included, values that are being received or sent after they were replaced left out.
 *
 *   floor     While the account is at or below it, no hand evicts a live object of the application, and none goes to
 *             flash. Where others don't leave that much, eviction takes theirs until it has it. All floors together
 *             are held up to seven eighths of what objects may cost: where there is less, each is lowered in
 *             proportion. The last resort before a set would be refused for want of memory takes any object.
 *   ceiling   A set that would take the account above it evicts objects of the application first, by CLOCK. What is
 *             above it all the same (after a reload, or because a search for its objects is bounded) goes before
 *             others' objects. An object larger than the ceiling is refused with STORE_NO_MEMORY. The account can be
 *             above it by some objects of each thread, by what a search of some hundred objects doesn't find, and by what
 *             is being written to flash. The keeper leaves a margin below it. When applications near their ceilings have the
 *             candidates for a segment, it is written, however much memory is free.
 *
 * Flash. What an application has there is estimated by its bytes of records in each segment that was written since it had
 * limits, or since this process began, and by how many of the segment's objects are left.
 *
 *   floor     When a segment is reclaimed, objects of an application that has less than its floor elsewhere go back into
 *             DRAM, whatever their worth, and come first in the next segment. All floors together are held up to three
 *             quarters of the flash.
 *   ceiling   An application above its ceiling has no candidates for flash. It gets below it as segments are reclaimed.
 *
 * Writes. A bucket of bytes of records, which fills at the limit's rate and holds ten seconds of it, or a segment if that
 * is more. While it is empty, no object of the application is a candidate for flash. Segments' headers, padding and
 * filters are not counted.
 *
 * Threads: store_set_limits by one thread at a time, the others by any.
 */
#ifndef FS_STORE_LIMITS_H
#define FS_STORE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "conf/app_limits.h"

#define STORE_LIMITED_MOST 256u /* names that had limits since the start; a name is kept until the end */

struct store;

/* An application that has limits, or had some since the start. */
struct store_limited {
	struct app_limit limit; /* now */
	bool limited; /* false: it has none any more */
	uint64_t floor_held; /* of limit.dram_floor, as far as memory allows it */
	uint64_t dram_bytes, dram_items; /* its account */
	uint64_t flash_floor_held; /* of limit.flash_floor, as far as the flash is large enough */
	uint64_t flash_bytes; /* bytes of its records on flash, estimated ... */
	double flash_counted; /* ... in this share of the segments with objects; 0 before the first is written */
	uint64_t ceiling_evictions; /* objects that went because of the ceiling */
	uint64_t floor_evictions; /* objects that went although the account was below the floor */
	uint64_t write_bytes; /* of records written to flash */
	uint64_t write_refusals; /* times that an object was no candidate because the bucket was empty */
};

/*
 * Sets all limits; those of names that aren't among them end. Objects that are in DRAM already are counted by the keeper, in
 * the background: until it is done (store_limits_are_counted), accounts of new names are too low. FS_OK; FS_ERANGE: with
 * these there would be more than STORE_LIMITED_MOST names since the start; FS_ENOMEM: memory for new names is out; FS_EINVAL:
 * the store has a frugal index, with which there are no limits. After an error all limits are as before. The ranges are not
 * checked. limits may be dropped.
 */
FS_MUST_CHECK int store_set_limits(struct store *store, const struct app_limits *limits);
/* Fills out with the n-th application, in the order in which they got limits. False: there are no more. */
FS_MUST_CHECK bool store_get_limited(const struct store *store, unsigned n, struct store_limited *out);
/* Is every object in DRAM counted that belongs to an application with limits? */
bool store_limits_are_counted(const struct store *store);

#endif
