/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/flash_log.h"

#include "base/alloc.h"
#include "base/assert.h"

#define SEGMENTS 64 /* by default */
#define KEEPS 4 /* segments of which all may be kept in a row; of the next, nothing is */
#define SPARE 4 /* segments beyond those that fit, while one is reclaimed */

void flash_init(struct flash_log *log, struct object *objects, uint64_t capacity_bytes, uint64_t segment_bytes,
		flash_keep *keep, void *context)
{
	*log = (struct flash_log){ .objects = objects,
				   .keep = keep,
				   .context = context,
				   .capacity_bytes = capacity_bytes,
				   .segment_bytes = segment_bytes ? segment_bytes : capacity_bytes / SEGMENTS };
	if (log->segment_bytes > capacity_bytes / 2)
		log->segment_bytes = capacity_bytes / 2;
	if (!log->segment_bytes)
		log->segment_bytes = 1;
	log->ring_size = (uint32_t)(capacity_bytes / log->segment_bytes) + SPARE;
	log->ring = mem_must_zalloc(log->ring_size * sizeof(*log->ring));
}

void flash_fini(struct flash_log *log)
{
	mem_free(log->ring);
}

static uint32_t number_of_open(const struct flash_log *log)
{
	return (log->oldest + log->count - 1) % log->ring_size;
}

static void open_segment(struct flash_log *log)
{
	struct flash_segment *segment;

	must(log->count < log->ring_size);
	log->count++;
	segment = &log->ring[number_of_open(log)];
	*segment = (struct flash_segment){ .opened_us = log->now_us, .opened_number = log->now_number };
	list_init(&segment->live);
}

static void put(struct flash_log *log, uint32_t number)
{
	struct object *object = &log->objects[number];
	struct flash_segment *segment;

	if (!log->count || log->ring[number_of_open(log)].bytes >= log->segment_bytes)
		open_segment(log);
	object->segment = number_of_open(log);
	object->state = OBJECT_ON_FLASH;
	segment = &log->ring[object->segment];
	list_push(&segment->live, log->objects, number);
	segment->bytes += object->bytes;
	log->used_bytes += object->bytes;
	log->written_bytes += object->bytes;
	log->live_objects++;
}

static void reclaim(struct flash_log *log, bool may_keep)
{
	struct flash_segment victim = log->ring[log->oldest];

	log->oldest = (log->oldest + 1) % log->ring_size;
	log->count--;
	log->used_bytes -= victim.bytes;
	log->residence_us = log->now_us - victim.opened_us;
	log->residence_requests = log->now_number - victim.opened_number;
	while (victim.live.count) {
		uint32_t number = victim.live.tail;

		list_take(&victim.live, log->objects, number);
		log->objects[number].state = OBJECT_OUT;
		log->live_objects--;
		if (may_keep && log->keep(log->context, number))
			put(log, number);
	}
}

bool flash_append(struct flash_log *log, uint32_t number)
{
	uint64_t bytes = log->objects[number].bytes;
	uint32_t reclaimed = 0;

	if (bytes > log->capacity_bytes / 4)
		return false;
	while (log->used_bytes + bytes > log->capacity_bytes)
		reclaim(log, reclaimed++ < KEEPS);
	put(log, number);
	return true;
}

void flash_remove(struct flash_log *log, uint32_t number)
{
	struct object *object = &log->objects[number];

	list_take(&log->ring[object->segment].live, log->objects, number);
	object->state = OBJECT_OUT;
	log->live_objects--;
}
