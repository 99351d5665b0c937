/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share: the two threads' own data, pace, gathered candidates. */
#ifndef FS_STORE_CLEANER_INTERNAL_H
#define FS_STORE_CLEANER_INTERNAL_H

#include "server/store/cleaner/cleaner.h"
#include "server/store/state/background.h"

/* What a cleaner's plan keeps for each candidate beside seg_candidate. */
struct plan_entry {
	struct clf_features_packed features; /* as they were when it was gathered */
	uint8_t fetched;
	float score;
};

/* How much the cleaner has to do, and what it has done of the present segment: pace.c. */
struct pace {
	/* Written by the keeper alone: */
	_Atomic double demand; /* bytes per second that items grow by: rises at once, falls slowly */
	int64_t observed_bytes;
	uint64_t observed_ms;
	/* The cleaner's own: */
	_Atomic double cycle_ms; /* a segment from gathering to its last commit, pauses left out; the keeper reads it */
	uint64_t began_us, step_us, paused_us; /* of this cycle, of this step; all pauses of this cycle */
	bool hurried; /* how the thread is scheduled */
};

/* The looks through DRAM: crawl.c. The keeper's own, but for the first. */
struct crawl {
	_Atomic bool asked; /* from store_crawl to the end of the crawl that it asks for */
	bool begun; /* that one */
	uint32_t left[CLASSES + 1]; /* how many objects of each class it is to look at yet */
	uint64_t due_us; /* not before */
	uint64_t passed_at_ms; /* when the pass that goes on by itself went on last */
	uint64_t pass_version; /* clf_version when the stripe that it is in was begun */
};

/* What goes on whatever the device does: keeper.c. */
struct keeper {
	struct background background;
	struct store_context context;
	struct crawl crawl;
	uint64_t ticked_at_ms, watched_at_ms;
	uint64_t watched_bytes; /* allocated_bytes at the last look at resident memory */
	uint64_t visited_in_vain; /* objects, since eviction found one */
	uint64_t flash_bytes_last, sets_last;
	_Atomic uint64_t write_rate; /* flash bytes per second, smoothed */
	_Atomic uint64_t innocent_millionths; /* expected innocent slots cleared, in millionths */
	_Atomic uint64_t beat_ms; /* when it last came round */
};

/* What is known of how large the index has to be: tables.c. The cleaner's own. */
struct index_sizing {
	double objects_each; /* slots that a segment takes, smoothed over the last ones; 0: none was gathered yet */
	uint32_t seen; /* segments that this comes from ... */
	uint32_t seen_since; /* ... and those since a table was added */
	uint32_t draining; /* tables that get no further segments: a bit each */
	unsigned table; /* of the last segment */
	bool told_full; /* that the index may not grow further */
};

/* What waits for the device: cleaner.c. Fields that are not atomic are its own. */
struct cleaner {
	struct background background;
	struct store_context context;
	struct pace pace;
	uint32_t gather_stripe;
	struct index_sizing sizing;
	_Atomic int64_t write_tokens; /* bytes that may be written now, under a write limit */
	uint64_t tokens_at_ms;
	_Atomic bool held_up; /* a segment waited for tokens since the last tick */
	_Atomic bool writing; /* a segment is on its way */
	_Atomic uint64_t offline_until_ms;
	_Atomic uint64_t beat_ms; /* when it last went on */
};

/* ---- evict.c --------------------------------------------------------------------------------- */

enum evict_how {
	EVICT_DEAD, /* what is expired or flushed alone: -M */
	EVICT_SPARE_CANDIDATES, /* what stands at zero and doesn't wait for the flash */
	EVICT_AT_ZERO,
	EVICT_ANY, /* ... but not what was just written */
	EVICT_ALL
};
/* Moves the context's hand over up to visits items; takes out up to bytes. Returns bytes taken out. */
uint64_t evict_dram(struct store_context *context, uint64_t bytes, uint64_t visits, enum evict_how how,
		    bool inline_by_worker, uint64_t *visited);
/* The keeper's round: DRAM and flash in proportion, some thousand objects of each at the most. True: it did something. */
bool evict_round(struct store_context *context, uint64_t want_free);
/* Is most of what is in DRAM waiting for the flash, so that looking for other things is in vain? */
bool mostly_candidates(const struct store *store);
/* Hot data over its threshold: makes ghosts on flash alone, of a bounded number of slots. True: it made some, or has not
   seen all of them. */
bool evict_excess_hot(struct store *store);

/* ---- pace.c: how fast the cleaner works ------------------------------------------------------ */

void pace_init(struct store *store, uint64_t now_ms);
/* Now and then: how fast memory is used up. */
void pace_observe(struct store *store, uint64_t now_ms);
/* Bytes that are used up while a segment is made. */
uint64_t pace_reserve(const struct store *store);
/* Will free memory be used up before the next segment has moved? */
bool pace_hurry(const struct store *store);
/* Around the work on a segment; cycle_ms follows from what lies between them. */
void pace_begin(struct store *store);
void pace_end(struct store *store);
/* Between small pieces of such work, no lock held: a pause from time to time. Cheap: 30 ns. */
void pace_step(struct store *store);
void pace_plan_step(void *store); /* the same, for seg_set_step */
/* When this part of the write that began then has been issued: sleeps if that is early. */
void pace_write(struct store *store, uint64_t began_ms, double part);
/* The calling thread is the cleaner's: how the kernel is to schedule it. */
void pace_thread(struct store *store);

/* ---- crawl.c --------------------------------------------------------------------------------- */

/* crawl.c: expired and flushed items, and items whose score is of an older model: some thousand of them. True: there
   is more to do at once. Keeper. */
bool keeper_crawl(struct store *store, uint64_t now_ms);

/* ---- cleaner.c, gather.c, write.c, commit.c, tables.c, reclaim.c ------------------------------ */

/* From time to time in what takes long: the cleaner goes on. */
void cleaner_beat(struct store *store);
/* Sleeps up to ms, less when stopped; not at all without a thread. */
void cleaner_sleep(struct store *store, unsigned ms);
/* Does the device take writes, as far as is known? Would a segment be written with so much memory free? Is one being
   written? Any thread; the answer may be out of date. */
bool cleaner_takes_writes(const struct store *store);
bool cleaner_wants_to_write(const struct store *store, int64_t free_bytes);
bool cleaner_is_writing(const struct store *store);
/* So many bytes of candidates wait for the flash, those beyond take their chance. */
uint64_t cleaner_spares(const struct store *store);

/* The candidates of the next segment. */
struct gathered {
	struct seg_candidate *candidates;
	struct plan_entry *entries;
	uint32_t count, room;
	uint32_t extents; /* of these, large objects */
	uint32_t table_id; /* of the table that the candidates' places are of */
	uint64_t bytes; /* of records */
	uint64_t slot_bytes; /* of these, that get a slot */
	uint64_t item_bytes; /* what they cost in DRAM */
};
/* The item of the n-th record of a plan. */
static inline struct item *placed_item(const struct seg_plan *plan, const struct gathered *gathered, uint32_t n)
{
	must(n < plan->count && plan->placed[n].candidate < gathered->count);
	return gathered->candidates[plan->placed[n].candidate].item;
}
/* Takes so many bytes for a plan into the account of -m, and back out of it. */
static inline void plan_bytes_add(struct store *store, uint64_t bytes)
{
	atomic_fetch_add_explicit(&store->plan_bytes, bytes, memory_order_relaxed);
}

static inline void plan_bytes_sub(struct store *store, uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub_explicit(&store->plan_bytes, bytes, memory_order_relaxed);

	must(before >= bytes);
}

/* Its number among the candidates on its way into the cache, if there are so many. */
static inline void prefetch_number(const struct seg_plan *plan, const struct gathered *gathered, uint32_t n)
{
	if (n < plan->count)
		__builtin_prefetch(&gathered->candidates[plan->placed[n].candidate]);
}
/* Which size groups fill a segment of so many bytes; 0: all together they don't. */
unsigned gather_choose_groups(const struct store *store, uint64_t bytes);
/* table: of the index, that their slots will lie in. */
void gather_candidates(struct store *store, unsigned groups, uint64_t want_bytes, unsigned table, struct gathered *out);
void planned_release(struct store *store, struct item *item);
void gathered_release(struct store *store, struct gathered *gathered);
/* Plans, writes and commits one segment. True when one was written. */
bool write_segment(struct store *store, unsigned groups);
/* room.c. A free place on flash, the oldest segment's if need be. False: there is none. */
FS_MUST_CHECK bool room_on_flash(struct store *store, uint32_t *segment);
/* A table of the index for the slots, in cleaner->sizing.table; the candidates' places follow from it. False: there is none. */
FS_MUST_CHECK bool room_in_index(struct store *store, struct gathered *gathered);
/* filter.c. Memory of mem_alloc, the caller's to free; NULL when no filter is wanted or memory is out. */
void *filter_make(struct store *store, const struct seg_plan *plan, const struct gathered *gathered, size_t *length);
/* What was written of a gathered plan is in the index from now on: commit.c. */
void commit_segment(struct store *store, uint32_t segment, unsigned table, const struct seg_plan *plan,
		    const struct gathered *gathered, void *filter, size_t filter_length);

/* tables.c. The table for the next segment, with room for so many slots: one that is there, or a new one. False: there is
   none, and a new one is not worth it, or memory for it is not to be had. */
FS_MUST_CHECK bool tables_choose(struct store *store, uint64_t objects, unsigned *table);
/* So many slots was what the last segment took. */
void tables_note(struct store *store, uint64_t objects);

bool reclaim_segment(struct store *store, uint32_t segment);

#endif
