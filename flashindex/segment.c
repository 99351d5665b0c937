/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens, closes and sweeps segments, and accounts for their slots. */
#include "flashindex/flashindex.h"

#include <sched.h>

#include "base/assert.h"
#include "flashindex/index_internal.h"

#define SWEEP_BUCKETS 256 /* buckets that a sweep visits under one hold of a stripe */

/* ---- accounting ------------------------------------------------------------------------------ */

static void sum_add(_Atomic int64_t *sum, int64_t by)
{
	if (by)
		atomic_fetch_add_explicit(sum, by, memory_order_relaxed);
}

void segment_account_sums(struct fidx *index, int64_t slots, int64_t ghosts, int64_t live_bytes, int64_t hot_bytes)
{
	struct shard *shard = shard_self(index);

	sum_add(&shard->used, slots);
	sum_add(&shard->ghosts, ghosts);
	sum_add(&shard->live_bytes, live_bytes);
	sum_add(&shard->hot_bytes, hot_bytes);
}

static void account_sums(struct fidx *index, int64_t slots, int64_t ghosts, int64_t mean_bytes)
{
	segment_account_sums(index, slots, ghosts, slots * mean_bytes, (slots - ghosts) * mean_bytes);
}

void segment_account(struct fidx *index, uint32_t number, int slots, int ghosts)
{
	struct segment *segment = segment_at(index, number);
	/* Read before the counts change: the segment can't be reopened before that. */
	int64_t mean_bytes = atomic_load_explicit(&segment->mean_bytes, memory_order_relaxed);
	int64_t change = (int64_t)ghosts * (INT64_C(1) << COUNTS_GHOST_SHIFT) + slots;
	uint64_t old = atomic_fetch_add_explicit(&segment->counts, (uint64_t)change, memory_order_acq_rel);

	must((int64_t)COUNTS_SLOTS(old) + slots >= 0 && (int64_t)COUNTS_GHOSTS(old) + ghosts >= 0);
	if (!(old & COUNTS_CLOSED))
		account_sums(index, slots, ghosts, mean_bytes);
}

void slot_account(struct fidx *index, const struct table *table, const _Atomic uint32_t *at, uint32_t segment,
		  int slots, int ghosts)
{
	if (__builtin_expect(slot_is_counted(table, at), 1))
		segment_account(index, segment, slots, ghosts);
}

void segment_account_counts(struct fidx *index, uint32_t segment, uint32_t slots, uint32_t ghosts)
{
	uint64_t change = (uint64_t)ghosts << COUNTS_GHOST_SHIFT | slots;

	atomic_fetch_add_explicit(&segment_at(index, segment)->counts, change, memory_order_acq_rel);
}

/* ---- open and close -------------------------------------------------------------------------- */

static uint32_t pass_of(const struct filter *filter)
{
	return (uint32_t)((filter ? filter_pass_rate(filter) : 1) * FILTER_PASS_ALL + 0.5);
}

void segment_begin(struct fidx *index, uint32_t number, unsigned table, uint64_t sequence, uint32_t mean_bytes,
		   struct filter *filter)
{
	struct segment *segment = segment_at(index, number);

	must(number < index->segments && sequence != SEGMENT_CLOSED);
	must(table < FIDX_TABLES && tables_live(index) >> table & 1);
	must(segment_sequence(index, number) == SEGMENT_CLOSED);
	must(fidx_segment_slots(index, number) == 0);
	if (filter)
		atomic_fetch_add_explicit(&index->filter_bytes, filter_bytes(filter), memory_order_relaxed);
	atomic_store_explicit(&segment->table, (uint8_t)table, memory_order_relaxed);
	atomic_store_explicit(&segment->mean_bytes, mean_bytes, memory_order_relaxed);
	atomic_store_explicit(&segment->filter_pass, pass_of(filter), memory_order_relaxed);
	atomic_store_explicit(&segment->filter, filter, memory_order_release);
	atomic_store_explicit(&segment->asked, 0, memory_order_relaxed);
	atomic_store_explicit(&segment->counts, 0, memory_order_release);
	extents_segment_open(index, segment);
	atomic_store_explicit(&segment->sequence, sequence, memory_order_release);
}

void fidx_segment_open(struct fidx *index, uint32_t number, unsigned table, uint64_t sequence, uint32_t mean_bytes,
		       void *filter, size_t filter_length)
{
	struct region_segment *kept = &index->kept->segment[number];

	must(number < index->segments && sequence != 0 && !fidx_is_counting(index));
	atomic_store(&kept->table, table);
	atomic_store(&kept->mean_bytes, mean_bytes);
	atomic_store(&kept->sequence, sequence);
	segment_begin(index, number, table, sequence, mean_bytes, filter_take(index, sequence, filter, filter_length));
}

/*
 * Waits until every thread that could have the filter has left: later ones find another one, or none. A thread is
 * inside for some tens of nanoseconds, so that each shard is soon empty once.
 */
void segment_wait_for_readers(struct fidx *index)
{
	for (unsigned i = 0; i < SHARDS; i++)
		while (atomic_load(&index->shard[i].readers) != 0)
			sched_yield();
}

void segment_free_filter(struct fidx *index, struct filter *filter)
{
	atomic_fetch_sub_explicit(&index->filter_bytes, filter_bytes(filter), memory_order_relaxed);
	filter_free(filter);
}

void fidx_segment_close(struct fidx *index, uint32_t number)
{
	struct segment *segment = segment_at(index, number);
	struct filter *filter;
	uint64_t counts;

	must(number < index->segments && segment_sequence(index, number) != SEGMENT_CLOSED);
	must(!fidx_is_counting(index)); /* the recount goes by the segments that were open at its begin */
	/* From here on clients leave its slots alone, so that a later process must not believe them. */
	atomic_store(&index->kept->segment[number].sequence, 0);
	atomic_store_explicit(&segment->sequence, SEGMENT_CLOSED, memory_order_release);
	counts = atomic_fetch_or_explicit(&segment->counts, COUNTS_CLOSED, memory_order_acq_rel);
	must(!(counts & COUNTS_CLOSED) && COUNTS_GHOSTS(counts) <= COUNTS_SLOTS(counts));
	account_sums(index, -(int64_t)COUNTS_SLOTS(counts), -(int64_t)COUNTS_GHOSTS(counts),
		     atomic_load_explicit(&segment->mean_bytes, memory_order_relaxed));
	extents_segment_close(index, segment);
	filter = atomic_exchange(&segment->filter, NULL);
	if (filter) {
		segment_wait_for_readers(index);
		segment_free_filter(index, filter);
	}
}

bool fidx_lacks_filter(const struct fidx *index, uint32_t number)
{
	return fidx_segment_is_open(index, number) && !atomic_load(&segment_at(index, number)->filter);
}

void segment_note_filter(struct fidx *index, uint32_t number, const struct filter *filter)
{
	atomic_store_explicit(&segment_at(index, number)->filter_pass, pass_of(filter), memory_order_relaxed);
}

/* From the segments' counts, as a sum over slots would have to be corrected whenever a filter comes or goes, while slots
   change. */
double fidx_filter_false_positive(const struct fidx *index)
{
	double passed = 0, slots = 0;

	if (!atomic_load(&index->filters))
		return 1;
	for (uint32_t number = 0; number < index->segments; number++) {
		const struct segment *segment = segment_at(index, number);
		uint64_t counts = atomic_load_explicit(&segment->counts, memory_order_relaxed);

		if (counts & COUNTS_CLOSED)
			continue;
		slots += COUNTS_SLOTS(counts);
		passed += (double)COUNTS_SLOTS(counts) *
			  atomic_load_explicit(&segment->filter_pass, memory_order_relaxed) / FILTER_PASS_ALL;
	}
	return slots > 0 ? passed / slots : 1;
}

bool fidx_give_filter(struct fidx *index, uint32_t number, void *bytes, size_t length)
{
	struct segment *segment = segment_at(index, number);
	struct filter *filter = filter_take(index, segment_sequence(index, number), bytes, length);

	must(number < index->segments && fidx_lacks_filter(index, number));
	if (!filter)
		return false;
	atomic_fetch_add_explicit(&index->filter_bytes, filter_bytes(filter), memory_order_relaxed);
	segment_note_filter(index, number, filter);
	atomic_store(&segment->filter, filter);
	atomic_store(&index->filters, true);
	return true;
}

uint64_t fidx_segment_slots(const struct fidx *index, uint32_t number)
{
	const struct segment *segment = segment_at(index, number);

	return COUNTS_SLOTS(atomic_load_explicit(&segment->counts, memory_order_acquire)) +
	       atomic_load_explicit(&segment->extents, memory_order_acquire);
}

uint64_t fidx_segment_live_bytes(struct fidx *index, uint32_t number)
{
	struct segment *segment = segment_at(index, number);
	uint64_t slots = COUNTS_SLOTS(atomic_load_explicit(&segment->counts, memory_order_acquire)), extents;

	lock_acquire(&index->extents.sums_lock);
	extents = segment->extent_bytes;
	lock_release(&index->extents.sums_lock);
	return slots * atomic_load_explicit(&segment->mean_bytes, memory_order_relaxed) + extents;
}

/* ---- sweep ----------------------------------------------------------------------------------- */

/* Empties the slots of a bucket that name the segment, and returns their number. Stripe held. */
static uint64_t sweep_bucket(struct fidx *index, const struct table *table, struct bucket *bucket, uint32_t segment)
{
	const struct slot_layout *layout = &index->layout;
	unsigned occupied;
	unsigned match = bucket_search(bucket, layout->segment_mask, slot_name(layout, segment, 0, 0),
				       layout->segment_mask, &occupied);
	uint64_t swept = 0;

	for (; match; match &= match - 1) {
		_Atomic uint32_t *at = &bucket->slot[__builtin_ctz(match)];
		uint32_t slot = slot_load(at);

		while (!slot_swap(at, &slot, SLOT_EMPTY))
			; /* a CLOCK update came between */
		slot_account(index, table, at, segment, -1, -state_is_ghost(slot_state(slot)));
		swept++;
	}
	return swept;
}

/*
 * Holds every stripe for its part. That also waits for a thread that has taken out a slot of the
 * segment but not yet accounted it: after a sweep the count of a closed segment is exactly zero.
 */
uint64_t fidx_sweep(struct fidx *index, uint32_t segment)
{
	const struct table *table;
	uint64_t swept, buckets;
	unsigned shift;

	must(segment < index->segments && !fidx_is_counting(index));
	table = &index->table[segment_table(index, segment)];
	swept = extents_sweep(index, segment);
	buckets = table_buckets(table);
	shift = atomic_load_explicit(&table->stripe_shift, memory_order_relaxed);
	for (uint64_t from = 0; from < buckets;) {
		uint64_t stripe_end = ((from >> shift) + 1) << shift;
		uint64_t to = from + SWEEP_BUCKETS;
		struct lock *lock = &index->stripe[from >> shift].lock;

		to = to < stripe_end ? to : stripe_end;
		to = to < buckets ? to : buckets;
		lock_acquire(lock);
		for (uint64_t bucket = from; bucket < to; bucket++)
			swept += sweep_bucket(index, table, &table->bucket[bucket], segment);
		lock_release(lock);
		from = to;
	}
	return swept;
}
