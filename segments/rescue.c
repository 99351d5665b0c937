/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/rescue.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (1u << 20)

struct seg_rescue {
	uint32_t segment, spare; /* spare: the segment whose home is copied to; it is held */
	uint64_t sequence, offset; /* offset: copied so far */
	uint32_t unreadable; /* pages */
	uint8_t *piece; /* PIECE_BYTES */
};

/* ---- finding and beginning ------------------------------------------------------------------- */

static bool is_time(const struct segments *seg)
{
	return !seg->move && !seg->rescue && !health_offline(seg) && clk_now_ms(seg->clock) >= seg->rescue_at_ms &&
	       seg_allocated_bytes(seg) >= seg->device->bytes;
}

int seg_rescue_find(struct segments *seg, uint32_t *segment)
{
	if (!atomic_load_explicit(&seg->failing, memory_order_acquire) || !is_time(seg))
		return FS_ENOTFOUND;
	atomic_store(&seg->failing, false); /* before the look: an error meanwhile sets it again */
	for (uint32_t n = 0; n < seg->segments; n++) {
		const struct seg_live *live = seg_live_at(seg, n);

		if (live->state != SEG_LIVE || atomic_load_explicit(&live->read_errors, memory_order_relaxed) == 0)
			continue;
		atomic_store(&seg->failing, true); /* there may be others */
		*segment = n;
		return FS_OK;
	}
	return FS_ENOTFOUND;
}

void seg_rescue_decline(struct segments *seg, uint32_t segment)
{
	atomic_store_explicit(&seg_live_at(seg, segment)->read_errors, 0, memory_order_relaxed);
	seg->rescue_at_ms = clk_now_ms(seg->clock) + SEG_RESCUE_PAUSE_MS;
}

/* May one more home be bad? */
static bool may_lose_another(const struct segments *seg)
{
	uint32_t bad = 0, usable = atomic_load_explicit(&seg->usable, memory_order_relaxed);

	for (uint32_t n = 0; n < usable; n++)
		bad += seg_live_at(seg, n)->use == HOME_BAD;
	return bad < usable / SEG_RESCUE_SHARE && 2 * (bad + 1) <= LAYOUT_HOMES_MOST;
}

/* Finds the FREE segment that would be written last. */
static bool find_spare(const struct segments *seg, uint32_t *spare)
{
	uint32_t usable = seg_allocated(seg), at = seg->cursor;

	for (uint32_t n = 0; n < seg->segments; n++) {
		at = at > 0 ? at - 1 : seg->segments - 1;
		if (at >= usable || seg_live_at(seg, at)->state != SEG_FREE)
			continue;
		*spare = at;
		return true;
	}
	return false;
}

int seg_rescue_begin(struct segments *seg, uint32_t segment)
{
	struct seg_rescue *rescue;
	uint32_t spare;

	must(!seg->rescue && !seg->move && !seg->stream && seg_live_at(seg, segment)->state == SEG_LIVE);
	if (!may_lose_another(seg))
		return FS_ERANGE;
	if (!find_spare(seg, &spare))
		return FS_EFULL;
	rescue = mem_zalloc(sizeof(*rescue));
	if (rescue)
		rescue->piece = mem_aligned(SEG_PAGE, PIECE_BYTES);
	if (!rescue || !rescue->piece) {
		mem_free(rescue);
		return FS_ENOMEM;
	}
	rescue->segment = segment;
	rescue->spare = spare;
	rescue->sequence = seg_sequence(seg, segment);
	seg->rescue = rescue;
	seg_set_use(seg, spare, HOME_HELD, SEG_RETIRED);
	return FS_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void rescue_free(struct segments *seg)
{
	mem_free(seg->rescue->piece);
	mem_free(seg->rescue);
	seg->rescue = NULL;
}

/* The spare segment is written again when the state allows it: RETIRED, when the device is back. */
static void give_up(struct segments *seg, enum seg_state state)
{
	seg_set_use(seg, seg->rescue->spare, HOME_IN_USE, state);
	rescue_free(seg);
}

void rescue_cancel(struct segments *seg)
{
	if (seg->rescue)
		give_up(seg, SEG_FREE);
}

static void fail(struct segments *seg, int error, struct seg_rescued *out)
{
	seg_rescue_decline(seg, seg->rescue->segment);
	out->end = SEG_RESCUE_FAILED;
	out->error = -error;
	/* Where the superblock may be there after all, no segment is written to the home that it gives to another one: the
	   device comes back with a superblock that was written anew. */
	give_up(seg, SEG_RETIRED);
	homes_put(seg, &seg->super, 0, 0, false);
	ctr_add(CTR_flash_write_errors, 1);
	health_error(seg, "a write", -error);
}

/* The copy is whole. Both homes change by one write of the superblock. */
static void swap_homes(struct segments *seg, struct seg_rescued *out)
{
	struct seg_rescue *rescue = seg->rescue;
	struct seg_live *live = seg_live_at(seg, rescue->segment), *spare = seg_live_at(seg, rescue->spare);
	uint64_t home = atomic_load(&live->home);
	int error;

	device_asked(seg);
	error = seg->device->ops->flush(seg->device);
	fault_kill(FAULT_killed_in_rescue);
	if (error == 0) {
		homes_put(seg, &seg->super, rescue->segment, rescue->spare, true);
		error = super_store(seg->device, seg->clock, &seg->super) == FS_OK ? 0 : errno ? -errno : -ENOMEM;
	}
	device_answered(seg);
	fault_kill(FAULT_killed_in_rescue);
	if (error != 0) {
		fail(seg, error, out);
		return;
	}
	/* Before the home: who finds the copy knows that it lacks pages. */
	atomic_store(&live->partial, true);
	atomic_store(&live->home, atomic_load(&spare->home));
	atomic_store(&spare->home, home);
	seg_set_use(seg, rescue->spare, HOME_BAD, SEG_RETIRED);
	atomic_store_explicit(&live->read_errors, 0, memory_order_relaxed);
	out->end = SEG_RESCUE_DONE;
	ctr_add(CTR_segments_rescued, 1);
	rescue_free(seg);
	fault_kill(FAULT_killed_in_rescue);
}

/* ---- copying --------------------------------------------------------------------------------- */

/* 0 or a negative errno of the write. */
static int copy_piece(struct segments *seg, uint64_t *written)
{
	struct seg_rescue *rescue = seg->rescue;
	uint64_t left = seg->segment_bytes - rescue->offset, bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
	uint64_t to = seg_offset(seg, rescue->spare) + rescue->offset;
	int error;

	device_asked(seg);
	rescue->unreadable += dev_read_what_can_be(seg->device, rescue->piece, bytes,
						   seg_offset(seg, rescue->segment) + rescue->offset);
	error = seg->device->ops->write(seg->device, rescue->piece, bytes, to);
	if (error == 0)
		error = seg->device->ops->settle(seg->device, to, bytes);
	device_answered(seg);
	if (error != 0)
		return error;
	ctr_add(CTR_flash_bytes_written, bytes);
	*written = bytes;
	rescue->offset += bytes;
	return 0;
}

void seg_rescue_step(struct segments *seg, struct seg_rescued *out)
{
	struct seg_rescue *rescue = seg->rescue;
	int error;

	*out = (struct seg_rescued){ .end = rescue ? SEG_RESCUE_COPYING : SEG_RESCUE_NONE };
	if (!rescue)
		return;
	must(!seg->stream);
	out->segment = rescue->segment;
	out->bad = rescue->spare;
	if (health_offline(seg) || seg_sequence(seg, rescue->segment) != rescue->sequence) {
		out->end = SEG_RESCUE_OVER;
		rescue_cancel(seg);
		return;
	}
	error = copy_piece(seg, &out->bytes);
	out->unreadable = rescue->unreadable;
	if (error != 0) {
		fail(seg, error, out);
	} else if (rescue->offset == seg->segment_bytes && rescue->unreadable == 0) {
		out->end = SEG_RESCUE_NEEDLESS;
		seg_rescue_decline(seg, rescue->segment);
		rescue_cancel(seg);
	} else if (rescue->offset == seg->segment_bytes) {
		swap_homes(seg, out);
	}
}
