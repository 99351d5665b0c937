/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments of bins, and segments of a chain (FORMAT.md): the two kinds whose records no slot names.
 *
 *   bins    | bin 0: record, record, ..., zeros | bin 1 | ...      a key's bin follows from its x alone
 *   chain   | record | record | ...                                 the writer tells where each one lies
 *
 * x is 64 bits of a key, uniform, which the caller computes; it orders the bins: a greater x lies in the same bin or in a
 * later one. Everything else is as with other segments (segments.h): life, pins, writing, reads, walks.
 */
#ifndef FS_SEGMENTS_BINS_H
#define FS_SEGMENTS_BINS_H

#include "base/hash.h"
#include "segments/segments.h"

#define SEG_BIN_MOST 16384u /* bytes of a bin */
#define SEG_CHAIN_ALIGN 16u /* records of a chain lie at multiples of it */

/* Could bins of that size lie in such a data area? All in bytes. */
static inline bool seg_bins_fit(uint64_t data_offset, uint64_t data_bytes, uint64_t footer_offset, uint32_t bin_bytes)
{
	return bin_bytes >= SEG_PAGE && bin_bytes <= SEG_BIN_MOST && bin_bytes % SEG_PAGE == 0 &&
	       data_offset % SEG_PAGE == 0 && data_bytes >= bin_bytes && data_bytes % bin_bytes == 0 &&
	       data_offset + data_bytes <= footer_offset;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Returns the sequence that the next segment will have. The cleaner. */
uint64_t seg_next_sequence(const struct segments *seg);

/*
 * Plans a segment of bins as seg_plan_make does another one, with the same order of calls and the same errors. Each candidate's
 * place is its key's x; extents and records that are longer than a page wait. It fills each bin from its own candidates, by
 * rank first and then so that little of it stays empty, and takes larger bins where those of a page would stay too empty.
 * Of candidates with the same x none is placed, so that a segment has at most one record of a key.
 */
FS_MUST_CHECK int seg_plan_bins(const struct segments *seg, const struct seg_candidate *candidates, uint32_t count,
				struct seg_plan *out);
/* The same without a flash, for studies. Any thread. */
FS_MUST_CHECK int seg_plan_bins_simulate(uint64_t segment_bytes, uint64_t sequence,
					 const struct seg_candidate *candidates, uint32_t count, struct seg_plan *out);
/*
 * Plans a segment of a chain: records of these lengths (whole records, at least SEG_RECORD_HEADER + 1), in this order, the first
 * ones that fit. plan->placed[i].candidate is i. FS_OK, also if none fits; FS_EINVAL, FS_ENOMEM.
 */
FS_MUST_CHECK int seg_plan_chain(const struct segments *seg, const uint32_t *lengths, uint32_t count,
				 struct seg_plan *out);
/* Returns the bytes for records in a segment of a chain with that many of them, without what their alignment takes. */
uint64_t seg_chain_room(const struct segments *seg, uint32_t records);

/* ---- where records lie ------------------------------------------------------------------------- */

/* Returns a segment's kind. The segment is LIVE or RECLAIMING, and pinned or the caller is the cleaner. Any thread. */
enum seg_kind seg_kind_of(const struct segments *seg, uint32_t segment);
/* A bin within its segment, in bytes. */
struct seg_bin {
	uint64_t offset;
	uint32_t bytes;
};
/* Returns the bin of a key with that x in a segment of bins. Called like seg_kind_of. */
struct seg_bin seg_bin_of(const struct segments *seg, uint32_t segment, uint64_t x);
/* Returns the number of bins. Called like seg_kind_of. */
uint32_t seg_bins(const struct segments *seg, uint32_t segment);

enum seg_bin_says {
	SEG_BIN_FOUND, /* the key's record is there, and its check is right */
	SEG_BIN_ABSENT, /* it is not there, and all records that are there are whole */
	SEG_BIN_EMPTY, /* there is no record at all: its bytes may have been lost */
	SEG_BIN_DAMAGED /* the key's record, or one that may have been it, is damaged */
};
/*
 * Looks for a key's record in the bytes of its bin in the segment with that sequence. FOUND: out points into bytes, and *at is
 * the record's offset within the segment. Called like seg_kind_of.
 */
enum seg_bin_says seg_bin_find(const struct segments *seg, uint32_t segment, uint64_t sequence,
			       const struct seg_bin *bin, const void *bytes, const char *key, size_t key_length,
			       struct seg_record *out, uint64_t *at);

/* ---- reads of the cleaner, and of walks -------------------------------------------------------- */

/* Reads so many bytes at that offset of a segment into memory of the caller's, which is aligned to a page and has room for whole
   pages around them; *from is where in it they begin. FS_OK; FS_EIO, which counts against the error budget; FS_EINVAL: they
   lie outside of the segment. The cleaner, whose waits seg_busy_ms tells (cleaner is true then), or any thread that has pinned the
   segment. Waits for the device. */
FS_MUST_CHECK int seg_read_now(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t bytes, bool cleaner,
			       void *pages, uint64_t room, uint64_t *from);
/*
 * Calls visit for each whole record of the bins first .. first + count - 1, in order of offset; visit returns false to stop. Reads
 * in large pieces. FS_OK; FS_ECORRUPT, FS_EIO: something was skipped; FS_ENOMEM. Called like seg_read_now.
 */
FS_MUST_CHECK int seg_walk_bins(struct segments *seg, uint32_t segment, uint32_t first, uint32_t count, bool cleaner,
				bool (*visit)(void *context, uint64_t offset, const struct seg_record *record),
				void *context);

#endif
