/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fills. A part of one is taken out of the superblock before it is written, so that a kill can make a fill shorter and
 * never longer.
 */
#include <errno.h>

#include "base/log.h"
#include "segments/fill.h"
#include "segments/segments_internal.h"

#define FILL_PAUSE_S (24 * 60 * 60) /* from the beginning of a fill to that of the next one, at least */
#define FILL_PARTS 16u

/* Other threads read what the cleaner changes. */
static uint64_t began_s(const struct segments *seg)
{
	return __atomic_load_n(&seg->super.fill_began_s, __ATOMIC_RELAXED);
}

static uint64_t left_bytes(const struct segments *seg)
{
	return __atomic_load_n(&seg->super.fill_left_bytes, __ATOMIC_RELAXED);
}

static uint64_t taken_bytes(const struct segments *seg)
{
	return atomic_load_explicit(&seg->fill_taken_bytes, memory_order_relaxed);
}

static uint64_t all_bytes(const struct segments *seg)
{
	return atomic_load_explicit(&seg->usable, memory_order_relaxed) * seg->segment_bytes;
}

static bool may_begin(const struct segments *seg, int64_t wall_s)
{
	uint64_t last = began_s(seg);

	return wall_s > 0 && (last == 0 || ((uint64_t)wall_s >= last && (uint64_t)wall_s - last >= FILL_PAUSE_S));
}

bool seg_fill_allows(const struct segments *seg, int64_t wall_s)
{
	return taken_bytes(seg) >= seg->segment_bytes || left_bytes(seg) >= seg->segment_bytes ||
	       may_begin(seg, wall_s);
}

static void set_fill(struct layout_super *super, uint64_t began, uint64_t left, uint32_t fills)
{
	__atomic_store_n(&super->fill_began_s, began, __ATOMIC_RELAXED);
	__atomic_store_n(&super->fill_left_bytes, left, __ATOMIC_RELAXED);
	__atomic_store_n(&super->fills, fills, __ATOMIC_RELAXED);
}

/* Takes the next part, and begins a fill for it if need be. */
static int take_part(struct segments *seg, int64_t wall_s)
{
	struct layout_super *super = &seg->super;
	const uint64_t last_began = super->fill_began_s, last_left = super->fill_left_bytes, all = all_bytes(seg);
	const uint32_t last_fills = super->fills;
	uint64_t began = last_began, left = last_left < all ? last_left : all /* the flash was larger */, part;
	uint32_t fills = last_fills;
	int rc;

	if (may_begin(seg, wall_s)) { /* what is left of the one before lapses */
		began = (uint64_t)wall_s;
		left = all;
		fills++;
	} else if (left < seg->segment_bytes) {
		return FS_EBUSY;
	}
	part = all / FILL_PARTS > seg->segment_bytes ? all / FILL_PARTS : seg->segment_bytes;
	if (part > left)
		part = left;
	set_fill(super, began, left - part, fills);
	rc = seg_store_super(seg);
	if (rc != FS_OK) {
		set_fill(super, last_began, last_left, last_fills);
		health_error(seg, "a superblock write", errno);
		return rc;
	}
	atomic_fetch_add_explicit(&seg->fill_taken_bytes, part, memory_order_relaxed);
	if (fills != last_fills)
		log_info(
			"flash: empty segments are filled, whatever --flash-write-ratio says; the next fill may begin in a day");
	return FS_OK;
}

int seg_fill_take(struct segments *seg, int64_t wall_s)
{
	int rc = taken_bytes(seg) >= seg->segment_bytes ? FS_OK : take_part(seg, wall_s);

	if (rc == FS_OK)
		atomic_fetch_sub_explicit(&seg->fill_taken_bytes, seg->segment_bytes, memory_order_relaxed);
	return rc;
}

void fill_end(struct segments *seg)
{
	uint64_t back = atomic_exchange_explicit(&seg->fill_taken_bytes, 0, memory_order_relaxed);

	set_fill(&seg->super, seg->super.fill_began_s, seg->super.fill_left_bytes + back, seg->super.fills);
}

void fill_status(const struct segments *seg, struct seg_status *out)
{
	out->fills = __atomic_load_n(&seg->super.fills, __ATOMIC_RELAXED);
	out->fill_left_bytes = left_bytes(seg) + taken_bytes(seg);
}
