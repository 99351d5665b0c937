/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large objects: key hash -> segment, offset, length. Two groups of eight per key; entries never
 * move, and one that is there is seen at the hash's place without a lock. Everything but the hash
 * is read and changed with the stripes of both groups held.
 *
 * Two keys with the same 64-bit hash share an entry: the later one wins, and the reader of the
 * other finds a foreign record, which is a miss.
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "conf/counters.h"
#include "flashindex/index_internal.h"

#define WORD_EMPTY UINT64_MAX
#define WORD_SEGMENT_SHIFT 3
#define WORD_SEGMENT_MASK 0x3fffu
#define WORD_LENGTH_SHIFT 32

/* ---- words ----------------------------------------------------------------------------------- */

static uint32_t word_segment(uint64_t word)
{
	return (uint32_t)(word >> WORD_SEGMENT_SHIFT) & WORD_SEGMENT_MASK;
}

static uint32_t word_length(uint64_t word)
{
	return (uint32_t)(word >> WORD_LENGTH_SHIFT);
}

static unsigned word_state(uint64_t word)
{
	return (unsigned)word & STATE_MASK;
}

static bool word_is_empty(uint64_t word)
{
	return word_segment(word) == WORD_SEGMENT_MASK;
}

static bool word_is_open(const struct fidx *index, uint64_t word)
{
	return !word_is_empty(word) && segment_sequence(index, word_segment(word)) != SEGMENT_CLOSED;
}

static uint64_t load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_release);
}

/* ---- accounting ------------------------------------------------------------------------------ */

/* What an entry adds (sign 1) or takes (-1). Its group's stripe held. */
static void account(struct fidx *index, uint64_t word, int sign)
{
	struct segment *segment = &index->segment[word_segment(word)];
	bool ghost = state_is_ghost(word_state(word));
	int64_t length = sign * (int64_t)word_length(word);

	lock_acquire(&index->extents.sums_lock);
	atomic_fetch_add_explicit(&segment->extents, (uint32_t)sign, memory_order_release);
	segment->extent_ghosts += (uint32_t)(ghost ? sign : 0);
	segment->extent_bytes += (uint64_t)length;
	segment->extent_ghost_bytes += (uint64_t)(ghost ? length : 0);
	if (segment->extents_open) { /* else the close has taken all of them off the sums */
		atomic_fetch_add_explicit(&index->extents.used, sign, memory_order_relaxed);
		segment_account_sums(index, 0, ghost ? sign : 0, length, ghost ? 0 : length, 0);
	}
	atomic_fetch_add_explicit(&index->extents.present, (uint64_t)(int64_t)sign, memory_order_release);
	lock_release(&index->extents.sums_lock);
}

void extents_segment_open(struct fidx *index, struct segment *segment)
{
	lock_acquire(&index->extents.sums_lock);
	segment->extents_open = true;
	lock_release(&index->extents.sums_lock);
}

void extents_segment_close(struct fidx *index, struct segment *segment)
{
	lock_acquire(&index->extents.sums_lock);
	segment->extents_open = false;
	atomic_fetch_sub_explicit(&index->extents.used, atomic_load(&segment->extents),
				  memory_order_relaxed);
	segment_account_sums(index, 0, -(int64_t)segment->extent_ghosts, -(int64_t)segment->extent_bytes,
			     -(int64_t)(segment->extent_bytes - segment->extent_ghost_bytes), 0);
	lock_release(&index->extents.sums_lock);
}

/* ---- groups ---------------------------------------------------------------------------------- */

uint64_t extents_groups(uint32_t capacity)
{
	/* Without relocation the first refusal comes at about 0.75: a quarter more, and few come earlier.
	 */
	uint64_t entries = capacity + capacity / 4 + 1;

	return capacity ? (entries + EXTENT_WAYS - 1) / EXTENT_WAYS : 0;
}

int extents_init(struct fidx *index, uint32_t capacity, void *memory)
{
	struct extents *extents = &index->extents;

	extents->group = memory;
	extents->groups = extents_groups(capacity);
	lock_init(&extents->sums_lock, LOCK_LEAF);
	for (unsigned i = 0; i < EXTENT_STRIPES; i++)
		lock_init(&extents->stripe[i], LOCK_INDEX_STRIPE);
	for (uint64_t g = 0; g < extents->groups; g++)
		for (unsigned i = 0; i < EXTENT_WAYS; i++) {
			atomic_init(&extents->group[g].hash[i], 0);
			atomic_init(&extents->group[g].offset[i], 0);
			atomic_init(&extents->group[g].word[i], WORD_EMPTY);
		}
	extents->ready = true;
	return 0;
}

void extents_fini(struct extents *extents)
{
	if (!extents->ready)
		return;
	for (unsigned i = 0; i < EXTENT_STRIPES; i++)
		lock_fini(&extents->stripe[i]);
	lock_fini(&extents->sums_lock);
}

/* The two groups of a hash, which may be one. */
struct pair {
	uint64_t group[2];
};

static struct pair pair_of(const struct fidx *index, uint64_t hash)
{
	uint64_t mixed = mix64(hash ^ index->tag_seed);

	return (struct pair){
		{reduce64(mixed, index->extents.groups), reduce64(mix64(mixed), index->extents.groups)}};
}

static struct lock *group_lock(struct fidx *index, uint64_t group)
{
	return &index->extents.stripe[group % EXTENT_STRIPES];
}

static void pair_acquire(struct fidx *index, struct pair pair)
{
	lock_two(group_lock(index, pair.group[0]), group_lock(index, pair.group[1]));
}

static void pair_release(struct fidx *index, struct pair pair)
{
	unlock_two(group_lock(index, pair.group[0]), group_lock(index, pair.group[1]));
}

/* One entry of the pair, 0 .. 2 * EXTENT_WAYS - 1; with one group, each twice. */
struct entry {
	struct extent_group *group;
	unsigned way;
};

static struct entry pair_entry(const struct fidx *index, struct pair pair, unsigned at)
{
	return (struct entry){&index->extents.group[pair.group[at / EXTENT_WAYS]], at % EXTENT_WAYS};
}

/* Without a lock: is there anything with this hash? Nothing is missed that is there throughout. */
static bool pair_has_hash(const struct fidx *index, struct pair pair, uint64_t hash)
{
	for (unsigned at = 0; at < 2 * EXTENT_WAYS; at++) {
		struct entry entry = pair_entry(index, pair, at);

		if (load(&entry.group->hash[entry.way]) == hash)
			return true;
	}
	return false;
}

static bool anything_present(const struct fidx *index)
{
	return load(&index->extents.present) != 0;
}

/* Stripe held. */
static void entry_empty(struct fidx *index, struct entry entry)
{
	account(index, load(&entry.group->word[entry.way]), -1);
	store(&entry.group->word[entry.way], WORD_EMPTY);
	store(&entry.group->hash[entry.way], 0);
}

/* Stripes held. The open entry of this hash. */
static bool pair_find(struct fidx *index, struct pair pair, uint64_t hash, struct entry *out)
{
	for (unsigned at = 0; at < 2 * EXTENT_WAYS; at++) {
		*out = pair_entry(index, pair, at);
		if (load(&out->group->hash[out->way]) == hash &&
		    word_is_open(index, load(&out->group->word[out->way])))
			return true;
	}
	return false;
}

/* As pair_find, if it is also at this place. */
static bool pair_find_at(struct fidx *index, struct pair pair, uint64_t hash, uint32_t segment,
			 uint64_t offset, struct entry *out)
{
	return pair_find(index, pair, hash, out) &&
	       word_segment(load(&out->group->word[out->way])) == segment &&
	       load(&out->group->offset[out->way]) == offset;
}

/* Takes the stripes of a hash's groups, if it is there at all. True: taken. */
static bool acquire_if_present(struct fidx *index, uint64_t hash, struct pair *pair)
{
	if (!anything_present(index))
		return false;
	*pair = pair_of(index, hash);
	if (!pair_has_hash(index, *pair, hash))
		return false;
	pair_acquire(index, *pair);
	return true;
}

/* ---- the interface --------------------------------------------------------------------------- */

bool fidx_extent_find(struct fidx *index, const struct fidx_key *key, struct fidx_extent *out)
{
	struct entry entry;
	struct pair pair;
	bool found;

	if (!acquire_if_present(index, key->hash, &pair))
		return false;
	found = pair_find(index, pair, key->hash, &entry);
	if (found) {
		uint64_t word = load(&entry.group->word[entry.way]);
		unsigned state = word_state(word);

		out->segment = word_segment(word);
		out->sequence = segment_sequence(index, out->segment);
		out->offset = load(&entry.group->offset[entry.way]);
		out->length = word_length(word);
		out->clock = (uint8_t)state_clock(state);
		out->ghost = state_is_ghost(state);
		out->read_on_flash = state_is_read(state);
		found = out->sequence != SEGMENT_CLOSED;
	}
	pair_release(index, pair);
	return found;
}

/* Stripes held. The same key's place first, else a free one of the group with more of them. */
static bool choose_entry(struct fidx *index, struct pair pair, uint64_t hash, struct entry *out)
{
	unsigned free_entries[2] = {0, 0};
	struct entry first_free[2] = {{NULL, 0}, {NULL, 0}};
	unsigned group;

	if (pair_find(index, pair, hash, out))
		return true;
	for (unsigned at = 0; at < 2 * EXTENT_WAYS; at++) {
		struct entry entry = pair_entry(index, pair, at);

		group = at / EXTENT_WAYS;
		if (word_is_open(index, load(&entry.group->word[entry.way])))
			continue;
		if (!free_entries[group]++)
			first_free[group] = entry;
	}
	group = free_entries[1] > free_entries[0];
	*out = first_free[group];
	return free_entries[group] > 0;
}

bool fidx_extent_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset,
			uint32_t length, unsigned clock)
{
	uint64_t word = (uint64_t)length << WORD_LENGTH_SHIFT | (uint64_t)segment << WORD_SEGMENT_SHIFT |
			state_unread(clock);
	struct entry entry;
	struct pair pair;
	bool chosen;

	must(segment < index->segments && clock <= CLOCK_MAX);
	must(segment_sequence(index, segment) != SEGMENT_CLOSED);
	if (!index->extents.groups)
		return false;
	pair = pair_of(index, key->hash);
	pair_acquire(index, pair);
	chosen = choose_entry(index, pair, key->hash, &entry);
	if (chosen) {
		uint64_t old = load(&entry.group->word[entry.way]);

		/* The hash stays while a key's entry is replaced: nobody misses it meanwhile. */
		if (!word_is_empty(old))
			account(index, old, -1);
		account(index, word, 1);
		store(&entry.group->offset[entry.way], offset);
		store(&entry.group->word[entry.way], word);
		store(&entry.group->hash[entry.way], key->hash);
	}
	pair_release(index, pair);
	return chosen;
}

bool fidx_extent_remove(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset)
{
	struct entry entry;
	struct pair pair;
	bool found;

	if (!acquire_if_present(index, key->hash, &pair))
		return false;
	found = pair_find_at(index, pair, key->hash, segment, offset, &entry);
	if (found)
		entry_empty(index, entry);
	pair_release(index, pair);
	return found;
}

/* Stripe held. A change of state that may make a ghost or revive one. */
static void entry_set_state(struct fidx *index, struct entry entry, unsigned state)
{
	uint64_t word = load(&entry.group->word[entry.way]);
	uint64_t changed = (word & ~(uint64_t)STATE_MASK) | state;
	bool counts = state_is_ghost(state) != state_is_ghost(word_state(word));

	if (counts)
		account(index, word, -1);
	store(&entry.group->word[entry.way], changed);
	if (counts)
		account(index, changed, 1);
}

bool fidx_extent_touch(struct fidx *index, const struct fidx_key *key, uint32_t segment, uint64_t offset)
{
	bool revived = false;
	struct entry entry;
	struct pair pair;

	if (!acquire_if_present(index, key->hash, &pair))
		return false;
	if (pair_find_at(index, pair, key->hash, segment, offset, &entry)) {
		unsigned state = word_state(load(&entry.group->word[entry.way]));

		revived = state_is_ghost(state);
		entry_set_state(index, entry, state_after_hit(state, index->clock_mode));
	}
	pair_release(index, pair);
	if (revived)
		ctr_add(CTR_flash_ghosts_revived, 1);
	return revived;
}

/* ---- what the rest of the index asks for ----------------------------------------------------- */

unsigned extents_clear(struct fidx *index, uint64_t hash)
{
	unsigned cleared = 0;
	struct entry entry;
	struct pair pair;

	if (!acquire_if_present(index, hash, &pair))
		return 0;
	while (pair_find(index, pair, hash, &entry)) {
		entry_empty(index, entry);
		cleared++;
	}
	pair_release(index, pair);
	return cleared;
}

uint64_t extents_sweep(struct fidx *index, uint32_t segment)
{
	uint64_t swept = 0;

	for (uint64_t g = 0; g < index->extents.groups; g++) {
		struct extent_group *group = &index->extents.group[g];

		lock_acquire(group_lock(index, g));
		for (unsigned i = 0; i < EXTENT_WAYS; i++)
			if (word_segment(load(&group->word[i])) == segment) {
				entry_empty(index, (struct entry){group, i});
				swept++;
			}
		lock_release(group_lock(index, g));
	}
	return swept;
}

bool extents_hand(struct fidx *index, uint64_t at, uint64_t *ghost_bytes, bool *made_ghost)
{
	struct entry entry = {&index->extents.group[at / EXTENT_WAYS], at % EXTENT_WAYS};
	struct lock *lock = group_lock(index, at / EXTENT_WAYS);
	unsigned state, after;
	bool live = false;
	uint64_t word;

	if (word_is_empty(load(&entry.group->word[entry.way])))
		return false;
	lock_acquire(lock);
	word = load(&entry.group->word[entry.way]);
	state = word_state(word);
	if (word_is_open(index, word) && !state_is_ghost(state)) {
		live = true;
		after = state_after_hand(state, *ghost_bytes > 0);
		*made_ghost = state_is_ghost(after);
		entry_set_state(index, entry, after);
		if (*made_ghost)
			*ghost_bytes -= *ghost_bytes < word_length(word) ? *ghost_bytes : word_length(word);
	}
	lock_release(lock);
	return live;
}

void extents_visit(const struct fidx *index,
		   void (*visit)(void *context, uint32_t segment, bool ghost, uint32_t length),
		   void *context)
{
	for (uint64_t at = 0; at < index->extents.groups * EXTENT_WAYS; at++) {
		uint64_t word = load(&index->extents.group[at / EXTENT_WAYS].word[at % EXTENT_WAYS]);

		if (!word_is_empty(word))
			visit(context, word_segment(word), state_is_ghost(word_state(word)),
			      word_length(word));
	}
}
