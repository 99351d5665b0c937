/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal after a crash of the host: any bytes in heads, blocks and entries, and the rebuild by what they say. No
 * value comes back that a key never had, and none that was replaced since the start. The run after it rebuilds again.
 */
#include "server/store/state/journal_internal.h"
#include "tests/fuzz/last_run.h"

#define PLACES 64u

/* Makes the check of each block right that lies in its file as a whole. */
static void seal(struct damaged *file)
{
	for (uint64_t at = 0; at + JOURNAL_SECTOR <= file->length; at += JOURNAL_SECTOR) {
		struct journal_block *block = (struct journal_block *)(file->bytes + at);

		if (memcmp(block->magic, JOURNAL_MAGIC, sizeof(block->magic)) == 0 &&
		    block->entries <= JOURNAL_BLOCK_ENTRIES && journal_block_bytes(block->entries) <= file->length - at)
			block->check = journal_block_check(block);
	}
}

/* Files, their blocks, and the entries of each. */
static unsigned find_places(struct last_run *run, struct damage_place *places)
{
	unsigned count = 0;

	for (unsigned i = 0; i < run->journals; i++)
		for (uint64_t at = 0; at + JOURNAL_SECTOR <= run->journal[i].length && count + 1 < PLACES;) {
			const struct journal_block *block = (struct journal_block *)(run->journal[i].bytes + at);

			places[count++] = (struct damage_place){ &run->journal[i], at };
			places[count++] = (struct damage_place){ &run->journal[i], at + sizeof(*block) };
			at += journal_block_bytes(block->entries);
		}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct last_run *run = last_run_make(HOST_CRASHED);
	struct taking from = { data, data + size };
	struct damage_place places[PLACES];
	unsigned options = (unsigned)take_number(&from, 1), count;

	if (!run)
		return 0;
	last_run_restore(run);
	count = find_places(run, places);
	damage(&from, places, count);
	run->older = last_run_differs(run); /* a last block that is damaged counts as one that was never durable */
	for (unsigned i = 0; options & 1 && i < run->journals; i++)
		seal(&run->journal[i]);
	if (last_run_start(run))
		last_run_serve(run, options >> 1);
	return 0;
}
