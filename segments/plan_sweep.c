/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: goes through the data area in order of position and looks ahead.
 *
 * The sweep takes the area in parts (layout.h: one position per candidate and part) and each part in
 * windows. In a window it knows every waiting candidate that may start there. Going backwards over the
 * window it computes the best coverage from each position to the window's end: a record here and the
 * best from its end, or a step of one granule and the best from there. Going forwards it makes the choices that
 * lead to that coverage. It passes over a candidate that was taken meanwhile: the values stay a good guide.
 * Coverage decides, less a cost for each page that is crossed without need; the rank breaks ties.
 *
 * When all records have one size, the size is the granule, and dozens of candidates would start at each
 * position: then only the best of the waiting ones are asked, a few times as many as there are positions.
 *
 * Memory: 14 bytes per candidate (its number while it waits, its position in a part, and number and
 * position again, grouped by window), a bit for "placed", and a window's arrays, which should fit into
 * the processor's cache.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "segments/plan_internal.h"

#define WINDOW_RECORDS 512u /* of mean length: about the content of a window */
#define WINDOW_BYTES_MAX (1u << 20)
#define WINDOW_SHIFT_MAX 16u /* start_where has 16 bits */
#define WINDOW_SHIFT_MIN 6u
#define DENSITY_MAX 8u /* candidates asked per position; a share of exp(-8) of the positions finds none */
#define UNITS_PER_BYTE 256u /* of coverage; ties are broken below one byte */
#define CROSSING_UNITS 4096 /* 16 B: much less than the shortest record, so that a gap is no way out */
#define RANK_UNITS 60u
#define PREFETCH 24u
#define STEP_STARTS 4096u /* candidates between two steps: some ten microseconds */
#define NONE UINT32_MAX

struct local {
	uint32_t next; /* another one of the same position */
	uint32_t length;
	uint32_t steps; /* granules it takes */
	int32_t gain;
	uint32_t candidate;
};

struct sweep {
	struct plan_job *job;
	uint64_t *taken;
	uint32_t *waiting; /* candidates not taken when the part began, in order of rank */
	uint32_t waiting_count;
	uint32_t per_part; /* positions of a candidate in a part: one, or more in tiny areas */
	uint32_t *position; /* from the part's start, per_part of each of the first waiting candidates; or NONE */
	uint32_t *start_who; /* candidates that start in the part, grouped by window ... */
	uint16_t *start_where; /* ... and their positions from the window's start */
	uint32_t *window_first;
	uint32_t window_shift; /* log2 of a window's positions */
	uint64_t rank_scale; /* RANK_UNITS per candidate, times 2^32 */
	struct local *local;
	uint32_t local_max;
	uint32_t *head; /* for each position of the window: its first local, or NONE */
	int32_t *best; /* coverage in units from each position of the window to its end */
	uint64_t frontier; /* first free position */
};

static inline bool is_taken(const struct sweep *sweep, uint32_t candidate)
{
	return sweep->taken[candidate >> 6] >> (candidate & 63) & 1;
}

/* Drops the candidates that were taken in the part before. Without a branch, because about half of them were. */
static void update_waiting(struct sweep *sweep)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < sweep->waiting_count; n++) {
		uint32_t candidate = sweep->waiting[n];

		if (n % STEP_STARTS == 0)
			plan_step(sweep->job);
		sweep->waiting[count] = candidate;
		count += !is_taken(sweep, candidate);
	}
	sweep->waiting_count = count;
}

/* Computes the positions in the part for the first count waiting candidates, and counts them by window. */
static void find_positions(struct sweep *sweep, uint32_t part, uint32_t count)
{
	const struct layout_grid *grid = &sweep->job->grid;
	uint32_t first = layout_part_start(grid, part);
	uint32_t width = layout_part_start(grid, part + 1) - first;
	uint32_t *position = sweep->position;

	for (uint32_t n = 0; n < count; n++) {
		uint64_t hash = layout_place_hash(grid, sweep->job->candidates[sweep->waiting[n]].place);
		uint32_t function = layout_first_function(grid, hash, part);

		if (n % STEP_STARTS == 0)
			plan_step(sweep->job);
		for (uint32_t i = 0; i < sweep->per_part; i++, position++, function += grid->parts) {
			*position = NONE;
			if (function >= grid->functions)
				continue;
			*position = layout_within(hash, function, first, width) - first;
			sweep->window_first[(*position >> sweep->window_shift) + 1]++;
		}
	}
}

static void group_by_window(struct sweep *sweep, uint32_t count)
{
	uint32_t mask = (1u << sweep->window_shift) - 1;

	for (uint32_t n = 0; n < count * sweep->per_part; n++) {
		uint32_t position = sweep->position[n];

		if (n % STEP_STARTS == 0)
			plan_step(sweep->job);
		if (position == NONE)
			continue;
		uint32_t at = sweep->window_first[position >> sweep->window_shift]++;
		sweep->start_who[at] = sweep->waiting[sweep->per_part == 1 ? n : n / sweep->per_part];
		sweep->start_where[at] = (uint16_t)(position & mask);
	}
}

static int gather_part(struct sweep *sweep, uint32_t part, uint32_t width, uint32_t windows)
{
	uint32_t most = 0, count;

	update_waiting(sweep);
	count = sweep->waiting_count / DENSITY_MAX < width ? sweep->waiting_count : width * DENSITY_MAX;
	memset(sweep->window_first, 0, (windows + 1) * sizeof(*sweep->window_first));
	find_positions(sweep, part, count);
	for (uint32_t i = 1; i <= windows; i++) {
		if (sweep->window_first[i] > most)
			most = sweep->window_first[i];
		sweep->window_first[i] += sweep->window_first[i - 1];
	}
	group_by_window(sweep, count);
	/* Each entry has moved on to the beginning of the next one. */
	memmove(sweep->window_first + 1, sweep->window_first, windows * sizeof(*sweep->window_first));
	sweep->window_first[0] = 0;
	if (most <= sweep->local_max)
		return FS_OK;
	mem_free(sweep->local);
	sweep->local_max = most + most / 8;
	sweep->local = mem_alloc(sweep->local_max * sizeof(*sweep->local));
	if (!sweep->local) {
		sweep->local_max = 0;
		return FS_ENOMEM;
	}
	return FS_OK;
}

/* The units of a record beside its coverage: a little for its rank, and the cost of a page that it crosses although it
   could lie in fewer. */
static inline int32_t record_gain(const struct sweep *sweep, uint32_t candidate, uint64_t offset, uint32_t length)
{
	uint64_t last = (offset % SEG_PAGE + length - 1) / SEG_PAGE;
	int32_t rank = (int32_t)((sweep->job->count - candidate) * sweep->rank_scale >> 32);

	return last > (length - 1) / SEG_PAGE ? rank - CROSSING_UNITS : rank;
}

/* Links the candidates from first to end to their positions. base: the window's first position in the area. */
static void load_window(struct sweep *sweep, uint64_t base, uint32_t width, uint32_t first, uint32_t end)
{
	const struct plan_job *job = sweep->job;
	uint32_t granule = job->grid.granule;
	uint32_t n = 0;

	memset(sweep->head, 0xff, width * sizeof(*sweep->head));
	for (uint32_t i = first; i < end; i++) {
		uint32_t candidate = sweep->start_who[i];
		uint32_t at = sweep->start_where[i];
		uint32_t length = job->candidates[candidate].length;

		/* They come in no order, so that each would be a cache miss. */
		if (i + PREFETCH < end)
			__builtin_prefetch(&job->candidates[sweep->start_who[i + PREFETCH]].length);
		if (base + at < sweep->frontier || (base + at) * granule + length > job->plan->data_bytes)
			continue;
		sweep->local[n] = (struct local){
			.next = sweep->head[at],
			.length = length,
			.steps = (length + granule - 1) / granule,
			.gain = record_gain(sweep, candidate, (base + at) * granule, length),
			.candidate = candidate,
		};
		sweep->head[at] = n++;
	}
	must(n <= sweep->local_max);
}

/* The window's coverage from position at on, with this record there. */
static inline int32_t value_of(const struct sweep *sweep, const struct local *local, uint32_t at, uint32_t width)
{
	uint64_t end = at + local->steps;
	uint64_t room = (uint64_t)(width - at) * sweep->job->grid.granule;

	if (end >= width)
		return (int32_t)((local->length < room ? local->length : room) * UNITS_PER_BYTE) + local->gain;
	return (int32_t)(local->length * UNITS_PER_BYTE) + local->gain + sweep->best[end];
}

static void look_ahead(struct sweep *sweep, uint32_t width)
{
	int32_t value = 0;

	for (uint32_t at = width; at-- > 0;) {
		for (uint32_t i = sweep->head[at]; i != NONE; i = sweep->local[i].next) {
			int32_t with = value_of(sweep, &sweep->local[i], at, width);

			if (with > value)
				value = with;
		}
		sweep->best[at] = value;
	}
}

/* The waiting record at this position with the highest value, if that beats leaving a gap. */
static uint32_t choose_record(const struct sweep *sweep, uint32_t at, uint32_t width)
{
	uint32_t chosen = NONE;
	int32_t value = at + 1 < width ? sweep->best[at + 1] : 0;

	for (uint32_t i = sweep->head[at]; i != NONE; i = sweep->local[i].next) {
		int32_t with = value_of(sweep, &sweep->local[i], at, width);

		if (with > value && !is_taken(sweep, sweep->local[i].candidate)) {
			value = with;
			chosen = i;
		}
	}
	return chosen;
}

/* The function that leads the candidate to this position of the part. */
static uint32_t function_of(const struct sweep *sweep, uint32_t candidate, uint32_t part, uint64_t position)
{
	const struct layout_grid *grid = &sweep->job->grid;
	uint32_t first = layout_part_start(grid, part);
	uint32_t width = layout_part_start(grid, part + 1) - first;
	uint64_t hash = layout_place_hash(grid, sweep->job->candidates[candidate].place);
	uint32_t function = layout_first_function(grid, hash, part);

	while (layout_within(hash, function, first, width) != position) {
		function += grid->parts;
		must(function < grid->functions);
	}
	return function;
}

/* Places records from the frontier to the window's end. part: the number of parts before this one. */
static void walk_window(struct sweep *sweep, uint64_t base, uint32_t width, uint32_t part)
{
	struct plan_job *job = sweep->job;
	uint32_t granule = job->grid.granule;

	if (sweep->frontier < base)
		sweep->frontier = base;
	while (sweep->frontier < base + width) {
		uint32_t i = choose_record(sweep, (uint32_t)(sweep->frontier - base), width);
		uint32_t candidate;

		if (i == NONE || !plan_fits(job, sweep->frontier * granule + sweep->local[i].length)) {
			sweep->frontier++;
			continue;
		}
		candidate = sweep->local[i].candidate;
		must(!is_taken(sweep, candidate) && sweep->local[i].steps > 0);
		sweep->taken[candidate >> 6] |= 1ull << (candidate & 63);
		plan_place(job, candidate, job->plan->data_offset + sweep->frontier * granule,
			   function_of(sweep, candidate, part, sweep->frontier));
		job->plan->stats.hashes += part + 1;
		sweep->frontier += sweep->local[i].steps;
	}
}

static int sweep_part(struct sweep *sweep, uint32_t part)
{
	uint32_t first = layout_part_start(&sweep->job->grid, part);
	uint32_t total = layout_part_start(&sweep->job->grid, part + 1) - first;
	uint32_t window = 1u << sweep->window_shift;
	uint32_t windows = (total + window - 1) >> sweep->window_shift;
	int rc = gather_part(sweep, part, total, windows);

	for (uint32_t w = 0; rc == FS_OK && w < windows; w++) {
		uint32_t offset = w << sweep->window_shift;
		uint32_t width = total - offset;

		plan_step(sweep->job);
		if (width > window)
			width = window;
		load_window(sweep, first + offset, width, sweep->window_first[w], sweep->window_first[w + 1]);
		look_ahead(sweep, width);
		plan_step(sweep->job);
		walk_window(sweep, first + offset, width, part);
	}
	return rc;
}

static void sweep_fini(struct sweep *sweep)
{
	mem_free(sweep->taken);
	mem_free(sweep->waiting);
	mem_free(sweep->position);
	mem_free(sweep->start_who);
	mem_free(sweep->start_where);
	mem_free(sweep->window_first);
	mem_free(sweep->local);
	mem_free(sweep->head);
	mem_free(sweep->best);
}

/* Log2 of a window's positions: about as many as WINDOW_RECORDS records of mean length take. */
static uint32_t window_shift(const struct plan_job *job, uint64_t slots, uint64_t bytes)
{
	uint64_t wanted = slots ? bytes / slots * WINDOW_RECORDS : 0;
	uint32_t shift = WINDOW_SHIFT_MAX;

	if (wanted > WINDOW_BYTES_MAX)
		wanted = WINDOW_BYTES_MAX;
	while (shift > WINDOW_SHIFT_MIN && (uint64_t)job->grid.granule << shift > wanted)
		shift--;
	return shift;
}

static int sweep_init(struct sweep *sweep, struct plan_job *job)
{
	const struct layout_grid *grid = &job->grid;
	uint32_t per_part = (grid->functions + grid->parts - 1) / grid->parts, positions;
	uint64_t starts = (uint64_t)job->count * per_part, bytes = 0;

	*sweep = (struct sweep){
		.job = job,
		.per_part = per_part,
		.rank_scale = ((uint64_t)RANK_UNITS << 32) / job->count,
		.taken = mem_zalloc((job->count / 64 + 1) * sizeof(*sweep->taken)),
		.waiting = mem_alloc(job->count * sizeof(*sweep->waiting)),
		.position = mem_alloc(starts * sizeof(*sweep->position)),
		.start_who = mem_alloc(starts * sizeof(*sweep->start_who)),
		.start_where = mem_alloc(starts * sizeof(*sweep->start_where)),
	};
	if (!sweep->taken || !sweep->waiting || !sweep->position || !sweep->start_who || !sweep->start_where)
		goto fail;
	for (uint32_t i = 0; i < job->count; i++) {
		if (!plan_is_slot(&job->candidates[i]))
			continue;
		sweep->waiting[sweep->waiting_count++] = i;
		bytes += job->candidates[i].length;
	}
	sweep->window_shift = window_shift(job, sweep->waiting_count, bytes);
	positions = 1u << sweep->window_shift;
	sweep->window_first = mem_alloc((grid->positions / grid->parts / positions + 3) * sizeof(*sweep->window_first));
	sweep->head = mem_alloc(positions * sizeof(*sweep->head));
	sweep->best = mem_alloc(positions * sizeof(*sweep->best));
	if (sweep->window_first && sweep->head && sweep->best)
		return FS_OK;
fail:
	sweep_fini(sweep);
	return FS_ENOMEM;
}

int plan_sweep(struct plan_job *job)
{
	struct sweep sweep;
	int rc;

	if (job->grid.parts == 0 || job->count == 0)
		return FS_OK;
	rc = sweep_init(&sweep, job);
	if (rc != FS_OK)
		return rc;
	for (uint32_t part = 0; rc == FS_OK && part < job->grid.parts; part++)
		rc = sweep_part(&sweep, part);
	sweep_fini(&sweep);
	return rc;
}
