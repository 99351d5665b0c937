/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share: workers, lookups on flash, and which requests need them. */
#ifndef FS_STORE_REQUEST_INTERNAL_H
#define FS_STORE_REQUEST_INTERNAL_H

#include "server/store/cleaner/cleaner.h"
#include "server/store/request/reads_internal.h"

/* Rounds of a read-modify-write whose slots changed, before commits have to wait for it. */
#define LOOKUP_ROUNDS_MAX 3

#define LOOKUP_MAGIC 0x6c6f6f6bu /* "look" */
#define WORKER_MAGIC 0x776f726bu /* "work" */

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
	uint32_t magic; /* LOOKUP_MAGIC from lookup_new to lookup_free */
	unsigned matches, at, reads, rounds;
	bool running; /* it is in the worker's list of running ones */
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
	uint32_t magic; /* WORKER_MAGIC as long as it is one */
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
		return request->has_options && (options->vivify || options->touch || options->recache);
	if (store_proves_slots(store))
		return true;
	if (request->op == STORE_SET)
		return request->has_options && options->compare_cas;
	if (request->op == STORE_DELETE)
		return !request->has_options || !(options->blind || options->refused);
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

/* ---- count.c: hits, misses and commands, as memcached counts them ---------------------------- */

void count_result(struct store_context *context, const struct store_request *request, bool from_flash);

#endif
