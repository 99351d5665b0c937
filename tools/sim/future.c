/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/future.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/common/schedule.h"

#define NEVER UINT32_MAX

void future_init(struct future *future, const struct sim_run *run)
{
	uint64_t total = schedule_total(run->spool, run->copies, run->limit);
	uint64_t objects = (uint64_t)run->spool->keys * run->copies;
	uint32_t *sizes = mem_must_zalloc((objects + 1) * sizeof(*sizes));
	struct schedule schedule;
	struct schedule_item item;

	must(total < NEVER);
	future->after = mem_must_zalloc((total + 1) * sizeof(*future->after));
	future->upcoming = mem_must_zalloc((objects + 1) * sizeof(*future->upcoming));
	memset(future->upcoming, 0xff, objects * sizeof(*future->upcoming)); /* here: the object's latest request */
	schedule_init(&schedule, run->spool, run->copies, run->limit);
	while (schedule_next(&schedule, &item)) {
		uint32_t object = item.record->key * run->copies + item.copy, *latest = &future->upcoming[object];
		bool changed = run->changed_is_update && sizes[object] != item.record->value_size;
		bool get = item.record->op == TRACE_GET && !changed;

		sizes[object] = item.record->value_size;
		if (*latest != NEVER)
			future->after[*latest] = get ? (uint32_t)item.number : NEVER;
		future->after[item.number] = NEVER;
		*latest = (uint32_t)item.number;
	}
	schedule_fini(&schedule);
	mem_free(sizes);
	memset(future->upcoming, 0xff, objects * sizeof(*future->upcoming));
}

void future_fini(struct future *future)
{
	mem_free(future->after);
	mem_free(future->upcoming);
}

uint64_t future_next_get(void *context, uint32_t object)
{
	const struct future *future = context;
	uint32_t next = future->upcoming[object];

	return next == NEVER ? UINT64_MAX : next;
}
