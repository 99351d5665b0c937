/* SPDX-License-Identifier: BSD-3-Clause */
/* Links in the DRAM table of a stripe: searches, and changes. */
#include "server/store/dram/dram.h"
#include "server/store/dram/limits.h"
#include "server/store/dram/line.h"

#define FOUND_SHIFT 4 /* of the line in a stripe's found; below is the link */
#define MOVES_MOST 2u /* links that move, one after the other, to make room for one */

/* ---- searches -------------------------------------------------------------------------------- */

/* Returns the item of a link if the key is its own, and notes where the link lies; else NULL. */
static inline __attribute__((always_inline)) struct item *line_try(struct stripe *stripe, const struct link_line *lines,
								   uint32_t line, unsigned link, const char *key,
								   size_t key_length)
{
	struct item *item = line_item(&lines[line], link);

	if (!item || !item_is(item, key, key_length))
		return NULL;
	stripe->found = line << FOUND_SHIFT | link;
	return item;
}

static __attribute__((noinline)) struct item *stripe_find_further(struct stripe *stripe, uint64_t hash, const char *key,
								  size_t key_length)
{
	const struct table table = table_of(stripe);
	const struct sought sought = table_seek(table.shape, hash);
	const uint32_t pair[] = { sought.own, line_other(sought.own, sought.tag, shape_lines(table.shape)) };
	struct item *item = NULL;

	for (unsigned i = 0; i < 2; i++)
		for (unsigned left = line_with_tag(&table.lines[pair[i]], sought.tag); left && !item; left &= left - 1)
			item = line_try(stripe, table.lines, pair[i], (unsigned)__builtin_ctz(left), key, key_length);
	return item;
}

/* Nearly always one link or none has the tag, so that the loops stand by themselves. */
struct item *stripe_find(struct stripe *stripe, uint64_t hash, const char *key, size_t key_length)
{
	const struct table table = table_of(stripe);
	const struct sought sought = table_seek(table.shape, hash);
	const struct link_line *own = &table.lines[sought.own];
	unsigned found = line_with_tag(own, sought.tag);
	struct item *item;

	if (found) {
		item = line_try(stripe, table.lines, sought.own, (unsigned)__builtin_ctz(found), key, key_length);
		if (__builtin_expect(item != NULL, 1))
			return item;
	}
	return found & (found - 1) || line_away(own) > 0 ? stripe_find_further(stripe, hash, key, key_length) : NULL;
}

static struct item *line_find_copy(const struct store *store, const struct link_line *line, uint8_t tag, uint64_t hash)
{
	for (unsigned left = line_with_tag(line, tag); left; left &= left - 1) {
		struct item *item = line_item(line, (unsigned)__builtin_ctz(left));

		if (item && item->state & ITEM_CLEAN && store_hash(store, item_key(item), item->key_length) == hash)
			return item;
	}
	return NULL;
}

struct item *stripe_find_copy(const struct store *store, const struct stripe *stripe, uint64_t hash)
{
	const struct table table = table_of(stripe);
	const struct sought sought = table_seek(table.shape, hash);
	struct item *item = line_find_copy(store, &table.lines[sought.own], sought.tag, hash);

	lock_assert_held(&stripe->lock);
	if (item || line_away(&table.lines[sought.own]) == 0)
		return item;
	return line_find_copy(store, &table.lines[line_other(sought.own, sought.tag, shape_lines(table.shape))],
			      sought.tag, hash);
}

/* The link that leads to an item, which is linked. */
struct spot {
	struct link_line *line;
	unsigned link;
};

static inline bool line_locate(struct link_line *line, uint8_t tag, const struct item *item, struct spot *out)
{
	for (unsigned left = line_with_tag(line, tag); left; left &= left - 1) {
		*out = (struct spot){ .line = line, .link = (unsigned)__builtin_ctz(left) };
		if (line_item(line, out->link) == item)
			return true;
	}
	return false;
}

static __attribute__((noinline)) struct spot table_locate_anew(const struct table *table, uint64_t hash,
							       const struct item *item)
{
	const struct sought sought = table_seek(table->shape, hash);
	uint32_t other = line_other(sought.own, sought.tag, shape_lines(table->shape));
	struct spot spot;

	bool located = line_locate(&table->lines[sought.own], sought.tag, item, &spot) ||
		       line_locate(&table->lines[other], sought.tag, item, &spot);

	must(located);
	return spot;
}

/* Nearly always it is the link that was found last, in the same hold of the stripe. */
static inline struct spot table_locate(const struct stripe *stripe, const struct table *table, uint64_t hash,
				       const struct item *item)
{
	uint32_t line = stripe->found >> FOUND_SHIFT, link = stripe->found & ((1u << FOUND_SHIFT) - 1);

	if (__builtin_expect(line < shape_lines(table->shape) && line_item(&table->lines[line], link) == item, 1))
		return (struct spot){ .line = &table->lines[line], .link = link };
	return table_locate_anew(table, hash, item);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Moves a link of a line to that link's other line, where there is room. */
static void table_move(const struct table *table, uint32_t line, unsigned link, uint32_t to)
{
	struct link moved = line_get(&table->lines[line], link);
	bool home = moved.guest;

	must(line != to);
	line_clear(&table->lines[line], link);
	moved.guest = !home;
	line_put(&table->lines[to], (unsigned)__builtin_ctz(line_free(&table->lines[to])), &moved);
	if (home)
		line_take_away(&table->lines[to]);
	else
		line_add_away(&table->lines[line]);
}

/* Makes room in a full line by so many moves at the most. Guests go home before others leave. A line whose links leave
   keeps one of its AWAY_MOST for the link that the room is for: that may be its own. */
static bool table_make_room(const struct table *table, uint32_t line, unsigned moves)
{
	uint32_t lines = shape_lines(table->shape);

	for (bool guest = true;; guest = false) {
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			uint32_t to = line_other(line, table->lines[line].tag[link], lines);

			if (line_is_guest(&table->lines[line], link) != guest || to == line ||
			    (!guest && line_away(&table->lines[line]) >= AWAY_MOST - 1))
				continue;
			if (line_free(&table->lines[to]) == 0 && (moves == 1 || !table_make_room(table, to, moves - 1)))
				continue;
			table_move(table, line, link, to);
			return true;
		}
		if (!guest)
			return false;
	}
}

/* Returns the line that has room for a link with this own line and tag, if need be by moves; UINT32_MAX: none. */
static uint32_t table_room(const struct table *table, uint32_t own, uint8_t tag)
{
	uint32_t other = line_other(own, tag, shape_lines(table->shape));
	bool guest = other != own && line_away(&table->lines[own]) < AWAY_MOST;

	if (line_free(&table->lines[own]))
		return own;
	if (guest && line_free(&table->lines[other]))
		return other;
	for (unsigned moves = 1; moves <= MOVES_MOST; moves++) {
		if (table_make_room(table, own, moves))
			return own;
		if (guest && table_make_room(table, other, moves))
			return other;
	}
	return UINT32_MAX;
}

bool table_put(const struct table *table, uint32_t own, struct link link)
{
	uint32_t to = table_room(table, own, link.tag);

	if (to == UINT32_MAX)
		return false;
	if (to != own) {
		link.guest = true;
		line_add_away(&table->lines[own]);
	}
	line_put(&table->lines[to], (unsigned)__builtin_ctz(line_free(&table->lines[to])), &link);
	return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void stripe_note_linked(struct store *store, struct item *item)
{
	must(!(item->state & ITEM_LINKED));
	item->state |= ITEM_LINKED;
	if (item->state & ITEM_CLEAN)
		copies_account(store, (int64_t)item_cost(item));
}

static void stripe_note_unlinked(struct store *store, struct stripe *stripe, struct item *item)
{
	must(item->state & ITEM_LINKED);
	if (item->state & ITEM_CANDIDATE)
		candidate_clear(store, stripe, item);
	if (item->state & ITEM_CLEAN)
		copies_account(store, -(int64_t)item_cost(item));
	if (__builtin_expect(item->state & ITEM_LIMITED, 0) && store_limits(store))
		limits_unlink(store_limits(store), item);
	item->state &= (uint8_t)~ITEM_LINKED;
}

bool stripe_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed) + 1;

	lock_assert_held(&stripe->lock);
	for (;;) {
		const struct table table = table_of(stripe);
		const struct sought sought = table_seek(table.shape, hash);

		if (table_put(&table, sought.own,
			      (struct link){
				      .low = address_low(item), .window = address_window(item), .tag = sought.tag }))
			break;
		if (!stripe_grow(store, stripe))
			return false;
	}
	stripe_note_linked(store, item);
	if (__builtin_expect(store_limits(store) != NULL, 0))
		limits_link(store, item);
	atomic_store_explicit(&stripe->count, count, memory_order_relaxed);
	if (count > table_most_links(shape_lines(atomic_load_explicit(&stripe->shape, memory_order_relaxed))))
		(void)!stripe_grow(store, stripe); /* without memory it does when there is some, or no room is left */
	if (fault_fires(FAULT_stripe_resize) && !stripe_grow(store, stripe))
		stripe_shrink(store, stripe);
	return true;
}

void stripe_unlink(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	const struct table table = table_of(stripe);
	struct spot spot = table_locate(stripe, &table, hash, item);
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed);

	lock_assert_held(&stripe->lock);
	must(count > 0);
	if (line_is_guest(spot.line, spot.link))
		line_take_away(&table.lines[table_seek(table.shape, hash).own]);
	line_clear(spot.line, spot.link);
	atomic_store_explicit(&stripe->count, count - 1, memory_order_relaxed);
	stripe_note_unlinked(store, stripe, item);
}

void stripe_replace(struct store *store, struct stripe *stripe, uint64_t hash, struct item *old, struct item *new)
{
	const struct table table = table_of(stripe);
	struct spot spot = table_locate(stripe, &table, hash, old);

	lock_assert_held(&stripe->lock);
	spot.line->window[spot.link] = address_window(new);
	spot.line->low[spot.link] = address_low(new);
	stripe_note_linked(store, new);
	if (__builtin_expect(store_limits(store) != NULL, 0)) {
		candidate_clear(store, stripe, old); /* while it is in its account */
		limits_replace(store, old, new);
	}
	stripe_note_unlinked(store, stripe, old);
}

void stripe_moved(struct stripe *stripe, uint32_t line, unsigned link, struct item *item)
{
	const struct table table = table_of(stripe);
	struct link_line *at = &table.lines[line];

	lock_assert_held(&stripe->lock);
	must(line < stripe_lines(stripe) && link < LINE_LINKS && at->window[link]);
	must(address_is_known(item) || address_learn(item)); /* 16 TiB of heap are within the limits of a process */
	at->window[link] = address_window(item);
	at->low[link] = address_low(item);
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* The guests of a line lie where their tags say: those that a link of this own line can have are few. */
static bool table_meet_guests(const struct table *table, uint32_t own, bool (*meet)(void *context, struct item *item),
			      void *context)
{
	uint32_t m = shape_m(table->shape), in_group = own % m;

	for (uint32_t tag = (256 * in_group + m - 1) / m; tag < 256 && tag * m / 256 == in_group; tag++) {
		struct link_line *other = &table->lines[line_other(own, (uint8_t)tag, shape_lines(table->shape))];

		for (unsigned left = line_with_tag(other, (uint8_t)tag); left; left &= left - 1) {
			unsigned link = (unsigned)__builtin_ctz(left);

			if (other->window[link] && line_is_guest(other, link) && !meet(context, line_item(other, link)))
				return false;
		}
	}
	return true;
}

bool stripe_meet_own(const struct stripe *stripe, uint32_t line, bool (*meet)(void *context, struct item *item),
		     void *context)
{
	const struct table table = table_of(stripe);
	const struct link_line *own = &table.lines[line];

	lock_assert_held(&stripe->lock);
	for (unsigned link = 0; link < LINE_LINKS; link++)
		if (own->window[link] && !line_is_guest(own, link) && !meet(context, line_item(own, link)))
			return false;
	return line_away(own) == 0 || table_meet_guests(&table, line, meet, context);
}
