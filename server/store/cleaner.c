/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cleaner keeps DRAM free, off the path of requests (paper, 4; DESIGN section 9): when free
 * memory falls below one segment and candidates for two are there (one, once free memory is below
 * half of that) and the write budget allows, a segment is written; otherwise the CLOCK hand evicts.
 */
#include <errno.h>
#include <math.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "server/store/store_internal.h"

#define IDLE_MS 20
#define WATCH_MS 250
#define WATCH_SHARE 32 /* of -m allocated since the last look */
#define RATE_SMOOTHING 0.1 /* of a second's reading in the rates that are shown */
#define BUDGET_HELD_UP 1.25 /* how much over the limit a held-up segment counts */
#define ALL_GROUPS_SEGMENTS 3 /* candidates, in segments, from which on any group of one is taken */
#define WRITE_AHEAD_SHARE 16 /* of -m, at the most, that is kept free for what is set during a write */
#define CAS_RESERVE (1ull << 40)

void cleaner_init(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;
	pthread_condattr_t attributes;

	context_init(&cleaner->context, store, store->config.seed + 1);
	lock_init(&cleaner->lock, LOCK_LEAF);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&cleaner->cond, &attributes);
	pthread_condattr_destroy(&attributes);
	cleaner->ticked_at_ms = cleaner->watched_at_ms = cleaner->crawled_at_ms = clk_now_ms(store->clock);
	cleaner->tokens_at_ms = cleaner->ticked_at_ms;
	atomic_store(&cleaner->beat_ms, cleaner->ticked_at_ms);
	cleaner->flash_bytes_last = ctr_total(CTR_flash_bytes_written);
	cleaner->sets_last = ctr_total(CTR_cmd_set);
	pace_init(store, cleaner->ticked_at_ms);
}

void cleaner_fini(struct store *store)
{
	pthread_cond_destroy(&store->cleaner.cond);
	lock_fini(&store->cleaner.lock);
}

void cleaner_sleep(struct store *store, unsigned ms)
{
	struct cleaner *cleaner = &store->cleaner;
	struct timespec until;

	if (!cleaner->threaded)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	lock_acquire(&cleaner->lock);
	while (!cleaner->stop && pthread_cond_timedwait(&cleaner->cond, &cleaner->lock.mutex, &until) == 0 &&
	       !cleaner->wake)
		;
	cleaner->wake = false;
	lock_release(&cleaner->lock);
	atomic_store(&cleaner->awake, false);
}

void cleaner_wake(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;

	if (!cleaner->threaded || atomic_load_explicit(&cleaner->awake, memory_order_relaxed) ||
	    atomic_exchange(&cleaner->awake, true))
		return;
	lock_acquire(&cleaner->lock);
	cleaner->wake = true;
	pthread_cond_signal(&cleaner->cond);
	lock_release(&cleaner->lock);
}

/* ---- once a second --------------------------------------------------------------------------- */

static double smooth(double old, double reading)
{
	return old + RATE_SMOOTHING * (reading - old);
}

/*
 * The token bucket keeps the limit whatever comes; the classifier's threshold is to rise so that
 * what goes through is the best. While the bucket held a segment up, more was wanted than allowed.
 */
static void tick_budget(struct store *store, double flash_rate)
{
	double limit = (double)store_write_limit(store);

	if (limit > 0 && store->cleaner.held_up)
		flash_rate = fmax(flash_rate, limit * BUDGET_HELD_UP);
	store->cleaner.held_up = false;
	clf_budget(store->classifier, flash_rate, limit);
}

static void tick_rates(struct store *store, double seconds)
{
	struct cleaner *cleaner = &store->cleaner;
	uint64_t flash = ctr_total(CTR_flash_bytes_written);
	uint64_t sets = ctr_total(CTR_cmd_set), new_sets = sets - cleaner->sets_last;
	double rate = (double)atomic_load_explicit(&cleaner->write_rate, memory_order_relaxed);
	double flash_rate = (double)(flash - cleaner->flash_bytes_last) / seconds;

	atomic_store_explicit(&cleaner->write_rate, (uint64_t)smooth(rate, flash_rate), memory_order_relaxed);
	cleaner->flash_bytes_last = flash;
	cleaner->sets_last = sets;
	if (!store->index)
		return;
	struct fidx_status status;
	fidx_get_status(store->index, &status);
	double load = status.slots ? (double)status.used / (double)status.slots : 0;
	double expected = (double)new_sets * 2 * FIDX_BUCKET_SLOTS * load * ldexp(1, -(int)store->tag_bits) *
			  status.filter_false_positive;
	atomic_fetch_add_explicit(&cleaner->innocent_millionths, (uint64_t)(expected * 1e6), memory_order_relaxed);
	tick_budget(store, flash_rate);
}

static void tick_cas(struct store *store)
{
	uint64_t next = atomic_load(&store->cas_next), first, end;

	if (!store->segments || next + CAS_RESERVE / 2 < atomic_load(&store->cas_reserved))
		return;
	if (seg_reserve_cas(store->segments, CAS_RESERVE, &first, &end) == FS_OK)
		atomic_store(&store->cas_reserved, end);
}

void store_tick(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;
	const struct window_reading written = store_written(store);
	uint64_t now_ms = clk_now_ms(store->clock);

	store_apply_due_flush(store, store_now_seconds(store, clk_now_us(store->clock)));
	if (now_ms > cleaner->ticked_at_ms)
		tick_rates(store, (double)(now_ms - cleaner->ticked_at_ms) / 1000);
	cleaner->ticked_at_ms = now_ms;
	windows_tick(&store->windows, &written);
	tick_cas(store);
}

/* ---- the step -------------------------------------------------------------------------------- */

static void refill_tokens(struct store *store, uint64_t now_ms)
{
	struct cleaner *cleaner = &store->cleaner;
	uint64_t limit = store_write_limit(store);
	int64_t most = (int64_t)(limit * 10 > store->segment_bytes ? limit * 10 : store->segment_bytes);

	cleaner->write_tokens += (int64_t)((double)limit * (double)(now_ms - cleaner->tokens_at_ms) / 1000);
	cleaner->tokens_at_ms = now_ms;
	if (cleaner->write_tokens > most)
		cleaner->write_tokens = most;
	if (limit == 0)
		cleaner->write_tokens = 0; /* a limit that is set later counts from then on */
}

/*
 * The size groups that the next segment is to be filled from, 0: none now. About two segments of
 * candidates are wanted, as many of one group as fill a segment well; when memory is short, one
 * segment's worth of whatever there is.
 */
static unsigned may_write(struct store *store, int64_t free_bytes, uint64_t now_ms)
{
	struct cleaner *cleaner = &store->cleaner;
	uint64_t segment = store->segment_bytes, total = candidate_total(store);
	unsigned groups = 0;

	if (now_ms < cleaner->offline_until_ms)
		return 0;
	if (total >= 2 * segment)
		groups = choose_groups(store, total >= ALL_GROUPS_SEGMENTS * segment ? segment : segment + segment / 2);
	if (!groups && free_bytes < (int64_t)segment / 2)
		groups = choose_groups(store, segment);
	if (groups && store_write_limit(store) && cleaner->write_tokens <= 0) {
		cleaner->held_up = true;
		return 0;
	}
	return groups;
}

/* What is set while a segment is made comes on top of the one segment that is kept free in any case. Where
   sets are so fast that this would be much of the memory, they are ahead of the flash anyway. */
static uint64_t write_below(const struct store *store)
{
	uint64_t meanwhile = pace_reserve(store), most = store_memory_limit(store) / WRITE_AHEAD_SHARE;

	return store->segment_bytes + (meanwhile < most ? meanwhile : most);
}

static bool keep_free(struct store *store, uint64_t now_ms)
{
	uint64_t want = store->index ? store->segment_bytes : store_memory_limit(store) / 256;
	int64_t free_bytes = store_free_bytes(store);
	unsigned groups = 0;

	if (store->index && free_bytes < (int64_t)write_below(store))
		groups = may_write(store, free_bytes, now_ms);
	if (groups && write_segment(store, groups))
		return true;
	if (free_bytes >= (int64_t)want)
		return false;
	return store->config.evict && evict_round(&store->cleaner, store, want);
}

/* Resident memory is looked at four times a second, and sooner when much was allocated: a shift of
   the sizes can cost as much again as it allocates. */
void cleaner_duties(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;
	uint64_t now_ms = clk_now_ms(store->clock);
	uint64_t allocated = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);

	atomic_store_explicit(&cleaner->beat_ms, now_ms, memory_order_relaxed);
	pace_observe(store, now_ms);
	if (now_ms >= cleaner->ticked_at_ms + 1000)
		store_tick(store);
	if (now_ms >= cleaner->watched_at_ms + WATCH_MS ||
	    allocated - cleaner->watched_bytes > store_memory_limit(store) / WATCH_SHARE) {
		cleaner->watched_at_ms = now_ms;
		cleaner->watched_bytes = allocated;
		store_watch_memory(store);
	}
}

bool store_cleaner_alive(const struct store *store, uint32_t within_seconds)
{
	uint64_t beat_ms = atomic_load_explicit(&store->cleaner.beat_ms, memory_order_relaxed);
	uint64_t now_ms = clk_now_ms(store->clock);

	return now_ms <= beat_ms + 1000ull * within_seconds;
}

bool store_clean_step(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;
	uint64_t now_ms = clk_now_ms(store->clock);
	bool busy;

	cleaner_duties(store);
	busy = cleaner_crawl(store, now_ms);
	busy |= cleaner_compact(store, now_ms);
	refill_tokens(store, now_ms);
	if (store->segments)
		(void)seg_online(store->segments); /* tries a device that is offline */
	busy |= store->index && store->config.evict && evict_excess_hot(store);
	busy |= keep_free(store, now_ms);
	context_settle(&cleaner->context);
	return busy;
}

static void *cleaner_main(void *argument)
{
	struct store *store = argument;
	struct cleaner *cleaner = &store->cleaner;

	pthread_setname_np(pthread_self(), "cleaner");
	pace_thread(store);
	if (store->segments)
		seg_set_step(store->segments, &(struct seg_step){ .call = pace_plan_step, .context = store });
	while (!atomic_load(&cleaner->stopping))
		if (!store_clean_step(store))
			cleaner_sleep(store, IDLE_MS);
	return NULL;
}

int cleaner_start(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;

	cleaner->stop = false;
	atomic_store(&cleaner->stopping, false);
	cleaner->threaded = true;
	if (pthread_create(&cleaner->thread, NULL, cleaner_main, store) != 0) {
		cleaner->threaded = false;
		return FS_ESYS;
	}
	return FS_OK;
}

void cleaner_stop(struct store *store)
{
	struct cleaner *cleaner = &store->cleaner;

	if (!cleaner->threaded)
		return;
	atomic_store(&cleaner->stopping, true);
	lock_acquire(&cleaner->lock);
	cleaner->stop = true;
	pthread_cond_signal(&cleaner->cond);
	lock_release(&cleaner->lock);
	pthread_join(cleaner->thread, NULL);
	cleaner->threaded = false;
}
