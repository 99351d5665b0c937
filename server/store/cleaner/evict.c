/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eviction: CLOCK over all objects (paper, 4.3). The keeper's hand visits DRAM and flash in proportion to their
 * objects. An object in DRAM at zero goes; an object on flash at zero becomes a ghost while hot data exceeds its
 * threshold. Workers that are short of memory have hands of their own.
 */
#include <math.h>

#include "base/events.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"
#include "server/store/dram/share.h"

#define LINES_PER_LOCK 4u
#define INLINE_SPARING_VISITS 64 /* a worker has no time for a long search */
#define INLINE_VISITS 512
#define DEAD_VISITS 128 /* by a set under -M, which is refused if it finds too little that is expired */
#define INLINE_EXTRA_BYTES (16u << 10)
#define UNWORTHY_OCTAVES 2 /* below the threshold: a quarter of what the least admitted object is worth */
#define YOUNG_MS 1000u /* no object is young for longer */
#define ROUND_VISITS 4096 /* to objects in DRAM, by the keeper */
#define HAND_VISITS 262144 /* to slots in one step: 3 ms */
#define HAND_SHARE 64 /* slots for each visited object in DRAM, at the most: both cost the same then */
#define ROUNDS_IN_VAIN 4 /* CLOCK's highest value, and one more */
#define HAND_VISITS_EXCESS 8192 /* to slots, between looks whether there are enough ghosts */

uint64_t store_hot_bytes(const struct store *store)
{
	int64_t items = atomic_load_explicit(&store->item_bytes, memory_order_relaxed) - (int64_t)copies_bytes(store);
	struct fidx_status status;

	if (!store->index)
		return items > 0 ? (uint64_t)items : 0;
	fidx_get_status(store->index, &status);
	return (uint64_t)((items > 0 ? items : 0) + (status.hot_bytes > 0 ? status.hot_bytes : 0));
}

/* Hot data threshold (paper, 4.3): HDT = DRAM + hot * SSD. DRAM is the item budget less the half of a segment that is
   kept free for writes. */
uint64_t store_hot_threshold(const struct store *store)
{
	uint64_t dram = store_item_budget(store);

	dram = dram > store->segment_bytes / 2 ? dram - store->segment_bytes / 2 : 0;
	return dram + (uint64_t)(atomic_load_explicit(&store->tuning.hot_fraction, memory_order_relaxed) *
				 (double)store->flash_capacity);
}

struct eviction {
	struct store_context *context;
	struct limits *limits; /* NULL: there are none */
	const struct evict_whose *whose; /* NULL: anybody's */
	uint64_t freed, want, visited, planned; /* visited: planned ones included */
	uint64_t now_ms;
	uint32_t now_seconds, young_since_ms;
	enum evict_how how;
	bool offers; /* a rule is asked about objects now, and more candidates are wanted */
	bool inline_by_worker, thorough; /* thorough: every stripe, however long it takes */
	struct item *garbage[LINES_PER_LOCK * LINE_LINKS]; /* freed when the stripe is released */
	unsigned garbage_count;
};

static void evict_take_out(struct eviction *round, struct stripe *stripe, uint64_t hash, struct item *item)
{
	must(!(item->state & ITEM_PLANNED));
	stripe_unlink(round->context->store, stripe, hash, item);
	must(round->garbage_count < LINES_PER_LOCK * LINE_LINKS);
	round->garbage[round->garbage_count++] = item;
	round->freed += item_cost(item);
}

static void evict_count(const struct eviction *round, unsigned class, enum ctr counter,
			enum class_counter class_counter)
{
	ctr_add(counter, 1);
	class_add(round->context->classes, class, class_counter, 1);
}

static void evict_count_dead(const struct eviction *round, const struct item *item)
{
	unsigned class = size_class(item_allocated_bytes(item));

	evict_count(round, class, CTR_reclaimed, CLASS_RECLAIMED);
	if (!(item->state & ITEM_FETCHED))
		evict_count(round, class, CTR_expired_unfetched, CLASS_EXPIRED_UNFETCHED);
}

/* Why the object is lost although the flash has room. */
static enum ctr evict_room_counter(const struct eviction *round, const struct item *item)
{
	bool asks = clf_asks_at_eviction(round->context->store->classifier);

	if (seg_record_length(item->key_length, item->value_length) >
	    round->context->store->segment_bytes / CANDIDATE_SHARE)
		return CTR_room_evictions_large;
	if (!cleaner_has_tokens(round->context->store))
		return CTR_room_evictions_declined;
	if (item->state & ITEM_CANDIDATE || (asks && (round->how != EVICT_SPARE_CANDIDATES || !round->offers)))
		return CTR_room_evictions_late;
	return CTR_room_evictions_declined;
}

static void evict_count_evicted(const struct eviction *round, const struct item *item)
{
	unsigned class = size_class(item_allocated_bytes(item));

	if (!round->whose && cleaner_has_room(round->context->store))
		ctr_add(evict_room_counter(round, item), 1);

	evict_count(round, class, CTR_evictions, CLASS_EVICTED);
	if (!(item->state & ITEM_FETCHED))
		evict_count(round, class, CTR_evicted_unfetched, CLASS_EVICTED_UNFETCHED);
	if (item_clock(item) > 0)
		evict_count(round, class, CTR_evicted_active, CLASS_EVICTED_ACTIVE);
	if (round->inline_by_worker)
		evict_count(round, class, CTR_direct_reclaims, CLASS_DIRECT_RECLAIMS);
	if (item->expiry != 0)
		class_add(round->context->classes, class, CLASS_EVICTED_NONZERO, 1);
	atomic_store_explicit(&round->context->store->classes->marks[class].evicted_time,
			      item_idle_seconds(item->accessed_ms, round->now_ms), memory_order_relaxed);
}

static void __attribute__((cold, noinline)) evict_emit_event(const struct eviction *round, struct item *item)
{
	char key[3 * STORE_KEY_MAX + 1];

	events_emit(EVENT_EVICTIONS, "type=eviction key=%s fetch=%s ttl=%lld la=%u clsid=%u size=%u",
		    events_key(item_key(item), item->key_length, key), item->state & ITEM_FETCHED ? "yes" : "no",
		    item->expiry ? (long long)store_ttl(item->expiry, round->now_seconds) : -1ll,
		    item_idle_seconds(item->accessed_ms, round->now_ms), size_class(item_allocated_bytes(item)),
		    item->value_length);
}

/*
 * Is the object among the last that were written, unread, and so young that its client may not have come to read it? An
 * object of the mark's own millisecond counts too, unless that is the present one: else a rush of sets of any size would be
 * spared.
 */
static bool evict_spares_young(const struct eviction *round, const struct item *item)
{
	uint32_t written_ms = item->accessed_ms, now_ms = (uint32_t)round->now_ms;
	int32_t after_mark_ms = (int32_t)(written_ms - round->young_since_ms);

	/* It may have been written since the round began. */
	return !(item->state & ITEM_FETCHED) && (after_mark_ms > 0 || (after_mark_ms == 0 && written_ms != now_ms)) &&
	       (int32_t)(now_ms - written_ms) < (int32_t)YOUNG_MS;
}

/* Is the object to be kept for the next segment? A rule that asks now may make it a candidate. */
static bool evict_is_candidate(const struct eviction *round, struct stripe *stripe, uint64_t hash, struct item *item)
{
	struct store *store = round->context->store;

	if (round->offers && !(item->state & ITEM_CANDIDATE))
		return candidate_offer(store, stripe, hash, item, round->now_ms);
	return item->state & ITEM_CANDIDATE;
}

/* Is the object's worth per byte so little that it takes the memory of several better ones, whatever its CLOCK value? */
static bool evict_is_unworthy(const struct eviction *round, uint64_t hash, const struct item *item)
{
	const struct store *store = round->context->store;

	if (!store->classifier || !clf_asks_at_eviction(store->classifier) || item->state & ITEM_CANDIDATE)
		return false;
	const struct clf_features features = item_features(item);
	const struct clf_object object = item_as_clf_object(store, item, &features, hash, round->now_ms);
	return clf_worth(store->classifier, &object, round->now_ms) <
	       clf_threshold(store->classifier) - UNWORTHY_OCTAVES;
}

/* What limits of its application say about an object. */
enum evict_verdict {
	EVICT_AS_OTHERS,
	EVICT_PASS, /* it is none of those that the round is about */
	EVICT_SPARE, /* while it lives, as its application needs it for its floor */
	EVICT_BREAK_FLOOR, /* the same, but there is no other way */
	EVICT_FIRST /* whatever its CLOCK value, as its application is above its ceiling */
};

static enum evict_verdict __attribute__((noinline))
evict_by_limits(const struct eviction *round, struct item *item, struct limited **app)
{
	bool exceeds;

	*app = limits_of(round->limits, item);
	if (!*app)
		return round->whose ? EVICT_PASS : EVICT_AS_OTHERS;
	if (!(item->state & ITEM_LIMITED))
		limits_link(round->context->store, item);
	exceeds = limited_exceeds(*app, 0);
	if (round->whose &&
	    (round->whose->app ? *app != round->whose->app : !limited_exceeds(*app, limited_margin(*app))))
		return EVICT_PASS;
	if (exceeds)
		return EVICT_FIRST;
	if (round->whose || !limited_needs(*app, item_cost(item)))
		return EVICT_AS_OTHERS;
	return round->how == EVICT_ALL ? EVICT_BREAK_FLOOR : EVICT_SPARE;
}

static void evict_count_limited(const struct eviction *round, struct limited *app, enum evict_verdict verdict)
{
	if (round->whose || verdict == EVICT_FIRST)
		atomic_fetch_add_explicit(&app->ceiling_evictions, 1, memory_order_relaxed);
	else if (verdict == EVICT_BREAK_FLOOR)
		atomic_fetch_add_explicit(&app->floor_evictions, 1, memory_order_relaxed);
}

static void evict_visit(struct eviction *round, struct stripe *stripe, struct item *item)
{
	struct store *store = round->context->store;
	enum evict_verdict verdict = EVICT_AS_OTHERS;
	struct limited *app = NULL;

	round->visited++;
	if (item->state & ITEM_PLANNED) {
		round->planned++;
		return;
	}
	if (__builtin_expect(round->limits != NULL, 0))
		verdict = evict_by_limits(round, item, &app);
	if (verdict == EVICT_PASS)
		return;
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	if (!store_alive(store, item->expiry, item->cas, round->now_seconds)) {
		evict_count_dead(round, item);
		if (store->classifier) {
			const struct clf_features features = item_features(item);

			clf_note_moved(store->classifier, hash, &features, round->now_ms);
		}
		evict_take_out(round, stripe, hash, item);
	} else if (round->how == EVICT_DEAD || verdict == EVICT_SPARE ||
		   (round->how != EVICT_ALL && evict_spares_young(round, item))) {
		return;
	} else if (item_clock(item) > 0 && round->how < EVICT_ANY && verdict != EVICT_FIRST &&
		   !evict_is_unworthy(round, hash, item)) {
		item_set_clock(item, item_clock(item) - 1);
	} else if (round->how == EVICT_OFFER) {
		(void)evict_is_candidate(round, stripe, hash, item); /* it is marked if it is one */
	} else if (round->how != EVICT_SPARE_CANDIDATES || !evict_is_candidate(round, stripe, hash, item) ||
		   (round->whose && limited_mostly_candidates(app))) {
		bool clean = item->state & ITEM_CLEAN;

		evict_take_out(round, stripe, hash, item);
		if (app)
			evict_count_limited(round, app, verdict);
		if (clean) {
			ctr_add(CTR_flash_copies_dropped, 1);
			share_note_dropped(store, hash, item_cost(item));
		} else { /* a clean copy's object is still on flash */
			evict_count_evicted(round, item);
			if (events_on(EVENT_EVICTIONS))
				evict_emit_event(round, item);
			share_note_left(store, hash, item_cost(item));
			if (store->classifier) {
				const struct clf_features features = item_features(item);

				clf_note_evicted(store->classifier, hash, &features, round->now_ms);
			}
		}
	}
}

static void evict_free_garbage(struct eviction *round)
{
	for (unsigned i = 0; i < round->garbage_count; i++)
		item_release(round->context, round->garbage[i]);
	round->garbage_count = 0;
}

/* With more stripes than tags only as many stripes have objects as there are tags. */
uint32_t evict_stripes_in_use(const struct store *store)
{
	return store->index && store->stripe_count > 1u << store->tag_bits ? 1u << store->tag_bits
									   : store->stripe_count;
}

static void evict_visit_line(struct eviction *round, struct stripe *stripe, uint32_t line)
{
	stripe_prefetch(stripe, line);
	for (unsigned link = 0; link < LINE_LINKS; link++) {
		struct item *item = stripe_item(stripe, line, link);

		if (item)
			evict_visit(round, stripe, item);
	}
}

/* Visits some lines of the stripe under the hand. A plan holds all objects of many stripes in a row; when the hand
   meets only such objects it goes on somewhere else. */
static void evict_advance_hand(struct eviction *round)
{
	struct store_context *context = round->context;
	struct store *store = context->store;
	struct stripe *stripe = &store->stripes[context->hand_stripe];
	uint64_t visited = round->visited, planned = round->planned;
	uint32_t line = context->hand_line, lines;

	must(context->hand_stripe < store->stripe_count);
	lock_acquire(&stripe->lock);
	for (unsigned n = 0; n < LINES_PER_LOCK && line < stripe_lines(stripe) && round->freed < round->want; n++)
		evict_visit_line(round, stripe, line++);
	if (line >= stripe_lines(stripe)) {
		line = 0;
		if (context->background)
			stripe_shrink(store, stripe);
		context->hand_stripe = (context->hand_stripe + 1) % store->stripe_count;
	}
	lines = stripe_lines(stripe);
	lock_release(&stripe->lock);
	if (!round->thorough && round->planned > planned && round->planned - planned == round->visited - visited) {
		context->hand_stripe = (uint32_t)rng_below(&context->rng, evict_stripes_in_use(store));
		line = (uint32_t)rng_below(&context->rng, lines); /* of the old stripe: all have about as many */
	}
	context->hand_line = line;
	evict_free_garbage(round);
}

bool evict_wants_candidates(const struct store *store)
{
	return cleaner_takes_writes(store) &&
	       candidate_total(store) + atomic_load_explicit(&store->planned_bytes, memory_order_relaxed) <
		       cleaner_spares(store);
}

static void evict_turn_hand(struct eviction *round, uint64_t visits)
{
	struct store_context *context = round->context;
	uint64_t now_us = clk_now_us(context->store->clock);
	uint32_t last = context->hand_stripe;
	uint64_t stripes_seen = 0;

	round->limits = store_limits(context->store);
	round->now_ms = now_us / 1000;
	round->now_seconds = store_now_seconds(context->store, now_us);
	round->offers = context->store->classifier && clf_asks_at_eviction(context->store->classifier) &&
			evict_wants_candidates(context->store);
	round->young_since_ms = atomic_load_explicit(&context->store->recent.since_ms, memory_order_relaxed);
	while (round->freed < round->want && round->visited < visits && stripes_seen <= context->store->stripe_count) {
		evict_advance_hand(round);
		if (context->hand_stripe != last) {
			last = context->hand_stripe;
			stripes_seen++;
		}
	}
}

uint64_t evict_dram(struct store_context *context, uint64_t bytes, uint64_t visits, enum evict_how how,
		    bool inline_by_worker, uint64_t *visited)
{
	struct eviction round = { .context = context, .want = bytes, .how = how, .inline_by_worker = inline_by_worker };

	evict_turn_hand(&round, visits);
	*visited = round.visited;
	return round.freed;
}

uint64_t evict_limited(struct store_context *context, uint64_t bytes, uint64_t visits, enum evict_how how,
		       const struct evict_whose *whose, bool inline_by_worker)
{
	struct eviction round = {
		.context = context, .want = bytes, .how = how, .whose = whose, .inline_by_worker = inline_by_worker
	};

	evict_turn_hand(&round, visits);
	return round.freed;
}

/* The last attempt before a set is refused: visits all stripes. */
static uint64_t evict_thoroughly(struct store_context *context, uint64_t bytes, enum evict_how how)
{
	struct eviction round = {
		.context = context, .want = bytes, .how = how, .inline_by_worker = true, .thorough = true
	};

	evict_turn_hand(&round, UINT64_MAX);
	return round.freed;
}

bool mostly_candidates(const struct store *store)
{
	int64_t items = atomic_load_explicit(&store->item_bytes, memory_order_relaxed);
	uint64_t planned = atomic_load_explicit(&store->planned_bytes, memory_order_relaxed);

	return store->index && items > 0 && planned + candidate_total(store) > (uint64_t)items / 4 * 3;
}

/* Is no more missing than the planned items, which can't be evicted, the holes, and a slack? */
static bool evict_within_reason(const struct store *store, int64_t missing)
{
	uint64_t planned = atomic_load_explicit(&store->planned_bytes, memory_order_relaxed);
	uint64_t excess = atomic_load_explicit(&store->excess_bytes, memory_order_relaxed);

	return missing <= (int64_t)(planned + excess + store_memory_limit(store) / 16);
}

static int64_t evict_bytes_missing(const struct store_context *context, uint64_t bytes)
{
	return (int64_t)bytes - (store_free_bytes(context->store) - context->item_bytes);
}

/*
 * The work of one set is bounded: a short look for objects that are no candidates, a longer one for objects at zero,
 * then any object under the hand that was not written just now. A set evicts for itself and a little more, not for all
 * that is missing. Values on their way to clients may hold that, and clients that don't read could otherwise have
 * everything evicted. Only when too much is missing all the same does the set go through the whole table; if that
 * finds too little it is refused, as memcached does without memory.
 */
static __attribute__((noinline)) bool evict_missing(struct store_context *context, uint64_t bytes, int64_t missing)
{
	struct store *store = context->store;
	uint64_t want, visits, visited, freed;

	if (!store->config.evict) {
		evict_dram(context, (uint64_t)missing, DEAD_VISITS, EVICT_DEAD, true, &visited);
		return evict_bytes_missing(context, bytes) <= 0;
	}
	/* An object that would not fit into an empty cache evicts nothing. */
	if (bytes > store_item_budget(store) + atomic_load(&store->excess_bytes))
		return false;
	if (store->index)
		cleaner_wake(store);
	want = (uint64_t)missing < 2 * bytes + INLINE_EXTRA_BYTES ? (uint64_t)missing : 2 * bytes + INLINE_EXTRA_BYTES;
	visits = INLINE_VISITS + want / sizeof(struct item);
	freed = 0;
	if (!mostly_candidates(store))
		freed = evict_dram(context, want, INLINE_SPARING_VISITS, EVICT_SPARE_CANDIDATES, true, &visited);
	if (freed < want)
		freed += evict_dram(context, want - freed, visits, EVICT_AT_ZERO, true, &visited);
	if (freed < want)
		freed += evict_dram(context, want - freed, visits, EVICT_ANY, true, &visited);
	if (freed >= want || evict_within_reason(store, evict_bytes_missing(context, bytes)))
		return true;
	freed += evict_thoroughly(context, want - freed, EVICT_ANY);
	if (freed < want)
		freed += evict_thoroughly(context, want - freed, EVICT_ALL);
	return freed >= want || evict_within_reason(store, evict_bytes_missing(context, bytes));
}

/* Apart from evict_missing, so that a set that finds room saves no registers. */
bool evict_inline(struct store_context *context, uint64_t bytes)
{
	int64_t missing = evict_bytes_missing(context, bytes);

	return __builtin_expect(missing <= 0, 1) || evict_missing(context, bytes, missing);
}

/* The flash hand visits slots in proportion to the objects on flash, as long as that costs no more than DRAM's part. */
static void evict_turn_flash_hand(struct store *store, uint64_t visited, uint64_t items)
{
	uint64_t hot = store_hot_bytes(store), threshold = store_hot_threshold(store), seen;
	struct fidx_status status;

	fidx_get_status(store->index, &status);
	uint64_t live = status.used - status.ghosts;
	double share = (double)visited * fmin((double)live / (double)items, HAND_SHARE);

	if (live > 0)
		fidx_hand(store->index, share < HAND_VISITS ? (uint64_t)share + 1 : HAND_VISITS,
			  hot > threshold ? hot - threshold : 0, &seen);
}

bool evict_excess_hot(struct store *store)
{
	uint64_t hot = store_hot_bytes(store), threshold = store_hot_threshold(store), visited, seen = 0;

	/* A rule that asks for worth at reclaim needs no ghosts. */
	if (hot <= threshold + store->segment_bytes / 8 || clf_asks_at_eviction(store->classifier))
		return false;
	/* A turn is bounded by the slots that it looks at; where few are in use, these are far more than it visits. */
	for (unsigned turns = 0; hot > threshold && turns < HAND_VISITS / HAND_VISITS_EXCESS; turns++) {
		(void)fidx_hand(store->index, HAND_VISITS_EXCESS, hot - threshold, &visited);
		if (visited == 0)
			break;
		seen += visited;
		hot = store_hot_bytes(store);
		threshold = store_hot_threshold(store);
	}
	return seen > 0;
}

/*
 * One bounded round of the keeper's hands: a batch of objects in DRAM, and objects on flash in proportion. While the
 * flash takes writes, candidates are spared until there are more than a segment needs.
 */
bool evict_round(struct store_context *context, uint64_t want_free)
{
	struct store *store = context->store;
	int64_t missing = (int64_t)want_free - store_free_bytes(store);
	uint64_t visited = 0, items = store_dram_items(store);
	bool spare = evict_wants_candidates(store);

	if (missing <= 0 || items == 0)
		return false;
	uint64_t freed = evict_dram(context, (uint64_t)missing, ROUND_VISITS,
				    spare ? EVICT_SPARE_CANDIDATES : EVICT_AT_ZERO, false, &visited);
	context_settle(context);
	if (store->index && visited > 0 && !clf_asks_at_eviction(store->classifier))
		evict_turn_flash_hand(store, visited, items);
	/* After several vain visits to each object another one would be vain too. */
	store->keeper->visited_in_vain = freed > 0 ? 0 : store->keeper->visited_in_vain + visited;
	if (store->keeper->visited_in_vain < ROUNDS_IN_VAIN * items)
		return freed > 0 || visited > 0;
	store->keeper->visited_in_vain = 0;
	return false;
}
