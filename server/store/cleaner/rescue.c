/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A segment whose reads fail gets another home on the device (segments/rescue.h), a piece in each step of the cleaner and no
 * more than RESCUE_RATE. When no segment is free the oldest one makes room, as it would for the next write: its objects are
 * the ones that a flash with one segment less gives up. A failing segment that is itself the oldest one stays, because it is
 * reclaimed next; what can't be read then is swept.
 */
#include <string.h>

#include "base/log.h"
#include "segments/rescue.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/recount.h"

#define RESCUE_RATE (32u << 20) /* bytes per second, in pieces of a MiB */
#define PIECE_MS ((1000u << 20) / RESCUE_RATE)

/* Makes the oldest segment free for a rescue. False: it must stay. */
static bool make_room(struct store *store, uint32_t segment)
{
	uint32_t oldest;

	if (!cleaner_gives_up(store) || !seg_oldest(store->segments, &oldest) || oldest == segment)
		return false;
	recount_finish(store); /* before a reclaim, as for a write */
	return reclaim_segment(store, oldest) && seg_sequence(store->segments, segment) != 0;
}

/* True: one has begun. */
static bool begin(struct store *store)
{
	uint32_t segment;
	int result;

	if (store->rebuild || seg_rescue_find(store->segments, &segment) != FS_OK)
		return false;
	result = seg_rescue_begin(store->segments, segment);
	if (result == FS_EFULL && make_room(store, segment))
		result = seg_rescue_begin(store->segments, segment);
	if (result == FS_OK)
		return true;
	seg_rescue_decline(store->segments, segment);
	if (result == FS_ERANGE)
		log_limited(LOG_LEVEL_WARN,
			    "flash: reads of segment %u fail, and it stays where it is: too much of the drive is bad",
			    segment);
	return false;
}

static void tell_done(const struct seg_rescued *rescued)
{
	log_event(
		LOG_LEVEL_WARN, "segment_rescued",
		LOG_FIELDS(LOG_NUMBER("SEGMENT", rescued->segment), LOG_NUMBER("PAGES", rescued->unreadable)),
		"flash: %u pages of segment %u can't be read; it was copied to another home on the device, and segment %u, which "
		"lies at the bad one, is not used any more",
		rescued->unreadable, rescued->segment, rescued->bad);
}

bool rescue_step(struct store *store)
{
	struct cleaner *cleaner = store->cleaner;
	uint64_t now_ms = clk_now_ms(store->clock);
	struct seg_rescued rescued;

	if (!cleaner->rescues && !begin(store))
		return false;
	cleaner->rescues = true;
	if (now_ms < cleaner->rescue_at_ms)
		return false;
	cleaner->rescue_at_ms = now_ms + PIECE_MS;
	seg_rescue_step(store->segments, &rescued);
	atomic_fetch_sub(&cleaner->write_tokens, (int64_t)rescued.bytes);
	atomic_fetch_sub(&cleaner->ratio_tokens, (int64_t)rescued.bytes);
	cleaner->rescues = rescued.end == SEG_RESCUE_COPYING;
	if (rescued.end == SEG_RESCUE_DONE)
		tell_done(&rescued);
	else if (rescued.end == SEG_RESCUE_NEEDLESS)
		log_info("flash: reads of segment %u failed, and all of it can be read now", rescued.segment);
	else if (rescued.end == SEG_RESCUE_FAILED)
		log_warn("flash: segment %u, whose reads fail, could not be copied: %s", rescued.segment,
			 strerror(rescued.error));
	return false; /* the next piece has its time */
}
