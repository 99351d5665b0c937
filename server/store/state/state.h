/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ground of all rooms: the store itself, stripes, contexts, time and conditions. It knows no room above. A room's
 * own data hangs on a pointer here, and the ground calls upwards through wake alone.
 *
 * Lock order: state (LOCK_STATE) -> key stripe -> index stripe -> segment table -> leaves.
 * At most one key stripe is held at a time. Nothing is logged and no I/O is done under one.
 */
#ifndef FS_STORE_STATE_H
#define FS_STORE_STATE_H

#include <math.h>
#include <sched.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/metrics/counters.h"
#include "base/region.h"
#include "base/rng.h"
#include "flashindex/frugal/frugal.h"
#include "server/store/state/changed.h"
#include "server/store/state/window.h"
#include "server/store/store.h"

/* An expiry that has always passed: the store's seconds start above it. */
#define ITEM_EXPIRED_ALWAYS 1u
#define SECOND_ZERO 2u /* the clock starts above ITEM_EXPIRED_ALWAYS */

/*
 * Size groups of candidates: objects of one segment come from one group where that fills it, so
 * that L, the bytes read for each get of the segment, stays near the objects' own size. Large
 * objects ride along with any group: they have extents.
 */
enum { GROUP_SMALL, GROUP_MEDIUM, GROUP_BIG, GROUP_LARGE, GROUPS };
#define GROUP_SMALL_MAX (2u << 10)
#define GROUP_MEDIUM_MAX (12u << 10)

/*
 * A stripe of keys with a hash table of its own, which grows by itself: no global resize, and no
 * lock but this one on a DRAM hit.
 */
struct stripe {
	struct lock lock; /* covers everything below and the items linked here */
	/* Its table (dram/table.h). Written under the lock; stripes_foresee alone reads them without it, and a stale pair
	   does it no harm. */
	struct link_line *_Atomic lines;
	_Atomic uint32_t shape;
	_Atomic uint32_t count; /* written under the lock, read by anyone for proportions */
	uint32_t found; /* where the link lay that was found last (table.c) */
	uint32_t candidates; /* linked items with ITEM_CANDIDATE, none of which is in a plan */
	uint32_t frozen; /* read-modify-writes for which commits pass this stripe by */
	uint64_t scored_version; /* clf_version of the last full rescoring; the keeper's alone, without the lock */
} __attribute__((aligned(64)));

struct limits; /* dram/limits.h */
struct link_line; /* dram/table.h */
struct kept; /* attach.h */
struct ids_note; /* ids_note.h */
struct id_times; /* id_times.h */

/* A thread's own share of the state: accounts in batches, randomness, an eviction hand. That thread alone touches
   it. */
struct store_context {
	struct store *store;
	struct class_block *classes; /* this context's; freed with the store */
	struct rng rng;
	int64_t item_bytes; /* not yet added to the store's account */
	uint64_t allocated_bytes; /* allocated and not yet added, regardless of what was freed meanwhile */
	bool background; /* the keeper's or the cleaner's: the store counts the bytes that it releases */
	uint64_t released_bytes; /* released and not yet added */
	uint32_t hand_stripe, hand_line; /* the position of its CLOCK hand */
};

/*
 * The times at which the last bytes were allocated: a mark for each 64th of the item budget. Eviction spares objects
 * that were written since the mark before the last eighth (dram/memory.c sets the marks). Any thread.
 */
#define RECENT_MARKS 8u
struct recent {
	_Atomic uint64_t due; /* allocated_bytes at the next mark */
	_Atomic uint32_t count; /* of marks */
	_Atomic uint32_t mark_ms[RECENT_MARKS];
	_Atomic uint32_t since_ms; /* the oldest mark; the clock's low 32 bits, as in clf_features */
};

#define CACHE_LINE 64

/* How the flash starts: warm, with the objects of the last run, or cold for this reason (restart.c has the texts). */
enum store_start {
	STORE_START_NO_STATE_DIR,
	STORE_START_WARM,
	STORE_START_OFF,
	STORE_START_NEW,
	STORE_START_LAYOUT,
	STORE_START_UNCLEAN,
	STORE_START_NO_FILE,
	STORE_START_UNREADABLE,
	STORE_START_VERSION,
	STORE_START_DAMAGED,
	STORE_START_OTHER_FLASH,
	STORE_START_OTHER_START,
	STORE_START_BOOT,
	STORE_START_CLOCK,
	STORE_START_DOWNTIME,
	STORE_START_OPTIONS,
	STORE_START_MEMORY,
	STORE_START_TRUNCATED,
	STORE_START_ATTACHED, /* warm, by the region of a run that was killed */
	STORE_START_REGION_NONE,
	STORE_START_REGION_VERSION,
	STORE_START_REGION_LAYOUT,
	STORE_START_REGION_COPY,
	STORE_START_REGION_DAMAGED,
	STORE_START_REGION_OTHER_FLASH,
	STORE_START_REGION_OTHER_RUN,
	STORE_START_REBUILT, /* from segments and journal */
	STORE_START_NO_JOURNAL,
	STORE_START_JOURNAL
};

/* Fields without a comment are constant after open. Atomics are written as said, and read by any thread. */
struct store {
	struct store_config config; /* constant after open; of the values in tuning it has the start's */
	struct {
		_Atomic double hot_fraction;
		_Atomic uint64_t flash_write_limit;
		_Atomic double flash_write_dwpd;
		_Atomic double flash_write_ratio;
		_Atomic uint32_t read_timeout_ms;
		_Atomic double promote_miss_cost;
		_Atomic int admission;
	} tuning; /* struct store_tuning; any thread */
	const struct clk *clock;
	uint64_t origin_us; /* the clock's reading at the store's first second, which a warm start takes over */
	uint64_t opened_us; /* the same when this process opened the store */
	uint64_t ended_us; /* the same when store_save_items was called; 0: not yet. The main thread's */
	_Atomic uint64_t
		served_us; /* restart_resume: when an earlier run served clients last, while this one has served
				       none; else 0. Written by the main thread */
	uint64_t hash_seed;
	uint32_t stripe_count;
	struct stripe *stripes;
	uint8_t plain_shape; /* enum item_shape (dram/item.h) of an item without client flags */
	struct region *region;
	enum region_found region_found; /* of the file in --region-dir; NONE without */
	struct kept *kept; /* attach.h: in the region. NULL without flash */
	struct fidx *index; /* NULL without flash, as is segments */
	struct frugal *frugal; /* of small objects on flash: bins.h. NULL without --index=frugal, and without flash */
	struct frugal_config frugal_config;
	struct frugal_merge *merge; /* that is under way, or NULL; the cleaner's */
	struct bins_reads *bins_reads; /* of each segment: bins.c. NULL without frugal */
	_Atomic uint64_t bins_reads_bytes; /* the cleaner writes it */
	_Atomic bool
		kills_told; /* the cleaner was told that the table of kills is crowded, and hasn't come round yet */
	struct segments *segments;
	struct clf *classifier; /* NULL without flash */
	struct losses *losses; /* losses.h; NULL without --journal=sync */
	struct id_times *id_times;
	struct samples *samples; /* cleaner/sample.c; NULL: nobody wants samples */
	struct ids_note *ids_note; /* NULL until store_claim, and without --state-dir */
	struct rebuild *rebuild; /* cleaner/rebuild.c; NULL: none is under way. The cleaner's */
	uint32_t rebuild_segments; /* of the rebuild, if there was one; constant after open, like nothing of the next */
	_Atomic uint32_t rebuilt_segments; /* walked by it; written by the cleaner */
	char flash_path
		[4096]; /* the cleaner changes it when it has moved the flash, and others read it before or after */
	char *claimed; /* the name of store_claim; NULL: none yet */
	char without_flash[4096 + 160]; /* why the path isn't used; "" where it is used, or none was given */
	enum store_start start; /* restart.c fills in both */
	char start_text[192];
	uint64_t load_us; /* how long restart_load took for a warm start; restart.c's own */
	uint32_t small_max; /* bytes of the longest record of GROUP_SMALL */
	unsigned tag_bits;
	_Atomic unsigned filter_bits; /* for each key in the next segment's filter; the cleaner writes it */
	uint64_t segment_bytes;
	uint64_t slot_record_bytes; /* the longest record that gets a slot; a longer one gets an extent */
	_Atomic uint64_t
		flash_asked; /* sizing.h; 0 after a move, which gives what it is asked for; written as the next one */
	_Atomic uint64_t flash_capacity; /* segments that may be written; the cleaner, which may move the flash */
	uint64_t fixed_bytes; /* stripes, segment table, classifier, staging: the constant part of -m beside items */
	_Atomic uint64_t index_bytes; /* tables, extents and filters, which come and go; the cleaner writes it */
	_Atomic uint64_t memory_limit; /* -m now; config.memory_bytes has the start's. Any thread */
	_Atomic int64_t
		account_batch; /* the most by which a context's item_bytes may be off; follows from memory_limit */
	struct classes *classes; /* dram/classes.h */
	struct copies *copies; /* dram/copies.c */
	struct share *share; /* dram/share.h; NULL: the share of copies stays as it is */

	/* struct store_crawler; any thread */
	_Atomic bool crawler_enabled;
	_Atomic uint32_t crawl_sleep_us, crawl_to_crawl;

	/* A cache line that each request reads, and that hardly ever changes: */
	_Alignas(CACHE_LINE) _Atomic uint64_t flush_cas; /* objects with ids up to this are gone; only rises */
	_Atomic unsigned flushing; /* flushes between reading the newest id and publishing it */
	_Atomic uint32_t flush_at; /* the store's second of a pending flush_all, 0 = none */
	_Atomic uint64_t cas_reserved; /* ids below may be given; the cleaner raises it */
	struct changed_keys *_Atomic changed; /* while saved objects are loaded; else NULL. Read under a stripe */
	_Atomic uint64_t cas_beyond; /* ids from there on may be given without a reserve (ids.h); UINT64_MAX: none */
	struct limits *_Atomic limits; /* dram/limits.h; NULL: no application ever had any */

	/* A line that each change writes: */
	_Alignas(CACHE_LINE) _Atomic uint64_t cas_next;

	/* A line that contexts write, in batches: */
	_Alignas(CACHE_LINE) _Atomic int64_t item_bytes; /* the cost of all items, planned ones included */
	_Atomic uint64_t allocated_bytes; /* by items since the start: how fast the allocator is driven */
	_Atomic uint64_t released_bytes; /* of items, by the keeper and the cleaner since the start */
	struct recent recent;

	/* A line that each new or lost candidate writes: */
	_Alignas(CACHE_LINE) _Atomic int64_t candidate_bytes[GROUPS]; /* of their records */
	_Atomic int64_t candidate_count;

	/* The other parts of -m, which change now and then: */
	_Alignas(CACHE_LINE) _Atomic uint64_t table_bytes; /* lines of the stripes; any thread, under its stripe */
	_Atomic uint64_t plan_bytes; /* of the plan itself ... */
	_Atomic uint64_t planned_bytes; /* ... and of the items in it, which can't be evicted. Both: the cleaner */
	_Atomic uint64_t excess_bytes; /* resident memory over its limit, taken off the budget; the keeper */
	_Atomic uint64_t reader_bytes; /* of the workers' reads and lookups; each adds its own */
	_Atomic uint64_t loader_bytes; /* of the loader's; its own */
	_Atomic uint64_t promotion_bytes; /* of the queue of copies, shadows and sketches; any thread */
	_Atomic uint64_t losses_bytes; /* of the journal, and of a rebuild from it; any thread */
	_Atomic uint64_t resident_bytes; /* as last read; the keeper */

	_Alignas(CACHE_LINE) struct windows windows; /* bytes written; a lock of its own */
	struct compaction *compaction; /* dram/compact.c */
	struct keeper *keeper; /* cleaner/keeper.c */
	struct cleaner *cleaner; /* cleaner/cleaner.c */
	struct item_loader *loader; /* cleaner/load_items.c */
	/* Memory is short, or there is work: keeper and cleaner look at once. Any thread, any lock but a leaf held. */
	void (*wake)(struct store *store);
};

_Static_assert(offsetof(struct store, cas_next) / CACHE_LINE != offsetof(struct store, flush_cas) / CACHE_LINE &&
		       offsetof(struct store, item_bytes) / CACHE_LINE !=
			       offsetof(struct store, cas_next) / CACHE_LINE &&
		       offsetof(struct store, item_bytes) / CACHE_LINE !=
			       offsetof(struct store, excess_bytes) / CACHE_LINE,
	       "requests write to other cache lines than they read");

/* ---- time.c and conditions --------------------------------------------------------------------- */

/* Returns a reading of the store's clock as the store's seconds, which begin at 2. Any thread. */
static inline uint32_t store_now_seconds(const struct store *store, uint64_t now_us)
{
	return (uint32_t)((now_us - store->origin_us) / 1000000) + SECOND_ZERO;
}

/* May a store with this origin have had that reading of the clock? The origin may lie before the clock's beginning, by
   which it wraps around (losses_take_times). */
static inline bool store_time_is_sound(uint64_t at_us, uint64_t origin_us)
{
	return (at_us - origin_us) / 1000000 <= UINT32_MAX - SECOND_ZERO;
}

/* Carries out a flush_all that is pending for the second `at`, if that has come. For store_apply_due_flush alone. */
void store_apply_flush(struct store *store, uint32_t at, uint32_t now_seconds);

/* Carries out a pending flush_all whose second has come. Any thread; takes no lock. */
static inline void store_apply_due_flush(struct store *store, uint32_t now_seconds)
{
	uint32_t at = atomic_load_explicit(&store->flush_at, memory_order_acquire);

	if (__builtin_expect(at != 0, 0))
		store_apply_flush(store, at, now_seconds);
}
/* Returns the bytes written since the process began, for windows. Any thread. */
struct window_reading store_written(const struct store *store);

/* Returns --flash-write-limit as it is now, in bytes per second; 0: none. */
static inline uint64_t store_write_limit(const struct store *store)
{
	double dwpd = atomic_load_explicit(&store->tuning.flash_write_dwpd, memory_order_relaxed);

	if (dwpd > 0 && store->flash_capacity > 0)
		return (uint64_t)ceil(dwpd * (double)store->flash_capacity / 86400);
	return atomic_load_explicit(&store->tuning.flash_write_limit, memory_order_relaxed);
}

/* --flash-write-ratio now; 0: none. */
static inline double store_write_ratio(const struct store *store)
{
	return atomic_load_explicit(&store->tuning.flash_write_ratio, memory_order_relaxed);
}

/* Waits until no flush_all is between its two loads: see action_begin in request/apply.c. */
static inline void store_await_flush(const struct store *store)
{
	while (__builtin_expect(atomic_load(&store->flushing) != 0, 0))
		sched_yield();
}

/* May a client still see an object with this expiry and id? */
static inline bool store_alive(const struct store *store, uint32_t expiry, uint64_t cas, uint32_t now_seconds)
{
	return (expiry == 0 || expiry > now_seconds) &&
	       cas > atomic_load_explicit(&store->flush_cas, memory_order_acquire);
}

/* Returns the bytes of the region's areas whose size never changes: the store's own, and the segment table's. */
static inline uint64_t store_region_fixed_bytes(const struct store *store)
{
	return region_most(store->region, REGION_STORE) + region_most(store->region, REGION_SEGMENTS);
}

/* Returns an id to give in place of this one, which is not reserved. For store_next_cas alone. */
uint64_t store_next_cas_beyond(struct store *store, uint64_t cas);

/* Returns a new id, greater than all before. Any thread; never waits for the device. */
static inline uint64_t store_next_cas(struct store *store)
{
	uint64_t cas = atomic_fetch_add(&store->cas_next, 1);

	if (__builtin_expect(cas >= atomic_load_explicit(&store->cas_reserved, memory_order_relaxed), 0))
		return store_next_cas_beyond(store, cas);
	return cas;
}

/* Returns -m as it is now, in bytes. */
static inline uint64_t store_memory_limit(const struct store *store)
{
	return atomic_load_explicit(&store->memory_limit, memory_order_relaxed);
}

/* Returns the stripe of a key's hash. */
static inline struct stripe *store_stripe(struct store *store, uint64_t hash)
{
	uint32_t n = store->index ? fidx_stripe_of(store->index, hash, store->stripe_count)
				  : (uint32_t)(hash & (store->stripe_count - 1));

	return &store->stripes[n];
}

/* Returns the seconds left until this expiry; 0: none, or it never expires. */
static inline uint32_t store_ttl(uint32_t expiry, uint32_t now_seconds)
{
	return expiry > now_seconds ? expiry - now_seconds : 0;
}

/* Returns when each stripe was held once since the call: what a thread has read under one before, it doesn't use any more. Any
   thread without a stripe. */
static inline void store_pass_stripes(struct store *store)
{
	for (uint32_t n = 0; n < store->stripe_count; n++) {
		lock_acquire(&store->stripes[n].lock);
		lock_release(&store->stripes[n].lock);
	}
}

/* ---- on_flash.c: the index about a key or a record ------------------------------------------------- */

/* Is there a slot or an extent that may be this key's? Fills match, which has room for FIDX_MAX_MATCHES, and extent. No
   I/O. For a decision the stripe is held; else the answer may be out of date. */
bool flash_may_hold(struct store *store, const struct fidx_key *key, struct fidx_match *match, unsigned *matches,
		    struct fidx_extent *extent, bool *has_extent);
/* May a record of this key lie in a segment of bins? The stripe is held. */
static inline bool bins_may_hold(const struct store *store, uint64_t hash)
{
	struct frugal_key key;

	if (__builtin_expect(!store->frugal, 1))
		return false;
	frugal_key_of(store->frugal, hash, &key);
	return frugal_may_hold(store->frugal, &key);
}
/* Lets nothing in segments of bins count as the key's any more, with a frugal index. written: as in frugal_kill. Returns whether
   something may have counted. The stripe is held. */
bool bins_kill(struct store *store, uint64_t hash, bool written);
/* Does an index, or the chain, have that LIVE segment? The cleaner, or before other threads run. */
FS_MUST_CHECK bool segment_is_open(const struct store *store, uint32_t segment);
/* Is the record at this offset of a segment live: does a slot or extent lead to it? Fills match as fidx_find does; for
   an extent it fills all fields but the function. No I/O. Any thread that has the segment pinned, and the cleaner. */
FS_MUST_CHECK bool record_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
				  uint64_t offset, bool is_extent, struct fidx_match *match);
/* Answers the same for a record that an extent leads to. */
FS_MUST_CHECK bool extent_is_live(struct store *store, uint32_t segment, uint64_t sequence, const struct fidx_key *key,
				  uint64_t offset, struct fidx_match *match);

#endif
