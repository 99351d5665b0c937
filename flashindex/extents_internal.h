/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, entries, and pairs of groups with their stripes, for extents.c and extents_resize.c. */
#ifndef FS_FLASHINDEX_EXTENTS_INTERNAL_H
#define FS_FLASHINDEX_EXTENTS_INTERNAL_H

#include "flashindex/index_internal.h"

#define WORD_SEGMENT_SHIFT 3
#define WORD_SEGMENT_MASK 0x3fffu
#define WORD_LENGTH_SHIFT 32
#define EXTENT_PAIR_WAYS (2 * EXTENT_WAYS)

/* ---- words ----------------------------------------------------------------------------------- */

/* word_of makes the word of an extent; the functions below it return the word's parts. */
static inline uint64_t word_of(uint32_t segment, uint32_t length, unsigned state)
{
	return (uint64_t)length << WORD_LENGTH_SHIFT | (uint64_t)(segment + 1) << WORD_SEGMENT_SHIFT | state;
}

/* Returns UINT32_MAX for an empty word. */
static inline uint32_t word_segment(uint64_t word)
{
	return ((uint32_t)(word >> WORD_SEGMENT_SHIFT) & WORD_SEGMENT_MASK) - 1;
}

static inline uint32_t word_length(uint64_t word)
{
	return (uint32_t)(word >> WORD_LENGTH_SHIFT);
}

static inline unsigned word_state(uint64_t word)
{
	return (unsigned)word & STATE_MASK;
}

static inline bool word_is_empty(uint64_t word)
{
	return word_segment(word) == UINT32_MAX;
}

/* Does the word name an open segment? */
static inline bool word_is_open(const struct fidx *index, uint64_t word)
{
	return word_segment(word) < index->segments && segment_sequence(index, word_segment(word)) != SEGMENT_CLOSED;
}

/* Does the extent lie within its segment? Of an extent that isn't counted yet, any bit may be wrong. */
static inline bool extent_is_sound(const struct fidx *index, uint64_t word, uint64_t offset)
{
	return offset <= index->segment_bytes && word_length(word) <= index->segment_bytes - offset;
}

/* Read and write a field atomically, with acquire and release. */
static inline uint64_t extent_load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static inline void extent_store(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_release);
}

/* Adds an entry's word to the counts and sums (sign 1), or takes it off (-1). The stripe of its group is held; takes
   the leaf sums_lock. */
void extent_account(struct fidx *index, uint64_t word, int sign);

/* ---- entries and pairs ----------------------------------------------------------------------- */

struct extent_entry {
	const struct extent_table *table;
	struct extent_group *group;
	unsigned way;
};

/* Does so for an entry of a table, unless it is not counted yet. */
static inline void entry_account(struct fidx *index, struct extent_entry entry, uint64_t word, int sign)
{
	if ((uint64_t)(entry.group - entry.table->group) < extent_load(&entry.table->counted))
		extent_account(index, word, sign);
}

/* The two groups of a hash in a table, which may be the same. */
struct extent_pair {
	const struct extent_table *table;
	struct extent_group *group[2];
	struct lock *lock[2];
};

/* Returns the number of groups; 0: the table is not in use. */
static inline uint64_t extent_groups(const struct extent_table *table)
{
	return extent_load(&table->groups);
}

/* Returns the stripe of a group. Both tables share the stripes. */
static inline struct lock *extent_lock(struct fidx *index, uint64_t group)
{
	return &index->extents.stripe[group % EXTENT_STRIPES];
}

/* Returns the pair of a hash in a table with so many groups, 1 or more. Takes no lock. */
static inline struct extent_pair extent_pair(struct fidx *index, unsigned table, uint64_t groups, uint64_t hash)
{
	uint64_t mixed = mix64(hash ^ index->tag_seed);
	struct extent_pair pair = { .table = &index->extents.table[table] };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t number = reduce64(i ? mix64(mixed) : mixed, groups);

		pair.group[i] = &pair.table->group[number];
		pair.lock[i] = extent_lock(index, number);
	}
	return pair;
}

/* Finds the pair of a hash and acquires both stripes, until extent_pair_release; the size of the table is still the one
   that the pair follows from. False: the table is not in use, and no stripe is held. */
static inline bool extent_pair_acquire(struct fidx *index, unsigned table, uint64_t hash, struct extent_pair *out)
{
	for (;;) {
		uint64_t groups = extent_groups(&index->extents.table[table]);

		if (groups == 0)
			return false;
		*out = extent_pair(index, table, groups, hash);
		lock_two(out->lock[0], out->lock[1]);
		if (extent_groups(&index->extents.table[table]) == groups)
			return true;
		unlock_two(out->lock[0], out->lock[1]);
	}
}

/* Releases both stripes. */
static inline void extent_pair_release(const struct extent_pair *pair)
{
	unlock_two(pair->lock[0], pair->lock[1]);
}

/* Returns entry number `at`, 0 .. EXTENT_PAIR_WAYS - 1, of the pair. When both groups are the same, each entry comes
   twice. */
static inline struct extent_entry extent_entry(const struct extent_pair *pair, unsigned at)
{
	return (struct extent_entry){ pair->table, pair->group[at / EXTENT_WAYS], at % EXTENT_WAYS };
}

/* Finds an entry that is empty or of a closed segment, in the group with more of them. Stripes held. False: none. */
static inline bool extent_pair_free(const struct fidx *index, const struct extent_pair *pair, struct extent_entry *out)
{
	unsigned free_entries[2] = { 0, 0 };
	struct extent_entry first_free[2] = { { NULL, NULL, 0 }, { NULL, NULL, 0 } };
	unsigned group;

	for (unsigned at = 0; at < EXTENT_PAIR_WAYS; at++) {
		struct extent_entry entry = extent_entry(pair, at);

		group = at / EXTENT_WAYS;
		if (word_is_open(index, extent_load(&entry.group->word[entry.way])))
			continue;
		if (!free_entries[group]++)
			first_free[group] = entry;
	}
	group = free_entries[1] > free_entries[0];
	*out = first_free[group];
	return free_entries[group] > 0;
}

#endif
