/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef FS_LIBC_MALLOC
#include <malloc.h>
#else
#include <jemalloc/jemalloc.h>

/* jemalloc reads this at the start. Dirty pages go back after two seconds instead of ten, so that resident memory
   follows a shift of the size mix. There is one arena, so that the objects of all threads share free memory. */
const char *malloc_conf = "narenas:1,dirty_decay_ms:2000,muzzy_decay_ms:0";
#endif

#include "base/assert.h"
#include "base/fault.h"

/* jemalloc's largest class of small memory: 14 KiB, and more where its pages are larger. Debian builds it for arm64 with
   pages of 64 KiB, as a kernel there may have such ones. */
#define SMALL_MAX (224u << 10)
#define SLABS_BYTES (552960u) /* one slab of each class, with pages of 4 KiB */
#define CACHE_LINE_BYTES 64u

#ifdef FS_DEBUG
static _Thread_local unsigned long allocations;
#define COUNT_ALLOCATION() (allocations++)
#else
#define COUNT_ALLOCATION() ((void)0)
#endif

unsigned long mem_allocations(void)
{
#ifdef FS_DEBUG
	return allocations;
#else
	return 0;
#endif
}

void *mem_alloc(size_t bytes)
{
	COUNT_ALLOCATION();
	return fault_fires(FAULT_memory_alloc) ? NULL : malloc(bytes);
}

void *mem_zalloc(size_t bytes)
{
	COUNT_ALLOCATION();
	return fault_fires(FAULT_memory_alloc) ? NULL : calloc(1, bytes);
}

void *mem_must_zalloc(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	COUNT_ALLOCATION();
	must(memory);
	return memory;
}

void *mem_realloc(void *memory, size_t bytes)
{
	COUNT_ALLOCATION();
	return fault_fires(FAULT_memory_alloc) ? NULL : realloc(memory, bytes);
}

void *mem_aligned(size_t alignment, size_t bytes)
{
	void *memory;

	COUNT_ALLOCATION();
	if (fault_fires(FAULT_memory_alloc))
		return NULL;
	return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

void *mem_zaligned(size_t alignment, size_t bytes)
{
#ifdef FS_LIBC_MALLOC
	void *memory = mem_aligned(alignment, bytes);

	return memory ? memset(memory, 0, bytes) : NULL;
#else
	COUNT_ALLOCATION();
	return fault_fires(FAULT_memory_alloc) ? NULL
					       : mallocx(bytes ? bytes : 1, MALLOCX_ALIGN(alignment) | MALLOCX_ZERO);
#endif
}

void mem_free(void *memory)
{
	free(memory);
}

void mem_free_sized(void *memory, size_t bytes)
{
#ifdef FS_LIBC_MALLOC
	(void)bytes;
	free(memory);
#else
	sdallocx(memory, bytes, 0);
#endif
}

#ifdef FS_LIBC_MALLOC

#define SMALL_LIBC (14u << 10) /* as with jemalloc */

size_t mem_cost(size_t bytes)
{
	/* glibc adds a head of 8 bytes and rounds up to 16, to 32 at least. */
	size_t cost = (bytes + 8 + 15) & ~(size_t)15;

	return cost < 32 ? 32 : cost;
}

void mem_figures(struct mem_figures *out)
{
	const struct mallinfo2 info = mallinfo2();

	*out = (struct mem_figures){ .allocated = info.uordblks + info.hblkhd };
}

unsigned mem_class(size_t bytes)
{
	return bytes <= SMALL_LIBC ? 0 : MEM_CLASSES;
}

uint64_t mem_holes(bool sparse[MEM_CLASSES])
{
	memset(sparse, 0, MEM_CLASSES * sizeof(sparse[0]));
	return 0;
}

uint64_t mem_coarse_bytes(void)
{
	return 0;
}

void mem_purge(void)
{
	malloc_trim(0);
}

void *mem_move(void *memory, size_t bytes)
{
	void *other = bytes % CACHE_LINE_BYTES ? malloc(bytes) : aligned_alloc(CACHE_LINE_BYTES, bytes);

	if (!other)
		return memory;
	memcpy(other, memory, bytes);
	free(memory);
	return other;
}

#else

uint16_t mem_costs[MEM_COSTS_MAX / 8 + 1];

static void __attribute__((constructor)) learn_costs(void)
{
	for (size_t i = 1; i <= MEM_COSTS_MAX / 8; i++)
		mem_costs[i] = (uint16_t)nallocx(8 * i, 0);
}

size_t mem_cost_large(size_t bytes)
{
	return nallocx(bytes, 0);
}

/* jemalloc's figures are a snapshot; writing the epoch renews it. */
static void jemalloc_renew_figures(void)
{
	uint64_t epoch = 1;
	size_t length = sizeof(epoch);

	(void)mallctl("epoch", &epoch, &length, &epoch, sizeof(epoch));
}

static uint64_t jemalloc_figure(const char *name)
{
	size_t value = 0, length = sizeof(value);

	return mallctl(name, &value, &length, NULL, 0) == 0 ? value : 0;
}

void mem_figures(struct mem_figures *out)
{
	char dirty[48], muzzy[48];

	snprintf(dirty, sizeof(dirty), "stats.arenas.%u.pdirty", (unsigned)MALLCTL_ARENAS_ALL);
	snprintf(muzzy, sizeof(muzzy), "stats.arenas.%u.pmuzzy", (unsigned)MALLCTL_ARENAS_ALL);
	jemalloc_renew_figures();
	*out = (struct mem_figures){ .allocated = jemalloc_figure("stats.allocated"),
				     .active = jemalloc_figure("stats.active"),
				     .metadata = jemalloc_figure("stats.metadata"),
				     .unused = (jemalloc_figure(dirty) + jemalloc_figure(muzzy)) *
					       jemalloc_figure("arenas.page") };
}

/* Of small memory; constant once main() runs. */
static uint8_t class_of[SMALL_MAX / 8 + 1]; /* one entry for eight bytes, up to small_most */
static size_t small_most;
static size_t class_slab[MEM_CLASSES], class_size[MEM_CLASSES];
static unsigned classes;

static void __attribute__((constructor)) learn_classes(void)
{
	unsigned found = 0;
	size_t length = sizeof(found), at = 0;
	char name[40];

	if (mallctl("arenas.nbins", &found, &length, NULL, 0) != 0)
		return;
	for (unsigned i = 0; i < found && i < MEM_CLASSES; i++) {
		snprintf(name, sizeof(name), "arenas.bin.%u.size", i);
		class_size[i] = jemalloc_figure(name);
		snprintf(name, sizeof(name), "arenas.bin.%u.slab_size", i);
		class_slab[i] = jemalloc_figure(name);
		for (; at <= SMALL_MAX / 8 && 8 * at <= class_size[i]; at++)
			class_of[at] = (uint8_t)i;
		small_most = 8 * (at - 1);
		classes = i + 1;
	}
	must(found <= MEM_CLASSES && small_most < SMALL_MAX + 8);
}

unsigned mem_class(size_t bytes)
{
	return bytes <= small_most ? class_of[(bytes + 7) / 8] : MEM_CLASSES;
}

uint64_t mem_holes(bool sparse[MEM_CLASSES])
{
	uint64_t sum = 0;

	memset(sparse, 0, MEM_CLASSES * sizeof(sparse[0]));
	jemalloc_renew_figures();
	for (unsigned i = 0; i < classes; i++) {
		char name[64];

		snprintf(name, sizeof(name), "stats.arenas.%u.bins.%u.curslabs", (unsigned)MALLCTL_ARENAS_ALL, i);
		uint64_t bytes = jemalloc_figure(name) * class_slab[i];
		snprintf(name, sizeof(name), "stats.arenas.%u.bins.%u.curregs", (unsigned)MALLCTL_ARENAS_ALL, i);
		uint64_t used = jemalloc_figure(name) * class_size[i], holes = bytes > used ? bytes - used : 0;
		sum += holes;
		sparse[i] = holes > bytes / 8;
	}
	return sum;
}

uint64_t mem_coarse_bytes(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < classes; i++)
		sum += class_slab[i];
	return sum > SLABS_BYTES ? sum - SLABS_BYTES : 0;
}

void mem_purge(void)
{
	char name[40];

	snprintf(name, sizeof(name), "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
	(void)mallctl(name, NULL, NULL, NULL, 0);
}

static size_t lookup_mib[2];
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

static void find_lookup_mib(void)
{
	size_t length = 2;

	must(mallctlnametomib("arenas.lookup", lookup_mib, &length) == 0);
}

/* jemalloc orders the slabs of a bin by address, so it takes the free region with the lowest one. */
void *mem_move(void *memory, size_t bytes)
{
	unsigned arena;
	size_t length = sizeof(arena);
	void *other;

	pthread_once(&lookup_once, find_lookup_mib);
	if (mallctlbymib(lookup_mib, 2, &arena, &length, &memory, sizeof(memory)) != 0)
		return memory;
	COUNT_ALLOCATION();
	other = mallocx(bytes, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE |
				       (bytes % CACHE_LINE_BYTES ? 0 : MALLOCX_ALIGN(CACHE_LINE_BYTES)));
	if (!other)
		return memory;
	memcpy(other, memory, bytes);
	sdallocx(memory, bytes, MALLOCX_TCACHE_NONE);
	return other;
}

#endif

/* ---- memory that is mapped --------------------------------------------------------------------- */

/* An advice only: a kernel that refuses it dumps the memory. */
static void leave_out_of_cores(void *memory, size_t bytes)
{
	int saved_errno = errno;

	(void)madvise(memory, bytes, MADV_DONTDUMP);
	errno = saved_errno;
}

#ifndef FS_LIBC_MALLOC

/*
 * jemalloc calls this mmap, as a program's own symbol comes before the C library's. So all of the heap is left out of
 * cores from its first page on, also the arenas and metadata that are made before main(). (jemalloc's extent hooks
 * would have to be set for each arena before its first use, which would make arenas that no thread needs.) The C
 * library maps stacks and programs without calling this, so these are dumped. It is called only when the heap grows.
 */
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *memory = (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);

	if (memory != MAP_FAILED &&
	    (flags & (MAP_ANONYMOUS | MAP_PRIVATE | MAP_STACK)) == (MAP_ANONYMOUS | MAP_PRIVATE))
		leave_out_of_cores(memory, bytes);
	return memory;
}

#endif

void *mem_map(size_t bytes)
{
	void *memory;

	if (bytes == 0 || fault_fires(FAULT_memory_map))
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	leave_out_of_cores(memory, bytes);
	(void)madvise(memory, bytes, MADV_HUGEPAGE); /* an advice that older kernels lack */
	return memory;
}

void mem_unmap(void *memory, size_t bytes)
{
	if (memory)
		must(munmap(memory, bytes) == 0);
}

void *mem_reserve(size_t bytes)
{
	void *memory = fault_fires(FAULT_memory_map)
			       ? MAP_FAILED
			       : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	leave_out_of_cores(memory, bytes);
	return memory;
}

int mem_commit(void *memory, size_t bytes)
{
	if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0)
		return FS_ENOMEM;
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
	return FS_OK;
}

void mem_advise(void *memory, size_t bytes)
{
	leave_out_of_cores(memory, bytes);
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
}

void mem_decommit(void *memory, size_t bytes)
{
	must(madvise(memory, bytes, MADV_DONTNEED) == 0);
}
