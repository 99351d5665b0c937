/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store: one cache of objects in DRAM and on flash. It joins classifier, flashindex and segments. None of them, nor
 * the store itself, knows of connections or protocols.
 *
 *   worker --store_execute--> key stripe: DRAM table --> index --> (pin) --> flash read
 *                                 ^                                             |
 *   cleaner: candidates -> plan -> segment -> index; reclaim; CLOCK             v
 *                                                            done(request) on the same worker
 *
 * Model: a request names one key. store_execute either finishes it at once (DRAM hits, sets, clear misses), or it
 * starts flash reads, and store_worker_poll finishes the request later on the same thread. Every command is atomic for
 * its key: its effect and the decision about the key's slots happen in one critical section of the key's stripe. A
 * slow flash read can therefore never bring back a value that was overwritten or deleted meanwhile (README.md,
 * invariants).
 *
 * Threads: a store_worker belongs to one thread, and so do its requests, items and values. Functions that take a
 * struct store may be called by any thread unless they say otherwise. store_start runs three threads inside: keeper,
 * cleaner and trainer. Without it store_clean_step() and store_tick() drive the same code, as tests do.
 *
 * Locks: none is held at a call, and none is left held. A function of a worker may take one key stripe and locks below
 * it for some microseconds. Only store_open, store_close, store_stop, store_worker_destroy, store_clean_step,
 * store_walk and the store's own threads wait for the device.
 *
 * Order that the caller keeps: while a read-modify-write of a connection is not done, that connection executes no other
 * command on the same key (compare hashes). Plain gets may be in flight together, and beside anything.
 *
 * Errors: functions that return int give codes of base/error.h. Everything that a client can cause is a store_result.
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
#include "flashindex/frugal/frugal.h"
#include "segments/segments.h"
#include "server/store/crawler.h"
#include "server/store/end.h"
#include "server/store/flush.h"
#include "server/store/index.h"
#include "server/store/limits.h"
#include "server/store/promotion.h"
#include "server/store/sample.h"
#include "server/store/tuning.h"
#include "server/store/views.h"
#include "server/store/walk.h"

#define STORE_KEY_MAX 250 /* bytes */
/* A record of at most so many bytes, and of at most this part of a segment, gets a slot; a longer one gets an extent. */
#define STORE_SLOT_RECORD_MOST (64u << 10)
#define STORE_SLOT_RECORD_PART 64u
#define STORE_SLOT_RECORD_LEAST 1024u

struct store;
struct store_worker;
struct item; /* an object in DRAM; opaque outside server/store */
struct flash_read; /* bytes from flash; opaque outside server/store */

/* The live objects of a reclaimed segment that go back into DRAM: those that were read while on flash, or all of them
   (the paper's way). */
enum store_reinsertion { STORE_REINSERT_READ, STORE_REINSERT_LIVE };

/* A daemon that has served some clients of another one, as its options were other ones. */
struct store_kin {
	char *name;
	bool covers; /* it has served all of them: they may have again what it has saved */
};

struct store_config {
	const struct clk *clock; /* outlives the store */
	uint64_t memory_bytes; /* -m: all cache memory; >= 1 MiB */
	uint32_t max_item_bytes; /* -I: key + value + header as memcached counts; 1 KiB .. 1 GiB */
	bool evict; /* false: -M, a set fails with STORE_NO_MEMORY instead */
	bool cas; /* false: -C, ids are given but not shown, and no id compares as the same */
	unsigned workers; /* the number of store_workers to come; >= 1 */
	uint64_t seed; /* of randomness; 0: from the kernel */
	/* For simulations. item_bytes > 0: objects in DRAM take so many bytes, headers included, whatever else -m pays
	   for. unwatched: resident memory is no concern, as it is that of the program around the store. */
	uint64_t item_bytes;
	bool unwatched;
	/* The longest record that gets a slot, in bytes: STORE_SLOT_RECORD_LEAST or more. 0, which any flash that is kept needs:
	   slot_record_max (state/sizing.h). */
	uint64_t slot_record_bytes;

	struct store_sample_sink samples; /* NULL in it: none are taken. Its context outlives the store */

	const char *flash_path; /* NULL: a cache in DRAM alone, and everything below is ignored */
	struct dev *flash_device; /* used in place of the file (seg_config.device); then flash_path is its name */
	uint64_t flash_bytes; /* 0: the size of the file or device */
	/* A file that isn't there yet is made only where at least so many bytes are free. Else, or when its file
	   system is full, the store runs without flash. 0: the file is made, or store_open fails. */
	uint64_t flash_min_free;
	bool takes_extstore; /* a file that memcached's extstore has left is emptied and used; else store_open refuses it */
	const struct seg_owner *flash_owner; /* gets a file that is made; NULL: the process keeps it */
	uint64_t segment_bytes; /* 0: follows from -m and the flash (state/sizing.c) */
	enum store_index index;
	/* Per cent of the columns of STORE_INDEX_FRUGAL that stay in memory, 1 .. 100; 0: all. */
	unsigned frugal_memory;
	uint64_t frugal_kill_bytes; /* of the frugal index's table of kills; 0: follows from -m */
	uint32_t flash_object_bytes; /* expected mean size, for the index's first table */
	int filter_bits; /* per key; -1: automatic */
	enum fidx_filter filter; /* of whole filters */
	unsigned filter_units; /* 0: filters are whole; 2 .. 8 (flashindex/units.h) */
	unsigned tag_bits; /* 0: all bits that a slot has left */
	unsigned functions; /* hash functions for positions in a segment */
	enum seg_placement placement;
	enum seg_direct direct;
	enum seg_read_unit read_unit;
	enum fidx_clock_mode clock_mode;
	enum store_reinsertion reinsertion;
	double hot_fraction; /* of the flash in the hot data threshold: 0 .. 1, default 0.7 */
	struct store_promotion promotion;
	uint64_t flash_write_limit; /* bytes per second, 0: none */
	double flash_write_dwpd; /* the limit as a share of the flash's size per day; 0: flash_write_limit counts */
	double flash_write_ratio; /* of bytes written to flash to those that applications write; 0: none. For
				     rules that ask at eviction */
	double size_exponent; /* clf_config.size_exponent: 0 .. 2, default 1 */
	uint32_t read_timeout_ms; /* how long a request waits for flash */
	/* Where store_save leaves what the next start needs to serve the flash again; NULL: each start is cold. At most
	   4095 bytes; outlives the store. */
	const char *state_dir;
	/* A folder on tmpfs or hugetlbfs in which the region lies, so that objects on flash outlive a kill; NULL: it is
	   anonymous memory. At most 4095 bytes; outlives the store. */
	const char *region_dir;
	uint64_t restart_max_downtime_us; /* a longer pause makes the start cold; 0: each start is cold */
	void (*settle)(void); /* store_open calls it before it takes anything over. It needn't return. Or NULL */
	/* For store_look alone: flash, region and state directory are only read, and nothing is locked. */
	bool look_only;
	const char *boot_id; /* of the machine, for tests; NULL: the kernel's */
	/* Tells this daemon from others that share state_dir: objects of DRAM are loaded again only by the same one, or
	   where its kin covers it. NULL: "". Outlives the store. */
	const char *daemon;
	/* Daemons that some of its clients have reached (daemon_lock.h): what they have saved is removed, as its values will
	   change. Outlive the store. */
	const struct store_kin *kin;
	unsigned kin_count;
	bool journal; /* --journal=sync, with state_dir and flash: after a crash of the host the flash is warm */
	struct journal_medium *journal_medium; /* for tests: in place of state_dir's files; the store closes it */
	int64_t (*wall_seconds)(void); /* for tests: the journal's wall clock; NULL: clk_wall_seconds */

	enum clf_label_mode label_mode;
	enum clf_admission admission;
	uint32_t flashiness_threshold; /* reads */
	uint64_t flashiness_horizon_ms, training_window_ms;
	char app_delimiter; /* ends the part of a key that names its application */
	const struct app_limits *limits; /* of applications; NULL: none. store_open copies them */
};

/* Defaults of everything. */
void store_config_init(struct store_config *config);

/*
 * Opens flash and makes all tables; the cleaner makes a flash file beside its other work (seg_allocate).
 * FS_OK, or a code with the reason in reason[256]: FS_ERANGE (the reason names the option and its range), FS_ESYS
 * (errno), FS_ENOMEM, or a code of seg_open. Logs the start line. The caller closes the store; config may be dropped.
 * One thread.
 */
FS_MUST_CHECK int store_open(struct store **out, const struct store_config *config, char reason[256]);
/* Notes in the state directory, if any, that the daemon of this name, which stands for what it listens to, serves with this
   flash from now on, or without one. What it and its kin have saved of another one is removed, as its values will change. CAS ids go on as
   in ids_note.h. Logs failures. Once, before requests are served, as the directory's user; name may be dropped. */
void store_claim(struct store *store, const char *name);
/* Files of the classifier's models. */
struct store_models {
	const char *given; /* the operator's; NULL: none */
	bool pinned; /* given stays in use */
	const char *saved; /* accepted models are written to it, and the next start takes the last one; NULL: none */
};

/*
 * Puts a model in use before the first training: the given one, else the saved one if it is there; and lets accepted
 * models be saved. FS_OK, also without flash, when nothing happens; a code of clf_load_model with the reason if the given
 * one can't be used. A saved one that can't be used is a line in the log. Called once, before store_start, as the user
 * that will write the file. Does I/O. models may be dropped.
 */
FS_MUST_CHECK int store_open_models(struct store *store, const struct store_models *models, char reason[256]);
/* Reads the given model again, and puts it in use if the file has another one than at the last call. Codes and reason
   as with clf_load_model; FS_OK without flash. Any thread between store_open_models and store_close. Does I/O. */
FS_MUST_CHECK int store_reload_model(struct store *store, const char *given, bool pinned, char reason[256]);

/* Starts keeper, cleaner and trainer. FS_OK; FS_ESYS (errno), and none of them runs. One thread. */
FS_MUST_CHECK int store_start(struct store *store);
/* Did keeper and cleaner come round within so many seconds? A cleaner that waits for the device counts as if it had
   come: the device hangs then, not the daemon. Any thread, between store_start and store_stop. */
bool store_alive_within(const struct store *store, uint32_t seconds);

/* One step of the keeper and one of the cleaner in the calling thread, instead of store_start's threads, and a training
   if one is due. May wait for the device. True: one of the two did something. */
bool store_clean_step(struct store *store);
/* Does the duties of each second: due flushes, write rates, windows, the classifier's budget. For the thread of
   store_clean_step. */
void store_tick(struct store *store);

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
	STORE_TOUCH,
	STORE_FLUSH /* of store_flush, which sets it; not for store_execute */
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
	STORE_NO_MEMORY, /* -M, or the allocator failed */
	STORE_FLUSHED /* FLUSH */
};

/*
 * The meta and the binary protocol may ask for more than a command's classic meaning, by these options. The store
 * looks at them when the request has_options; zeroed, they change nothing.
 *
 *   compare_cas    The request acts only on an object whose id is request->cas. On another id the result is
 *                  STORE_EXISTS and nothing changes. For SET, REPLACE, APPEND, PREPEND, INCR, DECR, DELETE (CAS always
 *                  compares, ADD never). An absent key is a miss as without it; SET and REPLACE then answer
 *                  STORE_MISS. Every number is compared, 0 too: a protocol whose 0 means "no id", as with most of
 *                  memcached's commands, leaves compare_cas out. Without ids (-C) no id is the same, except 0 for
 *                  INCR, DECR and DELETE; APPEND and PREPEND don't compare then.
 *   vivify         An absent key is made. GET, GAT, TOUCH: an empty object with vivify_expiry; found.won is set, and
 *                  the result is STORE_HIT with an empty value (TOUCH: STORE_TOUCHED). INCR, DECR: the number
 *                  `initial`. APPEND, PREPEND: the piece becomes the value. With touch, request->expiry counts
 *                  instead.
 *   vivify_last    With vivify and touch: vivify_expiry counts nevertheless.
 *   touch          The object gets request->expiry. For GET (GAT always does), INCR, DECR, and DELETE with invalidate.
 *   recache        GET, GAT: the first request for an object that expires in less than recache_seconds wins it. The
 *                  expiry after the touch decides.
 *   recache_first  With recache and touch: the expiry before the touch decides.
 *   own_cas        The object that is stored, counted or marked stale gets the id new_cas (not 0) instead of one of
 *                  ours.
 *   invalidate     DELETE: the object stays and is marked stale, and nobody has won it; its id changes. SET, REPLACE
 *                  and CAS with compare_cas: an object with a greater id than the compared one is replaced all the
 *                  same; the new one is stale and keeps the old expiry.
 *   drop_value     DELETE: the object stays without value and client flags (with invalidate: and stale); its id
 *                  changes.
 *   keep_clock     GET: the read counts neither as a read (found.fetched) nor for eviction and admission.
 *   blind          DELETE: nobody needs the answer. The slots that may be the key's are cleared without a flash read,
 *                  and any makes it a hit. (Under -M it reads all the same: such a slot may be another key's.)
 *   meta           A meta command asks. The store does the same; whoever watches is told so.
 *   refused        DELETE: a SET was refused with this result, STORE_TOO_LARGE or STORE_NO_MEMORY, and its old value
 *                  goes, because the client thinks of it as gone. No counter sees it, and the result is the reason.
 *   uncounted      GET: only a look. No counter sees it except for an expired object; it neither wins nor counts as a
 *                  read (memcached: me). DELETE: a different id is no miss to the counters.
 *
 * Marks go when a new value is stored, also when a number grows longer. A touch, or a number that keeps its length,
 * leaves them.
 *
 * Counters are memcached's for its meta commands. A GET with touch counts a hit as cmd_touch and touch_hits alone, and
 * a miss as a get's. SET and REPLACE with compare_cas count as CAS does; INCR, DECR, APPEND and PREPEND don't count a
 * different id. DELETE counts a different id as a miss, and doesn't count an invalidate that hits. A number that INCR
 * or DECR vivifies isn't counted; an object that GET vivifies is a hit.
 */
struct store_options {
	bool compare_cas, vivify, touch, recache, own_cas, invalidate, drop_value, keep_clock, uncounted;
	bool recache_first, vivify_last, blind, meta;
	uint32_t vivify_expiry; /* from store_expiry() */
	uint32_t recache_seconds;
	uint64_t initial, new_cas;
	enum store_result refused; /* STORE_HIT: no set was refused */
};

/*
 * The object as it was before a request with options, except for its expiry, which is the present one. Filled with
 * STORE_HIT, STORED, TOUCHED, DELETED. Stale: an invalidate marked the object, and the first reader wins it. Won: this
 * caller is to make the value anew; win_sent: another one was told so before. An object that is stale, or won, or has
 * an id of the client's own, stays in DRAM.
 */
struct store_found {
	int64_t ttl_seconds; /* left; -1: never expires */
	/* Left before the request changed the expiry; otherwise the same. Of a vivified object that was given two
	   expiries: the one that doesn't count. */
	int64_t ttl_before_seconds;
	uint32_t
		idle_seconds; /* since the last read or write; coarse for flash objects, up to their last time in DRAM */
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
	struct item *item; /* private: the item with a reference held, or ... */
	struct flash_read *read; /* ... the bytes as they were read */
};

/*
 * The flash reads of one command that asks for several keys share a fate: when the drive is too busy to answer all of
 * them in time, whole commands are refused rather than a part of each. Zeroed for a new command, then given to the
 * request of each of its keys. The worker's thread.
 */
struct store_fate {
	bool taken, refused;
};

/* The caller owns it, zeroes it before its first use, and may use it again once it is done. A request that finishes at
   once allocates nothing. */
struct store_request {
	enum store_op op;
	uint8_t key_length; /* 1 .. STORE_KEY_MAX */
	const char *key; /* stays valid until done */
	uint64_t hash; /* store_hash(key) */
	struct item *item; /* SET, ADD, REPLACE, APPEND, PREPEND, CAS: the new object; the store takes it over */
	uint64_t cas; /* CAS: the id to compare; out: the new object's id when stored */
	uint64_t delta; /* INCR, DECR */
	uint32_t expiry; /* GAT, TOUCH: from store_expiry(); out, SET .. CAS: the object's */
	/* GAT: the answer has no place for STORE_NO_MEMORY. Where the new expiry finds no memory the value is answered all the
	   same; the object keeps the old expiry if that is no later, and else it goes. */
	bool never_refused;
	bool has_options; /* the store looks at options and fills found */
	struct store_options options;
	struct store_fate *fate; /* of the command with several keys; NULL: this key is all. For store_execute alone */
	void (*done)(struct store_request *request); /* called only when store_execute answered false */
	void *owner; /* the caller's */

	enum store_result result;
	struct store_value value; /* GET, GAT: to be released; TOUCH: client_flags and cas alone, without data */
	struct store_found found;
	/* INCR, DECR: the new number. SET .. CAS: bytes of the value that is there now, or that was not stored. */
	uint64_t number;
	bool made; /* with options: the object was vivified */
	/* Filled in when done is called, else undefined: flash reads that were made for it, 255 at the most; when the drive
	   got the first one that it waited for and when the last one was answered, by the store's clock. from is 0 for a
	   request that waited for no read, and UINT64_MAX if the drive got none; to is UINT64_MAX if it gave up waiting. */
	uint8_t flash_reads;
	uint64_t flash_from_ns, flash_to_ns;
	struct store_lookup *lookup; /* private: flash reads under way */
	uint64_t ticket; /* private: of the journal, which the answer waits for ... */
	struct store_request *next_parked; /* ... in this list */
	uint8_t class_met, class_brought; /* private: size classes of the old and of the new object; 0: none */
	uint8_t met; /* private: enum store_met (views.h); a plain GET doesn't set it */
	uint32_t met_bytes; /* private: of that object's value; 0: unknown */
};

/* Returns the hash of a key of length bytes, for store_request.hash. */
uint64_t store_hash(const struct store *store, const char *key, size_t length);

#define STORE_RELATIVE_EXPTIME_MAX (30 * 24 * 60 * 60)
/* Returns memcached's exptime (0 never, negative now, up to 30 days relative, else absolute wall seconds) as the
   store's seconds. */
uint32_t store_expiry(const struct store *store, int64_t exptime);

/*
 * Returns a new object with room for its value. The caller fills it through store_item_value(), and gives it to a
 * request or to store_item_drop. NULL with *why STORE_TOO_LARGE or STORE_NO_MEMORY. It counts in -m at once. Evicts
 * from DRAM inline when memory is short, with bounded work; never waits for the flash. The worker's thread.
 */
struct item *store_item_create(struct store_worker *worker, const char *key, size_t key_length, uint32_t client_flags,
			       uint32_t expiry, uint32_t value_length, enum store_result *why);
/* Returns the value's bytes, value_length of them. */
char *store_item_value(struct item *item);
/* Frees an object that no request took over. The worker's thread. */
void store_item_drop(struct store_worker *worker, struct item *item);
/* Is such an object over the limit of -I? (Asked before its value is read from the network.) */
FS_MUST_CHECK bool store_too_large(const struct store *store, size_t key_length, uint64_t value_length);
/*
 * Executes the request. True: it is finished and the result is there (done is not called). False: store_worker_poll
 * calls done(request) later, never this call itself. Counts cmd_*, *_hits, *_misses and the flash counters. Never
 * waits for the device. The worker's thread, between store_worker_turn and store_worker_flush.
 */
FS_MUST_CHECK bool store_execute(struct store_worker *worker, struct store_request *request);

/*
 * Tells that the next requests will most likely name the keys of these hashes. It brings the parts of index and DRAM
 * table that they will touch into the processor's cache, for all of them at once, because cache misses one after the
 * other are most of a request's cost. Affects time alone. The worker's thread.
 */
void store_foresee(struct store_worker *worker, const uint64_t *hashes, unsigned count);

/* Gives a value back and zeroes it. The worker that answered the request. */
void store_value_release(struct store_worker *worker, struct store_value *value);

/*
 * For cache_memlimit: sets -m to this many bytes, at least 1 MiB. Items above the new budget are evicted soon; the
 * keeper then moves small objects together, so that the memory is really free: 2 s for 3 million objects. Under -M
 * nothing is evicted, and sets are refused until enough has been deleted. FS_OK; FS_ERANGE, and nothing has changed:
 * bytes is below 1 MiB, or below -m at the start while index, tables and staging leave too little for items: a quarter
 * of bytes, or two segments.
 */
FS_MUST_CHECK int store_set_memory_limit(struct store *store, uint64_t bytes);

/* ---- size classes ---------------------------------------------------------------------------- */

/*
 * Items of DRAM by jemalloc's size classes, which stand in for memcached's slab classes, 1 .. count. An object on
 * flash has no class; a command that meets it there is counted in the class that it would have in DRAM.
 *
 * `stats slabs` follows from these: chunk_size = store_class_bytes, used_chunks = items, mem_requested =
 * requested_bytes. The allocator's slabs hold no pages of one class for us alone, so total_chunks = used_chunks,
 * free_chunks = 0, and there are as many pages as the items fill; total_malloced is store_status.dram_bytes, and
 * at least a page once there was an object. `stats items`: there is one list, not four, and the cold one's figures are
 * all (number_cold = items, hits_to_cold = get_hits).
 */
/* Returns the number of classes. */
unsigned store_class_count(void);
/* Returns the largest item of a class (1 .. count) in bytes, all included; ascending. The last class holds larger ones
   too. */
uint32_t store_class_bytes(unsigned class);

struct store_class_status {
	/* Now, in DRAM, values under way to or from a client included, as in bytes and item accounts: */
	uint64_t items, requested_bytes; /* asked of the allocator: header, client flags, key, value */
	/* Since the last access of the object that waits longest, as the crawler last met it; 0: none was met, or it
	   is gone. */
	uint64_t age_seconds;
	/* Since the start, or the last store_reset_classes, as memcached counts them (each store_* command that met an
	   object of the class; set_count: one that brought an object of the class, stored or not): */
	uint64_t get_hits, set_count, delete_hits, incr_hits, decr_hits, cas_hits, cas_badval, touch_hits;
	uint64_t evicted; /* unexpired, from DRAM: the sum over classes is evictions */
	uint64_t evicted_nonzero; /* of these: with an expiry */
	uint64_t evicted_unfetched; /* never read */
	uint64_t evicted_active; /* with a CLOCK value above 0, for want of others */
	uint64_t direct_reclaims; /* by a worker, inline */
	uint64_t expired_unfetched; /* expired, never read; found by eviction or crawler */
	uint64_t reclaimed; /* expired, found by eviction */
	uint64_t crawler_reclaimed; /* expired, found by the crawler */
	uint64_t crawler_checked; /* looked at by the crawler */
	uint64_t out_of_memory; /* refused for want of memory */
	uint64_t evicted_time; /* seconds from the last access to the eviction of the latest evicted object; 0: none */
};
/* Fills out with the figures of a class (1 .. count). They may lag by a few events. */
void store_get_class(struct store *store, unsigned class, struct store_class_status *out);
/* For stats reset: makes all figures that count since the start begin at zero again. */
void store_reset_classes(struct store *store);

/* ---- workers --------------------------------------------------------------------------------- */

/* Makes a worker for the calling thread, with a reader of its own where there is flash. FS_OK, FS_ESYS (errno),
   FS_ENOMEM; *out is NULL after an error. */
FS_MUST_CHECK int store_worker_create(struct store_worker **out, struct store *store);
/* Frees the worker, whose last request is done and whose last value is released. Waits for reads that the device
   has. */
void store_worker_destroy(struct store_worker *worker);
/* Descriptors that tell when store_worker_poll has work; -1 without flash. completions is an eventfd, which
   store_worker_poll doesn't read: it is watched edge-triggered, or the caller reads it before each poll. timer is to
   be watched level-triggered: a read may have timed out. */
struct store_worker_fds {
	int completions, timer;
};
/* Returns the worker's descriptors; the worker closes them. */
struct store_worker_fds store_worker_fds(const struct store_worker *worker);
/* Reads the clock once for a turn of the event loop, and returns it in ns. To be called at the top of each turn. */
uint64_t store_worker_turn(struct store_worker *worker);
/* Reads the clock again, without effect on the turn, and returns it in ns. */
uint64_t store_worker_now_ns(const struct store_worker *worker);
/* Starts the flash reads that were gathered in the turn. To be called at its end, before the loop sleeps. */
void store_worker_flush(struct store_worker *worker);
/* Takes completions and time-outs, and calls done of each request that is finished. Makes no system call when none is;
   worth calling at each turn while requests are pending, before the turn's answers go out. */
void store_worker_poll(struct store_worker *worker);
/* Has store_worker_poll something to do at once that no descriptor tells of? */
bool store_worker_has_work(const struct store_worker *worker);
/* Returns how many requests of the worker are not done. */
unsigned store_worker_pending(const struct store_worker *worker);

/* ---- figures --------------------------------------------------------------------------------- */

/* Bytes written over a window of time; since the start where that is shorter (state/window.h). */
enum store_window_kind { STORE_WINDOW_5M, STORE_WINDOW_1H, STORE_WINDOW_1D, STORE_WINDOWS };
struct store_window {
	uint64_t flash_bytes, app_bytes; /* flash_bytes_written and app_bytes_written in it, regardless of resets */
	double seconds; /* its length: near its name's, or since the start; 0 in the first moment */
};

/* What holds writes to flash back at a moment: the first of these that is true. */
enum store_hold {
	STORE_HOLD_NO_FLASH, /* there is none */
	STORE_HOLD_OFFLINE, /* the device takes no writes */
	STORE_HOLD_REBUILD, /* the index is rebuilt first */
	STORE_HOLD_LATE, /* nothing: objects were lost in the last second because the cleaner came too late */
	STORE_HOLD_MEMORY, /* memory has room: nothing need be written */
	STORE_HOLD_LIMIT, /* --flash-write-limit */
	STORE_HOLD_RATIO, /* --flash-write-ratio */
	STORE_HOLD_FILLING, /* nothing, and the ratio has no effect, as segments are empty */
	STORE_HOLD_CANDIDATES, /* too few objects in DRAM are worth flash by the rule of admission */
	STORE_HOLD_NOTHING
};
/* Returns its name in reports: "no_flash", "offline", ... The word lives for ever. */
const char *store_hold_word(enum store_hold hold);

struct store_status {
	uint64_t now_seconds; /* since the start */
	uint64_t flash_seconds; /* since the last cold start, from which expiries on flash count */
	uint64_t memory_limit, memory_used; /* all cache memory by its own accounts */
	uint64_t memory_resident;
	uint64_t dram_items, dram_bytes, dram_table_bytes, dram_budget;
	uint64_t hash_buckets; /* links to items that there is room for */
	uint64_t curr_items, curr_bytes; /* both tiers; is_frugal: at most so many */
	/* copy_*: of clean copies, which are in dram_bytes and dram_items too; but copy_share: of memory_limit, what they may
	   take now; 0: none are made */
	uint64_t hot_bytes, hot_threshold_bytes, copy_bytes, copy_items;
	double copy_share;
	/* losses_bytes: of journal and rebuild; promotion_bytes: what promotion needs beside copies */
	uint64_t plan_bytes, staging_bytes, reader_bytes, classifier_bytes, losses_bytes, promotion_bytes;
	uint64_t candidates, candidate_bytes; /* in DRAM, waiting for a plan */
	double innocent_drops, filter_false_positive; /* so far, expected; of the filters in memory */
	double dram_bytes_per_flash_item, write_rate; /* the latter: bytes per second to the device, last 10 s */
	uint64_t write_limit; /* --flash-write-limit, bytes per second; 0: none */
	double write_ratio; /* --flash-write-ratio; 0: none */
	enum store_hold hold;
	double fill_seconds; /* until no segment is empty, or the fill has to end, at the rate of the last 5 minutes; NAN: unknown, or hold is another */
	struct store_window window[STORE_WINDOWS];
	bool flash;
	uint64_t
		flash_asked_bytes; /* more than info.flash_bytes where the file system has no room for a file of that size */
	bool journal, journal_broken; /* there is one; it could not be written, and ended */
	uint64_t journal_entries, journal_syncs, journal_waiting, journal_bytes, journal_files; /* as in counters.md */
	uint32_t rebuild_segments, rebuilt_segments; /* of the rebuild after a crash of the host; 0: there was none */
	/* Why a path that was given is not used: a sentence that lives as long as the store; else NULL. */
	const char *without_flash;
	/* How the flash started: "warm", or the reason why it started empty. Both live as long as the store. */
	const char *start_word, *start_text;
	const char *dram_start_word, *dram_start_text; /* the same for objects in DRAM, also without flash */
	bool dram_loading; /* objects of the last run are still being loaded */
	uint64_t dram_loaded, dram_load_skipped, dram_load_left; /* objects; left: at most so many had no room */
	struct fidx_status index;
	bool is_frugal; /* index is then about larger objects alone */
	struct frugal_status frugal; /* zeros without it */
	uint64_t frugal_index_bytes; /* of the frugal index, all parts */
	unsigned tag_bits, filter_bits, filter_units, filters_left; /* units: in memory; left: segments to read back */
	struct seg_status segments;
	struct seg_info info;
	struct clf_status classifier;
};
/* Fills out with a snapshot of all figures. Takes leaf locks for a moment. */
void store_get_status(struct store *store, struct store_status *out);
/* Returns the objects on flash, without ghosts, and the bytes of their records, ghosts included. With a frugal index there are so many at the
   most. */
static inline uint64_t store_flash_objects(const struct store_status *status)
{
	uint64_t slots = status->index.used + status->index.extents_used;

	return slots - (status->index.ghosts < slots ? status->index.ghosts : slots) + status->frugal.objects;
}
static inline uint64_t store_flash_bytes(const struct store_status *status)
{
	return (status->index.live_bytes > 0 ? (uint64_t)status->index.live_bytes : 0) + status->frugal.bytes;
}

/* Returns the classifier's labelled samples as clf_get_samples does; none without flash. */
FS_MUST_CHECK long store_get_samples(struct store *store, struct clf_labelled **out);

/* The parts that -m pays for, in bytes. */
struct store_memory {
	uint64_t limit;
	uint64_t items, tables, stripes; /* objects in DRAM, the tables that lead to them, their locks */
	uint64_t index, filters; /* of objects on flash */
	uint64_t frugal; /* the frugal index */
	uint64_t index_other; /* extents, and the data of each segment in the index */
	uint64_t segments, classifier, plans, staging, readers;
	uint64_t journal, promotion; /* of journal and rebuild; of promotion beside copies, which are items */
	uint64_t charged; /* taken off items, because more is resident than -m allows */
	uint64_t untouched; /* of index, segments and classifier: given, and not resident yet */
	uint64_t shared; /* of index and segments: resident in the region's file, which the kernel counts as a file */
	uint64_t heap; /* of all but charged: the allocator's part */
};
/* Fills out with the parts as they are now. Asks the kernel about each page of the index. */
void store_get_memory(struct store *store, struct store_memory *out);

#endif
