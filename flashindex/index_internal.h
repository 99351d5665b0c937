/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the index share: the index itself, its segment entries, stripes and sums.
 *
 * Who may change a slot, and under what:
 *   name, ghost <-> live   the stripe of its bucket (relocation: of both buckets), by swap
 *   CLOCK, read mark       nothing, by swap, giving up when the slot has changed
 * So with the stripe held only the CLOCK and the read mark of a live slot can still change.
 */
#ifndef FS_FLASHINDEX_INDEX_INTERNAL_H
#define FS_FLASHINDEX_INDEX_INTERNAL_H

#include <sched.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/region.h"
#include "flashindex/layout_internal.h"

#define STRIPES_MAX 1024u
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
	 * Odd while a slot moves between two buckets of which the lower lies here. All slots that a
	 * key can match in a table have the same two buckets, so this one number tells a lookup whether any of
	 * them moved. Written with the lock held.
	 */
	_Atomic uint32_t moves;
};

/* ---- tables ---------------------------------------------------------------------------------- */

/*
 * Written by the cleaner while the table is not live. Whoever uses what it says looks at the epoch afterwards, or
 * with the stripes held: if it has changed, all is done anew (key_settle).
 */
struct table {
	struct bucket *bucket; /* region memory; constant, and readable for as long as the index lives */
	_Atomic uint64_t buckets;
	_Atomic uint32_t stripe_shift;
	_Atomic uint32_t id;
};

/* ---- segments -------------------------------------------------------------------------------- */

#define SEGMENT_CLOSED UINT64_MAX

/* counts: slots in the low half, ghosts among them above, and who comes after the close. */
#define COUNTS_CLOSED (UINT64_C(1) << 63)
#define COUNTS_GHOST_SHIFT 32
#define COUNTS_SLOTS(counts) ((uint32_t)(counts))
#define COUNTS_GHOSTS(counts) ((uint32_t)((counts) >> COUNTS_GHOST_SHIFT) & 0x7fffffffu)

#define FILTER_PASS_ALL 65536 /* filter_pass of a segment without a filter: probability one */

struct filter;

struct segment {
	alignas(64) _Atomic uint64_t sequence; /* SEGMENT_CLOSED: its slots count as empty */
	_Atomic uint8_t table; /* that it is bound to; constant while a slot names it */
	/*
	 * Changed by whoever changed a slot, with that slot's stripe still held. The close sets
	 * COUNTS_CLOSED in the same word and takes what it finds there off the sums; who comes later
	 * sees the bit and leaves the sums alone. So every slot leaves the sums exactly once.
	 */
	_Atomic uint64_t counts;
	_Atomic(struct filter *) filter; /* NULL: none. Used between readers_enter and leave. */
	_Atomic uint32_t mean_bytes; /* constant while a slot names the segment */
	_Atomic uint32_t filter_pass; /* likewise; false-positive rate / 65536 */
	_Atomic uint32_t extents; /* written under extents.sums_lock, as are the rest */
	uint32_t extent_ghosts;
	uint64_t extent_bytes, extent_ghost_bytes;
	bool extents_open; /* as COUNTS_CLOSED, for the extents */
};

/* ---- sums ------------------------------------------------------------------------------------ */

/* One per few threads, so that workers do not share a line. The sums are over all shards. */
struct shard {
	alignas(64) _Atomic uint64_t readers; /* threads of this shard that are inside a filter */
	_Atomic int64_t used, ghosts, live_bytes, hot_bytes, filter_pass;
};

/* ---- the table of known collisions ----------------------------------------------------------- */

/*
 * Two words without a lock between them: id ^ owner and owner. A reader that sees halves of two
 * entries computes a wrong id and finds nothing.
 */
struct exact_entry {
	_Atomic uint64_t check, owner;
};

struct exact {
	_Atomic uint64_t learned; /* 0: nothing to consult */
	struct lock lock; /* LOCK_LEAF, covers writing and next */
	unsigned next;
	struct exact_entry entry[EXACT_SETS][EXACT_WAYS];
};

/* ---- extents --------------------------------------------------------------------------------- */

/*
 * Region memory. Eight extents; a key has two groups. word: length << 32 | (segment + 1) << 3 | state,
 * none of the bits of the segment = empty. All zeros is an empty group.
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
};

/*
 * One table is in use; both while what the old one holds is moved to the new one, entry by entry, there first and then
 * gone here. So whoever looks in the old one first misses nothing. epoch changes with either's size: a look without a
 * lock is repeated when it has.
 */
struct extents {
	struct extent_table table[EXTENT_TABLES];
	_Atomic unsigned current; /* where inserts go */
	_Atomic uint32_t epoch;
	uint32_t most;
	_Atomic uint64_t present; /* entries that are not empty, closed segments' too */
	_Atomic int64_t used; /* of open segments */
	struct lock stripe[EXTENT_STRIPES]; /* of groups: every change, and every read of more than a hash */
	struct lock sums_lock; /* LOCK_LEAF: what segments count about extents */
	bool ready; /* locks are initialised */
};

/* ---- the index ------------------------------------------------------------------------------- */

struct fidx {
	struct slot_layout layout;
	struct region *region; /* not owned */
	uint32_t segments;
	unsigned functions;
	_Atomic unsigned filter_bits; /* of filters to be built; 0 as long as no segment may have one */
	enum fidx_clock_mode clock_mode;
	uint64_t seed, tag_seed, filter_seed;
	struct table table[FIDX_TABLES];
	_Atomic uint32_t live; /* tables: a bit each */
	_Atomic uint32_t epoch; /* counts their coming and going */
	uint32_t next_table_id; /* cleaner */
	uint64_t buckets_most; /* of a table */
	struct stripe *stripe; /* STRIPES_MAX */
	struct segment *segment_field; /* by a slot's segment field: the first, which empty slots name, stays closed */
	struct shard *shard;
	struct exact *exact;
	_Atomic uint64_t filter_bytes;
	_Atomic bool filters; /* some segment has had one */
	_Atomic bool hand_busy;
	/* Where the hand is: in a table, or behind the last one among the extents. Whoever set hand_busy. */
	unsigned hand_table;
	uint64_t hand;
	struct extents extents;
};

/* index.c */
struct shard *shard_self(struct fidx *index);

/* tables.c */
int tables_init(struct fidx *index, uint64_t buckets);

/* hand.c */
/* One thread at a time is the hand, or keeps it from the tables. False: another one is. */
bool hand_take(struct fidx *index);
void hand_give(struct fidx *index);

/* segment.c */
/* With the stripe of the changed slot held: slots and ghosts are the differences. */
void segment_account(struct fidx *index, uint32_t segment, int slots, int ghosts);
void segment_account_sums(struct fidx *index, int64_t slots, int64_t ghosts, int64_t live_bytes, int64_t hot_bytes,
			  int64_t filter_pass);

/* filter.c. Checks bytes that may come from flash: NULL (and the bytes freed) when not well formed. */
struct filter *filter_wrap(void *bytes, size_t length);
void filter_free(struct filter *filter);
size_t filter_bytes(const struct filter *filter);
double filter_pass_rate(const struct filter *filter);
bool filter_passes(const struct fidx *index, const struct filter *filter, uint64_t hash);

/* exact.c */
int exact_create(struct exact **out);
void exact_destroy(struct exact *exact);
bool exact_rejects(const struct exact *exact, const struct fidx_match *match, uint64_t hash);

/* extents.c */
int extents_init(struct fidx *index, uint32_t most);
void extents_fini(struct extents *extents);
/* Groups for so many entries, with room to spare. */
uint64_t extents_groups(uint64_t entries);
uint64_t extents_ways(const struct fidx *index); /* places for entries, of both tables */
unsigned extents_clear(struct fidx *index, uint64_t hash);
void extents_segment_open(struct fidx *index, struct segment *segment);
void extents_segment_close(struct fidx *index, struct segment *segment);
uint64_t extents_sweep(struct fidx *index, uint32_t segment);
/* The hand at extent at, 0 .. extents_ways: true when it was live. Takes the bytes of a new ghost off *ghost_bytes. */
bool extents_hand(struct fidx *index, uint64_t at, uint64_t *ghost_bytes, bool *made_ghost);
/* Every entry that is not empty. Only while nothing else runs. */
void extents_visit(const struct fidx *index, /* all tables */
		   void (*visit)(void *context, uint32_t segment, bool ghost, uint32_t length), void *context);

/*
 * In builds with fault points, lets other threads in now and then between two steps that a lookup
 * must see as one: the gap is a nanosecond wide, and a test would hardly ever meet it.
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

/* number: of a segment, or what slot_segment says of an empty slot. */
static inline struct segment *segment_at(const struct fidx *index, uint32_t number)
{
	return &index->segment_field[(uint32_t)(number + 1)];
}

static inline uint64_t segment_sequence(const struct fidx *index, uint32_t segment)
{
	return atomic_load_explicit(&segment_at(index, segment)->sequence, memory_order_acquire);
}

static inline unsigned segment_table(const struct fidx *index, uint32_t segment)
{
	return atomic_load_explicit(&segment_at(index, segment)->table, memory_order_relaxed);
}

/* Empty, or naming a closed segment. */
static inline bool slot_is_free(const struct fidx *index, uint32_t slot)
{
	return segment_sequence(index, slot_segment(&index->layout, slot)) == SEGMENT_CLOSED;
}

static inline uint64_t table_buckets(const struct table *table)
{
	return atomic_load_explicit(&table->buckets, memory_order_relaxed);
}

/* The live tables, a bit each. Walked by: for (left = tables_live(index); left; left &= left - 1) ... ctz(left) */
static inline uint32_t tables_live(const struct fidx *index)
{
	return atomic_load_explicit(&index->live, memory_order_relaxed);
}

static inline uint32_t tables_epoch(const struct fidx *index)
{
	return atomic_load_explicit(&index->epoch, memory_order_acquire);
}

static inline struct stripe *bucket_stripe(const struct fidx *index, const struct table *table, uint32_t bucket)
{
	return &index->stripe[bucket >> atomic_load_explicit(&table->stripe_shift, memory_order_relaxed)];
}

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

/* The other bucket of a slot in a table of so many buckets. Its own inverse. */
static inline uint32_t bucket_partner(const struct fidx *index, uint64_t buckets, uint32_t bucket, uint32_t tag)
{
	uint64_t sum = reduce64(mix64(tag ^ index->tag_seed), buckets);

	return (uint32_t)(sum >= bucket ? sum - bucket : sum + buckets - bucket);
}

/* What the two buckets and the tag of a key in a table are, as one number: the table's id from bit 56, its lower bucket
   from 24, the tag. */
static inline uint64_t place_of(uint32_t table_id, const uint32_t bucket[2], uint32_t tag)
{
	return (uint64_t)table_id << 56 | (uint64_t)(bucket[0] < bucket[1] ? bucket[0] : bucket[1]) << 24 | tag;
}

_Static_assert(32 - SLOT_FIXED_BITS - 1 <= 24, "the widest tag fits below the bucket");

/* The key with its buckets in the tables that are live now: itself, or copy. */
static inline const struct fidx_key *key_settle(const struct fidx *index, const struct fidx_key *key,
						struct fidx_key *copy)
{
	if (__builtin_expect(key->epoch == tables_epoch(index), 1))
		return key;
	fidx_key_of(index, key->hash, copy);
	return copy;
}

#endif
