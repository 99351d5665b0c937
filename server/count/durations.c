/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/durations.h"

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "server/store/store.h"

/* Returns by how much a counter of this thread has grown since *seen, and moves *seen to its value. */
static inline uint64_t gained_since(const struct ctr_block *block, enum ctr counter, uint64_t *seen)
{
	uint64_t now = atomic_load_explicit(&block->value[counter], memory_order_relaxed);
	uint64_t gain = now - *seen;

	*seen = now;
	return gain;
}

static void record_late(struct durations *durations, uint64_t now_ns)
{
	for (unsigned i = 0; i < durations->late_count; i++)
		lat_record(durations->late[i].kind, now_ns - durations->late[i].since_ns, 1);
	durations->late_count = 0;
}

void durations_sent(struct durations *durations, const struct store_worker *store)
{
	const struct ctr_block *block = ctr_own();
	uint64_t hits = gained_since(block, CTR_dram_hits, &durations->dram_hits);
	uint64_t misses = gained_since(block, CTR_get_misses, &durations->misses);
	uint64_t sets = gained_since(block, CTR_cmd_set, &durations->sets);
	uint64_t now_ns, took_ns;

	if (__builtin_expect(slow_is_on(), 0))
		slow_sent(store);
	if (__builtin_expect((hits | misses | sets | durations->late_count) == 0, 0))
		return;
	now_ns = store_worker_now_ns(store);
	took_ns = now_ns - durations->since_ns;
	durations->since_ns = now_ns;
	if (hits > 0)
		lat_record(LAT_dram_hit, took_ns, hits);
	if (misses > 0)
		lat_record(LAT_miss, took_ns, misses);
	if (sets > 0)
		lat_record(LAT_set, took_ns, sets);
	if (__builtin_expect(durations->late_count > 0, 0))
		record_late(durations, now_ns);
}

void durations_done(struct durations *durations, const struct store_worker *store, uint64_t since_ns)
{
	const struct ctr_block *block = ctr_own();
	uint64_t hits = gained_since(block, CTR_dram_hits, &durations->dram_hits);
	uint64_t misses = gained_since(block, CTR_get_misses, &durations->misses);
	uint64_t sets = gained_since(block, CTR_cmd_set, &durations->sets);
	uint64_t flash_hits = gained_since(block, CTR_flash_hits, &durations->flash_hits);

	if (hits + misses + sets + flash_hits == 0) /* a delete, a touch, ... */
		return;
	if (durations->late_count == DURATIONS_LATE)
		record_late(durations, store_worker_now_ns(store));
	must(durations->late_count < DURATIONS_LATE);
	durations->late[durations->late_count].since_ns = since_ns;
	durations->late[durations->late_count++].kind = flash_hits ? LAT_flash_hit
							: hits     ? LAT_dram_hit
							: misses   ? LAT_miss
								   : LAT_set;
}
