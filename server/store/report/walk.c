/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk over all objects. In DRAM it copies the objects of some lines under their stripe, and shows them once the
 * stripe is released. On flash it reads each segment with large reads. An object is live if a slot leads to its
 * record; then DRAM has no newer one, because a change of an object clears its slots in the same critical section. The
 * segment is pinned while it is read, but not while an object is shown. If it is reclaimed meanwhile, its objects have
 * gone back to DRAM or are gone, and the walk goes on with the next segment.
 *
 * With a frugal index no slot leads to a small object. Its record is live if DRAM lacks the key and a search leads to that
 * record, which may take reads. What DRAM has is shown from there alone.
 */
#include <unistd.h>

#include "server/store/cleaner/cleaner.h"
#include "server/store/state/bins.h"
#include "server/store/state/bins_search.h"

#define LINES_PER_LOCK 8u
/* Room for the copies of one hold; grows when a line needs more. */
#ifdef FS_DEBUG
#define COPIES_BYTES 512u /* small, so that tests see it full and growing */
#else
#define COPIES_BYTES (64u << 10)
#endif
#define FINE_SIZES (STORE_SIZE_FINE / STORE_SIZE_STEP)

struct object_walk {
	struct store *store;
	bool (*see)(void *context, const struct store_seen *object);
	void *context;
	bool flash, stopped;
	uint64_t since_pause; /* objects looked at */
	uint32_t segment; /* being read */
	uint64_t sequence, written_ms;
	bool pinned;
	struct bins_searcher searcher; /* for segments of bins */
};

static void walk_show(struct object_walk *walk, const struct store_seen *object)
{
	if (!walk->stopped && !walk->see(walk->context, object))
		walk->stopped = true;
}

static void walk_pause_if_due(struct object_walk *walk)
{
	if (walk->since_pause < STORE_CRAWL_BATCH)
		return;
	walk->since_pause = 0;
	usleep(atomic_load_explicit(&walk->store->crawl_sleep_us, memory_order_relaxed));
}

/* A time in the store's seconds as wall seconds. */
static int64_t walk_wall_seconds(const struct store *store, int64_t seconds)
{
	return clk_wall_seconds() - store_now_seconds(store, clk_now_us(store->clock)) + seconds;
}

static int64_t walk_wall_expiry(const struct store *store, uint32_t expiry)
{
	return expiry ? walk_wall_seconds(store, expiry) : -1;
}

/* ---- the objects of a stripe ----------------------------------------------------------------- */

/* Meets an item; NULL: the line ends. False: there is no room, and the line will be met again. Stripe held. */
typedef bool meet_function(void *context, struct item *item);

/*
 * The progress of a scan of a stripe. Links move, and the table may get another size between two holds. So that each
 * object is met once, a scan meets all objects together that have one own line by the shape of the first hold. By
 * another shape these are some lines that follow each other, and the first and the last of these have other objects too.
 */
struct scan {
	const struct store *store;
	struct stripe *stripe;
	uint32_t line, shape; /* the next own line by the shape of the first hold; that shape, 0 before */
	meet_function *meet;
	void *context;
};

static bool scan_meet(void *context, struct item *item)
{
	const struct scan *scan = context;

	if (scan->shape != scan->stripe->shape &&
	    shape_own_line(scan->shape, table_bits(store_hash(scan->store, item_key(item), item->key_length))) !=
		    scan->line)
		return true;
	return scan->meet(scan->context, item);
}

static bool scan_line(struct scan *scan)
{
	uint32_t line = shape_own_line(scan->stripe->shape, shape_least_bits(scan->shape, scan->line));
	uint32_t last = shape_own_line(scan->stripe->shape, shape_least_bits(scan->shape, scan->line + 1) - 1);

	for (; line <= last; line++)
		if (!stripe_meet_own(scan->stripe, line, scan_meet, scan))
			return false;
	return scan->meet(scan->context, NULL);
}

/* Scans some lines in one hold of the stripe. False: those were the last. */
static bool scan_some(struct scan *scan)
{
	lock_acquire(&scan->stripe->lock);
	if (scan->shape == 0)
		scan->shape = scan->stripe->shape;
	for (unsigned n = 0; n < LINES_PER_LOCK && scan->line < shape_lines(scan->shape); n++, scan->line++)
		if (!scan_line(scan))
			break;
	lock_release(&scan->stripe->lock);
	return scan->line < shape_lines(scan->shape);
}

/* ---- DRAM ------------------------------------------------------------------------------------ */

/* The data of an item that see() gets. */
struct copy {
	uint64_t cas;
	uint32_t expiry, idle_seconds, value_length, client_flags, bytes;
	uint8_t key_length;
	bool fetched;
	char key[];
};

struct copies {
	struct object_walk *walk;
	uint64_t now_ms;
	uint32_t now_seconds;
	char *memory;
	size_t room, used, kept; /* kept: the copies of whole lines */
};

static size_t copy_bytes(uint8_t key_length)
{
	return (sizeof(struct copy) + key_length + 7) & ~(size_t)7;
}

/* Will the walk meet the object of this clean copy on flash? A full index or a failed walk may have taken its slot. */
static bool walk_meets_on_flash(struct store *store, const struct item *item)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	struct fidx_key key;
	unsigned matches;
	bool has_extent;

	if (store->frugal)
		return false;
	fidx_key_of(store->index, store_hash(store, item_key(item), item->key_length), &key);
	return flash_may_hold(store, &key, match, &matches, &extent, &has_extent);
}

static bool walk_copy_item(void *context, struct item *item)
{
	struct copies *copies = context;
	struct store *store = copies->walk->store;

	if (!item) {
		copies->kept = copies->used;
		return true;
	}
	copies->walk->since_pause++;
	if (!store_alive(store, item->expiry, item->cas, copies->now_seconds) ||
	    (item->state & ITEM_CLEAN && copies->walk->flash && walk_meets_on_flash(store, item)))
		return true;
	if (copies->room - copies->used < copy_bytes(item->key_length))
		return false;
	struct copy *copy = (struct copy *)(void *)(copies->memory + copies->used);
	*copy = (struct copy){ .cas = item_shown_cas(item),
			       .expiry = item->expiry,
			       .idle_seconds = item_idle_seconds(item->accessed_ms, copies->now_ms),
			       .value_length = item->value_length,
			       .client_flags = item_client_flags(item),
			       .bytes = (uint32_t)item_allocated_bytes(item),
			       .key_length = item->key_length,
			       .fetched = item->state & ITEM_FETCHED };
	memcpy(copy->key, item_key(item), item->key_length);
	copies->used += copy_bytes(item->key_length);
	must(copies->used <= copies->room);
	return true;
}

static void walk_show_copies(struct copies *copies)
{
	struct object_walk *walk = copies->walk;
	struct store *store = walk->store;
	int64_t now = walk_wall_seconds(store, copies->now_seconds);

	for (size_t at = 0; at < copies->kept && !walk->stopped;) {
		const struct copy *copy = (const struct copy *)(void *)(copies->memory + at);

		walk_show(walk, &(struct store_seen){ .key = copy->key,
						      .key_length = copy->key_length,
						      .fetched = copy->fetched,
						      .value_length = copy->value_length,
						      .client_flags = copy->client_flags,
						      .expires = walk_wall_expiry(store, copy->expiry),
						      .accessed = now - copy->idle_seconds,
						      .cas = copy->cas,
						      .class = size_class(copy->bytes),
						      .bytes = copy->bytes });
		at += copy_bytes(copy->key_length);
	}
}

static bool walk_grow_copies(struct copies *copies)
{
	char *memory = mem_realloc(copies->memory, 2 * copies->room);

	if (!memory)
		return false;
	copies->memory = memory;
	copies->room *= 2;
	return true;
}

static int walk_stripe(struct copies *copies, struct stripe *stripe)
{
	struct object_walk *walk = copies->walk;
	struct scan scan = { .store = walk->store, .stripe = stripe, .meet = walk_copy_item, .context = copies };
	bool more = true;

	while (more && !walk->stopped) {
		uint64_t now_us = clk_now_us(walk->store->clock);

		copies->now_ms = now_us / 1000;
		copies->now_seconds = store_now_seconds(walk->store, now_us);
		copies->used = copies->kept = 0;
		more = scan_some(&scan);
		if (copies->kept == 0 && copies->used > 0 && !walk_grow_copies(copies))
			return FS_ENOMEM;
		walk_show_copies(copies);
		walk_pause_if_due(walk);
	}
	return FS_OK;
}

static int walk_dram(struct object_walk *walk)
{
	struct store *store = walk->store;
	struct copies copies = { .walk = walk, .memory = mem_alloc(COPIES_BYTES), .room = COPIES_BYTES };
	int result = copies.memory ? FS_OK : FS_ENOMEM;

	for (uint32_t n = 0; n < store->stripe_count && result == FS_OK && !walk->stopped; n++)
		result = walk_stripe(&copies, &store->stripes[n]);
	mem_free(copies.memory);
	return result;
}

/* ---- flash ----------------------------------------------------------------------------------- */

static void walk_show_record(struct object_walk *walk, const struct seg_record *record, bool was_read)
{
	struct store *store = walk->store;
	uint64_t bytes = record_item_bytes(store, record);
	struct clf_features_packed packed;
	struct clf_features features;

	memcpy(&packed, record->features, sizeof(packed));
	clf_features_unpack(&packed, walk->written_ms, &features);
	uint32_t idle = item_idle_seconds(features.accessed_ms, clk_now_ms(store->clock));
	walk_show(walk, &(struct store_seen){ .key = record->key,
					      .key_length = record->key_length,
					      .fetched = record->item_flags & 1 || was_read,
					      .from_flash = true,
					      .value_length = record->value_length,
					      .client_flags = record->client_flags,
					      .expires = walk_wall_expiry(store, record->expiry),
					      .accessed = clk_wall_seconds() - idle,
					      .cas = record->cas,
					      .class = size_class(bytes),
					      .bytes = (uint32_t)bytes });
}

/* Does DRAM have the key, in a store with a frugal index? */
static bool walk_shows_in_dram(struct store *store, uint64_t hash, const struct seg_record *record)
{
	struct stripe *stripe = store_stripe(store, hash);
	bool has;

	if (!store->frugal)
		return false;
	lock_acquire(&stripe->lock);
	has = stripe_find(stripe, hash, record->key, record->key_length) != NULL;
	lock_release(&stripe->lock);
	return has;
}

/* Is the record in this segment the key's object? */
static bool walk_is_live(struct object_walk *walk, uint64_t offset, bool is_extent, const struct seg_record *record,
			 bool *was_read)
{
	struct store *store = walk->store;
	uint64_t hash = store_hash(store, record->key, record->key_length);
	const struct bins_record place = { .key = record->key,
					   .key_length = record->key_length,
					   .hash = hash,
					   .segment = walk->segment,
					   .sequence = walk->sequence };
	struct frugal_since since;
	struct fidx_match match;
	struct fidx_key key;
	bool live;

	if (walk_shows_in_dram(store, hash, record))
		return false;
	switch (seg_kind_of(store->segments, walk->segment)) {
	case SEG_BINS:
		*was_read = bins_was_read(store, walk->segment, hash);
		return bins_is_current(&walk->searcher, &place, &since);
	case SEG_CHAIN:
		return false;
	default:
		fidx_key_of(store->index, hash, &key);
		live = record_is_live(store, walk->segment, walk->sequence, &key, offset, is_extent, &match);
		*was_read = live && match.read_on_flash;
		return live;
	}
}

/* The record lies in the walk's own memory, which stays when the segment goes. */
static bool walk_visit(void *context, uint64_t offset, bool is_extent, const struct seg_record *record)
{
	struct object_walk *walk = context;
	struct store *store = walk->store;
	uint32_t now_seconds = store_now_seconds(store, clk_now_us(store->clock));
	bool was_read = false;

	must(walk->pinned);
	walk->since_pause++;
	bool live = store_alive(store, record->expiry, record->cas, now_seconds) &&
		    walk_is_live(walk, offset, is_extent, record, &was_read);
	if (!live && walk->since_pause < STORE_CRAWL_BATCH)
		return true;
	seg_unpin(store->segments, walk->segment);
	if (live)
		walk_show_record(walk, record, was_read);
	walk_pause_if_due(walk);
	walk->pinned = !walk->stopped && seg_pin(store->segments, walk->segment, walk->sequence);
	return walk->pinned;
}

static int walk_segment(struct object_walk *walk, uint32_t segment)
{
	struct segments *segments = walk->store->segments;
	uint64_t visited;
	int result;

	walk->segment = segment;
	walk->sequence = seg_sequence(segments, segment);
	walk->pinned = seg_pin(segments, segment, walk->sequence);
	if (!walk->pinned)
		return FS_OK;
	walk->written_ms = seg_written_at_ms(segments, segment);
	result = seg_walk(segments, segment, walk_visit, walk, &visited);
	if (walk->pinned)
		seg_unpin(segments, segment);
	return result;
}

static int walk_flash(struct object_walk *walk)
{
	struct seg_info info;
	int result = FS_OK;

	bins_searcher_init(&walk->searcher, walk->store, false);
	seg_get_info(walk->store->segments, &info);
	for (uint32_t n = 0; n < info.segments && !walk->stopped; n++)
		if (walk_segment(walk, n) != FS_OK)
			result = FS_EIO;
	bins_searcher_fini(&walk->searcher);
	return result;
}

int store_walk(struct store *store, bool flash, bool (*see)(void *context, const struct store_seen *object),
	       void *context)
{
	struct object_walk walk = { .store = store, .see = see, .context = context, .flash = flash && store->index };
	int result = walk_dram(&walk);

	if (result == FS_OK && walk.flash && !walk.stopped)
		result = walk_flash(&walk);
	return result;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct sizes {
	struct store *store;
	uint32_t now_seconds;
	uint64_t fine[FINE_SIZES + 1]; /* by size in steps, rounded up */
	uint64_t coarse[CLASSES + 1]; /* above these */
};

static bool walk_count_size(void *context, struct item *item)
{
	struct sizes *sizes = context;

	if (!item || !store_alive(sizes->store, item->expiry, item->cas, sizes->now_seconds))
		return true;
	size_t bytes = item_allocated_bytes(item);
	if (bytes <= STORE_SIZE_FINE)
		sizes->fine[(bytes + STORE_SIZE_STEP - 1) / STORE_SIZE_STEP]++;
	else
		sizes->coarse[size_class(bytes)]++;
	return true;
}

int store_count_sizes(struct store *store, void (*see)(void *context, uint32_t bytes, uint64_t objects), void *context)
{
	struct sizes *sizes = mem_zalloc(sizeof(*sizes));

	if (!sizes)
		return FS_ENOMEM;
	sizes->store = store;
	sizes->now_seconds = store_now_seconds(store, clk_now_us(store->clock));
	for (uint32_t n = 0; n < store->stripe_count; n++) {
		struct scan scan = {
			.store = store, .stripe = &store->stripes[n], .meet = walk_count_size, .context = sizes
		};

		while (scan_some(&scan))
			;
	}
	for (uint32_t n = 0; n <= FINE_SIZES; n++)
		if (sizes->fine[n])
			see(context, n * STORE_SIZE_STEP, sizes->fine[n]);
	for (unsigned class = 1; class <= CLASSES; ++class)
		if (sizes->coarse[class])
			see(context, store_class_bytes(class), sizes->coarse[class]);
	mem_free(sizes);
	return FS_OK;
}
