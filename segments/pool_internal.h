/* SPDX-License-Identifier: BSD-3-Clause */
/* Page-aligned buffers of a reader. One owner thread; bytes may be read by any. */
#ifndef FS_SEGMENTS_POOL_INTERNAL_H
#define FS_SEGMENTS_POOL_INTERNAL_H

#include <stdatomic.h>

#include "segments/segments.h"

#define POOL_CLASSES 20u /* up to 4 MiB; larger buffers are not kept */
#define POOL_IDLE_MAX (SEG_READER_IDLE_MOST / SEG_PAGE)

/* Beside the buffer, not in it: what the device has written to is in no cache. */
struct pool_idle {
	void *buffer;
	struct pool_idle *next;
};

struct pool {
	struct pool_idle *idle[POOL_CLASSES];
	struct pool_idle *unused; /* without a buffer */
	struct pool_idle node[POOL_IDLE_MAX];
	uint64_t idle_bytes, idle_most;
	_Atomic uint64_t bytes; /* in use and idle */
};

void pool_init(struct pool *pool);
/* At least bytes; *size: what it really is, to be given back with. NULL: no memory. */
void *pool_take(struct pool *pool, uint64_t bytes, uint64_t *size);
void pool_give(struct pool *pool, void *buffer, uint64_t size);
void pool_fini(struct pool *pool); /* all were given back */

#endif
