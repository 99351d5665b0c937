/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The crawler: the keeper's walk over DRAM, which frees expired and flushed objects, and scores objects anew whose
 * score is of an older model. A slow pass goes on all the time. A crawl that is asked for (lru_crawler crawl) goes on
 * beside it, as fast as its pauses allow. It visits some lines in one hold of a stripe: a hit that meets the lock
 * waits some ten microseconds at the most.
 */
#include "base/events.h"
#include "server/store/cleaner/cleaner_internal.h"

#define LINES_PER_LOCK 8u
#define BATCHES_EACH 16u /* of a crawl that was asked for, in one step of the keeper: about a millisecond */
/* Objects of the pass in one step: with hundreds of millions a pass takes longer than it should, but little CPU. */
#define PASS_OBJECTS 8192u
#define CATCH_UP_US 40000u /* a keeper that has overslept skips pauses, up to so many */

/* The work of one step, and its results. */
struct crawl_round {
	struct store *store;
	uint64_t now_ms;
	uint32_t now_seconds;
	bool rescore, free_dead;
	uint32_t *left; /* NULL, or how many objects of each class may be looked at yet */
	struct item *garbage[LINES_PER_LOCK * LINE_LINKS]; /* freed when the stripe is released */
	unsigned garbage_count;
	uint64_t met, checked;
};

/* ---- some lines ------------------------------------------------------------------------------ */

static void crawl_take_out(struct crawl_round *round, struct stripe *stripe, uint64_t hash, struct item *item,
			   unsigned class)
{
	struct class_block *block = round->store->keeper->context.classes;

	ctr_add(CTR_crawler_reclaimed, 1);
	class_add(block, class, CLASS_CRAWLER_RECLAIMED, 1);
	if (!(item->state & ITEM_FETCHED)) {
		ctr_add(CTR_expired_unfetched, 1);
		class_add(block, class, CLASS_EXPIRED_UNFETCHED, 1);
	}
	if (round->store->classifier) {
		const struct clf_features features = item_features(item);

		clf_note_moved(round->store->classifier, hash, &features, round->now_ms);
	}
	must(!(item->state & ITEM_PLANNED));
	stripe_unlink(round->store, stripe, hash, item);
	must(round->garbage_count < LINES_PER_LOCK * LINE_LINKS);
	round->garbage[round->garbage_count++] = item;
}

/* Is the crawl to look whether the object is dead? Notes its age if so. */
static bool crawl_check(struct crawl_round *round, const struct item *item, unsigned class)
{
	struct store *store = round->store;
	uint32_t idle;

	if (!round->free_dead || (round->left && round->left[class] == 0))
		return false;
	if (round->left)
		round->left[class]--;
	round->checked++;
	class_add(store->keeper->context.classes, class, CLASS_CRAWLER_CHECKED, 1);
	idle = item_idle_seconds(item->accessed_ms, round->now_ms);
	classes_met(store->classes, class, idle < round->now_seconds ? round->now_seconds - idle : 1);
	return true;
}

static void crawl_visit(struct crawl_round *round, struct stripe *stripe, struct item *item)
{
	struct store *store = round->store;
	unsigned class = size_class(item_allocated_bytes(item));
	bool checked = crawl_check(round, item, class);

	round->met++;
	if (!checked && !round->rescore)
		return;
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	if (store_alive(store, item->expiry, item->cas, round->now_seconds)) {
		if (round->rescore)
			candidate_score(store, stripe, hash, item);
	} else if (checked && !(item->state & ITEM_PLANNED)) {
		crawl_take_out(round, stripe, hash, item, class);
	}
}

static void crawl_free_garbage(struct crawl_round *round)
{
	for (unsigned i = 0; i < round->garbage_count; i++)
		item_release(&round->store->keeper->context, round->garbage[i]);
	round->garbage_count = 0;
}

/* Visits some lines from the position on. True: those were the stripe's last. After a change of the table's size the
   stripe is gone through again. */
static bool crawl_lines(struct crawl_round *round, struct stripe *stripe, struct line_position *at)
{
	uint64_t checked = round->checked;
	bool last;

	lock_acquire(&stripe->lock);
	uint32_t line = position_line(at, stripe), end = line + LINES_PER_LOCK;
	for (; line < end && line < stripe_lines(stripe); line++) {
		stripe_prefetch(stripe, line);
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			struct item *item = stripe_item(stripe, line, link);

			if (item)
				crawl_visit(round, stripe, item);
		}
	}
	last = line >= stripe_lines(stripe);
	position_set(at, stripe, last ? 0 : line);
	lock_release(&stripe->lock);
	ctr_add(CTR_crawler_items_checked, round->checked - checked);
	crawl_free_garbage(round);
	return last;
}

static struct crawl_round crawl_round_now(struct store *store)
{
	uint64_t now_us = clk_now_us(store->clock);

	return (struct crawl_round){ .store = store,
				     .now_ms = now_us / 1000,
				     .now_seconds = store_now_seconds(store, now_us) };
}

/* ---- the pass that goes on by itself --------------------------------------------------------- */

static void crawl_begin_pass(struct store *store, bool enabled)
{
	classes_new_pass(store->classes);
	if (enabled)
		ctr_add(CTR_lru_crawler_starts, 1);
}

/* The stripes that are due since the pass went on last. A full pass takes a minute, or less with a short training
   window. */
static uint64_t crawl_stripes_due(const struct store *store, uint64_t now_ms)
{
	uint64_t pass_ms = store->config.training_window_ms / 4;

	pass_ms = pass_ms < 1000 ? 1000 : pass_ms > 60000 ? 60000 : pass_ms;
	return (now_ms - store->keeper->crawl.passed_at_ms) * store->stripe_count / pass_ms;
}

/* Visits some lines of the pass's stripe. True: those were its last. */
static bool crawl_continue_pass(struct crawl_round *round)
{
	struct store *store = round->store;
	struct crawl *crawl = &store->keeper->crawl;
	struct stripe *stripe = &store->stripes[crawl->pass_stripe];

	must(crawl->pass_stripe < store->stripe_count);
	if (crawl->pass_at.line == 0) {
		if (crawl->pass_stripe == 0)
			crawl_begin_pass(store, round->free_dead);
		crawl->pass_version = store->classifier ? clf_version(store->classifier) : 0;
	}
	round->rescore = store->classifier && stripe->scored_version != crawl->pass_version;
	if ((round->rescore || round->free_dead) && !crawl_lines(round, stripe, &crawl->pass_at))
		return false;
	crawl->pass_at.line = 0;
	stripe->scored_version = crawl->pass_version;
	crawl->pass_stripe = (crawl->pass_stripe + 1) % store->stripe_count;
	return true;
}

static void crawl_by_time(struct store *store, uint64_t now_ms)
{
	struct crawl_round round = crawl_round_now(store);
	uint64_t due = crawl_stripes_due(store, now_ms);

	if (due == 0)
		return;
	if (due > store->stripe_count)
		due = store->stripe_count;
	store->keeper->crawl.passed_at_ms = now_ms;
	round.free_dead = atomic_load_explicit(&store->crawler_enabled, memory_order_relaxed);
	while (due > 0 && round.met < PASS_OBJECTS)
		due -= crawl_continue_pass(&round);
}

/* ---- the one that is asked for --------------------------------------------------------------- */

static void crawl_begin_asked(struct store *store)
{
	struct crawl *crawl = &store->keeper->crawl;
	uint32_t most = atomic_load_explicit(&store->crawl_to_crawl, memory_order_relaxed);

	crawl->begun = true;
	crawl->stripe = 0;
	crawl->at = (struct line_position){ 0 };
	crawl->due_us = 0;
	for (unsigned class = 0; class <= CLASSES; ++class)
		crawl->left[class] = most ? most : UINT32_MAX;
	ctr_add(CTR_lru_crawler_starts, 1);
	if (events_on(EVENT_SYSEVENTS))
		events_emit(EVENT_SYSEVENTS, "type=lru_crawler status=started to_crawl=%u", most);
}

/* Visits a batch of objects, or the rest. False: the crawl has ended. */
static bool crawl_batch(struct store *store)
{
	struct crawl *crawl = &store->keeper->crawl;
	struct crawl_round round = crawl_round_now(store);

	must(crawl->begun);
	round.free_dead = true;
	round.left = crawl->left;
	while (round.met < STORE_CRAWL_BATCH && crawl->stripe < store->stripe_count)
		crawl->stripe += crawl_lines(&round, &store->stripes[crawl->stripe], &crawl->at);
	return crawl->stripe < store->stripe_count;
}

/* The keeper can't sleep as shortly as a pause, so it does all batches that are due since the last time. */
static bool crawl_as_asked(struct store *store)
{
	struct crawl *crawl = &store->keeper->crawl;
	uint64_t now_us = clk_now_us(store->clock);
	uint64_t earliest = now_us > CATCH_UP_US ? now_us - CATCH_UP_US : 0;

	if (!atomic_load_explicit(&crawl->asked, memory_order_acquire))
		return false;
	if (!crawl->begun)
		crawl_begin_asked(store);
	if (crawl->due_us < earliest)
		crawl->due_us = earliest;
	for (unsigned n = 0; n < BATCHES_EACH && crawl->due_us <= now_us; n++) {
		if (!crawl_batch(store)) {
			crawl->begun = false;
			if (events_on(EVENT_SYSEVENTS))
				events_emit(EVENT_SYSEVENTS, "type=lru_crawler status=finished");
			atomic_store_explicit(&crawl->asked, false, memory_order_release);
			return true;
		}
		crawl->due_us += atomic_load_explicit(&store->crawl_sleep_us, memory_order_relaxed);
	}
	return crawl->due_us <= now_us;
}

bool keeper_crawl(struct store *store, uint64_t now_ms)
{
	crawl_by_time(store, now_ms);
	return crawl_as_asked(store);
}

/* ---- from outside ---------------------------------------------------------------------------- */

bool store_crawl(struct store *store)
{
	if (atomic_exchange(&store->keeper->crawl.asked, true))
		return false;
	background_wake(&store->keeper->background);
	return true;
}

void store_get_crawler(const struct store *store, struct store_crawler *out)
{
	*out = (struct store_crawler){ .enabled = atomic_load(&store->crawler_enabled),
				       .sleep_us = atomic_load(&store->crawl_sleep_us),
				       .to_crawl = atomic_load(&store->crawl_to_crawl) };
}

void store_set_crawler(struct store *store, const struct store_crawler *crawler)
{
	uint32_t most = STORE_CRAWL_SLEEP_MAX_US;

	atomic_store(&store->crawler_enabled, crawler->enabled);
	atomic_store(&store->crawl_sleep_us, crawler->sleep_us < most ? crawler->sleep_us : most);
	atomic_store(&store->crawl_to_crawl, crawler->to_crawl);
}

void store_get_crawler_status(const struct store *store, struct store_crawler_status *out)
{
	*out = (struct store_crawler_status){ .running = atomic_load(&store->keeper->crawl.asked),
					      .starts = ctr_sum(CTR_lru_crawler_starts),
					      .checked = ctr_sum(CTR_crawler_items_checked),
					      .reclaimed = ctr_sum(CTR_crawler_reclaimed) };
}
