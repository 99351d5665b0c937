/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index itself, its segment entries, stripes and sums, which its files share.
 *
 * The locks for a change of a slot:
 *   name, ghost <-> live   the stripe of its bucket (relocation: of both buckets), by swap
 *   CLOCK, read mark       none, by a swap that gives up when the slot has changed
 * So with the stripe held only the CLOCK and the read mark of a live slot can still change.
 */
#ifndef FS_FLASHINDEX_INDEX_INTERNAL_H
#define FS_FLASHINDEX_INDEX_INTERNAL_H

#include <sched.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/region.h"
#include "flashindex/layout_internal.h"

#define STRIPES_MAX 1024u /* a power of two */
#define SHARDS 32 /* a power of two */
#define EXACT_SETS 1024
#define EXACT_WAYS 4
#define EXTENT_STRIPES 64
#define EXTENT_WAYS 8

/* ---- stripes --------------------------------------------------------------------------------- */

/* A run of 2^stripe_shift neighbouring buckets of a table. All tables have the same stripes. */
struct stripe {
	alignas(64) struct lock lock;
	/*
	 * Odd while a slot moves between two buckets, the lower of which lies in this stripe. All slots that a
	 * key can match in a table have the same two buckets, so this one number tells a lookup whether any of
	 * them moved. Written with the lock held.
	 */
	_Atomic uint32_t moves;
};

/* ---- tables ---------------------------------------------------------------------------------- */

/*
 * Written by the cleaner while the table is not live. A reader of the fields reads the epoch after them, or holds the
 * stripes. When the epoch has changed, it begins again (key_settle). The fields are stored with release and loaded with
 * acquire, for machines that reorder loads: the second look at the epoch then comes after the fields, and whoever reads a
 * field of the table's next life sees the epoch in which its last one had ended.
 */
struct table {
	struct bucket *bucket; /* region memory; constant, and readable for as long as the index lives */
	_Atomic uint64_t buckets;
	_Atomic uint32_t stripe_shift;
	_Atomic uint32_t id;
	_Atomic uint64_t
		counted; /* slots of the buckets below are in the counts (recount.c); ALL_COUNTED: of all buckets */
};

/* ---- segments -------------------------------------------------------------------------------- */

#define SEGMENT_CLOSED UINT64_MAX
#define ALL_COUNTED UINT64_MAX

/* counts: slots in the low half, ghosts among them above, and a bit that says that the segment is closed. */
#define COUNTS_CLOSED (UINT64_C(1) << 63)
#define COUNTS_GHOST_SHIFT 32
#define COUNTS_SLOTS(counts) ((uint32_t)(counts))
#define COUNTS_GHOSTS(counts) ((uint32_t)((counts) >> COUNTS_GHOST_SHIFT) & 0x7fffffffu)

#define FILTER_PASS_ALL 65536 /* filter_pass of a segment without a filter: probability one */

struct filter;

struct segment {
	alignas(64) _Atomic uint64_t sequence; /* SEGMENT_CLOSED: its slots count as empty */
	_Atomic uint8_t table; /* it is bound to this one; constant while a slot names it */
	/*
	 * A thread that changes a slot changes these counts too, with that slot's stripe still held. The close sets
	 * COUNTS_CLOSED in the same word and takes the counts that it finds there off the sums. A later change sees the
	 * bit and doesn't touch the sums. So every slot leaves the sums exactly once.
	 */
	_Atomic uint64_t counts;
	_Atomic(struct filter *) filter; /* NULL: none. Used between readers_enter and leave. */
	_Atomic uint32_t mean_bytes; /* constant while a slot names the segment */
	_Atomic uint32_t filter_pass; /* constant while the filter is; false-positive rate / 65536 */
	_Atomic uint32_t extents; /* written under extents.sums_lock, like the fields below */
	uint32_t extent_ghosts;
	uint64_t extent_bytes, extent_ghost_bytes;
	bool extents_open; /* like COUNTS_CLOSED, for the extents */
	_Atomic uint32_t
		asked; /* keys of others that its filter was asked for since fidx_units_asked; with filter units */
};

/* ---- sums ------------------------------------------------------------------------------------ */

/* A few threads share a shard, so that most workers have a cache line of their own. A figure is the sum over all
   shards; a shard's part of it may be negative. */
struct shard {
	alignas(64) _Atomic uint64_t readers; /* threads of this shard that are inside a filter */
	_Atomic int64_t used, ghosts, live_bytes, hot_bytes;
};

/* ---- the table of known collisions ----------------------------------------------------------- */

/*
 * check is id ^ owner. Both words are read without a lock: a reader that sees halves of two entries computes a wrong id
 * and finds nothing.
 */
struct exact_entry {
	_Atomic uint64_t check, owner;
};

struct exact {
	_Atomic uint64_t learned; /* entries written since the start; 0: there is nothing to consult */
	struct lock lock; /* LOCK_LEAF, covers writing and next */
	unsigned next;
	struct exact_entry entry[EXACT_SETS][EXACT_WAYS];
};

/* ---- warm keys ------------------------------------------------------------------------------- */

#define WARM_SETS 512u
#define WARM_WAYS 8u
#define CUCKOO_WIDTH_LEAST 2u
#define CUCKOO_WIDTH_MAX 14u

/* Hashes of the keys that a cuckoo filter had better reject, the last one that was noted first in each set; 0: none. */
struct warm {
	_Atomic uint64_t hash[WARM_SETS][WARM_WAYS];
};

/* ---- extents --------------------------------------------------------------------------------- */

/*
 * Eight extents, in region memory; a key has two groups. word is length << 32 | (segment + 1) << 3 | state. An entry
 * whose segment bits are all zero is empty, so a group of zeros is an empty group.
 */
struct extent_group {
	alignas(64) _Atomic uint64_t hash[EXTENT_WAYS];
	_Atomic uint64_t offset[EXTENT_WAYS];
	_Atomic uint64_t word[EXTENT_WAYS];
};

#define EXTENT_TABLES 2

struct extent_table {
	struct extent_group *group; /* constant, readable for as long as the index lives; NULL: there are no extents */
	_Atomic uint64_t groups; /* 0: not in use. Written by the cleaner */
	_Atomic uint64_t counted; /* as of a table of slots, by groups */
};

/*
 * One table is in use; both are while entries move from the old to the new one, each written there before it is
 * emptied here. So a lookup that begins with the old one misses nothing. epoch changes with the size of either: a
 * lookup without a lock is repeated when it has changed.
 */
struct extents {
	struct extent_table table[EXTENT_TABLES];
	_Atomic unsigned current; /* inserts go to this one; written by the cleaner */
	_Atomic uint32_t epoch;
	uint32_t most;
	/* Entries that are not empty, those of closed segments included; one more while entries are uncounted, so that it
	   isn't 0 then. */
	_Atomic uint64_t present;
	_Atomic int64_t used; /* entries of open segments */
	struct lock stripe[EXTENT_STRIPES]; /* of groups: every change, and every read of more than a hash */
	struct lock sums_lock; /* LOCK_LEAF: the segments' counts of extents */
	bool ready; /* locks are initialised */
};

/* ---- what else lies in the region ------------------------------------------------------------- */

/* A segment's row. sequence is written after the other fields when the segment is opened, and before anything else
   when it is closed. */
struct region_segment {
	_Atomic uint64_t sequence; /* 0: closed */
	_Atomic uint32_t table, mean_bytes;
};

/* A relocation that is under way. slot is written last, and SLOT_EMPTY when both buckets are as they shall be. */
struct region_move {
	_Atomic uint32_t table, from, to; /* buckets */
	_Atomic uint32_t slot; /* SLOT_EMPTY: there is none */
};

/*
 * The head of the index in REGION_INDEX, so that a later process finds tables, extents and bindings. The cleaner
 * writes it, each time before other threads can act by what has changed; the fields without a comment are constant
 * after fidx_create. The same values in struct fidx are what threads read.
 */
struct region_index {
	uint32_t segments, functions, tag_bits, clock_mode;
	uint64_t seed; /* of the configuration */
	_Atomic uint32_t live; /* live tables, a bit each: set after the table's fields, cleared first */
	_Atomic uint32_t next_table_id;
	struct {
		_Atomic uint64_t buckets, id;
	} table[FIDX_TABLES];
	_Atomic uint64_t extent_groups[EXTENT_TABLES]; /* 0: not in use. Two are while entries move */
	_Atomic uint32_t extents_current;
	struct region_move move; /* written with both stripes held */
	uint32_t reserved;
	struct region_segment segment[];
};

/* ---- the index ------------------------------------------------------------------------------- */

/* Constant after creation, like every field without a comment. */
struct fidx {
	struct slot_layout layout;
	struct region *region; /* not owned */
	struct region_index *kept; /* region memory */
	uint32_t segments;
	unsigned functions;
	_Atomic unsigned filter_bits; /* of new filters; written by the cleaner */
	unsigned filter_units; /* of new filters; 0: they are whole */
	enum fidx_clock_mode clock_mode;
	uint64_t seed, tag_seed, filter_seed;
	struct table table[FIDX_TABLES];
	/* The live tables, a bit each; above these FIDX_TABLES bits the number of changes. Both are one word, so that the
	   epoch of a key tells for which tables it has buckets. Written by the cleaner. */
	_Atomic uint32_t epoch;
	uint32_t next_table_id; /* cleaner */
	uint64_t buckets_most; /* of a table */
	struct stripe *stripe; /* STRIPES_MAX */
	struct segment *segment_field; /* by a slot's segment field; the first, for empty slots, stays closed */
	struct shard *shard;
	struct exact *exact;
	struct warm *warm; /* NULL: filters are Bloom filters */
	_Atomic uint64_t filter_bytes;
	_Atomic bool filters; /* some segment may have a filter */
	_Atomic bool hand_busy; /* its setter alone uses hand_table and hand */
	unsigned hand_table; /* the hand is in this table, or, at FIDX_TABLES, among the extents */
	uint64_t hand; /* slot or extent there */
	struct extents extents;
	uint64_t segment_bytes; /* no extent reaches beyond; UINT64_MAX: they are known to be right */
	_Atomic bool counting; /* a recount is under way; written by the cleaner */
	struct recount *recount; /* NULL: none is under way. Cleaner */
	void (*lost)(void *context, const struct fidx_lost *lost); /* NULL: nobody asks. Like the next, set once */
	void *lost_context;
};

/*
 * Functions of the files. The stripe of a slot is that of its bucket; `segment` and `number` are below
 * index->segments.
 */

/* index.c. Returns the calling thread's shard. Any thread. */
struct shard *shard_self(struct fidx *index);
/* index.c. Tells that a slot of this pair, or an extent of this hash, is about to go. Their stripes are held. lose_slot and
   lose_extent below call them. */
void tell_lost_slot(const struct fidx *index, const struct table *table, const uint32_t bucket[2], uint32_t slot);
void tell_lost_extent(const struct fidx *index, uint64_t hash, uint32_t segment, uint64_t offset);

/* index.c. Makes an index with everything but tables and extents, whose region_index has memory and is not read or
   written. Codes of fidx_create. */
FS_MUST_CHECK int index_create(struct fidx **out, const struct fidx_config *config, struct region *region);
/* index.c. Returns the bytes of region_index for so many segments. */
uint64_t index_kept_bytes(uint32_t segments);

/* tables.c. Adds the first table, with the codes of fidx_table_add. */
FS_MUST_CHECK int tables_init(struct fidx *index, uint64_t buckets);
/* tables.c. Returns the area of a table, 0 .. FIDX_TABLES - 1. */
enum region_area table_area(unsigned table);
/* tables.c. Sets the size and id of a table that is not live, whose memory is committed. The cleaner. */
void table_set(struct table *table, uint64_t buckets, uint32_t id);
/* tables.c. Writes the size and id of a table, and the next id, into the region. The cleaner. */
void table_keep(struct fidx *index, unsigned number);
/* tables.c. From now on these tables are live, a bit each, in a new epoch; not in the region. The cleaner. */
void tables_publish(struct fidx *index, uint32_t live);

/* hand.c. hand_take: the calling thread alone is the hand, or keeps it from the tables, until hand_give. False: another
   one is. */
FS_MUST_CHECK bool hand_take(struct fidx *index);
void hand_give(struct fidx *index);

/* segment.c. segment_account adds differences to a segment's counts and to the sums, with the stripe of the changed
   slot held; segment_account_sums adds differences to the sums of the calling thread's shard. */
void segment_account(struct fidx *index, uint32_t segment, int slots, int ghosts);
/* segment.c. Does so for a change of the slot at that address, unless it is not counted yet. */
void slot_account(struct fidx *index, const struct table *table, const _Atomic uint32_t *at, uint32_t segment,
		  int slots, int ghosts);
/* segment.c. Notes the share of keys that the segment's filter passes from now on. NULL: it has none. The cleaner. */
void segment_note_filter(struct fidx *index, uint32_t segment, const struct filter *filter);
/* segment.c. Waits until no thread can use a filter that is not published any more. The cleaner. */
void segment_wait_for_readers(struct fidx *index);
/* segment.c. Frees a filter that no thread can use, and takes its bytes off the account. The cleaner. */
void segment_free_filter(struct fidx *index, struct filter *filter);
/* segment.c. Adds slots to a segment's counts alone. */
void segment_account_counts(struct fidx *index, uint32_t segment, uint32_t slots, uint32_t ghosts);
void segment_account_sums(struct fidx *index, int64_t slots, int64_t ghosts, int64_t live_bytes, int64_t hot_bytes);

/* recount.c. Marks all tables of slots and extents as uncounted, and begins a recount of them: when all segments are open,
   and before any other thread uses the index. FS_OK; FS_ENOMEM, and nothing has changed. */
FS_MUST_CHECK int recount_begin(struct fidx *index);
/* recount.c. Frees what a recount needs, if one is under way. */
void recount_free(struct fidx *index);

/* segment.c. Does what fidx_segment_open does, but for the row in the region. filter: owned, may be NULL. */
void segment_begin(struct fidx *index, uint32_t segment, unsigned table, uint64_t sequence, uint32_t mean_bytes,
		   struct filter *filter);

/* filter.c. Makes a filter of bytes that may come from flash, and owns them. NULL, with the bytes freed: they are
   malformed, or memory is out. */
struct filter *filter_wrap(void *bytes, size_t length);
/* Frees filter and bytes; NULL does nothing. */
void filter_free(struct filter *filter);
/* Returns the bytes of memory that the filter takes. */
size_t filter_bytes(const struct filter *filter);
/* units.c. Does so for a filter or the units of one, which must be of a segment of this sequence. Of all units of a segment
   as many become resident as the average of filter_bits allows. */
struct filter *filter_take(const struct fidx *index, uint64_t sequence, void *bytes, size_t length);
/* units.c. Returns the bytes that make this filter again by filter_take, all its resident units; mem_free frees
   them. filter isn't NULL. The program ends when memory is out. */
void *filter_pack(const struct filter *filter, size_t *length);
/* Returns the length of what filter_pack returns; 0 for no filter. */
size_t filter_pack_length(const struct filter *filter);
/* Returns the probability that it passes another key, 0 .. 1. Reads the whole filter. */
double filter_pass_rate(const struct filter *filter);
/* Returns false if no key with this hash is in the filter. The caller is between readers_enter and readers_leave, or
   owns the filter. */
FS_MUST_CHECK bool filter_passes(const struct fidx *index, const struct filter *filter, uint64_t hash);

/* cuckoo.c. Builds a cuckoo filter over n keys in `length` bytes of zeros, with eight more behind them. Returns the width
   of its fingerprints; 0: there are too few bytes for so many keys, or memory is out, and the bytes are unchanged. warm may
   be NULL. Any thread. */
unsigned cuckoo_build(const struct warm *warm, uint64_t seed, const uint64_t *hashes, uint64_t n, uint8_t *bytes,
		      uint64_t length);
/* cuckoo.c. Do for these bytes what filter_passes and filter_pass_rate do. */
FS_MUST_CHECK bool cuckoo_passes(const uint8_t *bytes, uint64_t length, unsigned width, uint64_t seed, uint64_t hash);
double cuckoo_pass_rate(const uint8_t *bytes, uint64_t length, unsigned width);
/* cuckoo.c. Makes an empty set of warm keys: FS_OK or FS_ENOMEM. warm_destroy frees it; NULL does nothing. */
FS_MUST_CHECK int warm_create(struct warm **out);
void warm_destroy(struct warm *warm);

/* exact.c. Makes an empty table of known collisions. FS_OK or FS_ENOMEM. */
FS_MUST_CHECK int exact_create(struct exact **out);
/* Frees it. NULL does nothing. */
void exact_destroy(struct exact *exact);
/* Returns true if the record of this identity is known to be another key's. Any thread, no lock. */
FS_MUST_CHECK bool exact_rejects(const struct exact *exact, const struct fidx_match *match, uint64_t hash);

/* extents.c. init makes an empty table for at most so many entries; fini may be called without init. */
void extents_init(struct fidx *index, uint32_t most);
void extents_fini(struct extents *extents);
/* extents_resize.c. Moves all entries of the old table to the current one, and gives the old one's memory back. An entry
   that the current one has already is dropped. The cleaner. */
void extents_finish_move(struct fidx *index);
/* extents_resize.c. Returns the number of groups for so many entries, with room to spare; 0 for none. */
uint64_t extents_groups(uint64_t entries);
/* Returns the number of entries of both tables, empty ones included. Any thread, no lock. */
uint64_t extents_ways(const struct fidx *index);
/* Empties the entries of open segments with this hash; returns their number. Key stripe held; takes extent stripes. */
unsigned extents_clear(struct fidx *index, uint64_t hash);
/* Do the parts of fidx_segment_open, fidx_segment_close and fidx_sweep that concern extents. */
void extents_segment_open(struct fidx *index, struct segment *segment);
void extents_segment_close(struct fidx *index, struct segment *segment);
uint64_t extents_sweep(struct fidx *index, uint32_t segment);
/* Moves the hand over extent number at, 0 .. extents_ways. True: it was live. Takes the bytes of a new ghost off
   *ghost_bytes. Takes its stripe. */
bool extents_hand(struct fidx *index, uint64_t at, uint64_t *ghost_bytes, bool *made_ghost);
/* Does fidx_pick for extent number at, 0 .. extents_ways. */
FS_MUST_CHECK bool extents_pick(struct fidx *index, uint64_t at, struct fidx_picked *out);
/* Calls visit for every entry of both tables that is counted and not empty. Only while nothing else runs. */
void extents_visit(const struct fidx *index,
		   void (*visit)(void *context, uint32_t segment, bool ghost, uint32_t length), void *context);

/*
 * In builds with fault points, yields now and then between two steps that a lookup must see as one: the gap is a
 * nanosecond wide, and a test would hardly ever meet it.
 */
static inline void widen_race(void)
{
#ifdef FS_FAULTS
	static _Thread_local unsigned n;

	if (++n % 31 == 0)
		sched_yield();
#endif
}

/* ---- small helpers --------------------------------------------------------------------------- */

/* Returns a segment by its number, or for the result of slot_segment for an empty slot the one that stays closed. */
static inline struct segment *segment_at(const struct fidx *index, uint32_t number)
{
	return &index->segment_field[(uint32_t)(number + 1)];
}

/* Returns SEGMENT_CLOSED if the segment is closed, or if the number is that of an empty slot. */
static inline uint64_t segment_sequence(const struct fidx *index, uint32_t segment)
{
	return atomic_load_explicit(&segment_at(index, segment)->sequence, memory_order_acquire);
}

/* Returns the table to which the segment is, or was last, bound. */
static inline unsigned segment_table(const struct fidx *index, uint32_t segment)
{
	return atomic_load_explicit(&segment_at(index, segment)->table, memory_order_relaxed);
}

/* Is the slot empty, or does it name a closed segment? */
static inline bool slot_is_free(const struct fidx *index, uint32_t slot)
{
	return segment_sequence(index, slot_segment(&index->layout, slot)) == SEGMENT_CLOSED;
}

/* Is the slot at this address in the counts? The stripe of its bucket is held, so that the answer stays. */
static inline bool slot_is_counted(const struct table *table, const _Atomic uint32_t *at)
{
	uint64_t bucket = ((uintptr_t)at - (uintptr_t)table->bucket) / sizeof(struct bucket);

	return bucket < atomic_load_explicit(&table->counted, memory_order_relaxed);
}

/* Returns the number of buckets of a live table. */
static inline uint64_t table_buckets(const struct table *table)
{
	return atomic_load_explicit(&table->buckets, memory_order_acquire);
}

/* Returns the present epoch. A key with another epoch has stale buckets. */
static inline uint32_t tables_epoch(const struct fidx *index)
{
	return atomic_load_explicit(&index->epoch, memory_order_acquire);
}

/* Returns the tables that were live in an epoch, a bit each. */
static inline uint32_t epoch_tables(uint32_t epoch)
{
	return epoch & ((1u << FIDX_TABLES) - 1);
}

/* Returns the live tables, a bit each. Walk them by: for (left = tables_live(index); left; left &= left - 1) ...
   ctz(left). With a key, walk key_tables instead: it has no buckets for a table that has come meanwhile. */
static inline uint32_t tables_live(const struct fidx *index)
{
	return epoch_tables(tables_epoch(index));
}

static inline uint32_t key_tables(const struct fidx_key *key)
{
	return epoch_tables(key->epoch);
}

/* Returns the id of a live table. */
static inline uint32_t table_id(const struct table *table)
{
	return atomic_load_explicit(&table->id, memory_order_acquire);
}

/* Returns the stripe of a bucket of a table. Any number will do as bucket: if the table has another size by now, the
   caller is about to see another epoch. */
static inline struct stripe *bucket_stripe(const struct fidx *index, const struct table *table, uint32_t bucket)
{
	return &index->stripe[bucket >> atomic_load_explicit(&table->stripe_shift, memory_order_acquire) &
			      (STRIPES_MAX - 1)];
}

/* lock_two acquires two locks of one rank, which may be the same, in the order of their addresses; unlock_two releases
   them. stripes_acquire and stripes_release do that for two buckets. */
static inline void lock_two(struct lock *a, struct lock *b)
{
	lock_acquire(a <= b ? a : b);
	if (a != b)
		lock_acquire(a <= b ? b : a);
}

static inline void unlock_two(struct lock *a, struct lock *b)
{
	lock_release(a);
	if (a != b)
		lock_release(b);
}

static inline void stripes_acquire(struct fidx *index, const struct table *table, uint32_t a, uint32_t b)
{
	lock_two(&bucket_stripe(index, table, a)->lock, &bucket_stripe(index, table, b)->lock);
}

static inline void stripes_release(struct fidx *index, const struct table *table, uint32_t a, uint32_t b)
{
	unlock_two(&bucket_stripe(index, table, a)->lock, &bucket_stripe(index, table, b)->lock);
}

/* Between readers_enter and readers_leave of a shard, no filter that its thread has loaded is freed. */
static inline void readers_enter(struct shard *shard)
{
	/* Sequentially consistent, as is the load of the filter after it: the close stores NULL
	   first and looks at readers then, and one of the two must see the other. */
	atomic_fetch_add(&shard->readers, 1);
}

static inline void readers_leave(struct shard *shard)
{
	atomic_fetch_sub_explicit(&shard->readers, 1, memory_order_release);
}

/* Returns the other bucket of a slot in a table of so many buckets. The function is its own inverse. */
static inline uint32_t bucket_partner(const struct fidx *index, uint64_t buckets, uint32_t bucket, uint32_t tag)
{
	uint64_t sum = reduce64(mix64(tag ^ index->tag_seed), buckets);

	return (uint32_t)(sum >= bucket ? sum - bucket : sum + buckets - bucket);
}

/* Returns a key's place in a table: the table's id from bit 56, the lower of the two buckets from bit 24, and the
   tag. */
static inline uint64_t place_of(uint32_t table_id, const uint32_t bucket[2], uint32_t tag)
{
	return (uint64_t)table_id << 56 | (uint64_t)(bucket[0] < bucket[1] ? bucket[0] : bucket[1]) << 24 | tag;
}

_Static_assert(32 - SLOT_FIXED_BITS - 1 <= 24, "the widest tag fits below the bucket");

/* Must precede each end of a slot or extent of an open segment, with its stripes held. */
static inline void lose_slot(const struct fidx *index, const struct table *table, const uint32_t bucket[2],
			     uint32_t slot)
{
	if (__builtin_expect(index->lost != NULL, 0))
		tell_lost_slot(index, table, bucket, slot);
}

static inline void lose_extent(const struct fidx *index, uint64_t hash, uint32_t segment, uint64_t offset)
{
	if (__builtin_expect(index->lost != NULL, 0))
		tell_lost_extent(index, hash, segment, offset);
}

/* Returns the key with its buckets in the tables that are live now: key itself, or copy. */
static inline const struct fidx_key *key_settle(const struct fidx *index, const struct fidx_key *key,
						struct fidx_key *copy)
{
	if (__builtin_expect(key->epoch == tables_epoch(index), 1))
		return key;
	fidx_key_of(index, key->hash, copy);
	return copy;
}

#endif
