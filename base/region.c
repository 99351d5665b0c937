/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/region.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"

#define AREA_ALIGNMENT 64u

struct region {
	unsigned char *base;
	uint64_t bytes;
	uint64_t offset[REGION_AREAS]; /* 0 for an empty area: the head of the region is no area */
};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + AREA_ALIGNMENT - 1) & ~(uint64_t)(AREA_ALIGNMENT - 1);
}

int region_create(struct region **out, const uint64_t bytes[REGION_AREAS])
{
	struct region *region = mem_zalloc(sizeof(*region));
	uint64_t end = AREA_ALIGNMENT; /* room for the header that a later attach will check */

	*out = NULL;
	if (!region)
		return FS_ENOMEM;
	for (int area = 0; area < REGION_AREAS; area++) {
		if (bytes[area] == 0)
			continue;
		if (bytes[area] > (UINT64_MAX >> 8))
			goto out_of_memory;
		region->offset[area] = end;
		end += aligned(bytes[area]);
	}
	region->bytes = end;
	region->base = mem_map(end);
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
	mem_unmap(region->base, region->bytes);
	mem_free(region);
}

void *region_area(struct region *region, enum region_area area)
{
	must(area < REGION_AREAS);
	return region->offset[area] ? region->base + region->offset[area] : NULL;
}

uint64_t region_bytes(const struct region *region)
{
	return region->bytes;
}
