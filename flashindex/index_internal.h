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

#include "base/lock.h"
#include "flashindex/layout_internal.h"

#define STRIPES_MAX 1024
#define SHARDS 32 /* a power of two */
#define EXACT_SETS 1024
#define EXACT_WAYS 4
#define EXTENT_STRIPES 64
#define EXTENT_WAYS 8

/* ---- stripes --------------------------------------------------------------------------------- */

/* A run of 2^stripe_shift neighbouring buckets. */
struct stripe {
	alignas(64) struct lock lock;
	/*
	 * Odd while a slot moves between two buckets of which the lower lies here. All slots that a
	 * key can match have the same two buckets, so this one number tells a lookup whether any of
	 * them moved. Written with the lock held.
	 */
	_Atomic uint32_t moves;
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
	/*
	 * Changed by whoever changed a slot, with that slot's stripe still held. The close sets
	 * COUNTS_CLOSED in the same word and takes what it finds there off the sums; who comes later
	 * sees the bit and leaves the sums alone. So every slot leaves the sums exactly once.
	 */
	_Atomic uint64_t counts;
	_Atomic(struct filter *) filter; /* NULL: none. Used between readers_enter and leave. */
	_Atomic uint32_t mean_bytes;     /* constant while a slot names the segment */
	_Atomic uint32_t filter_pass;    /* likewise; false-positive rate / 65536 */
	_Atomic uint32_t extents;        /* written under extents.sums_lock, as are the rest */
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
	struct lock lock;         /* LOCK_LEAF, covers writing and next */
	unsigned next;
	struct exact_entry entry[EXACT_SETS][EXACT_WAYS];
};

/* ---- extents --------------------------------------------------------------------------------- */

/*
 * Region memory. Eight extents; a key has two groups. word: length << 32 | segment << 3 | state,
 * all ones in the 14 bits of the segment = empty.
 */
struct extent_group {
	alignas(64) _Atomic uint64_t hash[EXTENT_WAYS];
	_Atomic uint64_t offset[EXTENT_WAYS];
	_Atomic uint64_t word[EXTENT_WAYS];
};

struct extents {
	struct extent_group *group;
	uint64_t groups;
	_Atomic uint64_t present; /* entries that are not empty, closed segments' too */
	_Atomic int64_t used;     /* of open segments */
	struct lock
		stripe[EXTENT_STRIPES]; /* of groups: every change, and every read of more than a hash */
	struct lock sums_lock;          /* LOCK_LEAF: what segments count about extents */
	bool ready;                     /* locks are initialised */
};

/* ---- the index ------------------------------------------------------------------------------- */

struct fidx {
	struct slot_layout layout;
	uint64_t buckets;
	uint32_t segments;
	unsigned functions;
	unsigned filter_bits;
	enum fidx_clock_mode clock_mode;
	uint64_t seed, tag_seed, filter_seed;
	struct bucket *bucket; /* not owned */
	struct stripe *stripe;
	unsigned stripes, stripe_shift;
	struct segment
		*segment; /* 2^segment_bits of them; the last, which empty slots name, stays closed */
	struct shard *shard;
	struct exact *exact;
	_Atomic uint64_t filter_bytes;
	_Atomic bool hand_busy;
	uint64_t hand; /* next slot, or after the slots the next extent; whoever set hand_busy */
	struct extents extents;
};

/* index.c */
struct shard *shard_self(struct fidx *index);

/* segment.c */
/* With the stripe of the changed slot held: slots and ghosts are the differences. */
void segment_account(struct fidx *index, uint32_t segment, int slots, int ghosts);
void segment_account_sums(struct fidx *index, int64_t slots, int64_t ghosts, int64_t live_bytes,
			  int64_t hot_bytes, int64_t filter_pass);

/* filter.c. Checks bytes that may come from flash: NULL (and the bytes freed) when not well formed. */
struct filter *filter_wrap(void *bytes, size_t length);
void filter_free(struct filter *filter);
size_t filter_bytes(const struct filter *filter);
double filter_pass_rate(const struct filter *filter);
bool filter_passes(const struct fidx *index, const struct filter *filter, uint64_t hash);

/* exact.c */
int exact_create(struct exact **out);
void exact_destroy(struct exact *exact);
bool exact_rejects(const struct exact *exact, uint64_t place, const struct fidx_match *match,
		   uint64_t hash);

/* extents.c */
int extents_init(struct fidx *index, uint32_t capacity, void *memory);
void extents_fini(struct extents *extents);
uint64_t extents_groups(uint32_t capacity);
unsigned extents_clear(struct fidx *index, uint64_t hash);
void extents_segment_open(struct fidx *index, struct segment *segment);
void extents_segment_close(struct fidx *index, struct segment *segment);
uint64_t extents_sweep(struct fidx *index, uint32_t segment);
/* The hand at extent at: true when it was live. Takes the bytes of a new ghost off *ghost_bytes. */
bool extents_hand(struct fidx *index, uint64_t at, uint64_t *ghost_bytes, bool *made_ghost);
/* Every entry that is not empty. Only while nothing else runs. */
void extents_visit(const struct fidx *index,
		   void (*visit)(void *context, uint32_t segment, bool ghost, uint32_t length),
		   void *context);

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

static inline uint64_t segment_sequence(const struct fidx *index, uint32_t segment)
{
	return atomic_load_explicit(&index->segment[segment].sequence, memory_order_acquire);
}

/* Empty, or naming a closed segment. */
static inline bool slot_is_free(const struct fidx *index, uint32_t slot)
{
	return segment_sequence(index, slot_segment(&index->layout, slot)) == SEGMENT_CLOSED;
}

static inline struct stripe *bucket_stripe(const struct fidx *index, uint32_t bucket)
{
	return &index->stripe[bucket >> index->stripe_shift];
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

static inline void stripes_acquire(struct fidx *index, uint32_t a, uint32_t b)
{
	lock_two(&bucket_stripe(index, a)->lock, &bucket_stripe(index, b)->lock);
}

static inline void stripes_release(struct fidx *index, uint32_t a, uint32_t b)
{
	unlock_two(&bucket_stripe(index, a)->lock, &bucket_stripe(index, b)->lock);
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

/* The other bucket of a slot. Its own inverse. */
uint32_t bucket_partner(const struct fidx *index, uint32_t bucket, uint32_t tag);

#endif
