/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One sample per key and window, uniform over its accesses, and the sample's label.
 *
 *   |<------- window ------->|<------- window ------->|
 *    a   b      a is the first subject and kept; b replaces it with probability 1/2
 *        |------ horizon of b ------|  complete: goes to the ring
 *
 * A sample gets its label when its horizon has passed and not before, even where the answer is known earlier. Positives
 * are known early and negatives late, so early labels would give the trainer too many positives (or too many negatives,
 * where an update ends the counting).
 *
 * Memory is fixed. A key is sampled if its mixed hash lies below a limit. When a stripe is full the limit is halved and
 * the entries above it are dropped, as in SHARDS (Waldspurger et al., FAST 2015). That choice depends on the hash only,
 * so it favours no kind of key.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/metrics/counters.h"
#include "base/resident.h"
#include "classifier/classifier_internal.h"

struct sampler_entry {
	uint64_t key;
	uint64_t count_until_ms; /* reads count before this time */
	uint64_t complete_ms; /* end of the horizon */
	struct clf_state state;
	uint32_t window; /* number of the window in which the key was sampled */
	uint32_t accesses; /* subjects in that window; 0 = free entry */
	uint32_t reads;
	bool ended; /* an update or delete ended the counting */
	bool missed; /* the last access was a miss: a write is a refill */
};

#define ENTRIES_MIN 8
#define LIMIT_MIN (1ull << 40) /* one key in 16 million */

int sampler_init(struct sampler *sampler, const struct sampler_config *config)
{
	size_t each = config->memory_bytes / SAMPLER_STRIPES / 2;

	sampler->config = *config;
	sampler->limit_reviewed_ms = config->start_ms;
	sampler->entries = each / sizeof(struct sampler_entry);
	sampler->ring_entries = each / sizeof(struct clf_sample);
	if (sampler->entries < ENTRIES_MIN)
		return FS_EINVAL;
	atomic_store(&sampler->limit, UINT64_MAX);
	for (unsigned i = 0; i < SAMPLER_STRIPES; i++) {
		struct sampler_stripe *stripe = &sampler->stripe[i];
		lock_init(&stripe->lock, LOCK_LEAF);
		rng_init(&stripe->rng, mix64(config->seed + i + 1));
		stripe->purged_to = UINT64_MAX;
		stripe->entry = mem_zalloc(sampler->entries * sizeof(*stripe->entry));
		stripe->ring = mem_zalloc(sampler->ring_entries * sizeof(*stripe->ring));
	}
	for (unsigned i = 0; i < SAMPLER_STRIPES; i++)
		if (!sampler->stripe[i].entry || !sampler->stripe[i].ring)
			return FS_ENOMEM;
	return FS_OK;
}

void sampler_fini(struct sampler *sampler)
{
	if (sampler->entries < ENTRIES_MIN)
		return;
	for (unsigned i = 0; i < SAMPLER_STRIPES; i++) {
		mem_free(sampler->stripe[i].entry);
		mem_free(sampler->stripe[i].ring);
		lock_fini(&sampler->stripe[i].lock);
	}
}

size_t sampler_bytes(const struct sampler *sampler)
{
	return SAMPLER_STRIPES *
	       (sampler->entries * sizeof(struct sampler_entry) + sampler->ring_entries * sizeof(struct clf_sample));
}

size_t sampler_untouched(const struct sampler *sampler)
{
	size_t sum = 0;

	for (unsigned i = 0; i < SAMPLER_STRIPES; i++)
		sum += resident_untouched(sampler->stripe[i].entry, sampler->entries * sizeof(struct sampler_entry)) +
		       resident_untouched(sampler->stripe[i].ring, sampler->ring_entries * sizeof(struct clf_sample));
	return sum;
}

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t sampler_age_ms(const struct sampler *sampler, uint64_t now_ms)
{
	return now_ms > sampler->config.start_ms ? now_ms - sampler->config.start_ms : 0;
}

static uint32_t window_at(const struct sampler *sampler, uint64_t now_ms)
{
	return (uint32_t)(sampler_age_ms(sampler, now_ms) / sampler->config.window_ms);
}

/* A sample may still be replaced until its window ends. */
static bool sample_finished(const struct sampler *sampler, const struct sampler_entry *entry, uint64_t now_ms)
{
	return now_ms >= entry->complete_ms && window_at(sampler, now_ms) > entry->window;
}

/* ---- the table of a stripe: linear probing, deletion by shifting back ------------------------ */

static size_t home_entry(const struct sampler *sampler, uint64_t key)
{
	return (size_t)reduce64(key * 0x9e3779b97f4a7c15ull, sampler->entries);
}

static size_t next_entry(const struct sampler *sampler, size_t at)
{
	return at + 1 == sampler->entries ? 0 : at + 1;
}

/* The entry of the key, or the free one where it would go. A stripe is never quite full, so this ends. */
static struct sampler_entry *sampler_find(const struct sampler *sampler, struct sampler_stripe *stripe, uint64_t key)
{
	size_t at = home_entry(sampler, key);

	must(stripe->used < sampler->entries);
	while (stripe->entry[at].accesses && stripe->entry[at].key != key)
		at = next_entry(sampler, at);
	return &stripe->entry[at];
}

static size_t probe_distance(const struct sampler *sampler, size_t from, size_t to)
{
	return to >= from ? to - from : to + sampler->entries - from;
}

static void sampler_drop(const struct sampler *sampler, struct sampler_stripe *stripe, struct sampler_entry *entry)
{
	size_t hole = (size_t)(entry - stripe->entry);

	must(hole < sampler->entries && entry->accesses > 0 && stripe->used > 0);
	for (size_t at = next_entry(sampler, hole); stripe->entry[at].accesses; at = next_entry(sampler, at)) {
		size_t home = home_entry(sampler, stripe->entry[at].key);
		if (probe_distance(sampler, home, at) < probe_distance(sampler, hole, at))
			continue; /* the hole lies before its home: it stays reachable */
		stripe->entry[hole] = stripe->entry[at];
		hole = at;
	}
	stripe->entry[hole].accesses = 0;
	stripe->used--;
}

static void harvest_sample(const struct sampler *sampler, struct sampler_stripe *stripe, struct sampler_entry *entry)
{
	stripe->ring[stripe->ring_head] = (struct clf_sample){
		.state = entry->state,
		.key = entry->key,
		.complete_ms = entry->complete_ms,
		.reads = entry->reads,
	};
	stripe->ring_head = (stripe->ring_head + 1) % sampler->ring_entries;
	must(stripe->ring_used <= sampler->ring_entries);
	if (stripe->ring_used < sampler->ring_entries)
		stripe->ring_used++;
	sampler_drop(sampler, stripe, entry);
	ctr_add(CTR_samples_taken, 1);
}

/* Dropping an entry moves others back, also over the end of the table: this may meet some entries twice, and meets one
   that has moved behind the loop only next time. */
static void harvest_finished_samples(const struct sampler *sampler, struct sampler_stripe *stripe, uint64_t now_ms)
{
	for (size_t i = 0; i < sampler->entries;) {
		struct sampler_entry *entry = &stripe->entry[i];
		if (entry->accesses && sample_finished(sampler, entry, now_ms))
			harvest_sample(sampler, stripe, entry);
		else
			i++;
	}
}

static void sampler_purge(const struct sampler *sampler, struct sampler_stripe *stripe, uint64_t limit)
{
	for (size_t i = 0; i < sampler->entries;) {
		struct sampler_entry *entry = &stripe->entry[i];
		if (entry->accesses && entry->key >= limit) {
			sampler_drop(sampler, stripe, entry);
			ctr_add(CTR_samples_dropped, 1);
		} else {
			i++;
		}
	}
	stripe->purged_to = limit;
}

static size_t entries_most(const struct sampler *sampler)
{
	return sampler->entries - sampler->entries / 4; /* so that probes stay short */
}

/* Makes room in a full stripe. False if the key is not sampled any more. */
static FS_MUST_CHECK bool sampler_make_room(struct sampler *sampler, struct sampler_stripe *stripe, uint64_t key,
					    uint64_t now_ms)
{
	harvest_finished_samples(sampler, stripe, now_ms);
	while (stripe->used >= entries_most(sampler)) {
		uint64_t limit = atomic_load_explicit(&sampler->limit, memory_order_relaxed);
		if (limit >= stripe->purged_to && atomic_compare_exchange_strong(&sampler->limit, &limit, limit / 2))
			limit /= 2;
		sampler_purge(sampler, stripe, limit);
	}
	return sampler_wants(sampler, key);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void count_read(struct sampler_entry *entry, uint64_t now_ms)
{
	if (!entry->ended && now_ms < entry->count_until_ms && entry->reads < UINT32_MAX)
		entry->reads++;
}

/* Mode full counts the reads that flash could have served: all of them until an update or delete. */
static void label_full(struct sampler_entry *entry, enum sampler_event event, uint64_t now_ms)
{
	switch (event) {
	case SAMPLER_READ:
		count_read(entry, now_ms);
		break;
	case SAMPLER_MISSED:
		count_read(entry, now_ms);
		entry->missed = true;
		break;
	case SAMPLER_WRITTEN:
		if (!entry->missed)
			entry->ended = true;
		entry->missed = false;
		break;
	case SAMPLER_DELETED:
		entry->ended = true;
		break;
	case SAMPLER_EVICTED: /* the object would have stayed on flash */
	case SAMPLER_OFFERED:
		break;
	}
}

/* The paper counts "the number of reads until the object was evicted or updated" (3.1). A miss shows that the object is
   gone; it has expired if no other event told of its end. */
static void label_paper(struct sampler_entry *entry, enum sampler_event event, uint64_t now_ms)
{
	if (event == SAMPLER_READ)
		count_read(entry, now_ms);
	else if (event != SAMPLER_OFFERED)
		entry->ended = true;
}

static void keep_sample(struct sampler_entry *entry, const struct clf_state *state, uint64_t now_ms,
			uint64_t horizon_ms)
{
	uint64_t expires_ms = now_ms + 1000ull * state->ttl_seconds;

	entry->state = *state;
	entry->reads = 0;
	entry->ended = entry->missed = false;
	entry->complete_ms = now_ms + horizon_ms;
	entry->count_until_ms = entry->complete_ms;
	must(horizon_ms > 0 && entry->complete_ms > now_ms);
	if (state->ttl_seconds && expires_ms < entry->count_until_ms)
		entry->count_until_ms = expires_ms;
}

/* Keeps the n-th subject of a window with probability 1/n, so that each of the window's subjects ends as the sample
   with the same probability (paper, 4.2). */
static void consider_subject(struct sampler *sampler, struct sampler_stripe *stripe, uint64_t key,
			     const struct clf_state *subject, uint64_t now_ms, uint64_t horizon_ms)
{
	uint32_t window = window_at(sampler, now_ms);
	struct sampler_entry *entry = sampler_find(sampler, stripe, key);

	if (!entry->accesses) {
		if (stripe->used >= entries_most(sampler)) {
			if (!sampler_make_room(sampler, stripe, key, now_ms))
				return;
			entry = sampler_find(sampler, stripe, key);
		}
		*entry = (struct sampler_entry){ .key = key, .window = window };
		if (++stripe->used > stripe->used_most)
			stripe->used_most = stripe->used;
		must(stripe->used <= entries_most(sampler));
	} else if (entry->window != window || entry->accesses == UINT32_MAX) {
		return;
	}
	entry->accesses++;
	if (rng_below(&stripe->rng, entry->accesses) == 0)
		keep_sample(entry, subject, now_ms, horizon_ms);
}

static struct sampler_stripe *sampler_stripe_of(struct sampler *sampler, uint64_t key)
{
	return &sampler->stripe[key % SAMPLER_STRIPES];
}

void sampler_note(struct sampler *sampler, uint64_t key, enum sampler_event event, const struct clf_state *subject,
		  uint64_t now_ms, uint64_t horizon_ms)
{
	struct sampler_stripe *stripe = sampler_stripe_of(sampler, key);

	lock_acquire(&stripe->lock);
	struct sampler_entry *entry = sampler_find(sampler, stripe, key);
	if (entry->accesses) {
		if (sample_finished(sampler, entry, now_ms))
			harvest_sample(sampler, stripe, entry);
		else if (sampler->config.mode == CLF_LABEL_FULL)
			label_full(entry, event, now_ms);
		else
			label_paper(entry, event, now_ms);
	}
	if (subject)
		consider_subject(sampler, stripe, key, subject, now_ms, horizon_ms);
	lock_release(&stripe->lock);
}

/* ---- for the trainer ------------------------------------------------------------------------- */

/* If no stripe was even a quarter full for two windows, twice as many keys fit easily. */
static void sample_more(struct sampler *sampler, size_t used_most, uint64_t now_ms)
{
	uint64_t limit = atomic_load(&sampler->limit);
	uint64_t more = limit < LIMIT_MIN ? LIMIT_MIN : limit * 2;

	sampler->limit_reviewed_ms = now_ms;
	if (limit > UINT64_MAX / 2)
		more = UINT64_MAX;
	if (used_most < entries_most(sampler) / 4)
		atomic_compare_exchange_strong(&sampler->limit, &limit, more);
}

void sampler_sweep(struct sampler *sampler, uint64_t now_ms)
{
	bool review = now_ms >= sampler->limit_reviewed_ms + 2 * sampler->config.window_ms;
	size_t used_most = 0;

	for (unsigned i = 0; i < SAMPLER_STRIPES; i++) {
		struct sampler_stripe *stripe = &sampler->stripe[i];
		lock_acquire(&stripe->lock);
		harvest_finished_samples(sampler, stripe, now_ms);
		if (stripe->used_most > used_most)
			used_most = stripe->used_most;
		if (review)
			stripe->used_most = stripe->used;
		lock_release(&stripe->lock);
	}
	if (review)
		sample_more(sampler, used_most, now_ms);
}

long sampler_collect(struct sampler *sampler, uint64_t since_ms, struct clf_sample **out)
{
	struct clf_sample *all = mem_alloc(SAMPLER_STRIPES * sampler->ring_entries * sizeof(*all));
	long count = 0;

	*out = NULL;
	if (!all)
		return FS_ENOMEM;
	for (unsigned i = 0; i < SAMPLER_STRIPES; i++) {
		struct sampler_stripe *stripe = &sampler->stripe[i];
		lock_acquire(&stripe->lock);
		for (size_t j = 0; j < stripe->ring_used; j++)
			if (stripe->ring[j].complete_ms >= since_ms)
				all[count++] = stripe->ring[j];
		lock_release(&stripe->lock);
	}
	*out = all;
	return count;
}

size_t sampler_tracked(struct sampler *sampler)
{
	size_t tracked = 0;

	for (unsigned i = 0; i < SAMPLER_STRIPES; i++) {
		struct sampler_stripe *stripe = &sampler->stripe[i];
		lock_acquire(&stripe->lock);
		tracked += stripe->used;
		lock_release(&stripe->lock);
	}
	return tracked;
}
