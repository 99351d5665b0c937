/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What applications with limits have on flash: bytes of records, by the segment into which they were written. An object
 * that is changed or deleted leaves its segment without a word of its application. So the bytes that an application
 * still has there are estimated: as great a share of its bytes as of all the segment's objects are left.
 *
 * The counts are in memory alone. Segments of an earlier run, and those from before an application had limits, count
 * nothing until they are written anew, which happens to all within a turn of the flash (limited.flash_counted).
 */
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"

#define FORGET_PART 8 /* of what is kept, at each reclaim */

/* Makes the counts that are missing. Without memory an application's stay unknown for this segment. */
static void counts_make(struct store *store, struct limits *limits, uint64_t sequence)
{
	if (!limits->flash_objects) {
		struct seg_info info;

		seg_get_info(store->segments, &info);
		limits->flash_objects = mem_zalloc(info.segments * sizeof(*limits->flash_objects));
		limits->segments = limits->flash_objects ? info.segments : 0;
	}
	for (uint32_t n = 0; limits->segments && n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);

		if (app->on_flash)
			continue;
		app->on_flash = mem_zalloc(limits->segments * sizeof(*app->on_flash));
		if (app->on_flash)
			app->flash_from = sequence;
	}
}

/* Adds the objects that a segment has of each application. */
static void counts_add(const struct store *store, const struct limits *limits, uint32_t segment,
		       uint64_t sum[STORE_LIMITED_MOST], uint32_t counted[STORE_LIMITED_MOST])
{
	uint64_t sequence = seg_sequence(store->segments, segment);
	uint64_t objects = limits->flash_objects[segment], left = fidx_segment_slots(store->index, segment);

	left = left < objects ? left : objects;
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		const struct limited *app = limits_number(limits, n);

		if (objects == 0 || !app->on_flash || sequence < app->flash_from)
			continue;
		sum[n] += app->on_flash[segment] * left / objects;
		counted[n]++;
	}
}

/* Estimates what each application has on flash: some nanoseconds for each of them and segment. */
static void counts_sum(const struct store *store, const struct limits *limits)
{
	uint64_t sum[STORE_LIMITED_MOST] = { 0 };
	uint32_t counted[STORE_LIMITED_MOST] = { 0 }, segments = 0;

	for (uint32_t segment = 0; segment < limits->segments; segment++) {
		if (!fidx_segment_is_open(store->index, segment))
			continue;
		segments++;
		counts_add(store, limits, segment, sum, counted);
	}
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);

		atomic_store_explicit(&app->flash_bytes, sum[n], memory_order_relaxed);
		atomic_store_explicit(&app->flash_counted, segments ? 1000 * counted[n] / segments : 0,
				      memory_order_relaxed);
	}
}

static void counts_clear(const struct limits *limits, uint32_t segment)
{
	if (segment >= limits->segments)
		return;
	limits->flash_objects[segment] = 0;
	for (uint32_t n = 0; n < limits_names(limits); n++)
		if (limits_number(limits, n)->on_flash)
			limits_number(limits, n)->on_flash[segment] = 0;
}

void flash_limits_open(struct store *store, uint32_t segment, uint64_t sequence)
{
	struct limits *limits = store_limits(store);

	if (!limits)
		return;
	counts_make(store, limits, sequence);
	counts_clear(limits, segment);
}

void flash_limits_opened(struct store *store, uint32_t segment, uint64_t objects)
{
	const struct limits *limits = store_limits(store);

	if (!limits)
		return;
	if (segment < limits->segments)
		limits->flash_objects[segment] = (uint32_t)objects;
	counts_sum(store, limits);
}

void flash_limits_close(struct store *store, uint32_t segment)
{
	const struct limits *limits = store_limits(store);

	if (!limits)
		return;
	counts_clear(limits, segment);
	counts_sum(store, limits);
	for (uint32_t n = 0; n < limits_names(limits); n++) /* some were evicted, or changed */
		limits_number(limits, n)->flash_kept -= limits_number(limits, n)->flash_kept / FORGET_PART;
}

static struct limited *app_of(const struct store *store, const struct seg_record *head)
{
	const struct limits *limits = store_limits(store);

	return limits ? limits_find(limits, head->key, head->key_length) : NULL;
}

bool flash_limits_need(const struct store *store, const struct seg_record *head)
{
	const struct limited *app = app_of(store, head);

	return app && limited_needs_flash(app, app->flash_kept) && limits_may_write(store, head->key, head->key_length);
}

void flash_limits_keep(struct store *store, const struct seg_record *head)
{
	struct limited *app = app_of(store, head);

	if (app)
		app->flash_kept += seg_record_length(head->key_length, head->value_length);
}
