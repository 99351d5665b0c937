/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/schedule.h"

#include "base/alloc.h"

static bool earlier(const struct schedule_cursor *a, const struct schedule_cursor *b)
{
	return a->time_us < b->time_us || (a->time_us == b->time_us && a->copy < b->copy);
}

static void sift_down(struct schedule *schedule, uint32_t position)
{
	struct schedule_cursor cursor = schedule->heap[position];

	for (;;) {
		uint32_t child = position * 2 + 1;

		if (child >= schedule->heap_size)
			break;
		if (child + 1 < schedule->heap_size && earlier(&schedule->heap[child + 1], &schedule->heap[child]))
			child++;
		if (!earlier(&schedule->heap[child], &cursor))
			break;
		schedule->heap[position] = schedule->heap[child];
		position = child;
	}
	schedule->heap[position] = cursor;
}

/* The first record at or after a time. */
static uint64_t first_at(const struct spool *spool, int64_t time_us)
{
	uint64_t low = 0, high = spool->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (spool_time_us(spool, middle) < time_us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void schedule_init(struct schedule *schedule, const struct spool *spool, uint32_t copies, uint64_t limit)
{
	*schedule = (struct schedule){ .spool = spool, .heap_size = copies, .limit = limit };
	schedule->heap = mem_must_zalloc(copies * sizeof(*schedule->heap));
	for (uint32_t copy = 0; copy < copies; copy++) {
		struct schedule_cursor *cursor = &schedule->heap[copy];
		int64_t start_us = spool->span_us / copies * copy;

		cursor->copy = copy;
		cursor->left = spool->count;
		cursor->shift_us = -start_us;
		cursor->index = first_at(spool, start_us);
		if (cursor->index == spool->count) {
			cursor->index = 0;
			cursor->shift_us += spool->span_us;
		}
		cursor->time_us = spool_time_us(spool, cursor->index) + cursor->shift_us;
	}
	for (uint32_t position = copies / 2; position-- > 0;)
		sift_down(schedule, position);
}

void schedule_fini(struct schedule *schedule)
{
	mem_free(schedule->heap);
}

uint64_t schedule_total(const struct spool *spool, uint32_t copies, uint64_t limit)
{
	uint64_t total = spool->requests * copies;

	return total < limit ? total : limit;
}

bool schedule_next(struct schedule *schedule, struct schedule_item *item)
{
	struct schedule_cursor *cursor = schedule->heap;
	const struct spool *spool = schedule->spool;

	if (schedule->heap_size == 0 || schedule->number >= schedule->limit)
		return false;
	item->record = &spool->records[cursor->index];
	item->time_us = cursor->time_us;
	item->copy = cursor->copy;
	item->number = schedule->number++;
	if (++cursor->repeat < item->record->repeat)
		return true;
	cursor->repeat = 0;
	if (--cursor->left == 0) {
		schedule->heap[0] = schedule->heap[--schedule->heap_size];
	} else {
		if (++cursor->index == spool->count) {
			cursor->index = 0;
			cursor->shift_us += spool->span_us;
		}
		cursor->time_us = spool_time_us(spool, cursor->index) + cursor->shift_us;
	}
	if (schedule->heap_size > 1)
		sift_down(schedule, 0);
	return true;
}

void schedule_skip(struct schedule *schedule, uint64_t requests)
{
	struct schedule_item item;

	while (requests > 0 && schedule_next(schedule, &item))
		requests--;
}
