/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large objects: key hash -> segment, offset, length. A key has two groups of eight entries in a table. Lookups find
 * its hash there without a lock; all other fields are read and changed with the stripes of both
 * groups held. During a resize (extents_resize.c) there are two tables, and all calls look in the old one first.
 *
 * Two keys with the same 64-bit hash share an entry: the later one wins, and a reader of the
 * other finds a foreign record, which is a miss.
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "flashindex/extents_internal.h"

/* ---- accounting ------------------------------------------------------------------------------ */

void extent_account(struct fidx *index, uint64_t word, int sign)
{
	struct segment *segment = segment_at(index, word_segment(word));
	bool ghost = state_is_ghost(word_state(word));
	int64_t length = sign * (int64_t)word_length(word);

	must(!word_is_empty(word) && (sign == 1 || sign == -1));
	lock_acquire(&index->extents.sums_lock);
	must(sign > 0 || (atomic_load(&segment->extents) > 0 && segment->extent_bytes >= word_length(word)));
	must(sign > 0 || !ghost || segment->extent_ghosts > 0);
	atomic_fetch_add_explicit(&segment->extents, (uint32_t)sign, memory_order_release);
	segment->extent_ghosts += (uint32_t)(ghost ? sign : 0);
	segment->extent_bytes += (uint64_t)length;
	segment->extent_ghost_bytes += (uint64_t)(ghost ? length : 0);
	if (segment->extents_open) { /* otherwise the close has taken all of them off the sums */
		atomic_fetch_add_explicit(&index->extents.used, sign, memory_order_relaxed);
		segment_account_sums(index, 0, ghost ? sign : 0, length, ghost ? 0 : length);
	}
	atomic_fetch_add_explicit(&index->extents.present, (uint64_t)(int64_t)sign, memory_order_release);
	lock_release(&index->extents.sums_lock);
}

void extents_segment_open(struct fidx *index, struct segment *segment)
{
	lock_acquire(&index->extents.sums_lock);
	must(!segment->extents_open);
	segment->extents_open = true;
	lock_release(&index->extents.sums_lock);
}

void extents_segment_close(struct fidx *index, struct segment *segment)
{
	lock_acquire(&index->extents.sums_lock);
	must(segment->extents_open);
	segment->extents_open = false;
	atomic_fetch_sub_explicit(&index->extents.used, atomic_load(&segment->extents), memory_order_relaxed);
	segment_account_sums(index, 0, -(int64_t)segment->extent_ghosts, -(int64_t)segment->extent_bytes,
			     -(int64_t)(segment->extent_bytes - segment->extent_ghost_bytes));
	lock_release(&index->extents.sums_lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

void extents_init(struct fidx *index, uint32_t most)
{
	struct extents *extents = &index->extents;

	extents->most = most;
	for (unsigned t = 0; t < EXTENT_TABLES; t++) {
		extents->table[t].group = region_area(index->region, (enum region_area)(REGION_EXTENTS_0 + t));
		atomic_init(&extents->table[t].counted, ALL_COUNTED);
	}
	lock_init(&extents->sums_lock, LOCK_LEAF);
	for (unsigned i = 0; i < EXTENT_STRIPES; i++)
		lock_init(&extents->stripe[i], LOCK_INDEX_STRIPE);
	extents->ready = true;
}

void extents_fini(struct extents *extents)
{
	if (!extents->ready)
		return;
	for (unsigned i = 0; i < EXTENT_STRIPES; i++)
		lock_fini(&extents->stripe[i]);
	lock_fini(&extents->sums_lock);
}

uint64_t extents_ways(const struct fidx *index)
{
	uint64_t groups = 0;

	for (unsigned t = 0; t < EXTENT_TABLES; t++)
		groups += extent_groups(&index->extents.table[t]);
	return groups * EXTENT_WAYS;
}

/* ---- pairs of groups ------------------------------------------------------------------------- */

/* Is there an entry with this hash? Without a lock; an entry that is there throughout is found. */
static bool pair_has_hash(const struct extent_pair *pair, uint64_t hash)
{
	for (unsigned at = 0; at < EXTENT_PAIR_WAYS; at++) {
		struct extent_entry entry = extent_entry(pair, at);

		if (extent_load(&entry.group->hash[entry.way]) == hash)
			return true;
	}
	return false;
}

/* The table that entries leave during a resize, and that is unused otherwise. Call it after reading the epoch: a caller
   with an outdated answer sees the epoch change. */
static unsigned old_table(const struct fidx *index)
{
	return 1 - atomic_load_explicit(&index->extents.current, memory_order_acquire);
}

static bool table_has_hash(struct fidx *index, unsigned table, uint64_t hash)
{
	uint64_t groups = extent_groups(&index->extents.table[table]);

	if (groups == 0)
		return false;
	const struct extent_pair pair = extent_pair(index, table, groups, hash);
	return pair_has_hash(&pair, hash);
}

/* May there be an extent with this hash? Without a lock. */
static bool may_be_there(struct fidx *index, uint64_t hash)
{
	const struct extents *extents = &index->extents;
	uint32_t epoch;
	bool there;

	if (extent_load(&extents->present) == 0)
		return false;
	do {
		epoch = atomic_load_explicit(&extents->epoch, memory_order_acquire);
		unsigned old = old_table(index);
		there = table_has_hash(index, old, hash) || table_has_hash(index, 1 - old, hash);
	} while (!there && atomic_load_explicit(&extents->epoch, memory_order_acquire) != epoch);
	return there;
}

/* Empties an entry and accounts it. Stripes held. */
static void entry_empty(struct fidx *index, struct extent_entry entry)
{
	lose_extent(index, extent_load(&entry.group->hash[entry.way]),
		    word_segment(extent_load(&entry.group->word[entry.way])),
		    extent_load(&entry.group->offset[entry.way]));
	entry_account(index, entry, extent_load(&entry.group->word[entry.way]), -1);
	extent_store(&entry.group->word[entry.way], 0);
	extent_store(&entry.group->hash[entry.way], 0);
}

/* Finds the entry of this hash in an open segment. Stripes held. */
static bool pair_find(struct fidx *index, const struct extent_pair *pair, uint64_t hash, struct extent_entry *out)
{
	for (unsigned at = 0; at < EXTENT_PAIR_WAYS; at++) {
		uint64_t word;

		*out = extent_entry(pair, at);
		if (extent_load(&out->group->hash[out->way]) != hash)
			continue;
		word = extent_load(&out->group->word[out->way]);
		if (word_is_open(index, word) &&
		    extent_is_sound(index, word, extent_load(&out->group->offset[out->way])))
			return true;
	}
	return false;
}

/*
 * Calls act, with the stripes held, for the entry of this hash in an open segment: first in the old table, then in the
 * current one, because an entry moves in that direction. Returns true when act does; false when there was no entry,
 * or act returned false. Looks again after a resize meanwhile.
 */
typedef bool act_function(struct fidx *index, struct extent_entry entry, void *context);

static bool with_entry(struct fidx *index, uint64_t hash, act_function *act, void *context)
{
	const struct extents *extents = &index->extents;
	bool done = false;
	uint32_t epoch;

	if (!may_be_there(index, hash))
		return false;
	do {
		epoch = atomic_load_explicit(&extents->epoch, memory_order_acquire);
		unsigned old = old_table(index);
		for (unsigned n = 0; n < EXTENT_TABLES && !done; n++) {
			struct extent_entry entry;
			struct extent_pair pair;

			if (!extent_pair_acquire(index, n ? 1 - old : old, hash, &pair))
				continue;
			if (pair_find(index, &pair, hash, &entry))
				done = act(index, entry, context);
			extent_pair_release(&pair);
		}
	} while (!done && atomic_load_explicit(&extents->epoch, memory_order_acquire) != epoch);
	return done;
}

/* ---- the interface --------------------------------------------------------------------------- */

static bool extent_describe(struct fidx *index, struct extent_entry entry, void *context)
{
	struct fidx_extent *out = context;
	uint64_t word = extent_load(&entry.group->word[entry.way]);
	unsigned state = word_state(word);

	out->segment = word_segment(word);
	out->sequence = segment_sequence(index, out->segment);
	out->offset = extent_load(&entry.group->offset[entry.way]);
	out->length = word_length(word);
	out->clock = (uint8_t)state_clock(state);
	out->ghost = state_is_ghost(state);
	out->read_on_flash = state_is_read(state);
	return out->sequence != SEGMENT_CLOSED;
}

bool fidx_extent_find(struct fidx *index, const struct fidx_key *key, struct fidx_extent *out)
{
	return with_entry(index, key->hash, extent_describe, out);
}

static bool extent_empty(struct fidx *index, struct extent_entry entry, void *context)
{
	(void)context;
	entry_empty(index, entry);
	return true;
}

unsigned extents_clear(struct fidx *index, uint64_t hash)
{
	unsigned cleared = 0;

	while (with_entry(index, hash, extent_empty, NULL))
		cleared++;
	return cleared;
}

/* An entry by its location. */
struct placed {
	uint32_t segment;
	uint64_t offset;
	bool revived;
};

static bool lies_at(struct extent_entry entry, const struct placed *placed)
{
	return word_segment(extent_load(&entry.group->word[entry.way])) == placed->segment &&
	       extent_load(&entry.group->offset[entry.way]) == placed->offset;
}

static bool extent_empty_at(struct fidx *index, struct extent_entry entry, void *context)
{
	if (!lies_at(entry, context))
		return false;
	entry_empty(index, entry);
	return true;
}

bool fidx_extent_remove(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset)
{
	struct placed placed = { segment, offset, false };
	bool removed = false;

	/* A process that was killed in a move has left it in both tables. */
	while (with_entry(index, key->hash, extent_empty_at, &placed))
		removed = true;
	return removed;
}

/* Changes the state of an entry, which may make a ghost or revive one. Stripe held. */
static void entry_set_state(struct fidx *index, struct extent_entry entry, unsigned state)
{
	uint64_t word = extent_load(&entry.group->word[entry.way]);
	uint64_t changed = (word & ~(uint64_t)STATE_MASK) | state;
	bool counts = state_is_ghost(state) != state_is_ghost(word_state(word));

	if (counts)
		entry_account(index, entry, word, -1);
	extent_store(&entry.group->word[entry.way], changed);
	if (counts)
		entry_account(index, entry, changed, 1);
}

static bool extent_touch_at(struct fidx *index, struct extent_entry entry, void *context)
{
	struct placed *placed = context;
	unsigned state = word_state(extent_load(&entry.group->word[entry.way]));

	if (!lies_at(entry, placed))
		return false;
	placed->revived = state_is_ghost(state);
	entry_set_state(index, entry, state_after_hit(state, index->clock_mode));
	return true;
}

bool fidx_extent_touch(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset)
{
	struct placed placed = { segment, offset, false };

	(void)with_entry(index, key->hash, extent_touch_at, &placed);
	if (placed.revived)
		ctr_add(CTR_flash_ghosts_revived, 1);
	return placed.revived;
}

/* Finds an entry to write: the same key's, otherwise a free one of the group with more free ones. Stripes held. */
static bool choose_entry(struct fidx *index, const struct extent_pair *pair, uint64_t hash, struct extent_entry *out)
{
	return pair_find(index, pair, hash, out) || extent_pair_free(index, pair, out);
}

/* The inserting thread is also the one that resizes, so that there is no old table now. */
bool fidx_extent_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset,
			uint32_t length, unsigned clock)
{
	uint64_t word = word_of(segment, length, state_unread(clock));
	struct extent_entry entry;
	struct extent_pair pair;
	bool chosen;

	must(segment < index->segments && clock <= CLOCK_MAX);
	must(segment_sequence(index, segment) != SEGMENT_CLOSED && !fidx_is_counting(index));
	if (!extent_pair_acquire(index, 1 - old_table(index), key->hash, &pair))
		return false;
	chosen = choose_entry(index, &pair, key->hash, &entry);
	if (chosen) {
		uint64_t old = extent_load(&entry.group->word[entry.way]);

		/* The hash stays while a key's entry is replaced, so that no lookup misses it meanwhile. */
		if (!word_is_empty(old)) {
			lose_extent(index, extent_load(&entry.group->hash[entry.way]), word_segment(old),
				    extent_load(&entry.group->offset[entry.way]));
			extent_account(index, old, -1);
		}
		extent_account(index, word, 1);
		/* A killed process leaves an empty entry or a whole one. */
		extent_store(&entry.group->word[entry.way], 0);
		extent_store(&entry.group->offset[entry.way], offset);
		extent_store(&entry.group->word[entry.way], word);
		extent_store(&entry.group->hash[entry.way], key->hash);
	}
	extent_pair_release(&pair);
	return chosen;
}

/* ---- for the rest of the index --------------------------------------------------------------- */

/* The cleaner sweeps and resizes, so that only one table is in use now. */
uint64_t extents_sweep(struct fidx *index, uint32_t segment)
{
	const struct extent_table *table = &index->extents.table[1 - old_table(index)];
	uint64_t swept = 0, groups = extent_groups(table);

	for (uint64_t g = 0; g < groups; g++) {
		struct extent_group *group = &table->group[g];
		struct lock *lock = extent_lock(index, g);

		lock_acquire(lock);
		for (unsigned i = 0; i < EXTENT_WAYS; i++)
			if (word_segment(extent_load(&group->word[i])) == segment) {
				entry_empty(index, (struct extent_entry){ table, group, i });
				swept++;
			}
		lock_release(lock);
	}
	return swept;
}

/* Entry number at of both tables, and its group's number. False: there is none by now. */
static bool entry_at(const struct fidx *index, uint64_t at, struct extent_entry *entry, uint64_t *group)
{
	for (unsigned t = 0; t < EXTENT_TABLES; t++) {
		const struct extent_table *table = &index->extents.table[t];
		uint64_t ways = extent_groups(table) * EXTENT_WAYS;

		if (at < ways) {
			*group = at / EXTENT_WAYS;
			*entry = (struct extent_entry){ table, &table->group[*group], at % EXTENT_WAYS };
			return true;
		}
		at -= ways;
	}
	return false;
}

bool extents_hand(struct fidx *index, uint64_t at, uint64_t *ghost_bytes, bool *made_ghost)
{
	struct extent_entry entry;
	uint64_t group, word;
	unsigned after;
	bool live;

	if (!entry_at(index, at, &entry, &group) || word_is_empty(extent_load(&entry.group->word[entry.way])))
		return false;
	lock_acquire(extent_lock(index, group));
	word = extent_load(&entry.group->word[entry.way]);
	live = word_is_open(index, word) && !state_is_ghost(word_state(word));
	if (live) {
		after = state_after_hand(word_state(word), *ghost_bytes > 0);
		*made_ghost = state_is_ghost(after);
		entry_set_state(index, entry, after);
		must(!*made_ghost || *ghost_bytes > 0);
		if (*made_ghost)
			*ghost_bytes -= *ghost_bytes < word_length(word) ? *ghost_bytes : word_length(word);
	}
	lock_release(extent_lock(index, group));
	return live;
}

bool extents_pick(struct fidx *index, uint64_t at, struct fidx_picked *out)
{
	struct extent_entry entry;
	uint64_t group, word, offset;

	if (!entry_at(index, at, &entry, &group) || word_is_empty(extent_load(&entry.group->word[entry.way])))
		return false;
	lock_acquire(extent_lock(index, group));
	word = extent_load(&entry.group->word[entry.way]);
	offset = extent_load(&entry.group->offset[entry.way]);
	lock_release(extent_lock(index, group));
	if (!word_is_open(index, word) || state_is_ghost(word_state(word)) || !extent_is_sound(index, word, offset))
		return false;
	*out = (struct fidx_picked){ .match = { .sequence = segment_sequence(index, word_segment(word)),
						.segment = word_segment(word),
						.clock = state_clock(word_state(word)) & CLOCK_MAX,
						.read_on_flash = state_is_read(word_state(word)) },
				     .is_extent = true,
				     .offset = offset,
				     .length = word_length(word) };
	return out->match.sequence != SEGMENT_CLOSED;
}

void extents_visit(const struct fidx *index,
		   void (*visit)(void *context, uint32_t segment, bool ghost, uint32_t length), void *context)
{
	struct extent_entry entry;
	uint64_t group;

	for (uint64_t at = 0; entry_at(index, at, &entry, &group); at++) {
		uint64_t word = extent_load(&entry.group->word[entry.way]);

		if (!word_is_empty(word) && group < extent_load(&entry.table->counted))
			visit(context, word_segment(word), state_is_ghost(word_state(word)), word_length(word));
	}
}
