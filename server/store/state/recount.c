/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/recount.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"

#define STEP_SLOTS (1u << 18) /* some milliseconds */
#define STEP_SLOTS_SLOW 64 /* at a fault point */

static void recount_tell(struct store *store, const struct fidx_recounted *found)
{
	struct fidx_status index;

	fidx_get_status(store->index, &index);
	log_notice("flash: %" PRIu64 " objects are counted, %.3f s after the start; %" PRIu64
		   " slots of reclaimed segments were emptied",
		   index.used + index.extents_used - index.ghosts,
		   (double)(clk_now_us(store->clock) - store->opened_us) / 1e6, found->emptied);
	if (found->damaged == 0)
		return;
	ctr_add(CTR_flash_objects_dropped, found->damaged);
	log_error("flash: %" PRIu64
		  " slots of the %s had a value out of its range and were emptied; was it overwritten?",
		  found->damaged, store->start == STORE_START_ATTACHED ? "region" : "state file");
}

bool recount_step(struct store *store)
{
	struct fidx_recounted found;
	uint64_t slots = STEP_SLOTS;

	if (!fidx_is_counting(store->index))
		return false;
	if (fault_fires(FAULT_recount_slow)) {
		slots = STEP_SLOTS_SLOW;
		usleep(1000); /* a fault point: clients run meanwhile */
	}
	if (!fidx_recount(store->index, slots, &found))
		recount_tell(store, &found);
	return true;
}

void recount_finish(struct store *store)
{
	while (recount_step(store))
		;
}
