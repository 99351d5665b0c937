/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes on flash, as the daemon itself reads them: superblocks, headers, records, lists, filters and footers, with
 * checksums that are right again or not. One start has the index of a clean stop, and meets the damage when it reads and
 * reclaims; the other one rebuilds the index from the segments.
 */
#include "segments/layout.h"
#include "tests/fuzz/last_run.h"

#define PLACES 64u
#define SEALS 1u
#define REBUILDS 2u

static uint8_t *segment_at(struct last_run *run, unsigned segment)
{
	return run->flash.bytes + LAYOUT_SUPER_BYTES + (uint64_t)segment * LAST_RUN_SEGMENT_BYTES;
}

static struct layout_footer *footer_of(struct last_run *run, unsigned segment)
{
	return (struct layout_footer *)(segment_at(run, segment) + LAST_RUN_SEGMENT_BYTES -
					sizeof(struct layout_footer));
}

static unsigned find_places(struct last_run *run, struct damage_place *places)
{
	unsigned count = 0;

	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES; copy++) {
		places[count++] = (struct damage_place){ &run->flash, copy * LAYOUT_SUPER_COPY_OFFSET };
		places[count++] =
			(struct damage_place){ &run->flash, copy * LAYOUT_SUPER_COPY_OFFSET +
								    offsetof(struct layout_super, hash_seed) };
	}
	for (unsigned s = 0; s < LAST_RUN_SEGMENTS; s++) {
		const struct layout_header *header = (const struct layout_header *)segment_at(run, s);
		uint64_t at = (uint64_t)(segment_at(run, s) - run->flash.bytes);

		places[count++] = (struct damage_place){ &run->flash, at };
		places[count++] = (struct damage_place){ &run->flash, at + SEG_PAGE };
		places[count++] = (struct damage_place){ &run->flash, at + header->data_offset };
		places[count++] = (struct damage_place){ &run->flash, at + header->footer_offset };
		places[count++] = (struct damage_place){ &run->flash, at + LAST_RUN_SEGMENT_BYTES - SEG_PAGE };
		places[count++] = (struct damage_place){ &run->flash,
							 at + LAST_RUN_SEGMENT_BYTES - sizeof(struct layout_footer) };
	}
	return count;
}

/* ---- checksums ------------------------------------------------------------------------------- */

#define SUM_OF(page) hash64(page, offsetof(__typeof__(*(page)), checksum), LAYOUT_CHECK_SEED)

static void seal_footer(struct last_run *run, unsigned segment)
{
	const struct layout_header *header = (const struct layout_header *)segment_at(run, segment);
	struct layout_footer *footer = footer_of(run, segment);
	uint64_t list = header->footer_offset, filter;

	footer->header_checksum = header->checksum;
	if (list < LAST_RUN_SEGMENT_BYTES && footer->offsets_bytes <= LAST_RUN_SEGMENT_BYTES - list) {
		footer->offsets_checksum =
			hash64(segment_at(run, segment) + list, footer->offsets_bytes, LAYOUT_CHECK_SEED);
		filter = list + layout_align8(footer->offsets_bytes);
		if (filter < LAST_RUN_SEGMENT_BYTES && footer->filter_bytes <= LAST_RUN_SEGMENT_BYTES - filter)
			footer->filter_checksum =
				hash64(segment_at(run, segment) + filter, footer->filter_bytes, LAYOUT_CHECK_SEED);
	}
	footer->checksum = SUM_OF(footer);
}

static void seal(struct last_run *run)
{
	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES; copy++) {
		struct layout_super *super =
			(struct layout_super *)(run->flash.bytes + copy * LAYOUT_SUPER_COPY_OFFSET);

		super->checksum = SUM_OF(super);
	}
	for (unsigned s = 0; s < LAST_RUN_SEGMENTS; s++) {
		struct layout_header *header = (struct layout_header *)segment_at(run, s);

		header->checksum = SUM_OF(header);
		seal_footer(run, s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taking from = { data, data + size };
	unsigned options = (unsigned)take_number(&from, 1), count;
	struct last_run *run = last_run_make(options & REBUILDS ? HOST_CRASHED : ENDED_CLEANLY);
	struct damage_place places[PLACES];

	if (!run)
		return 0;
	last_run_restore(run);
	count = find_places(run, places);
	damage(&from, places, count);
	run->flash.length = LAST_RUN_FLASH_BYTES;
	if (options & SEALS)
		seal(run);
	if (last_run_start(run))
		last_run_serve(run, options >> 2);
	return 0;
}
