/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper: a thread for all work that has to go on whatever the device does. It keeps some DRAM free by eviction,
 * hot data below its threshold, and resident memory within -m; it finds expired objects, moves small objects together,
 * and does the duties of each second. It never does I/O and never waits for the cleaner, which writes and reclaims
 * segments.
 *
 * Each step is bounded by objects, not by the size of the tables: some milliseconds at the most.
 */
#include <math.h>

#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/share.h"
#include "server/store/state/attach.h"
#include "server/store/state/id_times.h"

#define WATCH_MS 250
#define WATCH_SHARE 64 /* of -m: so much allocated since the last look is a reason for another */
#define OFFER_VISITS 16384 /* in a step, under -M */
#define FILL_VISITS 512 /* the same while the flash is filled */
#define RATE_SMOOTHING 0.1 /* the weight of a second's reading in the rates shown */

void keeper_init(struct store *store)
{
	struct keeper *keeper = store->keeper;

	context_init(&keeper->context, store, store->config.seed + 2);
	keeper->context.background = true;
	background_init(&keeper->background);
	keeper->ticked_at_ms = keeper->watched_at_ms = keeper->crawl.passed_at_ms = clk_now_ms(store->clock);
	atomic_store(&keeper->beat_ms, keeper->ticked_at_ms);
	keeper->flash_bytes_last = ctr_total(CTR_flash_bytes_written);
	keeper->app_bytes_last = ctr_total(CTR_app_bytes_written);
	keeper->sets_last = ctr_total(CTR_cmd_set);
	keeper->late_last = ctr_total(CTR_room_evictions_late);
}

void keeper_fini(struct store *store)
{
	context_settle(&store->keeper->context);
	background_fini(&store->keeper->background);
}

/* ---- once a second --------------------------------------------------------------------------- */

static double keeper_smooth(double old, double reading)
{
	return old + RATE_SMOOTHING * (reading - old);
}

/* The token bucket keeps the write limit by itself; the classifier's threshold sees to it that the best objects get
   through. */
static void keeper_tick_budget(struct store *store, double seconds, uint64_t app_bytes, uint64_t flash_bytes)
{
	clf_budget(store->classifier,
		   &(struct clf_written){ .seconds = seconds,
					  .app_bytes = app_bytes,
					  .flash_bytes = flash_bytes,
					  .limit = (double)store_write_limit(store),
					  .ratio = store_write_ratio(store),
					  .held_up = atomic_exchange(&store->cleaner->held_up, false),
					  .offline = !cleaner_takes_writes(store),
					  .filling = fill_is_on(store) });
}

static void keeper_tick_rates(struct store *store, double seconds)
{
	struct keeper *keeper = store->keeper;
	uint64_t flash = ctr_total(CTR_flash_bytes_written), new_flash = flash - keeper->flash_bytes_last;
	uint64_t app = ctr_total(CTR_app_bytes_written), new_app = app - keeper->app_bytes_last;
	uint64_t sets = ctr_total(CTR_cmd_set), new_sets = sets - keeper->sets_last;
	double rate = (double)atomic_load_explicit(&keeper->write_rate, memory_order_relaxed);

	atomic_store_explicit(&keeper->write_rate, (uint64_t)keeper_smooth(rate, (double)new_flash / seconds),
			      memory_order_relaxed);
	keeper->flash_bytes_last = flash;
	keeper->app_bytes_last = app;
	keeper->sets_last = sets;
	if (!store->index)
		return;
	uint64_t late = ctr_total(CTR_room_evictions_late);

	atomic_store_explicit(&keeper->sees_losses, late > keeper->late_last, memory_order_relaxed);
	keeper->late_last = late;
	struct fidx_status status;
	fidx_get_status(store->index, &status);
	double load = status.slots ? (double)status.used / (double)status.slots : 0;
	double expected = (double)new_sets * 2 * FIDX_BUCKET_SLOTS * load * ldexp(1, -(int)store->tag_bits) *
			  fidx_filter_false_positive(store->index);
	atomic_fetch_add_explicit(&keeper->innocent_millionths, (uint64_t)(expected * 1e6), memory_order_relaxed);
	keeper_tick_budget(store, seconds, new_app, new_flash);
}

void store_tick(struct store *store)
{
	struct keeper *keeper = store->keeper;
	const struct window_reading written = store_written(store);
	uint64_t now_ms = clk_now_ms(store->clock);

	store_apply_due_flush(store, store_now_seconds(store, clk_now_us(store->clock)));
	kept_alive(store);
	id_times_note(store);
	if (now_ms > keeper->ticked_at_ms)
		keeper_tick_rates(store, (double)(now_ms - keeper->ticked_at_ms) / 1000);
	keeper->ticked_at_ms = now_ms;
	share_tick(store);
	windows_tick(&store->windows, &written);
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Under -M nothing is evicted, and while the flash is filled nothing need be; but a rule that asks at eviction has to be
   asked before memory is full. While the flash is filled no more is asked about than segments are made of. True: there is
   more to do at once. */
static bool keeper_offer(struct store *store, int64_t free_bytes)
{
	bool fills = fill_is_on(store);
	uint64_t candidates = candidate_total(store), visited;
	uint64_t below = (fills ? cleaner_writes_below(store) : store->segment_bytes) + store->segment_bytes;

	if (!store->index || !clf_asks_at_eviction(store->classifier) || !evict_wants_candidates(store) ||
	    free_bytes >= (int64_t)below)
		return false;
	if (fills && (candidates >= cleaner_ranks(store) || clf_budget_binds(store->classifier)))
		return false;
	return evict_dram(&store->keeper->context, store->segment_bytes, fills ? FILL_VISITS : OFFER_VISITS,
			  EVICT_OFFER, false, &visited) > 0 ||
	       (fills && candidate_total(store) > candidates);
}

/*
 * Keeps up to half of a segment's worth free. A segment that is being written is about to free a segment's worth, so
 * meanwhile eviction acts only when that would come too late.
 */
static bool keeper_keep_free(struct store *store)
{
	int64_t free_bytes = store_free_bytes(store), least, want;
	bool offers = (!store->config.evict || fill_is_on(store)) && keeper_offer(store, free_bytes);

	if (!store->config.evict)
		return offers;
	if (!store->index)
		least = want = (int64_t)(store_memory_limit(store) / 256);
	else if (cleaner_is_writing(store) || cleaner_wants_to_write(store, free_bytes))
		least = (int64_t)store->segment_bytes / 4,
		want = mostly_candidates(store) ? 0 : (int64_t)store->segment_bytes / 2;
	else
		least = (int64_t)store->segment_bytes / 4, want = (int64_t)store->segment_bytes / 2;
	return (free_bytes < least && free_bytes < want && evict_round(&store->keeper->context, (uint64_t)want)) ||
	       offers;
}

/* The keeper looks at resident memory four times a second, and sooner when much was allocated: a shift of sizes can
   cost as much again as it allocates. */
static void keeper_do_duties(struct store *store, uint64_t now_ms)
{
	struct keeper *keeper = store->keeper;
	uint64_t allocated = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);

	atomic_store_explicit(&keeper->beat_ms, now_ms, memory_order_relaxed);
	pace_observe(store, now_ms);
	if (now_ms >= keeper->ticked_at_ms + 1000)
		store_tick(store);
	if (now_ms >= keeper->watched_at_ms + WATCH_MS ||
	    allocated - keeper->watched_bytes > store_memory_limit(store) / WATCH_SHARE) {
		keeper->watched_at_ms = now_ms;
		keeper->watched_bytes = allocated;
		if (!store->config.unwatched)
			store_watch_memory(store);
	}
}

bool keeper_step(struct store *store)
{
	uint64_t now_ms = clk_now_ms(store->clock);
	bool busy;

	keeper_do_duties(store, now_ms);
	samples_dram_step(store, now_ms);
	busy = keeper_crawl(store, now_ms);
	busy |= keeper_compact(store, now_ms);
	busy |= keeper_hold_limits(store, now_ms);
	busy |= store->index && store->config.evict && evict_excess_hot(store);
	busy |= keeper_keep_free(store);
	context_settle(&store->keeper->context);
	return busy;
}

static bool keeper_thread_step(void *context)
{
	return keeper_step(context);
}

int keeper_start(struct store *store)
{
	return background_start(&store->keeper->background, "keeper", NULL, keeper_thread_step, store);
}

void keeper_stop(struct store *store)
{
	background_stop(&store->keeper->background);
}

/* ---- figures --------------------------------------------------------------------------------- */

bool keeper_sees_losses(const struct store *store)
{
	return atomic_load_explicit(&store->keeper->sees_losses, memory_order_relaxed);
}

uint64_t keeper_write_rate(const struct store *store)
{
	return atomic_load(&store->keeper->write_rate);
}

uint64_t keeper_innocent_millionths(const struct store *store)
{
	return atomic_load(&store->keeper->innocent_millionths);
}
