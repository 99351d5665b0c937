/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accounts of applications with limits (server/store/limits.h has what limits do).
 *
 *   key --delimiter--> name --slot--> struct limited --> account, floor, ceiling, bucket of writes
 *
 * A store without limits has no struct limits, and no cost but a look at that pointer. It is made with the first limits
 * and stays until the end, and so does each name. A linked item that is in an account has ITEM_LIMITED, so that what was
 * added is taken off again, however limits have changed meanwhile. Objects that were linked before their application had
 * limits are counted by a walk of the keeper; one whose link moves from line to line meanwhile, when a hand meets it.
 *
 * Threads: accounts change under the stripe of their item, by relaxed atomics that any thread reads. One thread at a time
 * adds names (store_set_limits); any thread finds them, without a lock.
 */
#ifndef FS_STORE_DRAM_LIMITS_H
#define FS_STORE_DRAM_LIMITS_H

#include "conf/app_limits.h"
#include "server/store/dram/app_name.h"
#include "server/store/dram/dram.h"

#define LIMITS_SLOT_BITS 9u
#define LIMITS_SLOTS (1u << LIMITS_SLOT_BITS) /* twice the names, so that each search ends */
#define LIMITED_MARGIN_SHARE 64u
#define LIMITED_MARGIN_MOST (1u << 20) /* bytes */

/* An application that has limits, or had some. The lines that each set looks at are apart from those that change often. */
struct limited {
	/* Its account; any thread, under the item's stripe: */
	_Alignas(CACHE_LINE) _Atomic int64_t bytes;
	_Atomic int64_t items;
	_Atomic int64_t candidate_bytes[GROUPS]; /* records of its candidates for flash, by size group */
	/* Limits; written by store_set_limits, floor_held and flash_floor_held by the keeper too; read by any thread: */
	_Alignas(CACHE_LINE) _Atomic uint64_t floor_held; /* as far as memory allows the floor */
	_Atomic uint64_t ceiling; /* APP_LIMIT_NONE: none */
	_Atomic uint64_t flash_floor_held, flash_ceiling; /* the same of bytes on flash */
	_Atomic uint64_t write; /* bytes per second; APP_LIMIT_NONE: none */
	/* Constant once it can be found: */
	uint64_t name_first, name_last; /* as in struct app_name */
	uint8_t name_length;
	char name[APP_LIMIT_NAME_MAX + 1]; /* with the delimiter behind it */
	_Atomic uint64_t floor, flash_floor; /* 0: none */
	_Atomic bool active; /* it has limits now */
	/* Sums since the start; any thread: */
	_Alignas(CACHE_LINE) _Atomic uint64_t ceiling_evictions, floor_evictions, write_bytes, write_refusals;
	/* The bucket: written by the cleaner, read by any thread. */
	_Atomic int64_t tokens; /* bytes that may be written; below 0: written ahead */
	/* What it has on flash (cleaner/flash_limits.c); written by the cleaner: */
	_Atomic uint64_t flash_bytes; /* estimated; read by any thread */
	_Atomic uint32_t flash_counted; /* thousandths of the segments with objects; the others' are unknown */
	/* The cleaner's own: */
	bool pressed; /* the next segment may be for it alone: it is near its ceiling of memory (cleaner/ceilings.c) */
	int64_t planned, planned_cost; /* in the plan that is being gathered: bytes of records, and of memory */
	uint64_t
		flash_kept; /* bytes of records that reclaims took back into DRAM, and that are still to be written; estimated */
	uint64_t flash_from; /* segments from this sequence on are counted */
	uint32_t *on_flash; /* bytes of records that were committed, by segment; NULL: none yet */
};

struct limits {
	uint64_t delimiters; /* eight of them; constant, like nothing below */
	/* Written by store_set_limits, read by any thread: */
	_Atomic uint32_t count;
	_Atomic uint8_t longest; /* name */
	_Atomic bool ceilings; /* some application has a ceiling of memory now */
	_Atomic bool writes; /* some application has a limit on writes or a ceiling on flash now */
	struct limited *_Atomic of[STORE_LIMITED_MOST]; /* by number */
	struct limited *_Atomic slot[LIMITS_SLOTS]; /* by the name's hash; NULL: empty */
	_Atomic uint32_t walks_asked, walks_done; /* numbers of the last walk asked for (store_set_limits), and made */
	/* The keeper's: */
	uint32_t walk; /* number of the walk under way; 0: none is */
	uint32_t walk_stripe;
	struct line_position walk_at;
	uint64_t held_ms; /* when floor_held was computed last */
	/* The cleaner's: */
	uint64_t tokens_at_ms; /* when buckets were filled last */
	uint32_t segments; /* in the next one and in limited.on_flash */
	uint32_t *flash_objects; /* that were committed, by segment; NULL: none yet */
};

/* Returns the store's limits; NULL: it never had any. Any thread, no lock. */
static inline struct limits *store_limits(const struct store *store)
{
	return atomic_load_explicit(&store->limits, memory_order_acquire);
}

/* Makes limits from the configuration, if it has some. Before other threads start; stripes may not be there yet. */
void limits_init(struct store *store);
/* Frees them, when no item is left. */
void limits_fini(struct store *store);

/* Returns the number of applications, and one of them: 0 .. count - 1. Any thread, no lock. */
static inline uint32_t limits_names(const struct limits *limits)
{
	return atomic_load_explicit(&limits->count, memory_order_acquire);
}

static inline struct limited *limits_number(const struct limits *limits, uint32_t n)
{
	return atomic_load_explicit(&limits->of[n], memory_order_acquire);
}

/* Returns where the search for a name begins. */
static inline uint32_t limits_slot(const struct app_name *name)
{
	return (uint32_t)(name->hash >> (64 - LIMITS_SLOT_BITS));
}

/* Is this the name that text begins with the application's? */
static inline bool limited_has_name(const struct limited *app, const struct app_name *name, const char *text)
{
	if (app->name_first != name->first)
		return false;
	/* A word with a delimiter is all of a name, and no other's first word is equal to it. */
	return name->length < APP_NAME_WORD || (app->name_last == name->last && app->name_length == name->length &&
						app_name_same_middle(name->length, app->name, text));
}

/* Returns the application of the name, which text begins with; or NULL, with the empty slot where the search has ended. */
static inline struct limited *limits_seek(const struct limits *limits, const char *text, const struct app_name *name,
					  uint32_t *slot)
{
	for (*slot = limits_slot(name);; *slot = (*slot + 1) % LIMITS_SLOTS) {
		struct limited *app = atomic_load_explicit(&limits->slot[*slot], memory_order_acquire);

		if (!app || limited_has_name(app, name, text))
			return app;
	}
}

/* Does limits_find for any key and name. */
struct limited *limits_find_long(const struct limits *limits, const char *key, size_t key_length);
/* Returns the application of a key if it has limits, or had some; else NULL. Any thread, no lock. Names that end in the
   key's first word are found inline. */
static inline struct limited *limits_find(const struct limits *limits, const char *key, size_t key_length)
{
	uint64_t word, matches;
	uint32_t slot;

	if (__builtin_expect(key_length < APP_NAME_WORD, 0))
		return limits_find_long(limits, key, key_length);
	word = app_name_load(key);
	matches = app_name_matches(word, limits->delimiters);
	if (!matches)
		return limits_find_long(limits, key, key_length);
	const struct app_name name = app_name_ends(0, word, 0, matches, 0);
	return limits_seek(limits, key, &name, &slot); /* nobody has an empty name */
}
/* Does the same for an item's key. */
static inline struct limited *limits_of(const struct limits *limits, const struct item *item)
{
	return limits_find(limits, item_key(item), item->key_length);
}

/* ---- accounts -------------------------------------------------------------------------------- */

/* Add the item to its application's account, and take it off. limits_link marks it with ITEM_LIMITED; limits_unlink is
   for marked items alone, and unmarks them; they are no candidates any more. The stripe is held. For table.c. */
void limits_link(struct store *store, struct item *item);
void limits_unlink(struct limits *limits, struct item *item);
/* The item, which is in an account, has become a candidate of so many bytes and this group; below zero, it has ceased to be
   one. The stripe is held. For candidate.c. */
void limits_note_candidate(struct limits *limits, const struct item *item, unsigned group, int64_t bytes);
/* Adds the difference of two objects of one key to the account. For limits_replace alone. */
void limits_account_change(struct limits *limits, const struct item *old, const struct item *new);
/* Is every object in DRAM in its account? Any thread. */
static inline bool limits_are_counted(const struct limits *limits)
{
	return atomic_load_explicit(&limits->walks_asked, memory_order_acquire) ==
	       atomic_load_explicit(&limits->walks_done, memory_order_acquire);
}
/*
 * Puts an item in the place of an older one of its key, in the account too: the mark moves from old to new. Where all
 * objects are counted, the new one of an object in no account needs none either, so that its name is not looked for: a
 * name that is added meanwhile has asked for a walk (limits_count_step) before that comes to this stripe. The stripe is
 * held. For table.c.
 */
static inline void limits_replace(struct store *store, struct item *old, struct item *new)
{
	struct limits *limits = store_limits(store);

	debug_must(!((old->state | new->state) & ITEM_CANDIDATE));
	if (old->state & ITEM_LIMITED) {
		old->state &= (uint8_t)~ITEM_LIMITED;
		new->state |= ITEM_LIMITED;
		if (new->value_length != old->value_length || new->shape != old->shape)
			limits_account_change(limits, old, new);
	} else if (!limits_are_counted(limits)) {
		limits_link(store, new);
	}
}
/* Returns the bytes of the account, at least 0. */
static inline uint64_t limited_bytes(const struct limited *app)
{
	int64_t bytes = atomic_load_explicit(&app->bytes, memory_order_relaxed);

	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Would the application be below its floor without so many bytes? */
static inline bool limited_needs(const struct limited *app, uint64_t cost)
{
	uint64_t floor = atomic_load_explicit(&app->floor_held, memory_order_relaxed);

	return floor > 0 && limited_bytes(app) < floor + cost;
}

/* Is the application above its ceiling with so many bytes more? */
static inline bool limited_exceeds(const struct limited *app, uint64_t cost)
{
	uint64_t ceiling = atomic_load_explicit(&app->ceiling, memory_order_relaxed);

	return ceiling != APP_LIMIT_NONE && limited_bytes(app) + cost > ceiling;
}

/* Are more than three quarters of the application's bytes candidates for flash? Any thread. */
bool limited_mostly_candidates(const struct limited *app);
/* Returns the bytes that the keeper leaves free below the application's ceiling, so that few sets have to search. It takes
   none of them from below the floor. */
static inline uint64_t limited_margin(const struct limited *app)
{
	uint64_t ceiling = atomic_load_explicit(&app->ceiling, memory_order_relaxed);
	uint64_t floor = atomic_load_explicit(&app->floor_held, memory_order_relaxed);
	uint64_t most = ceiling > floor ? ceiling - floor : 0, part = ceiling / LIMITED_MARGIN_SHARE;

	part = part < LIMITED_MARGIN_MOST ? part : LIMITED_MARGIN_MOST;
	return part < most ? part : most;
}
/* Returns the bytes of records that the application's candidates may have in the next segment, as limits_take judges. Any
   thread. */
uint64_t limited_may_plan(const struct limited *app);
/* Returns the bytes that are to go so that no application is above its ceiling, and, with margins, so that each one that
   has used up half of its margin has all of it. Any thread. */
uint64_t limits_excess(const struct limits *limits, bool margins);
/* May the application of this key have so many bytes more, with its margin left free? True without limits. Any thread. */
bool limits_have_room(const struct store *store, const char *key, size_t key_length, uint64_t cost);

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Computes how much of each floor can be held, if that was long ago or now is true. */
void limits_hold_floors(struct store *store, uint64_t now_ms, bool now);
/* Does a step of the walk that counts items: some thousand of them, with one stripe held at a time. True: there is
   more to do at once. */
bool limits_count_step(struct store *store);

/* ---- writes ---------------------------------------------------------------------------------- */

/* Is the application above its ceiling on flash with so many bytes more? Any thread. */
static inline bool limited_exceeds_flash(const struct limited *app, uint64_t bytes)
{
	uint64_t ceiling = atomic_load_explicit(&app->flash_ceiling, memory_order_relaxed);

	return ceiling != APP_LIMIT_NONE &&
	       atomic_load_explicit(&app->flash_bytes, memory_order_relaxed) + bytes > ceiling;
}

/* Is the application below its floor on flash with so many bytes more? Any thread. */
static inline bool limited_needs_flash(const struct limited *app, uint64_t bytes)
{
	return atomic_load_explicit(&app->flash_bytes, memory_order_relaxed) + bytes <
	       atomic_load_explicit(&app->flash_floor_held, memory_order_relaxed);
}

/* May an object of this key go to flash? True without limits. Counts a refusal. Any thread, the stripe may be held. */
bool limits_may_write(const struct store *store, const char *key, size_t key_length);
/* Fills the buckets. Cleaner. */
void limits_fill(struct store *store, uint64_t now_ms);
/* A plan begins: none of its candidates is taken yet. Cleaner. */
void limits_begin_plan(struct store *store);
/* Does the item's application lack bytes of its floor on flash, so that the item comes before others? Cleaner. */
bool limits_need_flash(const struct store *store, const struct item *item);
/* May the item be planned, whose record has so many bytes? Counts it for this plan if so: its application keeps its
   floor in DRAM, its bucket has enough for what was taken, and its ceiling on flash isn't reached. Cleaner, the stripe
   held. */
FS_MUST_CHECK bool limits_take(struct store *store, const struct item *item, uint32_t record_bytes);
/* The item's record was written into the segment; moved: the object is there now. Cleaner. */
void limits_note_written(struct store *store, const struct item *item, uint32_t segment, bool moved);

#endif
