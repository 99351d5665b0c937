/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of a reader. One thread owns the pool; any thread may read its field bytes. */
#ifndef FS_SEGMENTS_POOL_INTERNAL_H
#define FS_SEGMENTS_POOL_INTERNAL_H

#include <stdatomic.h>

#include "segments/segments.h"

#define POOL_CLASSES 23u /* up to 4 MiB; larger buffers are not kept */
#define POOL_IDLE_MAX 512u

/* It lies beside the buffer, not in it: the processor's caches don't hold a buffer that the device has written to. */
struct pool_idle {
	void *buffer;
	struct pool_idle *next;
};

struct pool {
	struct pool_idle *idle[POOL_CLASSES];
	struct pool_idle *unused; /* nodes without a buffer */
	struct pool_idle node[POOL_IDLE_MAX];
	uint64_t idle_bytes, idle_most;
	_Atomic uint64_t bytes; /* in use and idle */
};

/* Makes an empty pool, which keeps up to SEG_READER_IDLE_MOST bytes idle. */
void pool_init(struct pool *pool);
/* Returns a buffer of at least bytes, at least 1, for a direct read: aligned to 512 bytes, above half a page to pages.
   *size: its real size, for pool_give. NULL: no memory. */
void *pool_take(struct pool *pool, uint64_t bytes, uint64_t *size);
/* Takes a buffer back: keeps or frees it. */
void pool_give(struct pool *pool, void *buffer, uint64_t size);
/* Frees the idle buffers. All buffers were given back. */
void pool_fini(struct pool *pool);

#endif
