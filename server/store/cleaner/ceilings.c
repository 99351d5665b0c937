/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ceilings of applications. A set that would exceed one makes room among the application's own objects: a search whose
 * length is bounded, as the hand has to pass by the objects of others. It finds one object in so many as are the
 * application's; so the account of an application with very few of all objects settles somewhat above its ceiling, where
 * a search finds what a set brings. What is left to do is the keeper's.
 *
 * What a ceiling evicts can go to flash first, however much memory is free: when applications near their ceilings have
 * the candidates for a segment, the cleaner writes one of these alone. A ceiling below a segment never has as many by itself;
 * several can together.
 */
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"

#define SPARING_VISITS 64 /* while candidates for flash are spared */
#define OWN_VISITS 256 /* to objects, for one set, and as many again for any object */
#define EXTRA_BYTES (16u << 10) /* more than is missing, so that not each set has to search, ... */
#define EXTRA_SHARE 64 /* ... up to this part of the ceiling */
#define KEEPER_VISITS 4096 /* in a step */

/* Evicts so many bytes from the application, and some more where it finds objects at zero. */
static void ceiling_evict(struct store_context *context, const struct limited *app, uint64_t bytes, uint64_t more)
{
	struct store *store = context->store;
	const struct evict_whose whose = { .app = app };
	uint64_t freed = 0;

	if (store->index)
		cleaner_wake(store);
	if (evict_wants_candidates(store) && !mostly_candidates(store) && !limited_mostly_candidates(app))
		freed = evict_limited(context, bytes + more, SPARING_VISITS, EVICT_SPARE_CANDIDATES, &whose, true);
	if (freed < bytes)
		freed += evict_limited(context, bytes + more - freed, OWN_VISITS, EVICT_AT_ZERO, &whose, true);
	if (freed < bytes)
		(void)evict_limited(context, bytes - freed, OWN_VISITS, EVICT_ALL, &whose, true);
}

/* Makes room for so many bytes, which the application lacks. Apart, so that a set that finds room saves no registers. */
static __attribute__((noinline)) bool ceiling_make(struct store_context *context, const struct limited *app,
						   uint64_t cost)
{
	uint64_t ceiling = atomic_load_explicit(&app->ceiling, memory_order_relaxed), bytes = limited_bytes(app), more;

	if (cost > ceiling)
		return false;
	if (bytes + cost <= ceiling) /* others have made it meanwhile */
		return true;
	more = ceiling / EXTRA_SHARE < EXTRA_BYTES ? ceiling / EXTRA_SHARE : EXTRA_BYTES;
	/* A set pays for itself and a little more: a ceiling may be far below the account after a reload. */
	bytes = bytes + cost - ceiling;
	ceiling_evict(context, app, bytes < 2 * cost ? bytes : 2 * cost, more);
	return true;
}

bool ceiling_make_room(struct store_context *context, const char *key, size_t key_length, uint64_t cost)
{
	const struct limits *limits = store_limits(context->store);
	const struct limited *app;

	if (!atomic_load_explicit(&limits->ceilings, memory_order_relaxed))
		return true;
	app = limits_find(limits, key, key_length);
	return !app || !limited_exceeds(app, cost) || ceiling_make(context, app, cost);
}

/* What is above ceilings, and in the margin below, goes in whole steps, as others don't want for memory meanwhile.
   Candidates for flash are spared as long as there are others; a set's own search is too short to find these. */
static bool keeper_evict_excess(struct store *store, const struct limits *limits)
{
	struct store_context *context = &store->keeper->context;
	const struct evict_whose whose = { .app = NULL };
	uint64_t excess = limits_excess(limits), freed = 0;

	if (excess == 0)
		return false;
	if (evict_wants_candidates(store) && !mostly_candidates(store))
		freed = evict_limited(context, excess, KEEPER_VISITS, EVICT_SPARE_CANDIDATES, &whose, false);
	if (freed == 0)
		freed = evict_limited(context, excess, KEEPER_VISITS, EVICT_AT_ZERO, &whose, false);
	context_settle(context);
	return freed > 0;
}

bool keeper_hold_limits(struct store *store, uint64_t now_ms)
{
	struct limits *limits = store_limits(store);
	bool busy;

	if (!limits)
		return false;
	limits_hold_floors(store, now_ms, false);
	busy = limits_count_step(store);
	return keeper_evict_excess(store, limits) || busy;
}

/* ---- to flash ---------------------------------------------------------------------------------- */

unsigned ceilings_choose_groups(struct store *store, uint64_t below)
{
	const struct limits *limits = store_limits(store);
	uint64_t of[GROUPS] = { 0 }, all = 0, budget = 0;

	if (!limits || !atomic_load_explicit(&limits->ceilings, memory_order_relaxed))
		return 0;
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);

		app->pressed = limited_exceeds(app, below);
		if (!app->pressed)
			continue;
		budget += atomic_load_explicit(&app->ceiling, memory_order_relaxed);
		for (int g = 0; g < GROUPS; g++) {
			int64_t bytes = atomic_load_explicit(&app->candidate_bytes[g], memory_order_relaxed);

			of[g] += bytes > 0 ? (uint64_t)bytes : 0;
			all += bytes > 0 ? (uint64_t)bytes : 0;
		}
	}
	return all > 0 && all >= cleaner_wanted_of(store, budget)
		       ? gather_choose_groups(store, of, store->segment_bytes)
		       : 0;
}

uint64_t ceilings_room(const struct store *store)
{
	const struct limits *limits = store_limits(store);
	uint64_t least = UINT64_MAX;

	for (uint32_t n = 0; n < limits_names(limits); n++) {
		const struct limited *app = limits_number(limits, n);
		uint64_t ceiling = atomic_load_explicit(&app->ceiling, memory_order_relaxed),
			 bytes = limited_bytes(app);
		uint64_t room = ceiling > bytes + EXTRA_BYTES ? ceiling - bytes - EXTRA_BYTES : 0;

		if (app->pressed && room < least)
			least = room;
	}
	return least < INT64_MAX ? least : INT64_MAX;
}
