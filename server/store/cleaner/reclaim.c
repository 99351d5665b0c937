/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reclaim: the oldest segment makes room. Its records are walked. An object is live only if its pair has a slot with
 * its tag, this segment, and the function that leads to this very offset. An object that was read while on flash (or
 * every live one, as in the paper) goes back into DRAM with its CLOCK value and features; the others lose their slots.
 * Header and key, which nothing has checked yet, are enough to tell which: a slot that leads there goes in any case. What
 * goes back into DRAM, or is there, is checked. So values that nobody wants are not read where they are long.
 * Only when no slot names the segment and no reader has it pinned may its first byte be overwritten.
 *
 * The segment stays readable during the walk: a get never finds a gap between flash and DRAM.
 */
#include <unistd.h>

#include "base/log.h"
#include "segments/bins.h"
#include "server/store/cleaner/reclaim_internal.h"
#include "server/store/state/bins.h"
#include "server/store/state/losses.h"

#define PIN_WAIT_MS 100
#define PIN_WAITS_LOGGED 50

/* The record as the classifier is asked about it, with the features of the stay that would begin. */
static struct clf_object reclaim_clf_object(const struct reclaim_walk *walk, const struct seg_record *head)
{
	return (struct clf_object){ .hash = walk->hash,
				    .features = &walk->again,
				    .record_bytes = (uint32_t)seg_record_length(head->key_length, head->value_length),
				    .ttl_seconds = store_ttl(head->expiry, walk->now_seconds) };
}

/* Does the object of this header and key go back into DRAM? If the rule asks for its worth now, its features are those of
   a new stay; under others the record's continue. */
static bool reclaim_worth_keeping(struct reclaim_walk *walk, const struct seg_record *head)
{
	const struct store *store = walk->store;
	uint64_t now_ms = clk_now_ms(store->clock);
	struct clf_object object;

	walk->asked = clf_asks_at_eviction(store->classifier); /* once: another thread may set another rule */
	if (!store_alive(store, head->expiry, head->cas, walk->now_seconds))
		return false;
	walk->for_floor = flash_limits_need(store, head);
	if (!walk->asked && !walk->for_floor)
		return !walk->match.ghost &&
		       (walk->match.read_on_flash || store->config.reinsertion == STORE_REINSERT_LIVE);
	if (walk->asked)
		clf_features_again(store->classifier, walk->hash, walk->match.read_on_flash, now_ms, &walk->again);
	if (walk->for_floor)
		return true;
	if (walk->again.past == 0)
		return false; /* nobody has asked for it of late: whatever the budget, it isn't written again */
	object = reclaim_clf_object(walk, head);
	return clf_offer(store->classifier, &object, now_ms);
}

bool reclaim_is_worthy(struct reclaim_walk *walk, const struct seg_record *record)
{
	struct store *store = walk->store;
	uint64_t now_ms = clk_now_ms(store->clock);
	struct clf_object object;

	if (!clf_asks_at_eviction(store->classifier))
		return walk->match.read_on_flash || store->config.reinsertion == STORE_REINSERT_LIVE;
	clf_features_again(store->classifier, walk->hash, walk->match.read_on_flash, now_ms, &walk->again);
	if (walk->again.past == 0)
		return false;
	object = reclaim_clf_object(walk, record);
	if (clf_worth(store->classifier, &object, now_ms) >= clf_threshold(store->classifier))
		return true;
	(void)clf_offer(store->classifier, &object, now_ms);
	return false;
}

struct item *reclaim_item(struct reclaim_walk *walk, const struct seg_record *record)
{
	struct item *item = NULL;

	if (reclaim_worth_keeping(walk, record))
		item = item_from_record(&walk->store->cleaner->context, record, walk->written_ms);
	if (item && walk->asked)
		item_set_features(item, &walk->again);
	return item;
}

void copy_becomes_original(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	if (item->state & ITEM_CLEAN) {
		copy_ends(store, item);
		candidate_score(store, stripe, hash, item);
	}
}

bool reclaim_link(struct reclaim_walk *walk, struct stripe *stripe, struct item *item, unsigned clock)
{
	struct store *store = walk->store;

	if (!stripe_link(store, stripe, walk->hash, item))
		return false;
	item_set_clock(item, clock);
	if (clf_asks_at_eviction(store->classifier))
		candidate_set(store, stripe, item); /* it was offered, and admitted */
	candidate_score(store, stripe, walk->hash, item);
	if (walk->for_floor)
		candidate_set(store, stripe, item);
	walk->reinserted++;
	return true;
}

bool reclaim_walk_fails(struct reclaim_walk *walk)
{
	if (walk->records % RECLAIM_STEP_OBJECTS == 0)
		pace_step(walk->store);
	if (++walk->records > 8 && fault_fires(FAULT_reclaim_walk_fails))
		walk->broken = true;
	return walk->broken;
}

/* Removes the slot or extent of the record, if it is still there. The object goes back into DRAM as this item; NULL: it is
   given up, unless DRAM has it. Takes over the item's reference. False: nothing was done, as DRAM has an object of a key
   that was not checked; were it another one's, this object would be taken for one without a slot. */
static bool reclaim_object(struct reclaim_walk *walk, uint64_t offset, bool is_extent, const struct seg_record *record,
			   bool checked, struct item *item)
{
	struct store *store = walk->store;
	struct stripe *stripe = store_stripe(store, walk->hash);
	bool live, done = true;
	struct item *there;

	if (fault_fires(FAULT_store_reclaim_visit))
		usleep(1000); /* a fault point: clients run meanwhile */
	lock_acquire(&stripe->lock);
	live = is_extent ? extent_is_live(store, walk->segment, walk->sequence, &walk->key, offset, &walk->match)
			 : fidx_find(store->index, &walk->key, &walk->match);
	there = live ? stripe_find(stripe, walk->hash, record->key, record->key_length) : NULL;
	if (there && !checked) {
		done = false;
	} else if (live) {
		if (there) {
			copy_becomes_original(store, stripe, walk->hash, there);
		} else if (item && reclaim_link(walk, stripe, item, walk->match.clock)) {
			item = NULL;
		} else {
			walk->dropped++;
			clf_note_evicted(store->classifier, walk->hash, NULL, clk_now_ms(store->clock));
		}
		fault_kill(FAULT_killed_in_reclaim);
		if (is_extent)
			fidx_extent_remove(store->index, &walk->key, walk->segment, offset);
		else
			fidx_remove(store->index, &walk->key, &walk->match);
	}
	lock_release(&stripe->lock);
	if (item)
		item_release(&store->cleaner->context, item);
	return done;
}

static bool reclaim_want(void *context, uint64_t offset, bool is_extent, const struct seg_record *head)
{
	struct reclaim_walk *walk = context;
	struct store *store = walk->store;

	if (reclaim_walk_fails(walk))
		return false;
	walk->hash = store_hash(store, head->key, head->key_length);
	fidx_key_of(store->index, walk->hash, &walk->key);
	if (!record_is_live(store, walk->segment, walk->sequence, &walk->key, offset, is_extent, &walk->match))
		return false;
	walk->kept = reclaim_worth_keeping(walk, head);
	if (walk->kept)
		flash_limits_keep(store, head);
	return walk->kept || !reclaim_object(walk, offset, is_extent, head, false, NULL);
}

static bool reclaim_visit(void *context, uint64_t offset, bool is_extent, const struct seg_record *record)
{
	struct reclaim_walk *walk = context;
	struct item *item = NULL;

	if (walk->kept)
		item = item_from_record(&walk->store->cleaner->context, record, walk->written_ms);
	if (item && walk->asked)
		item_set_features(item, &walk->again);
	(void)reclaim_object(walk, offset, is_extent, record, true, item);
	return true;
}

/* A segment of bins, or of a chain that is not used any more. */
static void reclaim_close_bins(struct reclaim_walk *walk, int result)
{
	struct store *store = walk->store;

	must(store->frugal);
	frugal_close(store->frugal, walk->segment);
	fault_kill(FAULT_killed_in_close);
	if (result != FS_OK)
		log_limited(LOG_LEVEL_WARN,
			    "flash: segment %u could not be read back whole (%s); what was not read is lost",
			    walk->segment, fs_strerror(result));
}

static void reclaim_clear_remaining(struct reclaim_walk *walk, int result)
{
	struct store *store = walk->store;
	uint64_t left = fidx_segment_slots(store->index, walk->segment), swept;

	fidx_segment_close(store->index, walk->segment);
	units_closed(store, walk->segment);
	fault_kill(FAULT_killed_in_close);
	if (result != FS_OK)
		log_limited(
			LOG_LEVEL_WARN,
			"flash: segment %u could not be read back whole (%s); its %llu slots are swept from the index",
			walk->segment, fs_strerror(result), (unsigned long long)left);
	if (left == 0 && result == FS_OK)
		return;
	swept = fidx_sweep(store->index, walk->segment);
	ctr_add(CTR_segments_swept, 1);
	ctr_add(CTR_flash_objects_dropped, swept);
}

/* Walks over the segment. From then on no index leads to it. */
static void reclaim_records(struct reclaim_walk *walk)
{
	struct store *store = walk->store;
	enum seg_kind kind = seg_kind_of(store->segments, walk->segment);
	uint64_t visited;
	int result = FS_OK;

	if (kind == SEG_CHAIN && store->frugal)
		chain_leave(store, walk->segment, walk->sequence);
	if (kind == SEG_SLOTS)
		result = seg_walk_wanted(store->segments, walk->segment, reclaim_want, reclaim_visit, walk, &visited);
	else if (kind == SEG_BINS && segment_is_open(store, walk->segment))
		result = reclaim_bins(walk);
	if (walk->broken)
		result = FS_ECORRUPT;
	if (kind == SEG_SLOTS)
		reclaim_clear_remaining(walk, result);
	else
		reclaim_close_bins(walk, result);
	must(fidx_segment_slots(store->index, walk->segment) ==
	     0); /* else the new segment's bytes would answer for old keys */
}

/* Readers leave within a read's time. A stuck device holds up the segment, never the workers. */
static bool reclaim_wait_for_readers(struct store *store, uint32_t segment)
{
	for (int waits = 0;; waits++) {
		if (seg_reclaim_end(store->segments, segment, PIN_WAIT_MS) == FS_OK)
			return true;
		if (waits == PIN_WAITS_LOGGED)
			log_limited(LOG_LEVEL_WARN, "flash: reads of segment %u hold up its reuse", segment);
		if (background_is_stopping(&store->cleaner->background))
			return false;
		cleaner_beat(store);
	}
}

/* The floor is about all segments up to one, so that only the oldest one may raise it. */
static void tell_journal(struct store *store, uint32_t segment, uint64_t sequence)
{
	uint32_t oldest;

	if (!store->losses)
		return;
	if (seg_oldest(store->segments, &oldest) && oldest == segment)
		losses_reclaim(store, sequence, cleaner_beat);
	else
		losses_reclaim_early(store, segment, sequence, cleaner_beat);
}

bool reclaim_segment(struct store *store, uint32_t segment)
{
	struct reclaim_walk walk = { .store = store,
				     .segment = segment,
				     .written_ms = seg_written_at_ms(store->segments, segment),
				     .now_seconds = store_now_seconds(store, clk_now_us(store->clock)) };

	walk.sequence = seg_sequence(store->segments, segment);
	tell_journal(store, segment, walk.sequence);
	flash_limits_close(store, segment);
	seg_reclaim_begin(store->segments, segment);
	reclaim_records(&walk);
	context_settle(&store->cleaner->context);
	ctr_add(CTR_flash_objects_reinserted, walk.reinserted);
	ctr_add(CTR_flash_objects_dropped, walk.dropped);
	if (!reclaim_wait_for_readers(store, segment))
		return false;
	bins_forget_reads(store, segment);
	fault_kill(FAULT_killed_in_row);
	tables_tidy(store);
	clf_set_residence(store->classifier, clk_now_ms(store->clock) - walk.written_ms);
	log_debug("flash: segment %u reclaimed: %llu records, %llu back into DRAM, %llu dropped", segment,
		  (unsigned long long)walk.records, (unsigned long long)walk.reinserted,
		  (unsigned long long)walk.dropped);
	return true;
}
