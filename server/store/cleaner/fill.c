/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filling. Flash that holds nothing is worth nothing, and to fill it costs one write of the drive. So as long as segments are
 * free, or flushed or expired as a whole, what memory would evict goes to flash, whatever --flash-write-ratio says;
 * --flash-write-limit holds. The ratio holds from the time when the flash has turned once. What the fill brought in is
 * judged when its segment is reclaimed, like anything else.
 */
#include "segments/fill.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/losses.h"

#define EMPTY_LEAST 2u /* a full flash has a free segment for a moment, whenever one was reclaimed */
#define TTL_LEAST_S 60u /* of an object that is worth a write */

bool fill_would_matter(const struct store *store)
{
	return store_write_ratio(store) > 0 && store->config.evict && clf_asks_at_eviction(store->classifier);
}

bool fill_is_on(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->filling, memory_order_relaxed);
}

/* While the index is rebuilt, segments that will be found again are free. Where the index is full, free segments move on
   with each that is written. */
static bool has_empty_segments(const struct store *store)
{
	uint32_t now_seconds = store_now_seconds(store, clk_now_us(store->clock));

	if (store->rebuild || tables_are_full(store))
		return false;
	return seg_next_hold_nothing(store->segments, EMPTY_LEAST, atomic_load(&store->flush_cas), now_seconds);
}

bool cleaner_has_room(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->has_room, memory_order_relaxed);
}

void fill_look(struct store *store)
{
	bool room = cleaner_takes_writes(store) && has_empty_segments(store);
	bool on = room && fill_would_matter(store) && seg_fill_allows(store->segments, losses_wall(store));

	atomic_store_explicit(&store->cleaner->has_room, room, memory_order_relaxed);
	atomic_store_explicit(&store->cleaner->filling, on, memory_order_relaxed);
}

int fill_take(struct store *store)
{
	int result = fill_is_on(store) ? seg_fill_take(store->segments, losses_wall(store)) : FS_OK;

	if (result != FS_OK)
		atomic_store_explicit(&store->cleaner->filling, false, memory_order_relaxed);
	return result;
}

bool fill_takes(const struct clf_object *object)
{
	return object->ttl_seconds == 0 || object->ttl_seconds >= TTL_LEAST_S;
}
