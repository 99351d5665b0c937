/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a segment: over the keys that get a slot. */
#include "server/store/cleaner/cleaner_internal.h"

#define ITEMS_AHEAD 10u
#define STEP_OBJECTS 32u /* between looks at the time */

void *filter_make(struct store *store, const struct seg_plan *plan, const struct gathered *gathered, size_t *length)
{
	uint64_t *hashes;
	void *filter;

	*length = 0;
	if (atomic_load(&store->filter_bits) == 0 || plan->count == plan->extents)
		return NULL;
	hashes = mem_alloc((plan->count - plan->extents) * sizeof(*hashes));
	if (!hashes)
		return NULL;
	for (uint32_t i = plan->extents; i < plan->count; i++) {
		const struct item *item = placed_item(plan, gathered, i);

		if (i + ITEMS_AHEAD < plan->count)
			item_prefetch(placed_item(plan, gathered, i + ITEMS_AHEAD));
		if (i % STEP_OBJECTS == 0)
			pace_step(store);
		hashes[i - plan->extents] = store_hash(store, item_key(item), item->key_length);
	}
	filter = fidx_filter_build(store->index, hashes, plan->count - plan->extents, length);
	mem_free(hashes);
	return filter;
}
