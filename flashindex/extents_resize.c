/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the table of extents by one twice as large, or half. Both are in use meanwhile: each entry of the old one is
 * written to the new one before it is emptied in the old one, with the stripes of both held, and lookups begin
 * with the old one. Entries of closed segments are dropped.
 *
 *   set groups of the new one -> epoch -> move, group by group -> set groups of the old one to 0 -> epoch -> free it
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/fault.h"
#include "flashindex/extents_internal.h"

#define GROUPS_LEAST 8u
/* Without relocation the first refusal comes at a load of about 0.75. */
#define LOAD_MOST 0.6
#define LOAD_LEAST 0.1

uint64_t extents_groups(uint64_t entries)
{
	uint64_t groups = (uint64_t)((double)entries / LOAD_MOST) / EXTENT_WAYS + 1;

	return entries == 0 ? 0 : groups < GROUPS_LEAST ? GROUPS_LEAST : groups;
}

static void set_groups(struct fidx *index, unsigned table, uint64_t groups)
{
	atomic_store(&index->kept->extent_groups[table], groups);
	atomic_store_explicit(&index->extents.table[table].groups, groups, memory_order_release);
	atomic_fetch_add_explicit(&index->extents.epoch, 1, memory_order_release);
}

/* Takes the locks of an old group and a new pair in the order of their addresses; some may be the same. */
static void lock_three(struct lock *lock[3])
{
	for (unsigned i = 1; i < 3; i++)
		for (unsigned j = i; j > 0 && lock[j - 1] > lock[j]; j--) {
			struct lock *swapped = lock[j];

			lock[j] = lock[j - 1];
			lock[j - 1] = swapped;
		}
	for (unsigned i = 0; i < 3; i++)
		if (i == 0 || lock[i] != lock[i - 1])
			lock_acquire(lock[i]);
}

static void unlock_three(struct lock *const lock[3])
{
	for (unsigned i = 0; i < 3; i++)
		if (i == 0 || lock[i] != lock[i - 1])
			lock_release(lock[i]);
}

/* Has a process that was killed in a move written this entry to the pair already? Stripes held. */
static bool extent_pair_has(const struct extent_pair *pair, uint64_t hash, uint64_t word)
{
	for (unsigned at = 0; at < EXTENT_PAIR_WAYS; at++) {
		struct extent_entry entry = extent_entry(pair, at);
		uint64_t there = extent_load(&entry.group->word[entry.way]);

		if (extent_load(&entry.group->hash[entry.way]) == hash && word_segment(there) == word_segment(word))
			return true;
	}
	return false;
}

/* Moves one entry to the new table. An entry that finds no free one there is lost: one in many thousands. */
static void move_entry(struct fidx *index, struct extent_entry from, uint64_t group, unsigned to)
{
	uint64_t hash = extent_load(&from.group->hash[from.way]), word;
	const struct extent_pair pair = extent_pair(index, to, extent_groups(&index->extents.table[to]), hash);
	struct extent_entry entry;
	struct lock *lock[3];

	lock[0] = extent_lock(index, group);
	lock[1] = pair.lock[0];
	lock[2] = pair.lock[1];
	lock_three(lock);
	word = extent_load(&from.group->word[from.way]);
	/* The entry may have gone meanwhile; none comes to the old table. */
	if (!word_is_empty(word)) {
		if (word_is_open(index, word) && !extent_pair_has(&pair, hash, word) &&
		    extent_pair_free(index, &pair, &entry)) {
			uint64_t replaced = extent_load(&entry.group->word[entry.way]);

			if (!word_is_empty(replaced)) /* its segment was closed after it was moved */
				entry_account(index, entry, replaced, -1);
			extent_store(&entry.group->word[entry.way], 0);
			extent_store(&entry.group->offset[entry.way], extent_load(&from.group->offset[from.way]));
			extent_store(&entry.group->word[entry.way], word);
			extent_store(&entry.group->hash[entry.way], hash);
			fault_kill(FAULT_killed_in_extent_move);
		} else {
			lose_extent(index, hash, word_segment(word), extent_load(&from.group->offset[from.way]));
			entry_account(index, from, word, -1);
		}
		extent_store(&from.group->word[from.way], 0);
		extent_store(&from.group->hash[from.way], 0);
	}
	unlock_three(lock);
}

/* Empties an entry whose new table has no groups. Such a move begins only when no extent is left, so an entry here is
   of a closed segment, or is what damage has left in the region. */
static void drop_entry(struct fidx *index, struct extent_entry from, uint64_t group)
{
	struct lock *lock = extent_lock(index, group);
	uint64_t word;

	lock_acquire(lock);
	word = extent_load(&from.group->word[from.way]);
	if (!word_is_empty(word)) {
		entry_account(index, from, word, -1);
		extent_store(&from.group->word[from.way], 0);
		extent_store(&from.group->hash[from.way], 0);
	}
	lock_release(lock);
}

/* Replaces the table by one of so many groups, which may be 0. Codes of region_commit. */
static int extents_resize_to(struct fidx *index, uint64_t groups)
{
	struct extents *extents = &index->extents;
	unsigned old = atomic_load_explicit(&extents->current, memory_order_relaxed), new = 1 - old;
	int error = region_commit(index->region, (enum region_area)(REGION_EXTENTS_0 + new),
				  groups * sizeof(struct extent_group));

	if (error)
		return error;
	must(old < EXTENT_TABLES && extent_groups(&extents->table[new]) == 0);
	set_groups(index, new, groups);
	atomic_store(&index->kept->extents_current, new);
	atomic_store_explicit(&extents->current, new, memory_order_release);
	atomic_fetch_add_explicit(&extents->epoch, 1, memory_order_release);
	extents_finish_move(index);
	return FS_OK;
}

void extents_finish_move(struct fidx *index)
{
	struct extents *extents = &index->extents;
	unsigned new = atomic_load_explicit(&extents->current, memory_order_relaxed), old = 1 - new;
	uint64_t old_groups = extent_groups(&extents->table[old]);

	must(new < EXTENT_TABLES);
	for (uint64_t g = 0; g < old_groups; g++)
		for (unsigned way = 0; way < EXTENT_WAYS; way++) {
			struct extent_entry entry = { &extents->table[old], &extents->table[old].group[g], way };

			if (word_is_empty(extent_load(&entry.group->word[way])))
				continue;
			if (extent_groups(&extents->table[new]) == 0)
				drop_entry(index, entry, g);
			else
				move_entry(index, entry, g, new);
		}
	set_groups(index, old, 0);
	/* A holder of a stripe may still be reading the old table. */
	for (unsigned i = 0; i < EXTENT_STRIPES; i++) {
		lock_acquire(&extents->stripe[i]);
		lock_release(&extents->stripe[i]);
	}
	region_decommit(index->region, (enum region_area)(REGION_EXTENTS_0 + old));
}

int fidx_extents_reserve(struct fidx *index, uint32_t more)
{
	struct extents *extents = &index->extents;
	const struct extent_table *table = &extents->table[atomic_load(&extents->current)];
	uint64_t present = extent_load(&extents->present), wanted = present + more, groups = extent_groups(table);
	uint64_t most = extents_groups(extents->most);

	if (fidx_is_counting(index))
		return FS_OK; /* nobody knows how many there are; none is inserted either */
	if (groups > GROUPS_LEAST && (double)wanted < LOAD_LEAST * (double)(groups * EXTENT_WAYS))
		return extents_resize_to(index, extents_groups(2 * wanted));
	if (more == 0 || groups >= extents_groups(wanted))
		return FS_OK;
	if (groups >= most)
		return FS_ERANGE;
	groups = extents_groups(2 * wanted);
	return extents_resize_to(index, groups < most ? groups : most);
}
