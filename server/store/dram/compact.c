/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compaction: moving objects together. Eviction takes objects out here and there, so that the allocator's pages are
 * half empty and hardly any page becomes free. New objects of the same sizes would fill them; but after -m was lowered
 * there are no new ones, and after a shift of sizes the new ones are of other sizes. Evicting until pages are empty
 * would cost nearly all objects. Instead each small object moves to the lowest free address of its class, so that few
 * pages hold what many held. Half of 3.2 million objects of 300 bytes were left in 1015 MB; after a pass of 0.27 us
 * each they lay in 527 MB.
 *
 * After -m was lowered, a pass waits until items are within the new limit and moves all small objects; for holes it
 * starts at once and moves objects of the sparse classes alone. Tables move likewise, as stripes grow out of their sizes.
 *
 * The keeper moves an object under its stripe, while only the table refers to it. It does so in steps.
 */
#include <stdlib.h>

#include "server/store/dram/dram_internal.h"

#define LINES_PER_LOCK 2u
#define STEP_OBJECTS 2048u /* between looks at other duties */
#define CALM_SHARE 64 /* of -m: a pass is calm if less was set during it */
#define REST 8 /* times the last pass's length between it and the next one for holes */
#define WAIT_MS 30000u /* until items are within the limit; values under way may keep them above */

/* Stripe held: only the table refers to the item, and nobody can get a reference without the stripe. */
static bool compaction_can_move(const struct compaction *compaction, const struct item *item)
{
	unsigned class = mem_class(item_allocated_bytes(item));

	return class < MEM_CLASSES && compaction->moves[class] && !(item->state & ITEM_PLANNED) &&
	       atomic_load_explicit(&item->refs, memory_order_acquire) == 1;
}

static void compact_item(const struct compaction *compaction, struct stripe *stripe, uint32_t line, unsigned link,
			 struct item *item)
{
	if (compaction_can_move(compaction, item))
		stripe_moved(stripe, line, link, mem_move(item, item_allocated_bytes(item)));
}

/* The stripe's table is small memory as well, of whose sizes others have grown out. */
static void compact_table(const struct compaction *compaction, struct stripe *stripe)
{
	unsigned class = mem_class((uint64_t)stripe_lines(stripe) * sizeof(struct link_line));

	if (class < MEM_CLASSES && compaction->moves[class])
		stripe_move_table(stripe);
}

/* Visits some lines. True: those were the stripe's last. */
static bool compact_lines(struct store *store, struct compaction *compaction, struct stripe *stripe, unsigned *met)
{
	bool last;

	lock_acquire(&stripe->lock);
	uint32_t line = position_line(&compaction->at, stripe), end = line + LINES_PER_LOCK;
	for (; line < end && line < stripe_lines(stripe); line++) {
		stripe_prefetch(stripe, line);
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			struct item *item = stripe_item(stripe, line, link);

			if (item)
				compact_item(compaction, stripe, line, link, item);
			*met += item != NULL;
		}
		++*met; /* empty lines take time too */
	}
	last = line >= stripe_lines(stripe);
	if (last) {
		stripe_shrink(store, stripe);
		compact_table(compaction, stripe);
	}
	position_set(&compaction->at, stripe, last ? 0 : line);
	lock_release(&stripe->lock);
	return last;
}

/* number: the pass's, if it was asked for; the last such one's, if it begins because of holes. */
static void compaction_begin(struct store *store, struct compaction *compaction, uint32_t number)
{
	bool sparse[MEM_CLASSES];

	must(!compaction->running);
	compaction->running = true;
	compaction->began_ms = clk_now_ms(store->clock);
	compaction->allocated = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);
	compaction->item_bytes = atomic_load_explicit(&store->item_bytes, memory_order_relaxed);
	compaction->holes = mem_holes(sparse);
	compaction->started = number;
	compaction->stripe = 0;
	compaction->at = (struct line_position){ 0 };
}

/* The holes that a calm pass leaves are unavoidable, because each class has some partly used pages. */
static void compaction_end(struct store *store, struct compaction *compaction)
{
	uint64_t set = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed) - compaction->allocated;
	int64_t grown = atomic_load_explicit(&store->item_bytes, memory_order_relaxed) - compaction->item_bytes;
	uint64_t calm = store_memory_limit(store) / CALM_SHARE, left;
	bool sparse[MEM_CLASSES];

	must(compaction->running);
	compaction->running = compaction->waiting = false;
	compaction->ended_ms = clk_now_ms(store->clock);
	atomic_store(&compaction->done, compaction->started);
	mem_purge();
	left = mem_holes(sparse);
	compaction->gave_little = left > compaction->holes / 4 * 3;
	if (set < calm && (uint64_t)llabs(grown) < calm)
		compaction->holes_least = left;
	ctr_add(CTR_memory_compactions, 1);
}

/* May the pass begin? Not before eviction has done its part, or WAIT_MS have passed. */
static bool compaction_due(struct store *store, struct compaction *compaction, uint64_t now_ms)
{
	if (!compaction->waiting) {
		compaction->waiting = true;
		compaction->since_ms = now_ms;
	}
	return store_free_bytes(store) >= 0 || now_ms >= compaction->since_ms + WAIT_MS;
}

bool compaction_pending(const struct store *store)
{
	const struct compaction *compaction = store->compaction;

	return atomic_load(&compaction->asked) != atomic_load(&compaction->done);
}

void compaction_ask(struct store *store)
{
	atomic_fetch_add(&store->compaction->asked, 1);
	store->wake(store);
}

void compaction_thin(struct store *store, const bool sparse[MEM_CLASSES], bool urgent)
{
	struct compaction *compaction = store->compaction;
	uint64_t took_ms = compaction->ended_ms - compaction->began_ms;
	uint64_t rest_ms = urgent && !compaction->gave_little ? 0 : REST * took_ms;

	if (compaction->running || compaction_pending(store) ||
	    (took_ms > 0 && clk_now_ms(store->clock) < compaction->ended_ms + rest_ms))
		return;
	memcpy(compaction->moves, sparse, sizeof(compaction->moves));
	compaction_begin(store, compaction, atomic_load(&compaction->done));
}

bool keeper_compact(struct store *store, uint64_t now_ms)
{
	struct compaction *compaction = store->compaction;
	unsigned met = 0;

	if (!compaction->running) {
		if (!compaction_pending(store) || !compaction_due(store, compaction, now_ms))
			return false;
		memset(compaction->moves, true, sizeof(compaction->moves));
		compaction_begin(store, compaction, atomic_load(&compaction->asked));
	}
	while (met < STEP_OBJECTS && compaction->stripe < store->stripe_count) {
		compaction->stripe += compact_lines(store, compaction, &store->stripes[compaction->stripe], &met);
	}
	if (compaction->stripe == store->stripe_count)
		compaction_end(store, compaction);
	return true;
}
