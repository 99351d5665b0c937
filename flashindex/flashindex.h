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
 *   The segment field is the segment's number plus one; 0 = empty slot, so that memory which is all zeros is an
 *   empty table. The tag takes all bits left over (tests may set fewer).
 *
 *   clock/ghost: ghost = 0: live, not read since it was written to flash, CLOCK value 0..3;
 *                ghost = 1, clock = 0: a ghost;
 *                ghost = 1, clock = 1..3: live and read while on flash, CLOCK value 1..3.
 *   (A ghost needs no CLOCK value, so the three spare states keep what reclaim wants to know. Read
 *   with a CLOCK value of 0 can't be said: see fidx_hand.)
 *
 * Sixteen slots make a bucket of 64 bytes, searched with SIMD. A key has two buckets in a table; the partner
 * follows from bucket and tag alone, for any number of buckets: b2 = (H(tag) - b1) mod n. So slots
 * are moved without knowing their keys (partial-key cuckoo hashing).
 *
 * Tables: how many objects the flash will hold is not known beforehand, so the index grows by tables. At most
 * FIDX_TABLES are live; each has a number of buckets for life; a segment is bound to one of them when it is opened, and its
 * slots lie there. A table that no segment is bound to gives its memory back (fidx_table_drop). Nothing is ever
 * moved from one table to another, and no flash is read.
 *
 * Two keys with the same tag and the same unordered bucket pair are one to a table: they share
 * "place", and a slot of one matches the other. A slot names exactly one place in a segment: its
 * position follows from (place, function, segment sequence) and nothing else. Places of different tables
 * differ, as the table's id is part of them.
 *
 * Key stripes: fidx_key.stripe is a function of the tag, so all keys that can ever match one slot
 * share a stripe. Who holds the key's stripe (server/store) sees the set of its matching slots
 * only shrink (a full index drops a slot, a segment is closed), never grow: inserts need the same
 * stripe. Relocation moves slots at any time.
 *
 * Threads and locks: every slot change is a compare-and-swap. Insert, clear, remove, revive and
 * relocation hold the index stripes of both buckets (LOCK_INDEX_STRIPE, address order, taken
 * inside), the making of a ghost that of its bucket; a CLOCK update takes no lock and gives up when
 * it loses. Lookups take no lock: a sequence per index stripe, odd while a slot moves in it, tells
 * them to look again. A slot that is there throughout a lookup is found, moved or not. Inserts and
 * relocation come from one thread at a time (the cleaner), as do tables' coming and going, and segments' opening,
 * closing and sweep. The hand: one thread at a time, fidx_hand answers 0 when another is in it.
 * Everything else: any thread, any time.
 *
 * A table comes and goes under lookups that take no lock. What makes it safe: a slot is inserted under its
 * key's stripe after its table was published, so that whoever holds the stripe afterwards knows the table; and
 * the memory of a table that has gone stays readable, as empty slots.
 *
 * Nothing here does I/O or allocates, but creation, fidx_table_add, fidx_extents_reserve, fidx_filter_build,
 * segment open and verify.
 *
 * Slots and extents lie in region memory (no pointers in them); filters, stripes, the table
 * of known collisions and per-segment counts are process memory.
 */
#ifndef FS_FLASHINDEX_FLASHINDEX_H
#define FS_FLASHINDEX_FLASHINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIDX_BUCKET_SLOTS 16
#define FIDX_TABLES 3
#define FIDX_PAIR_SLOTS (2 * FIDX_BUCKET_SLOTS) /* that a key can have in a table */
#define FIDX_MAX_MATCHES (FIDX_TABLES * FIDX_PAIR_SLOTS)
#define FIDX_MAX_FUNCTIONS 16

struct fidx;

enum fidx_clock_mode { FIDX_CLOCK_LRU, FIDX_CLOCK_MFU };

struct fidx_config {
	uint64_t buckets; /* of the first table: >= 2 */
	uint64_t buckets_most; /* of any one table: >= buckets, < 2^32. Costs address space, no memory */
	uint32_t segments; /* 1 .. 16383 */
	unsigned tag_bits; /* 0: all bits left over; else 2 .. those */
	unsigned functions; /* 1 .. 16 */
	unsigned filter_bits; /* bits per key of a segment's resident Bloom unit; 0: none. See fidx_set_filter_bits */
	enum fidx_clock_mode clock_mode;
	uint64_t seed; /* of the tag hash and filters; the same for the life of the flash file */
	uint32_t extents_most; /* large objects that there may ever be; 0: none */
};

struct region;

/* Address space that the region must have for each of the index's areas: fills most[REGION_TABLE_0 .. REGION_EXTENTS_1]. */
void fidx_region_most(const struct fidx_config *config, uint64_t *most);

/* region: not owned, with areas of those sizes that have no memory yet.
   0, FS_EINVAL (a value out of the ranges above), FS_ENOMEM. */
int fidx_create(struct fidx **out, const struct fidx_config *config, struct region *region);
void fidx_destroy(struct fidx *index);

unsigned fidx_tag_bits(const struct fidx *index);

/* ---- keys ------------------------------------------------------------------------------------ */

/* A key as the index knows it. Stays valid when tables come and go: each call sees to that. */
struct fidx_key {
	uint64_t hash; /* hash64 of the key */
	uint64_t own; /* the same, mixed anew */
	uint32_t tag;
	uint32_t epoch; /* of the tables when the buckets were computed */
	uint32_t bucket[FIDX_TABLES][2]; /* in each live table; may be equal */
};

void fidx_key_of(const struct fidx *index, uint64_t hash, struct fidx_key *out);

/* The key's place in a live table, and in the one that an open segment is bound to: what positions follow from. */
uint64_t fidx_place_in(const struct fidx *index, const struct fidx_key *key, unsigned table);
uint64_t fidx_place(const struct fidx *index, const struct fidx_key *key, uint32_t segment);

/* Starts to bring the key's buckets into the processor's cache. No effect but on time. */
void fidx_prefetch(const struct fidx *index, const struct fidx_key *key);

/* The key stripe of a hash, 0 .. stripes - 1, stripes a power of two <= 65536: a function of the
   tag alone. With more stripes than tags, only as many are used as there are tags. */
uint32_t fidx_stripe_of(const struct fidx *index, uint64_t hash, uint32_t stripes);

/* ---- lookup and change ----------------------------------------------------------------------- */

struct fidx_match {
	uint64_t sequence; /* of the segment when matched: identity = (segment, sequence, function) */
	uint64_t place; /* of the key in the table that the segment is bound to; filled by fidx_lookup alone */
	uint32_t segment;
	uint8_t function;
	uint8_t way; /* which of the key's 32 slots in that table it was seen in: where fidx_touch and fidx_find look first */
	uint8_t clock : 2;
	bool ghost : 1;
	bool read_on_flash : 1;
};

static inline bool fidx_same(const struct fidx_match *a, const struct fidx_match *b)
{
	return a->segment == b->segment && a->sequence == b->sequence && a->function == b->function;
}

/*
 * The slots that may be this key's: tag equal, segment open, filter and collision table not
 * against it. Returns how many, youngest segment first. Takes no lock. Adds to tag_rejects,
 * filter_rejects and exact_rejects (the other calls don't: these count flash reads that were saved).
 *
 * A match can be out of date when it is returned; in the worst case its slot went and its segment
 * was reopened meanwhile. Whoever reads there then finds no valid record of the key.
 */
unsigned fidx_lookup(struct fidx *index, const struct fidx_key *key, struct fidx_match out[FIDX_MAX_MATCHES]);

/* Clears every slot that may be this key's, and its extents. Key stripe held. Returns how many.
   With nothing to clear it takes no lock. */
unsigned fidx_clear(struct fidx *index, const struct fidx_key *key);

/* Removes the one slot with this identity. Key stripe held. False when it is not there, or its
   segment is closed: reclaim removes first and closes then. */
bool fidx_remove(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/* Is a slot with this identity there? Fills clock, ghost, read_on_flash and way. */
bool fidx_find(struct fidx *index, const struct fidx_key *key, struct fidx_match *match);

/*
 * Inserts into the table that the segment is bound to. Key stripe held; the segment is open. Makes room by
 * relocation; when none can be made: FIDX_DROP_COLDEST drops the coldest of the candidates (ghosts first) and counts it
 * (index_drops), so that the new slot always finds its place; FIDX_DROP_NONE leaves all as it is and answers false.
 */
enum fidx_drop { FIDX_DROP_COLDEST, FIDX_DROP_NONE };
bool fidx_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, unsigned function, unsigned clock,
		 enum fidx_drop drop);

/* A hit on flash: CLOCK set (LRU: 3, MFU: + 1), marked read on flash. A ghost becomes live again
   (under the index stripes; returns true then). */
bool fidx_touch(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/* Fetches the slot of a match towards the cache, for a fidx_touch that comes soon. */
void fidx_touch_soon(const struct fidx *index, const struct fidx_key *key, const struct fidx_match *match);

/*
 * A read of match met another key's record, whose hash is owner_hash: from now on only that key
 * may match this identity (4096 of them, SpotKV's aim; a newer one may push an older one out, which
 * costs a read some day and never an answer). owner_hash must come from a record whose check was
 * right. No lock but a leaf.
 */
void fidx_learn(struct fidx *index, const struct fidx_match *match, uint64_t owner_hash);

/* ---- tables ---------------------------------------------------------------------------------- */

/* All of these: the cleaner, and fidx_tables any thread too, for what may be a moment old. */
struct fidx_table {
	bool live;
	uint32_t id; /* no other table had it or will, until 2^32 have been */
	uint64_t slots, used; /* used: slots that name an open segment, ghosts included */
	uint32_t segments; /* open ones that are bound to it */
};
void fidx_tables(const struct fidx *index, struct fidx_table out[FIDX_TABLES]);
uint32_t fidx_table_id(const struct fidx *index, unsigned table); /* UINT32_MAX: it is not live */
/* Adds a table: *table says which. FS_EFULL: FIDX_TABLES are live. FS_ERANGE: fewer than two buckets, or more than the
   configuration's most. FS_ENOMEM. */
int fidx_table_add(struct fidx *index, uint64_t buckets, unsigned *table);
/* A live table that no segment is bound to is no more; its memory goes back. The last one stays. */
void fidx_table_drop(struct fidx *index, unsigned table);

/* ---- segments -------------------------------------------------------------------------------- */

/* Bits per key of the filters that are built from now on. The cleaner. */
void fidx_set_filter_bits(struct fidx *index, unsigned bits);

/*
 * Builds a filter unit over n key hashes (filter_bits each). Returns bytes in memory of the
 * caller's (mem_free), *length bytes; NULL with *length 0 when filter_bits is 0 or memory is out:
 * the segment does without. Also what the segment's footer stores: the unit says itself how it is
 * to be asked, so it stays valid when filter_bits changes. False positives: 0.63 with one bit, 0.39
 * with two (one probe each), 0.15 with four, 0.024 with eight.
 */
void *fidx_filter_build(const struct fidx *index, const uint64_t *hashes, uint64_t n, size_t *length);
uint64_t fidx_filter_length(const struct fidx *index, uint64_t n); /* bytes for n keys */

/*
 * From now on slots of this table, a live one, may name this segment. The index owns filter (made by fidx_filter_build or
 * read back from a footer into mem_alloc memory; NULL = none) until close; one that is not well
 * formed counts as none. mean_bytes: mean record size, for the accounting of hot bytes.
 *
 * The segment must be closed, and fidx_segment_slots 0: else its old slots would be valid again.
 */
void fidx_segment_open(struct fidx *index, uint32_t segment, unsigned table, uint64_t sequence, uint32_t mean_bytes,
		       void *filter, size_t filter_length);

/* From now on every slot that names it counts as empty. The filter is freed once no lookup can be
   in it any more: waits for those that are (lookups announce themselves; tens of nanoseconds, or
   until a preempted one runs on). */
void fidx_segment_close(struct fidx *index, uint32_t segment);

/* How many slots and extents still name the segment, ghosts included. */
uint64_t fidx_segment_slots(const struct fidx *index, uint32_t segment);

/* Empties every slot and extent that names it (a full pass; 90 ms per GB of index, stripes held for
   a few microseconds each). Returns how many. With the segment closed, fidx_segment_slots is 0 then. */
uint64_t fidx_sweep(struct fidx *index, uint32_t segment);

/* ---- the CLOCK hand -------------------------------------------------------------------------- */

/*
 * Moves the hand over up to visits slots (live ones count): CLOCK values go down by one; a slot at
 * zero becomes a ghost while ghost_bytes lasts (each takes its segment's mean_bytes off it).
 * ghost_bytes 0: values only go down. Returns how many ghosts were made; *visited: live slots seen
 * (fewer than visits in a nearly empty index: at most 16 * visits + 1024 slots are looked at).
 *
 * A slot that was read and is at 1 stays there while ghost_bytes is 0, so that reclaim knows it was
 * read; with ghost_bytes it goes to 0 and loses the mark, and the next pass makes it a ghost.
 */
uint64_t fidx_hand(struct fidx *index, uint64_t visits, uint64_t ghost_bytes, uint64_t *visited);

/* ---- large objects --------------------------------------------------------------------------- */

/*
 * The extent table: key hash -> segment, offset, length, for objects too large for a slot's
 * position. Same locks as slots (key stripe; a stripe of its own inside, which reading takes too
 * when there is something with the key's hash). Cleared by fidx_clear, counted by
 * fidx_segment_slots, swept by fidx_sweep, moved by the hand. One extent per key.
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

bool fidx_extent_find(struct fidx *index, const struct fidx_key *key, struct fidx_extent *out);
/* Takes the place of the key's older extent. False when both groups of the key are full: the object stays in DRAM. With
   the room that fidx_extents_reserve has made one in some ten thousand. */
bool fidx_extent_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset,
			uint32_t length, unsigned clock);
bool fidx_extent_remove(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset);
bool fidx_extent_touch(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset);

/*
 * The table of extents is to have room for so many more, FS_OK, or for as many as it can, FS_ENOMEM or FS_ERANGE
 * (extents_most). It is made anew, twice as large or half, and what is there is moved, some microseconds' locks at a time.
 * It shrinks when it is nearly empty. The cleaner.
 */
int fidx_extents_reserve(struct fidx *index, uint32_t more);

/* ---- figures --------------------------------------------------------------------------------- */

struct fidx_status {
	unsigned tables; /* live ones */
	uint64_t slots, used; /* used: slots that name an open segment, ghosts included */
	uint64_t ghosts; /* slots and extents */
	int64_t live_bytes, hot_bytes; /* all / without ghosts; by segments' mean sizes, extents exact */
	uint64_t extents, extents_used; /* entries; those of open segments, ghosts included */
	uint64_t index_bytes, filter_bytes, other_bytes; /* other: extents, stripes, segments, collisions */
	double filter_false_positive; /* of the resident filters, weighted by slots; 1 without */
};
void fidx_get_status(const struct fidx *index, struct fidx_status *out); /* cheap: kept as counts */

/* Debug and tests: walks all slots, recounts, returns false (and logs) when a count is wrong. Only
   while nothing else runs. */
bool fidx_verify(struct fidx *index);

#endif
