/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments of bins, from the gathering of their candidates to the last commit. Nothing in an index names their records: a
 * segment's column is opened at once, and each object then leaves DRAM in one critical section of its stripe. An object that was
 * changed since it was planned has a kill that is about this segment too; so its record, which is dead, can't be found, not even
 * by the next process if this one is killed here.
 */
#include <unistd.h>

#include "base/log.h"
#include "segments/bins.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/share.h"
#include "server/store/state/bins.h"
#include "server/store/state/recount.h"

#define ITEMS_AHEAD 10u
#define NUMBERS_AHEAD 16u
#define STEP_OBJECTS 32u /* between looks at the time */
#define DUTIES_EACH 4096u /* objects committed between two beats */
#define SHARE_MOST 2u /* of -m: a half, for the index */
#define COLUMN_BYTES_EACH 3u /* of a record, kills included; an estimate */
#define KILL_BYTES_EACH 7u /* of a kill that is listed with columns */
#define RECLAIMS_MOST 4u /* to make room for one segment's column, or for kills */
#define BURST_PART 32u /* of the table */
#define TAKES_MOST 4u /* of kills, one behind the other */

void bins_plan_begin(struct store *store)
{
	frugal_plan_begin(store->frugal, seg_next_sequence(store->segments));
}

void bins_plan_end(struct store *store)
{
	frugal_plan_end(store->frugal);
	tables_tidy(store);
	atomic_store(&store->kills_told, false);
}

uint64_t bins_memory_most(const struct store *store)
{
	return store_memory_limit(store) / SHARE_MOST;
}

/* Has -m room for so many bytes more of the index? */
static bool has_memory(const struct store *store, uint64_t bytes)
{
	return frugal_memory(store->frugal) + bytes <= bins_memory_most(store);
}

bool bins_has_memory(const struct store *store, uint64_t records, uint64_t kills)
{
	return has_memory(store, records * COLUMN_BYTES_EACH) && has_memory(store, kills * KILL_BYTES_EACH);
}

/* The same; where there is none it reclaims some of the oldest segments, with which columns and kills go. Not at the stop, when
   segments are not given up for others, and not where merges make room. */
static FS_MUST_CHECK bool make_memory(struct store *store, uint64_t bytes)
{
	uint32_t oldest;

	if (chain_makes_room(store))
		return has_memory(store, bytes);
	for (unsigned n = 0; n < RECLAIMS_MOST && !has_memory(store, bytes); n++) {
		if (!cleaner_gives_up(store) || !seg_oldest(store->segments, &oldest))
			return false;
		recount_finish(store);
		if (!reclaim_segment(store, oldest))
			return false;
		frugal_tidy(store->frugal);
	}
	return has_memory(store, bytes);
}

bool bins_room(struct store *store, uint64_t records)
{
	int result;

	if (!make_memory(store, records * COLUMN_BYTES_EACH))
		return false;
	result = frugal_reserve(store->frugal, records);
	if (result != FS_OK)
		log_limited(LOG_LEVEL_WARN, "flash: no memory for a column of the frugal index: %s",
			    fs_strerror(result));
	return result == FS_OK;
}

/* ---- the commit ------------------------------------------------------------------------------ */

/* One object: out of the DRAM table, in one critical section, unless its record can't be found. */
static bool commit_one(struct store *store, struct item *item, uint64_t sequence, uint64_t now_ms)
{
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	struct stripe *stripe = store_stripe(store, hash);
	uint32_t now_seconds = store_now_seconds(store, now_ms * 1000);
	struct frugal_key key;
	bool moved = false;

	frugal_key_of(store->frugal, hash, &key);
	lock_acquire(&stripe->lock);
	must(item->state & ITEM_PLANNED);
	item->state &= (uint8_t)~ITEM_PLANNED;
	if (item->state & ITEM_LINKED && stripe->frozen == 0 &&
	    store_alive(store, item->expiry, item->cas, now_seconds) &&
	    !frugal_is_given_up(store->frugal, &key, sequence)) {
		const struct clf_features features = item_features(item);

		moved = true;
		frugal_committed(store->frugal, &key);
		fault_kill(FAULT_killed_in_commit);
		clf_note_moved(store->classifier, hash, &features, now_ms);
		share_note_left(store, hash, item_cost(item));
		stripe_unlink(store, stripe, hash, item);
	} else if (item->state & ITEM_LINKED) {
		item->state |= ITEM_KEPT; /* its record is there as well, and it isn't known to be absent any more */
		frugal_committed(store->frugal, &key);
		candidate_set(store, stripe, item);
	}
	lock_release(&stripe->lock);
	if (moved)
		item_release(&store->cleaner->context, item); /* the table's reference */
	return moved;
}

struct committed {
	uint64_t objects, bytes; /* bytes: of the application */
};

static void commit_all(struct store *store, const struct seg_plan *plan, const struct gathered *gathered,
		       struct committed *out)
{
	uint64_t now_ms = clk_now_ms(store->clock);

	for (uint32_t n = 0; n < plan->count; n++) {
		struct item *item = placed_item(plan, gathered, n);

		prefetch_number(plan, gathered, n + NUMBERS_AHEAD);
		if (n + ITEMS_AHEAD < plan->count)
			item_prefetch(placed_item(plan, gathered, n + ITEMS_AHEAD));
		if (commit_one(store, item, plan->sequence, now_ms)) {
			out->objects++;
			out->bytes += item_object_bytes(item);
		}
		item_release(&store->cleaner->context, item);
		gathered->candidates[plan->placed[n].candidate].item = NULL;
		if (n % STEP_OBJECTS == 0)
			pace_step(store);
		if (n % DUTIES_EACH == DUTIES_EACH - 1)
			cleaner_beat(store);
	}
}

/* Opens the segment's column. */
static int open_column(struct store *store, uint32_t segment, const struct seg_plan *plan,
		       const struct gathered *gathered)
{
	uint64_t bytes = plan->count * sizeof(uint64_t), *x = mem_alloc(bytes);
	int result;

	if (!x)
		return FS_ENOMEM;
	plan_bytes_add(store, bytes);
	for (uint32_t n = 0; n < plan->count; n++)
		x[n] = gathered->candidates[plan->placed[n].candidate].place;
	result = frugal_open(store->frugal, segment, plan->sequence, x, plan->count, plan->stats.placed_bytes);
	plan_bytes_sub(store, bytes);
	mem_free(x);
	return result;
}

void bins_commit(struct store *store, uint32_t segment, const struct seg_plan *plan, const struct gathered *gathered)
{
	struct committed committed = { 0 };
	int result;

	must(plan->extents == 0 && plan->count <= gathered->count);
	fault_kill(FAULT_killed_in_row);
	result = open_column(store, segment, plan, gathered);
	if (result != FS_OK) {
		log_limited(LOG_LEVEL_WARN, "flash: segment %u is written in vain: %s", segment, fs_strerror(result));
		return;
	}
	if (fault_fires(FAULT_cleaner_pause_before_commit))
		usleep(20000); /* a fault point: clients run meanwhile */
	commit_all(store, plan, gathered, &committed);
	ctr_add(CTR_flash_objects_written, committed.objects);
	ctr_add(CTR_flash_object_bytes_written, committed.bytes);
	ctr_add(CTR_flash_dead_on_commit, plan->count - committed.objects);
}

/* ---- between segments ------------------------------------------------------------------------ */

static bool take_kills(struct store *store)
{
	struct frugal_status status;
	bool taken;

	frugal_get_status(store->frugal, &status);
	if (!has_memory(store, status.kills * KILL_BYTES_EACH))
		(void)chain_turn(store);
	taken = make_memory(store, status.kills * KILL_BYTES_EACH) && frugal_take_kills(store->frugal) == FS_OK;
	if (!taken)
		log_limited(LOG_LEVEL_WARN,
			    "flash: the table of kills is crowded, and there is no memory for a longer list");
	tables_tidy(store);
	atomic_store(&store->kills_told, false);
	return taken;
}

/* Did kills come so fast, while those before were taken, that they fill the table within some more such times? */
static bool is_burst(const struct store *store)
{
	struct frugal_status status;

	frugal_get_status(store->frugal, &status);
	return status.kills > status.kills_most / BURST_PART;
}

void bins_step(struct store *store)
{
	if (!store->frugal || !frugal_is_crowded(store->frugal))
		return;
	for (unsigned n = 0; n < TAKES_MOST && frugal_is_crowded(store->frugal); n++)
		if (!take_kills(store))
			break;
	/* A write of the chain takes time. */
	if (!is_burst(store))
		(void)chain_turn(store);
}
