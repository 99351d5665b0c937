/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read buffers by size class (512, 1024 and 2048 bytes; 1, 2, 3, 4, 6, 8, 12, ... pages). One below a page lies within a
 * page, the others begin with one. An idle buffer is kept for the next read while the idle ones stay within idle_most, and
 * while there are nodes.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "segments/pool_internal.h"

#define POOL_PAGES_MAX 1024u
#define SMALL_CLASSES 3u /* below a page */

/* The size of the class for a buffer of that many bytes; *index is POOL_CLASSES when it has none. */
static uint64_t buffer_class(uint64_t bytes, unsigned *index)
{
	uint64_t pages = (bytes + SEG_PAGE - 1) / SEG_PAGE;
	unsigned i = 0;
	uint64_t size = 1;

	if (bytes <= SEG_PAGE / 2) {
		*index = bytes <= SEG_PAGE / 8 ? 0 : bytes <= SEG_PAGE / 4 ? 1 : 2;
		return SEG_PAGE / 8 << *index;
	}
	if (__builtin_expect(pages <= 4, 1)) {
		*index = SMALL_CLASSES + (unsigned)pages - 1;
		return pages * SEG_PAGE;
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
	*index = SMALL_CLASSES + i;
	return size * SEG_PAGE;
}

static struct pool_idle *pool_pop(struct pool_idle **list)
{
	struct pool_idle *node = *list;

	if (node)
		*list = node->next;
	return node;
}

static void pool_push(struct pool_idle **list, struct pool_idle *node)
{
	node->next = *list;
	*list = node;
}

void pool_init(struct pool *pool)
{
	*pool = (struct pool){ .idle_most = SEG_READER_IDLE_MOST };
	for (unsigned i = 0; i < POOL_IDLE_MAX; i++)
		pool_push(&pool->unused, &pool->node[i]);
}

void *pool_take(struct pool *pool, uint64_t bytes, uint64_t *size)
{
	unsigned index;
	struct pool_idle *node;
	void *buffer;

	*size = buffer_class(bytes, &index);
	node = index < POOL_CLASSES ? pool_pop(&pool->idle[index]) : NULL;
	if (node) {
		must(pool->idle_bytes >= *size);
		pool->idle_bytes -= *size;
		pool_push(&pool->unused, node);
		return node->buffer;
	}
	buffer = mem_aligned(*size < SEG_PAGE ? *size : SEG_PAGE, *size);
	if (buffer)
		atomic_fetch_add_explicit(&pool->bytes, *size, memory_order_relaxed);
	return buffer;
}

void pool_give(struct pool *pool, void *buffer, uint64_t size)
{
	struct pool_idle *node;
	unsigned index;
	uint64_t class_bytes = buffer_class(size, &index);

	must(buffer && class_bytes == size);
	if (index < POOL_CLASSES && pool->idle_bytes + size <= pool->idle_most && pool->unused) {
		node = pool_pop(&pool->unused);
		node->buffer = buffer;
		pool_push(&pool->idle[index], node);
		pool->idle_bytes += size;
		return;
	}
	mem_free(buffer);
	atomic_fetch_sub_explicit(&pool->bytes, size, memory_order_relaxed);
}

void pool_fini(struct pool *pool)
{
	struct pool_idle *node;

	must(atomic_load(&pool->bytes) == pool->idle_bytes); /* none is in use */
	for (unsigned i = 0; i < POOL_CLASSES; i++)
		while ((node = pool_pop(&pool->idle[i])) != NULL)
			mem_free(node->buffer);
}
