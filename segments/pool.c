/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read buffers, page-aligned, by size class (1, 2, 3, 4, 6, 8, 12, ... pages). An idle buffer is kept
 * for the next read while the idle ones stay within IDLE_BYTES.
 */
#include "base/alloc.h"
#include "segments/pool_internal.h"

#define IDLE_BYTES (1u << 20)
#define POOL_PAGES_MAX 1024u

/* Bytes of the class that a buffer of bytes belongs to. */
static uint64_t class_of(uint64_t bytes, unsigned *index)
{
	uint64_t pages = (bytes + SEG_PAGE - 1) / SEG_PAGE;
	unsigned i = 0;
	uint64_t size = 1;

	if (__builtin_expect(pages <= 4, 1)) {
		*index = pages > 1 ? (unsigned)pages - 1 : 0;
		return (*index + 1ull) * SEG_PAGE;
	}
	/* Larger ones are rare, and rounding them up would cost megabytes. */
	*index = POOL_CLASSES;
	if (pages > POOL_PAGES_MAX)
		return pages * SEG_PAGE;
	/* 1, 2, 3, 4, 6, 8, 12, ...: odd steps are one and a half times the power of two before. */
	while (size < pages) {
		i++;
		size = i < 2 ? i + 1 : (i % 2 ? 2ull << (i / 2) : 3ull << (i / 2 - 1));
	}
	*index = i;
	return size * SEG_PAGE;
}

void pool_init(struct pool *pool)
{
	*pool = (struct pool){0};
}

void *pool_take(struct pool *pool, uint64_t bytes, uint64_t *size)
{
	unsigned index;
	struct pool_idle *idle;

	*size = class_of(bytes, &index);
	idle = index < POOL_CLASSES ? pool->idle[index] : NULL;
	if (idle) {
		pool->idle[index] = idle->next;
		pool->idle_bytes -= *size;
	} else {
		idle = mem_aligned(SEG_PAGE, *size);
		if (!idle)
			return NULL;
		atomic_fetch_add_explicit(&pool->bytes, *size, memory_order_relaxed);
	}
	return idle;
}

void pool_give(struct pool *pool, void *buffer, uint64_t size)
{
	struct pool_idle *idle = buffer;
	unsigned index;

	class_of(size, &index);
	if (index < POOL_CLASSES && pool->idle_bytes + size <= IDLE_BYTES) {
		idle->next = pool->idle[index];
		pool->idle[index] = idle;
		pool->idle_bytes += size;
		return;
	}
	mem_free(buffer);
	atomic_fetch_sub_explicit(&pool->bytes, size, memory_order_relaxed);
}

void pool_fini(struct pool *pool)
{
	for (unsigned i = 0; i < POOL_CLASSES; i++) {
		while (pool->idle[i]) {
			struct pool_idle *idle = pool->idle[i];

			pool->idle[i] = idle->next;
			mem_free(idle);
		}
	}
}
