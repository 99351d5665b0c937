/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region that a killed process leaves: any bytes in header, segment table, tables of slots and extents. It is judged
 * without a checksum; a start on it or without it serves no value that a key never had, and none that was replaced since.
 */
#include "base/region.h"
#include "segments/segments_internal.h"
#include "tests/fuzz/last_run.h"

/* Of base/region_file.c. */
#define HEAD_AREAS 40u
#define HEAD_CHECKSUM (HEAD_AREAS + 16u * REGION_AREAS)
#define HEAD_SEED 0x5245474eull

#define PLACES 80u

static uint64_t area_at(const struct damaged *region, enum region_area area)
{
	return damaged_number(region, HEAD_AREAS + 16u * area, 8);
}

/* Rows of segments, whose grids follow from the other fields. */
static void seal_rows(struct damaged *region, uint64_t at)
{
	for (unsigned s = 0; s < LAST_RUN_SEGMENTS; s++, at += sizeof(struct seg_entry)) {
		struct seg_entry row;

		if (at + sizeof(row) > region->length)
			return;
		memcpy((void *)&row, region->bytes + at, sizeof(row));
		if (row.granule == 0)
			continue;
		row.grid = layout_grid(atomic_load(&row.sequence), row.data_bytes, row.granule, row.functions);
		memcpy(region->bytes + at + offsetof(struct seg_entry, grid), &row.grid, sizeof(row.grid));
	}
}

static void seal(struct damaged *region, uint64_t rows_at)
{
	if (region->length < HEAD_CHECKSUM)
		return;
	damaged_put(region, HEAD_CHECKSUM, hash64(region->bytes, HEAD_CHECKSUM, HEAD_SEED), 8);
	seal_rows(region, rows_at);
}

static unsigned find_places(struct damaged *region, struct damage_place *places)
{
	uint64_t rows = area_at(region, REGION_SEGMENTS) + offsetof(struct seg_table, entry);
	unsigned count = 0;

	places[count++] = (struct damage_place){ region, 0 };
	for (enum region_area area = REGION_STORE; area < REGION_AREAS; area++)
		places[count++] = (struct damage_place){ region, area_at(region, area) };
	for (unsigned s = 0; s < LAST_RUN_SEGMENTS; s++)
		places[count++] = (struct damage_place){ region, rows + s * sizeof(struct seg_entry) };
	for (uint64_t at = 8; at < 256; at += 8) /* sizes of tables, and rows of segments */
		places[count++] = (struct damage_place){ region, area_at(region, REGION_INDEX) + at };
	/* Slots that are in use. */
	for (uint64_t at = area_at(region, REGION_TABLE_0); count < PLACES && at + 4 <= area_at(region, REGION_TABLE_1);
	     at += 4)
		if (damaged_number(region, at, 4) != 0)
			places[count++] = (struct damage_place){ region, at };
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct last_run *run = last_run_make(WAS_KILLED);
	struct taking from = { data, data + size };
	struct damage_place places[PLACES];
	unsigned options = (unsigned)take_number(&from, 1), count;
	uint64_t rows;

	if (!run)
		return 0;
	last_run_restore(run);
	count = find_places(&run->region, places);
	rows = area_at(&run->region, REGION_SEGMENTS) + offsetof(struct seg_table, entry);
	damage(&from, places, count);
	run->older = last_run_differs(run);
	if (options & 1)
		seal(&run->region, rows);
	if (last_run_start(run))
		last_run_serve(run, options >> 1);
	return 0;
}
