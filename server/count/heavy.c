/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/heavy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/count/key_hash.h"

struct counter {
	uint64_t error;
	uint64_t amount[HEAVY_MEASURES];
	uint64_t shown; /* key_hash; 0: the key is not known yet */
	unsigned char *key; /* its length in the first byte; NULL: not kept */
};

/* What a search looks at lies together. */
struct set {
	uint64_t hash[HEAVY_WAYS]; /* 0: the counter is free */
	uint64_t most[HEAVY_WAYS]; /* amount + error, by which counters rank */
	struct counter counter[HEAVY_WAYS];
};

struct heavy {
	enum heavy_measure by;
	uint64_t total;
	struct set sets[HEAVY_SETS];
};

_Static_assert((HEAVY_SETS & (HEAVY_SETS - 1)) == 0, "bits of a hash choose a set");

struct heavy *heavy_create(enum heavy_measure by)
{
	struct heavy *heavy = mem_must_zalloc(sizeof(*heavy));

	heavy->by = by;
	return heavy;
}

void heavy_clear(struct heavy *heavy)
{
	enum heavy_measure by = heavy->by;

	for (unsigned s = 0; s < HEAVY_SETS; s++)
		for (unsigned way = 0; way < HEAVY_WAYS; way++)
			mem_free(heavy->sets[s].counter[way].key);
	memset(heavy, 0, sizeof(*heavy));
	heavy->by = by;
}

void heavy_destroy(struct heavy *heavy)
{
	if (heavy)
		heavy_clear(heavy);
	mem_free(heavy);
}

uint64_t heavy_total(const struct heavy *heavy)
{
	return heavy->total;
}

/* ---- adding ----------------------------------------------------------------------------------- */

static struct set *set_of(struct heavy *heavy, uint64_t hash)
{
	return &heavy->sets[(hash * 0x9e3779b97f4a7c15ull >> 32) % HEAVY_SETS];
}

/* The counter of this hash; HEAVY_WAYS: there is none. Without branches, as nobody could foretell them. */
static inline unsigned find_way(const struct set *set, uint64_t hash)
{
	unsigned found = 1u << HEAVY_WAYS;

	for (unsigned way = 0; way < HEAVY_WAYS; way++)
		found |= (unsigned)(set->hash[way] == hash) << way;
	return (unsigned)__builtin_ctz(found);
}

static inline unsigned least_way(const struct set *set)
{
	uint64_t most = set->most[0];
	unsigned least = 0;

	for (unsigned way = 1; way < HEAVY_WAYS; way++) {
		bool less = set->most[way] < most;

		least = less ? way : least;
		most = less ? set->most[way] : most;
	}
	return least;
}

static unsigned char *copy_text(const unsigned char *key)
{
	unsigned char *copy = key ? mem_alloc(1u + key[0]) : NULL;

	if (copy)
		memcpy(copy, key, 1u + key[0]);
	return copy;
}

static void name_counter(struct counter *counter, const struct heavy_key *key)
{
	must(key->length > 0 && key->length <= UINT8_MAX);
	counter->shown = key_hash(key->text, key->length) | 1; /* 0 means unknown */
	counter->key = key->keep ? mem_alloc(1 + key->length) : NULL;
	if (!counter->key)
		return;
	counter->key[0] = (unsigned char)key->length;
	memcpy(counter->key + 1, key->text, key->length);
}

/* The least counter of the set becomes this key's. */
static unsigned take_way(struct set *set, const struct heavy_key *key)
{
	unsigned way = least_way(set);
	struct counter *counter = &set->counter[way];

	if (counter->key)
		mem_free(counter->key);
	*counter = (struct counter){ .error = set->most[way] };
	set->hash[way] = key->hash;
	if (set->most[way] == 0)
		name_counter(counter, key);
	return way;
}

void heavy_add(struct heavy *heavy, const struct heavy_key *key, const uint64_t amount[HEAVY_MEASURES])
{
	struct set *set = set_of(heavy, key->hash);
	unsigned way = find_way(set, key->hash);

	debug_must(amount[heavy->by] > 0 && key->hash != 0);
	if (way == HEAVY_WAYS)
		way = take_way(set, key);
	else if (set->counter[way].shown == 0)
		name_counter(&set->counter[way], key);
	for (unsigned i = 0; i < HEAVY_MEASURES; i++)
		set->counter[way].amount[i] += amount[i];
	set->most[way] += amount[heavy->by];
	heavy->total += amount[heavy->by];
}

/* ---- merging ---------------------------------------------------------------------------------- */

/* What a key that isn't in the set may have: nothing while the set isn't full. */
static uint64_t floor_of(const struct set *set)
{
	return set->most[least_way(set)];
}

/* A counter outside of its set. */
struct merged {
	uint64_t hash, most;
	struct counter counter;
};

static void add_counter(struct merged *into, const struct merged *from)
{
	into->most += from->most;
	into->counter.error += from->counter.error;
	for (unsigned i = 0; i < HEAVY_MEASURES; i++)
		into->counter.amount[i] += from->counter.amount[i];
	if (into->counter.shown == 0)
		into->counter.shown = from->counter.shown;
	if (into->counter.key)
		mem_free(from->counter.key);
	else
		into->counter.key = from->counter.key;
}

/* Takes the used counters of a set. Each gets the other set's floor, which is taken off again from those in both. */
static unsigned take_counters(struct set *set, uint64_t other_floor, struct merged *out)
{
	unsigned count = 0;

	for (unsigned way = 0; way < HEAVY_WAYS; way++) {
		if (set->most[way] == 0)
			continue;
		out[count] = (struct merged){ .hash = set->hash[way],
					      .most = set->most[way] + other_floor,
					      .counter = set->counter[way] };
		out[count++].counter.error += other_floor;
	}
	memset(set, 0, sizeof(*set));
	return count;
}

static int compare_most(const void *first, const void *second)
{
	const struct merged *a = first, *b = second;

	return a->most < b->most ? 1 : a->most > b->most ? -1 : 0;
}

static void merge_sets(struct set *into, struct set *from)
{
	uint64_t floor = floor_of(into), other_floor = floor_of(from);
	struct merged all[2 * HEAVY_WAYS];
	unsigned own = take_counters(into, other_floor, all), count = own;
	unsigned added = take_counters(from, floor, all + own);

	for (unsigned i = 0; i < added; i++) {
		struct merged *other = &all[own + i];
		unsigned at = 0;

		while (at < own && all[at].hash != other->hash)
			at++;
		if (at == own) {
			all[count++] = *other;
			continue;
		}
		add_counter(&all[at], other);
		all[at].most -= floor + other_floor;
		all[at].counter.error -= floor + other_floor;
	}
	if (count > HEAVY_WAYS)
		qsort(all, count, sizeof(all[0]), compare_most);
	for (unsigned i = 0; i < count; i++) {
		if (i >= HEAVY_WAYS) {
			mem_free(all[i].counter.key);
			continue;
		}
		into->hash[i] = all[i].hash;
		into->most[i] = all[i].most;
		into->counter[i] = all[i].counter;
	}
}

void heavy_merge(struct heavy *into, struct heavy *from)
{
	must(into->by == from->by && into != from);
	if (from->total == 0)
		return;
	for (unsigned s = 0; s < HEAVY_SETS; s++)
		merge_sets(&into->sets[s], &from->sets[s]);
	into->total += from->total;
	from->total = 0;
}

/* ---- lists ------------------------------------------------------------------------------------ */

/* Which of two keys is heavier? The middle of what each may have decides. */
static int compare_rows(const struct heavy_row *a, const struct heavy_row *b, enum heavy_measure by)
{
	uint64_t x = 2 * a->amount[by] + a->error, y = 2 * b->amount[by] + b->error;

	if (x != y)
		return x < y ? 1 : -1;
	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

#define COMPARE(measure) \
	static int compare_##measure(const void *first, const void *second) \
	{ \
		return compare_rows(first, second, HEAVY_##measure); \
	}
COMPARE(REQUESTS)
COMPARE(BYTES)
COMPARE(READS)
#undef COMPARE

void heavy_list_rank(struct heavy_list *list, enum heavy_measure by)
{
	static int (*const compare[HEAVY_MEASURES])(const void *first, const void *second) = {
		[HEAVY_REQUESTS] = compare_REQUESTS, [HEAVY_BYTES] = compare_BYTES, [HEAVY_READS] = compare_READS
	};

	qsort(list->rows, list->count, sizeof(list->rows[0]), compare[by]);
}

static int compare_hashes(const void *first, const void *second)
{
	const struct heavy_row *a = first, *b = second;

	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static struct heavy_list *list_alloc(unsigned rows)
{
	struct heavy_list *list = mem_alloc(sizeof(*list) + rows * sizeof(list->rows[0]));

	if (list)
		*list = (struct heavy_list){ .count = 0 };
	return list;
}

static void raise_floor(struct heavy_list *list, uint64_t most)
{
	if (most > list->floor)
		list->floor = most;
}

/* Leaves the heaviest keys in the list, at most `most` of them, in the order of hashes, and copies their keys, which belonged
   to others so far. */
static struct heavy_list *list_cut(struct heavy_list *list, enum heavy_measure by, unsigned most)
{
	struct heavy_list *shorter;

	heavy_list_rank(list, by);
	while (list->count > most) {
		const struct heavy_row *last = &list->rows[--list->count];

		raise_floor(list, last->amount[by] + last->error);
	}
	for (unsigned i = 0; i < list->count; i++)
		list->rows[i].key = copy_text(list->rows[i].key);
	qsort(list->rows, list->count, sizeof(list->rows[0]), compare_hashes);
	shorter = mem_realloc(list, sizeof(*list) + list->count * sizeof(list->rows[0]));
	return shorter ? shorter : list;
}

struct heavy_list *heavy_list_create(const struct heavy *heavy, int64_t since, unsigned most)
{
	struct heavy_list *list = list_alloc(HEAVY_SETS * HEAVY_WAYS);

	if (!list)
		return NULL;
	list->since = since;
	list->total = heavy->total;
	for (unsigned s = 0; s < HEAVY_SETS; s++) {
		const struct set *set = &heavy->sets[s];

		raise_floor(list, floor_of(set));
		for (unsigned way = 0; way < HEAVY_WAYS; way++) {
			const struct counter *counter = &set->counter[way];
			struct heavy_row *row = &list->rows[list->count];

			if (counter->shown == 0) { /* free, or seen once: its key is not known */
				raise_floor(list, set->most[way]);
				continue;
			}
			*row = (struct heavy_row){ .hash = set->hash[way],
						   .error = counter->error,
						   .shown = counter->shown,
						   .since = since,
						   .key = counter->key };
			memcpy(row->amount, counter->amount, sizeof(row->amount));
			list->count++;
		}
	}
	return list_cut(list, heavy->by, most);
}

/* A list that is being joined, and its next row. */
struct cursor {
	const struct heavy_list *list;
	unsigned at;
};

/* The least hash that is next in one of the lists. False: all have ended. */
static bool next_hash(const struct cursor *cursors, unsigned count, uint64_t *hash)
{
	bool any = false;

	for (unsigned i = 0; i < count; i++) {
		const struct cursor *cursor = &cursors[i];

		if (cursor->list && cursor->at < cursor->list->count &&
		    (!any || cursor->list->rows[cursor->at].hash < *hash)) {
			*hash = cursor->list->rows[cursor->at].hash;
			any = true;
		}
	}
	return any;
}

/* Adds up the rows of this hash. A list without it may have lost up to its floor. */
static void join_row(struct cursor *cursors, unsigned count, uint64_t hash, struct heavy_row *out)
{
	*out = (struct heavy_row){ .hash = hash, .since = INT64_MAX };
	for (unsigned i = 0; i < count; i++) {
		struct cursor *cursor = &cursors[i];
		const struct heavy_row *row;

		if (!cursor->list)
			continue;
		row = &cursor->list->rows[cursor->at];
		if (cursor->at == cursor->list->count || row->hash != hash) {
			out->error += cursor->list->floor;
			continue;
		}
		for (unsigned m = 0; m < HEAVY_MEASURES; m++)
			out->amount[m] += row->amount[m];
		out->error += row->error;
		out->shown = row->shown;
		out->since = row->since < out->since ? row->since : out->since;
		if (!out->key)
			out->key = row->key;
		cursor->at++;
	}
}

#define LISTS_MOST 64u

struct heavy_list *heavy_list_join(struct heavy_list *const *lists, unsigned count, enum heavy_measure by,
				   unsigned most)
{
	struct cursor cursors[LISTS_MOST] = { { NULL, 0 } };
	unsigned rows = 0;
	struct heavy_list *list;
	uint64_t hash = 0;

	must(count <= LISTS_MOST);
	for (unsigned i = 0; i < count; i++) {
		cursors[i].list = lists[i];
		rows += lists[i] ? lists[i]->count : 0;
	}
	list = list_alloc(rows);
	if (!list)
		return NULL;
	list->since = INT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		if (!lists[i])
			continue;
		list->since = lists[i]->since < list->since ? lists[i]->since : list->since;
		list->total += lists[i]->total;
		list->floor += lists[i]->floor;
	}
	while (next_hash(cursors, count, &hash))
		join_row(cursors, count, hash, &list->rows[list->count++]);
	return list_cut(list, by, most);
}

void heavy_list_free(struct heavy_list *list)
{
	for (unsigned i = 0; list && i < list->count; i++)
		mem_free(list->rows[i].key);
	mem_free(list);
}
