/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DRAM table of a stripe: lines of ten links, a cache line each.
 *
 *   0        10         20      24                                     64
 *   +--------+----------+-------+---------------------------------------+
 *   | 10 tags| 10 windows| bits | 10 low parts of addresses             |
 *   +--------+----------+-------+---------------------------------------+
 *
 * Each key has two lines. Its link lies in the first, its own line, if that has room, and is a guest in the other line
 * if not. A line counts its guests elsewhere, so that a search looks at the other line only where there is one: 1.2 lines
 * for a hit and 1.8 for a miss at the highest load. One compare tells which of ten links have the key's tag, and hardly
 * any item is looked at that isn't the one. When both lines are full, a link of one of them moves to the other line of
 * its own (cuckoo hashing; Pagh and Rodler, 2004), at most two of them one after the other.
 *
 *   32 bits of a key's hash     | k bits |  8 bits  |
 *                                 group      tag             own line = group * m + tag * m / 256
 *
 * A table has m * 2^k lines, m from 4 to 7 (fewer while k is 0): four sizes for each doubling, which are size classes of
 * the allocator. It grows to the next one at 15/16 of its links. Between two doublings k and all tags stay, so that links
 * find their new lines without a look at their items. The other line is t - own line modulo the number of lines, t by the
 * tag, which works in both directions.
 *
 * On average a link takes 7.5 bytes with its share of free ones: 6.4 bytes, over a load between 0.75 and 0.94. Where objects
 * come and go it is 8.5 to 10: a stripe keeps the room for the most objects that it had.
 *
 * Threads: a stripe's lock covers its table, and is held by the callers of all functions here, unless they say
 * otherwise. Links move within the table when one is linked, or the table is resized; not when one is unlinked or
 * replaced. Errors: a table that can't grow refuses a link.
 */
#ifndef FS_STORE_TABLE_H
#define FS_STORE_TABLE_H

#include "server/store/dram/address.h"
#include "server/store/dram/item.h"
#include "server/store/state/state.h"

#define LINE_LINKS 10u

struct link_line {
	uint8_t tag[LINE_LINKS];
	uint8_t window[LINE_LINKS]; /* 0: there is no link, and the low part is 0 too */
	uint32_t bits; /* of each link whether it is a guest; then the number of guests elsewhere (line.h) */
	uint32_t low[LINE_LINKS];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct link_line) == 64, "a cache line");

/* ---- shapes of tables ------------------------------------------------------------------------ */

#define SHAPE_SHIFT_MOST 24u /* of no doubling */
#define SHAPE(m, doublings) ((m) | (SHAPE_SHIFT_MOST - (doublings)) << 8)
#define SHAPE_LEAST SHAPE(1u, 0u)

/* Returns m of a shape: how many lines a group has. */
static inline uint32_t shape_m(uint32_t shape)
{
	return shape & 0xff;
}

/* Returns how far a key's 32 bits are shifted for group and tag. */
static inline uint32_t shape_shift(uint32_t shape)
{
	return shape >> 8;
}

/* Returns the number of lines. */
static inline uint32_t shape_lines(uint32_t shape)
{
	return shape_m(shape) << (SHAPE_SHIFT_MOST - shape_shift(shape));
}

/* Returns the 32 bits of a key's hash that its lines and tag are made of. All keys of a stripe share the bits that have
   chosen it, so others must have a part in these. */
static inline uint32_t table_bits(uint64_t hash)
{
	return (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 32);
}

/* Returns the own line of such 32 bits. */
static inline uint32_t shape_own_line(uint32_t shape, uint32_t bits)
{
	return (uint32_t)((uint64_t)(bits >> shape_shift(shape)) * shape_m(shape) >> 8);
}

/* Returns the least of the 32 bits whose own line is this one, or one behind it; behind the last line 0, as 2^32. */
static inline uint32_t shape_least_bits(uint32_t shape, uint32_t line)
{
	uint32_t m = shape_m(shape);

	return (uint32_t)(((uint64_t)line * 256 + m - 1) / m << shape_shift(shape));
}

/* ---- table.c: links -------------------------------------------------------------------------- */

/* Returns the key's item; NULL: there is none. */
struct item *stripe_find(struct stripe *stripe, uint64_t hash, const char *key, size_t key_length);
/* Returns a clean copy whose key has this hash; NULL: there is none. */
struct item *stripe_find_copy(const struct store *store, const struct stripe *stripe, uint64_t hash);
/* Links an item whose key is not there. The table takes over the caller's reference, and may grow. False: there was no
   memory to grow, and nothing has changed. */
FS_MUST_CHECK bool stripe_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Takes a linked item out; the table's reference passes to the caller. It is no candidate any more. */
void stripe_unlink(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Puts new in the place of old, both of one key: links new and unlinks old as above. */
void stripe_replace(struct store *store, struct stripe *stripe, uint64_t hash, struct item *old, struct item *new);

/* ---- table_size.c: its size ------------------------------------------------------------------ */

/* Makes the least table, empty. FS_OK or FS_ENOMEM. */
FS_MUST_CHECK int stripe_table_init(struct store *store, struct stripe *stripe);
/* Frees the lines; the items are the caller's. */
void stripe_table_fini(struct store *store, struct stripe *stripe);
/* Gives a table that has few links for its size a smaller one. Keeper or cleaner; stripe held. */
void stripe_shrink(struct store *store, struct stripe *stripe);
/* Moves the table's memory to where it lies close to others of its size (mem_move). Keeper. */
void stripe_move_table(struct stripe *stripe);

/* Asks for the line with which a search begins. No lock: the stripe may be given another table meanwhile. */
static inline void stripe_prefetch_table(const struct stripe *stripe, uint64_t hash)
{
	const struct link_line *lines = atomic_load_explicit(&stripe->lines, memory_order_relaxed);
	uint32_t shape = atomic_load_explicit(&stripe->shape, memory_order_relaxed);

	__builtin_prefetch(&lines[shape_own_line(shape, table_bits(hash))]);
}

/* ---- walks over a stripe --------------------------------------------------------------------- */

/*
 * A walk visits links line by line, and may unlink what it visits. Between two holds of the stripe links may move, and
 * the table may get another size. A walk that may miss an object then, as it comes by again, uses a line_position. One
 * that may not asks for the links of one own line after the other (stripe_meet_own).
 */

/* Returns the number of lines. */
static inline uint32_t stripe_lines(const struct stripe *stripe)
{
	return shape_lines(atomic_load_explicit(&stripe->shape, memory_order_relaxed));
}

static inline struct item *line_item(const struct link_line *line, unsigned link)
{
	return address_of(line->window[link], line->low[link]);
}

/* Returns the item of a link, 0 .. LINE_LINKS - 1, of a line; NULL: there is none. */
static inline struct item *stripe_item(const struct stripe *stripe, uint32_t line, unsigned link)
{
	return line_item(&atomic_load_explicit(&stripe->lines, memory_order_relaxed)[line], link);
}

/* Asks for the headers of all items of a line; of a line behind the last one for none. */
static inline void stripe_prefetch(const struct stripe *stripe, uint32_t line)
{
	if (line < stripe_lines(stripe))
		for (unsigned link = 0; link < LINE_LINKS; link++)
			__builtin_prefetch(stripe_item(stripe, line, link));
}

/* Lets a link lead to its item's new address. */
void stripe_moved(struct stripe *stripe, uint32_t line, unsigned link, struct item *item);

/* Calls meet for each item whose own line is this one, wherever its link lies, until meet returns false; it unlinks
   nothing. False: meet has returned that. */
bool stripe_meet_own(const struct stripe *stripe, uint32_t line, bool (*meet)(void *context, struct item *item),
		     void *context);

/* The next line of a walk, and the size of the table when it stood there. */
struct line_position {
	uint32_t line, lines;
};

/* Returns the line from which a walk goes on: 0 if the table has another size than when position was set. */
static inline uint32_t position_line(const struct line_position *position, const struct stripe *stripe)
{
	return position->lines == stripe_lines(stripe) ? position->line : 0;
}

/* Sets the position to a line; 0 behind the last one. */
static inline void position_set(struct line_position *position, const struct stripe *stripe, uint32_t line)
{
	position->lines = stripe_lines(stripe);
	position->line = line < position->lines ? line : 0;
}

#endif
