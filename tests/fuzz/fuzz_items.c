/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The saved objects of DRAM. Damage that no checksum knows of loses objects, and brings back none that a key never had;
 * what a checksum says is right may be any object, but none for a key that was written since the start.
 */
#include "server/store/cleaner/saved_items.h"

#include "tests/fuzz/last_run.h"

#define PLACES 64u

/* The places of single objects, as far as lengths are right. */
static unsigned find_objects(struct damaged *file, const struct damage_place *part, struct damage_place *places,
			     unsigned most)
{
	uint64_t at = part->at + sizeof(struct saved_chunk);
	unsigned count = 0;

	while (count < most && at + sizeof(struct saved_item) <= file->length) {
		struct saved_item item;

		places[count++] = (struct damage_place){ file, at };
		memcpy(&item, file->bytes + at, sizeof(item));
		at += saved_bytes(item.key_length, item.value_length);
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct last_run *run = last_run_make(ENDED_CLEANLY);
	struct taking from = { data, data + size };
	struct damage_place places[PLACES];
	unsigned options = (unsigned)take_number(&from, 1), count = 1;
	struct loader_figures figures;

	if (!run)
		return 0;
	last_run_restore(run);
	places[0] = (struct damage_place){ &run->items, 0 };
	count += parts_seal(&run->items, places + 1, PLACES / 2);
	/* 1, 2: the head; 3, 4: the classifier's part; 5, 6: the first part of objects */
	count += find_objects(&run->items, &places[6], places + count, PLACES - count);
	damage(&from, places, count);
	run->older = run->any = options & 1;
	if (options & 1)
		parts_seal(&run->items, NULL, 0);
	require(last_run_start(run) && restart_is_warm(run->store)); /* the flash is, whatever becomes of DRAM */
	loader_get_figures(run->store, &figures);
	require(run->differs || figures.start == SAVED_START_WARM);
	last_run_serve(run, options >> 1);
	return 0;
}
