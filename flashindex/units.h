/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filter units (ElasticBF): a segment's filter as several small Bloom filters with hash functions of their own, all stored
 * with the segment, of which some are in memory. Each unit that is in memory rejects keys by itself, so that a filter of
 * more units passes fewer. Which segment has how many is decided by unit_queues.h.
 *
 * In a footer the units lie one behind the other, each with as many bytes:
 *
 *   +---------+-----+---------+----------------+---------------------------------------------------+
 *   | block 0 | ... | block m | sum of the rest| trailer: "FU", 1, probes, number, units, 0, 0     |
 *   | 64 B    |     | 64 B    | 8 B            | 8 B                                               |
 *   +---------+-----+---------+----------------+---------------------------------------------------+
 *
 * The sum depends on the segment's sequence, so that bytes of another life never pass for a unit: one would reject keys
 * of the segment, and a change of such a key would leave its old slot behind.
 *
 * A unit of n keys has half of the average filter_bits for each, rounded up. Units come and go in the order of their
 * numbers: of k resident ones the numbers are 0 .. k - 1.
 *
 * Threads: the cleaner, while any thread looks up and changes; calls that any thread may make say so.
 */
#ifndef FS_FLASHINDEX_UNITS_H
#define FS_FLASHINDEX_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define FIDX_UNITS_LEAST 2u
#define FIDX_UNITS_MOST 8u

struct fidx;

/* Builds one unit, 0 .. filter_units - 1, over n key hashes at its place in filter, which has fidx_filter_length(index, n)
   bytes of zeros. Units of one filter may be built by several threads at the same time. filter_bits stays as it was when
   the length was asked for. */
void fidx_unit_build(const struct fidx *index, uint64_t sequence, unsigned unit, const uint64_t *hashes, uint64_t n,
		     void *filter, size_t length);
/* Returns the bits per key of a unit that is built now. Any thread. */
unsigned fidx_unit_bits(const struct fidx *index);

struct fidx_units {
	unsigned stored; /* in the footer */
	unsigned resident; /* of these in memory, 1 .. stored */
	uint64_t length; /* of each in the footer, bytes: unit u begins at u * length */
	double pass; /* the share of other keys that the resident ones pass on average: 0 .. 1 for each */
};
/* Fills out. False: the segment is closed, has a whole filter, or no unit in memory. */
FS_MUST_CHECK bool fidx_units_of(const struct fidx *index, uint32_t segment, struct fidx_units *out);

/* Adds the unit with the next number, whose bytes come from the footer of this open segment, and owns them. FS_OK;
   FS_ECORRUPT: they are no such unit, FS_ENOMEM; then nothing has changed. */
FS_MUST_CHECK int fidx_unit_add(struct fidx *index, uint32_t segment, void *bytes, size_t length);
/* Drops the resident unit with the highest number; there is one. Waits for the lookups that use it, as
   fidx_segment_close does. */
void fidx_unit_drop(struct fidx *index, uint32_t segment);

/* Returns how often an open segment's filter was asked for keys of others, or such a key's read went to the segment, since
   the last call. 0 without filter_units. */
uint32_t fidx_units_asked(struct fidx *index, uint32_t segment);

/* May this hash be a key's of the segment by its filter? True without one. Any thread. */
FS_MUST_CHECK bool fidx_filter_passes(struct fidx *index, uint32_t segment, uint64_t hash);

#endif
