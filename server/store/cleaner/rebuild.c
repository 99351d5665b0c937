/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After a crash of the host: the index is made anew from the segments that the journal calls committed, newest first,
 * while the store already serves. The cleaner walks one segment at each step; it writes and reclaims none meanwhile. A key
 * whose segment has not been walked is a miss.
 *
 * A record gets its slot back, under its key's stripe, unless the journal has it as dead, its key was changed during an
 * earlier rebuild, a command of this run has touched its key (losses_touched), or it is expired or flushed. A record that
 * could have a slot and finds no room is written down as dead. A segment that isn't whole, or can't be read whole, is
 * taken off the committed ones, because the losses of what it has without a slot would not be written down.
 *
 * Memory: a bit for each hash whose key is changed, and four bytes for each record that the journal calls dead, until its
 * segment is walked. All of it counts in -m. Where the lists of dead records would take more than half of what -m leaves
 * beside the index, the oldest segments are left out.
 *
 * A clean stop in the middle of it leaves the journal as it is, and saves nothing: the next start begins the rebuild
 * again. With a region, or without the journal any more, the index is saved as far as it is made.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/losses.h"

#define STEP_OBJECTS 32u
#define CHANGED_SHARE 1024u /* of -m: bytes of the bits of one earlier rebuild */
#define CHANGED_LEAST (64u << 10)
#define CHANGED_MOST_BYTES (1u << 20)
#define DEAD_SHARE 2u /* of what -m leaves: the lists of dead records */
#define CHANGED_MOST 8u /* earlier rebuilds that are told apart */

/* A segment to walk. */
struct rebuild_segment {
	uint64_t sequence;
	uint32_t segment;
	unsigned table;
	uint32_t *dead; /* offsets; sorted when it is its turn */
	uint64_t deads, room;
};

struct rebuild {
	struct rebuild_segment *segment; /* newest first */
	uint32_t segments, at; /* at: the next one. Written by the cleaner */
	/* Keys that were changed during earlier rebuilds, the oldest first: a bit for each hash, which is about records of
	   segments up to a sequence. Later records of the key count. */
	struct rebuild_changed {
		uint64_t *bits;
		uint64_t up_to;
	} changed[CHANGED_MOST];
	unsigned changes;
	uint64_t changed_bits; /* of each of them */
	uint64_t bytes, dead_bytes, dead_most; /* of all memory; of the lists of the dead, and the most they may take */
	uint32_t left_out; /* segments, for want of memory */
	bool no_memory;
	bool stopped; /* within a segment's walk, by a stop; the cleaner does nothing more */
	uint64_t began_us, objects, skipped, torn;
};

/* A segment's walk. */
struct rebuild_walk {
	struct store *store;
	struct rebuild *rebuild;
	const struct rebuild_segment *segment;
	uint32_t now_seconds;
	uint64_t records;
};

/* ---- the plan -------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct rebuild_segment *)a)->sequence, y = ((const struct rebuild_segment *)b)->sequence;

	return x < y ? 1 : x > y ? -1 : 0;
}

static struct rebuild_segment *segment_of(struct rebuild *rebuild, uint64_t sequence)
{
	const struct rebuild_segment wanted = { .sequence = sequence };

	return bsearch(&wanted, rebuild->segment, rebuild->segments, sizeof(wanted), newest_first);
}

static void forget_dead(struct rebuild *rebuild, struct rebuild_segment *segment)
{
	mem_free(segment->dead);
	segment->dead = NULL;
	rebuild->dead_bytes -= segment->room * sizeof(*segment->dead);
	segment->deads = segment->room = 0;
}

/* Makes room for one more dead record, for which the oldest segments may have to go. False: there is none; the segment may
   be gone. */
static bool plan_room(struct rebuild *rebuild, struct rebuild_segment *segment)
{
	uint64_t room = segment->room ? 2 * segment->room : 64, more = (room - segment->room) * sizeof(*segment->dead);
	uint32_t *dead;

	while (rebuild->segments > 0 && rebuild->dead_bytes + more > rebuild->dead_most) {
		struct rebuild_segment *oldest = &rebuild->segment[--rebuild->segments];

		forget_dead(rebuild, oldest);
		rebuild->left_out++;
		if (oldest == segment)
			return false;
	}
	dead = mem_realloc(segment->dead, room * sizeof(*dead));
	if (!dead) {
		rebuild->no_memory = true;
		return false;
	}
	rebuild->dead_bytes += more;
	segment->dead = dead;
	segment->room = room;
	return true;
}

static void plan_dead(struct rebuild *rebuild, const struct journal_entry *entry)
{
	struct rebuild_segment *segment = segment_of(rebuild, entry->value);

	if (segment && (segment->deads < segment->room || plan_room(rebuild, segment)))
		segment->dead[segment->deads++] = entry->small;
}

/* Makes room for one more: what the oldest says is from now on said of more segments, by which objects may get lost. */
static void merge_oldest(struct rebuild *rebuild)
{
	struct rebuild_changed *changed = rebuild->changed;

	for (uint64_t i = 0; i < rebuild->changed_bits / 64; i++)
		changed[1].bits[i] |= changed[0].bits[i];
	mem_free(changed[0].bits);
	memmove(&changed[0], &changed[1], --rebuild->changes * sizeof(changed[0]));
}

/* Returns the bits for records up to this sequence; NULL: memory is out. */
static uint64_t *changed_up_to(struct rebuild *rebuild, uint64_t up_to)
{
	struct rebuild_changed *changed = rebuild->changed;
	uint64_t *bits;
	unsigned at;

	for (unsigned i = 0; i < rebuild->changes; i++)
		if (changed[i].up_to == up_to)
			return changed[i].bits;
	bits = mem_zalloc(rebuild->changed_bits / 8);
	if (!bits)
		return NULL;
	if (rebuild->changes == CHANGED_MOST)
		merge_oldest(rebuild);
	for (at = rebuild->changes; at > 0 && changed[at - 1].up_to > up_to; at--)
		changed[at] = changed[at - 1];
	changed[at] = (struct rebuild_changed){ .bits = bits, .up_to = up_to };
	rebuild->changes++;
	return bits;
}

static void plan_changed(struct rebuild *rebuild, const struct journal_entry *entry)
{
	uint64_t up_to = (uint64_t)entry->segment << 32 | entry->small, bit = entry->value % rebuild->changed_bits;
	uint64_t *bits = changed_up_to(rebuild, up_to);

	if (bits)
		bits[bit / 64] |= 1ull << bit % 64;
	else
		rebuild->no_memory = true;
}

static void plan_entry(void *context, const struct journal_entry *entry)
{
	if (entry->kind == JOURNAL_DEAD)
		plan_dead(context, entry);
	else
		plan_changed(context, entry);
}

/* Makes the tables that the committed segments need, and notes each segment's. FS_OK, or a code of
   fidx_shape_tables. */
static int plan_tables(struct store *store, struct rebuild *rebuild, const struct journal_state *state)
{
	struct fidx_shape shape[FIDX_TABLES];
	unsigned shapes = 0, number[FIDX_TABLES];
	int result;

	for (uint32_t i = 0; i < rebuild->segments; i++) {
		uint32_t id = state->commit[rebuild->segment[i].segment].table;
		const struct journal_table *table = journal_state_table(state, id);
		unsigned t = 0;

		while (t < shapes && shape[t].id != id)
			t++;
		if (!table || t == FIDX_TABLES)
			return FS_ECORRUPT;
		if (t == shapes)
			shape[shapes++] = (struct fidx_shape){ .buckets = table->buckets, .id = id };
		rebuild->segment[i].table = t;
	}
	result = fidx_shape_tables(store->index, shape, shapes, number);
	for (uint32_t i = 0; i < rebuild->segments && result == FS_OK; i++)
		rebuild->segment[i].table = number[rebuild->segment[i].table];
	return result;
}

/* Lists the segments. FS_OK, FS_ENOMEM. */
static int plan_segments(struct rebuild *rebuild, const struct journal_state *state)
{
	rebuild->segment = mem_zalloc((state->segments + 1u) * sizeof(*rebuild->segment));
	if (!rebuild->segment)
		return FS_ENOMEM;
	for (uint32_t s = 0; s < state->segments; s++)
		if (state->commit[s].sequence > state->floor)
			rebuild->segment[rebuild->segments++] =
				(struct rebuild_segment){ .sequence = state->commit[s].sequence, .segment = s };
	qsort(rebuild->segment, rebuild->segments, sizeof(*rebuild->segment), newest_first);
	return FS_OK;
}

/* How much memory the plan may take. The index has its tables. */
static void plan_memory(struct store *store, struct rebuild *rebuild)
{
	uint64_t limit = store_memory_limit(store), used, least = memory_least_for_items(store, limit);
	uint64_t bytes = CHANGED_LEAST;

	tables_resume(store);
	used = store_used_bytes(store);
	while (bytes * 2 <= limit / CHANGED_SHARE && bytes < CHANGED_MOST_BYTES)
		bytes *= 2;
	rebuild->changed_bits = bytes * 8;
	least += CHANGED_MOST * bytes;
	rebuild->dead_most = used + least < limit ? (limit - used - least) / DEAD_SHARE : 0;
}

/* Reads the journal once more, for what is dead in the segments. FS_OK, or a code of journal_read. */
static int plan_losses(struct store *store, struct rebuild *rebuild, struct journal_state *state)
{
	struct journal_found again;
	struct seg_info info;
	int result;

	seg_get_info(store->segments, &info);
	result = journal_read(store->losses->medium, info.uuid, info.segments, plan_entry, rebuild, &again);
	if (result == FS_OK)
		journal_found_fini(&again);
	for (uint32_t i = 0; i < rebuild->left_out; i++) /* behind the others: nobody writes their losses down */
		state->commit[rebuild->segment[rebuild->segments + i].segment].sequence = 0;
	return rebuild->no_memory ? FS_ENOMEM : result;
}

/* Counts the memory of the plan as it is now. */
static void rebuild_account(struct store *store)
{
	struct rebuild *rebuild = store->rebuild;
	uint64_t bytes = sizeof(*rebuild) + (rebuild->segments + rebuild->left_out) * sizeof(*rebuild->segment) +
			 rebuild->dead_bytes + rebuild->changes * (rebuild->changed_bits / 8);

	atomic_fetch_add(&store->losses_bytes, bytes - rebuild->bytes);
	rebuild->bytes = bytes;
}

static void rebuild_free(struct store *store)
{
	struct rebuild *rebuild = store->rebuild;

	store->rebuild = NULL;
	if (store->losses) {
		losses_end_rebuild(store);
		atomic_fetch_sub(&store->losses_bytes, rebuild->bytes);
	}
	for (uint32_t i = 0; i < rebuild->segments; i++)
		mem_free(rebuild->segment[i].dead);
	mem_free(rebuild->segment);
	for (unsigned i = 0; i < rebuild->changes; i++)
		mem_free(rebuild->changed[i].bits);
	mem_free(rebuild);
}

/* Tables, memory and losses of the segments that are listed. */
static int plan_all(struct store *store, struct rebuild *rebuild, struct journal_state *state)
{
	const struct rebuild_segment *newest = &rebuild->segment[0];
	int result = plan_tables(store, rebuild, state);

	if (result == FS_OK)
		result = losses_begin_rebuild(store, newest->sequence);
	if (result != FS_OK)
		return result;
	plan_memory(store, rebuild);
	result = plan_losses(store, rebuild, state);
	if (result != FS_OK)
		return result;
	if (rebuild->left_out > 0)
		log_warn("flash: the rebuild leaves the oldest %" PRIu32
			 " segments out, because -m has no room for the list of what was changed in them",
			 rebuild->left_out);
	return rebuild->segments > 0 ? seg_adopt_begin(store->segments, newest->segment, newest->sequence) : FS_OK;
}

int rebuild_plan(struct store *store)
{
	struct journal_state *state = &store->losses->found.state;
	struct rebuild *rebuild = mem_zalloc(sizeof(*rebuild));
	int result = FS_ENOMEM;

	if (!rebuild)
		return FS_ENOMEM;
	store->rebuild = rebuild;
	rebuild->began_us = clk_now_us(store->clock);
	result = plan_segments(rebuild, state);
	if (result == FS_OK && rebuild->segments > 0)
		result = plan_all(store, rebuild, state);
	if (result != FS_OK || rebuild->segments == 0) {
		rebuild_free(store);
		return result;
	}
	store->rebuild_segments = rebuild->segments;
	rebuild_account(store);
	return FS_OK;
}

void rebuild_cancel(struct store *store)
{
	if (store->rebuild)
		rebuild_free(store);
}

/* ---- a segment ------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Has the journal anything against the record? */
static bool is_dead(const struct rebuild_walk *walk, uint64_t offset, uint64_t hash)
{
	const struct rebuild *rebuild = walk->rebuild;
	uint32_t at = (uint32_t)offset;
	uint64_t bit = hash % rebuild->changed_bits;

	if (walk->segment->deads && bsearch(&at, walk->segment->dead, walk->segment->deads, sizeof(at), ascending))
		return true;
	for (unsigned i = 0; i < rebuild->changes; i++)
		if (walk->segment->sequence <= rebuild->changed[i].up_to &&
		    rebuild->changed[i].bits[bit / 64] >> bit % 64 & 1)
			return true;
	return false;
}

static bool insert_record(const struct rebuild_walk *walk, const struct fidx_key *key, uint64_t offset, bool is_extent,
			  const struct seg_record *record)
{
	struct store *store = walk->store;
	uint32_t segment = walk->segment->segment;
	unsigned function;

	if (is_extent)
		return fidx_extent_insert(store->index, key, segment, offset,
					  (uint32_t)seg_record_length(record->key_length, record->value_length), 1);
	function = seg_function_at(store->segments, segment, fidx_place(store->index, key, segment), offset, 0);
	return function < store->config.functions &&
	       fidx_insert(store->index, key, segment, function, 1,
			   store->config.evict ? FIDX_DROP_COLDEST : FIDX_DROP_NONE);
}

static bool rebuild_visit(void *context, uint64_t offset, bool is_extent, const struct seg_record *record)
{
	struct rebuild_walk *walk = context;
	struct store *store = walk->store;
	uint64_t hash = store_hash(store, record->key, record->key_length);
	struct stripe *stripe = store_stripe(store, hash);
	struct fidx_key key;

	if (walk->records++ % STEP_OBJECTS == 0) {
		if (background_is_stopping(&store->cleaner->background))
			return false;
		cleaner_beat(store);
	}
	seg_note_record(store->segments, walk->segment->segment, offset,
			seg_record_length(record->key_length, record->value_length));
	if (is_dead(walk, offset, hash)) {
		walk->rebuild->skipped++;
		return true;
	}
	fidx_key_of(store->index, hash, &key);
	lock_acquire(&stripe->lock);
	if (losses_touched(store->losses, hash) ||
	    !store_alive(store, record->expiry, record->cas, walk->now_seconds)) {
		walk->rebuild->skipped++;
	} else if (insert_record(walk, &key, offset, is_extent, record)) {
		walk->rebuild->objects++;
		fault_kill(FAULT_killed_in_rebuild);
	} else {
		losses_dead(store, walk->segment->sequence, offset, key.tag);
		walk->rebuild->skipped++;
	}
	lock_release(&stripe->lock);
	return true;
}

static void rebuild_segment(struct store *store, struct rebuild *rebuild, struct rebuild_segment *segment)
{
	struct rebuild_walk walk = { .store = store,
				     .rebuild = rebuild,
				     .segment = segment,
				     .now_seconds = store_now_seconds(store, clk_now_us(store->clock)) };
	struct seg_adopted adopted;
	uint64_t visited;
	int result = seg_adopt(store->segments, segment->segment, segment->sequence, &adopted);

	if (result == FS_OK) {
		if (segment->deads)
			qsort(segment->dead, segment->deads, sizeof(*segment->dead), ascending);
		if (adopted.extents)
			(void)!fidx_extents_reserve(store->index, adopted.extents); /* then some find no room */
		fidx_segment_open(store->index, segment->segment, segment->table, segment->sequence,
				  adopted.objects ? (uint32_t)(adopted.record_bytes / adopted.objects) : 0,
				  adopted.filter, adopted.filter_length);
		units_opened(store, segment->segment);
		result = seg_walk(store->segments, segment->segment, rebuild_visit, &walk, &visited);
	}
	if (background_is_stopping(&store->cleaner->background))
		result = FS_EAGAIN;
	if (result == FS_EAGAIN && losses_rebuild_again(store)) {
		rebuild->stopped = true;
	} else if (result != FS_OK) {
		rebuild->torn++;
		losses_uncommitted(store, segment->segment, segment->sequence);
	}
	forget_dead(rebuild, segment);
	rebuild_account(store);
}

bool rebuild_step(struct store *store)
{
	struct rebuild *rebuild = store->rebuild;

	if (!rebuild)
		return false;
	if (rebuild->at > 0 && fault_fires(FAULT_rebuild_stands)) {
		cleaner_sleep(store, 1);
		return true;
	}
	if (rebuild->at < rebuild->segments) {
		if (!rebuild->stopped)
			rebuild_segment(store, rebuild, &rebuild->segment[rebuild->at]);
		if (rebuild->stopped)
			return true;
		rebuild->at++;
		atomic_fetch_add(&store->rebuilt_segments, 1);
	}
	if (rebuild->at == rebuild->segments) {
		log_notice("flash: rebuilt from %" PRIu32 " segments in %.3f s: %" PRIu64 " objects; %" PRIu64
			   " records were dead, %" PRIu64 " segments could not be read whole",
			   rebuild->segments, (double)(clk_now_us(store->clock) - rebuild->began_us) / 1e6,
			   rebuild->objects, rebuild->skipped, rebuild->torn);
		rebuild_free(store);
		tables_tidy(store);
	}
	return true;
}
