/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts by the beginning of the key: names, each with a number, and counters by number. Two use it: the applications
 * ("stats apps", at most APPS_MAX of them) and "stats detail".
 *
 *   name --hash--> slot --> number --> name (never changes)
 *                             +------> a line of counters in a block of each thread
 *
 * A name keeps its number until the end. When all numbers are given, further names share number 0.
 *
 * Threads: any. Finding a name takes no lock; a new one is added under a leaf lock. Each thread counts in a block of its own.
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

/* What one thread has counted for one number: a line, written by that thread alone. */
struct prefix_row {
	_Atomic uint64_t value[PREFIX_COUNTERS];
};

/* most: names, beside number 0. Aborts when memory is out. */
struct prefixes *prefixes_create(unsigned most);
void prefixes_destroy(struct prefixes *prefixes); /* no thread counts any more; NULL is nothing */

/* The number of a name of 0 .. PREFIX_NAME_MAX bytes, which is added if it is new. 0: there are too many. */
unsigned prefixes_find(struct prefixes *prefixes, const char *name, size_t length);

/* The calling thread's row of a number; it is that until prefixes_destroy. */
struct prefix_row *prefixes_row(struct prefixes *prefixes, unsigned number);

static inline void prefix_row_add(struct prefix_row *row, unsigned counter, uint64_t n)
{
	_Atomic uint64_t *value = &row->value[counter];

	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Names so far; numbers are 1 .. this. */
unsigned prefixes_count(const struct prefixes *prefixes);
/* Of their tables, which are made for the most that there may be, the bytes that are not resident yet. */
uint64_t prefixes_untouched(const struct prefixes *prefixes);
const char *prefixes_name(const struct prefixes *prefixes, unsigned number, size_t *length); /* of 0: "" */
void prefixes_sum(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS]);
/* Since the start, whatever was reset. */
void prefixes_total(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS]);
/* All counters begin at zero again. */
void prefixes_reset(struct prefixes *prefixes);

#endif
