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
#define LINK_FINE 1u /* of the two bits of a link: the bit of the key's hash behind the tag */
#define LINK_GUEST 2u /* it lies in its other line */
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

/* Returns LINK_FINE and LINK_GUEST of a link. */
static inline unsigned line_bits(const struct link_line *line, unsigned link)
{
	return line->bits >> 2 * link & (LINK_FINE | LINK_GUEST);
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
	uint8_t bits; /* LINK_FINE and LINK_GUEST */
};

static inline struct link line_get(const struct link_line *line, unsigned link)
{
	return (struct link){ .low = line->low[link],
			      .window = line->window[link],
			      .tag = line->tag[link],
			      .bits = (uint8_t)line_bits(line, link) };
}

/* Puts a link into a free place. */
static inline void line_put(struct link_line *line, unsigned at, const struct link *link)
{
	line->tag[at] = link->tag;
	line->window[at] = link->window;
	line->low[at] = link->low;
	line->bits = (line->bits & ~((LINK_FINE | LINK_GUEST) << 2 * at)) | (uint32_t)link->bits << 2 * at;
}

/* Makes a place free. */
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

/* ---- for table.c and table_size.c ------------------------------------------------------------- */

/* A table, of a stripe or in the making. */
struct table {
	struct link_line *lines;
	uint32_t shape;
};

/* Puts a link whose own line is this one there, or into its other line, and moves links for it if it must. bits has
   LINK_FINE at most. False: there is no room, and nothing has changed but lines of some links. */
FS_MUST_CHECK bool table_put(const struct table *table, uint32_t own, struct link link);
/* Returns the number of links from which on a table of so many lines grows. */
uint32_t table_most_links(uint32_t lines);
/* Gives a stripe's table the next larger size. False: there is no memory, or too few links for that. */
FS_MUST_CHECK bool stripe_grow(struct store *store, struct stripe *stripe);

#endif
