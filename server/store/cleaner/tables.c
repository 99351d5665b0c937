/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How large the index is. The number of objects on flash follows from their size, which nobody knows beforehand:
 * --flash-object-size is a guess for the first table alone. From then on the segments tell: the index needs as many
 * slots as the last segments took, times the number of segments.
 *
 *   no table has room      a small one, or two, are replaced by one for all; a larger one gets a second beside it for the rest
 *   far too much room      one of the right size takes its place
 *
 * A table that is replaced gets no further segments, and goes when its last segment is reclaimed: a turn of the flash
 * later at the most. Until then both cost memory, which is taken off items first.
 *
 * The index has at most half of -m, or five eighths while one table drains. Where that is too little, the oldest
 * segment is reclaimed before its turn, as if the flash were full; so it is, too, for the few slots that are missing
 * at the end.
 */
#include <math.h>

#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/sizing.h"

#define CALM_LEAST 16u /* segments that found room in the index, before it counts as one that has room again */
#define SLOT_BYTES sizeof(uint32_t)
#define BUCKET_BYTES (FIDX_BUCKET_SLOTS * SLOT_BYTES)
#define SMOOTHING (1.0 / 16) /* of one segment in objects_each */
#define SEEN_LEAST 8u /* segments, or a sixteenth of all, before a far too large table is replaced ... */
#define SEEN_SHARE 16u
#define FAR_TOO_LARGE 0.7 /* of the slots needed: below this share they are far too many */
#define SEEN_SHARE_SURE 2u /* ... and half of all before a slightly too large one is */
#define TOO_LARGE 0.96
#define TOO_SMALL 0.5 /* of the needed slots: with fewer, one table for all is better than two */
#define MISSING_LEAST 0.03 /* of the needed slots: for less no table is added */
#define LOAD_ADDED 0.93 /* share of used slots that a table beside others is sized for: the estimate may be off */
#define SHARE_MOST 2u /* of -m: a half */
#define SLICES 32u /* of -m, in which memory is taken off items */
#define SLICE_WAITS 500u
#define SLICE_WAIT_MS 2u
#define READS_PER_MISS 0.01

/* ---- the tables, and the slots needed -------------------------------------------------------- */

struct tables {
	struct fidx_table table[FIDX_TABLES];
	unsigned live, kept_tables; /* kept: those that don't drain */
	uint64_t kept, all; /* slots of the kept tables, and of all */
	uint32_t segments; /* of the flash */
	double objects; /* slots that the next segment may need */
	double needed; /* slots, for all segments */
};

static bool table_drains(const struct store *store, unsigned table)
{
	must(table < FIDX_TABLES);
	return store->cleaner->sizing.draining >> table & 1;
}

static uint64_t slots_used(const struct tables *tables)
{
	uint64_t used = 0;

	for (unsigned t = 0; t < FIDX_TABLES; t++)
		used += tables->table[t].live ? tables->table[t].used : 0;
	return used;
}

static void tables_look(const struct store *store, uint64_t objects, struct tables *out)
{
	const struct index_sizing *sizing = &store->cleaner->sizing;
	double each = sizing->seen > 0 ? sizing->objects_each : (double)objects;
	struct seg_status segments;

	*out = (struct tables){ .objects = (double)objects };
	seg_get_status(store->segments, &segments);
	fidx_tables(store->index, out->table);
	for (unsigned t = 0; t < FIDX_TABLES; t++) {
		must(out->table[t].live || !table_drains(store, t));
		if (!out->table[t].live)
			continue;
		out->live++;
		out->all += out->table[t].slots;
		out->kept_tables += !table_drains(store, t);
		out->kept += table_drains(store, t) ? 0 : out->table[t].slots;
	}
	/* The mean of all segments on flash, or of the last ones if that is greater. In segments of bins nothing has a slot. */
	if (segments.live > 0)
		each = fmax(each, (double)(store->frugal ? slots_used(out) : segments.records_live) / segments.live);
	out->segments = segments.total;
	out->needed = each * segments.total;
}

static bool table_fits(const struct tables *tables, unsigned table)
{
	const struct fidx_table *t = &tables->table[table];

	return t->live && (double)t->used + tables->objects <= INDEX_LOAD_MOST * (double)t->slots;
}

/* The largest table with room for the next segment, so that small ones run empty; FIDX_TABLES: there is none. */
static unsigned roomiest_table(const struct store *store, const struct tables *tables, bool draining)
{
	unsigned best = FIDX_TABLES;

	for (unsigned t = 0; t < FIDX_TABLES; t++)
		if (table_drains(store, t) == draining && table_fits(tables, t) &&
		    (best == FIDX_TABLES || tables->table[t].slots > tables->table[best].slots))
			best = t;
	return best;
}

void tables_note(struct store *store, uint64_t objects)
{
	struct index_sizing *sizing = &store->cleaner->sizing;

	sizing->seen_since++;
	sizing->calm++;
	if (sizing->seen++ == 0)
		sizing->objects_each = (double)objects;
	else
		sizing->objects_each += SMOOTHING * ((double)objects - sizing->objects_each);
}

bool tables_are_full(const struct store *store)
{
	const struct index_sizing *sizing = &store->cleaner->sizing;

	return sizing->was_full && sizing->calm < CALM_LEAST;
}

/* ---- the account ----------------------------------------------------------------------------- */

void tables_account_of(struct store *store, const struct fidx *index, const struct frugal *frugal)
{
	uint64_t more = frugal ? frugal_memory(frugal) + atomic_load(&store->bins_reads_bytes) : 0;
	struct fidx_status status;

	fidx_get_status(index, &status);
	atomic_store_explicit(&store->index_bytes, status.index_bytes + status.filter_bytes + status.other_bytes + more,
			      memory_order_relaxed);
}

static void tables_account(struct store *store)
{
	tables_account_of(store, store->index, store->frugal);
}

/* Waits until the keeper has evicted a slice's worth, so that no set has to. */
static void tables_wait_for_free(struct store *store)
{
	for (unsigned n = 0; n < SLICE_WAITS && store_free_bytes(store) < (int64_t)store->segment_bytes / 4; n++) {
		if (!store->config.evict || background_is_stopping(&store->cleaner->background))
			return;
		cleaner_wake(store);
		cleaner_beat(store);
		cleaner_sleep(store, SLICE_WAIT_MS);
	}
}

/* Takes so many bytes off the item budget, slice by slice, before the index uses them. */
static void take_off_items(struct store *store, uint64_t bytes)
{
	uint64_t slice = store_memory_limit(store) / SLICES;

	must(slice > 0);
	for (uint64_t taken = 0; taken < bytes; taken += slice) {
		atomic_fetch_add_explicit(&store->index_bytes, bytes - taken < slice ? bytes - taken : slice,
					  memory_order_relaxed);
		tables_wait_for_free(store);
	}
}

/* ---- filters --------------------------------------------------------------------------------- */

/* The share of other keys that a filter of so many bits per key lets pass (flashindex.h). */
static double filter_pass(unsigned bits)
{
	static const double few[] = { 1, 0.63, 0.39 };

	return bits < sizeof(few) / sizeof(few[0]) ? few[bits] : pow(0.62, bits);
}

/* Reads per miss = occupied slots of two buckets in each table * 2^-tag * filter. Returns the fewest bits that keep them
   low. */
static unsigned filter_bits_for(const struct store *store, unsigned tables)
{
	double matches = tables * FIDX_PAIR_SLOTS * INDEX_LOAD_MOST * ldexp(1, -(int)store->tag_bits);
	unsigned bits = 0;

	if (store->config.filter_bits >= 0)
		return (unsigned)store->config.filter_bits;
	while (bits < 16 && matches * filter_pass(bits) > READS_PER_MISS)
		bits++;
	return bits;
}

void tables_tell_filters(const struct store *store)
{
	bool cuckoo = store->config.filter == FIDX_FILTER_CUCKOO, units = store->config.filter_units > 0;
	unsigned bits = filter_bits_for(store, 1);

	if (units && bits == 0)
		log_warn("--filter-units has no effect while there are no filters: --filter-bits makes them");
	if (!cuckoo)
		return;
	if (units)
		log_warn("--filter=cuckoo has no effect with --filter-units");
	else if (bits == 0)
		log_warn("--filter=cuckoo has no effect while there are no filters: --filter-bits makes them");
	else if (bits < FIDX_CUCKOO_BITS_LEAST)
		log_warn("--filter=cuckoo has no effect with filters of %u bits for each object: it takes %u", bits,
			 FIDX_CUCKOO_BITS_LEAST);
}

static void set_filter_bits(struct store *store, unsigned tables)
{
	unsigned bits = filter_bits_for(store, tables);

	atomic_store_explicit(&store->filter_bits, bits, memory_order_relaxed);
	fidx_set_filter_bits(store->index, bits);
}

/* ---- another table --------------------------------------------------------------------------- */

static void tables_tell_full(struct store *store, const struct tables *tables)
{
	struct index_sizing *sizing = &store->cleaner->sizing;

	if (sizing->told_full)
		return;
	sizing->told_full = true;
	log_notice(
		"flash: the index has its half of -m, %.2f MiB, and covers %.0f %% of the flash with objects of the present size; "
		"-m %.0f would use all of it",
		(double)(tables->all * SLOT_BYTES) / (1 << 20), 100 * (double)tables->all * INDEX_LOAD / tables->needed,
		ceil(tables->needed / INDEX_LOAD * SLOT_BYTES * SHARE_MOST / (1 << 20)));
}

/* All tables in this snapshot drain from now on. */
static void tables_drain_all(struct store *store, const struct tables *tables)
{
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		if (tables->table[t].live)
			store->cleaner->sizing.draining |= 1u << t;
}

/* Adds a table of so many slots, or of as many as the limit leaves if that is `least` or more. False: it could not. */
static bool tables_add(struct store *store, const struct tables *tables, double slots, double least,
		       uint64_t limit_bytes, unsigned *table)
{
	uint64_t used = tables->all * SLOT_BYTES, buckets = (uint64_t)(slots / FIDX_BUCKET_SLOTS) + 2;
	uint64_t room = limit_bytes > used ? (limit_bytes - used) / BUCKET_BYTES : 0;

	if (tables->live == FIDX_TABLES)
		return false;
	if (buckets > room)
		buckets = room;
	if ((double)buckets * FIDX_BUCKET_SLOTS < least) {
		tables_tell_full(store, tables);
		return false;
	}
	take_off_items(store, buckets * BUCKET_BYTES);
	int result = fidx_table_add(store->index, buckets, table);
	tables_account(store);
	if (result != FS_OK) {
		log_limited(LOG_LEVEL_WARN, "flash: no memory for a table of the index: %s", fs_strerror(result));
		return false;
	}
	store->cleaner->sizing.seen_since = 0;
	log_info("flash: the index has another table of %.2f MiB, for segments of %.0f objects",
		 (double)(buckets * BUCKET_BYTES) / (1 << 20), store->cleaner->sizing.objects_each);
	return true;
}

/* One table for so many used slots takes the place of all others. False: they stay. */
static bool tables_replace(struct store *store, const struct tables *tables, double used, unsigned *table)
{
	uint64_t limit = store_memory_limit(store) / 8 * 5, bytes = (uint64_t)(used / INDEX_LOAD * SLOT_BYTES);

	if (tables->all * SLOT_BYTES + bytes > limit ||
	    !tables_add(store, tables, used / INDEX_LOAD, used, limit, table))
		return false;
	tables_drain_all(store, tables);
	return true;
}

/*
 * There can't be another table. Of those that drain the roomiest is kept after all, but not the last one of three, so
 * that there can be another one soon. Where all three are kept, the smallest drains from now on.
 */
static bool tables_make_do(struct store *store, const struct tables *tables, unsigned *table)
{
	unsigned draining = tables->live - tables->kept_tables, smallest = 0;
	unsigned last = tables->live == FIDX_TABLES ? 1 : 0;

	if (draining > last) {
		*table = roomiest_table(store, tables, true);
		if (*table == FIDX_TABLES)
			return false;
		store->cleaner->sizing.draining &= ~(1u << *table);
		return true;
	}
	if (draining > 0 || tables->live < FIDX_TABLES)
		return false;
	for (unsigned t = 1; t < FIDX_TABLES; t++)
		if (tables->table[t].slots < tables->table[smallest].slots)
			smallest = t;
	store->cleaner->sizing.draining = 1u << smallest;
	return false;
}

/* All kept tables are full: finds another one. */
static bool tables_grow(struct store *store, const struct tables *tables, unsigned *table)
{
	double each = tables->objects, have = (double)tables->kept * INDEX_LOAD;
	double missing = tables->needed - have, all;
	uint64_t limit = store_memory_limit(store) / SHARE_MOST;
	uint32_t oldest;

	if (store->frugal) /* few segments have slots, so what will be needed can't be foreseen */
		missing = fmax(missing, have);
	else if (missing < MISSING_LEAST * tables->needed && seg_oldest(store->segments, &oldest))
		return false;
	if (missing < each)
		missing = each;
	all = have + missing;
	if ((tables->kept_tables > 1 || have < TOO_SMALL * all) && all / INDEX_LOAD * SLOT_BYTES <= (double)limit &&
	    tables_replace(store, tables, all, table))
		return true;
	return tables_add(store, tables, missing / LOAD_ADDED, fmin(2 * each, missing), limit, table) ||
	       tables_make_do(store, tables, table);
}

/* Are there far more slots than needed, by enough segments to be sure? */
static bool tables_too_large(const struct store *store, const struct tables *tables)
{
	uint32_t seen = store->cleaner->sizing.seen_since;
	double share = tables->needed / INDEX_LOAD / (double)tables->kept;

	if (seen < SEEN_LEAST || seen < tables->segments / SEEN_SHARE)
		return false;
	return share < FAR_TOO_LARGE ||
	       (share < TOO_LARGE && seen >= tables->segments / SEEN_SHARE_SURE && !store->cleaner->sizing.draining);
}

static bool tables_shrink(struct store *store, const struct tables *tables)
{
	unsigned table;

	return tables_too_large(store, tables) && tables_replace(store, tables, tables->needed, &table);
}

/* ---- the choice ------------------------------------------------------------------------------ */

bool tables_choose(struct store *store, uint64_t objects, unsigned *table)
{
	struct tables tables;
	unsigned chosen;
	bool found;

	tables_look(store, objects, &tables);
	if (tables_shrink(store, &tables))
		tables_look(store, objects, &tables);
	chosen = roomiest_table(store, &tables, false);
	found = chosen != FIDX_TABLES || tables_grow(store, &tables, &chosen);
	set_filter_bits(store, tables.live);
	if (found)
		*table = chosen;
	return found;
}

void tables_tidy(struct store *store)
{
	struct fidx_table tables[FIDX_TABLES];

	fidx_tables(store->index, tables);
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		if (tables[t].live && table_drains(store, t) && tables[t].segments == 0) {
			log_info("flash: a table of the index with %.2f MiB is not needed any more",
				 (double)(tables[t].slots * SLOT_BYTES) / (1 << 20));
			fidx_table_drop(store->index, t);
			store->cleaner->sizing.draining &= ~(1u << t);
		}
	/* It may shrink the table of extents. If it can't, the present table stays. */
	(void)!fidx_extents_reserve(store->index, 0);
	tables_account(store);
}

void tables_resume(struct store *store)
{
	struct fidx_table tables[FIDX_TABLES];
	struct index_sizing *sizing = &store->cleaner->sizing;
	unsigned live = 0;

	fidx_tables(store->index, tables);
	for (unsigned t = FIDX_TABLES; t-- > 0;)
		if (tables[t].live) {
			sizing->table = t;
			live++;
		}
	set_filter_bits(store, live);
	tables_account(store);
}
