/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: jemalloc behind one header (libc's malloc in sanitizer builds).
 *
 * All memory from here is left out of core dumps, as it may hold clients' data. Static data and stacks are dumped, so
 * that a backtrace works. (In sanitizer builds only mem_map and mem_reserve are left out.) A core may still show the
 * last bytes that were copied, in wide registers, and keys on a stack while a command or a log line is under way.
 *
 * Threads: any. Ownership: the caller frees. Errors: functions that return memory return NULL when memory is out, but
 * mem_must_zalloc aborts; mem_commit returns a code. errno means nothing after a call. Only mem_purge, mem_figures and
 * the mapped memory below call the kernel as a rule; the others do when the heap grows or shrinks.
 */
#ifndef FS_BASE_ALLOC_H
#define FS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Return so many bytes, mem_alloc uninitialised and mem_zalloc zeroed ones. mem_free frees them. Zeroed memory that is fresh
   from the kernel is not written to, so that large memory costs nothing before its use (under libc mem_zaligned writes). */
FS_MUST_CHECK void *mem_alloc(size_t bytes);
FS_MUST_CHECK void *mem_zalloc(size_t bytes);
/* Returns zeroed memory for start-up and fixed structures. Never NULL: it aborts when memory is out. */
FS_MUST_CHECK void *mem_must_zalloc(size_t bytes);
/* Works like realloc: memory stays valid if the result is NULL. */
FS_MUST_CHECK void *mem_realloc(void *memory, size_t bytes);
/* Return aligned memory, mem_zaligned zeroed one. alignment is a power of two and a multiple of sizeof(void *). mem_free
   frees it. */
FS_MUST_CHECK void *mem_aligned(size_t alignment, size_t bytes);
FS_MUST_CHECK void *mem_zaligned(size_t alignment, size_t bytes);
/* Frees memory. NULL is allowed. */
void mem_free(void *memory);
/* Frees like mem_free, but is cheaper: bytes is the size that mem_alloc was asked for. */
void mem_free_sized(void *memory, size_t bytes);

/*
 * Moves the bytes to the lowest free address in their part of the heap and frees the old one. When all memory that
 * eviction has thinned out is moved so, it grows dense, and the pages between become free. Returns memory itself if
 * there is no other. Small memory takes 0.1 to 0.3 us; no thread's cache is used. Whole cache lines stay whole ones:
 * memory of a multiple of 64 bytes gets an address that is one. Under libc the new address may be any such.
 */
FS_MUST_CHECK void *mem_move(void *memory, size_t bytes);

/* Bytes that an allocation of this size really takes (nallocx; an estimate under libc). */
#ifdef FS_LIBC_MALLOC
size_t mem_cost(size_t bytes);
#else
/* A table in steps of eight bytes, as no class of jemalloc ends within a step. Each set asks for a cost, and nallocx is
   slower. mem_costs and mem_cost_large are for mem_cost alone; the table is constant once main() runs. */
#define MEM_COSTS_MAX 8192u
extern uint16_t mem_costs[];
size_t mem_cost_large(size_t bytes);

static inline size_t mem_cost(size_t bytes)
{
	return __builtin_expect(bytes <= MEM_COSTS_MAX, 1) ? mem_costs[(bytes + 7) / 8] : mem_cost_large(bytes);
}
#endif

/*
 * The allocator's own figures, in bytes. active is at least allocated; the difference is holes in pages that are partly
 * used. unused are pages that it keeps for a while. metadata are its own records, much of which it may never have
 * touched. Under libc only allocated is known, and the others are 0. Takes up to a millisecond: too long for a request.
 */
struct mem_figures {
	uint64_t allocated, active, unused, metadata;
};
void mem_figures(struct mem_figures *out);

/*
 * Small memory is made in classes of one size. mem_class returns the class of a size, and MEM_CLASSES if it isn't
 * small. mem_holes returns the free bytes in the pages of all classes, and sets sparse[class] if more than an eighth of
 * the class's pages is free; it takes up to a millisecond. Under libc all small memory is of class 0, so that the
 * sanitizers see it move, and there are no holes.
 */
#define MEM_CLASSES 64u
unsigned mem_class(size_t bytes);
uint64_t mem_holes(bool sparse[MEM_CLASSES]);

/* Returns what the allocator may hold in partly used pages whatever the objects are, beyond what it holds with pages of 4
   KiB: one slab of each class of small memory. 0 with such pages (0.5 MiB, left out) and under libc; 12.4 MiB with pages
   of 64 KiB, as Debian builds jemalloc for arm64. Constant. */
uint64_t mem_coarse_bytes(void);

/* Hands unused dirty pages back to the kernel. May take milliseconds. */
void mem_purge(void);

/* Returns zeroed, page-aligned memory outside of the heap, with huge pages advised; pages take memory as they are
   touched. NULL when the address space is out or bytes is 0. mem_unmap frees it, with the same size. */
FS_MUST_CHECK void *mem_map(size_t bytes);
/* Frees memory of mem_map or mem_reserve. NULL is allowed. */
void mem_unmap(void *memory, size_t bytes);

/*
 * Address space for areas that may grow; addresses and sizes are multiples of the page size. mem_reserve takes address
 * space without memory; NULL when it is out. mem_commit makes pages in it usable and returns 0, or FS_ENOMEM. Pages
 * that were not usable yet hold zeros, the others stay as they are. mem_decommit hands the memory of usable pages back:
 * they stay usable, hold zeros, and take memory again as they are touched.
 */
FS_MUST_CHECK void *mem_reserve(size_t bytes);
FS_MUST_CHECK int mem_commit(void *memory, size_t bytes);
void mem_decommit(void *memory, size_t bytes);
/* For mapped memory of another origin: it is left out of cores, and large pages are used where the kernel has some. */
void mem_advise(void *memory, size_t bytes);

/* Returns the number of blocks that the calling thread has allocated here so far, in debug builds; else 0. */
unsigned long mem_allocations(void);

#endif
