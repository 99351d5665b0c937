/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a stripe's table: it grows as links come, and shrinks when the keeper comes by and few are left. */
#include "server/store/dram/dram.h"
#include "server/store/dram/line.h"

#define GROUP_MOST 8u /* lines: there the number of groups doubles, and each has half as many lines */
#define DOUBLINGS_MOST SHAPE_SHIFT_MOST
#define GROWS_ABOVE 4 /* links for each that is there: more of them are no remedy for equal hashes */
#define SHRINKS_ABOVE(links) ((uint64_t)(links)*8 / 3) /* a table with more room than this for its links ... */
#define SHRINKS_TO(links) ((uint64_t)(links)*4 / 3) /* ... gets one with at least this */

static uint32_t shape_after(uint32_t shape)
{
	uint32_t m = shape_m(shape) + 1, doublings = SHAPE_SHIFT_MOST - shape_shift(shape);

	return m < GROUP_MOST ? SHAPE(m, doublings) : SHAPE(m / 2, doublings + 1);
}

/* Memory for so many lines, all free; NULL without. */
static struct link_line *lines_make(uint32_t lines)
{
	return mem_zaligned(sizeof(struct link_line), (uint64_t)lines * sizeof(struct link_line));
}

/* Puts a link of one table into another, which has as many groups. */
static bool table_take_by_tag(const struct table *to, const struct table *from, uint32_t line, struct link link)
{
	uint32_t own = link.guest ? line_other(line, link.tag, shape_lines(from->shape)) : line;
	uint32_t group = own / shape_m(from->shape);

	link.guest = false;
	return table_put(to, (uint32_t)(((uint64_t)group << 8 | link.tag) * shape_m(to->shape) >> 8), link);
}

/* The same for one with another number of groups: the key tells more of its hash. */
static bool table_take_by_key(const struct store *store, const struct table *to, struct link link)
{
	const struct item *item = address_of(link.window, link.low);
	uint32_t bits = table_bits(store_hash(store, item_key(item), item->key_length));

	link.tag = (uint8_t)(bits >> shape_shift(to->shape));
	link.guest = false;
	return table_put(to, shape_own_line(to->shape, bits), link);
}

static void line_prefetch(const struct link_line *line)
{
	for (unsigned link = 0; link < LINE_LINKS; link++)
		item_prefetch(line_item(line, link));
}

/* Puts all links of one table into another, an empty one. False: it lacks room. */
static bool table_take_all(const struct store *store, const struct table *to, const struct table *from)
{
	uint32_t lines = shape_lines(from->shape);
	bool same = shape_shift(to->shape) == shape_shift(from->shape);

	for (uint32_t line = 0; line < lines; line++) {
		if (!same && line + 1 < lines)
			line_prefetch(&from->lines[line + 1]);
		for (unsigned at = 0; at < LINE_LINKS; at++) {
			struct link link = line_get(&from->lines[line], at);

			if (link.window &&
			    !(same ? table_take_by_tag(to, from, line, link) : table_take_by_key(store, to, link)))
				return false;
		}
	}
	return true;
}

/* Gives the table this shape. FS_OK; FS_ENOMEM, or FS_EFULL if links find no room in it, and it stays as it is. */
static int stripe_resize(struct store *store, struct stripe *stripe, uint32_t shape)
{
	const struct table old = { .lines = atomic_load_explicit(&stripe->lines, memory_order_relaxed),
				   .shape = atomic_load_explicit(&stripe->shape, memory_order_relaxed) };
	const struct table new = { .lines = lines_make(shape_lines(shape)), .shape = shape };

	lock_assert_held(&stripe->lock);
	if (!new.lines)
		return FS_ENOMEM;
	if (!table_take_all(store, &new, &old)) {
		mem_free(new.lines);
		return FS_EFULL;
	}
	atomic_store_explicit(&stripe->lines, new.lines, memory_order_relaxed);
	atomic_store_explicit(&stripe->shape, shape, memory_order_relaxed);
	mem_free(old.lines);
	atomic_fetch_add_explicit(&store->table_bytes,
				  ((uint64_t)shape_lines(shape) - shape_lines(old.shape)) * sizeof(*old.lines),
				  memory_order_relaxed);
	return FS_OK;
}

uint32_t table_most_links(uint32_t lines)
{
	return (uint32_t)((uint64_t)lines * LINE_LINKS * 15 / 16);
}

bool stripe_grow(struct store *store, struct stripe *stripe)
{
	uint32_t shape = atomic_load_explicit(&stripe->shape, memory_order_relaxed);
	uint64_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed);

	int result = FS_EFULL;

	while (result == FS_EFULL) {
		shape = shape_after(shape);
		if (SHAPE_SHIFT_MOST - shape_shift(shape) > DOUBLINGS_MOST ||
		    (uint64_t)shape_lines(shape) * LINE_LINKS > GROWS_ABOVE * (count + LINE_LINKS))
			return false;
		result = stripe_resize(store, stripe, shape);
	}
	return result == FS_OK;
}

void stripe_shrink(struct store *store, struct stripe *stripe)
{
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed), shape = SHAPE_LEAST;

	lock_assert_held(&stripe->lock);
	if ((uint64_t)stripe_lines(stripe) * LINE_LINKS <= SHRINKS_ABOVE(count) || stripe_lines(stripe) == 1)
		return;
	while ((uint64_t)shape_lines(shape) * LINE_LINKS < SHRINKS_TO(count))
		shape = shape_after(shape);
	if (shape_lines(shape) < stripe_lines(stripe))
		(void)!stripe_resize(store, stripe, shape); /* it stays larger then */
}

void stripe_move_table(struct stripe *stripe)
{
	struct link_line *lines = atomic_load_explicit(&stripe->lines, memory_order_relaxed);

	lock_assert_held(&stripe->lock);
	lines = mem_move(lines, (uint64_t)stripe_lines(stripe) * sizeof(*lines));
	atomic_store_explicit(&stripe->lines, lines, memory_order_relaxed);
}

int stripe_table_init(struct store *store, struct stripe *stripe)
{
	struct link_line *lines = lines_make(shape_lines(SHAPE_LEAST));

	if (!lines)
		return FS_ENOMEM;
	atomic_store_explicit(&stripe->lines, lines, memory_order_relaxed);
	atomic_store_explicit(&stripe->shape, SHAPE_LEAST, memory_order_relaxed);
	atomic_fetch_add_explicit(&store->table_bytes, sizeof(*lines), memory_order_relaxed);
	return FS_OK;
}

void stripe_table_fini(struct store *store, struct stripe *stripe)
{
	struct link_line *lines = atomic_load_explicit(&stripe->lines, memory_order_relaxed);

	if (!lines)
		return;
	atomic_fetch_sub_explicit(&store->table_bytes, stripe_lines(stripe) * sizeof(*lines), memory_order_relaxed);
	mem_free(lines);
	atomic_store_explicit(&stripe->lines, NULL, memory_order_relaxed);
}
