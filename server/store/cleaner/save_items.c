/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stop: candidates that fill free segments go to flash by the cleaner's own means, and all other objects into the
 * file, the last used first, until the deadline. No other thread runs any more, and the store serves nothing afterwards, so
 * a list of a stripe's objects by age takes the place of its table, and about as much memory.
 *
 * The file leaves room for what is written behind it: the counts, and the state of the flash, which is worth more. When
 * the file system is full all the same, as others write too, the file is cut back until there is room for both.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "segments/path.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/state/losses.h"

#define AGES 128u /* four for each power of two of milliseconds */
#define SYNC_BYTES (64u << 20)
#define KEEP_FREE_SHARE 16 /* of the file system's free space, for others */
#define COUNTS_SHARE 2 /* of the room for objects: where counts would take more, there are none */
#define HEADS_BYTES (64u << 10) /* no less than heads, the classifier's part and the end take */
#define SAVED_STATE (ITEM_CLOCK | ITEM_FETCHED | ITEM_CANDIDATE)

/* What was saved before a part of objects. */
struct save_mark {
	struct parts_mark file;
	uint64_t saved, saved_bytes;
};

struct item_saver {
	struct store *store;
	const struct store_end *end;
	struct parts_writer *writer;
	uint8_t *bytes; /* the part that is being made */
	uint64_t capacity, used;
	uint32_t number, objects; /* of the part; objects in it */
	uint64_t room; /* bytes that the file may still take */
	uint64_t behind; /* bytes that the flash's state will take */
	bool counts; /* there is room for them, too */
	bool full; /* the file was cut back: it takes no further object */
	struct save_mark *marks; /* one for each part of objects */
	uint64_t saved, saved_bytes, synced_bytes, of_bytes;
	uint64_t lost; /* objects */
	struct aged *stripes; /* of all */
};

/* The objects of a stripe that are not written yet, by age. */
struct aged {
	uint64_t *items; /* count of them: AGE_SHIFT bits of address, then the age */
	uint32_t count, at; /* at: the first that is not written */
};

#define AGE_SHIFT 56

/* Is the time for saving over? */
static bool end_is_near(const struct store *store, const struct store_end *end)
{
	return clk_now_us(store->clock) >= end->deadline_us || (end->cut && atomic_load(end->cut));
}

/* Loads what a stop soon after the start has left unloaded; else it would be lost. */
static void load_rest(struct store *store, const struct store_end *end)
{
	while (!end_is_near(store, end) && loader_step(store))
		;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Half of the time is for the file. No segment with objects is reclaimed for another one (cleaner_gives_up): its objects
   would be lost, while those in DRAM are in the file in any case. */
static void save_segments(struct store *store, const struct store_end *end)
{
	uint64_t now_us = clk_now_us(store->clock), written = 0;
	struct store_end half = *end;
	struct seg_status status;

	if (!store->index || store->rebuild || now_us >= end->deadline_us)
		return;
	seg_get_status(store->segments, &status);
	half.deadline_us = now_us + (end->deadline_us - now_us) / 2;
	while (written + 1 < status.total && !end_is_near(store, &half) && cleaner_write_last(store))
		written++;
	if (written > 0)
		log_info("flash: %" PRIu64 " segments of candidates were written at the stop", written);
}

/* ---- lists by age ---------------------------------------------------------------------------- */

/* Returns a number that rises with the time since the object was written or read. */
static unsigned age_of(const struct item *item, uint64_t now_ms)
{
	uint32_t since = (uint32_t)now_ms - item->accessed_ms;
	unsigned octave;

	if (since > UINT32_MAX - ITEM_CLOCKS_APART_MS)
		since = 0;
	if (since < 4)
		return since;
	octave = 31 - (unsigned)__builtin_clz(since);
	return (octave - 1) * 4 + (since >> (octave - 2) & 3);
}

/* Takes an object out of its stripe. One that nobody may see, or that is on flash too, goes. */
static void take_item(struct item_saver *saver, struct stripe *stripe, struct aged *aged, struct item *item,
		      uint64_t now_us)
{
	struct store *store = saver->store;
	uint8_t state = item->state;

	must(!(state & ITEM_PLANNED));
	stripe_unlink(store, stripe, store_hash(store, item_key(item), item->key_length), item);
	if (state & ITEM_CLEAN || !store_alive(store, item->expiry, item->cas, store_now_seconds(store, now_us))) {
		item_release(&store->keeper->context, item);
		return;
	}
	if (!aged->items) { /* no memory for the list */
		item_release(&store->keeper->context, item);
		saver->lost++;
		return;
	}
	item->state |= state & ITEM_CANDIDATE; /* for the file alone */
	must((uintptr_t)item >> AGE_SHIFT == 0);
	aged->items[aged->count++] = (uint64_t)age_of(item, now_us / 1000) << AGE_SHIFT | (uintptr_t)item;
	saver->of_bytes += saved_bytes(item->key_length, item->value_length);
}

static int by_age(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a >> AGE_SHIFT, y = *(const uint64_t *)b >> AGE_SHIFT;

	return (x > y) - (x < y);
}

/* Takes all objects out of a stripe, whose table goes. */
static void sort_stripe(struct item_saver *saver, struct stripe *stripe, struct aged *aged, uint64_t now_us)
{
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed);

	lock_acquire(&stripe->lock);
	aged->items = count > 0 ? mem_alloc(count * sizeof(*aged->items)) : NULL;
	for (uint32_t line = 0; line < stripe_lines(stripe); line++) {
		stripe_prefetch(stripe, line + 1);
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			struct item *item = stripe_item(stripe, line, link);

			if (item)
				take_item(saver, stripe, aged, item, now_us);
		}
	}
	stripe_shrink(saver->store, stripe);
	lock_release(&stripe->lock);
	if (aged->count > 1)
		qsort(aged->items, aged->count, sizeof(*aged->items), by_age);
}

static void sort_items(struct item_saver *saver)
{
	struct store *store = saver->store;
	uint64_t now_us = clk_now_us(store->clock);

	for (uint32_t n = 0; n < store->stripe_count; n++)
		sort_stripe(saver, &store->stripes[n], &saver->stripes[n], now_us);
}

/* Returns the stripe's next object of this age; NULL: there is no further one. */
static struct item *next_of_age(struct aged *aged, unsigned age)
{
	uint64_t entry;

	if (aged->at < aged->count && aged->items[aged->at] >> AGE_SHIFT <= age) {
		entry = aged->items[aged->at++];
		return (struct item *)(uintptr_t)(entry & ((1ull << AGE_SHIFT) - 1));
	}
	if (aged->at == aged->count) {
		mem_free(aged->items);
		*aged = (struct aged){ 0 };
	}
	return NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The file system is full: takes parts back, until there is room for what must still be written. */
static void cut_back(struct item_saver *saver)
{
	uint64_t reached = parts_reached(saver->writer), behind = saver->behind + HEADS_BYTES;
	uint32_t number = saver->number;
	const struct save_mark *mark;

	while (number > 0 && saver->marks[number].file.bytes + behind > reached)
		number--;
	mark = &saver->marks[number];
	parts_cut(saver->writer, &mark->file);
	saver->lost += saver->saved - mark->saved;
	saver->saved = mark->saved;
	saver->saved_bytes = saver->synced_bytes = mark->saved_bytes;
	saver->number = number;
	saver->objects = 0;
	saver->used = sizeof(struct saved_chunk);
	saver->full = true;
}

/* Writes the part. Where there is no room for it, parts_lacks_room tells. */
static void put_chunk(struct item_saver *saver, bool last)
{
	const struct saved_chunk chunk = { .objects = saver->objects, .last = last };

	saver->marks[saver->number] = (struct save_mark){ .file = parts_mark(saver->writer),
							  .saved = saver->saved - saver->objects,
							  .saved_bytes = saver->saved_bytes };
	memcpy(saver->bytes, &chunk, sizeof(chunk));
	parts_put(saver->writer, PARTS_ITEMS, saver->number, saver->bytes, saver->used);
	if (parts_lacks_room(saver->writer))
		return;
	if (!last)
		saver->number++; /* marks[number] is that of the last part, or of the next one */
	saver->saved_bytes += saver->used;
	saver->used = sizeof(chunk);
	saver->objects = 0;
	if (saver->saved_bytes - saver->synced_bytes >= SYNC_BYTES) {
		parts_sync(saver->writer);
		saver->synced_bytes = saver->saved_bytes;
	}
	if (saver->end->progress)
		saver->end->progress(saver->end->context, saver->saved_bytes, saver->of_bytes);
}

/* Is there room for so many bytes in the part? A full one is written before; one object may be larger than a part. */
static bool make_chunk_room(struct item_saver *saver, uint64_t bytes)
{
	uint8_t *larger;

	if (saver->used + bytes > SAVED_CHUNK_BYTES && saver->objects > 0)
		put_chunk(saver, false);
	if (parts_lacks_room(saver->writer)) {
		cut_back(saver);
		return false;
	}
	if (saver->used + bytes <= saver->capacity)
		return true;
	larger = mem_realloc(saver->bytes, saver->used + bytes);
	if (!larger)
		return false;
	saver->bytes = larger;
	saver->capacity = saver->used + bytes;
	return true;
}

static void put_item(struct item_saver *saver, struct item *item)
{
	struct saved_item saved = { .cas = item->cas,
				    .value_length = item->value_length,
				    .client_flags = item_client_flags(item),
				    .expiry = item->expiry,
				    .features = item_features(item),
				    .key_length = item->key_length,
				    .state = item->state & SAVED_STATE };
	uint64_t bytes = saved_bytes(item->key_length, item->value_length);
	uint8_t *at;

	if (saver->full || bytes > saver->room || !make_chunk_room(saver, bytes)) {
		saver->lost++;
		return;
	}
	if (item_has_extra(item)) {
		saved.shown_cas = item_extra(item)->shown_cas;
		saved.marks = item_extra(item)->marks;
	}
	at = saver->bytes + saver->used;
	memset(at + bytes - 8, 0, 8);
	memcpy(at, &saved, sizeof(saved));
	memcpy(at + sizeof(saved), item_key(item), item->key_length);
	memcpy(at + sizeof(saved) + item->key_length, item_value(item), item->value_length);
	saver->used += bytes;
	saver->room -= bytes;
	saver->objects++;
	saver->saved++;
}

/* Writes all objects that the time is enough for, and frees every one. */
static void put_items(struct item_saver *saver)
{
	struct store_context *context = &saver->store->keeper->context;
	uint32_t number = UINT32_MAX;
	bool over = false;

	for (uint64_t n = 0; n < (uint64_t)AGES * saver->store->stripe_count; n++) {
		struct aged *aged = &saver->stripes[n % saver->store->stripe_count];
		struct item *item;

		while ((item = next_of_age(aged, (unsigned)(n / saver->store->stripe_count)))) {
			if (number != saver->number) { /* once for each part */
				over = over || saver->full || end_is_near(saver->store, saver->end) ||
				       !parts_healthy(saver->writer);
				number = saver->number;
			}
			if (over)
				saver->lost++;
			else
				put_item(saver, item);
			item->state &= (uint8_t)~ITEM_CANDIDATE;
			item_release(context, item);
		}
	}
	context_settle(context);
}

/* What has no time is left out. The last part has no counts. */
static void put_counts(struct item_saver *saver)
{
	struct clf *clf = saver->store->classifier;
	uint64_t all = clf_counts_bytes(clf), most = SAVED_CHUNK_BYTES / 2;
	struct saved_counts head = { 0 };
	uint32_t number = 0;

	while (saver->counts && !saver->full && head.from < all && !end_is_near(saver->store, saver->end)) {
		uint64_t length = all - head.from < most ? all - head.from : most;

		memcpy(saver->bytes, &head, sizeof(head));
		clf_counts_copy(clf, head.from, saver->bytes + sizeof(head), length);
		parts_put(saver->writer, PARTS_COUNTS, number++, saver->bytes, sizeof(head) + length);
		head.from += length;
	}
	parts_put(saver->writer, PARTS_COUNTS, number, &head, sizeof(head));
}

/* Writes the last part of objects, and what comes behind it. */
static void put_tail(struct item_saver *saver, bool counts)
{
	put_chunk(saver, true);
	if (counts)
		put_counts(saver);
	parts_end(saver->writer);
}

/* How much room is there for objects? False: not even for the flash's state and an empty file. */
static bool foresee_room(struct item_saver *saver, const char *path)
{
	const struct store *store = saver->store;
	uint64_t room = seg_free_bytes(path, UINT64_MAX), counts = 0;
	struct fidx_status index;
	struct seg_info info;

	if (store->index) {
		seg_get_info(store->segments, &info);
		fidx_get_status(store->index, &index);
		counts = clf_counts_bytes(store->classifier);
		saver->behind = index.index_bytes + index.filter_bytes + index.other_bytes +
				seg_region_bytes(info.segments, info.segment_bytes, info.crossings) + HEADS_BYTES +
				(store->frugal ? frugal_memory(store->frugal) : 0);
	}
	saver->counts = true;
	saver->room = room;
	if (room == UINT64_MAX)
		return true;
	room -= room / KEEP_FREE_SHARE;
	if (room < saver->behind + HEADS_BYTES)
		return false;
	room -= saver->behind + HEADS_BYTES;
	saver->counts = counts <= room / COUNTS_SHARE;
	saver->room = room - (saver->counts ? counts : 0);
	return true;
}

/* FS_OK, or a code of the parts. Without anything to save there is no file. */
static int save_file(struct item_saver *saver, const char *path)
{
	struct saved_head head;
	int result = FS_ENOMEM;

	if (!saved_head_make(saver->store, &head))
		return FS_ESYS;
	saver->bytes = mem_alloc(SAVED_CHUNK_BYTES);
	if (saver->bytes)
		result = parts_create(&saver->writer, path);
	if (result != FS_OK)
		return result;
	saver->capacity = SAVED_CHUNK_BYTES;
	saver->used = sizeof(struct saved_chunk);
	parts_put(saver->writer, PARTS_ITEMS_HEAD, 0, &head, sizeof(head));
	if (head.classifier)
		clf_save(saver->store->classifier, saver->writer);
	saver->stripes = mem_must_zalloc(saver->store->stripe_count * sizeof(*saver->stripes));
	sort_items(saver);
	/* Two parts in a row have more than one part's bytes. */
	saver->marks = mem_must_zalloc((2 * saver->of_bytes / SAVED_CHUNK_BYTES + 3) * sizeof(*saver->marks));
	put_items(saver);
	put_tail(saver, head.classifier);
	if (parts_lacks_room(saver->writer)) {
		cut_back(saver);
		put_tail(saver, head.classifier);
	}
	return parts_finish(saver->writer);
}

bool store_save_items(struct store *store, const struct store_end *end)
{
	struct item_saver saver = { .store = store, .end = end };
	uint64_t began_us = clk_now_us(store->clock);
	char path[SAVED_PATH_BYTES];
	int result;

	store->ended_us = began_us;
	if (!store->config.state_dir || store->config.restart_max_downtime_us == 0 || began_us >= end->deadline_us ||
	    losses_rebuild_again(store))
		return false;
	store_apply_due_flush(store, store_now_seconds(store, began_us));
	load_rest(store, end);
	save_segments(store, end);
	saved_path(store, path);
	if (!foresee_room(&saver, path)) {
		log_warn("memory: its objects are not saved: %s has no room for them beside the flash's state",
			 store->config.state_dir);
		return false;
	}
	result = save_file(&saver, path);
	mem_free(saver.bytes);
	mem_free(saver.marks);
	mem_free(saver.stripes);
	if (result != FS_OK) {
		log_warn("memory: its objects can't be saved in %s: %s", store->config.state_dir,
			 result == FS_ESYS ? strerror(errno) : fs_strerror(result));
		return false;
	}
	log_info("memory: %" PRIu64 " objects (%.2f GiB) are saved in %s, in %.3f s", saver.saved,
		 (double)saver.saved_bytes / (1 << 30), store->config.state_dir,
		 (double)(clk_now_us(store->clock) - began_us) / 1e6);
	if (saver.lost > 0)
		log_notice(
			"memory: %" PRIu64
			" objects were not saved, the least recently used ones: --stop-deadline, a second signal or a full file system left no room",
			saver.lost);
	return true;
}
