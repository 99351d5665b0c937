/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that the files of this room share: workers, lookups on flash, and which requests need one. All belong to
   the worker's thread. */
#ifndef FS_STORE_REQUEST_INTERNAL_H
#define FS_STORE_REQUEST_INTERNAL_H

#include "server/store/cleaner/cleaner.h"
#include "server/store/request/reads_internal.h"
#include "server/store/request/sketch.h"
#include "server/store/state/losses.h"

/* Rounds of a read-modify-write whose slots changed, before commits have to wait for it. */
#define LOOKUP_ROUNDS_MAX 3

#define LOOKUP_MAGIC 0x6c6f6f6bu /* "look" */
#define WORKER_MAGIC 0x776f726bu /* "work" */

#define LOOKUP_FEW 4 /* matches that need no memory of their own; one lookup in thousands has more */

/* What a lookup reads at the moment. */
enum lookup_what {
	LOOKUP_SLOT, /* the record of match[at] */
	LOOKUP_EXTENT, /* that of its extent */
	LOOKUP_BIN, /* a bin that may have the key's record */
	LOOKUP_CHAIN /* the chain record of the key's partition */
};

/* How far a lookup is with segments of bins. What was read there in vain is at or above `below`. */
struct lookup_bins {
	enum { BINS_OFF, BINS_TO_SEEK, BINS_FOUND, BINS_OVER } state; /* FOUND: `found` is pinned, and is to be read */
	bool chain; /* found is a chain record's place, and no match */
	bool searched; /* something was read */
	uint64_t below;
	uint64_t ids_below; /* what the request may find: ids of the time when it looked at DRAM */
	struct frugal_key key;
	struct frugal_found found;
	struct frugal_since since;
};

/* Flash reads for one request. Pooled per worker. */
struct store_lookup {
	struct store_lookup *next, *prev; /* in the worker's list of running ones, oldest first; or of free ones */
	struct store_lookup *next_waiting; /* the next that waits for the same read, or is ready */
	struct store_worker *worker;
	struct store_request *request;
	struct flash_read *read; /* the read that it waits for, or looks at; NULL: neither */
	uint64_t started_us;
	uint64_t from_ns, to_ns; /* store_request's flash_from_ns, or 0, and flash_to_ns */
	uint64_t position; /* of the read under way, in its segment */
	uint32_t magic; /* LOOKUP_MAGIC from lookup_new to lookup_free */
	unsigned matches, at; /* pinned matches; the one that is being read */
	unsigned reads, rounds; /* reads begun for it; rounds that ended without a decision */
	unsigned pages; /* that these reads have touched */
	bool running; /* it is in the worker's list of running ones */
	bool waits; /* its read is not done */
	bool ready; /* its read is done, or could not be begun: it is in the worker's list of ready ones */
	bool unread; /* its read could not be begun */
	bool made; /* its read was begun for it */
	bool has_extent; /* an extent, pinned, may be this key's ... */
	bool extent_done; /* ... or was read, and is another key's */
	enum lookup_what what;
	bool frozen; /* commits pass its stripe by until it is done */
	/* A new lookup doesn't clear the fields below: each is filled before its first use. */
	struct fidx_key key;
	struct lookup_bins bins; /* state alone is set by lookup_new */
	struct fidx_extent extent;
	struct fidx_match *match; /* few, or memory of its own */
	struct fidx_match few[LOOKUP_FEW];
};

struct store_worker {
	struct store_context context;
	struct seg_reader *reader; /* NULL without flash */
	uint32_t magic; /* WORKER_MAGIC as long as it is one */
	int timer_fd;
	bool timer_armed;
	uint64_t timer_due_us; /* the timer has not fired before */
	uint64_t now_ms, now_us; /* the clock at the top of the turn */
	uint32_t now_seconds; /* the same as the store's seconds */
	unsigned pending; /* requests not done */
	struct reads reads;
	struct sketch sketch; /* of reads on flash, where --promote=sketch */
	uint32_t flash_gets; /* answered from flash, for its sampling */
	uint64_t accounted_bytes; /* of reads and lookups, as last added to the store's account */
	struct store_lookup *free; /* the pool, free_count of them */
	unsigned free_count;
	unsigned lookups, lookups_most; /* running; how many may run */
	struct store_lookup *oldest, *newest; /* running */
	struct store_lookup *ready_first, *ready_last; /* chained by next_waiting */
	struct store_request *parked_first, *parked_last; /* whose answers wait for the journal */
	struct losses_waiter *waiter; /* registered where there is a journal; else NULL */
};

/* ---- park.c: answers that wait for the journal ------------------------------------------------ */

/* With a journal: must the answer of a finished request about a key with this tag wait? Then its done comes from a later
   store_worker_poll. No stripe is held. */
FS_MUST_CHECK bool request_park(struct store_worker *worker, struct store_request *request, uint32_t tag);
/* Does an answer wait that need not wait any longer? Otherwise the worker's eventfd tells when to ask again. */
bool parked_ready(const struct store_worker *worker);
/* Without a journal thread, writes what the worker's answers wait for. */
void parked_flush(struct store_worker *worker);
/* Calls done of the requests whose tickets are durable. */
void parked_poll(struct store_worker *worker);

/* ---- execute.c, lookup.c --------------------------------------------------------------------- */

/* Under -M no object is given up, so a change removes only a slot that was proved to be its key's own. Otherwise it
   clears every slot that may be its key's without reading; once in a while one of them is another key's. */
static inline bool store_proves_slots(const struct store *store)
{
	return !store->config.evict;
}
/* Must the key's record be read before the request acts under the stripe? A plain GET is served from the read buffer; a
   SET, and a DELETE whose answer nobody needs, clear slots without reading. */
static inline bool request_needs_value(const struct store *store, const struct store_request *request)
{
	const struct store_options *options = &request->options;

	if (request->op == STORE_GET)
		return request->has_options && (options->vivify || options->touch || options->recache);
	if (store_proves_slots(store))
		return true;
	if (request->op == STORE_SET)
		return request->has_options && options->compare_cas;
	if (request->op == STORE_DELETE)
		return !request->has_options || !(options->blind || options->refused);
	return true;
}
enum lookup_answer {
	LOOKUP_STARTED,
	LOOKUP_NOTHING, /* no segment could be pinned: nothing is on flash */
	LOOKUP_REFUSED /* flash may hold the key, but it can't be read in time, or not at all */
};
/* Starts the flash reads of a request for these matches and this extent (or NULL). The stripe is held; LOOKUP_STARTED
   alone releases it, and then the request's done comes from a later store_worker_poll. */
FS_MUST_CHECK enum lookup_answer lookup_start(struct store_worker *worker, struct store_request *request,
					      struct stripe *stripe, const struct fidx_key *key,
					      const struct fidx_match *match, unsigned matches,
					      const struct fidx_extent *extent);
/* Frees the pool of a worker that has no running lookup. */
void lookups_fini(struct store_worker *worker);

/* ---- count.c: hits, misses and commands, as memcached counts them ---------------------------- */

/* Counts a request that is done, by its result. No stripe is held. */
void count_result(struct store_context *context, const struct store_request *request, bool from_flash);

#endif
