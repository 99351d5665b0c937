/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known collisions: the owner of each slot that once deceived a lookup.
 *
 * An entry says: (place, segment, sequence, function) leads to a record of the key with
 * this hash. That can't become wrong, since these four name one position of one life of one
 * segment. Entries of dead segments match nothing any more and are overwritten in time; a full set
 * forgets its entries in turn, which costs a read and never an answer.
 */
#include "flashindex/flashindex.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "flashindex/index_internal.h"

/* A match's identity as one number. */
static uint64_t identity(const struct fidx_match *match)
{
	uint64_t where = match->sequence ^ (uint64_t)match->segment << 44 ^ (uint64_t)match->function << 60;

	return mix64(match->place + mix64(where + UINT64_C(0x9e3779b97f4a7c15))) | 1; /* never an empty entry's */
}

static unsigned set_of(uint64_t id)
{
	return (unsigned)(id >> 32) % EXACT_SETS;
}

static uint64_t word_load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* True: the entry has this id, and *owner is its owner. */
static bool entry_get(const struct exact_entry *entry, uint64_t id, uint64_t *owner)
{
	*owner = word_load(&entry->owner);
	return (word_load(&entry->check) ^ *owner) == id;
}

int exact_create(struct exact **out)
{
	*out = mem_zalloc(sizeof(**out));
	if (!*out)
		return FS_ENOMEM;
	lock_init(&(*out)->lock, LOCK_LEAF);
	return 0;
}

void exact_destroy(struct exact *exact)
{
	if (!exact)
		return;
	lock_fini(&exact->lock);
	mem_free(exact);
}

bool exact_rejects(const struct exact *exact, const struct fidx_match *match, uint64_t hash)
{
	uint64_t id, owner;

	if (!atomic_load_explicit(&exact->learned, memory_order_relaxed))
		return false;
	id = identity(match);
	for (unsigned i = 0; i < EXACT_WAYS; i++)
		if (entry_get(&exact->entry[set_of(id)][i], id, &owner))
			return owner != hash;
	return false;
}

void fidx_learn(struct fidx *index, const struct fidx_match *match, uint64_t owner_hash)
{
	struct exact *exact = index->exact;
	uint64_t id = identity(match);
	struct exact_entry *set = exact->entry[set_of(id)], *into = NULL;
	uint64_t owner;
	bool known = false;

	must(match->segment < index->segments && match->sequence != SEGMENT_CLOSED);
	if (index->filter_units)
		atomic_fetch_add_explicit(&segment_at(index, match->segment)->asked, 1, memory_order_relaxed);
	lock_acquire(&exact->lock);
	for (unsigned i = 0; i < EXACT_WAYS && !known; i++) {
		known = entry_get(&set[i], id, &owner);
		if (!into && !word_load(&set[i].check) && !word_load(&set[i].owner))
			into = &set[i];
	}
	if (!known) {
		if (!into)
			into = &set[exact->next++ % EXACT_WAYS];
		atomic_store_explicit(&into->owner, owner_hash, memory_order_relaxed);
		atomic_store_explicit(&into->check, id ^ owner_hash, memory_order_relaxed);
		atomic_store_explicit(&exact->learned, word_load(&exact->learned) + 1, memory_order_relaxed);
	}
	lock_release(&exact->lock);
}
