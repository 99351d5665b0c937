/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store: one cache of objects in DRAM and on flash. It joins classifier, flashindex and
 * segments; neither they nor it know of connections or protocols.
 *
 *   worker --store_execute--> key stripe: DRAM table --> index --> (pin) --> flash read
 *                                 ^                                             |
 *   cleaner: candidates -> plan -> segment -> index; reclaim; CLOCK             v
 *                                                            done(request) on the same worker
 *
 * Model: a request names one key. store_execute either finishes it at once (DRAM hits, sets,
 * clear misses) or starts flash reads and finishes it later, on the same thread, from
 * store_worker_poll. Every command is atomic for its key: its effect and the decision about the
 * key's slots happen in one critical section of the key's stripe. A slow flash read can never
 * bring back a value that was overwritten or deleted meanwhile (DESIGN section 4).
 *
 * Threads: a store_worker belongs to one thread; store_* functions on the store may be called from
 * any. A keeper, a cleaner and a trainer thread inside (store_start), or none: store_clean_step() and
 * store_tick() drive the same code in tests.
 *
 * Ordering that the caller keeps: a connection must not execute a command on a key (compare
 * hashes) while a pending read-modify-write of the same connection on that key is not done. Plain
 * gets may be in flight together and beside anything.
 *
 * Errors: codes of base/error.h for open; everything a client can cause is a store_result.
 */
#ifndef FS_STORE_STORE_H
#define FS_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "classifier/classifier.h"
#include "flashindex/flashindex.h"
#include "segments/segments.h"

#define STORE_KEY_MAX 250

struct store;
struct store_worker;
struct item; /* an object in DRAM; opaque outside server/store */
struct flash_read; /* bytes from flash; likewise */

enum store_reinsertion { STORE_REINSERT_READ, STORE_REINSERT_LIVE };

struct store_config {
	const struct clk *clock;
	uint64_t memory_bytes; /* -m: all cache memory; >= 1 MiB */
	uint32_t max_item_bytes; /* -I: key + value + header as memcached counts; 1 KiB .. 1 GiB */
	bool evict; /* false: -M, a set fails with STORE_NO_MEMORY instead */
	bool cas; /* false: -C, ids are given all the same but not shown, and none compares as the same */
	unsigned workers; /* how many store_workers there will be */
	uint64_t seed; /* of randomness; 0: from the kernel */

	const char *flash_path; /* NULL: a DRAM cache, all below is ignored */
	struct dev *
		flash_device; /* what is used in its place (seg_config.device), of flash_bytes; flash_path is its name */
	uint64_t flash_bytes;
	uint64_t
		flash_min_free; /* a file that isn't there yet is made only where so many bytes are free; else, or when its
				    file system is full, the store is one without flash. 0: it is made, or store_open fails */
	const struct seg_owner *flash_owner; /* to whom a file that is made is given; NULL: it is the process's own */
	uint64_t segment_bytes; /* 0: DESIGN section 5's default */
	uint32_t flash_object_bytes;
	int filter_bits; /* -1: automatic */
	unsigned tag_bits; /* 0: all left over */
	unsigned functions;
	enum seg_placement placement;
	enum seg_direct direct;
	enum fidx_clock_mode clock_mode;
	enum store_reinsertion reinsertion;
	double hot_fraction; /* 0 .. 1, default 0.7 */
	uint64_t flash_write_limit; /* bytes per second, 0: none */
	uint32_t read_timeout_ms;
	/* Called by store_open, of a flash file that is being made: so much of so much. NULL: nobody wants to know. */
	void (*progress)(void *context, uint64_t bytes, uint64_t of_bytes);
	void *progress_context;

	enum clf_label_mode label_mode;
	enum clf_admission admission;
	uint32_t flashiness_threshold;
	uint64_t flashiness_horizon_ms, training_window_ms;
	char app_delimiter;
};

/* Defaults of everything but clock. */
void store_config_init(struct store_config *config);

/* Opens flash, makes all tables. 0 or a code, with the reason (option and range where an operator
   can mend it) in reason[256]. Logs the start line: flash, index, objects covered, -m for all. */
FS_MUST_CHECK int store_open(struct store **out, const struct store_config *config, char reason[256]);
void store_close(struct store *store); /* after store_stop and all workers are gone */
FS_MUST_CHECK int store_start(struct store *store); /* keeper, cleaner, trainer */
void store_stop(struct store *store);
/* Have the keeper and the cleaner come round within so many seconds? A cleaner that waits for the device counts as if it
   had: the device hangs, not the daemon. Any thread, between store_start and store_stop. */
bool store_alive_within(const struct store *store, uint32_t seconds);

/* One step of the keeper and one of the cleaner in the calling thread (not together with store_start). True when one of
   them did something. */
bool store_clean_step(struct store *store);
void store_tick(struct store *store); /* what happens once a second: flush marks, budgets, crawler */

/* ---- requests -------------------------------------------------------------------------------- */

enum store_op {
	STORE_GET, /* value */
	STORE_GAT, /* get and touch: value, new expiry */
	STORE_SET,
	STORE_ADD,
	STORE_REPLACE,
	STORE_APPEND,
	STORE_PREPEND,
	STORE_CAS,
	STORE_INCR,
	STORE_DECR, /* number */
	STORE_DELETE,
	STORE_TOUCH
};

enum store_result {
	STORE_HIT, /* GET, GAT: value is filled; INCR, DECR: number is */
	STORE_MISS, /* the key is not there (GET, GAT, CAS, INCR, DECR, DELETE, TOUCH) */
	STORE_STORED,
	STORE_NOT_STORED, /* ADD, REPLACE, APPEND, PREPEND: condition not met */
	STORE_EXISTS, /* CAS: changed since */
	STORE_DELETED,
	STORE_TOUCHED,
	STORE_NOT_NUMBER, /* INCR, DECR on something else */
	STORE_TOO_LARGE, /* APPEND, PREPEND beyond the limit */
	STORE_NO_MEMORY /* -M, or the allocator failed */
};

/*
 * What a request may ask beyond its classic meaning: for the meta and binary protocols. Looked at when the
 * request says that it is extended; zeroed, they change nothing.
 *
 *   compare_cas  acts only on an object whose id is request->cas: else STORE_EXISTS, nothing changed. SET, REPLACE,
 *                APPEND, PREPEND, INCR, DECR, DELETE (CAS always compares, ADD never). An absent key is a miss as
 *                without it; SET and REPLACE then answer STORE_MISS. Any number is compared, 0 too: where a
 *                protocol's 0 means none, as for most of memcached's commands, it leaves this away. Without ids
 *                (-C) nothing is the same, but 0 for INCR, DECR and DELETE; APPEND and PREPEND don't compare then
 *   vivify       an absent key is made: GET, GAT, TOUCH: an empty object with vivify_expiry, found->won is
 *                set, the result is STORE_HIT with an empty value (TOUCHED); INCR, DECR: the number `initial`;
 *                APPEND, PREPEND: the piece itself becomes the value. With a touch its expiry counts
 *   vivify_last  with vivify and touch: vivify_expiry counts nevertheless
 *   touch        the object gets the expiry of request->expiry: GET (which GAT does always), INCR, DECR;
 *                DELETE with invalidate
 *   recache      GET, GAT: an object that expires in less than recache_seconds, after the touch, is won by the
 *                first who asks
 *   recache_first  with recache and touch: the time left before the touch is what counts, not the new one
 *   own_cas      what is stored, or counted, or marked stale, gets the id new_cas (not 0), not one of ours
 *   invalidate   DELETE: the object stays and is marked stale, nobody having won it; its id changes. SET, REPLACE
 *                and CAS with compare_cas: an object with a greater id than compared is replaced all the same, by
 *                one that is stale and expires when the old one did
 *   drop_value   DELETE: the object stays without value and client flags (with invalidate: and stale); its id changes
 *   keep_clock   GET: the read doesn't count, neither as one (found.fetched) nor for eviction and admission
 *   blind        DELETE: nobody needs its answer. It clears the slots that may be the key's without reading flash, and is
 *                a hit if there were any. (Under -M it reads all the same, as such a slot may be another key's.)
 *   refused      DELETE: what is left to do of a SET that was refused for this reason, STORE_TOO_LARGE or
 *                STORE_NO_MEMORY, as the client thinks of the old value as gone. In no counter; the reason is its result
 *   uncounted    GET: only a look: it is in no counter, but an expired object that it found is; it neither wins nor counts
 *                as read (memcached: me). DELETE: an id that differs is no miss to the counters
 *
 * What clears marks: whatever stores a new value, a number that grew longer included; touch and numbers that
 * keep their length don't.
 *
 * Counters are memcached's for its meta commands: a GET with touch counts a hit as cmd_touch and touch_hits alone, a
 * miss as a get's; SET and REPLACE with compare_cas count as CAS does, INCR, DECR, APPEND and PREPEND don't when the
 * id differs; DELETE counts a differing id as a miss, and an invalidate that hits not at all; what INCR and DECR make
 * by vivify isn't counted, what GET makes is a hit.
 */
struct store_options {
	bool compare_cas, vivify, touch, recache, own_cas, invalidate, drop_value, keep_clock, uncounted;
	bool recache_first, vivify_last, blind;
	uint32_t vivify_expiry; /* from store_expiry() */
	uint32_t recache_seconds;
	uint64_t initial, new_cas;
	enum store_result refused; /* STORE_HIT: it isn't that */
};

/*
 * What an extended request met, as it was before the request but for the expiry, which is the one that the
 * object has now. Filled with STORE_HIT, STORED, TOUCHED, DELETED. Stale: marked by an invalidate; who reads
 * it first wins. Won: this caller is to make the value anew; win_sent: another one was told so before. An
 * object that is stale or won stays in DRAM, as does one with an id of the client's own.
 */
struct store_found {
	int64_t ttl_seconds; /* left; -1: never expires */
	int64_t ttl_before_seconds; /* left before the request changed the expiry, else the same; of what was made: of the
				       expiry that doesn't count, where it was given two */
	uint32_t
		idle_seconds; /* since it was last read or written; of flash objects coarse, at the last time in DRAM */
	bool fetched; /* read since it was written */
	bool stale, won, win_sent;
};

/* A value that was found; its bytes stay valid until store_value_release. */
struct store_value {
	const char *data;
	uint32_t length;
	uint32_t client_flags;
	uint64_t cas;
	bool from_flash;
	struct item *item; /* private: reference held, or ... */
	struct flash_read *read; /* ... the bytes as they were read */
};

/*
 * The flash reads of one command that asks for several keys share a fate: when the drive is so busy that some
 * can't be answered in time, whole commands are refused and not a part of each. Zeroed for a new command, then given
 * to the request of each of its keys.
 */
struct store_fate {
	bool taken, refused;
};

/* Owned by the caller, zeroed before first use, may be reused once done. No allocation is made for
   a request that finishes at once. */
struct store_request {
	enum store_op op;
	uint8_t key_length; /* 1 .. STORE_KEY_MAX */
	const char *key; /* stays valid until done */
	uint64_t hash; /* store_hash(key) */
	struct item *item; /* SET, ADD, REPLACE, APPEND, PREPEND, CAS: the new object; taken over */
	uint64_t cas; /* CAS: the id to compare; out: the new object's id when stored */
	uint64_t delta; /* INCR, DECR */
	uint32_t expiry; /* GAT, TOUCH: from store_expiry(); out, SET .. CAS: the object's */
	bool has_options; /* options are to be looked at, found is to be filled */
	struct store_options options;
	struct store_fate *
		fate; /* of the command that this is one key of; NULL: it is all of it. Looked at by store_execute alone */
	void (*done)(struct store_request *request); /* called only when execute answered false */
	void *owner;

	enum store_result result;
	struct store_value value; /* GET, GAT: to be released; TOUCH: of it client_flags and cas alone, without data */
	struct store_found found;
	uint64_t
		number; /* INCR, DECR: the new one. SET .. CAS: bytes of the value that is there now, or that was not stored */
	bool made; /* extended: the object is there by vivify */

	struct store_lookup *lookup; /* private: flash reads under way */
	uint8_t class_met,
		class_brought; /* private: size classes of the object that was there and of the new one; 0: none */
};

uint64_t store_hash(const struct store *store, const char *key, size_t length);

/* memcached's exptime (0 never, negative now, up to 30 days relative, else absolute wall seconds)
   as the store's seconds. */
uint32_t store_expiry(const struct store *store, int64_t exptime);

/*
 * A new object with room for its value, to be filled by the caller through store_item_value() and
 * given to a request, or dropped by store_item_drop. NULL with *why STORE_TOO_LARGE or
 * STORE_NO_MEMORY. Counts in -m at once; evicts from DRAM inline when memory is short: never
 * waits for the flash.
 */
struct item *store_item_create(struct store_worker *worker, const char *key, size_t key_length, uint32_t client_flags,
			       uint32_t expiry, uint32_t value_length, enum store_result *why);
char *store_item_value(struct item *item);
void store_item_drop(struct store_worker *worker, struct item *item);
/* Would such an object be over the limit? (Before its value is read from the network.) */
bool store_too_large(const struct store *store, size_t key_length, uint64_t value_length);
/* True: finished, result is there (done is not called). False: done(request) comes later. Counts
   cmd_*, *_hits, *_misses and the flash counters. */
bool store_execute(struct store_worker *worker, struct store_request *request);

/*
 * These keys (hashes) are what the next requests will most likely name: starts to bring what they will
 * touch in index and DRAM table into the processor's cache, for all of them at once, as one miss after the other
 * is what a request costs. No effect but on time.
 */
void store_foresee(struct store_worker *worker, const uint64_t *hashes, unsigned count);

/* Gives a value back. Same worker. */
void store_value_release(struct store_worker *worker, struct store_value *value);

/* Of the object that a request has found, stored or deleted, or could not store. */
struct store_told {
	unsigned class
		; /* size class (store_class_status); of a piece that was joined, the piece's; 0: there was none */
	uint32_t value_bytes; /* GET, GAT, SET .. CAS; else 0 */
	uint32_t ttl_seconds; /* SET .. CAS, GAT, TOUCH: left; 0: never expires, or has */
};
/* For who watches. The request is done, its value not released yet; any thread. */
void store_tell(const struct store *store, const struct store_request *request, struct store_told *out);

/* flush_all: what was stored before now (delay 0), or before now + delay seconds when that time
   has come, is gone. A later call replaces a pending one. */
void store_flush_all(struct store *store, int64_t exptime);

/* cache_memlimit: -m from now on, at least 1 MiB. More than items may have is evicted soon, by the cleaner, which
   then moves small objects together, so that the memory is really free: 2 s for 3 million objects (with -M
   nothing is evicted: sets are refused until enough has been deleted). FS_ERANGE, and nothing has changed:
   bytes is less than that, or less than at the start while index, tables and staging, which keep the size that
   they were made with, leave too little for items: an eighth of bytes, or three segments. Any thread. */
FS_MUST_CHECK int store_set_memory_limit(struct store *store, uint64_t bytes);

/*
 * What else may change while the store runs, as struct store_config says it. Each value is an atomic of its own: the
 * cleaner and the workers take a new one at their next look, within a turn. hot_fraction and flash_write_limit act from
 * the cleaner's next step on; of a lower limit, what had been saved up for the higher one is cut. read_timeout_ms holds
 * for reads that are under way too. admission: clf_set_admission. Without flash the values are kept, and have no effect.
 * Any thread; of two that set at a time each field is one's of them.
 */
struct store_tuning {
	double hot_fraction;
	uint64_t flash_write_limit;
	uint32_t read_timeout_ms;
	enum clf_admission admission;
};
void store_get_tuning(const struct store *store, struct store_tuning *out);
void store_set_tuning(struct store *store, const struct store_tuning *tuning);

/* ---- the crawler ----------------------------------------------------------------------------- */

/*
 * The cleaner looks through DRAM all the time, once a minute, and frees what is expired; an expired object on flash
 * is dropped when it is met. memcached's lru_crawler commands act on that. Any thread.
 */
struct store_crawler {
	bool enabled; /* lru_crawler enable, disable: the passes that begin by themselves. Rescoring for flash goes on */
	uint32_t
		sleep_us; /* lru_crawler sleep: after each STORE_CRAWL_BATCH objects of an asked-for crawl or a walk, 0 .. 1000000 */
	uint32_t
		to_crawl; /* lru_crawler tocrawl: objects of each size class that an asked-for crawl looks at; 0: all */
};
#define STORE_CRAWL_BATCH 1000u
#define STORE_CRAWL_SLEEP_US 100u /* at the start, as is enabled and a to_crawl of 0 */
#define STORE_CRAWL_SLEEP_MAX_US 1000000u
void store_get_crawler(const struct store *store, struct store_crawler *out);
/* sleep_us above the greatest counts as that. Takes effect in crawls under way too, but for to_crawl. */
void store_set_crawler(struct store *store, const struct store_crawler *crawler);

/* lru_crawler crawl: all of DRAM is looked through for expired objects, in the background, at once, whether the
   crawler is enabled or not. False: a crawl that was asked for is still under way, this one is not begun. */
bool store_crawl(struct store *store);

struct store_crawler_status {
	bool running; /* a crawl that was asked for is under way: lru_crawler_running */
	/* The counters of these names, so since the start or the last reset: */
	uint64_t starts; /* lru_crawler_starts: passes begun, by themselves or asked for */
	uint64_t checked; /* crawler_items_checked */
	uint64_t reclaimed; /* crawler_reclaimed */
};
void store_get_crawler_status(const struct store *store, struct store_crawler_status *out);

/* ---- walking over all objects ---------------------------------------------------------------- */

/* An object as a walk meets it. */
struct store_seen {
	const char *key; /* valid during the call */
	uint8_t key_length;
	bool fetched, from_flash;
	uint32_t value_length;
	uint32_t client_flags;
	int64_t expires; /* wall seconds, -1: never */
	int64_t accessed; /* wall seconds of the last access; of flash objects coarse, as when they were written there */
	uint64_t cas;
	unsigned class; /* of store_class_status; of a flash object the one it would have in DRAM */
	uint32_t bytes; /* of the item in DRAM, header and key included, or what it would be there */
};

/*
 * Calls see() for each live object: DRAM first, stripe by stripe, then, with flash, each segment with large
 * reads. Nothing is held during see(), no lock and no pin: it may take as long as a slow client does, and call the
 * store. What moves between the tiers meanwhile may be seen twice or be missed; what is there all the time in one of
 * them is seen once. see() returns false to stop. From any thread but a worker's, as it waits for the device and
 * takes 0.1 us and more for an object; several at a time may. Sleeps as struct store_crawler says. FS_OK, also
 * when stopped; FS_ENOMEM (it has stopped), or FS_EIO when a segment or a record could not be read (all others
 * were). (memcached: lru_crawler metadump.)
 */
FS_MUST_CHECK int store_walk(struct store *store, bool flash,
			     bool (*see)(void *context, const struct store_seen *object), void *context);

/*
 * stats sizes: how many objects in DRAM have which size (store_seen's bytes), by a walk over DRAM, some 50 ns an
 * object. Calls see() for each size that there is, ascending, when all are counted: bytes is a multiple of
 * STORE_SIZE_STEP up to STORE_SIZE_FINE, above a size class's. FS_ENOMEM. Any thread; long for a worker's where
 * objects are many.
 */
#define STORE_SIZE_STEP 32u
#define STORE_SIZE_FINE (1u << 20)
FS_MUST_CHECK int store_count_sizes(struct store *store, void (*see)(void *context, uint32_t bytes, uint64_t objects),
				    void *context);

/* ---- size classes ---------------------------------------------------------------------------- */

/*
 * Items of DRAM by jemalloc's size classes, which stand in for memcached's slab classes, 1 .. count. An object on
 * flash has no class, but a command that meets it there is counted in the one that it would have.
 *
 * `stats slabs` from these: chunk_size = store_class_bytes, used_chunks = items, mem_requested = requested_bytes;
 * the allocator's slabs hold no pages of one class for us alone, so total_chunks = used_chunks, free_chunks = 0 and
 * pages are as many as the items fill; total_malloced is store_status.dram_bytes. `stats items`: there is one
 * list, not four: what is said of the cold one is all (number_cold = items, hits_to_cold = get_hits).
 */
unsigned store_class_count(void);
uint32_t store_class_bytes(unsigned class); /* of an item, all included; ascending; the last: what is larger too */

struct store_class_status {
	/* Now, in DRAM; values under way to or from a client included, as in bytes and item accounts: */
	uint64_t items, requested_bytes; /* what the allocator was asked for: header, client flags, key, value */
	uint64_t age_seconds; /* since the last access of the one that waits longest, as the crawler last met it;
				 0 where it has met none, or they are gone */
	/* Since the start, or the last store_reset_classes, as memcached counts them (each store_* command that met an
	   object of the class; set_count: one that brought an object of the class, stored or not): */
	uint64_t get_hits, set_count, delete_hits, incr_hits, decr_hits, cas_hits, cas_badval, touch_hits;
	uint64_t evicted; /* unexpired, from DRAM: their sum is evictions */
	uint64_t evicted_nonzero; /* of these: with an expiry */
	uint64_t evicted_unfetched; /* never read */
	uint64_t evicted_active; /* with a CLOCK value above 0: there was nothing else */
	uint64_t direct_reclaims; /* by a worker, inline */
	uint64_t expired_unfetched; /* expired, never read; found by eviction or crawler */
	uint64_t reclaimed; /* expired, found by eviction */
	uint64_t crawler_reclaimed; /* expired, found by the crawler */
	uint64_t crawler_checked; /* looked at by the crawler */
	uint64_t out_of_memory; /* refused for want of memory */
	uint64_t evicted_time; /* seconds between the last access and the eviction of the one evicted last; 0: none */
};
void store_get_class(struct store *store, unsigned class, struct store_class_status *out); /* any thread */
void store_reset_classes(struct store *store); /* stats reset: what is counted since the start. Any thread */

/* ---- workers --------------------------------------------------------------------------------- */

FS_MUST_CHECK int store_worker_create(struct store_worker **out, struct store *store);
void store_worker_destroy(struct store_worker *worker); /* after its last request is done */
/* What tells that store_worker_poll has work; -1 without flash. completions is an eventfd which that doesn't
   read: watched edge-triggered, or read by the caller before each poll. timer is to be watched
   level-triggered: a read may have timed out. */
struct store_worker_fds {
	int completions, timer;
};
struct store_worker_fds store_worker_fds(const struct store_worker *worker);
/* At the top of each turn of the event loop: reads the clock once for the turn, and tells what it said, in ns. */
uint64_t store_worker_turn(struct store_worker *worker);
/* Reads it again. */
uint64_t store_worker_now_ns(const struct store_worker *worker);
/* At its end, before it sleeps: starts the flash reads gathered since. */
void store_worker_flush(struct store_worker *worker);
/* Completions and time-outs: calls done of what is finished. Makes no system call where nothing is; worth
   calling at each turn while requests are pending, before the answers of the turn go out. */
void store_worker_poll(struct store_worker *worker);
/* Has store_worker_poll something to do at once, of which no descriptor tells? */
bool store_worker_has_work(const struct store_worker *worker);
unsigned store_worker_pending(const struct store_worker *worker); /* requests not done */

/* ---- figures --------------------------------------------------------------------------------- */

/* What was written over a window of time; since the start where that is shorter (window.h). */
enum store_window_kind { STORE_WINDOW_5M, STORE_WINDOW_1H, STORE_WINDOW_1D, STORE_WINDOWS };
struct store_window {
	uint64_t flash_bytes, app_bytes; /* flash_bytes_written and app_bytes_written in it, whatever was reset */
	double seconds; /* its length: near its name's, or since the start; 0 in the first moment */
};

struct store_status {
	uint64_t now_seconds; /* since the start */
	uint64_t memory_limit, memory_used; /* all cache memory by its own accounts */
	uint64_t memory_resident;
	uint64_t dram_items, dram_bytes, dram_table_bytes, dram_budget;
	uint64_t hash_buckets;
	uint64_t curr_items, curr_bytes; /* both tiers */
	uint64_t hot_bytes, hot_threshold_bytes;
	uint64_t plan_bytes, staging_bytes, reader_bytes, classifier_bytes;
	uint64_t candidates, candidate_bytes; /* flashy objects waiting in DRAM */
	double innocent_drops; /* expected count of innocent slots cleared by sets so far */
	double dram_bytes_per_flash_item;
	double write_rate; /* bytes per second to the device, last 10 s */
	uint64_t write_limit; /* --flash-write-limit, bytes per second; 0: none */
	struct store_window window[STORE_WINDOWS];
	bool flash;
	const char *
		without_flash; /* why, although a path was given: a sentence that lives as long as the store; else NULL */
	struct fidx_status index;
	unsigned tag_bits, filter_bits;
	struct seg_status segments;
	struct seg_info info;
	struct clf_status classifier;
};
void store_get_status(struct store *store, struct store_status *out); /* any thread; may lock leaves */

/* What -m pays for, in bytes: the parts that items don't have. */
struct store_memory {
	uint64_t limit;
	uint64_t items, tables, stripes; /* objects in DRAM, the chains that lead to them, their locks */
	uint64_t index, filters,
		index_other; /* of objects on flash: its tables; other: extents and what each segment takes */
	uint64_t segments, classifier, plans, staging, readers;
	uint64_t charged; /* taken off items, as more is resident than -m allows */
	uint64_t untouched; /* of index, segments and classifier: given, and not resident yet */
	uint64_t heap; /* of all but charged: what is the allocator's */
};
void store_get_memory(struct store *store, struct store_memory *out); /* any thread; asks for each page of the index */

#endif
