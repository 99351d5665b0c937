/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From DRAM to flash: gathers (gather.c), finds room on flash and in the index (room.c), plans, streams the segment
 * out with its filter (filter.c), and commits it once it is safely written (commit.c).
 */
#include <math.h>

#include "base/log.h"
#include "segments/bins.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/bins.h"
#include "server/store/state/recount.h"

#define NUMBERS_AHEAD 16u /* as in commit.c */
#define ITEMS_AHEAD 10u
#define LINE_BYTES 64u
#define PREFETCH_MAX 1024u
#define STEP_OBJECTS 32u /* between looks at the time */

struct segment_write {
	struct store *store;
	const struct seg_plan *plan;
	const struct gathered *gathered;
	uint64_t began_ms, issued;
	uint64_t newest_cas;
	uint32_t latest_expiry; /* of those that expire */
	bool some_never_expires;
};

static uint64_t write_filter_room(void *context, uint64_t n)
{
	const struct store *store = context;

	return fidx_filter_length(store->index, n);
}

/* Prefetches the candidate that is placed n-th, and its entry. */
static void write_prefetch_record(const struct segment_write *write, uint32_t n)
{
	if (n >= write->plan->count)
		return;
	const struct seg_candidate *candidate = &write->gathered->candidates[write->plan->placed[n].candidate];
	uint32_t bytes = candidate->length < PREFETCH_MAX ? candidate->length : PREFETCH_MAX;

	__builtin_prefetch(&write->gathered->entries[write->plan->placed[n].candidate]);
	for (uint32_t at = 0; at < bytes + sizeof(struct item) - SEG_RECORD_HEADER; at += LINE_BYTES)
		__builtin_prefetch((const char *)candidate->item + at);
}

/* An expiry of 0 is never. */
static void write_note_record(struct segment_write *write, const struct seg_record *record)
{
	if (record->cas > write->newest_cas)
		write->newest_cas = record->cas;
	if (record->expiry == 0)
		write->some_never_expires = true;
	else if (record->expiry > write->latest_expiry)
		write->latest_expiry = record->expiry;
}

static void write_fill_record(void *context, uint32_t n, struct seg_record *out)
{
	struct segment_write *write = context;
	uint32_t candidate = write->plan->placed[n].candidate;

	if (n % STEP_OBJECTS == 0)
		pace_step(write->store);
	prefetch_number(write->plan, write->gathered, n + NUMBERS_AHEAD);
	write_prefetch_record(write, n + ITEMS_AHEAD);
	must(candidate < write->gathered->count);
	struct item *item = write->gathered->candidates[candidate].item;
	const struct plan_entry *entry = &write->gathered->entries[candidate];

	memset(out, 0, sizeof(*out));
	out->key = item_key(item);
	out->key_length = item->key_length;
	out->value = item_value(item);
	out->value_length = item->value_length;
	out->client_flags = item_client_flags(item);
	out->expiry = item->expiry;
	out->cas = item->cas;
	out->item_flags = entry->fetched;
	memcpy(out->features, &entry->features, sizeof(entry->features));
	write_note_record(write, out);
}

static void write_between_chunks(void *context, uint64_t bytes)
{
	struct segment_write *write = context;
	struct store *store = write->store;

	write->issued += bytes;
	cleaner_beat(store);
	pace_write(store, write->began_ms, (double)write->issued / (double)store->segment_bytes);
}

/* ---- the write ------------------------------------------------------------------------------- */

/* The device is gone for now: the store runs on from DRAM and tries again after a second. */
static void write_note_failure(struct store *store, int result)
{
	struct cleaner *cleaner = store->cleaner;

	atomic_store(&cleaner->offline_until_ms, clk_now_ms(store->clock) + 1000);
	if (result != FS_EOFFLINE)
		log_limited(LOG_LEVEL_WARN, "flash: a segment could not be written: %s; its objects stay in DRAM",
			    fs_strerror(result));
}

void cleaner_note_written(struct store *store, uint64_t bytes, int result)
{
	atomic_fetch_sub(&store->cleaner->write_tokens, (int64_t)bytes);
	if (!fill_is_on(store))
		atomic_fetch_sub(&store->cleaner->ratio_tokens, (int64_t)bytes);
	if (result != FS_OK)
		write_note_failure(store, result);
}

static bool write_planned(struct store *store, uint32_t segment, const struct seg_plan *plan,
			  const struct gathered *gathered)
{
	struct segment_write write = {
		.store = store, .plan = plan, .gathered = gathered, .began_ms = clk_now_ms(store->clock)
	};
	const struct seg_writer_ops ops = { .record = write_fill_record, .pace = write_between_chunks };
	size_t filter_length = 0;
	void *filter = gathered->bins ? NULL : filter_make(store, plan, gathered, &filter_length);
	uint64_t written = 0;
	int result;

	result = fill_take(store);
	if (result != FS_OK) {
		mem_free(filter);
		if (result != FS_EBUSY)
			write_note_failure(store, result);
		return false;
	}
	if (gathered->bins)
		bins_note_reads(store, segment, plan->count);
	result = seg_write(store->segments, segment, plan, filter, filter_length, &ops, &write, &written);

	cleaner_note_written(store, written, result);
	if (result != FS_OK) {
		mem_free(filter);
		if (gathered->bins)
			bins_forget_reads(store, segment);
		return false;
	}
	seg_note_content(store->segments, segment, write.newest_cas,
			 write.some_never_expires ? 0 : write.latest_expiry);
	tables_note(store, gathered->bins ? 0 : plan->count - plan->extents);
	/* Without room for all extents some objects stay in DRAM. */
	if (plan->extents > 0)
		(void)!fidx_extents_reserve(store->index, plan->extents);
	if (gathered->bins)
		bins_commit(store, segment, plan, gathered);
	else
		commit_segment(store, segment, store->cleaner->sizing.table, plan, gathered, filter, filter_length);
	tables_tidy(store);
	log_debug("flash: segment %u written: %u objects, fill %.4f, granule %u, L %u, %.1f hashes each", segment,
		  plan->count, plan->stats.fill, plan->granule, plan->longest_999,
		  plan->stats.placed ? (double)plan->stats.hashes / (double)plan->stats.placed : 0);
	return true;
}

/* Planning takes memory in proportion to the candidates; the plan, in proportion to the placed ones. */
static int write_make_plan(struct store *store, const struct gathered *gathered, struct seg_plan *plan)
{
	uint64_t bytes = gathered->count * (uint64_t)SEG_PLAN_BYTES;
	int result;

	plan_bytes_add(store, bytes);
	if (gathered->bins)
		result = seg_plan_bins(store->segments, gathered->candidates, gathered->count, plan);
	else
		result = seg_plan_make(store->segments, store->config.placement, gathered->candidates, gathered->count,
				       write_filter_room, store, plan);
	plan_bytes_sub(store, bytes);
	return result;
}

static bool is_enough(const struct store *store, const struct gathered *gathered)
{
	return place_is_under_way(store) ? gathered->count > 0
					 : gathered->bytes >= store->segment_bytes - store->segment_bytes / 8;
}

/* No segment is reclaimed for a plan that would not fill it. */
static bool write_plan_and_segment(struct store *store, struct gathered *gathered)
{
	struct seg_plan plan;
	uint64_t plan_bytes;
	uint32_t segment;
	bool done;

	if (!is_enough(store, gathered) || !room_on_flash(store, &segment) ||
	    (!gathered->bins && !room_in_index(store, gathered)) || write_make_plan(store, gathered, &plan) != FS_OK)
		return false;
	plan_bytes = plan.count * sizeof(*plan.placed);
	plan_bytes_add(store, plan_bytes);
	done = plan.count > 0 && (!gathered->bins || bins_room(store, plan.count)) &&
	       write_planned(store, segment, &plan, gathered);
	plan_bytes_sub(store, plan_bytes);
	seg_plan_fini(&plan);
	return done;
}

/* Twice as many candidates as fit fill a segment best. When memory is short fewer are gathered, because most of the
   work is in proportion to them: a segment that is filled three percent less costs fewer objects than eviction in the
   meantime. An application near its ceiling could have all of its objects in a larger plan. */
bool write_segment(struct store *store, unsigned groups)
{
	uint64_t want = 2 * store->segment_bytes;
	struct gathered gathered;
	bool done, bins;

	recount_finish(store); /* a stop may come before the count is whole */
	pace_begin(store);
	if (pace_hurry(store) || store->cleaner->ceilings.only)
		want = store->segment_bytes + store->segment_bytes / 4;
	bins = gather_is_for_bins(store, groups);
	if (bins && chain_is_urgent(store) && chain_turn(store))
		return true;
	if (bins)
		bins_plan_begin(store);
	gather_candidates(store, groups, want, store->cleaner->sizing.table, &gathered);
	done = write_plan_and_segment(store, &gathered);
	gathered_release(store, &gathered);
	if (bins)
		bins_plan_end(store);
	if (done)
		pace_end(store);
	if (bins && !frugal_is_crowded(store->frugal)) /* else the next step takes the kills first */
		(void)chain_turn(store);
	return done;
}
