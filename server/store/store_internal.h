/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of server/store share: the store itself, stripes, contexts, lookups.
 *
 * Lock order: state (LOCK_STATE) -> key stripe -> index stripe -> segment table -> leaves.
 * At most one key stripe is held at a time. Nothing is logged and no I/O is done under one.
 */
#ifndef FS_STORE_INTERNAL_H
#define FS_STORE_INTERNAL_H

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/metrics/counters.h"
#include "base/region.h"
#include "base/rng.h"
#include "server/store/background.h"
#include "server/store/classes.h"
#include "server/store/item.h"
#include "server/store/reads.h"
#include "server/store/store.h"
#include "server/store/window.h"

/*
 * Size groups of candidates: objects of one segment come from one group where that fills it, so
 * that L, the bytes read for each get of the segment, stays near the objects' own size. Large
 * objects ride along with any group: they have extents.
 */
enum { GROUP_SMALL, GROUP_MEDIUM, GROUP_BIG, GROUP_LARGE, GROUPS };
#define GROUP_SMALL_MAX (2u << 10)
#define GROUP_MEDIUM_MAX (12u << 10)

/* Rounds of a read-modify-write whose slots changed, before commits have to wait for it. */
#define LOOKUP_ROUNDS_MAX 3

/*
 * A stripe of keys with a hash table of its own, which grows by itself: no global resize, and no
 * lock but this one on a DRAM hit.
 */
struct stripe {
	struct lock lock; /* covers all below and the items linked here */
	/* Written under the lock; read without it only to foresee, where a stale pair does no harm: */
	struct item **_Atomic buckets;
	_Atomic uint32_t mask; /* buckets - 1 */
	_Atomic uint32_t count; /* written under the lock, read by anyone for proportions */
	uint32_t frozen; /* read-modify-writes that make commits of this stripe wait */
	uint32_t candidates; /* linked items with ITEM_CANDIDATE that are not in a plan */
	uint64_t scored_version; /* clf_version of the last full rescoring; the keeper's, without the lock */
} __attribute__((aligned(64)));

/* What a thread keeps for itself: accounts in batches, randomness, an eviction hand. */
struct store_context {
	struct store *store;
	struct class_block *classes; /* its own; freed with the store */
	struct rng rng;
	int64_t item_bytes; /* not yet added to the store's account */
	uint64_t allocated_bytes; /* likewise: allocated, whatever was freed meanwhile */
	bool background; /* the keeper's or the cleaner's: what it releases is told to the store */
	uint64_t released_bytes; /* by it, not yet told */
	uint32_t hand_stripe, hand_bucket; /* where its CLOCK hand stands */
};

#define LOOKUP_FEW 4 /* matches that need no memory of their own: more are there once in thousands of lookups */

/* Flash reads for one request. Pooled per worker. */
struct store_lookup {
	struct store_lookup *next, *prev; /* the worker's list of running ones, oldest first; or of free ones */
	struct store_lookup *next_waiting; /* for the same read */
	struct store_worker *worker;
	struct store_request *request;
	struct flash_read *read; /* what it waits for, or is looking at; NULL: neither */
	uint64_t started_us;
	uint64_t position; /* of the read under way */
	unsigned matches, at, reads, rounds;
	bool waits; /* for its read to be done */
	bool ready; /* its read is done already: it is in the worker's list of these */
	bool unread; /* ... or could not be begun */
	bool made; /* its read was begun for it */
	bool has_extent; /* an extent may be this key's ... */
	bool extent_read; /* ... it is what is being read ... */
	bool extent_done; /* ... it was read: not it */
	bool frozen; /* this lookup holds its stripe's commits up */
	/* Below, nothing is cleared for a new lookup: each is filled before it is looked at. */
	struct fidx_key key;
	struct fidx_extent extent;
	struct fidx_match *match; /* few, or memory of its own */
	struct fidx_match few[LOOKUP_FEW];
};

struct store_worker {
	struct store_context context;
	struct seg_reader *reader; /* NULL without flash */
	int timer_fd;
	bool timer_armed;
	uint64_t timer_due_us; /* not to be read before */
	uint64_t now_ms, now_us;
	uint32_t now_seconds;
	unsigned pending; /* requests not done */
	struct reads reads;
	uint64_t accounted_bytes; /* reads and lookups, as told to the store's account */
	struct store_lookup *free;
	unsigned free_count;
	unsigned lookups, lookups_most; /* running; no more are begun */
	struct store_lookup *oldest, *newest; /* running */
	struct store_lookup *ready_first, *ready_last; /* chained by next_waiting */
};

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
	bool begun;
	uint32_t stripe, bucket; /* where that one goes on */
	uint32_t left[CLASSES + 1]; /* how many objects of each class it is to look at yet */
	uint64_t due_us; /* not before */
	uint32_t pass_stripe, pass_bucket; /* where the pass that goes on by itself does */
	uint64_t passed_at_ms; /* when it went on last */
	uint64_t pass_version; /* clf_version when the stripe that it is in was begun */
};

/* compact.c. The keeper's own, but for the first two. */
struct compaction {
	_Atomic uint32_t asked, done; /* the number of the last one that was asked for, and that was made */
	uint32_t started;
	bool waiting, running;
	uint64_t since_ms; /* it waits for eviction to do its part */
	bool moves[MEM_CLASSES]; /* objects of these classes */
	uint32_t stripe, bucket; /* where to go on */
	uint64_t began_ms, ended_ms; /* the last pass, or the one under way */
	uint64_t allocated, holes; /* allocated_bytes and holes when it began */
	int64_t item_bytes; /* these, too */
	uint64_t watched; /* allocated_bytes at the last look at holes */
	bool gave_little; /* it left most of the holes */
	uint64_t holes_least; /* that a pass in calm has left, or the fewest since */
};

/*
 * When the last bytes were allocated: marks of the time, one for each 64th of the item budget. Objects that were written
 * since the mark before the last eighth are spared: memory.c. Any thread.
 */
#define RECENT_MARKS 8u
struct recent {
	_Atomic uint64_t due; /* allocated_bytes at the next mark */
	_Atomic uint32_t count; /* of marks */
	_Atomic uint32_t mark_ms[RECENT_MARKS];
	_Atomic uint32_t since_ms; /* the oldest of these; the low bits of the clock's, as in clf_features */
};

/* What goes on whatever the device does: keeper.c. */
struct keeper {
	struct background background;
	struct store_context context;
	struct crawl crawl;
	struct compaction compaction;
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

#define CACHE_LINE 64

struct store {
	struct store_config
		config; /* constant after open, as are all without a word; of what tuning has, the start's value */
	struct {
		_Atomic double hot_fraction;
		_Atomic uint64_t flash_write_limit;
		_Atomic uint32_t read_timeout_ms;
		_Atomic int admission;
	} tuning; /* struct store_tuning */
	const struct clk *clock;
	uint64_t origin_us; /* clock reading that is second STORE_SECOND_ZERO */
	int64_t wall_origin;
	uint64_t hash_seed;
	uint32_t stripe_count;
	struct stripe *stripes;
	struct region *region;
	struct fidx *index; /* NULL without flash, as is segments */
	struct seg *segments;
	struct clf *classifier; /* NULL without flash */
	char flash_path[4096];
	char without_flash[4096 + 160]; /* why the path isn't used; "" where it is, or none was given */
	unsigned tag_bits;
	_Atomic unsigned filter_bits; /* that the next segment's filter gets for each key */
	uint64_t segment_bytes, flash_capacity;
	uint64_t fixed_bytes; /* stripes, segment table, classifier, staging: what -m gives beside items for good */
	_Atomic uint64_t index_bytes; /* tables, extents and filters: these come and go. Written by the cleaner */
	_Atomic uint64_t memory_limit; /* -m, as config.memory_bytes was at the start */
	_Atomic int64_t account_batch;
	struct classes classes;

	_Atomic bool crawler_enabled;
	_Atomic uint32_t crawl_sleep_us, crawl_to_crawl;

	/* A line that each request reads, and that hardly ever changes: */
	_Alignas(CACHE_LINE) _Atomic uint64_t flush_cas; /* objects with ids up to this are gone */
	_Atomic unsigned flushing; /* flushes between reading the newest id and publishing it */
	_Atomic uint32_t flush_at; /* seconds of a pending flush_all, 0 = none */
	_Atomic uint64_t cas_reserved; /* ids below may be given */

	/* One that each change writes: */
	_Alignas(CACHE_LINE) _Atomic uint64_t cas_next;

	/* What contexts write, in batches: */
	_Alignas(CACHE_LINE) _Atomic int64_t item_bytes; /* what items cost, plans' included */
	_Atomic uint64_t allocated_bytes; /* by items since the start: how fast the allocator is driven */
	_Atomic uint64_t released_bytes; /* of items, by the keeper and the cleaner since the start */
	struct recent recent;

	/* What a candidate more or less writes: */
	_Alignas(CACHE_LINE) _Atomic int64_t candidate_bytes[GROUPS];
	_Atomic int64_t candidate_count;

	/* The other parts of -m, which change now and then: */
	_Alignas(CACHE_LINE) _Atomic uint64_t table_bytes;
	_Atomic uint64_t plan_bytes; /* of the plan itself ... */
	_Atomic uint64_t planned_bytes; /* ... and of the items in it, which can't be evicted */
	_Atomic uint64_t excess_bytes; /* resident memory over its limit: off the budget */
	_Atomic uint64_t reader_bytes;
	_Atomic uint64_t resident_bytes; /* as last read */

	_Alignas(CACHE_LINE) struct windows windows; /* of what was written */
	struct keeper keeper;
	struct cleaner cleaner;
};

_Static_assert(offsetof(struct store, cas_next) / CACHE_LINE != offsetof(struct store, flush_cas) / CACHE_LINE &&
		       offsetof(struct store, item_bytes) / CACHE_LINE !=
			       offsetof(struct store, cas_next) / CACHE_LINE &&
		       offsetof(struct store, item_bytes) / CACHE_LINE !=
			       offsetof(struct store, excess_bytes) / CACHE_LINE,
	       "what each request writes lies apart from what each reads");

/* ---- store.c, time and conditions ------------------------------------------------------------ */

uint32_t store_now_seconds(const struct store *store, uint64_t now_us);
void store_apply_due_flush(struct store *store, uint32_t now_seconds);
/* What was written since the process began, for windows. */
struct window_reading store_written(const struct store *store);

static inline uint64_t store_write_limit(const struct store *store)
{
	return atomic_load_explicit(&store->tuning.flash_write_limit, memory_order_relaxed);
}

/* Waits out a flush_all that is between two loads: see action_begin. */
static inline void store_await_flush(const struct store *store)
{
	while (__builtin_expect(atomic_load(&store->flushing) != 0, 0))
		sched_yield();
}

/* Is an object with this expiry and id still to be seen? */
static inline bool store_alive(const struct store *store, uint32_t expiry, uint64_t cas, uint32_t now_seconds)
{
	return (expiry == 0 || expiry > now_seconds) &&
	       cas > atomic_load_explicit(&store->flush_cas, memory_order_acquire);
}

static inline uint64_t store_next_cas(struct store *store)
{
	uint64_t cas = atomic_fetch_add(&store->cas_next, 1);

	must(cas < atomic_load_explicit(&store->cas_reserved, memory_order_relaxed));
	return cas;
}

static inline uint64_t store_memory_limit(const struct store *store)
{
	return atomic_load_explicit(&store->memory_limit, memory_order_relaxed);
}

static inline struct stripe *store_stripe(struct store *store, uint64_t hash)
{
	uint32_t n = store->index ? fidx_stripe_of(store->index, hash, store->stripe_count)
				  : (uint32_t)(hash & (store->stripe_count - 1));

	return &store->stripes[n];
}

static inline uint32_t store_ttl(uint32_t expiry, uint32_t now_seconds)
{
	return expiry > now_seconds ? expiry - now_seconds : 0;
}

/* ---- sizing.c -------------------------------------------------------------------------------- */

#define INDEX_LOAD 0.95 /* that a table of the index is sized for */
#define INDEX_LOAD_MOST 0.98 /* the most that it gets: above, a place for a slot is hard to find */

struct sizing {
	uint64_t flash_given,
		flash_used; /* what is there, and what segments of at most a quarter of -m can serve of it */
	uint64_t segment_bytes;
	uint64_t buckets, buckets_most; /* of the index's first table; of any that it may ever need */
	uint64_t memory_for_all; /* -m whose half is an index for all of the flash, by --flash-object-size */
	uint32_t segments, extents_most;
};

/* 0, or a code and the reason, with the option and its accepted range. */
FS_MUST_CHECK int sizing_make(const struct store_config *config, struct sizing *out, char reason[256]);
/* The longest record that gets a slot, by the segments' size; longer ones get an extent. */
uint64_t sizing_slot_record_max(uint64_t segment_bytes);

/* ---- memory.c: items and the account of -m --------------------------------------------------- */

void context_init(struct store_context *context, struct store *store, uint64_t seed);
void context_settle(struct store_context *context); /* adds its batch to the store's account */

/* A new item with one reference, not linked; NULL when the allocator fails. Takes no lock. */
struct item *item_new(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
		      uint32_t expiry, uint64_t value_length);
/* The same with room for marks and an id of the client's, none yet. */
struct item *item_new_extra(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
			    uint32_t expiry, uint64_t value_length);
void item_release(struct store_context *context, struct item *item);

/* The limit and what follows from it, by the configuration. */
void memory_init(struct store *store);
/* What items may cost now: -m less everything else that it pays for. */
uint64_t store_item_budget(const struct store *store);
/* Bytes that items may still take before workers evict; negative when over. */
int64_t store_free_bytes(const struct store *store);
/* Looks at resident memory and at the allocator's holes, and sets excess_bytes. Keeper. */
void store_watch_memory(struct store *store);
/* With this limit, what items must have at the least, and do they? */
uint64_t memory_least_for_items(const struct store *store, uint64_t limit);
bool memory_suffices(const struct store *store, uint64_t limit);
uint64_t store_used_bytes(const struct store *store);

/* ---- table.c: the DRAM table of one stripe (lock held) --------------------------------------- */

int stripes_init(struct store *store);
void stripes_fini(struct store *store);
void stripes_foresee(struct store *store, const uint64_t *hashes, unsigned count); /* see store_foresee */
/* The chain of a stripe whose mask this is or was. The stripe is the tag; what chooses the chain must not depend on it
   alone. */
static inline uint32_t stripe_bucket(uint64_t hash, uint32_t mask)
{
	return (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 32) & mask;
}
/* Keeper. Gives memory of the stripe's chains back where its objects have become few. Buckets have other numbers then: those of
   the upper half are in the lower one. */
void stripe_shrink(struct store *store, struct stripe *stripe);
struct item *stripe_find(const struct stripe *stripe, uint64_t hash, const char *key, size_t key_length);
/* Links an item that is not there. The table's reference is the one given. */
void stripe_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Takes it out; the table's reference passes to the caller. */
void stripe_unlink(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Puts new in the place of old (linked): links new, unlinks old. */
void stripe_replace(struct store *store, struct stripe *stripe, uint64_t hash, struct item *old, struct item *new);

/* ---- candidate.c: which objects in DRAM are worth flash (lock held) -------------------------- */

/* The longest record that gets a slot; longer ones are large objects, with an extent. */
uint64_t slot_record_max(const struct store *store);
unsigned item_group(const struct store *store, const struct item *item);
void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item,
		     uint32_t now_seconds);
void candidate_set(struct store *store, struct stripe *stripe, struct item *item);
void candidate_clear(struct store *store, struct stripe *stripe, struct item *item);
/* Many at once: unmarks a candidate and adds it to sums; settle takes them off the store's, no lock held. */
struct candidate_sums {
	uint64_t bytes[GROUPS];
	int64_t count;
};
void candidate_unmark(const struct store *store, struct stripe *stripe, struct item *item, struct candidate_sums *sums);
void candidate_settle(struct store *store, struct candidate_sums *sums);
uint64_t candidate_total(const struct store *store);

/* An object that lies on flash comes into DRAM as its record says; unlinked, NULL without memory. apply_read.c */
struct item *item_from_record(struct store_context *context, const struct seg_record *record, uint64_t packed_ms);

/* ---- execute.c, lookup.c --------------------------------------------------------------------- */

/* Under -M no object is given up, so that only a slot that was proved to be the key's own is removed. Else those that may be
   its are cleared without a look, and once in a while one of them is another key's. */
static inline bool store_proves_slots(const struct store *store)
{
	return !store->config.evict;
}
/* Must it have read what flash holds before it acts? A plain GET is served from the read buffer; a SET, and a DELETE whose
   answer nobody needs, clear slots without looking. */
static inline bool request_needs_value(const struct store *store, const struct store_request *request)
{
	const struct store_options *options = &request->options;

	if (request->op == STORE_GET)
		return request->extended && (options->vivify || options->touch || options->recache);
	if (store_proves_slots(store))
		return true;
	if (request->op == STORE_SET)
		return request->extended && options->compare_cas;
	if (request->op == STORE_DELETE)
		return !request->extended || !(options->blind || options->refused);
	return true;
}
/* Starts the flash reads of a request, the stripe being held. Of the answers only LOOKUP_STARTED releases it. */
enum lookup_answer {
	LOOKUP_STARTED,
	LOOKUP_NOTHING, /* no segment could be pinned: nothing is on flash */
	LOOKUP_REFUSED /* there is, but it can't be read in time, or not at all */
};
enum lookup_answer lookup_start(struct store_worker *worker, struct store_request *request, struct stripe *stripe,
				const struct fidx_key *key, const struct fidx_match *match, unsigned matches,
				const struct fidx_extent *extent);
/* The end of a worker's lookups. */
void lookups_fini(struct store_worker *worker);
/* Stripe held: is there anything on flash that may be this key's? */
bool flash_may_hold(struct store *store, const struct fidx_key *key, struct fidx_match *match, unsigned *matches,
		    struct fidx_extent *extent, bool *has_extent);
void count_result(struct store_context *context, const struct store_request *request, bool from_flash);

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
/* A worker is short of memory: evicts inline, with bounded work. False: too much is held by values
   under way, or -M. */
bool evict_inline(struct store_context *context, uint64_t bytes);
/* The keeper's round: DRAM and flash in proportion, some thousand objects of each at the most. True: it did something. */
bool evict_round(struct store_context *context, uint64_t want_free);
/* Is most of what is in DRAM waiting for the flash, so that looking for other things is in vain? */
bool mostly_candidates(const struct store *store);
/* Hot data over its threshold: makes ghosts on flash alone, of a bounded number of slots. True: it made some, or has not
   seen all of them. */
bool evict_excess_hot(struct store *store);
uint64_t store_hot_bytes(const struct store *store);
uint64_t store_hot_threshold(const struct store *store);
uint64_t store_dram_items(const struct store *store);

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

/* ---- keeper.c, crawl.c, compact.c ------------------------------------------------------------ */

void keeper_init(struct store *store);
void keeper_fini(struct store *store);
int keeper_start(struct store *store);
void keeper_stop(struct store *store);
/* One step of it, in its thread, or in the caller's where there is none. True: there is more to do at once. */
bool keeper_step(struct store *store);

/* crawl.c: expired and flushed items, and items whose score is of an older model: some thousand of them. True: there
   is more to do at once. Keeper. */
bool keeper_crawl(struct store *store, uint64_t now_ms);
/* Does a crawl go on within this stripe? Its chains are to keep their numbers then. Keeper. */
static inline bool crawl_is_in(const struct store *store, uint32_t stripe)
{
	const struct crawl *crawl = &store->keeper.crawl;

	return (crawl->bucket > 0 && crawl->stripe == stripe) ||
	       (crawl->pass_bucket > 0 && crawl->pass_stripe == stripe);
}

/* compact.c: once items are within -m, the small ones are moved together, so that the memory between them is free.
   The keeper does so in steps; true: there is more to do at once. Asked for from any thread. While one is pending,
   resident memory is over its limit for no reason to evict. compaction_thin: the keeper begins one of these classes, if
   none is under way and the last one is some time ago, or it is urgent. */
void compaction_ask(struct store *store);
void compaction_thin(struct store *store, const bool sparse[MEM_CLASSES], bool urgent);
bool compaction_pending(const struct store *store);
bool keeper_compact(struct store *store, uint64_t now_ms);

/* ---- cleaner.c, gather.c, commit.c, reclaim.c ------------------------------------------------ */

void cleaner_init(struct store *store);
void cleaner_fini(struct store *store);
int cleaner_start(struct store *store);
void cleaner_stop(struct store *store);
/* One step, as keeper_step. */
bool cleaner_step(struct store *store);
/* Memory is short: the keeper and the cleaner are to look at once. Any thread. */
void cleaner_wake(struct store *store);
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
	return gathered->candidates[plan->placed[n].candidate].item;
}
/* Its number among the candidates on its way into the cache, if there are so many. */
static inline void prefetch_number(const struct seg_plan *plan, const struct gathered *gathered, uint32_t n)
{
	if (n < plan->count)
		__builtin_prefetch(&gathered->candidates[plan->placed[n].candidate]);
}
/* Which size groups fill a segment of so many bytes; 0: all together they don't. */
unsigned choose_groups(const struct store *store, uint64_t bytes);
/* table: of the index, that their slots will lie in. */
void gather(struct store *store, unsigned groups, uint64_t want_bytes, unsigned table, struct gathered *out);
void planned_release(struct store *store, struct item *item);
void gathered_release(struct store *store, struct gathered *gathered);
/* Plans, writes and commits one segment. True when one was written. */
bool write_segment(struct store *store, unsigned groups);
/* What was written of a gathered plan is in the index from now on: commit.c. */
void commit_segment(struct store *store, uint32_t segment, unsigned table, const struct seg_plan *plan,
		    const struct gathered *gathered, void *filter, size_t filter_length);

/* tables.c. The table for the next segment, with room for so many slots: one that is there, or a new one. False: there is
   none, and a new one is not worth it, or memory for it is not to be had. */
FS_MUST_CHECK bool tables_choose(struct store *store, uint64_t objects, unsigned *table);
/* So many slots was what the last segment took. */
void tables_note(struct store *store, uint64_t objects);
/* After segments have gone or come: gives back what nothing needs any more, and takes the index into the account. */
void tables_tidy(struct store *store);

bool reclaim_segment(struct store *store, uint32_t segment);
/* Is the record at this offset of a segment (pinned, or by the cleaner) live: does a slot or extent lead to it? Fills
   match: as fidx_find does, of an extent too, but for the function. Any thread. */
bool record_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
		    uint64_t offset, bool is_extent, struct fidx_match *match);

#endif
