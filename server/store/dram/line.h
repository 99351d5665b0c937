/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of links, for the files of the table: searches in it, and its bits. All under the stripe. */
#ifndef FS_STORE_LINE_H
#define FS_STORE_LINE_H

#include "server/store/dram/table.h"

#if defined(__SSE2__)
#define LINE_SSE2 1
#include <emmintrin.h>
#endif

#define LINKS_MASK ((1u << LINE_LINKS) - 1)
#define AWAY_SHIFT 24
#define AWAY_MOST 255u

/* Returns a bit for each of the ten bytes that is this one. Six bytes behind them are read too, in the same line. */
static inline unsigned line_compare(const uint8_t *bytes, uint8_t byte)
{
#ifdef LINE_SSE2
	const __m128i all = _mm_loadu_si128((const __m128i *)(const void *)bytes);

	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8((char)byte))) & LINKS_MASK;
#else
	unsigned found = 0;

	for (unsigned link = 0; link < LINE_LINKS; link++)
		found |= (unsigned)(bytes[link] == byte) << link;
	return found;
#endif
}

/* Returns a bit for each link with this tag, and for free ones perhaps. */
static inline unsigned line_with_tag(const struct link_line *line, uint8_t tag)
{
	return line_compare(line->tag, tag);
}

/* Returns a bit for each free link. */
static inline unsigned line_free(const struct link_line *line)
{
	return line_compare(line->window, 0);
}

/* Is a link here as a guest: does it lie in its other line? */
static inline bool line_is_guest(const struct link_line *line, unsigned link)
{
	return line->bits >> link & 1;
}

/* Returns the number of links whose own line this is, and that lie in their other one. */
static inline unsigned line_away(const struct link_line *line)
{
	return line->bits >> AWAY_SHIFT;
}

/* Adds one to that number, or takes one off it. */
static inline void line_add_away(struct link_line *line)
{
	must(line_away(line) < AWAY_MOST);
	line->bits += 1u << AWAY_SHIFT;
}

static inline void line_take_away(struct link_line *line)
{
	must(line_away(line) > 0);
	line->bits -= 1u << AWAY_SHIFT;
}

/* A link out of its line. */
struct link {
	uint32_t low;
	uint8_t window, tag;
	bool guest;
};

static inline struct link line_get(const struct link_line *line, unsigned link)
{
	return (struct link){ .low = line->low[link],
			      .window = line->window[link],
			      .tag = line->tag[link],
			      .guest = line_is_guest(line, link) };
}

/* Puts a link where there is none. */
static inline void line_put(struct link_line *line, unsigned at, const struct link *link)
{
	line->tag[at] = link->tag;
	line->window[at] = link->window;
	line->low[at] = link->low;
	line->bits = (line->bits & ~(1u << at)) | (uint32_t)link->guest << at;
}

/* Makes a link free. */
static inline void line_clear(struct link_line *line, unsigned at)
{
	line->window[at] = 0;
	line->low[at] = 0;
}

/* Returns the other line of a link that lies in this one, whichever of the two this is. */
static inline uint32_t line_other(uint32_t line, uint8_t tag, uint32_t lines)
{
	uint32_t sum = (uint32_t)((uint64_t)((tag + 1u) * 0x9e3779b1u) * lines >> 32);

	return sum >= line ? sum - line : sum + lines - line;
}

/* ---- for table.c, table_size.c and stripes.c ---------------------------------------------------- */

/* A table, of a stripe or in the making. */
struct table {
	struct link_line *lines;
	uint32_t shape;
};

static inline struct table table_of(const struct stripe *stripe)
{
	return (struct table){ .lines = atomic_load_explicit(&stripe->lines, memory_order_relaxed),
			       .shape = atomic_load_explicit(&stripe->shape, memory_order_relaxed) };
}

/* Where a key's link may lie, and how it looks. */
struct sought {
	uint32_t own;
	uint8_t tag;
};

static inline struct sought table_seek(uint32_t shape, uint64_t hash)
{
	uint32_t from_group_on = table_bits(hash) >> shape_shift(shape);

	return (struct sought){ .own = (uint32_t)((uint64_t)from_group_on * shape_m(shape) >> 8),
				.tag = (uint8_t)from_group_on };
}

/* Asks for the item of the first link in its own line that has the key's tag. Its address alone is used. */
static inline void table_prefetch_likely(const struct table *table, uint64_t hash)
{
	const struct sought sought = table_seek(table->shape, hash);
	const struct link_line *own = &table->lines[sought.own];
	unsigned found = line_with_tag(own, sought.tag);

	if (found) {
		const char *item = (const char *)line_item(own, (unsigned)__builtin_ctz(found));

		__builtin_prefetch(item, 1);
		__builtin_prefetch(item + 64);
	}
}

/* Puts a link, no guest yet, into this own line of its, or into its other line, and moves links for it if it must. False:
   there is no room, and nothing has changed but lines of some links. */
FS_MUST_CHECK bool table_put(const struct table *table, uint32_t own, struct link link);
/* Returns the number of links from which on a table of so many lines grows. */
uint32_t table_most_links(uint32_t lines);
/* Gives a stripe's table the next larger size. False: there is no memory, or too few links for that. */
FS_MUST_CHECK bool stripe_grow(struct store *store, struct stripe *stripe);

#endif
