/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state file of a clean stop. Damage that no checksum knows of makes the start cold; what a checksum says is right may
 * be wrong, but leads to no byte that isn't there and to no value that a key never had. What a start takes, its stop saves
 * again.
 */
#include "tests/fuzz/last_run.h"

#define PLACES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct last_run *run = last_run_make(ENDED_CLEANLY);
	struct taking from = { data, data + size };
	struct damage_place places[PLACES];
	unsigned options = (unsigned)take_number(&from, 1), count = 1;
	bool seals = options & 1;

	if (!run)
		return 0;
	last_run_restore(run);
	places[0] = (struct damage_place){ &run->state, 0 };
	count += parts_seal(&run->state, places + 1, PLACES - 1);
	damage(&from, places, count);
	run->older = seals;
	if (seals)
		parts_seal(&run->state, NULL, 0);
	if (last_run_start(run)) {
		require(seals || !run->differs || !restart_is_warm(run->store));
		last_run_serve(run, options >> 1);
	}
	return 0;
}
