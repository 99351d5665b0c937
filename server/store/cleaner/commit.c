/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commit of a segment that is safely written: each object that is still current goes from the DRAM table into the
 * index, in one critical section. An object that was changed meanwhile keeps its change; its bytes in the segment are
 * dead.
 */
#include <unistd.h>

#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"
#include "server/store/dram/share.h"
#include "server/store/state/losses.h"

/* The distances ahead of an object's turn at which its number, its memory and its index buckets are prefetched: each is
   a cache miss, and one miss after the other would be most of the work. */
#define NUMBERS_AHEAD 16u
#define ITEMS_AHEAD 10u
#define BUCKETS_AHEAD 4u /* a power of two */
#define STEP_OBJECTS 32u /* between looks at the time */
#define DUTIES_EACH 4096u /* objects committed between two beats */

/* An object of the plan, looked up a few ahead of its turn. */
struct prepared {
	struct item *item;
	struct stripe *stripe;
	struct fidx_key key;
};

static void commit_prepare(struct store *store, struct item *item, struct prepared *out)
{
	uint64_t hash = store_hash(store, item_key(item), item->key_length);

	out->item = item;
	out->stripe = store_stripe(store, hash);
	__builtin_prefetch(out->stripe);
	fidx_key_of(store->index, hash, &out->key);
	fidx_prefetch(store->index, &out->key);
}

/* One object: out of the DRAM table and into the index, in one critical section. */
static bool commit_one(struct store *store, uint32_t segment, const struct seg_placed *placed,
		       const struct prepared *object, bool extent, uint64_t now_ms)
{
	struct stripe *stripe = object->stripe;
	struct item *item = object->item;
	uint32_t now_seconds = store_now_seconds(store, now_ms * 1000);
	bool moved = false;

	lock_acquire(&stripe->lock);
	must(item->state & ITEM_PLANNED);
	item->state &= (uint8_t)~ITEM_PLANNED;
	if (item->state & ITEM_LINKED && stripe->frozen == 0 &&
	    store_alive(store, item->expiry, item->cas, now_seconds)) {
		moved = true;
		bins_disown(store, item, object->key.hash); /* else it would have a slot and a record in a bin */
		if (extent)
			moved = fidx_extent_insert(store->index, &object->key, segment, placed->offset,
						   (uint32_t)seg_record_length(item->key_length, item->value_length),
						   item_clock(item));
		else
			moved = fidx_insert(store->index, &object->key, segment, placed->function, item_clock(item),
					    cleaner_gives_up(store) ? FIDX_DROP_COLDEST : FIDX_DROP_NONE);
	}
	if (moved) {
		const struct clf_features features = item_features(item);

		fault_kill(FAULT_killed_in_commit);
		clf_note_moved(store->classifier, object->key.hash, &features, now_ms);
		share_note_left(store, object->key.hash, item_cost(item));
		stripe_unlink(store, stripe, object->key.hash, item);
	} else if (item->state & ITEM_LINKED)
		candidate_set(store, stripe, item);
	if (!moved && store->losses)
		losses_dead(store, seg_sequence(store->segments, segment), placed->offset, object->key.tag);
	lock_release(&stripe->lock);
	if (moved)
		item_release(&store->cleaner->context, item); /* the table's reference */
	return moved;
}

struct committed {
	uint64_t objects, bytes;
};

/* Every object of the plan in its turn; the plan's references go with it. */
static void commit_all(struct store *store, uint32_t segment, const struct seg_plan *plan,
		       const struct gathered *gathered, struct committed *out)
{
	uint64_t now_ms = clk_now_ms(store->clock);
	struct prepared prepared[BUCKETS_AHEAD];

	for (uint32_t i = 0; i < plan->count + BUCKETS_AHEAD; i++) {
		if (i >= BUCKETS_AHEAD) {
			uint32_t n = i - BUCKETS_AHEAD;
			struct prepared *object = &prepared[n % BUCKETS_AHEAD];

			bool moved = commit_one(store, segment, &plan->placed[n], object, n < plan->extents, now_ms);

			if (moved) {
				out->objects++;
				out->bytes += item_object_bytes(object->item);
			}
			limits_note_written(store, object->item, segment, moved);
			item_release(&store->cleaner->context, object->item);
			gathered->candidates[plan->placed[n].candidate].item = NULL;
			if (n % STEP_OBJECTS == 0)
				pace_step(store);
			if (n % DUTIES_EACH == DUTIES_EACH - 1)
				cleaner_beat(store);
		}
		prefetch_number(plan, gathered, i + NUMBERS_AHEAD);
		if (i + ITEMS_AHEAD < plan->count)
			item_prefetch(placed_item(plan, gathered, i + ITEMS_AHEAD));
		if (i < plan->count)
			commit_prepare(store, placed_item(plan, gathered, i), &prepared[i % BUCKETS_AHEAD]);
	}
}

void commit_segment(struct store *store, uint32_t segment, unsigned table, const struct seg_plan *plan,
		    const struct gathered *gathered, void *filter, size_t filter_length)
{
	uint32_t slots = plan->count - plan->extents;
	struct committed committed = { 0 };
	uint64_t bytes = plan->stats.placed_bytes;

	must(plan->extents <= plan->count && plan->count <= gathered->count);
	for (uint32_t i = 0; i < plan->extents; i++)
		bytes -= gathered->candidates[plan->placed[i].candidate].length;
	fault_kill(FAULT_killed_in_row);
	fidx_segment_open(store->index, segment, table, plan->sequence, slots ? (uint32_t)(bytes / slots) : 0, filter,
			  filter_length);
	units_opened(store, segment);
	if (fault_fires(FAULT_cleaner_pause_before_commit))
		usleep(20000); /* a fault point: clients run meanwhile */
	flash_limits_open(store, segment, plan->sequence);
	commit_all(store, segment, plan, gathered, &committed);
	flash_limits_opened(store, segment, committed.objects);
	if (store->losses)
		losses_committed(store, segment, plan->sequence, table);
	ctr_add(CTR_flash_objects_written, committed.objects);
	ctr_add(CTR_flash_object_bytes_written, committed.bytes);
	ctr_add(CTR_flash_dead_on_commit, plan->count - committed.objects);
}
