/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of live objects (server/store/sample.h). The keeper takes the objects of some lines of random stripes, each in
 * a short hold; an object's weight is the stripe's number of lines for each one that is looked at. The
 * cleaner picks a slot at random and reads its record, when it has nothing else to do; where there is a frugal index, a bin
 * as well, of which it takes a record.
 */
#include "segments/bins.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/bins.h"
#include "server/store/state/bins_search.h"
#include "server/store/state/id_times.h"

#define DRAM_PAUSE_MS 50u
#define DRAM_LINES (SAMPLE_DRAM_PER_S * DRAM_PAUSE_MS / 1000 / 8) /* at a time; they hold about eight objects each */
#define DRAM_ROOM (DRAM_LINES * LINE_LINKS) /* objects in them */
#define DRAM_STRIPES 256u /* looked at at a time, at the most: most of them are empty in a small cache */
#define FLASH_TRIES 64u /* slots that are looked at for one that is used */
#define BIN_TRIES 4u /* bins, or a slot, that are read for an object that is live */

/* An object of DRAM, copied under its stripe. */
struct copied {
	struct store_sampled object;
	uint32_t expiry;
	uint64_t id;
	char key[STORE_KEY_MAX];
};

struct samples {
	/* The keeper's: */
	uint64_t dram_due_ms;
	struct copied copies[DRAM_ROOM];
	/* The cleaner's: */
	uint64_t flash_due_ms;
	struct rng rng;
};

void samples_init(struct store *store)
{
	struct samples *samples;

	if (!store->config.samples.seen)
		return;
	samples = mem_must_zalloc(sizeof(*samples));
	rng_init(&samples->rng, store->config.seed + 3);
	store->samples = samples;
}

void samples_fini(struct store *store)
{
	mem_free(store->samples);
	store->samples = NULL;
}

/* Fills in what follows from expiry and id, and gives the object out, unless it is dead. */
static void sample_give(struct store *store, struct store_sampled *object, uint32_t expiry, uint64_t id,
			uint64_t now_us)
{
	const struct store_sample_sink *sink = &store->config.samples;
	uint32_t now_seconds = store_now_seconds(store, now_us);

	if (!store_alive(store, expiry, id, now_seconds))
		return;
	object->expires = expiry != 0;
	object->ttl_seconds = store_ttl(expiry, now_seconds);
	object->age_seconds = id_age_seconds(store, id, now_us / 1000, &object->from_earlier);
	sink->seen(sink->context, object);
}

/* ---- DRAM ---------------------------------------------------------------------------------------- */

static void copy_item(struct copied *copy, const struct item *item, double weight, uint64_t now_ms)
{
	copy->object = (struct store_sampled){ .key = copy->key,
					       .key_length = item->key_length,
					       .value_length = item->value_length,
					       .bytes = (uint32_t)item_cost(item),
					       .idle_seconds = item_idle_seconds(item->accessed_ms, now_ms),
					       .weight = weight };
	copy->expiry = item->expiry;
	copy->id = item->cas;
	memcpy(copy->key, item_key(item), item->key_length);
}

/* Copies the objects of some lines, at most DRAM_LINES. Returns their number; *looked_at is the number of lines. */
static unsigned copy_lines(struct store *store, struct stripe *stripe, uint64_t now_ms, uint32_t *looked_at)
{
	struct samples *samples = store->samples;
	struct store_context *context = &store->keeper->context;
	unsigned count = 0;

	lock_acquire(&stripe->lock);
	uint32_t lines = stripe_lines(stripe), line = (uint32_t)rng_below(&context->rng, lines);
	*looked_at = lines < DRAM_LINES ? lines : DRAM_LINES;
	for (uint32_t n = 0; n < *looked_at; n++, line = (line + 1) % lines)
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			const struct item *item = stripe_item(stripe, line, link);

			if (item && !(item->state & ITEM_CLEAN))
				copy_item(&samples->copies[count++], item, (double)lines / *looked_at, now_ms);
		}
	lock_release(&stripe->lock);
	return count;
}

/* Returns the lines that were looked at. */
static uint32_t sample_stripe(struct store *store, struct stripe *stripe, uint64_t now_ms)
{
	uint32_t looked_at;
	unsigned count = copy_lines(store, stripe, now_ms, &looked_at);

	for (unsigned i = 0; i < count; i++) {
		struct copied *copy = &store->samples->copies[i];

		sample_give(store, &copy->object, copy->expiry, copy->id, clk_now_us(store->clock));
	}
	return looked_at;
}

/* Stripes are chosen one after the other until enough lines were looked at, so that each has the same chance at each
   choice. */
void samples_dram_step(struct store *store, uint64_t now_ms)
{
	struct samples *samples = store->samples;
	uint32_t left = DRAM_LINES;

	if (!samples || now_ms < samples->dram_due_ms)
		return;
	samples->dram_due_ms = now_ms + DRAM_PAUSE_MS;
	for (unsigned n = 0; n < DRAM_STRIPES && left > 0; n++) {
		struct stripe *stripe =
			&store->stripes[rng_below(&store->keeper->context.rng, evict_stripes_in_use(store))];
		uint32_t looked_at;

		if (atomic_load_explicit(&stripe->count, memory_order_relaxed) == 0)
			continue;
		looked_at = sample_stripe(store, stripe, now_ms);
		left -= looked_at < left ? looked_at : left;
	}
}

/* ---- flash ----------------------------------------------------------------------------------------- */

static bool pick_live(struct store *store, struct fidx_picked *picked)
{
	for (unsigned i = 0; i < FLASH_TRIES; i++)
		if (fidx_pick(store->index, rng_next(&store->samples->rng), picked))
			return true;
	return false;
}

/* Reads the record of a slot or extent. A slot may have been left for another object's record since; then there is none
   of this sequence. */
static bool read_picked(struct store *store, const struct fidx_picked *picked, struct seg_record *record, void **memory,
			uint64_t *bytes)
{
	const struct fidx_match *match = &picked->match;
	uint64_t offset = picked->offset, length = picked->length;
	int rc;

	if (seg_sequence(store->segments, match->segment) != match->sequence)
		return false;
	if (!picked->is_extent) {
		offset = seg_position(store->segments, match->segment, match->place, match->function);
		length = seg_read_length(store->segments, match->segment, offset);
	}
	rc = seg_read_record(store->segments, match->segment, offset, length, record, memory);
	*bytes = rc == FS_OK && !picked->is_extent ? seg_record_length(record->key_length, record->value_length)
						   : length;
	return rc == FS_OK;
}

static void give_record(struct store *store, uint32_t segment, bool was_read, double weight,
			const struct seg_record *record)
{
	uint64_t now_us = clk_now_us(store->clock);
	uint64_t packed_ms = seg_written_at_ms(store->segments, segment);
	struct clf_features_packed packed;
	struct clf_features features;

	memcpy(&packed, record->features, sizeof(packed));
	clf_features_unpack(&packed, packed_ms, &features);
	struct store_sampled object = { .key = record->key,
					.key_length = record->key_length,
					.from_flash = true,
					.read_on_flash = was_read,
					.value_length = record->value_length,
					.bytes = (uint32_t)seg_record_length(record->key_length, record->value_length),
					.idle_seconds = item_idle_seconds(features.accessed_ms, now_us / 1000),
					.weight = weight };
	sample_give(store, &object, record->expiry, record->cas, now_us);
}

/* Takes an object that has a slot or an extent. Returns the bytes that were read. */
static uint64_t sample_slot(struct store *store)
{
	struct fidx_picked picked;
	struct seg_record record;
	void *memory = NULL;
	uint64_t bytes = 0;

	if (!pick_live(store, &picked))
		return 0;
	if (read_picked(store, &picked, &record, &memory, &bytes))
		give_record(store, picked.match.segment, picked.match.read_on_flash, 1, &record);
	mem_free(memory);
	return bytes;
}

/* ---- bins ------------------------------------------------------------------------------------------- */

/* A record of a bin, each with the same chance. */
struct bin_pick {
	struct rng *rng;
	uint32_t records;
	struct seg_record record; /* without its value */
	char key[STORE_KEY_MAX];
};

static bool pick_record(void *context, uint64_t offset, const struct seg_record *record)
{
	struct bin_pick *pick = context;

	(void)offset;
	if (rng_below(pick->rng, ++pick->records) > 0)
		return true;
	pick->record = *record;
	memcpy(pick->key, record->key, record->key_length);
	pick->record.key = pick->key;
	pick->record.value = NULL;
	return true;
}

/* Is the record its key's object, and DRAM without one but for a clean copy? */
static bool is_live_in_bin(struct store *store, const struct seg_record *record, uint64_t hash,
			   const struct frugal_found *at)
{
	const struct bins_record place = { .key = record->key,
					   .key_length = record->key_length,
					   .hash = hash,
					   .segment = at->segment,
					   .sequence = at->sequence };
	struct stripe *stripe = store_stripe(store, hash);
	struct bins_searcher searcher;
	struct frugal_since since;
	const struct item *there;
	bool live;

	lock_acquire(&stripe->lock);
	there = stripe_find(stripe, hash, record->key, record->key_length);
	live = !there || there->state & ITEM_CLEAN;
	lock_release(&stripe->lock);
	bins_searcher_init(&searcher, store, true);
	live = live && bins_is_current(&searcher, &place, &since);
	bins_searcher_fini(&searcher);
	return live;
}

/* Takes an object from a bin; bytes: that were read. False: the bin's record was no live object. */
static bool sample_bin(struct store *store, uint64_t *bytes)
{
	struct bin_pick pick = { .rng = &store->samples->rng };
	struct frugal_found at;
	uint32_t records, bins, bin;
	uint64_t hash;

	if (!frugal_pick(store->frugal, rng_next(pick.rng), &at, &records))
		return true;
	bins = seg_bins(store->segments, at.segment);
	bin = (uint32_t)rng_below(pick.rng, bins);
	*bytes += seg_bin_of(store->segments, at.segment, 0).bytes;
	if (seg_walk_bins(store->segments, at.segment, bin, 1, true, pick_record, &pick) == FS_EIO)
		return true;
	if (pick.records == 0)
		return false;
	hash = store_hash(store, pick.record.key, pick.record.key_length);
	if (!is_live_in_bin(store, &pick.record, hash, &at))
		return false;
	/* A record in a full bin has a smaller chance. */
	give_record(store, at.segment, bins_was_read(store, at.segment, hash),
		    (double)pick.records * bins / (records ? records : 1), &pick.record);
	return true;
}

/* By chance, as there are objects in bins and others. */
static bool is_bins_turn(struct store *store)
{
	struct frugal_status frugal;
	struct fidx_status index;

	if (!store->frugal)
		return false;
	fidx_get_status(store->index, &index);
	frugal_get_status(store->frugal, &frugal);
	return rng_below(&store->samples->rng, index.used + index.extents_used + frugal.objects + 1) < frugal.objects;
}

void samples_flash_step(struct store *store)
{
	struct samples *samples = store->samples;
	uint64_t now_ms = clk_now_ms(store->clock), bytes = 0;
	bool done = false;

	if (!samples || now_ms < samples->flash_due_ms || seg_offline(store->segments))
		return;
	samples->flash_due_ms = now_ms + 1000 / SAMPLE_FLASH_PER_S;
	for (unsigned tries = 0; tries < BIN_TRIES && !done; tries++) {
		done = !is_bins_turn(store);
		if (done)
			bytes += sample_slot(store);
		else
			done = sample_bin(store, &bytes);
	}
	if (bytes > SAMPLE_FLASH_BYTES_PER_S / SAMPLE_FLASH_PER_S)
		samples->flash_due_ms = now_ms + bytes * 1000 / SAMPLE_FLASH_BYTES_PER_S;
}
