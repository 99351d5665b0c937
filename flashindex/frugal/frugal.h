/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frugal index: in which segments may the record of a small object lie? It has no slot for each object, and takes
 * about a byte of DRAM for it (BloomStore, section III, with lists of fingerprints in place of Bloom filters).
 *
 *   key hash -> x, 64 bits: order in the flash's segments, partition, fingerprint (16 bits) and kill (32 bits)
 *
 *   known to be absent, or killed?   table of kills                     DRAM
 *   in any segment?                  prefilter, a Bloom filter          DRAM
 *   in a young segment?              bundles, the newest first          DRAM
 *   in an older one?                 the partition's chain record       flash: a read by the caller
 *
 * Model: records of small objects lie in segments of bins (segments.h), at most one of a key in each; the bin follows from x.
 * A segment's column is what is known of its keys: by partition, a fingerprint for each record. The columns of young segments
 * are in bundles in memory, laid out by partition, so that a search looks at a few places and not at each column. Now and
 * then bundles are merged with the chain: a record for each partition, which the caller writes to flash. So a key's
 * candidates are columns with its fingerprint; the newest whose bin has the key is the truth, and a column that matches in
 * vain costs a read.
 *
 * Kills. No slot can be cleared here. A command that makes the record of a key invalid puts a kill into a table, before it is
 * answered: nothing on flash is this key's, the segment that is being written included. The commit of a newer record takes
 * it out. When a bundle is made, it takes the kills in the table over, as kills of all columns that are older than its own. A
 * merge keeps them as long as an older column has the fingerprint. When there is no room for a kill, all
 * records of its partition written so far are given up (the partition's watermark): objects are lost, and nothing stale is
 * found.
 *
 * A column whose segment is gone hides whatever is older: its record may have been the newest one of a key. In FIFO
 * order there is nothing older. So segments may go in any order.
 *
 * Locks: a key's stripe (the caller's) covers its kill, and every call about a key is made under it. Bundles, prefilter and chain
 * change under readers: one thread, the cleaner, publishes them anew, and waits until each stripe was held once
 * (frugal_set_quiesce) before the memory of the old ones is used again. Calls without a word about threads belong to the
 * cleaner.
 *
 * Memory: all of it lies in an area of the region without pointers, so that it outlives the process. Each publication is one
 * store. What a start finds there is judged by its sizes and bounds; wrong bytes can't lead outside of the area.
 *
 * Nothing here does I/O. Errors: codes of base/error.h.
 */
#ifndef FS_FRUGAL_FRUGAL_H
#define FS_FRUGAL_FRUGAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/parts.h"

#define FRUGAL_SEGMENTS_MOST 16383u
#define FRUGAL_PARTITIONS_MOST (1u << 24)
#define FRUGAL_CHAIN_SEGMENTS 1024u /* of one chain, at the most */

struct frugal;
struct region;

struct frugal_config {
	uint32_t segments; /* of the flash: 1 .. FRUGAL_SEGMENTS_MOST */
	uint64_t segment_bytes;
	uint32_t partitions; /* of an empty index; 1 .. frugal_partitions_most */
	uint64_t objects; /* that a full flash is expected to hold: the first prefilter's size. 1 or more */
	uint64_t kill_bytes; /* of the table of kills, about, if the index is made anew; 8 for a kill */
	uint64_t memory_most; /* that bundles, prefilter and places of the chain may ever have. Costs address space */
	uint64_t prefilter_most; /* bytes of one that a merge makes; 0: any */
	double share; /* of the segments whose columns stay in memory: above 0; 1 or more: all, and there is no chain */
	uint64_t seed; /* of the hash of keys; the same for the life of the flash */
};

/* Returns the bytes of address space that the region's area REGION_FRUGAL must have: they follow from the sizes of the flash and
   memory_most. */
uint64_t frugal_region_most(const struct frugal_config *config);
/* Returns the most partitions that an index for a flash of these sizes may have. */
uint32_t frugal_partitions_most(const struct frugal_config *config);
/* Makes an empty index. region: not owned, with an area of that size that has no memory yet. FS_OK; FS_EINVAL, FS_ENOMEM. The
   caller calls frugal_destroy. */
FS_MUST_CHECK int frugal_create(struct frugal **out, const struct frugal_config *config, struct region *region);
/* Frees the handle while no other thread uses it; the area stays as it is. NULL does nothing. */
void frugal_destroy(struct frugal *frugal);
/* quiesce returns when each key stripe was held once since its call: whatever was read under a stripe before is not in use
   any more. Before other threads use the index; without it, there are no others. */
void frugal_set_quiesce(struct frugal *frugal, void (*quiesce)(void *context), void *context);
/* step is called every some ten microseconds of longer work, to let others have the CPU. */
void frugal_set_step(struct frugal *frugal, void (*step)(void *context), void *context);

/* ---- keys ------------------------------------------------------------------------------------ */

/* Returns x of a key's hash. Its high bits order the keys: bins of a segment, and partitions, are ranges of them. */
static inline uint64_t frugal_order(uint64_t hash)
{
	return mix64(hash ^ 0xb10057e0e5a11ba5ull);
}

struct frugal_key {
	uint64_t x;
	uint32_t partition;
};
/* Computes the key of a hash. Any thread. */
void frugal_key_of(const struct frugal *frugal, uint64_t hash, struct frugal_key *out);

/* ---- lookup: any thread, with the key's stripe held ------------------------------------------- */

/* What a search has seen: frugal_is_true compares. */
struct frugal_since {
	uint64_t newest; /* the newest column's sequence */
	uint64_t chain; /* the number of the chain */
};

enum frugal_answer {
	FRUGAL_NOTHING, /* no column matches any more */
	FRUGAL_MATCH, /* segment and sequence of the newest column that may have the key */
	FRUGAL_CHAIN, /* it may be in the chain: the record at this place has to be read, and given to frugal_find_in */
	FRUGAL_AGAIN, /* frugal_find_in: another chain was published meanwhile: ask frugal_find again. Whoever wants what was true at
			 the first call passes the sequence behind the newest one of then, at the least */
	FRUGAL_DAMAGED /* frugal_find_in: the bytes are no chain record of this partition */
};

struct frugal_found {
	uint64_t sequence; /* of the match's segment, or of the chain record's */
	uint64_t offset; /* of the chain record, within its segment */
	uint32_t length; /* of the chain record, up to 15 bytes more */
	uint32_t segment;
};

/* Notes what there is at the moment. */
void frugal_now(const struct frugal *frugal, struct frugal_since *out);
/*
 * Searches columns with sequences below `below`, the newest first, in memory. The first call of a search passes UINT64_MAX; after
 * a match in vain it is called again, below the match's sequence. A kill that comes while a search is under way doesn't end it: it
 * goes on as of its first call, and frugal_is_true tells whether its result is still true. There is one exception: once a bundle has
 * taken the kill, or a watermark has risen instead, a further call may find nothing. So a get may miss that was under way, and had
 * met a match in vain, while its own key was overwritten or deleted, or its partition given up. No other key's search ends so.
 */
enum frugal_answer frugal_find(const struct frugal *frugal, const struct frugal_key *key, uint64_t below,
			       struct frugal_found *out);
/* Goes on where frugal_find answered FRUGAL_CHAIN: value is the value of the record that was read at place, at an address that
   is a multiple of 8. Never answers FRUGAL_CHAIN. */
enum frugal_answer frugal_find_in(const struct frugal *frugal, const struct frugal_key *key, uint64_t below,
				  const struct frugal_found *place, const void *value, uint64_t length,
				  struct frugal_found *out);
/*
 * Is the result of a search still true, if nothing of the key is in DRAM? record: segment and sequence in which the key's
 * record was found; NULL: all columns were searched in vain. since: noted before the search. False also where it can't be
 * known without a read: search anew.
 */
FS_MUST_CHECK bool frugal_is_true(const struct frugal *frugal, const struct frugal_key *key,
				  const struct frugal_found *record, const struct frugal_since *since);

/* ---- change: any thread, with the key's stripe held ------------------------------------------- */

/* May a record of the key be on flash? False: none that is valid is. */
FS_MUST_CHECK bool frugal_may_hold(const struct frugal *frugal, const struct frugal_key *key);
/* From now on nothing on flash is the key's. written: the key's object is in the plan of the segment that is being written, or a
   record that is equal to it is on flash, so that the prefilter isn't asked. Returns whether there may have been a valid
   record. */
bool frugal_kill(struct frugal *frugal, const struct frugal_key *key, bool written);
/* Notes that a search has found nothing on flash, and is still true, so that the next one needs no read, and a set no kill.
   It is forgotten after a while. */
void frugal_note_absent(struct frugal *frugal, const struct frugal_key *key);
/* The newest segment of bins has the key's object, which was not changed since it was planned: its kill goes, and that it is known
   to be absent. */
void frugal_committed(struct frugal *frugal, const struct frugal_key *key);

/* Are the records of the key's partition in segments up to this sequence given up? */
FS_MUST_CHECK bool frugal_is_given_up(const struct frugal *frugal, const struct frugal_key *key, uint64_t sequence);

/* ---- segments of bins ------------------------------------------------------------------------ */

/* To be called before the first object is planned for a segment of bins, which will have this sequence: kills from now on are
   about that segment too. */
void frugal_plan_begin(struct frugal *frugal, uint64_t sequence);
/* Takes memory for the column of a segment with that many records, and for the kills that come with it, until frugal_open or
   frugal_plan_end. Between frugal_plan_begin and frugal_open. FS_OK; FS_ENOMEM. */
FS_MUST_CHECK int frugal_reserve(struct frugal *frugal, uint64_t records);
/*
 * Opens a segment of bins that is written: its keys can be found from now on. x: of its records, as many as were reserved for,
 * in any order. bytes: of the records. The kills of keys that were changed before frugal_plan_begin come with it. FS_OK;
 * FS_ENOMEM: the segment stays closed.
 */
FS_MUST_CHECK int frugal_open(struct frugal *frugal, uint32_t segment, uint64_t sequence, const uint64_t *x, uint64_t n,
			      uint64_t bytes);
/* All objects of the segment are committed, or the plan is given up. Kills that a bundle has are taken out of the table, and
   bundles are laid together. */
void frugal_plan_end(struct frugal *frugal);
/* Gives the memory of columns back whose segments are gone, as far as they are the oldest, and lays bundles together. Not between
   frugal_reserve and frugal_plan_end. */
void frugal_tidy(struct frugal *frugal);
/* Is the table of kills so full that frugal_take_kills is due? Any thread, no lock. */
FS_MUST_CHECK bool frugal_is_crowded(const struct frugal *frugal);
/* Takes the kills of the table into memory without a segment. No plan is under way. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int frugal_take_kills(struct frugal *frugal);
/* The segment's records can't be found any more, because it is reclaimed; not by a later process either. Without effect on one that
   isn't open. */
void frugal_close(struct frugal *frugal, uint32_t segment);
/* Picks an open segment by a random number, each with a chance in proportion to its records; out has segment and sequence. False:
   none is open. */
FS_MUST_CHECK bool frugal_pick(const struct frugal *frugal, uint64_t random, struct frugal_found *out,
			       uint32_t *records);
/* Is the segment open with this sequence? Any thread, no lock. */
FS_MUST_CHECK bool frugal_is_open(const struct frugal *frugal, uint32_t segment, uint64_t sequence);

/* ---- the chain ------------------------------------------------------------------------------- */

/* Is a merge due: are more columns in memory than their share, or as many bytes of kills? */
FS_MUST_CHECK bool frugal_merge_is_due(const struct frugal *frugal);

struct frugal_merge;

/*
 * Begins a merge of the present bundles and the present chain. The caller makes the new chain, segment by segment: it reads
 * the partition's old record, asks for the new one, and writes it, in order of partition. Two passes over a segment's
 * partitions are possible: the same old record gives the same new one. Without bundles the chain alone is written anew. FS_OK;
 * FS_EBUSY: one is under way, or there is nothing; FS_ENOMEM.
 */
FS_MUST_CHECK int frugal_merge_begin(struct frugal_merge **out, struct frugal *frugal);
/* Returns the columns that the new chain has, the newest first, 24 bytes each: sequence, 8 bytes; segment and number of records, 4
   each; bytes of the records, 8. Valid as long as the merge. */
const void *frugal_merge_columns(const struct frugal_merge *merge, uint32_t *count);
/* Where is the old record of a partition? False: it has none. */
FS_MUST_CHECK bool frugal_merge_old(const struct frugal_merge *merge, uint32_t partition, struct frugal_found *out);
/*
 * Makes the value of a partition's new record. old: the value of the old record, at a multiple of 8; NULL: there is none, or it
 * can't be read, and then the partition's older columns can't be found any more. Returns the value, which is valid until the
 * next call, and its length; with length 0 the partition needs no record. NULL: memory is out.
 */
FS_MUST_CHECK const void *frugal_merge_make(struct frugal_merge *merge, uint32_t partition, const void *old,
					    uint64_t old_length, uint64_t *length);
/* Notes that a segment of the new chain is written: it has the records of these partitions, one behind the other in order, from
   data_offset on, each at a multiple of FRUGAL_CHAIN_ALIGN; lengths[i] is that of partition first + i, 0 for none. FS_OK;
   FS_EFULL: too many segments. */
#define FRUGAL_CHAIN_ALIGN 16u
FS_MUST_CHECK int frugal_merge_written(struct frugal_merge *merge, uint32_t segment, uint64_t sequence,
				       uint64_t data_offset, uint32_t first, uint32_t partitions,
				       const uint32_t *lengths);
/* The new chain takes the place of the old one and of the bundles. Partitions behind the last that was written need no record.
   Frees merge. */
void frugal_merge_publish(struct frugal_merge *merge);
/* Gives the merge up: everything stays as it was. Frees merge; NULL does nothing. */
void frugal_merge_cancel(struct frugal_merge *merge);
/* Has the segment records of the new chain? */
FS_MUST_CHECK bool frugal_merge_has(const struct frugal_merge *merge, uint32_t segment, uint64_t sequence);
/* Has the segment records of the present chain? Any thread, no lock. */
FS_MUST_CHECK bool frugal_has_chain_in(const struct frugal *frugal, uint32_t segment, uint64_t sequence);
/* Is there a chain, and is none of its columns' segments open any more? Then it is of no use. */
FS_MUST_CHECK bool frugal_chain_is_over(const struct frugal *frugal);
/* Drops the chain: what is in older columns than the bundles' can't be found from now on. No merge is under way. Without effect
   where there is none. */
void frugal_drop_chain(struct frugal *frugal);

/* ---- walks ----------------------------------------------------------------------------------- */

/* Returns the first partition whose keys may lie in bin `bin` of `bins`, or behind it: bins and partitions are ranges of x.
   frugal_partition_of(x) is the partition of a key. Any thread. */
uint32_t frugal_partition_of(const struct frugal *frugal, uint64_t x);
uint32_t frugal_partitions(const struct frugal *frugal);

/* ---- restart --------------------------------------------------------------------------------- */

/* Writes everything into a state file. The table of kills is empty: frugal_take_kills comes before. Nothing else uses the
   index meanwhile. */
void frugal_save(const struct frugal *frugal, struct parts_writer *writer);
/*
 * Makes an index of what frugal_save has written. sequences[s]: of segment s, which is LIVE; 0: it isn't. FS_OK; FS_EINVAL: it
 * was saved with another seed; FS_ERANGE: it needs more memory than this index may have; FS_ECORRUPT: a size is out of its
 * range, or a segment that it needs isn't LIVE; FS_ENOMEM, codes of parts_get. After any of these *out is NULL.
 */
FS_MUST_CHECK int frugal_load(struct frugal **out, const struct frugal_config *config, struct region *region,
			      const uint64_t *sequences, struct parts_reader *reader);
/*
 * Makes an index of what a killed process has left in the region, and changes nothing there; the same codes. Then
 * frugal_repair, once the region may be written to, gives back what the process had begun. Both take a time that follows from
 * the number of segments and bundles, not of objects.
 */
FS_MUST_CHECK int frugal_attach(struct frugal **out, const struct frugal_config *config, struct region *region,
				const uint64_t *sequences);
void frugal_repair(struct frugal *frugal);

/* ---- figures --------------------------------------------------------------------------------- */

struct frugal_status {
	uint32_t partitions, segments, chain_segments, columns_in_memory, columns_in_chain, bundles;
	uint64_t objects,
		bytes; /* records in open segments, those that were replaced or deleted since included: upper bounds */
	uint64_t kills, kills_most; /* in the table */
	uint64_t kills_listed; /* in bundles */
	uint64_t bundle_bytes, prefilter_bytes, kill_bytes, other_bytes; /* other: chain's places, watermarks, rows */
	uint64_t watermarks; /* how often a partition was given up */
	double prefilter_bits; /* for each object in open segments */
};
/* Fills out. Any thread; takes a leaf lock. */
void frugal_get_status(const struct frugal *frugal, struct frugal_status *out);
/* Returns the bytes of the records of an open segment, as status.bytes counts them; 0: it is closed. Any thread, no lock. */
uint64_t frugal_segment_bytes(const struct frugal *frugal, uint32_t segment);
/* Returns the bytes that the index has in memory. Any thread, no lock. */
uint64_t frugal_memory(const struct frugal *frugal);

#endif
