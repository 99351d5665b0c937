/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/region.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/resident.h"

#define PAGE_BYTES 4096u
#define HUGE_BYTES (2u << 20) /* large areas begin at a multiple of a huge page */
#define HEADER_BYTES PAGE_BYTES /* room for a header that a later process could check before it attaches */

struct area {
	uint64_t offset, most;
	uint64_t usable; /* never shrinks, as late readers may be anywhere in it; of the one thread that commits */
	_Atomic uint64_t bytes; /* committed and not given back; read by any thread */
};

struct region {
	unsigned char *base;
	uint64_t reserved;
	struct area area[REGION_AREAS];
};

static uint64_t region_round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

int region_create(struct region **out, const uint64_t most[REGION_AREAS])
{
	struct region *region = mem_zalloc(sizeof(*region));
	uint64_t end = HEADER_BYTES;

	*out = NULL;
	if (!region)
		return FS_ENOMEM;
	for (int a = 0; a < REGION_AREAS; a++) {
		if (most[a] > UINT64_MAX >> 8)
			goto out_of_memory;
		end = region_round_up(end, most[a] >= HUGE_BYTES ? HUGE_BYTES : PAGE_BYTES);
		region->area[a] = (struct area){ .offset = end, .most = region_round_up(most[a], PAGE_BYTES) };
		end += region->area[a].most;
	}
	region->reserved = end;
	region->base = mem_reserve(end);
	if (!region->base)
		goto out_of_memory;
	*out = region;
	return FS_OK;

out_of_memory:
	mem_free(region);
	return FS_ENOMEM;
}

void region_destroy(struct region *region)
{
	if (!region)
		return;
	mem_unmap(region->base, region->reserved);
	mem_free(region);
}

void *region_area(const struct region *region, enum region_area area)
{
	must(area < REGION_AREAS);
	return region->area[area].most ? region->base + region->area[area].offset : NULL;
}

int region_commit(struct region *region, enum region_area which, uint64_t bytes)
{
	struct area *area = &region->area[which];
	uint64_t wanted = region_round_up(bytes, PAGE_BYTES);

	must(which < REGION_AREAS && area->usable <= area->most);
	if (wanted > area->most)
		return FS_ERANGE;
	if (wanted > area->usable) {
		int error = mem_commit(region->base + area->offset, wanted);

		if (error)
			return error;
		area->usable = wanted;
	}
	if (wanted > atomic_load_explicit(&area->bytes, memory_order_relaxed))
		atomic_store_explicit(&area->bytes, wanted, memory_order_relaxed);
	return FS_OK;
}

void region_decommit(struct region *region, enum region_area which)
{
	struct area *area = &region->area[which];

	must(which < REGION_AREAS);
	if (area->usable)
		mem_decommit(region->base + area->offset, area->usable);
	atomic_store_explicit(&area->bytes, 0, memory_order_relaxed);
}

uint64_t region_most(const struct region *region, enum region_area area)
{
	must(area < REGION_AREAS);
	return region->area[area].most;
}

uint64_t region_bytes(const struct region *region)
{
	uint64_t sum = 0;

	for (int a = 0; a < REGION_AREAS; a++)
		sum += atomic_load_explicit(&region->area[a].bytes, memory_order_relaxed);
	return sum;
}

uint64_t region_untouched(const struct region *region)
{
	uint64_t sum = 0;

	for (int a = 0; a < REGION_AREAS; a++)
		sum += resident_untouched(region->base + region->area[a].offset,
					  atomic_load_explicit(&region->area[a].bytes, memory_order_relaxed));
	return sum;
}
