/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part that a partition has in a bundle, or in its chain record: fingerprints by column, the newest column first, and kills.
 * A kill has the number of the first column that it is about: it says that no record of its key in this column, or in any
 * older one, is valid.
 *
 * A chain record is one such part as bytes, for flash:
 *
 *   0   4   format, 1
 *   4   4   columns
 *   8   4   fingerprints
 *   12  4   kills
 *   16      the bits of the lists (lists.h), in words of 8 bytes
 *           fingerprints, 2 bytes each, with zeros up to a multiple of 8
 *           kills, 4 bytes each, in order of their columns; then their columns, 2 bytes each
 *
 * Threads: pure functions, any.
 */
#ifndef FS_FRUGAL_CELL_H
#define FS_FRUGAL_CELL_H

#include "base/error.h"
#include "flashindex/frugal/lists.h"

#define COLUMNS_MOST 65535u /* of a bundle or the chain: there are no more segments than 16383 */
#define NEVER_KILLED UINT32_MAX

/* Pointers lead into memory of the caller's. */
struct cell {
	const struct lists *lists;
	struct lists_range range;
	const uint16_t *values; /* fingerprints of all partitions */
	const uint32_t *kills; /* those of this partition alone */
	const uint16_t *kill_columns;
	uint64_t kill_count;
};

/* Returns the first column that a kill is about, NEVER_KILLED without one. */
static inline uint32_t cell_killed_from(const struct cell *cell, uint32_t kill)
{
	uint64_t at = cell->kill_count ? values32_find(cell->kills, 0, cell->kill_count, kill) : 0;

	return at < cell->kill_count ? cell->kill_columns[at] : NEVER_KILLED;
}

/* Finds the next column with this fingerprint, *at being range.first before the first call. False: there is none. */
static inline bool cell_find(const struct cell *cell, uint16_t fingerprint, uint64_t *at, uint32_t *column)
{
	uint64_t found = values16_find(cell->values, *at, cell->range.end, fingerprint);

	if (found >= cell->range.end)
		return false;
	*at = found + 1;
	*column = lists_column(cell->lists, &cell->range, found);
	return *column < cell->lists->columns;
}

/* ---- chain records --------------------------------------------------------------------------- */

#define CHAIN_FORMAT 1u
#define CHAIN_HEAD 16u

/* A chain record that was read; cell.lists is its own. */
struct chain_record {
	struct lists lists;
	struct cell cell;
};

/* Returns the bytes of a chain record. */
uint64_t chain_record_bytes(uint32_t columns, uint64_t values, uint64_t kills);
/* Judges bytes that may be a chain record with so many columns, at an address that is a multiple of 8; out points into them.
   False: they are none. There may be bytes behind it. */
FS_MUST_CHECK bool chain_record_read(const void *bytes, uint64_t length, uint32_t columns, struct chain_record *out);

/* The parts of a chain record that is made in a buffer of chain_record_bytes zeros, at a multiple of 8. */
struct chain_parts {
	uint64_t *bits;
	uint16_t *values;
	uint32_t *kills;
	uint16_t *kill_columns;
};
/* Writes the head, and tells where the parts belong. */
void chain_record_make(void *bytes, uint32_t columns, uint64_t values, uint64_t kills, struct chain_parts *out);

#endif
