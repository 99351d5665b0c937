/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From DRAM to flash: gather, plan, stream the segment out, and only when it is safely written
 * move each object that is still current from the DRAM table into the index (DESIGN 4.6). An
 * object that was changed meanwhile stays what it is now; its old bytes in the segment are dead.
 */
#include <unistd.h>

#include "base/log.h"
#include "server/store/store_internal.h"

struct segment_write {
	struct store *store;
	const struct seg_plan *plan;
	const struct gathered *gathered;
	uint64_t started_ms, issued, segment_bytes;
};

static uint64_t filter_room(void *context, uint64_t n)
{
	const struct store *store = context;

	return fidx_filter_length(store->index, n);
}

static void fill_record(void *context, uint32_t n, struct seg_record *out)
{
	const struct segment_write *write = context;
	uint32_t candidate = write->plan->placed[n].candidate;
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
}

/*
 * Spreads the write over half of the time in which sets would use up the free memory, so that hits
 * see little of it; at most five seconds for a segment, and not at all while the rate of sets is
 * unknown. Between chunks the cleaner's other duties go on.
 */
static void pace(void *context, uint64_t bytes)
{
	struct segment_write *write = context;
	struct store *store = write->store;
	int64_t free_bytes = store_free_bytes(store);
	double rate, seconds;

	write->issued += bytes;
	cleaner_duties(store);
	if (store->config.evict && free_bytes < (int64_t)store->segment_bytes / 4)
		evict_round(&store->cleaner, store, store->segment_bytes / 2);
	rate = store->cleaner.set_rate;
	if (rate <= 0 || free_bytes <= 0)
		return;
	seconds = (double)free_bytes / rate / 2;
	if (seconds > 5)
		seconds = 5;
	double due_ms = seconds * 1000 * (double)write->issued / (double)write->segment_bytes;
	double gone_ms = (double)(clk_now_ms(store->clock) - write->started_ms);
	if (due_ms > gone_ms + 1)
		cleaner_sleep(store, (unsigned)(due_ms - gone_ms));
}

/* Hashes of what is placed, for the filter. NULL when no filter is wanted or memory is out. */
static void *build_filter(struct store *store, const struct seg_plan *plan, const struct gathered *gathered,
			  size_t *length)
{
	uint64_t *hashes;
	void *filter;

	*length = 0;
	if (store->filter_bits == 0 || plan->count == plan->extents)
		return NULL;
	hashes = mem_alloc((plan->count - plan->extents) * sizeof(*hashes));
	if (!hashes)
		return NULL;
	for (uint32_t i = plan->extents; i < plan->count; i++) {
		const struct item *item = gathered->candidates[plan->placed[i].candidate].item;

		hashes[i - plan->extents] = store_hash(store, item_key(item), item->key_length);
	}
	filter = fidx_filter_build(store->index, hashes, plan->count - plan->extents, length);
	mem_free(hashes);
	return filter;
}

/* One object: out of the DRAM table and into the index, in one critical section. */
static bool commit_one(struct store *store, uint32_t segment, const struct seg_placed *placed, struct item *item,
		       bool extent, uint32_t now_seconds)
{
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	struct stripe *stripe = store_stripe(store, hash);
	struct fidx_key key;
	bool moved = false;

	fidx_key_of(store->index, hash, &key);
	lock_acquire(&stripe->lock);
	if (item->state & ITEM_LINKED && stripe->frozen == 0 &&
	    store_alive(store, item->expiry, item->cas, now_seconds)) {
		moved = true;
		if (extent)
			moved = fidx_extent_insert(store->index, &key, segment, placed->offset,
						   (uint32_t)seg_record_length(item->key_length, item->value_length),
						   item_clock(item));
		else
			fidx_insert(store->index, &key, segment, placed->function, item_clock(item));
		if (moved)
			stripe_unlink(store, stripe, hash, item);
	}
	lock_release(&stripe->lock);
	if (moved) {
		ctr_add(CTR_flash_objects_written, 1);
		ctr_add(CTR_flash_object_bytes_written, item_object_bytes(item));
		item_release(&store->cleaner.context, item); /* the table's reference; the plan has its own */
	} else {
		ctr_add(CTR_flash_dead_on_commit, 1);
	}
	return moved;
}

static void commit(struct store *store, uint32_t segment, const struct seg_plan *plan,
		   const struct gathered *gathered, void *filter, size_t filter_length)
{
	uint32_t now_seconds = store_now_seconds(store, clk_now_us(store->clock));
	uint32_t slots = plan->count - plan->extents;
	uint64_t bytes = 0;

	for (uint32_t i = plan->extents; i < plan->count; i++)
		bytes += gathered->candidates[plan->placed[i].candidate].length;
	fidx_segment_open(store->index, segment, plan->sequence, slots ? (uint32_t)(bytes / slots) : 0, filter,
			  filter_length);
	if (fault_fires(FAULT_cleaner_pause_before_commit))
		usleep(20000); /* a fault point: clients run meanwhile */
	for (uint32_t i = 0; i < plan->count; i++)
		commit_one(store, segment, &plan->placed[i], gathered->candidates[plan->placed[i].candidate].item,
			   i < plan->extents, now_seconds);
}

/* The device is gone for now: run on from DRAM, and try again after a while. */
static void writes_failed(struct store *store, int result)
{
	struct cleaner *cleaner = &store->cleaner;

	cleaner->offline_until_ms = clk_now_ms(store->clock) + 1000;
	if (result != FS_EOFFLINE)
		log_warn("flash: a segment could not be written: %s; its objects stay in DRAM", fs_strerror(result));
}

static bool next_segment(struct store *store, uint32_t *segment)
{
	enum seg_state state;
	int result = seg_next(store->segments, segment, &state);

	if (result == FS_OK && state == SEG_LIVE) {
		if (!store->config.evict || !reclaim_segment(store, *segment))
			return false;
		result = seg_next(store->segments, segment, &state);
	}
	if (result == FS_OK && state == SEG_FREE)
		return true;
	store->cleaner.offline_until_ms = clk_now_ms(store->clock) + 1000;
	return false;
}

static bool write_planned(struct store *store, uint32_t segment, const struct seg_plan *plan,
			  const struct gathered *gathered)
{
	struct segment_write write = { .store = store, .plan = plan, .gathered = gathered,
				       .started_ms = clk_now_ms(store->clock),
				       .segment_bytes = store->segment_bytes };
	const struct seg_writer_ops ops = { .record = fill_record, .pace = pace };
	size_t filter_length;
	void *filter = build_filter(store, plan, gathered, &filter_length);
	uint64_t written = 0;
	int result = seg_write(store->segments, segment, plan, filter, filter_length, &ops, &write, &written);

	store->cleaner.write_tokens -= (int64_t)written;
	if (result != FS_OK) {
		mem_free(filter);
		writes_failed(store, result);
		return false;
	}
	commit(store, segment, plan, gathered, filter, filter_length);
	log_debug("flash: segment %u written: %u objects, fill %.4f, granule %u, L %u, %.1f hashes each", segment,
		  plan->count, plan->stats.fill, plan->granule, plan->longest_999,
		  plan->stats.placed ? (double)plan->stats.hashes / (double)plan->stats.placed : 0);
	return true;
}

/* A reclaimed segment and a gathered plan belong together: nothing is reclaimed for too little. */
static bool plan_and_write(struct store *store, const struct gathered *gathered)
{
	struct seg_plan plan;
	uint64_t plan_bytes;
	uint32_t segment;
	bool done;

	if (gathered->bytes < store->segment_bytes - store->segment_bytes / 8 || !next_segment(store, &segment) ||
	    seg_plan_make(store->segments, store->config.placement, gathered->candidates, gathered->count, filter_room,
			  store, &plan) != FS_OK)
		return false;
	plan_bytes = plan.count * sizeof(*plan.placed);
	atomic_fetch_add_explicit(&store->plan_bytes, plan_bytes, memory_order_relaxed);
	done = plan.count > 0 && write_planned(store, segment, &plan, gathered);
	atomic_fetch_sub_explicit(&store->plan_bytes, plan_bytes, memory_order_relaxed);
	seg_plan_fini(&plan);
	return done;
}

bool write_segment(struct store *store, unsigned groups)
{
	struct gathered gathered;
	bool done;

	gather(store, groups, 2 * store->segment_bytes, &gathered);
	done = plan_and_write(store, &gathered);
	gathered_release(store, &gathered);
	return done;
}
