/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of bundles, the newest first. Eight bundles of about the same number of columns that lie side by side become one,
 * so that a search looks at few; none gets more than an eighth of all columns that may be in memory, so that the making
 * of one takes little memory beside. The oldest bundle goes when all its columns are gone, and there is no chain behind it.
 */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

#define TOGETHER 8u
#define LARGEST_PART 8u /* of the columns in memory */
#define TOO_MANY (BUNDLES_MOST - 2 * TOGETHER)
#define STEP_PARTITIONS 64u

static struct bundle_row *free_row(const struct frugal *frugal)
{
	for (unsigned i = 0; i < BUNDLES_MOST; i++)
		if (atomic_load(&frugal->kept->bundles[i].serial) == 0)
			return &frugal->kept->bundles[i];
	return NULL;
}

/* There is a free one: the list has fewer bundles than there are rows. */
void bundle_row_fill(struct frugal *frugal, struct bundle *bundle)
{
	bundle->row = free_row(frugal);
	must(bundle->row);
	bundle->row->block = bundle->block;
	bundle->row->oldest = bundle->oldest;
	atomic_store_explicit(&bundle->row->serial, bundle->serial, memory_order_release);
}

/* Frees bundles that are not in the list any more, and that nobody reads. Their rows go first. */
static void bundles_free(struct frugal *frugal, struct bundle *const *bundle, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct block block = bundle[i]->block;

		atomic_store_explicit(&bundle[i]->row->serial, 0, memory_order_release);
		block_give(frugal, &block);
		mem_free(bundle[i]);
	}
}

void bundles_replace(struct frugal *frugal, unsigned first, unsigned count, struct bundle *by)
{
	struct bundle *old[BUNDLES_MOST];

	must(first + count <= frugal->bundles && (count > 0 || frugal->bundles < BUNDLES_MOST));
	memcpy(old, frugal->bundle + first, count * sizeof(old[0]));
	if (by) {
		bundle_row_fill(frugal, by);
		memmove(frugal->bundle + first + 1, frugal->bundle + first + count,
			(frugal->bundles - first - count) * sizeof(old[0]));
		frugal->bundle[first] = by;
	} else {
		memmove(frugal->bundle + first, frugal->bundle + first + count,
			(frugal->bundles - first - count) * sizeof(old[0]));
	}
	frugal->bundles -= count;
	frugal->bundles += by ? 1 : 0;
	figures_count(frugal);
	view_publish(frugal);
	bundles_free(frugal, old, count);
}

void bundle_publish(struct frugal *frugal, struct bundle *bundle)
{
	bundle->serial = bundle->oldest = ++frugal->serial;
	prefilter_add_bundle(frugal, bundle);
	bundles_replace(frugal, 0, 0, bundle);
}

/* ---- laying together ------------------------------------------------------------------------- */

/* The sizes of the bundle to come. FS_OK, FS_ENOMEM. */
static int measure(struct gathering *gathering, uint64_t *values, uint64_t *kills)
{
	*values = *kills = 0;
	for (uint32_t p = 0; p < gathering->frugal->partitions; p++) {
		int result = gathering_cell(gathering, p, NULL);

		if (result != FS_OK)
			return result;
		*values += gathering->value_count;
		*kills += gathering->kill_count;
		if (p % STEP_PARTITIONS == 0)
			frugal_step(gathering->frugal);
	}
	return *values <= UINT32_MAX && *kills <= UINT32_MAX ? FS_OK : FS_ENOMEM;
}

static int fill(struct gathering *gathering, uint64_t values, uint64_t kills, void *at)
{
	uint32_t partitions = gathering->frugal->partitions, columns = gathering->columns;
	struct lists_writer lists, kill_lists;
	struct bundle_parts parts;
	uint64_t value = 0, kill = 0;

	bundle_make(at, partitions, columns, values, kills, &parts);
	memcpy(parts.column, gathering->column, columns * sizeof(*parts.column));
	lists_write_begin(&lists, columns, parts.bits, lists_words(partitions, columns, values), parts.samples);
	lists_write_begin(&kill_lists, 1, parts.kill_bits, lists_words(partitions, 1, kills), parts.kill_samples);
	for (uint32_t p = 0; p < partitions; p++) {
		int result = gathering_cell(gathering, p, NULL);

		if (result != FS_OK)
			return result;
		must(value + gathering->value_count <= values && kill + gathering->kill_count <= kills);
		for (uint32_t c = 0; c < columns; c++)
			lists_write(&lists, gathering->counts[c]);
		if (gathering->value_count)
			memcpy(parts.values + value, gathering->values,
			       gathering->value_count * sizeof(*gathering->values));
		value += gathering->value_count;
		if (kills > 0)
			lists_write(&kill_lists, (uint32_t)gathering->kill_count);
		for (uint64_t i = 0; i < gathering->kill_count; i++, kill++) {
			parts.kills[kill] = gathering->kills[i].kill;
			parts.kill_columns[kill] = gathering->kills[i].column;
		}
		if (p % STEP_PARTITIONS == 0)
			frugal_step(gathering->frugal);
	}
	if (columns > 0)
		lists_write_end(&lists);
	if (kills > 0)
		lists_write_end(&kill_lists);
	return FS_OK;
}

/* Makes one bundle of so many. NULL: memory is out, and everything stays as it was. */
static struct bundle *lay_together(struct frugal *frugal, struct gathering *gathering)
{
	struct bundle *bundle = NULL;
	struct block block;
	uint64_t values, kills;

	if (measure(gathering, &values, &kills) != FS_OK ||
	    block_take(frugal, bundle_bytes(frugal->partitions, gathering->columns, values, kills), &block) != FS_OK)
		return NULL;
	if (fill(gathering, values, kills, frugal->area + block.offset) == FS_OK)
		bundle = bundle_of(frugal, &block);
	if (!bundle)
		block_give(frugal, &block);
	return bundle;
}

static bool lay_some_together(struct frugal *frugal, unsigned first, unsigned count)
{
	struct gathering gathering;
	struct bundle *bundle;

	if (gathering_begin(&gathering, frugal, first, count, false) != FS_OK)
		return false;
	bundle = lay_together(frugal, &gathering);
	gathering_end(&gathering);
	if (!bundle)
		return false;
	bundle->serial = frugal->bundle[first]->serial;
	bundle->oldest = frugal->bundle[first + count - 1]->oldest;
	bundles_replace(frugal, first, count, bundle);
	return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Bundles of one level have about as many columns: below 8, below 64, ... */
static unsigned level_of(const struct bundle *bundle)
{
	unsigned level = 0;

	for (uint32_t columns = bundle->columns; columns >= TOGETHER; columns /= TOGETHER)
		level++;
	return level;
}

static uint32_t columns_of(const struct frugal *frugal, unsigned first, unsigned count)
{
	uint32_t columns = 0;

	for (unsigned i = first; i < first + count; i++)
		columns += frugal->bundle[i]->columns;
	return columns;
}

/* The bundles that a merge has begun with are the last ones, and stay as they are. */
static unsigned bundles_free_to_move(const struct frugal *frugal)
{
	unsigned count = 0;

	while (count < frugal->bundles &&
	       (!frugal->merge || frugal->bundle[count]->serial > merge_covers(frugal->merge)))
		count++;
	return count;
}

/* Finds bundles to lay together. False: none. */
static bool choose(const struct frugal *frugal, unsigned *first, unsigned *count)
{
	double share = frugal->config.share < 1 ? frugal->config.share : 1;
	uint32_t most = ((uint32_t)(share * frugal->config.segments) + LARGEST_PART - 1) / LARGEST_PART;
	unsigned movable = bundles_free_to_move(frugal);

	if (most < TOGETHER)
		most = TOGETHER;
	for (unsigned from = 0; from + TOGETHER <= movable; from++) {
		unsigned alike = 1;

		while (alike < TOGETHER && level_of(frugal->bundle[from + alike]) == level_of(frugal->bundle[from]))
			alike++;
		*first = from;
		*count = TOGETHER;
		if (alike == TOGETHER && (columns_of(frugal, from, TOGETHER) <= most || frugal->bundles > TOO_MANY))
			return true;
	}
	/* Whatever they are like: without a free row no segment can be written. */
	*first = 0;
	*count = movable;
	return frugal->bundles > TOO_MANY && movable >= TOGETHER;
}

/* Is the oldest bundle of no use any more, as all its columns are gone and nothing older is there? */
static bool oldest_is_over(const struct frugal *frugal)
{
	const struct bundle *oldest = frugal->bundles ? frugal->bundle[frugal->bundles - 1] : NULL;
	uint64_t open = segments_oldest(frugal);

	if (!oldest || frugal->chain || frugal->merge)
		return false;
	for (uint32_t c = 0; c < oldest->columns; c++)
		if (oldest->column[c].sequence >= open)
			return false;
	return true;
}

void bundles_tidy(struct frugal *frugal)
{
	unsigned first, count;
	bool dropped = false;

	while (oldest_is_over(frugal)) {
		bundles_replace(frugal, frugal->bundles - 1, 1, NULL);
		dropped = true;
	}
	while (choose(frugal, &first, &count) && lay_some_together(frugal, first, count))
		;
	/* Where there are merges, they make the prefilter anew. */
	for (uint32_t p = 0; dropped && frugal->config.share >= 1 && p < frugal->partitions; p++) {
		prefilter_renew(frugal, p, NULL, 0, 0);
		if (p % STEP_PARTITIONS == 0)
			frugal_step(frugal);
	}
}
