/* SPDX-License-Identifier: BSD-3-Clause */
/* The weighted Count-Min sketch. One hash gives all four columns (Kirsch and Mitzenmacher). */
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/store/request/sketch.h"

#define COUNTER_MOST 255u

_Static_assert(SKETCH_RESEED + SKETCH_HEAVIEST == COUNTER_MOST, "a reseeded counter has room for any weight");

void sketch_init(struct sketch *sketch, uint32_t width)
{
	must(width > 0);
	*sketch = (struct sketch){ .counters = mem_must_zalloc(sketch_bytes(width)), .width = width };
}

void sketch_fini(struct sketch *sketch)
{
	mem_free(sketch->counters);
	*sketch = (struct sketch){ 0 };
}

/* Keys of one stripe share bits of their hashes, so the hash is mixed again. */
static void sketch_find(const struct sketch *sketch, uint64_t hash, uint8_t *at[SKETCH_ROWS])
{
	uint64_t mixed = hash * 0x9e3779b97f4a7c15ull;
	uint32_t first = (uint32_t)(mixed >> 32), step = (uint32_t)(mixed ^ hash) | 1;

	for (unsigned row = 0; row < SKETCH_ROWS; row++)
		at[row] = &sketch->counters[(uint64_t)row * sketch->width +
					    (((uint64_t)(first + row * step) * sketch->width) >> 32)];
}

/* Empties the sketch, all but the counters that this weight makes overflow. */
static void sketch_empty(struct sketch *sketch, uint8_t *const at[SKETCH_ROWS], unsigned weight)
{
	bool full[SKETCH_ROWS];

	for (unsigned row = 0; row < SKETCH_ROWS; row++)
		full[row] = *at[row] + weight > COUNTER_MOST;
	memset(sketch->counters, 0, sketch_bytes(sketch->width));
	sketch->sum = 0;
	for (unsigned row = 0; row < SKETCH_ROWS; row++) {
		if (full[row]) {
			*at[row] = SKETCH_RESEED;
			sketch->sum += SKETCH_RESEED;
		}
	}
	sketch->emptied++;
}

double sketch_add(struct sketch *sketch, uint64_t hash, unsigned weight)
{
	uint8_t *at[SKETCH_ROWS];
	unsigned least = COUNTER_MOST;
	bool full = false;

	weight = weight < 1 ? 1 : weight > SKETCH_HEAVIEST ? SKETCH_HEAVIEST : weight;
	sketch_find(sketch, hash, at);
	for (unsigned row = 0; row < SKETCH_ROWS; row++)
		full |= *at[row] + weight > COUNTER_MOST;
	if (full)
		sketch_empty(sketch, at, weight);
	for (unsigned row = 0; row < SKETCH_ROWS; row++) {
		*at[row] = (uint8_t)(*at[row] + weight);
		least = *at[row] < least ? *at[row] : least;
	}
	sketch->sum += (uint64_t)SKETCH_ROWS * weight;
	return 100.0 * least / (double)sketch->sum;
}
