/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: goes through the data area in order of position and looks ahead.
 *
 * The area is taken in parts (layout.h: one position per candidate and part) and each part in
 * windows. In a window every waiting candidate that may start there is known. Backwards over the
 * window the best coverage from each position to the window's end is computed (a record here and the
 * best from its end, or a step of one granule and the best from there); forwards the choices that
 * lead to it are made. A candidate taken meanwhile is passed over: the values stay a good guide.
 * Coverage is what counts; a straddled page and the rank break ties.
 *
 * Memory: 8 bytes per waiting candidate for the positions of a part, a bit for "placed", and a
 * window's arrays.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "segments/plan_internal.h"

#define WINDOW_BYTES (1u << 20)
#define WINDOW_SHIFT_MAX 17u
#define WINDOW_SHIFT_MIN 6u
#define UNITS_PER_BYTE 256u /* of coverage; ties are broken below one byte */
#define STRADDLE_UNITS 64u
#define RANK_UNITS 60u
#define PREFETCH 24u
#define FUNCTION_BITS 5u
#define NONE UINT32_MAX

_Static_assert(SEG_SIMULATED_FUNCTIONS <= 1u << FUNCTION_BITS &&
		       PLAN_CANDIDATES_MAX < 1u << (32 - FUNCTION_BITS),
	       "candidate and function share 32 bits");

struct start {
	uint32_t position;
	uint32_t who; /* candidate << FUNCTION_BITS | function */
};

struct local {
	uint32_t next; /* another one of the same position */
	uint32_t length;
	uint32_t steps; /* granules it takes */
	uint32_t gain;
	uint32_t who;
};

struct sweep {
	struct plan_job *job;
	uint64_t *taken;
	struct start *starts; /* of a part, grouped by window */
	uint32_t *window_first;
	uint32_t window_shift; /* log2 of a window's positions */
	uint64_t rank_scale;   /* RANK_UNITS per candidate, times 2^32 */
	uint32_t starts_max;
	struct local *local;
	uint32_t local_max;
	uint32_t *head;    /* of each position of the window */
	uint32_t *best;    /* coverage in units from each position of the window to its end */
	uint64_t frontier; /* first free position */
};

static inline bool is_taken(const struct sweep *sweep, uint32_t candidate)
{
	return sweep->taken[candidate >> 6] >> (candidate & 63) & 1;
}

/* Calls one(sweep, position, who) for each start of a waiting candidate in the part. */
static inline void each_start(struct sweep *sweep, uint32_t part,
			      void (*one)(struct sweep *sweep, uint32_t position, uint32_t who))
{
	const struct layout_grid *grid = &sweep->job->grid;
	uint32_t first = layout_part_start(grid, part);
	uint32_t width = layout_part_start(grid, part + 1) - first;

	for (uint32_t i = 0; i < sweep->job->count; i++) {
		const struct seg_candidate *candidate = &sweep->job->candidates[i];
		uint64_t hash;
		uint32_t function;

		if (is_taken(sweep, i) || !plan_is_slot(candidate))
			continue;
		hash = layout_place_hash(grid, candidate->place);
		function = (part + grid->parts - layout_turn(grid, hash)) % grid->parts;
		for (; function < grid->functions; function += grid->parts)
			one(sweep, layout_within(hash, function, first, width) - first,
			    i << FUNCTION_BITS | function);
	}
}

static inline void count_start(struct sweep *sweep, uint32_t position, uint32_t who)
{
	(void)who;
	sweep->window_first[(position >> sweep->window_shift) + 1]++;
}

static inline void put_start(struct sweep *sweep, uint32_t position, uint32_t who)
{
	uint32_t *next = &sweep->window_first[position >> sweep->window_shift];

	sweep->starts[(*next)++] = (struct start){position, who};
}

/* Two rounds of hashing instead of one and a second copy: hashes are cheap, memory is not. */
static int gather_part(struct sweep *sweep, uint32_t part, uint32_t windows)
{
	uint32_t most = 0;

	memset(sweep->window_first, 0, (windows + 1) * sizeof(*sweep->window_first));
	each_start(sweep, part, count_start);
	for (uint32_t i = 1; i <= windows; i++) {
		if (sweep->window_first[i] > most)
			most = sweep->window_first[i];
		sweep->window_first[i] += sweep->window_first[i - 1];
	}
	must(sweep->window_first[windows] <= sweep->starts_max);
	each_start(sweep, part, put_start);
	/* Each entry has moved on to the next one's beginning. */
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

/* What a record counts beside its coverage: a little for its rank, less when it straddles a page
   that it could have fitted into. */
static inline uint32_t bonus(const struct sweep *sweep, uint32_t candidate, uint64_t offset,
			     uint32_t length)
{
	uint32_t units = STRADDLE_UNITS;
	uint64_t last = (offset % SEG_PAGE + length - 1) / SEG_PAGE;

	if (last > (length - 1) / SEG_PAGE)
		units = 0;
	return units + (uint32_t)((sweep->job->count - candidate) * sweep->rank_scale >> 32);
}

/* Links the window's starts to their positions. base: its first position, in the area. */
static void load_window(struct sweep *sweep, uint64_t base, uint32_t width, uint32_t part_first,
			const struct start *starts, uint32_t count)
{
	const struct plan_job *job = sweep->job;
	uint32_t granule = job->grid.granule;
	uint32_t n = 0;

	memset(sweep->head, 0xff, width * sizeof(*sweep->head));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t candidate = starts[i].who >> FUNCTION_BITS;
		uint32_t length = job->candidates[candidate].length;
		uint64_t position = part_first + starts[i].position;
		uint32_t at = (uint32_t)(position - base);

		/* They come in no order: each would be a miss in the cache. */
		if (i + PREFETCH < count)
			__builtin_prefetch(&job->candidates[starts[i + PREFETCH].who >> FUNCTION_BITS].length);
		if (position < sweep->frontier || position * granule + length > job->plan->data_bytes)
			continue;
		sweep->local[n] = (struct local){
			.next = sweep->head[at],
			.length = length,
			.steps = (length + granule - 1) / granule,
			.gain = bonus(sweep, candidate, position * granule, length),
			.who = starts[i].who,
		};
		sweep->head[at] = n++;
	}
}

/* What the window covers from position at on when this record is put there. */
static inline uint32_t value_of(const struct sweep *sweep, const struct local *local, uint32_t at,
				uint32_t width)
{
	uint64_t end = at + local->steps;
	uint64_t room = (uint64_t)(width - at) * sweep->job->grid.granule;

	if (end >= width)
		return (uint32_t)(local->length < room ? local->length : room) * UNITS_PER_BYTE +
		       local->gain;
	return local->length * UNITS_PER_BYTE + local->gain + sweep->best[end];
}

static void look_ahead(struct sweep *sweep, uint32_t width)
{
	uint32_t value = 0;

	for (uint32_t at = width; at-- > 0;) {
		for (uint32_t i = sweep->head[at]; i != NONE; i = sweep->local[i].next) {
			uint32_t with = value_of(sweep, &sweep->local[i], at, width);

			if (with > value)
				value = with;
		}
		sweep->best[at] = value;
	}
}

/* The waiting record at this position with the highest value, if that beats leaving a gap. */
static uint32_t choose(const struct sweep *sweep, uint32_t at, uint32_t width)
{
	uint32_t chosen = NONE;
	uint32_t value = at + 1 < width ? sweep->best[at + 1] : 0;

	for (uint32_t i = sweep->head[at]; i != NONE; i = sweep->local[i].next) {
		uint32_t with = value_of(sweep, &sweep->local[i], at, width);

		if (with > value && !is_taken(sweep, sweep->local[i].who >> FUNCTION_BITS)) {
			value = with;
			chosen = i;
		}
	}
	return chosen;
}

/* Places records from the frontier to the window's end. part: how many were gone through before. */
static void walk_window(struct sweep *sweep, uint64_t base, uint32_t width, uint32_t part)
{
	struct plan_job *job = sweep->job;
	uint32_t granule = job->grid.granule;

	if (sweep->frontier < base)
		sweep->frontier = base;
	while (sweep->frontier < base + width) {
		uint32_t i = choose(sweep, (uint32_t)(sweep->frontier - base), width);
		uint32_t candidate;

		if (i == NONE || !plan_fits(job, sweep->frontier * granule + sweep->local[i].length)) {
			sweep->frontier++;
			continue;
		}
		candidate = sweep->local[i].who >> FUNCTION_BITS;
		sweep->taken[candidate >> 6] |= 1ull << (candidate & 63);
		plan_place(job, candidate, job->plan->data_offset + sweep->frontier * granule,
			   sweep->local[i].who & (SEG_SIMULATED_FUNCTIONS - 1));
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
	int rc = gather_part(sweep, part, windows);

	for (uint32_t w = 0; rc == FS_OK && w < windows; w++) {
		uint32_t offset = w << sweep->window_shift;
		uint32_t width = total - offset;
		const struct start *starts = sweep->starts + sweep->window_first[w];

		if (width > window)
			width = window;
		load_window(sweep, first + offset, width, first, starts,
			    sweep->window_first[w + 1] - sweep->window_first[w]);
		look_ahead(sweep, width);
		walk_window(sweep, first + offset, width, part);
	}
	return rc;
}

static void sweep_fini(struct sweep *sweep)
{
	mem_free(sweep->taken);
	mem_free(sweep->starts);
	mem_free(sweep->window_first);
	mem_free(sweep->local);
	mem_free(sweep->head);
	mem_free(sweep->best);
}

static int sweep_init(struct sweep *sweep, struct plan_job *job)
{
	const struct layout_grid *grid = &job->grid;
	uint32_t part_positions = grid->positions / grid->parts + 1;
	uint32_t per_part = (grid->functions + grid->parts - 1) / grid->parts;
	uint32_t shift = WINDOW_SHIFT_MAX, positions;

	while (shift > WINDOW_SHIFT_MIN && (uint64_t)grid->granule << shift > WINDOW_BYTES)
		shift--;
	positions = 1u << shift;
	*sweep = (struct sweep){
		.job = job,
		.window_shift = shift,
		.rank_scale = ((uint64_t)RANK_UNITS << 32) / job->count,
	};
	sweep->starts_max = job->count * per_part;
	sweep->taken = mem_zalloc((job->count / 64 + 1) * sizeof(*sweep->taken));
	sweep->starts = mem_alloc((uint64_t)sweep->starts_max * sizeof(*sweep->starts));
	sweep->window_first = mem_alloc((part_positions / positions + 3) * sizeof(*sweep->window_first));
	sweep->head = mem_alloc(positions * sizeof(*sweep->head));
	sweep->best = mem_alloc(positions * sizeof(*sweep->best));
	if (sweep->taken && sweep->starts && sweep->window_first && sweep->head && sweep->best)
		return FS_OK;
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
