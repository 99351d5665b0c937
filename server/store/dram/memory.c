/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The account of -m. Each context adds its items' cost to a batch of its own and settles the batch with the store now
 * and then, so that a set touches no cache line that all threads share. The account is off by at most a batch for each
 * thread.
 */
#include "base/resident.h"
#include "server/store/dram/dram_internal.h"
#include "server/store/dram/share.h"

/* Resident bytes beside -m that objects don't pay for: program and libraries, stacks, connections, holes. To these and to
   the other constants in bytes come those of mem_coarse_bytes. */
#define BESIDE_SHARE 16 /* of -m, and */
#define BESIDE_BYTES (20u << 20)
#define CHARGE_SHARE 4 /* of -m: the most that objects pay for bytes beyond these */
/* Holes in the allocator's pages that are worth a pass: so many, and so many more than are unavoidable. */
#define HOLES_SHARE 48 /* of -m, and */
#define HOLES_BYTES (2u << 20)
#define HOLES_MUST_SHARE 16 /* of -m: more holes are never taken for unavoidable */
#define HOLES_CHARGED(worth) ((worth) / 4 * 5) /* from so many on objects pay for holes ... */
#define PRESSED_BYTES (12u << 20) /* ... if so many bytes, and the same share of -m, are resident beside -m */
#define ACTIVE_SHARE 1024 /* of -m, set since the last look */
#define HOLES_WEIGHT 8
#define HOLES_CHARGE(memory) ((memory) / 4 * 3) /* the most that objects pay for holes */
#define RECENT_PART 64 /* of the item budget, for each mark of the time */
#define BATCH_MOST (64u << 10) /* bytes of a thread's account */
#define LEAST_MEMORY (1ull << 20)
#define LEAST_SHARE 4 /* of -m */
#define LEAST_SEGMENTS 2

void context_init(struct store_context *context, struct store *store, uint64_t seed)
{
	must(store->stripe_count > 0);
	memset(context, 0, sizeof(*context));
	context->store = store;
	context->classes = classes_attach(store->classes);
	rng_init(&context->rng, seed);
	context->hand_stripe = (uint32_t)rng_below(&context->rng, store->stripe_count);
}

/* The account's batches follow from -m and the number of threads. */
static int64_t memory_batch(const struct store_config *config, uint64_t limit)
{
	uint64_t batch = limit / 1024 / (config->workers + 1);

	return (int64_t)(batch < BATCH_MOST ? batch : BATCH_MOST);
}

/* Sets -m, and returns the limit before. */
static uint64_t memory_set_limit(struct store *store, uint64_t limit)
{
	uint64_t before = atomic_exchange(&store->memory_limit, limit);
	uint32_t now_ms = (uint32_t)clk_now_ms(store->clock);

	atomic_store(&store->account_batch, memory_batch(&store->config, limit));
	for (unsigned i = 0; i < RECENT_MARKS; i++)
		atomic_store(&store->recent.mark_ms[i], now_ms);
	atomic_store(&store->recent.since_ms, now_ms);
	atomic_store(&store->recent.due, 0);
	return before;
}

void memory_init(struct store *store)
{
	store->classes = mem_must_zalloc(sizeof(*store->classes));
	store->compaction = mem_must_zalloc(sizeof(*store->compaction));
	copies_init(store,
		    store->config.promotion.rule != STORE_PROMOTE_OFF && store->config.flash_path && store->config.evict
			    ? store->config.promotion.share
			    : 0);
	(void)memory_set_limit(store, store->config.memory_bytes);
	share_init(store);
}

void memory_fini(struct store *store)
{
	classes_fini(store->classes);
	mem_free(store->classes);
	mem_free(store->compaction);
	share_fini(store);
	copies_fini(store);
}

/* The parts of -m that are not for items. */
static uint64_t memory_other_bytes(const struct store *store)
{
	return store->fixed_bytes + atomic_load_explicit(&store->index_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->table_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->loader_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->losses_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->promotion_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->plan_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&store->reader_bytes, memory_order_relaxed);
}

static uint64_t memory_budget_beside(const struct store *store, uint64_t others)
{
	uint64_t limit = store_memory_limit(store);
	uint64_t least = limit / 8; /* a cache always keeps some room for objects */

	if (store->config.item_bytes > 0)
		return store->config.item_bytes;
	return others + least < limit ? limit - others : least;
}

/* The first thread past a mark's bytes sets it. The budget without excess_bytes keeps marks apart while items pay for
   holes. */
static void memory_note_recent(struct store *store, uint64_t allocated)
{
	struct recent *recent = &store->recent;
	uint64_t due = atomic_load_explicit(&recent->due, memory_order_relaxed);

	if (allocated < due ||
	    !atomic_compare_exchange_strong(&recent->due, &due,
					    allocated + memory_budget_beside(store, memory_other_bytes(store)) /
								RECENT_PART))
		return;
	uint32_t n = atomic_fetch_add(&recent->count, 1) % RECENT_MARKS;
	atomic_store_explicit(&recent->since_ms,
			      atomic_exchange(&recent->mark_ms[n], (uint32_t)clk_now_ms(store->clock)),
			      memory_order_relaxed);
}

void context_settle(struct store_context *context)
{
	if (context->item_bytes) {
		atomic_fetch_add_explicit(&context->store->item_bytes, context->item_bytes, memory_order_relaxed);
		context->item_bytes = 0;
	}
	if (context->allocated_bytes) {
		memory_note_recent(context->store,
				   context->allocated_bytes +
					   atomic_fetch_add_explicit(&context->store->allocated_bytes,
								     context->allocated_bytes, memory_order_relaxed));
		context->allocated_bytes = 0;
	}
	if (context->background && context->released_bytes) {
		atomic_fetch_add_explicit(&context->store->released_bytes, context->released_bytes,
					  memory_order_relaxed);
		context->released_bytes = 0;
	}
}

uint64_t store_item_budget(const struct store *store)
{
	return memory_budget_beside(store, memory_other_bytes(store) +
						   atomic_load_explicit(&store->excess_bytes, memory_order_relaxed));
}

int64_t store_free_bytes(const struct store *store)
{
	return (int64_t)store_item_budget(store) - atomic_load_explicit(&store->item_bytes, memory_order_relaxed);
}

uint64_t store_used_bytes(const struct store *store)
{
	int64_t items = atomic_load_explicit(&store->item_bytes, memory_order_relaxed);

	return (uint64_t)(items > 0 ? items : 0) + memory_other_bytes(store);
}

/*
 * Objects of one size leave holes that objects of another size can't fill; after a shift of sizes a pass of compaction
 * moves objects together. While holes come faster than passes close them, and too much is resident, objects pay for
 * holes several times over, because evicting one object seldom empties a page. Under -M nothing is evicted, and
 * objects don't pay. Returns the bytes that they pay.
 */
static uint64_t memory_watch_holes(struct store *store, uint64_t memory, uint64_t resident)
{
	struct compaction *compaction = store->compaction;
	bool sparse[MEM_CLASSES];
	uint64_t holes = mem_holes(sparse), more, from;
	uint64_t worth = memory / HOLES_SHARE + HOLES_BYTES + mem_coarse_bytes();
	uint64_t pressed = memory + memory / HOLES_SHARE + PRESSED_BYTES + mem_coarse_bytes();
	uint64_t most = memory / HOLES_MUST_SHARE + HOLES_BYTES + mem_coarse_bytes();
	uint64_t allocated = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);
	bool active = allocated - compaction->watched > memory / ACTIVE_SHARE;

	compaction->watched = allocated;
	if (holes < compaction->holes_least)
		compaction->holes_least = holes;
	if (compaction->holes_least > most)
		compaction->holes_least = most;
	more = compaction->holes_least + memory / HOLES_SHARE;
	from = HOLES_CHARGED(worth) > more ? HOLES_CHARGED(worth) : more;
	if (holes > worth && holes > more)
		compaction_thin(store, sparse, holes > from);
	if (holes <= from || resident <= pressed || !active || !store->config.evict)
		return 0;
	holes = HOLES_WEIGHT * (holes - from < resident - pressed ? holes - from : resident - pressed);
	return holes < HOLES_CHARGE(memory) ? holes : HOLES_CHARGE(memory);
}

/*
 * The allocator keeps what eviction frees in partly used pages. New objects of the same size take these holes, so
 * holes are no reason to evict: the next sets fill what a segment's commit has freed at once. When objects change
 * their size, though, the new ones can't use the holes, and resident memory grows until objects are moved together
 * (compact.c). The part above the limit comes off the item budget: at once when it rises, and slowly when it falls,
 * because the figure swings with each purge.
 */
void store_watch_memory(struct store *store)
{
	uint64_t memory = store_memory_limit(store), most = memory / CHARGE_SHARE;
	uint64_t allowed = memory + memory / BESIDE_SHARE + BESIDE_BYTES + mem_coarse_bytes();
	uint64_t excess = atomic_load_explicit(&store->excess_bytes, memory_order_relaxed), over = 0;
	uint64_t resident = resident_bytes();
	struct mem_figures heap;

	if (resident > memory && resident_is_exact())
		over = memory_watch_holes(store, memory, resident);
	if (resident > allowed) {
		mem_figures(&heap);
		if (heap.unused > (resident - allowed) / 2)
			mem_purge();
		resident = resident_bytes();
	}
	if (resident == 0)
		return; /* unknown, for want of a descriptor */
	atomic_store_explicit(&store->resident_bytes, resident, memory_order_relaxed);
	if (resident > allowed && resident_is_exact())
		over += resident - allowed < most ? resident - allowed : most;
	if (compaction_pending(store))
		over = 0; /* eviction and compaction are at work on it */
	if (over > HOLES_CHARGE(memory))
		over = HOLES_CHARGE(memory);
	if (resident < memory)
		excess = 0;
	excess = over > excess ? over : excess - (excess - over + 3) / 4;
	atomic_store_explicit(&store->excess_bytes, excess, memory_order_relaxed);
}

/* A quarter of -m, or what the cleaner needs to fill a segment, to keep part of one free, and to spare some objects. */
uint64_t memory_least_for_items(const struct store *store, uint64_t limit)
{
	uint64_t segments = store->segment_bytes * LEAST_SEGMENTS;

	return segments > limit / LEAST_SHARE ? segments : limit / LEAST_SHARE;
}

bool memory_suffices(const struct store *store, uint64_t limit)
{
	return limit >= memory_other_bytes(store) + memory_least_for_items(store, limit);
}

int store_set_memory_limit(struct store *store, uint64_t bytes)
{
	if (bytes < LEAST_MEMORY || (bytes < store->config.memory_bytes && !memory_suffices(store, bytes)))
		return FS_ERANGE;
	if (memory_set_limit(store, bytes) > bytes && store->config.evict)
		compaction_ask(store);
	return FS_OK;
}
