/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts by the beginning of the key: names, each with a number, and counters by number. The counts of applications
 * ("stats apps", at most APPS_MAX of them) and of "stats detail" are made by it.
 *
 *   name --hash--> slot --> number --> name (never changes)
 *                             +------> a line of counters in a block of each thread
 *
 * A name keeps its number until the end. When all numbers are given, further names share number 0.
 *
 * Threads: any. Finding a name takes no lock; a new one is added under a leaf lock. Each thread counts in a block of
 * its own.
 */
#ifndef FS_SERVER_COUNT_PREFIXES_H
#define FS_SERVER_COUNT_PREFIXES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFIX_COUNTERS 8u
#define PREFIX_NAME_MAX 250u

struct prefixes;

/* One thread's counts for one number: a cache line, which that thread alone writes. */
struct prefix_row {
	_Atomic uint64_t value[PREFIX_COUNTERS];
};

/* Returns a table for at most `most` names, beside number 0. Aborts when memory is out. The caller owns it. */
struct prefixes *prefixes_create(unsigned most);
/* Frees it, when no thread counts in it any more. NULL is nothing. */
void prefixes_destroy(struct prefixes *prefixes);

/* Returns the number of a name of 0 .. PREFIX_NAME_MAX bytes, 1 or more, and adds the name if it is new. Returns 0 if
   there are too many names, or memory is out. Takes a leaf lock to add one, and none to find one. */
unsigned prefixes_find(struct prefixes *prefixes, const char *name, size_t length);

/* Returns the calling thread's row of a number. It stays the same until prefixes_destroy. Allocates the first time;
   aborts when memory is out. */
struct prefix_row *prefixes_row(struct prefixes *prefixes, unsigned number);

/* Adds n to a counter (0 .. PREFIX_COUNTERS - 1) of row, which must be the calling thread's own. */
static inline void prefix_row_add(struct prefix_row *row, unsigned counter, uint64_t n)
{
	_Atomic uint64_t *value = &row->value[counter];

	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Returns how many names there are; their numbers are 1 .. this. */
unsigned prefixes_count(const struct prefixes *prefixes);
/* Returns the bytes of its tables that are not resident yet: they are made for the most names that there may be. */
uint64_t prefixes_untouched(const struct prefixes *prefixes);
/* Returns the name of a number, without a 0 behind it; *length: its bytes. Number 0 has the name "". It lives until
   prefixes_destroy. */
const char *prefixes_name(const struct prefixes *prefixes, unsigned number, size_t *length);
/* Fills out with the sums over all threads since the last reset. */
void prefixes_sum(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS]);
/* Fills out with the sums over all threads since the start, whatever was reset. */
void prefixes_total(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS]);
/* Makes prefixes_sum begin at 0 again, for all numbers. */
void prefixes_reset(struct prefixes *prefixes);

#endif
