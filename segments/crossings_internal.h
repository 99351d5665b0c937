/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The crossing map of a segment: for each of its pages, four bits that tell how far the last record that begins in the
 * page reaches beyond its end. Only the last one can, so that a read knows how many pages its record needs.
 *
 *   0        no record crosses the end of the page
 *   1 .. 8   the record that does begins in that eighth of the page, and ends in the next page
 *   9 .. 14  it ends at most 2, 3, 4, 6, 8 or 12 pages later
 *   15       nothing is known: L (FORMAT.md) tells the length
 *
 * The map is advice: a read that was too short is followed by a second one. So it is believed as it is found after a
 * restart. One writer, the cleaner; readers need no lock.
 */
#ifndef FS_SEGMENTS_CROSSINGS_INTERNAL_H
#define FS_SEGMENTS_CROSSINGS_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint8_t crossing_pair; /* of two pages, the first one in the low bits */

/* Returns the bytes of the map of a segment, a multiple of 8. */
uint64_t crossings_bytes(uint64_t segment_bytes);
/* Sets all pages to "no record crosses", or to "nothing is known". bytes: of the map. */
void crossings_clear(crossing_pair *map, uint64_t bytes);
void crossings_forget(crossing_pair *map, uint64_t bytes);
/* Notes a record of length >= 1 that begins at offset within the segment. Records of a page come in order of offset; the
   last one counts. */
void crossings_note(crossing_pair *map, uint64_t offset, uint64_t length);
/* Returns the bytes from offset on that hold a whole record, or `length`, whichever is less. length: L, >= 1. */
uint64_t crossings_read_length(const crossing_pair *map, uint64_t offset, uint64_t length);

#endif
