/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a flash file while the flash is in use already: how far it is, what is told of it, and when it is tried again. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "conf/units.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (4u << 20)
#define RETRY_MS 60000u
#define TENTHS 10u

uint64_t seg_allocated_bytes(const struct segments *seg)
{
	return atomic_load_explicit(&seg->allocated_bytes, memory_order_relaxed);
}

uint32_t seg_allocated(const struct segments *seg)
{
	uint64_t bytes = seg_allocated_bytes(seg);
	uint32_t usable = atomic_load_explicit(&seg->usable, memory_order_relaxed), made;

	if (bytes >= atomic_load_explicit(&seg->device_bytes, memory_order_relaxed))
		return usable;
	made = seg_count_for(bytes, seg->segment_bytes);
	return made < usable ? made : usable;
}

static bool is_complete(const struct segments *seg)
{
	return seg_allocated_bytes(seg) >= seg->device->bytes;
}

void allocate_begin(const struct segments *seg)
{
	char left[UNITS_TEXT_BYTES];

	if (!is_complete(seg))
		log_notice("flash: %s of the file are still to be made; segments come into use as they get there",
			   units_show_size(seg->device->bytes - seg_allocated_bytes(seg), left));
}

static void allocate_tell(struct segments *seg)
{
	uint64_t bytes = seg_allocated_bytes(seg), of_bytes = seg->device->bytes;
	unsigned tenth = (unsigned)((double)bytes / (double)of_bytes * TENTHS);
	char made[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];

	if (is_complete(seg))
		log_event(LOG_LEVEL_NOTICE, "flash_allocated", LOG_FIELDS(LOG_NUMBER("BYTES", of_bytes)),
			  "flash: all %s of the file are made", units_show_size(of_bytes, all));
	else if (tenth > seg->allocate_tenth)
		log_info("flash: %s of %s of the file are made", units_show_size(bytes, made),
			 units_show_size(of_bytes, all));
	seg->allocate_tenth = tenth;
}

static bool lacks_room(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* The same error is told once. */
static void allocate_failed(struct segments *seg, int error)
{
	int before = atomic_exchange(&seg->allocate_error, error);
	char made[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];

	seg->allocate_at_ms = clk_now_ms(seg->clock) + RETRY_MS;
	if (before != error)
		log_event(LOG_LEVEL_ERROR, "flash_not_allocated",
			  LOG_FIELDS(LOG_TEXT("ERROR", strerror(error)), LOG_NUMBER("BYTES", seg_allocated_bytes(seg))),
			  "flash: the file can't be made longer than %s of %s: %s; %u of %u segments are used, and "
			  "it is tried again each minute",
			  units_show_size(seg_allocated_bytes(seg), made), units_show_size(seg->device->bytes, all),
			  strerror(error), seg_allocated(seg), seg->super.segments);
	if (!lacks_room(error))
		health_error(seg, "a write of zeros", error);
}

/* One piece. False: not now. */
static bool allocate_piece(struct segments *seg)
{
	int error;

	if (fault_fires(FAULT_device_file_slow))
		return false;
	device_asked(seg);
	error = seg->device->ops->allocate(seg->device, PIECE_BYTES);
	device_answered(seg);
	seg_note_device(seg);
	if (error != 0) {
		allocate_failed(seg, -error);
		return false;
	}
	atomic_store(&seg->allocate_error, 0);
	allocate_tell(seg);
	return true;
}

bool seg_allocate(struct segments *seg, bool (*stop)(void *context), void *context)
{
	uint32_t before = seg_allocated(seg);

	must(seg->magic == SEGMENTS_MAGIC);
	if (is_complete(seg) || health_offline(seg) || clk_now_ms(seg->clock) < seg->allocate_at_ms)
		return false;
	do {
		if (!allocate_piece(seg))
			return false;
	} while (!is_complete(seg) && seg_allocated(seg) == before && !stop(context));
	return !is_complete(seg);
}
