/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a segment: over the keys that get a slot. */
#include "base/thread.h"
#include "flashindex/units.h"
#include "server/store/cleaner/cleaner_internal.h"

#define ITEMS_AHEAD 10u
#define STEP_OBJECTS 32u /* between looks at the time */
/* Keys: with fewer, a unit is built sooner than a thread has begun. Debug builds have threads in tests' small segments. */
#ifdef FS_DEBUG
#define THREADS_FROM 64u
#else
#define THREADS_FROM 65536u
#endif

/* The units of a filter that is being built. */
struct building {
	const struct store *store;
	const uint64_t *hashes;
	uint64_t n, sequence;
	void *filter;
	size_t length;
};

/* One of them, which a thread builds. */
struct unit_building {
	const struct building *all;
	unsigned unit;
	pthread_t thread;
	bool threaded;
};

static void *build_unit(void *context)
{
	const struct unit_building *unit = context;
	const struct building *all = unit->all;

	fidx_unit_build(all->store->index, all->sequence, unit->unit, all->hashes, all->n, all->filter, all->length);
	return NULL;
}

/* Builds the first unit in the calling thread, and the others beside it where they are large. */
static void build_units(const struct building *all)
{
	struct unit_building unit[FIDX_UNITS_MOST];
	unsigned units = all->store->config.filter_units;

	for (unsigned u = units; u-- > 0;) {
		unit[u] = (struct unit_building){ .all = all, .unit = u };
		unit[u].threaded =
			u > 0 && all->n >= THREADS_FROM && thread_start(&unit[u].thread, build_unit, &unit[u]) == 0;
		if (!unit[u].threaded)
			build_unit(&unit[u]);
	}
	for (unsigned u = 0; u < units; u++)
		if (unit[u].threaded)
			must(pthread_join(unit[u].thread, NULL) == 0);
}

static void *make_units(struct store *store, uint64_t sequence, const uint64_t *hashes, uint64_t n, size_t *length)
{
	struct building all = { .store = store,
				.hashes = hashes,
				.n = n,
				.sequence = sequence,
				.length = fidx_filter_length(store->index, n) };

	all.filter = mem_zalloc(all.length);
	if (!all.filter)
		return NULL;
	build_units(&all);
	*length = all.length;
	return all.filter;
}

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
	if (store->config.filter_units)
		filter = make_units(store, plan->sequence, hashes, plan->count - plan->extents, length);
	else
		filter = fidx_filter_build(store->index, hashes, plan->count - plan->extents, length);
	mem_free(hashes);
	return filter;
}
