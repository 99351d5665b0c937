/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that the files of this room share: the two threads' own data, pace, and gathered candidates. */
#ifndef FS_STORE_CLEANER_INTERNAL_H
#define FS_STORE_CLEANER_INTERNAL_H

#include "flashindex/unit_queues.h"
#include "server/store/cleaner/cleaner.h"
#include "server/store/state/background.h"

/* The store's part of a candidate in a plan, beside seg_candidate. */
struct plan_entry {
	struct clf_features_packed features; /* at the time of gathering */
	uint8_t fetched; /* 0 or 1 */
	float score;
};

/* The demand for memory, and the progress of the present segment: pace.c. */
struct pace {
	/* Written by the keeper alone: */
	_Atomic double demand; /* bytes per second that items grow by; rises at once, falls slowly */
	int64_t observed_bytes;
	uint64_t observed_ms;
	/* The cleaner's own: */
	_Atomic double cycle_ms; /* a segment from gathering to its last commit, without pauses; the keeper reads it */
	uint64_t began_us, step_us, paused_us; /* when this cycle and this step began; the sum of this cycle's pauses */
	bool hurried; /* the thread is scheduled like any other, not as a batch */
};

/* The crawls through DRAM: crawl.c. The keeper's own, except for the first field. */
struct crawl {
	_Atomic bool asked; /* from store_crawl to the end of the crawl that it asks for; any thread sets it */
	bool begun; /* the crawl that was asked for */
	uint32_t stripe, pass_stripe; /* where that crawl goes on, and the pass that goes on by itself ... */
	struct line_position at, pass_at; /* ... and the lines there */
	uint32_t left[CLASSES + 1]; /* objects of each class that it has still to look at */
	uint64_t due_us; /* its next batch is not before this time */
	uint64_t passed_at_ms; /* when the pass that goes on by itself went on last */
	uint64_t pass_version; /* clf_version when that pass began its present stripe */
};

/* The keeper, which goes on whatever the device does: keeper.c. Fields that are not atomic are its own. */
struct keeper {
	struct background background;
	struct store_context context;
	struct crawl crawl;
	uint64_t ticked_at_ms, watched_at_ms;
	uint64_t watched_bytes; /* allocated_bytes at the last look at resident memory */
	uint64_t visited_in_vain; /* objects visited since eviction took one out */
	uint64_t flash_bytes_last, app_bytes_last, sets_last; /* totals at the last tick */
	uint64_t late_last; /* room_evictions_late at the last tick */
	_Atomic bool sees_losses; /* it rose before the last tick */
	_Atomic uint64_t write_rate; /* flash bytes per second, smoothed */
	_Atomic uint64_t innocent_millionths; /* expected innocent slots cleared, in millionths */
	_Atomic uint64_t beat_ms; /* when it last came round */
};

/* The estimate of the index's size: tables.c. The cleaner's own. */
struct index_sizing {
	double objects_each; /* slots that a segment takes, smoothed over the last ones; 0: none was written yet */
	uint32_t seen; /* segments behind this figure ... */
	uint32_t seen_since; /* ... and those since a table was added */
	uint32_t draining; /* tables that get no further segments: a bit each */
	bool was_full; /* a segment was reclaimed before its turn, for its slots; calm: written since */
	uint32_t calm;
	unsigned table; /* of the last segment */
	bool told_full; /* the log has said that the index can't grow further */
};

/* Filters that come back from flash after a start: load_filters.c. The cleaner's own, except for the first field. */
struct load_filters {
	_Atomic uint32_t left; /* segments to look at before the present one; any thread reads it */
	uint64_t below; /* only segments of lower sequences are still to be looked at; 0: none is */
	uint64_t began_us, due_us; /* no read is begun before due_us */
	uint32_t loaded, failed; /* segments */
	uint32_t io_errors;
	bool gives_up; /* the others go on without one */
};

/* Filter units: units.c. The cleaner's own, except for the first field. */
struct units_of_segment {
	bool asked; /* before the last look */
	uint8_t failures; /* of reads in a row */
	uint32_t again_s; /* it wants no unit before this second of the clock */
};
struct units {
	_Atomic uint64_t resident; /* units in memory; any thread reads it */
	struct unit_queues *queues; /* NULL: filters have no units */
	struct units_of_segment *segment;
	uint32_t segments, at; /* at: the next segment that may want a unit; 0: a look is due */
	uint64_t looked_at; /* in gets so far */
	uint64_t due_us; /* no look before */
};

#define CLEANER_REST_FIRST_MS 1000u /* behind work that has failed, before it is tried again, ... */
#define CLEANER_REST_MOST_MS 64000u /* ... when it has failed again and again */
/* Returns how long the next rest is, where the last one was so long; 0: there was none. */
static inline uint64_t cleaner_longer_rest_ms(uint64_t rest_ms)
{
	return rest_ms == 0                         ? CLEANER_REST_FIRST_MS
	       : rest_ms < CLEANER_REST_MOST_MS / 2 ? 2 * rest_ms
						    : CLEANER_REST_MOST_MS;
}

/* Segments for applications near their ceilings: ceilings.c. The cleaner's own. */
struct ceilings {
	bool only; /* the segment under way is for these alone: limited.pressed */
	uint64_t candidates[GROUPS]; /* bytes of these applications' candidates, when it was chosen */
	uint64_t again_ms; /* none begins before */
	uint64_t rest_ms; /* how long that is behind one that could not be filled; 0: the last one was written */
};

/* The cleaner, which waits for the device: cleaner.c. Fields that are not atomic are its own. */
struct cleaner {
	struct background background;
	struct store_context context;
	struct pace pace;
	uint32_t gather_stripe; /* the next one to gather from */
	struct index_sizing sizing;
	struct load_filters filters;
	struct mover *mover; /* move.c */
	struct ceilings ceilings;
	struct place *_Atomic asked_place; /* place.c; NULL: nothing is asked for */
	_Atomic bool driven; /* a test waits for it to rest */
	struct place *places; /* the segment under way is for these objects alone */
	bool rescues; /* rescue.c: one is under way */
	uint64_t rescue_at_ms; /* its next piece is not before */
	struct units units;
	_Atomic int64_t write_tokens; /* bytes that may be written now, under a write limit */
	_Atomic int64_t ratio_tokens; /* the same by --flash-write-ratio */
	uint64_t tokens_at_ms, tokens_at_app_bytes; /* when they were refilled */
	_Atomic bool held_up; /* a segment waited for tokens since the last tick */
	_Atomic bool writing; /* a segment is on its way */
	_Atomic bool has_room, filling; /* fill.c; written by the cleaner */
	bool saves; /* at the stop: see cleaner_gives_up */
	uint32_t chain_partition; /* of the merge that is under way: the first one that isn't written (chain.c) */
	bool no_chain; /* the last merge was given up, as a record fits into no segment, or the chain has too many segments */
	uint64_t
		chain_rest_ms; /* how long the next merge waits behind the one that failed; 0: the last one came to its end */
	uint64_t chain_again_ms; /* no merge begins before, unless chain_rest_ms is 0 */
	_Atomic uint64_t offline_until_ms; /* no write is tried before */
	_Atomic uint64_t beat_ms; /* when it last went on */
};

/* ---- evict.c --------------------------------------------------------------------------------- */

enum evict_how {
	EVICT_DEAD, /* only expired or flushed objects: -M */
	EVICT_OFFER, /* the same; objects at CLOCK zero are asked whether they are candidates: -M */
	EVICT_SPARE_CANDIDATES, /* objects at CLOCK zero that are no candidates */
	EVICT_AT_ZERO, /* objects at CLOCK zero */
	EVICT_ANY, /* any object that was not written just now */
	EVICT_ALL /* any object */
};
/* Moves the context's hand over up to `visits` items and evicts items that cost up to `bytes`. Returns the bytes that
   they cost, and fills visited. Holds one stripe at a time. The context's thread. */
uint64_t evict_dram(struct store_context *context, uint64_t bytes, uint64_t visits, enum evict_how how,
		    bool inline_by_worker, uint64_t *visited);
/* Whose objects a round is about. */
struct evict_whose {
	const struct limited *app; /* NULL: those of each application that is above its ceiling, or in its margin */
};
/* Does the same for these objects alone; the hand passes all others by. The store has limits. Returns the bytes that the
   evicted ones cost. */
uint64_t evict_limited(struct store_context *context, uint64_t bytes, uint64_t visits, enum evict_how how,
		       const struct evict_whose *whose, bool inline_by_worker);
/* Does a round over DRAM and flash in proportion, some thousand objects of each at the most. True: it did something.
   Keeper. */
bool evict_round(struct store_context *context, uint64_t want_free);
/* Returns the number of stripes that can have objects, the first ones. Any thread. */
uint32_t evict_stripes_in_use(const struct store *store);
/* Does the flash take writes, and are there fewer candidates, planned ones included, than eviction spares? Any thread. */
bool evict_wants_candidates(const struct store *store);
/* Are most bytes in DRAM candidates or planned, so that a search for others is in vain? Any thread. */
bool mostly_candidates(const struct store *store);
/* Makes ghosts on flash alone while hot data is above its threshold; visits a bounded number of slots. True: it visited
   some. Keeper. */
bool evict_excess_hot(struct store *store);

/* ---- ceilings.c ------------------------------------------------------------------------------ */

/* Keeps floors and ceilings: counts items of new names, and evicts what is above a ceiling, in a bounded step. True: there
   is more to do at once. Keeper. */
bool keeper_hold_limits(struct store *store, uint64_t now_ms);
/* Returns the size groups of a segment for applications near their ceilings, and marks these as pressed; 0: what they may
   write doesn't fill one, or the last one could not be filled a short time ago. Cleaner. */
unsigned ceilings_choose_groups(struct store *store);
/* The segment that was chosen was written, or could not be filled. Cleaner. */
void ceilings_note_segment(struct store *store, bool written);

/* ---- flash_limits.c: what applications with limits have on flash (the cleaner's) -------------------- */

/* Enclose the commit of a segment: from the first on limits_note_written counts its objects, of which there are so many in
   the end. */
void flash_limits_open(struct store *store, uint32_t segment, uint64_t sequence);
void flash_limits_opened(struct store *store, uint32_t segment, uint64_t objects);
/* The segment is about to be reclaimed: it counts no more, so that what is kept is what others have room for. */
void flash_limits_close(struct store *store, uint32_t segment);
/* Does the application of a live object, in a segment that is reclaimed, need it for its floor, and has a budget to write
   it again? */
FS_MUST_CHECK bool flash_limits_need(const struct store *store, const struct seg_record *head);
/* The object goes back into DRAM, for whatever reason, to be written again. */
void flash_limits_keep(struct store *store, const struct seg_record *head);

/* ---- pace.c: how fast the cleaner works ------------------------------------------------------ */

/* Begins the measurements, before the threads start. */
void pace_init(struct store *store, uint64_t now_ms);
/* Measures how fast memory is used up. The keeper calls it from time to time. */
void pace_observe(struct store *store, uint64_t now_ms);
/* Returns the bytes that are used up while a segment is made. Any thread. */
uint64_t pace_reserve(const struct store *store);
/* Will free memory be used up before the next segment has moved, or is a frugal index's table of kills crowded, so that the cleaner
   has to come round soon? Any thread. */
bool pace_hurry(const struct store *store);
/* Enclose the work on a segment; cycle_ms follows from the time between the two. Cleaner. */
void pace_begin(struct store *store);
void pace_end(struct store *store);
/* Pauses from time to time. The cleaner calls it between small pieces of such work, with no lock held; it takes 30 ns
   without a pause. */
void pace_step(struct store *store);
/* Does the same, for seg_set_step. */
void pace_plan_step(void *store);
/* Sleeps if it is early for this part (0 .. 1) of the write that began at began_ms to have been issued. Cleaner. */
void pace_write(struct store *store, uint64_t began_ms, double part);
/* Tells the kernel how to schedule the calling thread, the cleaner's. */
void pace_thread(struct store *store);

/* ---- sample.c -------------------------------------------------------------------------------- */

/* Gives out some objects of DRAM, if it is time for that. Each stripe is held for some microseconds. Keeper. */
void samples_dram_step(struct store *store, uint64_t now_ms);
/* Gives out an object on flash, if it is time for one; waits for the device. Cleaner, when it has nothing else to do. */
void samples_flash_step(struct store *store);

/* ---- crawl.c --------------------------------------------------------------------------------- */

/* Frees expired and flushed items, and scores items anew whose score is of an older model: some thousand of them, with
   one stripe held at a time. True: there is more to do at once. Keeper. */
bool keeper_crawl(struct store *store, uint64_t now_ms);

/* ---- cleaner.c, gather.c, write.c, commit.c, tables.c, reclaim.c ------------------------------ */

/* Shows that the cleaner goes on. Long work calls it from time to time, with no lock held. Without a thread of the
   cleaner it also does a step of the keeper. */
void cleaner_beat(struct store *store);
/* Sleeps up to ms, less when woken or stopped; not at all without a thread. Cleaner. */
void cleaner_sleep(struct store *store, unsigned ms);
/*
 * fill.c: while the next segments hold nothing, the ratio of writes holds nothing back. fill_look finds out whether it is
 * so, and fill_take takes a segment's bytes out of the fill before they are written, if it is, with the codes of
 * seg_fill_take. Both are the cleaner's. fill_would_matter: is there a ratio that holds something back? Any thread.
 */
void fill_look(struct store *store);
FS_MUST_CHECK int fill_take(struct store *store);
bool fill_is_on(const struct store *store);
bool fill_would_matter(const struct store *store);
/* Would the next segments be written without the loss of an object, as they hold nothing, and does the device take writes?
   Any thread; as of the cleaner's last step. */
bool cleaner_has_room(const struct store *store);
/* May the object go to flash while it is filled? Not if it is about to expire. */
bool fill_takes(const struct clf_object *object);
/* Three questions, whose answers may be out of date. cleaner_takes_writes: does the device take writes, as far as is
   known? cleaner_wants_to_write: would a segment be written with so many bytes free? cleaner_is_writing: is one being
   written? Any thread. */
bool cleaner_takes_writes(const struct store *store);
bool cleaner_wants_to_write(const struct store *store, int64_t free_bytes);
bool cleaner_is_writing(const struct store *store);
/* Do limit and ratio allow a segment? Any thread. */
bool cleaner_has_tokens(const struct store *store);
/* Free memory below which a segment is written, if there are candidates for it. Any thread. */
uint64_t cleaner_writes_below(const struct store *store);
/* At the end, when the cleaner's thread has ended: writes a segment however much memory is free, if there are candidates
   that fill it, a segment is free, and the write budget allows it. True: one was written. Waits for the device. */
bool cleaner_write_last(struct store *store);
/* May an object on flash be given up for one in memory? Not under -M. Not at the stop either, because the file of saved
   objects takes what memory holds: the flash would lose objects and save none. Cleaner. */
bool cleaner_gives_up(const struct store *store);
/* Returns the bytes of candidates that are ranked for a segment, where the rule asks at eviction. Any thread. */
uint64_t cleaner_ranks(const struct store *store);
/* Returns the bytes of candidates that eviction spares: as many as are ranked while the write budget is used up, and up
   to half of all items while it isn't, because then the cleaner is late. Any thread. */
uint64_t cleaner_spares(const struct store *store);

/* The candidates of the next segment; the cleaner's. Each item is planned, and has a reference here. */
struct gathered {
	struct seg_candidate *candidates;
	struct plan_entry *entries;
	uint32_t count, room;
	uint32_t extents; /* large objects among these */
	bool bins; /* for a segment of bins: a candidate's place is its key's x */
	uint32_t table_id; /* of the table that the candidates' places belong to; not for bins */
	uint64_t bytes; /* of their records */
	uint64_t slot_bytes; /* of the records that get a slot */
	uint64_t item_bytes; /* their cost in DRAM */
};
/* Returns the item of the n-th record of a plan. */
static inline struct item *placed_item(const struct seg_plan *plan, const struct gathered *gathered, uint32_t n)
{
	must(n < plan->count && plan->placed[n].candidate < gathered->count);
	return gathered->candidates[plan->placed[n].candidate].item;
}
/* plan_bytes_add takes so many bytes for a plan into the account of -m, plan_bytes_sub takes them out again. */
static inline void plan_bytes_add(struct store *store, uint64_t bytes)
{
	atomic_fetch_add_explicit(&store->plan_bytes, bytes, memory_order_relaxed);
}

static inline void plan_bytes_sub(struct store *store, uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub_explicit(&store->plan_bytes, bytes, memory_order_relaxed);

	must(before >= bytes);
}

/* Asks for the cache line of the n-th record's candidate, if there is such a record. */
static inline void prefetch_number(const struct seg_plan *plan, const struct gathered *gathered, uint32_t n)
{
	if (n < plan->count)
		__builtin_prefetch(&gathered->candidates[plan->placed[n].candidate]);
}
/* Returns the size groups, a bit each, that fill a segment of so many bytes with the candidates that there are of each
   group; 0: all together don't. */
unsigned gather_choose_groups(const struct store *store, const uint64_t of[GROUPS], uint64_t bytes);
/* Will objects of these groups, as gather_choose_groups has chosen them, go into a segment of bins? */
FS_MUST_CHECK bool gather_is_for_bins(const struct store *store, unsigned groups);
/* Plans candidates of these groups, about want_bytes of records, best score first; fewer where memory is short. table
   is the index's table for their slots. Holds one stripe at a time. gathered_release frees the contents of out. */
void gather_candidates(struct store *store, unsigned groups, uint64_t want_bytes, unsigned table, struct gathered *out);
/* Takes an item out of the plan: it stays in DRAM, and is a candidate again if it is still the key's. Drops the plan's
   reference. */
void planned_release(struct store *store, struct item *item);
/* Releases all items that were not committed, and the memory. */
void gathered_release(struct store *store, struct gathered *gathered);
/* Gathers, plans, writes and commits one segment. Waits for the device. True: one was written. */
bool write_segment(struct store *store, unsigned groups);
/* cleaner.c. Does the same, and eviction knows of it meanwhile. */
bool cleaner_write(struct store *store, unsigned groups);
#define CANDIDATE_SHARE 4 /* of a segment: what an object takes at the most that goes to flash */
/* score.c. May the item go to flash if a rule says so? Objects over a quarter of a segment may not, nor clean copies, objects
   with marks that a record can't hold, and those of an application that has written its share. Its stripe's lock held. */
bool candidate_eligible(const struct store *store, const struct item *item);
/* place.c, in builds with fault points. place_step writes what a test wants on flash, if it may; true: it did something.
   While place_is_under_way the segment is for those items alone that place_wants. The cleaner's. */
#ifdef FS_FAULTS
bool place_step(struct store *store, bool may_write);
bool place_is_under_way(const struct store *store);
bool place_wants(const struct store *store, const struct item *item);
#else
static inline bool place_step(struct store *store, bool may_write)
{
	(void)store;
	(void)may_write;
	return false;
}
static inline bool place_is_under_way(const struct store *store)
{
	(void)store;
	return false;
}
static inline bool place_wants(const struct store *store, const struct item *item)
{
	(void)store;
	(void)item;
	return true;
}
#endif
/* room.c. Finds a free segment, after a reclaim of the oldest if need be; waits for the device. False: there is
   none. */
FS_MUST_CHECK bool room_on_flash(struct store *store, uint32_t *segment);
/* Finds a table of the index for the slots: cleaner->sizing.table; the candidates' places follow from it. May reclaim.
   False: there is none. */
FS_MUST_CHECK bool room_in_index(struct store *store, struct gathered *gathered);
/* filter.c. Returns the filter of a planned segment in memory of mem_alloc, all units of it if it has some, for
   commit_segment, or else for the caller to free. NULL when no filter is wanted, or memory is out. */
void *filter_make(struct store *store, const struct seg_plan *plan, const struct gathered *gathered, size_t *length);
/* commit.c. Moves each placed object that is still current from the DRAM table into the index, with one stripe held at
   a time, and drops the plan's reference of all placed ones. The segment is safely written before. Takes over
   filter. */
void commit_segment(struct store *store, uint32_t segment, unsigned table, const struct seg_plan *plan,
		    const struct gathered *gathered, void *filter, size_t filter_length);

/*
 * bins.c: segments of bins. bins_plan_begin and bins_plan_end enclose all that is done with their candidates. bins_room finds
 * memory for the columns of so many records; it may reclaim. False: there is none. bins_commit does what commit_segment does.
 */
void bins_plan_begin(struct store *store);
void bins_plan_end(struct store *store);
FS_MUST_CHECK bool bins_room(struct store *store, uint64_t records);
/* Returns the bytes that the index may take of -m. */
uint64_t bins_memory_most(const struct store *store);
/* Has -m room for the column of so many records, and for a list of so many kills? */
FS_MUST_CHECK bool bins_has_memory(const struct store *store, uint64_t records, uint64_t kills);
void bins_commit(struct store *store, uint32_t segment, const struct seg_plan *plan, const struct gathered *gathered);
/* Takes kills out of a table that is crowded. The cleaner, when no segment of bins is planned. */
void bins_step(struct store *store);

/* chain.c, with a frugal index. chain_turn, behind each segment of bins: begins a merge that is due, and writes one segment of the
   new chain, if that is possible. Waits for the device. No segment of bins is planned. True: it was written, or the rest needed
   none. Where merges fail again and again, the next one waits for up to a minute. */
bool chain_turn(struct store *store);
/* Do merges make room in memory? Not without a chain, and not where the last ones failed. The cleaner. */
FS_MUST_CHECK bool chain_makes_room(const struct store *store);
/* Is memory too short for another column or for the kills, so that those which are there should go into the chain first? */
FS_MUST_CHECK bool chain_is_urgent(const struct store *store);
/* The segment is to be reclaimed out of turn. True: it has records of a chain that is used, and one more segment of a new chain was
   written; the caller asks again. Waits for the device. The cleaner, when no segment of bins is planned. */
FS_MUST_CHECK bool chain_moves_away(struct store *store, uint32_t segment);
/* The segment is reclaimed, and may have records of the chain: no reader comes to it any more. */
void chain_leave(struct store *store, uint32_t segment, uint64_t sequence);
/* write.c. Counts so many bytes against the limits of writes, and an error of seg_write against the device. */
void cleaner_note_written(struct store *store, uint64_t bytes, int result);

/* load_filters.c. Plans to read the filters that segments lack after a warm start; --filter-bits=0 wants none. */
void load_filters_init(struct store *store);
/* load_filters.c. Returns the bytes that all filters take in memory. */
uint64_t filter_bytes_now(const struct store *store);
/* load_filters.c. Reads the next filter, if it is time for one, and waits for the device. Cleaner, when it has nothing
   else to do. */
void load_filters_step(struct store *store);
/* units.c. Makes the queues of filter units, for --filter-units, with the segments that are open. units_fini frees them. */
void units_init(struct store *store);
void units_fini(struct store *store);
/* units.c. A segment was opened, or has got the filter that it lacked; or was closed. */
void units_opened(struct store *store, uint32_t segment);
void units_closed(struct store *store, uint32_t segment);
/* units.c. Looks at which filters were asked, and reads a unit if one is due; waits for the device. Cleaner, when it has
   nothing else to do. */
void units_step(struct store *store);
/* rebuild.c. Walks the next segment of a rebuild. False: none is under way. */
bool rebuild_step(struct store *store);
/* tables.c. Finds the table for the next segment, with room for so many slots: one that is there, or a new one, for
   which it waits until items have given way. False: none has room, and a new one is not worth it, or there is no memory
   for it; *table stays as it was. */
FS_MUST_CHECK bool tables_choose(struct store *store, uint64_t objects, unsigned *table);
/* Were segments of late reclaimed before their turn, as the index had no room? Then free segments are no room. Cleaner. */
bool tables_are_full(const struct store *store);
/* Notes that the last segment took so many slots. */
void tables_note(struct store *store, uint64_t objects);

/* move.c. Make and free the data of a move of the flash. */
void mover_init(struct store *store);
void mover_fini(struct store *store);
/* move.c. Does a step of the move that is under way, if there is one. True: there is more to do at once. */
bool mover_step(struct store *store);

/* rescue.c. Does a step of the rescue of a segment whose reads fail, or begins one; waits for the device. False: there is
   nothing to do at once. */
bool rescue_step(struct store *store);

/* reclaim.c. Reads the oldest segment, moves its objects back into DRAM or drops them, and waits for reads in flight;
   those must be another thread's. True: it is free. False: the cleaner is to stop. */
FS_MUST_CHECK bool reclaim_segment(struct store *store, uint32_t segment);

#endif
