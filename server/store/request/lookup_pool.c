/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's lookups: the pool, the list of running ones, and the list of ready ones, whose bytes are there already. */
#include "server/store/request/lookup_internal.h"

#define LOOKUPS_IDLE_MOST 64u

/* ---- the pool and the list of running ones --------------------------------------------------- */

bool lookup_make_room(struct store_lookup *lookup, unsigned matches)
{
	struct fidx_match *match;

	if (matches <= LOOKUP_FEW || lookup->match != lookup->few)
		return true;
	match = mem_alloc(FIDX_MAX_MATCHES * sizeof(*match));
	if (match)
		lookup->match = match;
	return match != NULL;
}

void lookup_free(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	must(lookup->magic == LOOKUP_MAGIC);
	must(!lookup->running && !lookup->ready && !lookup->read && !lookup->frozen);
	must(lookup->matches == 0 && !lookup->has_extent && lookup->bins.state != BINS_FOUND);
	lookup->magic = 0;
	if (lookup->match != lookup->few)
		mem_free(lookup->match);
	if (worker->free_count >= LOOKUPS_IDLE_MOST) {
		mem_free(lookup);
		return;
	}
	lookup->next = worker->free;
	worker->free = lookup;
	worker->free_count++;
}

struct store_lookup *lookup_new(struct store_worker *worker, unsigned matches)
{
	struct store_lookup *lookup = worker->free;

	if (lookup) {
		worker->free = lookup->next;
		worker->free_count--;
	} else {
		lookup = mem_alloc(sizeof(*lookup));
	}
	if (!lookup)
		return NULL;
	memset(lookup, 0, offsetof(struct store_lookup, key));
	lookup->magic = LOOKUP_MAGIC;
	lookup->worker = worker;
	lookup->match = lookup->few;
	lookup->bins.state = BINS_OFF;
	if (lookup_make_room(lookup, matches))
		return lookup;
	lookup_free(lookup);
	return NULL;
}

void lookups_fini(struct store_worker *worker)
{
	must(worker->lookups == 0 && !worker->ready_first);
	while (worker->free) {
		struct store_lookup *lookup = worker->free;

		worker->free = lookup->next;
		mem_free(lookup);
	}
}

void lookup_run(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	must(!lookup->running);
	lookup->running = true;
	lookup->prev = worker->newest;
	lookup->next = NULL;
	if (worker->newest)
		worker->newest->next = lookup;
	else
		worker->oldest = lookup;
	worker->newest = lookup;
	worker->lookups++;
}

void lookup_unrun(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	must(lookup->running && worker->lookups > 0);
	lookup->running = false;
	if (lookup->prev)
		lookup->prev->next = lookup->next;
	else
		worker->oldest = lookup->next;
	if (lookup->next)
		lookup->next->prev = lookup->prev;
	else
		worker->newest = lookup->prev;
	worker->lookups--;
}

/* ---- ready ones ------------------------------------------------------------------------------ */

/* The next poll looks at the bytes, because store_execute never calls done(). */
void lookup_make_ready(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	must(lookup->running && !lookup->ready && !lookup->waits);
	lookup->ready = true;
	lookup->next_waiting = NULL;
	if (worker->ready_last)
		worker->ready_last->next_waiting = lookup;
	else
		worker->ready_first = lookup;
	worker->ready_last = lookup;
}

struct store_lookup *lookup_take_ready(struct store_worker *worker)
{
	struct store_lookup *lookup = worker->ready_first;

	must(lookup && lookup->magic == LOOKUP_MAGIC && lookup->ready);
	worker->ready_first = lookup->next_waiting;
	if (!worker->ready_first)
		worker->ready_last = NULL;
	lookup->ready = false;
	return lookup;
}

bool store_worker_has_work(const struct store_worker *worker)
{
	return worker->ready_first != NULL || parked_ready(worker);
}
