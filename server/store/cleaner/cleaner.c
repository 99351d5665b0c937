/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cleaner moves candidates to flash, off the path of requests (paper, 4). It writes a segment when free memory
 * falls below one segment, candidates for two are there (for one, once free memory is below half a segment), and the
 * write budget allows it; without a free segment it reclaims the oldest first. Candidates of applications near their
 * ceilings are written however much memory is free (ceilings.c). The cleaner is the only thread that waits for the device;
 * work that must not wait is the keeper's.
 */
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"
#include "server/store/state/ids.h"
#include "server/store/state/losses.h"
#include "server/store/state/recount.h"

#define ALL_GROUPS_SEGMENTS 3 /* of candidates: from then on one segment's worth of any group is enough */
#define WRITE_AHEAD_SHARE 16 /* of -m: the most that is kept free for sets during a write */
#define LIMIT_BURST_S 10 /* of --flash-write-limit may be written at once */
#define RATIO_BURST_SHARE 64 /* of the flash, and */
#define RATIO_BURST_SEGMENTS 2 /* may be written at once, ahead of --flash-write-ratio */

void cleaner_create(struct store *store)
{
	store->keeper = mem_must_zalloc(sizeof(*store->keeper));
	store->cleaner = mem_must_zalloc(sizeof(*store->cleaner));
}

void cleaner_destroy(struct store *store)
{
	mem_free(store->keeper);
	mem_free(store->cleaner);
}

/* The bytes that may be written ahead of --flash-write-ratio. */
static uint64_t cleaner_ratio_burst(const struct store *store)
{
	return store->flash_capacity / RATIO_BURST_SHARE + RATIO_BURST_SEGMENTS * store->segment_bytes;
}

void cleaner_init(struct store *store)
{
	struct cleaner *cleaner = store->cleaner;
	uint64_t now_ms = clk_now_ms(store->clock);

	context_init(&cleaner->context, store, store->config.seed + 1);
	cleaner->context.background = true;
	background_init(&cleaner->background);
	cleaner->tokens_at_ms = now_ms;
	cleaner->tokens_at_app_bytes = ctr_total(CTR_app_bytes_written);
	atomic_store(&cleaner->ratio_tokens, (int64_t)cleaner_ratio_burst(store));
	atomic_store(&cleaner->beat_ms, now_ms);
	pace_init(store, now_ms);
	load_filters_init(store);
	mover_init(store);
	units_init(store);
}

void cleaner_fini(struct store *store)
{
	context_settle(&store->cleaner->context);
	mover_fini(store);
	background_fini(&store->cleaner->background);
	units_fini(store);
}

/* ---- whether to write ------------------------------------------------------------------------ */

static void cleaner_refill(_Atomic int64_t *tokens, double bytes, uint64_t most)
{
	int64_t now = atomic_load_explicit(tokens, memory_order_relaxed) + (int64_t)bytes;

	atomic_store_explicit(tokens, now > (int64_t)most ? (int64_t)most : now, memory_order_relaxed);
}

static bool cleaner_heeds_ratio(const struct store *store)
{
	return fill_would_matter(store) && !fill_is_on(store);
}

/*
 * The bytes that the limits allow from now on: --flash-write-limit by time, --flash-write-ratio by what applications
 * write; the lower one holds. What is unused can be saved up to a burst. Under -M the ratio doesn't hold anything back,
 * and neither does it under rules that ask at reads, which know no ratio.
 */
static void cleaner_refill_tokens(struct store *store, uint64_t now_ms)
{
	struct cleaner *cleaner = store->cleaner;
	uint64_t limit = store_write_limit(store), app_bytes = ctr_total(CTR_app_bytes_written);
	double by_ratio = store_write_ratio(store) * (double)(app_bytes - cleaner->tokens_at_app_bytes);
	uint64_t burst = cleaner_ratio_burst(store);

	cleaner_refill(&cleaner->write_tokens, (double)limit * (double)(now_ms - cleaner->tokens_at_ms) / 1000,
		       limit * LIMIT_BURST_S > store->segment_bytes ? limit * LIMIT_BURST_S : store->segment_bytes);
	if (by_ratio >= 1) { /* less waits for more */
		cleaner_refill(&cleaner->ratio_tokens, by_ratio, burst);
		cleaner->tokens_at_app_bytes = app_bytes;
	}
	cleaner->tokens_at_ms = now_ms;
	if (limit == 0)
		atomic_store_explicit(&cleaner->write_tokens, 0,
				      memory_order_relaxed); /* a later one begins with none */
	if (!fill_would_matter(store))
		atomic_store_explicit(&cleaner->ratio_tokens, (int64_t)burst, memory_order_relaxed);
}

/* About two segments of candidates, but no more than half of the item budget, and no less than one segment. */
static uint64_t candidates_wanted(const struct store *store)
{
	uint64_t half = store_item_budget(store) / 2, segment = store->segment_bytes;

	return half < segment ? segment : half < 2 * segment ? half : 2 * segment;
}

uint64_t cleaner_ranks(const struct store *store)
{
	return candidates_wanted(store) / 2 * 3;
}

/*
 * The size groups for the next segment; 0: none now. A group must have enough candidates to fill a segment well; when
 * memory is short, one segment's worth of any groups is enough.
 */
static unsigned groups_to_write(const struct store *store, int64_t free_bytes)
{
	uint64_t segment = store->segment_bytes, total = candidate_total(store), of[GROUPS];
	unsigned groups = 0;

	candidate_by_group(store, of);
	if (total >= candidates_wanted(store))
		groups = gather_choose_groups(store, of,
					      total >= ALL_GROUPS_SEGMENTS * segment || total < 2 * segment
						      ? segment
						      : segment + segment / 2);
	if (!groups && free_bytes < (int64_t)segment / 2)
		groups = gather_choose_groups(store, of, segment);
	return groups;
}

/* One segment, and the sets that come while a segment is made; while the flash is filled, the memory that a plan takes, too.
   Where sets are so fast that this would be much of the memory, the flash can't keep up anyway. */
uint64_t cleaner_writes_below(const struct store *store)
{
	uint64_t meanwhile = pace_reserve(store), most = store_memory_limit(store) / WRITE_AHEAD_SHARE;

	if (fill_is_on(store))
		meanwhile += store->segment_bytes;
	return store->segment_bytes + (meanwhile < most ? meanwhile : most);
}

bool cleaner_has_tokens(const struct store *store)
{
	const struct cleaner *cleaner = store->cleaner;

	return (store_write_limit(store) == 0 ||
		atomic_load_explicit(&cleaner->write_tokens, memory_order_relaxed) > 0) &&
	       (!cleaner_heeds_ratio(store) || atomic_load_explicit(&cleaner->ratio_tokens, memory_order_relaxed) > 0);
}

uint64_t cleaner_spares(const struct store *store)
{
	uint64_t half = store_item_budget(store) / 2, enough = cleaner_ranks(store);

	return cleaner_has_tokens(store) && half > enough ? half : enough;
}

bool cleaner_takes_writes(const struct store *store)
{
	return store->index && !seg_offline(store->segments) && seg_allocated(store->segments) > 0 &&
	       clk_now_ms(store->clock) >=
		       atomic_load_explicit(&store->cleaner->offline_until_ms, memory_order_relaxed);
}

bool cleaner_wants_to_write(const struct store *store, int64_t free_bytes)
{
	return cleaner_takes_writes(store) && free_bytes < (int64_t)cleaner_writes_below(store) &&
	       cleaner_has_tokens(store) && groups_to_write(store, free_bytes) != 0;
}

/* As cleaner_hold, with the device ready and memory full. */
static enum store_hold hold_on_full_memory(const struct store *store)
{
	bool limited = store_write_limit(store) > 0, has_ratio = cleaner_heeds_ratio(store);

	if (limited && atomic_load_explicit(&store->cleaner->write_tokens, memory_order_relaxed) <= 0)
		return STORE_HOLD_LIMIT;
	if (has_ratio && atomic_load_explicit(&store->cleaner->ratio_tokens, memory_order_relaxed) <= 0)
		return STORE_HOLD_RATIO;
	if (clf_asks_at_eviction(store->classifier) && clf_budget_binds(store->classifier) && (limited || has_ratio))
		return has_ratio ? STORE_HOLD_RATIO : STORE_HOLD_LIMIT;
	if (fill_is_on(store))
		return STORE_HOLD_FILLING;
	return groups_to_write(store, store_free_bytes(store)) == 0 ? STORE_HOLD_CANDIDATES : STORE_HOLD_NOTHING;
}

enum store_hold cleaner_hold(const struct store *store)
{
	if (!store->index)
		return STORE_HOLD_NO_FLASH;
	if (!cleaner_takes_writes(store))
		return STORE_HOLD_OFFLINE;
	if (atomic_load(&store->rebuilt_segments) < store->rebuild_segments)
		return STORE_HOLD_REBUILD;
	if (cleaner_has_tokens(store) && keeper_sees_losses(store))
		return STORE_HOLD_LATE;
	/* A segment that was just written makes room for a moment. */
	if (store_free_bytes(store) >= (int64_t)(cleaner_writes_below(store) + store->segment_bytes))
		return STORE_HOLD_MEMORY;
	return hold_on_full_memory(store);
}

bool cleaner_is_writing(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->writing, memory_order_relaxed);
}

/* Has the budget that others may soon need room for a segment of an application's own? */
static bool cleaner_has_tokens_to_spare(const struct store *store)
{
	return !cleaner_heeds_ratio(store) ||
	       atomic_load_explicit(&store->cleaner->ratio_tokens, memory_order_relaxed) >
		       (int64_t)store->segment_bytes;
}

bool cleaner_write(struct store *store, unsigned groups)
{
	struct cleaner *cleaner = store->cleaner;
	bool written;

	must(!cleaner_is_writing(store));
	atomic_store_explicit(&cleaner->writing, true, memory_order_relaxed);
	written = write_segment(store, groups);
	atomic_store_explicit(&cleaner->writing, false, memory_order_relaxed);
	return written;
}

/* While other memory is free, objects of applications near their ceilings would be evicted. */
static bool cleaner_write_for_ceilings(struct store *store)
{
	struct ceilings *ceilings = &store->cleaner->ceilings;
	unsigned groups = 0;

	if (cleaner_has_tokens(store) && cleaner_has_tokens_to_spare(store))
		groups = ceilings_choose_groups(store);
	if (groups == 0)
		return false;
	ceilings->only = true;
	bool written = cleaner_write(store, groups);
	ceilings->only = false;
	ceilings_note_segment(store, written);
	return written;
}

static bool cleaner_write_if_due(struct store *store)
{
	int64_t free_bytes = store_free_bytes(store);
	unsigned groups = 0;

	if (!cleaner_takes_writes(store))
		return false;
	if (free_bytes < (int64_t)cleaner_writes_below(store))
		groups = groups_to_write(store, free_bytes);
	if (groups == 0)
		return cleaner_write_for_ceilings(store);
	if (!cleaner_has_tokens(store)) {
		atomic_store(&store->cleaner->held_up, true);
		return false;
	}
	return cleaner_write(store, groups);
}

bool cleaner_gives_up(const struct store *store)
{
	return store->config.evict && !store->cleaner->saves;
}

bool cleaner_write_last(struct store *store)
{
	uint64_t of[GROUPS];
	unsigned groups = 0;
	bool written;

	must(!store->cleaner->background.threaded);
	store->cleaner->saves = true;
	candidate_by_group(store, of);
	fill_look(store);
	cleaner_refill_tokens(store, clk_now_ms(store->clock));
	if (ids_reserve(store) && cleaner_takes_writes(store) && cleaner_has_tokens(store))
		groups = gather_choose_groups(store, of, store->segment_bytes);
	if (groups == 0)
		return false;
	written = cleaner_write(store, groups);
	context_settle(&store->cleaner->context);
	return written;
}

/* ---- the step -------------------------------------------------------------------------------- */

void cleaner_beat(struct store *store)
{
	atomic_store_explicit(&store->cleaner->beat_ms, clk_now_ms(store->clock), memory_order_relaxed);
	/* Without threads the keeper's work is done in between. */
	if (!store->cleaner->background.threaded)
		keeper_step(store);
}

/* A new file is made segment by segment, so that one is ready whenever one was written. */
static bool cleaner_pauses_allocation(void *context)
{
	struct store *store = context;

	cleaner_beat(store);
	return background_is_stopping(&store->cleaner->background);
}

bool cleaner_step(struct store *store)
{
	uint64_t now_ms = clk_now_ms(store->clock);
	bool busy = false, may_write;

	if (!store->index)
		return false;
	atomic_store_explicit(&store->cleaner->beat_ms, now_ms, memory_order_relaxed);
	busy = recount_step(store);
	(void)!seg_online(store->segments); /* tries a device that is offline; the result is asked for later */
	fill_look(store);
	cleaner_refill_tokens(store, now_ms);
	limits_fill(store, now_ms);
	if (store->losses)
		losses_disown(store);
	bins_step(store);
	may_write = ids_reserve(store) && !busy;
	if (may_write)
		busy = rebuild_step(store);
	busy |= place_step(store, may_write && !busy);
	if (may_write && !busy)
		busy = cleaner_write_if_due(store);
	if (!busy) {
		load_filters_step(store);
		units_step(store);
		samples_flash_step(store);
	}
	busy |= seg_allocate(store->segments, cleaner_pauses_allocation, store);
	busy |= mover_step(store) || rescue_step(store);
	context_settle(&store->cleaner->context);
	return busy;
}

bool store_clean_step(struct store *store)
{
	bool busy = keeper_step(store);

	if (store->classifier)
		(void)clf_train_if_due(store->classifier);
	return cleaner_step(store) || busy;
}

void cleaner_sleep(struct store *store, unsigned ms)
{
	background_sleep(&store->cleaner->background, ms);
}

/* ---- the threads ----------------------------------------------------------------------------- */

void cleaner_wake(struct store *store)
{
	background_wake(&store->cleaner->background);
	background_wake(&store->keeper->background);
}

static void cleaner_begin(void *context)
{
	struct store *store = context;

	pace_thread(store);
	seg_set_step(store->segments, &(struct seg_step){ .call = pace_plan_step, .context = store });
	if (store->frugal)
		frugal_set_step(store->frugal, pace_plan_step, store);
}

static bool cleaner_thread_step(void *context)
{
	return cleaner_step(context);
}

int cleaner_start(struct store *store)
{
	return store->index ? background_start(&store->cleaner->background, "cleaner", cleaner_begin,
					       cleaner_thread_step, store)
			    : FS_OK;
}

void cleaner_stop(struct store *store)
{
	background_stop(&store->cleaner->background);
}

/* The keeper must come round; the cleaner too, except while the device works for it. */
bool store_alive_within(const struct store *store, uint32_t seconds)
{
	uint64_t now_ms = clk_now_ms(store->clock), patience_ms = 1000ull * seconds;
	uint64_t keeper_ms = atomic_load_explicit(&store->keeper->beat_ms, memory_order_relaxed);
	uint64_t cleaner_ms = atomic_load_explicit(&store->cleaner->beat_ms, memory_order_relaxed);

	if (now_ms > keeper_ms + patience_ms)
		return false;
	return !store->index || now_ms <= cleaner_ms + patience_ms || seg_busy_ms(store->segments) > 0;
}
