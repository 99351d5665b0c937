/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/source.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/population.h"

#define NO_KEY UINT32_MAX
#define WAVE 0.5
#define WAVE_POINTS 2048
#define KEYS_PER_SLICE 8

struct source {
	struct plan plan;
	struct rng rng;
	struct life *lives;
	uint32_t *slices; /* first key of each */
	uint32_t slice_count;
	uint32_t slice; /* under way */
	uint32_t *heap;
	uint32_t heap_size, heap_room;
	struct event pending; /* the set that follows a miss */
	bool has_pending;
	uint64_t extras; /* requests without a key to come: add, incr, stats, others */
	double extra_s; /* when the next of them is */
	uint64_t known, updates; /* gets of known size so far; sizes changed for a get to come */
	double wave[WAVE_POINTS + 1]; /* the real time that belongs to each part of the time before the wave */
};

/* Inverts the wave's cumulative rate by interpolation, which is exact enough and cheap per event. */
static void make_wave(struct source *source)
{
	double span = source->plan.span_s, day = span / 7, phase = 2 * M_PI * rng_real(&source->rng);
	double turn = 2 * M_PI / day;
	double whole = span - WAVE / turn * (cos(turn * span + phase) - cos(phase));
	uint32_t at = 0;
	double before_real = 0, before = 0;

	for (uint32_t i = 1; i <= 16 * WAVE_POINTS && at <= WAVE_POINTS; i++) {
		double real = span * i / (16 * WAVE_POINTS);
		double sum = real - WAVE / turn * (cos(turn * real + phase) - cos(phase));

		while (at <= WAVE_POINTS && whole * at / WAVE_POINTS <= sum + 1e-9 * whole) {
			double part = (whole * at / WAVE_POINTS - before) / (sum - before);

			source->wave[at++] = before_real + (real - before_real) * fmin(fmax(part, 0), 1);
		}
		before_real = real;
		before = sum;
	}
	while (at <= WAVE_POINTS)
		source->wave[at++] = span;
}

static double real_time(const struct source *source, double time_s)
{
	double position = fmin(fmax(time_s / source->plan.span_s, 0), 1) * WAVE_POINTS;
	uint32_t point = (uint32_t)position;

	if (point >= WAVE_POINTS)
		return source->wave[WAVE_POINTS];
	return source->wave[point] + (source->wave[point + 1] - source->wave[point]) * (position - point);
}

/* --- calendar --------------------------------------------------------------------------------- */

static bool before(const struct source *source, uint32_t a, uint32_t b)
{
	double x = source->lives[a].next_s, y = source->lives[b].next_s;

	return x < y || (x == y && a < b);
}

static void heap_down(struct source *source, uint32_t place)
{
	uint32_t key = source->heap[place];

	for (;;) {
		uint32_t child = place * 2 + 1;

		if (child >= source->heap_size)
			break;
		if (child + 1 < source->heap_size && before(source, source->heap[child + 1], source->heap[child]))
			child++;
		if (!before(source, source->heap[child], key))
			break;
		source->heap[place] = source->heap[child];
		place = child;
	}
	source->heap[place] = key;
}

static void heap_push(struct source *source, uint32_t key)
{
	uint32_t place = source->heap_size++;

	if (source->heap_size > source->heap_room) {
		source->heap_room = source->heap_room ? source->heap_room * 2 : 256;
		source->heap = mem_realloc(source->heap, source->heap_room * sizeof(*source->heap));
	}
	for (; place > 0 && before(source, key, source->heap[(place - 1) / 2]); place = (place - 1) / 2)
		source->heap[place] = source->heap[(place - 1) / 2];
	source->heap[place] = key;
}

static uint32_t slice_of(const struct source *source, double time_s)
{
	uint32_t slice = (uint32_t)(time_s / source->plan.span_s * source->slice_count);

	return slice < source->slice_count ? slice : source->slice_count - 1;
}

static void schedule(struct source *source, uint32_t key, double time_s)
{
	struct life *life = &source->lives[key];
	uint32_t slice;

	life->next_s = fmax(real_time(source, time_s), life->next_s);
	slice = slice_of(source, life->next_s);
	if (slice <= source->slice) {
		heap_push(source, key);
		return;
	}
	life->link = source->slices[slice];
	source->slices[slice] = key;
}

/* The key of the earliest request; NO_KEY at the end. */
static uint32_t earliest(struct source *source)
{
	while (source->heap_size == 0) {
		if (source->slice + 1 >= source->slice_count)
			return NO_KEY;
		source->slice++;
		for (uint32_t key = source->slices[source->slice], link; key != NO_KEY; key = link) {
			link = source->lives[key].link;
			heap_push(source, key);
		}
	}
	return source->heap[0];
}

static void drop_earliest(struct source *source)
{
	source->heap[0] = source->heap[--source->heap_size];
	if (source->heap_size)
		heap_down(source, 0);
}

/* --- a key's life ----------------------------------------------------------------------------- */

/* The next of n moments drawn evenly over what is left of the life, in order: the smallest of n. */
static void schedule_next(struct source *source, uint32_t key)
{
	struct life *life = &source->lives[key];
	uint64_t left = (uint64_t)life->gets + life->sets + life->refills + life->deletes;
	double step;

	if (left == 0)
		return;
	step = 1 - exp(log(1 - rng_real(&source->rng)) / (double)left);
	life->progress += (float)((1 - life->progress) * step);
	schedule(source, key, life->birth + (double)life->length * life->progress * sqrt((double)life->progress));
}

static void fill_event(const struct source *source, uint32_t key, enum event_op op, struct event *event)
{
	const struct life *life = &source->lives[key];

	*event = (struct event){
		.time_s = life->next_s,
		.key = key,
		.key_size = life->key_size,
		.value_size = op == EVENT_DELETE ? -1 : (int32_t)life->size,
		.op = op,
		.hit = op == EVENT_GET,
	};
}

/* Every so often a set brings another size, within a tenth of the first: a hot key's changes would
   move the mean value otherwise. */
static void maybe_change_size(struct source *source, uint32_t key)
{
	struct life *life = &source->lives[key];
	double size = life->first_size * (0.9 + 0.2 * rng_real(&source->rng)) + 0.5;

	if (!life->is_read || life->is_changed || life->gets == 0 ||
	    (double)source->updates >= source->plan.update * (double)source->known)
		return;
	if ((uint32_t)size == life->size)
		size += rng_next(&source->rng) & 1 && size >= 2 ? -1 : 1;
	life->size = size < MAX_VALUE_BYTES ? (uint32_t)size : MAX_VALUE_BYTES - 1;
	life->is_changed = true;
	source->updates++;
}

/* A get that misses, and the set that follows it if with_set. */
static void miss(struct source *source, uint32_t key, bool with_set, struct event *event)
{
	fill_event(source, key, EVENT_GET, event);
	event->hit = false;
	event->value_size = -1;
	if (with_set) {
		fill_event(source, key, EVENT_SET, &source->pending);
		source->has_pending = true;
	}
	source->lives[key].is_absent = false;
}

/* One of the kinds that the life still has, by their numbers. A delete waits where no set is left
   to bring the key back for the gets to come. */
static void live(struct source *source, uint32_t key, struct event *event)
{
	struct life *life = &source->lives[key];
	uint64_t total = (uint64_t)life->gets + life->sets + life->refills + life->deletes;
	uint64_t draw = rng_below(&source->rng, total);
	bool may_delete = life->sets > 0 || life->gets + life->refills == 0;

	if (draw < life->deletes && may_delete) {
		life->deletes--;
		life->is_absent = true;
		fill_event(source, key, EVENT_DELETE, event);
	} else if (life->refills && (draw < life->deletes + (uint64_t)life->refills || life->gets + life->sets == 0)) {
		life->refills--;
		maybe_change_size(source, key);
		miss(source, key, true, event);
	} else if (life->sets && (draw < (uint64_t)life->deletes + life->refills + life->sets || life->gets == 0)) {
		life->sets--;
		life->is_absent = false;
		maybe_change_size(source, key);
		fill_event(source, key, EVENT_SET, event);
	} else if (life->is_absent) {
		life->gets--;
		life->sets--;
		miss(source, key, true, event);
	} else {
		life->gets--;
		life->is_changed = false;
		life->is_read = true;
		source->known++;
		fill_event(source, key, EVENT_GET, event);
	}
}

static void next_of_key(struct source *source, uint32_t key, struct event *event)
{
	struct life *life = &source->lives[key];

	if (!life->is_born && (life->starts_with_set || life->is_silent))
		miss(source, key, life->starts_with_set, event);
	else
		live(source, key, event);
	life->is_born = true;
	drop_earliest(source);
	schedule_next(source, key);
}

/* --- requests without a key of the population -------------------------------------------------- */

static void next_extra(struct source *source, struct event *event)
{
	struct plan *plan = &source->plan;
	uint64_t draw = rng_below(&source->rng, source->extras--);
	uint32_t key = (uint32_t)rng_below(&source->rng, plan->keys);

	fill_event(source, key, EVENT_OTHER, event);
	event->time_s = source->extra_s;
	if (draw < plan->adds) {
		plan->adds--;
		event->op = EVENT_ADD;
	} else if (draw < plan->adds + plan->incrs) {
		plan->incrs--;
		event->op = EVENT_INCR;
		event->value_size = -1;
	} else {
		/* The published total has more stats commands than others; app 23 has the others. */
		plan->others--;
		event->op = plan->app->id == 23 ? EVENT_OTHER : EVENT_STATS;
		event->value_size = -1;
	}
	if (source->extras) {
		double left = plan->span_s - source->extra_s;

		source->extra_s += left * (1 - exp(log(1 - rng_real(&source->rng)) / (double)source->extras));
	}
}

bool source_next(struct source *source, struct event *event)
{
	uint32_t key;

	if (source->has_pending) {
		*event = source->pending;
		source->has_pending = false;
		return true;
	}
	key = earliest(source);
	if (source->extras && (key == NO_KEY || source->extra_s < source->lives[key].next_s)) {
		next_extra(source, event);
		return true;
	}
	if (key == NO_KEY)
		return false;
	next_of_key(source, key, event);
	return true;
}

struct source *source_create(const struct plan *plan, uint64_t seed)
{
	struct source *source = mem_must_zalloc(sizeof(*source));

	source->plan = *plan;
	rng_init(&source->rng, mix64(seed) ^ plan->app->id);
	make_wave(source);
	source->lives = mem_must_zalloc(plan->keys * sizeof(*source->lives));
	population_make(source->lives, plan, &source->rng);
	source->slice_count = (uint32_t)(plan->keys / KEYS_PER_SLICE + 64);
	source->slices = mem_must_zalloc(source->slice_count * sizeof(*source->slices));
	memset(source->slices, 0xff, source->slice_count * sizeof(*source->slices));
	for (uint32_t key = 0; key < plan->keys; key++) {
		const struct life *life = &source->lives[key];

		if (life->gets || life->is_silent)
			schedule(source, key, life->birth);
	}
	source->extras = plan->adds + plan->incrs + plan->others;
	if (source->extras)
		source->extra_s = plan->span_s * rng_real(&source->rng) / (double)source->extras;
	return source;
}

void source_destroy(struct source *source)
{
	mem_free(source->lives);
	mem_free(source->slices);
	mem_free(source->heap);
	mem_free(source);
}
