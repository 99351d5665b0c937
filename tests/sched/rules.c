/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/rules.h"

#include "base/metrics/counters.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/state.h"
#include "tests/sched/clients.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"
#include "tests/sched/life.h"

#define SECOND_NS 1000000000ull
#define ONLINE_S 1800u /* the longest back-off of a device, and more */
#define REST_S 120u
#define QUIET_S 5u

static void sleep_s(unsigned seconds)
{
	fiber_sleep_until(fiber_now_ns() + seconds * SECOND_NS);
}

static uint64_t work_done(void)
{
	return ctr_total(CTR_segments_written) + ctr_total(CTR_segments_reclaimed) + ctr_total(CTR_evictions);
}

void rules_liveness(struct world *world, struct store *store)
{
	unsigned waited = 0, quiet = 0;

	for (; store->segments && seg_offline(store->segments); waited++, sleep_s(1))
		if (waited > ONLINE_S)
			finding("the flash is still offline %u s after the last fault", waited);
	clients_set_some(world, store, world->seed);
	for (waited = 0; quiet < QUIET_S; waited++) {
		uint64_t before = work_done();

		sleep_s(1);
		quiet = work_done() == before && !cleaner_is_writing(store) && !store->rebuild ? quiet + 1 : 0;
		if (waited > REST_S)
			finding("the cleaner is still at work %u s after the last command", waited);
		if (!store_alive_within(store, 2))
			finding("keeper or cleaner has not come round for 2 s");
	}
}

void rules_check(struct world *world, struct store *store)
{
	(void)world;
	if (store->index && !fidx_verify(store->index))
		finding("the index is not sound");
}
