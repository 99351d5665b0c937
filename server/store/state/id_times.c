/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/id_times.h"

#include "base/alloc.h"

/* With 256 marks for ages from a second to a year (2^25 s), neighbours lie some 8 % of their age apart. */
#define MARKS 256u

struct mark {
	uint64_t id; /* this one and greater ones were given at at_ms or later */
	uint64_t at_ms;
};

struct id_times {
	struct lock lock; /* covers all fields */
	unsigned count; /* >= 1 */
	struct mark mark[MARKS]; /* ids and times rise */
};

void id_times_init(struct store *store)
{
	struct id_times *times = mem_must_zalloc(sizeof(*times));

	lock_init(&times->lock, LOCK_LEAF);
	store->id_times = times;
	id_times_begin(store);
}

void id_times_begin(struct store *store)
{
	struct id_times *times = store->id_times;

	lock_acquire(&times->lock);
	times->count = 1;
	times->mark[0] = (struct mark){ atomic_load(&store->cas_next), clk_now_ms(store->clock) };
	lock_release(&times->lock);
}

void id_times_fini(struct store *store)
{
	if (!store->id_times)
		return;
	lock_fini(&store->id_times->lock);
	mem_free(store->id_times);
	store->id_times = NULL;
}

/* Takes out the mark whose neighbours lie closest together for their age. The first and the last one stay. */
static void thin_out(struct id_times *times, uint64_t now_ms)
{
	double least = INFINITY;
	unsigned out = 1;

	for (unsigned i = 1; i + 1 < times->count; i++) {
		const struct mark *mark = &times->mark[i];
		double gap = (double)(mark[1].at_ms - mark[-1].at_ms) / (double)(now_ms - mark[-1].at_ms + 1);

		if (gap < least) {
			least = gap;
			out = i;
		}
	}
	times->count--;
	for (unsigned i = out; i < times->count; i++)
		times->mark[i] = times->mark[i + 1];
}

void id_times_note(struct store *store)
{
	struct id_times *times = store->id_times;
	struct mark mark = { atomic_load_explicit(&store->cas_next, memory_order_relaxed), clk_now_ms(store->clock) };

	lock_acquire(&times->lock);
	if (mark.id > times->mark[times->count - 1].id) {
		if (times->count == MARKS)
			thin_out(times, mark.at_ms);
		must(times->count < MARKS);
		times->mark[times->count++] = mark;
	}
	lock_release(&times->lock);
}

/* The number of the last mark that is not above this id. */
static unsigned mark_before(const struct id_times *times, uint64_t id)
{
	unsigned low = 0, high = times->count;

	while (high - low > 1) {
		unsigned middle = (low + high) / 2;

		if (times->mark[middle].id <= id)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t id_age_seconds(const struct store *store, uint64_t id, uint64_t now_ms, bool *earlier)
{
	struct id_times *times = store->id_times;
	uint64_t at_ms;

	lock_acquire(&times->lock);
	*earlier = id < times->mark[0].id;
	at_ms = times->mark[0].at_ms;
	if (!*earlier) {
		const struct mark *mark = &times->mark[mark_before(times, id)];
		bool last = mark == &times->mark[times->count - 1];
		double part = last ? 0 : (double)(id - mark->id) / (double)(mark[1].id - mark->id);

		at_ms = mark->at_ms + (last ? 0 : (uint64_t)(part * (double)(mark[1].at_ms - mark->at_ms)));
	}
	lock_release(&times->lock);
	return now_ms > at_ms ? (uint32_t)((now_ms - at_ms) / 1000) : 0;
}
