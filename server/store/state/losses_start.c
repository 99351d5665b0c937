/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal at start and end: what the last run's is worth, and which one this run writes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/instance.h"
#include "server/store/state/losses.h"
#include "server/store/state/restart.h"

#define JOURNAL_SHARE 64u /* of the flash: all files of the journal */
#define JOURNAL_LEAST (16u << 20)
#define JOURNAL_PARTS 8u /* a file of so many */
#define TOUCHED_SHARE 256u /* of -m: bits of touched keys */
#define TOUCHED_LEAST (64u << 10)
#define TOUCHED_MOST (64u << 20)
#define FRACTIONS_S 2 /* more than the fractions of seconds that a start doesn't know */

/* ---- what the writer calls ------------------------------------------------------------------- */

static void take_times(void *context, uint64_t *wall_s, uint64_t *store_s)
{
	const struct losses *losses = context;

	*wall_s = (uint64_t)losses_wall(losses->store);
	*store_s = store_now_seconds(losses->store, clk_now_us(losses->store->clock));
}

static void tell_waiters(void *context)
{
	struct losses *losses = context;
	const uint64_t one = 1;

	lock_acquire(&losses->lock);
	for (struct losses_waiter *waiter = losses->waiters; waiter; waiter = waiter->next)
		if (atomic_exchange(&waiter->waits, false))
			(void)!write(waiter->eventfd, &one, sizeof(one)); /* a full counter wakes it too */
	pthread_cond_broadcast(&losses->advanced);
	lock_release(&losses->lock);
}

static void count_memory(void *context, int64_t bytes)
{
	struct losses *losses = context;

	atomic_fetch_add(&losses->store->losses_bytes, (uint64_t)bytes);
}

static void wake_writer(void *context)
{
	struct losses *losses = context;

	if (losses->writer.threaded)
		background_wake(&losses->writer);
}

static bool writer_step(void *context)
{
	struct losses *losses = context;

	return losses_work(losses) || journal_step(losses->journal);
}

/* ---- the last run's journal ------------------------------------------------------------------ */

/* What must not change while segments are committed. */
static void fill_options(const struct store *store, uint64_t option[JOURNAL_OPTIONS])
{
	option[0] = fidx_tag_bits(store->index);
	option[1] = store->config.functions;
	option[2] = store->segment_bytes;
	option[3] = store->hash_seed;
}

int losses_read(struct store *store)
{
	struct losses *losses = mem_zalloc(sizeof(*losses));
	char path[INSTANCE_PATH_BYTES];
	struct seg_info info;

	if (!losses)
		return FS_ENOMEM;
	losses->store = store;
	losses->ticket = mem_zalloc(LOSSES_TAGS * sizeof(*losses->ticket));
	instance_journal_path(store->config.state_dir, store->flash_path, path);
	losses->medium = store->config.journal_medium ? store->config.journal_medium : journal_directory(path);
	if (!losses->ticket || !losses->medium) {
		mem_free(losses->ticket);
		mem_free(losses);
		return FS_ENOMEM;
	}
	if (store->config.flash_owner && !store->config.journal_medium && !store->config.look_only)
		journal_directory_own(losses->medium, store->config.flash_owner->user,
				      store->config.flash_owner->group);
	lock_init(&losses->lock, LOCK_LEAF);
	pthread_condattr_t attributes;
	must(pthread_condattr_init(&attributes) == 0);
	must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&losses->advanced, &attributes) == 0);
	pthread_condattr_destroy(&attributes);
	background_init(&losses->writer);
	seg_get_info(store->segments, &info);
	losses->found_code = journal_read(losses->medium, info.uuid, info.segments, NULL, NULL, &losses->found);
	/* A run that was killed while its flash moved has written the epoch of both flashes. */
	losses->found_last =
		losses->found_code == FS_OK &&
		(losses->found.epoch == info.attach_epoch ||
		 (losses->found.state.next_epoch != 0 && losses->found.state.next_epoch == info.attach_epoch));
	store->losses = losses;
	atomic_fetch_add(&store->losses_bytes, journal_memory_bytes() + LOSSES_TAGS * sizeof(*losses->ticket));
	return losses->found_code == FS_ENOMEM ? FS_ENOMEM : FS_OK;
}

/* Is the journal the last run's, and of an index like this one? */
static bool is_last(const struct store *store)
{
	const struct losses *losses = store->losses;
	uint64_t option[JOURNAL_OPTIONS];

	fill_options(store, option);
	return losses->found_last && memcmp(losses->found.state.option, option, sizeof(option)) == 0;
}

/* Returns the wall clock's second at which clients were served last, by the last run's journal. */
static uint64_t found_served_s(const struct journal_found *found)
{
	return found->state.served_s ? found->state.served_s : found->wall_s;
}

uint64_t losses_served_s(const struct store *store)
{
	uint64_t served_us = atomic_load(&store->served_us), wall_s = (uint64_t)losses_wall(store);
	uint64_t pause_s = (clk_now_us(store->clock) - served_us + 999999) / 1000000;

	return served_us ? wall_s - (pause_s < wall_s ? pause_s : wall_s - 1) : 0;
}

enum store_start losses_judge(struct store *store, char more[80])
{
	const struct losses *losses = store->losses;
	const struct journal_found *found = &losses->found;
	uint64_t now_s = (uint64_t)losses_wall(store), most_s = store->config.restart_max_downtime_us / 1000000;
	uint64_t served_s;

	more[0] = '\0';
	if (losses->found_code == FS_ENOTFOUND)
		return STORE_START_NO_JOURNAL;
	if (losses->found_code != FS_OK)
		return STORE_START_JOURNAL;
	if (!losses->found_last)
		return STORE_START_NO_JOURNAL;
	if (!is_last(store))
		return STORE_START_OPTIONS;
	served_s = found_served_s(found);
	if (now_s < found->wall_s || found->wall_s < served_s)
		return STORE_START_CLOCK;
	if (now_s - served_s > most_s) {
		snprintf(more, 80, "%" PRIu64 " s of %" PRIu64 " s", now_s - served_s, most_s);
		return STORE_START_DOWNTIME;
	}
	return STORE_START_REBUILT;
}

/*
 * The store's seconds go on from the last block, by the wall clock. Three fractions of seconds are unknown: the store's and
 * the wall clock's at the block, and the wall clock's now. FRACTIONS_S more are enough: an object may expire early, never
 * late. The origin may lie before the boot; the difference from the clock is what counts.
 */
void losses_take_times(struct store *store)
{
	const struct journal_found *found = &store->losses->found;
	uint64_t now_s = (uint64_t)losses_wall(store), seconds = found->store_s + (now_s - found->wall_s) + FRACTIONS_S;
	uint64_t now_us = clk_now_us(store->clock);
	struct seg_info info;

	store->origin_us = now_us - (seconds - SECOND_ZERO) * 1000000;
	restart_resume(store, now_us - (now_s - found_served_s(found)) * 1000000);
	atomic_store(&store->flush_at, 0);
	if (found->state.flush_at && found->state.flush_at <= now_s + FRACTIONS_S) {
		seg_get_info(store->segments, &info);
		atomic_store(&store->flush_cas, info.cas_end - 1); /* everything that was ever written */
		return;
	}
	atomic_store(&store->flush_cas, found->state.flush_cas);
	if (found->state.flush_at)
		atomic_store(&store->flush_at, (uint32_t)(seconds + (found->state.flush_at - now_s) - FRACTIONS_S));
}

int losses_begin_rebuild(struct store *store, uint64_t newest)
{
	struct losses *losses = store->losses;
	uint64_t most = store->config.memory_bytes / TOUCHED_SHARE, bytes = TOUCHED_LEAST;
	_Atomic uint64_t *touched;

	while (bytes * 2 <= most && bytes < TOUCHED_MOST)
		bytes *= 2;
	touched = mem_zalloc(bytes);
	if (!touched)
		return FS_ENOMEM;
	atomic_fetch_add(&store->losses_bytes, bytes);
	losses->touched = touched;
	losses->touched_mask = bytes * 8 - 1;
	losses->rebuild_newest = newest;
	atomic_store(&losses->rebuilding, true);
	return FS_OK;
}

bool losses_rebuild_again(struct store *store)
{
	struct journal_status journal;

	if (!store->rebuild || !store->losses || !store->losses->journal || store->config.region_dir)
		return false;
	journal_get_status(store->losses->journal, &journal);
	return !journal.broken;
}

void losses_end_rebuild(struct store *store)
{
	struct losses *losses = store->losses;

	if (!losses->touched)
		return;
	atomic_store(&losses->rebuilding, false);
	for (uint32_t n = 0; store->stripes && n < store->stripe_count; n++) {
		lock_acquire(&store->stripes[n].lock);
		lock_release(&store->stripes[n].lock);
	}
	atomic_fetch_sub(&store->losses_bytes, (losses->touched_mask + 1) / 8);
	mem_free(losses->touched);
	losses->touched = NULL;
}

/* ---- this run's journal ---------------------------------------------------------------------- */

/* Segments that this run doesn't serve are committed no more: nobody would write their losses down. */
static void forget_others(struct store *store, struct journal_state *state)
{
	for (uint32_t s = 0; s < state->segments; s++)
		if (state->commit[s].sequence && seg_sequence(store->segments, s) != state->commit[s].sequence)
			state->commit[s].sequence = 0;
}

/* Makes the state with which this run's journal begins. FS_OK, FS_ENOMEM. */
static int prepare_state(struct store *store, uint32_t segments)
{
	struct losses *losses = store->losses;
	struct journal_found *found = &losses->found;
	bool rebuilds = atomic_load(&losses->rebuilding);
	uint64_t served_s = rebuilds ? found_served_s(found) : losses_served_s(store);
	uint32_t at = atomic_load(&store->flush_at);
	uint32_t now = store_now_seconds(store, clk_now_us(store->clock));

	struct seg_info info;

	/* A process that was killed may have cleared slots whose entries it never wrote. So the journal goes on only over a
	   clean end, which has settled it. */
	seg_get_info(store->segments, &info);
	if (!rebuilds && (!is_last(store) || info.found != SEG_FOUND_CLEAN)) {
		uint32_t highest = found->highest;

		if (losses->found_code == FS_OK)
			journal_found_fini(found);
		*found = (struct journal_found){ .highest = highest };
		if (journal_state_init(&found->state, segments) != FS_OK)
			return FS_ENOMEM;
	} else if (!rebuilds) {
		forget_others(store, &found->state);
	}
	fill_options(store, found->state.option);
	found->state.served_s = served_s;
	found->state.flush_cas = atomic_load(&store->flush_cas);
	found->state.flush_at = at ? (uint64_t)losses_wall(store) + (at > now ? at - now : 0) : 0;
	return FS_OK;
}

static void losses_free(struct store *store)
{
	struct losses *losses = store->losses;

	if (losses->journal)
		journal_destroy(losses->journal);
	else if (losses->medium)
		losses->medium->close(losses->medium);
	journal_found_fini(&losses->found);
	background_fini(&losses->writer);
	pthread_cond_destroy(&losses->advanced);
	lock_fini(&losses->lock);
	mem_free(losses->touched);
	mem_free(losses->ticket);
	mem_free(losses);
	store->losses = NULL;
	atomic_store(&store->losses_bytes, 0);
}

void losses_begin(struct store *store)
{
	struct losses *losses = store->losses;
	uint64_t most = store->flash_capacity / JOURNAL_SHARE;
	struct journal_config config = { .medium = losses->medium,
					 .clock = store->clock,
					 .times = take_times,
					 .advanced = tell_waiters,
					 .wake = wake_writer,
					 .resized = count_memory,
					 .context = losses };
	struct seg_info info;
	int result;

	seg_get_info(store->segments, &info);
	memcpy(config.uuid, info.uuid, sizeof(config.uuid));
	config.epoch = info.attach_epoch;
	config.most_bytes = most < JOURNAL_LEAST ? JOURNAL_LEAST : most;
	config.file_bytes = config.most_bytes / JOURNAL_PARTS;
	result = prepare_state(store, info.segments);
	if (result == FS_OK) {
		result = journal_create(&losses->journal, &config, &losses->found);
		losses->medium = NULL; /* the journal's, or closed */
	}
	if (result != FS_OK) {
		log_warn("journal: it can't be written in %s, so after a crash of the host the flash starts empty: %s",
			 store->config.state_dir, result == FS_EIO ? strerror(errno) : fs_strerror(result));
		losses_free(store);
		return;
	}
	journal_found_fini(&losses->found);
	seg_set_durable(store->segments);
	fidx_tell_losses(store->index, losses_lost, losses);
}

int losses_start(struct store *store)
{
	struct losses *losses = store->losses;

	return losses ? background_start(&losses->writer, "journal", NULL, writer_step, losses) : FS_OK;
}

void losses_stop(struct store *store)
{
	if (store->losses)
		background_stop(&store->losses->writer);
}

void losses_settle(struct store *store)
{
	struct losses *losses = store->losses;

	if (!losses || !losses->journal)
		return;
	while (journal_durable(losses->journal) < journal_newest(losses->journal) && losses_step(losses))
		;
	losses_disown(store);
}

void losses_close(struct store *store)
{
	if (!store->losses)
		return;
	losses_settle(store);
	losses_free(store);
}
