/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of an application, with the number of uses and the value size of each. tracegen plays their
 * lives; the placement study uses their sizes.
 *
 * Threads: any, as the functions are pure; a generator has one owner.
 */
#ifndef FS_TOOLS_COMMON_POPULATION_H
#define FS_TOOLS_COMMON_POPULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "tools/common/app_plan.h"

#define MAX_VALUE_BYTES 1000000u

struct life {
	/* Drawn by population_make: */
	float birth, length; /* seconds, before the daily wave */
	uint32_t gets, sets, refills, deletes; /* to come */
	uint32_t size; /* of the value, bytes */
	uint32_t first_size; /* changed sizes are drawn around it, so that they don't drift */
	uint8_t key_size;
	bool starts_with_set; /* born by a miss and a set, otherwise present from the start */
	bool is_silent; /* no get finds it */
	/* population_make leaves these at zero, for the program that plays the life: */
	bool is_born;
	bool is_absent; /* deleted, and not set again yet */
	bool is_read; /* with a known size, at least once */
	bool is_changed; /* its size, and not read since */
	float progress; /* 0 at birth, 1 at the end */
	uint32_t link; /* the next key of the same slice */
	double next_s; /* of the next request */
};

/* Draws all keys of a plan into zeroed memory for plan->keys: counts, sizes, births and lengths of life.
   The core keys come first, by popularity, then the unread, then the silent ones. */
void population_make(struct life *lives, const struct plan *plan, struct rng *rng);

#endif
