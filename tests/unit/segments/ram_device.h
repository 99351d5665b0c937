/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device in memory that misbehaves on request: loses power after so many pages written (the one
 * in progress torn in its middle), fails reads or writes, runs full, answers EAGAIN, completes
 * requests in reverse order.
 */
#ifndef FS_TESTS_RAM_DEVICE_H
#define FS_TESTS_RAM_DEVICE_H

#include <stdatomic.h>

#include "segments/device_internal.h"

struct ram_device {
	struct dev dev;
	uint8_t *bytes;
	bool keep;      /* bytes outlive close (and belong to the test) */
	uint64_t power; /* pages that may still be written; the next is torn. UINT64_MAX: no cut */
	uint64_t limit; /* writes that reach beyond fail with ENOSPC */
	_Atomic bool fail_reads, fail_writes;
	_Atomic bool again; /* nowait requests complete with EAGAIN */
	bool no_nowait;     /* nowait is refused with EOPNOTSUPP */
	bool refuse;        /* the queue takes nothing: EAGAIN */
	bool reverse;
	bool hold; /* nothing completes until it is false */
	uint64_t reads, writes, flushes, discards;
	uint64_t largest_discard;
};

/* A device of that many bytes over memory (or fresh zeros when NULL). */
struct ram_device *ram_device_create(uint64_t bytes, uint8_t *memory);
uint8_t *ram_memory(uint64_t bytes);

#endif
