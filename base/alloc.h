/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: jemalloc behind one header (libc's malloc in sanitizer builds).
 *
 * Whatever is allocated here is left out of core dumps, as it may hold what clients have stored; static data and stacks are
 * dumped, so that a backtrace works. (Not so in sanitizer builds, but for mem_map.) What a core may still tell: registers,
 * where wide ones hold the last bytes that were copied, and keys on a stack while a command or a log line is under way.
 *
 * Threads: any. Ownership: the caller frees. mem_must_* aborts when memory is out; the
 * others return NULL then.
 */
#ifndef FS_BASE_ALLOC_H
#define FS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
void *mem_must_zalloc(size_t bytes); /* aborts when memory is out: for start-up and fixed structures */
void *mem_realloc(void *memory, size_t bytes);
/* alignment: a power of two, a multiple of sizeof(void *). Freed by mem_free. */
void *mem_aligned(size_t alignment, size_t bytes);
void mem_free(void *memory);
/* The same, cheaper, for who knows how many bytes mem_alloc was asked for. */
void mem_free_sized(void *memory, size_t bytes);

/*
 * The same bytes at the lowest place that is free in the part of the heap they lie in, and the old place freed. What
 * eviction has thinned out grows dense when all of it is moved so, and the pages between are free. The memory itself
 * when none can be had. 0.1 to 0.3 us of small memory; no thread's cache is used. libc promises less: another place.
 */
void *mem_move(void *memory, size_t bytes);

/* Bytes that an allocation of this size really takes (nallocx; an estimate under libc). */
#ifdef FS_LIBC_MALLOC
size_t mem_cost(size_t bytes);
#else
/* In steps of eight bytes, within which jemalloc has no class's end: asked for each set, and nallocx is slower. */
#define MEM_COSTS_MAX 8192u
extern uint16_t mem_costs[];
size_t mem_cost_large(size_t bytes);

static inline size_t mem_cost(size_t bytes)
{
	return __builtin_expect(bytes <= MEM_COSTS_MAX, 1) ? mem_costs[(bytes + 7) / 8] : mem_cost_large(bytes);
}
#endif

/*
 * The allocator's own figures, in bytes: active is at least allocated, what lies between are holes in pages that are partly
 * used; unused are pages that it keeps for a while; metadata are its records, much of which it may never have touched.
 * Under libc only allocated is known, the others are 0. Up to a millisecond: for the keeper and for stats, not for a request.
 */
struct mem_figures {
	uint64_t allocated, active, unused, metadata;
};
void mem_figures(struct mem_figures *out);

/*
 * Small memory is made in classes of one size. mem_class: the class of bytes, MEM_CLASSES for what is not small.
 * mem_holes: of all classes together, the bytes in their pages that are free; sparse[class]: more than an eighth of
 * this class's pages is. Always 0 under libc.
 */
#define MEM_CLASSES 64u
unsigned mem_class(size_t bytes);
uint64_t mem_holes(bool sparse[MEM_CLASSES]);

/* Hands unused dirty pages back to the kernel. May take milliseconds. */
void mem_purge(void);

/* Zeroed, page-aligned, fully committed on touch, huge-page advised. Not from the heap. NULL when
   the address space is out or bytes is 0. */
void *mem_map(size_t bytes);
void mem_unmap(void *memory, size_t bytes);

/*
 * Address space for what may grow: mem_reserve takes bytes of it (a multiple of the page size) without memory, NULL when
 * it is out; mem_commit makes pages in it usable, zeroed (those that are usable already stay as they are), false when
 * memory is out; mem_decommit hands the memory of pages back: they stay usable, hold zeros, and take memory again
 * as they are touched. Addresses are page-aligned. mem_unmap gives the address space back.
 */
void *mem_reserve(size_t bytes);
bool mem_commit(void *memory, size_t bytes);
void mem_decommit(void *memory, size_t bytes);

/* Debug builds: how many blocks the calling thread has allocated here so far; else 0. */
unsigned long mem_allocations(void);

#endif
