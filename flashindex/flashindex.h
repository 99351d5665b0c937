/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index of objects on flash: four bytes per object, two cache lines per lookup.
 *
 * A slot is 32 bits, from the top:
 *
 *   +----------------------+-----------+----------+-------+-------+
 *   | segment number       | tag       | function | clock | ghost |
 *   | segment_bits (<= 14) | tag_bits  | 4        | 2     | 1     |
 *   +----------------------+-----------+----------+-------+-------+
 *   The segment field is the segment's number plus one; 0 = empty slot, so that memory of zeros is an
 *   empty table. The tag takes all remaining bits (tests may set fewer).
 *
 *   clock/ghost: ghost = 0: live, not read since it was written to flash, CLOCK value 0..3; ghost = 1, clock = 0: a
 *                ghost; ghost = 1, clock = 1..3: live and read while on flash, CLOCK value 1..3. (A ghost needs no
 *                CLOCK value. So the three spare states tell reclaim that the object was read. No state says "read,
 *                CLOCK value 0": see fidx_hand.)
 *
 * Sixteen slots make a bucket of 64 bytes, searched with SIMD. A key has two buckets in a table; the partner of a
 * bucket follows from bucket and tag alone, for any number of buckets: b2 = (H(tag) - b1) mod n. So a slot can be moved
 * without its key (partial-key cuckoo hashing).
 *
 * Tables: the number of objects that the flash will hold is not known beforehand, so the index grows by tables. At most
 * FIDX_TABLES are live; the number of buckets of a table never changes. A segment is bound to one table when it is
 * opened, and its slots lie there. A table without segments gives its memory back (fidx_table_drop). Nothing
 * ever moves from one table to another, and no flash is read.
 *
 * A table can't tell two keys with the same tag and the same unordered bucket pair apart: they share a
 * "place", and a slot of one matches the other. A slot leads to exactly one position in a segment,
 * which follows from (place, function, segment sequence) and nothing else. Places of different tables
 * differ, as the table's id is part of them.
 *
 * Key stripes: fidx_key.stripe is a function of the tag, so all keys that can ever match one slot
 * share a stripe. While a thread holds the key's stripe (a lock of server/store), the set of the key's matching
 * slots only shrinks (a full index drops a slot, a segment is closed): inserts need the same
 * stripe. Relocation moves slots at any time.
 *
 * Threads and locks: every slot change is a compare-and-swap. Insert, clear, remove, revive and relocation hold the
 * index stripes of both buckets (LOCK_INDEX_STRIPE, taken inside in address order). The making of a ghost holds the
 * stripe of its bucket. A CLOCK update takes no lock and gives up when the slot has changed. Lookups take no lock: a
 * sequence per index stripe, odd while a slot moves in it, tells them to look again. A slot that is there throughout a
 * lookup is found, moved or not. One thread at a time (the cleaner) inserts and relocates, adds and drops tables, and
 * opens, closes and sweeps segments. One thread at a time moves the hand: fidx_hand returns 0 when another one does.
 * Any thread may make all other calls at any time.
 *
 * A table comes and goes under lookups that take no lock. Two facts make this safe. A slot is inserted under its
 * key's stripe after its table was published, so that later holders of the stripe know the table. And
 * the memory of a table that has gone stays readable, as empty slots.
 *
 * Nothing here does I/O. Only fidx_create, fidx_attach, fidx_table_add, fidx_extents_reserve, fidx_filter_build,
 * fidx_segment_open and fidx_verify allocate.
 *
 * Slots, extents, and the sizes and bindings that lead to them lie in region memory (no pointers in them); filters,
 * stripes, the table of known collisions and per-segment counts are process memory.
 */
#ifndef FS_FLASHINDEX_FLASHINDEX_H
#define FS_FLASHINDEX_FLASHINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/parts.h"

#define FIDX_BUCKET_SLOTS 16
#define FIDX_TABLES 3
#define FIDX_PAIR_SLOTS (2 * FIDX_BUCKET_SLOTS) /* slots that a key can have in a table */
#define FIDX_MAX_MATCHES (FIDX_TABLES * FIDX_PAIR_SLOTS)
#define FIDX_MAX_FUNCTIONS 16

struct fidx;

enum fidx_clock_mode { FIDX_CLOCK_LRU, FIDX_CLOCK_MFU };
enum fidx_filter { FIDX_FILTER_BLOOM, FIDX_FILTER_CUCKOO };
#define FIDX_CUCKOO_BITS_LEAST 3u /* per key */

struct fidx_config {
	uint64_t buckets; /* of the first table: >= 2 */
	uint64_t buckets_most; /* of any one table: >= buckets, < 2^32. Costs address space, no memory */
	uint32_t segments; /* 1 .. 16383 */
	unsigned tag_bits; /* 0: all remaining bits; else 2 .. as many as remain */
	unsigned functions; /* 1 .. 16 */
	enum fidx_filter filter; /* kind of the filters that are built; both kinds can be read back */
	unsigned filter_bits; /* bits per key of a segment's resident filter; 0: none. See fidx_set_filter_bits */
	unsigned
		filter_units; /* 0: a segment has one filter; 2 .. 8: so many units (units.h), which are Bloom filters */
	enum fidx_clock_mode clock_mode;
	uint64_t seed; /* of the tag hash and filters; the same for the life of the flash file */
	uint32_t extents_most; /* the most large objects at a time; 0: none */
};

struct region;

/* Fills most[REGION_INDEX .. REGION_EXTENTS_1] with the bytes of address space that the region must have for each of
   the index's areas. */
void fidx_region_most(const struct fidx_config *config, uint64_t *most);

/* Makes an index with one table. region: not owned, with areas of those sizes that have no memory yet.
   FS_EINVAL (a value out of the ranges above), FS_ENOMEM. The caller calls fidx_destroy. */
FS_MUST_CHECK int fidx_create(struct fidx **out, const struct fidx_config *config, struct region *region);
/* Frees the index, and every filter that it owns, while no other thread uses it. NULL does nothing. */
void fidx_destroy(struct fidx *index);

/* Returns the bits that the numbers of so many segments take in a slot. Any thread. */
static inline unsigned fidx_segment_bits(uint32_t segments)
{
	unsigned bits = 1;

	while ((1u << bits) < segments + 1)
		bits++;
	return bits;
}

/* Returns the bits of a slot's tag. Constant. */
unsigned fidx_tag_bits(const struct fidx *index);

/* ---- keys ------------------------------------------------------------------------------------ */

/* A key as the index knows it. It stays valid when tables come and go: each call brings it up to date in a copy. */
struct fidx_key {
	uint64_t hash; /* hash64 of the key */
	uint64_t own; /* the same, mixed anew */
	uint32_t tag;
	uint32_t epoch; /* of the tables when the buckets were computed */
	uint32_t bucket[FIDX_TABLES][2]; /* in each live table; may be equal */
};

/* Computes the key of a hash. No lock. */
void fidx_key_of(const struct fidx *index, uint64_t hash, struct fidx_key *out);

/* fidx_place_in returns the key's place in a live table, fidx_place its place in the table of an open segment.
   Positions in the segment follow from it. */
uint64_t fidx_place_in(const struct fidx *index, const struct fidx_key *key, unsigned table);
uint64_t fidx_place(const struct fidx *index, const struct fidx_key *key, uint32_t segment);

/* Starts to bring the key's buckets into the processor's cache. Only affects time. */
void fidx_prefetch(const struct fidx *index, const struct fidx_key *key);

/* Returns the key stripe of a hash, 0 .. stripes - 1: a function of the tag alone. stripes: a power of two, at most
   65536. With more stripes than tags, some stripes have no key. */
uint32_t fidx_stripe_of(const struct fidx *index, uint64_t hash, uint32_t stripes);

/* ---- lookup and change ----------------------------------------------------------------------- */

struct fidx_match {
	uint64_t sequence; /* of the segment when matched: identity = (segment, sequence, function) */
	uint64_t place; /* of the key in the table that the segment is bound to; filled by fidx_lookup alone */
	uint32_t segment;
	uint8_t function;
	uint8_t way; /* one of the key's 32 slots in that table: fidx_touch and fidx_find look there first */
	uint8_t clock : 2;
	bool ghost : 1;
	bool read_on_flash : 1;
};

/* Have both matches the same identity? */
static inline bool fidx_same(const struct fidx_match *a, const struct fidx_match *b)
{
	return a->segment == b->segment && a->sequence == b->sequence && a->function == b->function;
}

/*
 * Finds the slots that may be this key's: tag equal, segment open, rejected by neither filter nor collision
 * table. Returns their number, youngest segment first. Takes no lock. Adds to tag_rejects,
 * filter_rejects and exact_rejects, which count saved flash reads; the other calls don't.
 *
 * A match can be out of date when it is returned; in the worst case its slot went and its segment
 * was reopened meanwhile. A reader then finds no valid record of the key there.
 */
unsigned fidx_lookup(struct fidx *index, const struct fidx_key *key, struct fidx_match out[FIDX_MAX_MATCHES]);

/* Clears every slot that may be this key's, and its extents. Returns their number. Key stripe held. Takes index
   stripes, and no lock when there is nothing to clear. */
unsigned fidx_clear(struct fidx *index, const struct fidx_key *key);

/* Removes the one slot with this identity. Key stripe held; takes index stripes. False: it is not there, or its
   segment is closed (reclaim removes first and closes then). */
bool fidx_remove(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/* Is a slot with this identity there? If so, fills clock, ghost, read_on_flash and way of the match. No lock. */
FS_MUST_CHECK bool fidx_find(struct fidx *index, const struct fidx_key *key, struct fidx_match *match);

/*
 * Inserts a slot with that CLOCK value, 0 .. 3, into the table of the segment, which is open. Makes room by relocation.
 * If that is impossible, FIDX_DROP_COLDEST drops the coldest of the pair's slots (ghosts first), counts it
 * (index_drops) and returns true; FIDX_DROP_NONE changes nothing and returns false. Key stripe held; takes index
 * stripes. The cleaner.
 */
enum fidx_drop { FIDX_DROP_COLDEST, FIDX_DROP_NONE };
FS_MUST_CHECK bool fidx_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, unsigned function,
			       unsigned clock, enum fidx_drop drop);

/* Notes a hit on flash: sets CLOCK (LRU: 3, MFU: + 1) and marks the slot as read on flash, without a lock. A ghost
   becomes live again, under the index stripes. True: it was a ghost. */
bool fidx_touch(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/* Starts to bring the slot of a match into the processor's cache, for a fidx_touch that comes soon. */
void fidx_touch_soon(const struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/*
 * Notes that a read of match met the record of another key, whose hash is owner_hash: from now on only that key may
 * match this identity. The table keeps 4096 such collisions (SpotKV's aim). A newer one may push an older one out,
 * which may cost a read and never an answer. owner_hash must come from a record whose check was right. Takes a leaf
 * lock.
 */
void fidx_learn(struct fidx *index, const struct fidx_match *match, uint64_t owner_hash);

/* Notes that the key was looked for on flash, so that cuckoo filters which are built from now on try to reject it, unless it
   is their own. The last 4096 or so are known. Nothing happens without FIDX_FILTER_CUCKOO. Any thread, no lock. */
void fidx_note_warm(struct fidx *index, const struct fidx_key *key);

/* ---- tables ---------------------------------------------------------------------------------- */

/* fidx_tables and fidx_table_id: any thread, no lock; the result may be a moment old. The others: the cleaner. */
struct fidx_table {
	bool live;
	uint32_t id; /* unique among the first 2^32 tables */
	uint64_t slots, used; /* used: slots that name an open segment, ghosts included */
	uint32_t segments; /* open segments that are bound to it */
};
/* Fills out with the state of all tables, live or not. */
void fidx_tables(const struct fidx *index, struct fidx_table out[FIDX_TABLES]);
/* UINT32_MAX: the table is not live. */
uint32_t fidx_table_id(const struct fidx *index, unsigned table);
/* Adds a table of that many buckets; *table is its number. Takes every index stripe in turn. FS_EFULL: FIDX_TABLES are
   live. FS_ERANGE: fewer than two buckets, or more than the configuration's most. FS_ENOMEM. */
FS_MUST_CHECK int fidx_table_add(struct fidx *index, uint64_t buckets, unsigned *table);
/* Ends a live table to which no segment is bound, and gives its memory back. Another table must be live. Waits for the
   hand, a few milliseconds at most. */
void fidx_table_drop(struct fidx *index, unsigned table);

/* ---- segments -------------------------------------------------------------------------------- */

/* Sets the bits per key, 0 .. 32, of the filters that are built from now on. The cleaner. */
void fidx_set_filter_bits(struct fidx *index, unsigned bits);

/*
 * Builds a filter unit over n key hashes, with filter_bits bits for each. Returns *length bytes, which the caller
 * frees by mem_free; NULL with *length 0 when filter_bits is 0 or memory is out: the segment then has no
 * filter. The segment's footer stores the same bytes. The unit contains the number of its probes,
 * so that it stays valid when filter_bits changes. False positives: 0.63 with one bit, 0.39
 * with two (one probe each), 0.15 with four, 0.024 with eight.
 *
 * FIDX_FILTER_CUCKOO makes a cuckoo filter of as many bytes (cuckoo.c), if they allow it, which takes three bits per key,
 * and otherwise a Bloom filter too. Of the warm keys it passes fewer than of others. Any thread.
 */
void *fidx_filter_build(const struct fidx *index, const uint64_t *hashes, uint64_t n, size_t *length);
/* Returns the bytes of a filter for n keys in a footer, of all its units if it has some; 0 when filter_bits is 0. */
uint64_t fidx_filter_length(const struct fidx *index, uint64_t n);

/*
 * Opens a segment: from now on slots of this table, a live one, may name it. The index owns filter (made by
 * fidx_filter_build or read back from a footer into mem_alloc memory; NULL = none) until close; a malformed one
 * counts as none. mean_bytes: mean record size, for the accounting of hot bytes. The cleaner.
 *
 * The segment must be closed, and fidx_segment_slots 0: otherwise its old slots would be valid again.
 */
void fidx_segment_open(struct fidx *index, uint32_t segment, unsigned table, uint64_t sequence, uint32_t mean_bytes,
		       void *filter, size_t filter_length);

/* Closes a segment: from now on every slot that names it counts as empty. Frees the filter
   after a wait for the lookups that use it: tens of nanoseconds, or until a preempted one runs on. The
   cleaner. */
void fidx_segment_close(struct fidx *index, uint32_t segment);

/* Is the segment open without a filter? No lock. The cleaner. */
FS_MUST_CHECK bool fidx_lacks_filter(const struct fidx *index, uint32_t segment);
/*
 * Gives an open segment that lacks one the filter that was built for it, and owns it, as fidx_segment_open does. False: it
 * is malformed, or memory is out, and the segment goes on without one. The cleaner, while other threads look up and
 * change.
 */
FS_MUST_CHECK bool fidx_give_filter(struct fidx *index, uint32_t segment, void *filter, size_t filter_length);

/* Returns the number of slots and extents that still name the segment, ghosts included; those counted so far during a
   recount. Any thread, no lock. */
uint64_t fidx_segment_slots(const struct fidx *index, uint32_t segment);
/* Returns the bytes of the records that these lead to: of slots by the segment's mean size, of extents exact. Any
   thread; takes a leaf lock. */
uint64_t fidx_segment_live_bytes(struct fidx *index, uint32_t segment);

/* Empties every slot and extent that names the segment, in a full pass: 90 ms per GB of index, each stripe held for
   a few microseconds. Returns their number. When the segment is closed, fidx_segment_slots is 0 afterwards. The
   cleaner. */
uint64_t fidx_sweep(struct fidx *index, uint32_t segment);

/* ---- the CLOCK hand -------------------------------------------------------------------------- */

/*
 * Moves the hand over up to visits live slots and extents: CLOCK values go down by one; a slot at
 * zero becomes a ghost while ghost_bytes lasts (each takes its segment's mean_bytes off it, an extent its length).
 * ghost_bytes 0: values only go down. Returns the number of new ghosts; *visited: live slots seen
 * (fewer than visits in a nearly empty index: the hand looks at 16 * visits + 1024 slots at the most). Takes index
 * stripes. Any thread; 0 when another thread is the hand at the moment.
 *
 * A slot that was read and is at 1 stays there while ghost_bytes is 0, so that reclaim knows of the read;
 * with ghost_bytes it goes to 0 and loses the mark, and the next pass makes it a ghost.
 */
uint64_t fidx_hand(struct fidx *index, uint64_t visits, uint64_t ghost_bytes, uint64_t *visited);

/* ---- large objects --------------------------------------------------------------------------- */

/*
 * The extent table: key hash -> segment, offset, length, for objects too large for a slot's
 * position. Locks are those of slots: the key stripe, and inside it a stripe of the table, which a lookup takes too
 * when there is an entry with the key's hash. fidx_clear, fidx_segment_slots, fidx_sweep and fidx_hand include
 * extents. One extent per key.
 */
struct fidx_extent {
	uint64_t sequence;
	uint64_t offset; /* within the segment, bytes */
	uint32_t length; /* of the record, bytes */
	uint32_t segment;
	uint8_t clock;
	bool ghost;
	bool read_on_flash;
};

/* Finds the key's extent in an open segment. False: there is none. */
FS_MUST_CHECK bool fidx_extent_find(struct fidx *index, const struct fidx_key *key, struct fidx_extent *out);
/* Inserts the key's extent, or replaces the older one; the segment is open, clock 0 .. 3. Key stripe held. False: both
   groups of the key are full, and the object stays in DRAM; after fidx_extents_reserve this happens to one in some
   ten thousand. The cleaner. */
FS_MUST_CHECK bool fidx_extent_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset,
				      uint32_t length, unsigned clock);
/* Removes the key's extent when it is at this offset of this segment. Key stripe held. False: it is not there. */
bool fidx_extent_remove(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset);
/* Does for an extent what fidx_touch does for a slot. True: it was a ghost. */
bool fidx_extent_touch(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset);

/*
 * Makes room in the table of extents for so many more of them. FS_OK; FS_ENOMEM or FS_ERANGE (above extents_most):
 * there is less room, and inserts may fail. A new table, twice as large or half, replaces the present one, whose
 * entries move under locks that are held for some microseconds at a time. A nearly empty table shrinks. The cleaner,
 * which may go on after an error.
 */
FS_MUST_CHECK int fidx_extents_reserve(struct fidx *index, uint32_t more);

/* ---- losses ---------------------------------------------------------------------------------- */

/* A slot or extent that is about to go. */
struct fidx_lost {
	uint64_t sequence; /* of its segment */
	uint64_t place; /* its position follows from place and function; 0 of an extent, which has its offset */
	uint64_t offset;
	uint32_t segment;
	uint32_t tag; /* of the keys that may match it */
	uint8_t function;
	bool extent;
};
/*
 * From now on lost is called for each slot and extent of an open segment before it goes for whatever reason: fidx_clear,
 * fidx_remove, fidx_extent_remove, a full table, an extent that finds no room or is replaced. fidx_sweep and
 * fidx_segment_close don't call it. It is called under index stripes, so it takes leaf locks alone. Before other threads
 * use the index.
 */
void fidx_tell_losses(struct fidx *index, void (*lost)(void *context, const struct fidx_lost *lost), void *context);
/* Returns the key stripe of the keys with this tag, as fidx_stripe_of does. */
uint32_t fidx_stripe_of_tag(uint32_t tag, uint32_t stripes);

/* ---- restart --------------------------------------------------------------------------------- */

/* A table by the two figures that positions follow from. */
struct fidx_shape {
	uint64_t buckets;
	uint32_t id;
};
/*
 * Replaces the table of an index that fidx_create has just made by empty ones of these shapes, so that segments of an
 * earlier run can be opened again; number[i] is the table of shape i. Nothing else uses the index meanwhile. FS_OK;
 * FS_EINVAL: there are no or too many shapes, or two of one id; FS_ERANGE: one is larger than this index may have;
 * FS_ENOMEM. After an error the caller destroys the index and gives its areas of the region back.
 */
FS_MUST_CHECK int fidx_shape_tables(struct fidx *index, const struct fidx_shape *shape, unsigned shapes,
				    unsigned number[FIDX_TABLES]);

/* Writes filters, tables and extents into a state file. Nothing else uses the index meanwhile, and no recount is under way.
   Counts are left out, as they are counted again, and so are known collisions, which are learnt again. */
void fidx_save(const struct fidx *index, struct parts_writer *writer);
/*
 * Fills an index that fidx_create has just made with what fidx_save has written: all bytes are read, and agree with their
 * checksums. sequences[s] is the sequence of segment s, 0: it isn't LIVE; a segment must have been saved with the same
 * one. Nothing else uses the index meanwhile. The index may have more segments than the saved one, as long as their numbers
 * take as many bits of a slot.
 *
 * Then the index can be used, and slots and extents are judged and counted by fidx_recount, with all that is said there.
 * Those of a segment that isn't LIVE are never found, and are dropped, and so is whatever is out of range.
 *
 * FS_OK. FS_EFULL: the saved index has more segments, or their numbers took fewer bits. FS_EINVAL: it has other tag
 * bits, functions or CLOCK mode. FS_ERANGE: one of its tables is larger than this index may have. FS_ECORRUPT: a size or
 * a segment's row is out of its range. FS_ENOMEM, codes of parts_get. After any of these the caller destroys the index and
 * gives its areas of the region back.
 */
FS_MUST_CHECK int fidx_load(struct fidx *index, const uint64_t *sequences, uint64_t segment_bytes,
			    struct parts_reader *reader);

/*
 * Makes an index of what a killed process has left in the region. Filters and known
 * collisions are lost: segments have no filter until fidx_give_filter. sequences as for fidx_load; a segment is
 * open if the region has it as open with the same sequence. Nothing in the region is changed. Then, once the region may
 * be written to and before anything else is done with the index, fidx_repair finishes what the process had begun
 * (attach.c has a table of it); killed in the middle, it is begun again by the next attach. Both take some milliseconds,
 * whatever the number of slots. Then the index can be used, and slots and extents are judged and counted by fidx_recount.
 *
 * FS_OK. FS_EINVAL: the region's index has other tag bits, functions, CLOCK mode, seed or number of segments.
 * FS_ECORRUPT: head or rows have a value out of its range. FS_ENOMEM. After any of these *out is NULL.
 */
FS_MUST_CHECK int fidx_attach(struct fidx **out, const struct fidx_config *config, struct region *region,
			      const uint64_t *sequences, uint64_t segment_bytes);
void fidx_repair(struct fidx *index);

/* What a recount has dropped: slots and extents of closed segments, which a killed process had left behind, or whose
   segments were not saved; and those with a value out of its range. */
struct fidx_recounted {
	uint64_t emptied, damaged;
};
/*
 * The recount, after fidx_load or fidx_attach. Until fidx_recount has returned false:
 *   - lookups, clears, removals, CLOCK and the hand work as ever, and find nothing that is out of range;
 *   - fidx_segment_slots, fidx_segment_live_bytes, fidx_tables and fidx_get_status have what is counted so far: at most
 *     the truth. A zero doesn't mean that there are none;
 *   - nothing that needs the truth, or would bring a left-over slot back, may be called: fidx_insert,
 *     fidx_extent_insert, fidx_segment_open, fidx_segment_close, fidx_sweep, fidx_table_drop, fidx_save.
 *     fidx_extents_reserve does nothing.
 */
/* Goes on with the recount over about so many slots and extents, 1 or more: some 3 ns for each, with a stripe held for
   some 50 us at a time. A resize of the table of extents that a kill has cut off is finished first, in one go. Returns true
   if there is more to do; false: all are counted, and out has the sums, or no recount was under way. The cleaner. */
bool fidx_recount(struct fidx *index, uint64_t slots, struct fidx_recounted *out);
/* Is a recount under way? fidx_uncounted: the slots and extents that are left to it, empty ones included, and at least 1;
   0 without a recount. Any thread, no lock. */
FS_MUST_CHECK bool fidx_is_counting(const struct fidx *index);
uint64_t fidx_uncounted(const struct fidx *index);
/* Is the segment open? Any thread, no lock. */
FS_MUST_CHECK bool fidx_segment_is_open(const struct fidx *index, uint32_t segment);

/* ---- samples (pick.c) ------------------------------------------------------------------------ */

/* A live object that was chosen at random. */
struct fidx_picked {
	struct fidx_match match; /* of its slot, with place, and without way; of an extent, without function too */
	bool is_extent;
	uint64_t offset; /* of an extent: of its record in the segment, and the record's length */
	uint32_t length;
};
/*
 * Looks at the slot or extent that `random`, 64 random bits, chooses. False: it is empty, a ghost, or its segment is closed.
 * So all live objects have the same chance. It may have gone when the call returns. Takes the stripe of an extent. The
 * cleaner, as no table may be dropped meanwhile.
 */
FS_MUST_CHECK bool fidx_pick(struct fidx *index, uint64_t random, struct fidx_picked *out);

/* ---- figures --------------------------------------------------------------------------------- */

struct fidx_status {
	unsigned tables; /* live ones */
	uint64_t slots, used; /* used: slots that name an open segment, ghosts included */
	uint64_t ghosts; /* slots and extents */
	int64_t live_bytes, hot_bytes; /* all / without ghosts; by segments' mean sizes, extents exact */
	uint64_t extents, extents_used; /* entries; those of open segments, ghosts included */
	uint64_t index_bytes, filter_bytes, other_bytes; /* other: extents, stripes, segments, collisions */
	uint64_t
		uncounted; /* slots and extents that a recount has before it, empty ones included; used, ghosts, bytes and
			       extents_used lack what these have. 0: none is under way */
};
/* Fills out. Cheap, as all figures are kept as counts; they may be a moment old. Any thread, no lock. */
void fidx_get_status(const struct fidx *index, struct fidx_status *out);
/* Returns the share of other keys that the resident filters pass, weighted by slots: 0 .. 1, and 1 without filters. Looks
   at each segment, if there are filters. Any thread, no lock. */
double fidx_filter_false_positive(const struct fidx *index);

/* For debug builds and tests: walks all slots and counts them again, while nothing else runs. False, with a log line: a
   count is wrong. */
FS_MUST_CHECK bool fidx_verify(struct fidx *index);

#endif
