/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the making of an application's keys (population.c) and their lives (source.c). */
#ifndef FS_TOOLS_TRACEGEN_SOURCE_INTERNAL_H
#define FS_TOOLS_TRACEGEN_SOURCE_INTERNAL_H

#include "base/rng.h"
#include "tools/tracegen/source.h"

#define NO_KEY UINT32_MAX
#define MAX_VALUE_BYTES 1000000u

struct life {
	double next_s;                         /* of the next request */
	float birth, length;                   /* before the daily wave */
	float progress;                        /* 0 at birth, 1 at the end */
	uint32_t gets, sets, refills, deletes; /* to come */
	uint32_t size;
	uint32_t first_size; /* what changes go out from, so that they don't drift */
	uint32_t link;       /* the next key of the same slice */
	uint8_t key_size;
	bool starts_with_set; /* born by a miss and a set, otherwise just there */
	bool is_silent;
	bool is_born;
	bool is_absent;  /* deleted, and not set again yet */
	bool is_read;    /* with a known size, at least once */
	bool is_changed; /* its size, and not read since */
};

/* Draws all keys of a plan: counts, sizes, births and lengths of life. */
void population_make(struct life *lives, const struct plan *plan, struct rng *rng);

#endif
