/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/region.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/region_internal.h"
#include "base/resident.h"

#define HUGE_BYTES (2u << 20) /* large areas begin at a multiple of a huge page */

uint64_t region_page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t region_round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

int region_reserve(struct region **out, const uint64_t most[REGION_AREAS], uint64_t unit)
{
	struct region *region = mem_zalloc(sizeof(*region));
	uint64_t end = region_round_up(REGION_HEADER_BYTES, unit);

	*out = NULL;
	if (!region)
		return FS_ENOMEM;
	for (int a = 0; a < REGION_AREAS; a++) {
		if (most[a] > UINT64_MAX >> 8)
			goto out_of_memory;
		end = region_round_up(end, most[a] >= HUGE_BYTES && unit < HUGE_BYTES ? HUGE_BYTES : unit);
		region->area[a] = (struct area){ .offset = end, .most = region_round_up(most[a], unit) };
		end += region->area[a].most;
	}
	region->fd = -1;
	region->unit = unit;
	region->end = end;
	region->reserved = end + unit - region_page_bytes(); /* so that a unit begins in it wherever it lies */
	region->reserved_at = mem_reserve(region->reserved);
	if (!region->reserved_at)
		goto out_of_memory;
	region->base = (unsigned char *)(region_round_up((uintptr_t)region->reserved_at, unit));
	*out = region;
	return FS_OK;

out_of_memory:
	mem_free(region);
	return FS_ENOMEM;
}

int region_create(struct region **out, const uint64_t most[REGION_AREAS])
{
	return region_reserve(out, most, region_page_bytes());
}

void region_destroy(struct region *region)
{
	if (!region)
		return;
	mem_unmap(region->reserved_at, region->reserved);
	region_file_close(region);
	mem_free(region);
}

void *region_area(const struct region *region, enum region_area area)
{
	must(area < REGION_AREAS);
	return region->area[area].most ? region->base + region->area[area].offset : NULL;
}

static FS_MUST_CHECK int region_take_memory(struct region *region, struct area *area, uint64_t wanted)
{
	if (region->copies)
		return wanted > area->usable ? region_file_copy(region, area, area->usable, wanted) : FS_OK;
	if (region->fd >= 0)
		return wanted > area->mapped ? region_file_commit(region, area, wanted) : FS_OK;
	return wanted > area->usable ? mem_commit(region->base + area->offset, wanted) : FS_OK;
}

int region_commit(struct region *region, enum region_area which, uint64_t bytes)
{
	struct area *area = &region->area[which];
	uint64_t wanted = region_round_up(bytes, region->unit);
	int error;

	must(which < REGION_AREAS && area->usable <= area->most);
	if (wanted > area->most)
		return FS_ERANGE;
	if (fault_fires(FAULT_region_commit))
		return FS_ENOMEM;
	error = region_take_memory(region, area, wanted);
	if (error)
		return error;
	if (wanted > area->usable)
		area->usable = wanted;
	if (wanted > atomic_load_explicit(&area->bytes, memory_order_relaxed))
		atomic_store_explicit(&area->bytes, wanted, memory_order_relaxed);
	return FS_OK;
}

void region_decommit(struct region *region, enum region_area which)
{
	struct area *area = &region->area[which];

	must(which < REGION_AREAS);
	if (region->fd >= 0 && !region->copies)
		region_file_decommit(region, area);
	else if (area->usable)
		mem_decommit(region->base + area->offset, area->usable);
	atomic_store_explicit(&area->bytes, 0, memory_order_relaxed);
}

uint64_t region_unit(const struct region *region)
{
	return region->unit;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static FS_MUST_CHECK int region_take_part(struct region *region, struct area *area, uint64_t offset, uint64_t bytes)
{
	if (region->copies)
		return region_file_copy(region, area, offset, offset + bytes);
	return region->fd >= 0 ? region_file_commit_part(region, area, offset, bytes)
			       : mem_commit(region->base + area->offset + offset, bytes);
}

int region_commit_part(struct region *region, enum region_area which, uint64_t offset, uint64_t bytes)
{
	struct area *area = &region->area[which];
	int error;

	must(which < REGION_AREAS && offset % region->unit == 0 && bytes % region->unit == 0);
	if (bytes > area->most || offset > area->most - bytes)
		return FS_ERANGE;
	if (fault_fires(FAULT_region_commit))
		return FS_ENOMEM;
	error = region_take_part(region, area, offset, bytes);
	if (error)
		return error;
	area->mapped += region->fd >= 0 ? bytes : 0;
	if (offset + bytes > area->usable) {
		area->usable = offset + bytes;
		atomic_store_explicit(&area->top, area->usable, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&area->bytes, bytes, memory_order_relaxed);
	return FS_OK;
}

void region_decommit_part(struct region *region, enum region_area which, uint64_t offset, uint64_t bytes)
{
	struct area *area = &region->area[which];

	must(which < REGION_AREAS && offset % region->unit == 0 && bytes % region->unit == 0);
	must(bytes <= area->usable && offset <= area->usable - bytes);
	if (region->fd >= 0 && !region->copies)
		region_file_decommit_part(region, area, offset, bytes);
	else
		mem_decommit(region->base + area->offset + offset, bytes);
	area->mapped -= region->fd >= 0 ? bytes : 0;
	atomic_fetch_sub_explicit(&area->bytes, bytes, memory_order_relaxed);
}

void region_drop_part(struct region *region, enum region_area which, uint64_t offset, uint64_t bytes)
{
	must(which < REGION_AREAS && offset % region->unit == 0 && bytes % region->unit == 0);
	if (region->fd >= 0 && !region->copies && bytes > 0)
		region_file_decommit_part(region, &region->area[which], offset, bytes);
}

/* ---- figures --------------------------------------------------------------------------------- */

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

	for (int a = 0; a < REGION_AREAS; a++) {
		const struct area *area = &region->area[a];
		uint64_t bytes = atomic_load_explicit(&area->bytes, memory_order_relaxed);
		uint64_t top = atomic_load_explicit(&area->top, memory_order_relaxed),
			 gaps = top > bytes ? top - bytes : 0;
		uint64_t untouched = resident_untouched(region->base + area->offset, top ? top : bytes);

		/* Nobody touches gaps between parts. */
		sum += untouched > gaps ? untouched - gaps : 0;
	}
	return sum;
}

uint64_t region_shared(const struct region *region)
{
	return region->fd >= 0 ? region_bytes(region) - region_untouched(region) : 0;
}
