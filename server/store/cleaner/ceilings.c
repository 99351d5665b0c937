/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ceilings of applications. A set that would exceed one makes room among the application's own objects: a search whose
 * length is bounded, as the hand has to pass by the objects of others. It finds one object in so many as are the
 * application's; so the account of an application with very few of all objects settles somewhat above its ceiling, where
 * a search finds what a set brings. What is left to do is the keeper's.
 *
 * What a ceiling would evict can go to flash first, however much memory is free: when applications near their ceilings have
 * the candidates for a segment together, the cleaner writes one of these alone. It doesn't hurry, as nobody else waits for
 * the memory; and it leaves the others a segment's worth of the write budget.
 */
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"

#define SPARING_VISITS 64 /* while candidates for flash are spared */
#define OWN_VISITS 256 /* to objects, for one set, and as many again for any object */
#define EXTRA_BYTES (16u << 10) /* more than is missing, so that not each set has to search, ... */
#define EXTRA_SHARE 64 /* ... up to this part of the ceiling */
#define KEEPER_VISITS 4096 /* in a step */
#define PROGRESS_PART 16 /* of what is to go for margins: after less the keeper rests */
#define NEAR_SHARE 8 /* of a ceiling, or a segment: an application that has less left is near it */

/* Evicts so many bytes from the application, and some more where it finds objects at zero. */
static void ceiling_evict(struct store_context *context, const struct limited *app, uint64_t bytes, uint64_t more)
{
	struct store *store = context->store;
	const struct evict_whose whose = { .app = app };
	uint64_t freed = 0;

	if (store->index)
		cleaner_wake(store);
	if (cleaner_takes_writes(store) && !limited_mostly_candidates(app))
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

/*
 * What is above ceilings, and in the margins, goes in whole steps, as others don't want for memory meanwhile. Candidates for
 * flash are spared while their application has others; a set's own search is too short to find these. A segment that is
 * being written is about to free more than margins.
 */
static bool keeper_evict_excess(struct store *store, const struct limits *limits)
{
	struct store_context *context = &store->keeper->context;
	const struct evict_whose whose = { .app = NULL };
	uint64_t above = limits_excess(limits, false), freed;
	uint64_t excess = cleaner_is_writing(store) ? above : limits_excess(limits, true);

	if (excess == 0)
		return false;
	freed = evict_limited(context, excess, KEEPER_VISITS,
			      cleaner_takes_writes(store) ? EVICT_SPARE_CANDIDATES : EVICT_AT_ZERO, &whose, false);
	if (freed == 0 && above > 0)
		freed = evict_limited(context, above, KEEPER_VISITS, EVICT_AT_ZERO, &whose, false);
	context_settle(context);
	return above > 0 ? freed > 0 : freed >= excess / PROGRESS_PART;
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

/* Adds what the application may write, by size group. */
static void add_pressed(struct ceilings *ceilings, const struct limited *app, uint64_t may, uint64_t of[GROUPS])
{
	uint64_t bytes[GROUPS], all = 0;

	for (int g = 0; g < GROUPS; g++) {
		int64_t now = atomic_load_explicit(&app->candidate_bytes[g], memory_order_relaxed);

		bytes[g] = now > 0 ? (uint64_t)now : 0;
		ceilings->candidates[g] += bytes[g];
		all += bytes[g];
	}
	for (int g = 0; g < GROUPS && all > 0; g++)
		of[g] += (uint64_t)((double)bytes[g] * ((double)may / (double)all));
}

unsigned ceilings_choose_groups(struct store *store)
{
	const struct limits *limits = store_limits(store);
	struct ceilings *ceilings = &store->cleaner->ceilings;
	uint64_t of[GROUPS] = { 0 }, segment = store->segment_bytes, all = 0, halves = 0;

	if (!limits || !atomic_load_explicit(&limits->ceilings, memory_order_relaxed) ||
	    clk_now_ms(store->clock) < ceilings->again_ms)
		return 0;
	memset(ceilings->candidates, 0, sizeof(ceilings->candidates));
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);
		uint64_t ceiling = atomic_load_explicit(&app->ceiling, memory_order_relaxed),
			 near = ceiling / NEAR_SHARE;
		uint64_t may = limited_exceeds(app, near < segment ? near : segment) ? limited_may_plan(app) : 0;

		app->pressed = may > 0;
		if (!app->pressed)
			continue;
		add_pressed(ceilings, app, may, of);
		all += may;
		halves += may < ceiling / 2 ? may : ceiling / 2;
	}
	/* A quarter more than fits in fills a segment well. Small ceilings never have as much. */
	return all >= (halves < segment + segment / 4 ? segment : segment + segment / 4)
		       ? gather_choose_groups(store, of, segment)
		       : 0;
}

void ceilings_note_segment(struct store *store, bool written)
{
	struct ceilings *ceilings = &store->cleaner->ceilings;

	ceilings->rest_ms = written ? 0 : cleaner_longer_rest_ms(ceilings->rest_ms);
	ceilings->again_ms = clk_now_ms(store->clock) + ceilings->rest_ms;
}
