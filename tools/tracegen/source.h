/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One application's requests in the order of time.
 *
 * Every key has its life: a birth, a length, and a number of gets, overwrites, refills and
 * deletes during it, densest at its start. A calendar holds each key at the time of its next
 * request, so the memory grows with the keys and not with the length of the trace:
 *
 *   calendar   | slice | slice | slice |   each a list of keys, unordered
 *                  |
 *                  v
 *   heap       the keys of the slice under way, earliest first
 *
 * Time runs with a daily wave of +-50 % and a phase per application.
 *
 * Threads: one. The same plan and seed give the same requests.
 */
#ifndef FS_TOOLS_TRACEGEN_SOURCE_H
#define FS_TOOLS_TRACEGEN_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/common/app_plan.h"

enum event_op { EVENT_GET, EVENT_SET, EVENT_DELETE, EVENT_ADD, EVENT_INCR, EVENT_STATS, EVENT_OTHER, EVENT_OPS };

struct event {
	double time_s;
	uint32_t key; /* of the application: 0 to plan->keys - 1 */
	uint32_t key_size;
	int32_t value_size; /* -1 = unknown: deletes, and gets that missed */
	enum event_op op;
	bool hit; /* gets: found in production */
};

struct source;

/* create aborts when memory is out and copies the plan; destroy frees. */
struct source *source_create(const struct plan *plan, uint64_t seed);
void source_destroy(struct source *source);

/* Fills in the next request, or returns false at the end. */
FS_MUST_CHECK bool source_next(struct source *source, struct event *event);

#endif
