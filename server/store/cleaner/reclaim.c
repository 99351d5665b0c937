/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reclaim: the oldest segment makes room. Its records are walked. An object is live only if its pair has a slot with
 * its tag, this segment, and the function that leads to this very offset. An object that was read while on flash (or
 * every live one, as in the paper) goes back into DRAM with its CLOCK value and features; the others lose their slots.
 * Only when no slot names the segment and no reader has it pinned may its first byte be overwritten.
 *
 * The segment stays readable during the walk: a get never finds a gap between flash and DRAM.
 */
#include <unistd.h>

#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/losses.h"

#define PIN_WAIT_MS 100
#define STEP_OBJECTS 32u
#define PIN_WAITS_LOGGED 50

struct reclaim_walk {
	struct store *store;
	uint32_t segment;
	uint64_t sequence, written_ms;
	uint32_t now_seconds;
	uint64_t records, reinserted, dropped;
	bool broken; /* a fault point */
};

/* Does the object go back into DRAM? Then *again has its features for the stay that begins, if the rule asks for its
   worth now; under others the record's continue. */
static bool reclaim_worth_keeping(const struct reclaim_walk *walk, bool asked, uint64_t hash,
				  const struct fidx_match *match, const struct seg_record *record,
				  struct clf_features *again)
{
	const struct store *store = walk->store;

	if (!store_alive(store, record->expiry, record->cas, walk->now_seconds))
		return false;
	if (asked) {
		uint64_t now_ms = clk_now_ms(store->clock);

		clf_features_again(store->classifier, hash, match->read_on_flash, now_ms, again);
		if (again->past == 0)
			return false; /* nobody has asked for it of late: whatever the budget, it isn't written again */
		return clf_offer(store->classifier,
				 &(struct clf_object){ .hash = hash,
						       .features = again,
						       .record_bytes = (uint32_t)seg_record_length(
							       record->key_length, record->value_length),
						       .ttl_seconds = store_ttl(record->expiry, walk->now_seconds) },
				 now_ms);
	}
	return !match->ghost && (match->read_on_flash || store->config.reinsertion == STORE_REINSERT_LIVE);
}

/* The object of a record that is worth keeping; NULL: it is not, or there is no memory. */
static struct item *reclaim_item(struct reclaim_walk *walk, uint64_t hash, const struct fidx_match *match,
				 const struct seg_record *record)
{
	struct store *store = walk->store;
	bool asked = clf_asks_at_eviction(store->classifier); /* once: another thread may set another rule */
	struct clf_features again;
	struct item *item;

	if (!reclaim_worth_keeping(walk, asked, hash, match, record, &again))
		return NULL;
	item = item_from_record(&store->cleaner->context, record, walk->written_ms);
	if (item && asked)
		item->features = again;
	return item;
}

/* Stripe held: the slot behind a clean copy goes, and the copy becomes the object itself. */
static void copy_becomes_original(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	if (item->state & ITEM_CLEAN) {
		copy_ends(store, item);
		candidate_score(store, stripe, hash, item);
	}
}

static bool reclaim_visit(void *context, uint64_t offset, bool is_extent, const struct seg_record *record)
{
	struct reclaim_walk *walk = context;
	struct store *store = walk->store;
	uint64_t hash = store_hash(store, record->key, record->key_length);
	struct stripe *stripe = store_stripe(store, hash);
	struct item *item, *there;
	struct fidx_key key;
	struct fidx_match match;

	if (walk->records % STEP_OBJECTS == 0)
		pace_step(store);
	if (++walk->records > 8 && fault_fires(FAULT_reclaim_walk_fails)) {
		walk->broken = true;
		return false;
	}
	fidx_key_of(store->index, hash, &key);
	if (!record_is_live(store, walk->segment, walk->sequence, &key, offset, is_extent, &match))
		return true;
	item = reclaim_item(walk, hash, &match, record);
	if (fault_fires(FAULT_store_reclaim_visit))
		usleep(1000); /* a fault point: clients run meanwhile */
	lock_acquire(&stripe->lock);
	if (is_extent ? extent_is_live(store, walk->segment, walk->sequence, &key, offset, &match)
		      : fidx_find(store->index, &key, &match)) {
		there = stripe_find(stripe, hash, record->key, record->key_length);
		if (there) {
			copy_becomes_original(store, stripe, hash, there);
		} else if (item) {
			item_set_clock(item, match.clock);
			stripe_link(store, stripe, hash, item);
			if (clf_asks_at_eviction(store->classifier))
				candidate_set(store, stripe, item); /* it was offered, and admitted */
			candidate_score(store, stripe, hash, item);
			item = NULL;
			walk->reinserted++;
		} else {
			walk->dropped++;
			clf_note_evicted(store->classifier, hash, NULL, clk_now_ms(store->clock));
		}
		fault_kill(FAULT_killed_in_reclaim);
		if (is_extent)
			fidx_extent_remove(store->index, &key, walk->segment, offset);
		else
			fidx_remove(store->index, &key, &match);
	}
	lock_release(&stripe->lock);
	if (item)
		item_release(&store->cleaner->context, item);
	return true;
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

bool reclaim_segment(struct store *store, uint32_t segment)
{
	struct reclaim_walk walk = { .store = store,
				     .segment = segment,
				     .written_ms = seg_written_at_ms(store->segments, segment),
				     .now_seconds = store_now_seconds(store, clk_now_us(store->clock)) };
	uint64_t visited = 0;
	int result;

	walk.sequence = seg_sequence(store->segments, segment);
	if (store->losses)
		losses_reclaim(store, walk.sequence, cleaner_beat);
	seg_reclaim_begin(store->segments, segment);
	result = seg_walk(store->segments, segment, reclaim_visit, &walk, &visited);
	if (walk.broken)
		result = FS_ECORRUPT;
	reclaim_clear_remaining(&walk, result);
	must(fidx_segment_slots(store->index, segment) ==
	     0); /* else the new segment's bytes would answer for old keys */
	context_settle(&store->cleaner->context);
	ctr_add(CTR_flash_objects_reinserted, walk.reinserted);
	ctr_add(CTR_flash_objects_dropped, walk.dropped);
	if (!reclaim_wait_for_readers(store, segment))
		return false;
	fault_kill(FAULT_killed_in_row);
	tables_tidy(store);
	clf_set_residence(store->classifier, clk_now_ms(store->clock) - walk.written_ms);
	log_debug("flash: segment %u reclaimed: %llu records, %llu back into DRAM, %llu dropped", segment,
		  (unsigned long long)visited, (unsigned long long)walk.reinserted, (unsigned long long)walk.dropped);
	return true;
}
