/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index over a clean stop and over a kill. A state file has the same blocks as the region. After a kill, blocks count as far
 * as rows name them:
 *
 *   was killed in ...                 is left                                          is mended by
 *   a kill or its end                 one 64-bit store: there or not
 *   the opening of a segment          a block without a row: the segment is closed     frugal_repair gives it back
 *   a reclaim, behind frugal_close    the segment is LIVE until its readers have left   frugal_attach leaves it closed
 *   laying bundles together           the new bundle beside some of the old ones       frugal_attach passes those over
 *   a merge before its end            the old chain and all bundles; a block           frugal_repair
 *   a merge behind its store          the new chain beside bundles that it covers      frugal_attach passes those over
 *   a change of the prefilter         the old or the new one: both have all keys
 *
 * Kills that a bundle has taken may still be in the table: that does no harm. Which keys are absent is forgotten.
 */
#include <string.h>

#include "flashindex/frugal/chain_internal.h"

/* ---- both ------------------------------------------------------------------------------------ */

/* Opens the segments that columns name and that are LIVE under the same sequence, unless they were closed already. */
static void open_columns(struct frugal *frugal, const struct column *column, uint32_t columns,
			 const uint64_t *sequences)
{
	for (uint32_t c = 0; c < columns; c++)
		if (column[c].segment < frugal->config.segments && column[c].sequence != 0 &&
		    sequences[column[c].segment] == column[c].sequence &&
		    atomic_load(&frugal->closed[column[c].segment]) != column[c].sequence &&
		    atomic_load(&frugal->open[column[c].segment]) == 0)
			segment_open(frugal, &column[c]);
}

/* Are all segments of the chain LIVE? It goes before any of them does. */
static bool chain_is_there(const struct chain *chain, const uint64_t *sequences)
{
	for (uint32_t s = 0; s < chain->segments; s++)
		if (sequences[chain->segment[s].segment] != chain->segment[s].sequence)
			return false;
	return true;
}

/* Begins with what the handle has got. */
static int begin_with(struct frugal *frugal, const uint64_t *sequences)
{
	if (frugal->chain && !chain_is_there(frugal->chain, sequences))
		return FS_ECORRUPT;
	for (unsigned b = 0; b < frugal->bundles; b++) {
		open_columns(frugal, frugal->bundle[b]->column, frugal->bundle[b]->columns, sequences);
		if (frugal->bundle[b]->serial > frugal->serial)
			frugal->serial = frugal->bundle[b]->serial;
	}
	if (frugal->chain) {
		open_columns(frugal, frugal->chain->column, frugal->chain->columns, sequences);
		if (frugal->chain->covers > frugal->serial)
			frugal->serial = frugal->chain->covers;
		chain_mark(frugal, frugal->chain);
	}
	return frugal_begin(frugal);
}

/* ---- a clean stop ---------------------------------------------------------------------------- */

struct saved_frugal {
	uint64_t seed, kill_up_to, prefilter_blocks;
	uint32_t partitions, bundles, chain_columns, chain_segments;
};

void frugal_save(const struct frugal *frugal, struct parts_writer *writer)
{
	/* One without columns leads nowhere. */
	const struct chain *chain = frugal->chain && frugal->chain->columns > 0 ? frugal->chain : NULL;
	const struct prefilter *prefilter = frugal->prefilter;
	const struct saved_frugal head = {
		.seed = frugal->config.seed,
		.kill_up_to = atomic_load(&frugal->kept->kill_up_to),
		.prefilter_blocks = prefilter->blocks,
		.partitions = frugal->partitions,
		.bundles = frugal->bundles,
		.chain_columns = chain ? chain->columns : 0,
		.chain_segments = chain ? chain->segments : 0,
	};
	uint64_t chain_bytes = chain ? chain_layout(frugal->partitions, chain->columns, chain->segments).end : 0;

	must(!frugal->merge && atomic_load(&frugal->kill_count) == 0);
	parts_put(writer, PARTS_FRUGAL, 0, &head, sizeof(head));
	parts_put(writer, PARTS_FRUGAL_WATERMARKS, 0, frugal->watermarks, frugal->partitions * sizeof(uint64_t));
	parts_put(writer, PARTS_FRUGAL_PREFILTER, 0, frugal->area + prefilter->block.offset,
		  prefilter_bytes(frugal, prefilter->blocks));
	parts_put(writer, PARTS_FRUGAL_CHAIN, 0, chain ? frugal->area + chain->block.offset : frugal->area,
		  chain_bytes);
	for (unsigned b = frugal->bundles; b-- > 0;)
		parts_put(writer, PARTS_FRUGAL_BUNDLE, frugal->bundles - 1 - b,
			  frugal->area + frugal->bundle[b]->block.offset, frugal->bundle[b]->block.bytes);
}

/* Reads the next part into a block. FS_OK; FS_ERANGE: there is no room for it; FS_ENOMEM, codes of parts_next and parts_get. */
static int load_block(struct frugal *frugal, struct parts_reader *reader, enum parts_kind kind, uint32_t number,
		      uint64_t least, struct block *block)
{
	uint64_t length;
	int result = parts_next(reader, kind, number, &length);

	*block = (struct block){ 0 };
	if (result != FS_OK)
		return result;
	if (length < least)
		return FS_ECORRUPT;
	if (length > region_most(frugal->region, REGION_FRUGAL))
		return FS_ERANGE;
	result = block_take(frugal, length, block);
	return result == FS_OK ? parts_get(reader, frugal->area + block->offset) : result;
}

static int load_prefilter(struct frugal *frugal, const struct saved_frugal *head, struct parts_reader *reader)
{
	struct prefilter *prefilter = mem_zalloc(sizeof(*prefilter));
	int result;

	if (!prefilter)
		return FS_ENOMEM;
	frugal->prefilter = prefilter;
	if (head->prefilter_blocks == 0 || head->prefilter_blocks > 1u << 24)
		return FS_ECORRUPT;
	prefilter->blocks = head->prefilter_blocks;
	result = load_block(frugal, reader, PARTS_FRUGAL_PREFILTER, 0, prefilter_bytes(frugal, prefilter->blocks),
			    &prefilter->block);
	prefilter->words = (_Atomic uint64_t *)(void *)(frugal->area + prefilter->block.offset);
	if (result == FS_OK)
		prefilter_use(frugal, prefilter);
	return result;
}

static int load_chain(struct frugal *frugal, const struct saved_frugal *head, struct parts_reader *reader)
{
	struct chain_row *row = &frugal->kept->chains[1];
	uint64_t length;
	int result;

	if (head->chain_columns == 0 && head->chain_segments == 0) {
		result = parts_next(reader, PARTS_FRUGAL_CHAIN, 0, &length);
		if (result != FS_OK || length != 0)
			return result == FS_OK ? FS_ECORRUPT : result;
		return parts_get(reader, &length);
	}
	result = load_block(frugal, reader, PARTS_FRUGAL_CHAIN, 0, 1, &row->block);
	if (result != FS_OK)
		return result;
	row->columns = head->chain_columns;
	row->segments = head->chain_segments;
	row->covers = 0;
	frugal->chain = mem_zalloc(sizeof(*frugal->chain));
	if (!frugal->chain)
		return FS_ENOMEM;
	frugal->chain_number = 1;
	atomic_store(&row->number, 1);
	if (!chain_fill(frugal, row, frugal->chain) || !chain_is_sound(frugal, frugal->chain))
		return FS_ECORRUPT;
	atomic_store(&frugal->kept->chain, 1);
	return FS_OK;
}

static int load_bundles(struct frugal *frugal, const struct saved_frugal *head, struct parts_reader *reader)
{
	if (head->bundles > BUNDLES_MOST)
		return FS_ECORRUPT;
	for (uint32_t b = 0; b < head->bundles; b++) {
		struct block block;
		struct bundle *bundle;
		int result = load_block(frugal, reader, PARTS_FRUGAL_BUNDLE, b, sizeof(struct bundle_head), &block);

		if (result != FS_OK)
			return result;
		bundle = bundle_of(frugal, &block);
		if (!bundle)
			return FS_ECORRUPT;
		memmove(frugal->bundle + 1, frugal->bundle, frugal->bundles * sizeof(frugal->bundle[0]));
		frugal->bundle[0] = bundle;
		frugal->bundles++;
		bundle->serial = bundle->oldest = b + 1;
		bundle_row_fill(frugal, bundle);
	}
	return FS_OK;
}

static int load_watermarks(struct frugal *frugal, struct parts_reader *reader)
{
	uint64_t length, *watermarks = mem_alloc(frugal->partitions * sizeof(*watermarks));
	int result = watermarks ? parts_next(reader, PARTS_FRUGAL_WATERMARKS, 0, &length) : FS_ENOMEM;

	if (result == FS_OK && length != frugal->partitions * sizeof(*watermarks))
		result = FS_ECORRUPT;
	if (result == FS_OK)
		result = parts_get(reader, watermarks);
	for (uint32_t p = 0; p < frugal->partitions && result == FS_OK; p++)
		atomic_store_explicit(&frugal->watermarks[p], watermarks[p], memory_order_relaxed);
	mem_free(watermarks);
	return result;
}

static int load_all(struct frugal *frugal, const uint64_t *sequences, struct parts_reader *reader)
{
	struct saved_frugal head;
	int result = parts_take(reader, PARTS_FRUGAL, 0, &head, sizeof(head));

	if (result != FS_OK)
		return result;
	if (head.seed != frugal->config.seed)
		return FS_EINVAL;
	if (head.partitions < 1 || head.partitions > frugal_partitions_most(&frugal->config))
		return FS_ECORRUPT;
	result = frugal_lay_out(frugal, head.partitions, frugal_lines(&frugal->config));
	if (result != FS_OK)
		return result;
	frugal_head_create(frugal);
	atomic_store(&frugal->kept->kill_up_to, head.kill_up_to);
	result = load_watermarks(frugal, reader);
	if (result == FS_OK)
		result = load_prefilter(frugal, &head, reader);
	if (result == FS_OK)
		result = load_chain(frugal, &head, reader);
	if (result == FS_OK)
		result = load_bundles(frugal, &head, reader);
	return result == FS_OK ? begin_with(frugal, sequences) : result;
}

int frugal_load(struct frugal **out, const struct frugal_config *config, struct region *region,
		const uint64_t *sequences, struct parts_reader *reader)
{
	int result = frugal_make(out, config, region);

	if (result == FS_OK)
		result = load_all(*out, sequences, reader);
	if (result != FS_OK) {
		frugal_destroy(*out);
		*out = NULL;
	}
	return result;
}

/* ---- a kill ---------------------------------------------------------------------------------- */

static int judge_head(const struct frugal *frugal)
{
	const struct region_frugal *kept = frugal->kept;

	if (kept->segments != frugal->config.segments || kept->seed != frugal->config.seed)
		return FS_EINVAL;
	if (kept->lines < 1 || kept->lines > frugal_lines_most(&frugal->config) || kept->partitions < 1 ||
	    kept->partitions > frugal_partitions_most(&frugal->config) || atomic_load(&kept->prefilter) >= PREFILTERS)
		return FS_ECORRUPT;
	return FS_OK;
}

static int attach_prefilter(struct frugal *frugal)
{
	const struct prefilter_row *row = &frugal->kept->prefilters[atomic_load(&frugal->kept->prefilter)];
	struct prefilter *prefilter = mem_zalloc(sizeof(*prefilter));

	if (!prefilter)
		return FS_ENOMEM;
	frugal->prefilter = prefilter;
	if (row->blocks == 0 || row->blocks > 1u << 24 || row->block.bytes < prefilter_bytes(frugal, row->blocks) ||
	    !block_attach(frugal, &row->block))
		return FS_ECORRUPT;
	prefilter->block = row->block;
	prefilter->blocks = row->blocks;
	prefilter->words = (_Atomic uint64_t *)(void *)(frugal->area + row->block.offset);
	return FS_OK;
}

static int attach_chain(struct frugal *frugal)
{
	uint64_t number = atomic_load(&frugal->kept->chain);
	struct chain_row *row = &frugal->kept->chains[number % CHAINS];

	if (number == 0)
		return FS_OK;
	if (atomic_load(&row->number) != number || number > UINT64_MAX / 2 || !block_attach(frugal, &row->block))
		return FS_ECORRUPT;
	frugal->chain = mem_zalloc(sizeof(*frugal->chain));
	if (!frugal->chain)
		return FS_ENOMEM;
	frugal->chain_number =
		number; /* the row of a chain that a merge has not published is free: the next one takes it */
	return chain_fill(frugal, row, frugal->chain) && chain_is_sound(frugal, frugal->chain) ? FS_OK : FS_ECORRUPT;
}

/* Has the chain, or a bundle that was laid together, everything that this row's bundle has? */
static bool row_is_covered(const struct frugal *frugal, const struct bundle_row *row)
{
	uint64_t serial = atomic_load(&row->serial), oldest = row->oldest;

	if (frugal->chain && serial <= frugal->chain->covers)
		return true;
	for (unsigned i = 0; i < BUNDLES_MOST; i++) {
		const struct bundle_row *other = &frugal->kept->bundles[i];
		uint64_t newest = atomic_load(&other->serial);

		if (other != row && newest != 0 && other->oldest <= oldest && newest >= serial &&
		    newest - other->oldest > serial - oldest)
			return true;
	}
	return false;
}

static int attach_bundle(struct frugal *frugal, struct bundle_row *row)
{
	uint64_t serial = atomic_load(&row->serial);
	struct bundle *bundle;
	unsigned at = 0;

	if (row->oldest > serial || row->oldest == 0 || serial > UINT64_MAX / 2 || !block_attach(frugal, &row->block))
		return FS_ECORRUPT;
	bundle = bundle_of(frugal, &row->block);
	if (!bundle)
		return FS_ECORRUPT;
	bundle->row = row;
	bundle->serial = serial;
	bundle->oldest = row->oldest;
	while (at < frugal->bundles && frugal->bundle[at]->serial > serial)
		at++;
	memmove(frugal->bundle + at + 1, frugal->bundle + at, (frugal->bundles - at) * sizeof(frugal->bundle[0]));
	frugal->bundle[at] = bundle;
	frugal->bundles++;
	return FS_OK;
}

static int attach_bundles(struct frugal *frugal)
{
	int result = FS_OK;

	for (unsigned i = 0; i < BUNDLES_MOST && result == FS_OK; i++) {
		struct bundle_row *row = &frugal->kept->bundles[i];

		if (atomic_load(&row->serial) != 0 && !row_is_covered(frugal, row))
			result = attach_bundle(frugal, row);
	}
	return result;
}

static int attach_all(struct frugal *frugal, const uint64_t *sequences)
{
	int result = judge_head(frugal);

	if (result == FS_OK)
		result = frugal_lay_out(frugal, frugal->kept->partitions, frugal->kept->lines);
	if (result == FS_OK)
		result = attach_prefilter(frugal);
	if (result == FS_OK)
		result = attach_chain(frugal);
	if (result == FS_OK)
		result = attach_bundles(frugal);
	if (result == FS_OK)
		kills_count(frugal);
	return result == FS_OK ? begin_with(frugal, sequences) : result;
}

int frugal_attach(struct frugal **out, const struct frugal_config *config, struct region *region,
		  const uint64_t *sequences)
{
	int result = frugal_make(out, config, region);

	if (result == FS_OK)
		result = attach_all(*out, sequences);
	if (result != FS_OK) {
		frugal_destroy(*out);
		*out = NULL;
	}
	return result;
}

static bool row_is_used(const struct frugal *frugal, const struct bundle_row *row)
{
	for (unsigned b = 0; b < frugal->bundles; b++)
		if (frugal->bundle[b]->row == row)
			return true;
	return false;
}

void frugal_repair(struct frugal *frugal)
{
	for (unsigned i = 0; i < BUNDLES_MOST; i++)
		if (!row_is_used(frugal, &frugal->kept->bundles[i]))
			atomic_store(&frugal->kept->bundles[i].serial, 0);
	for (unsigned i = 0; i < CHAINS; i++)
		if (!frugal->chain || frugal->chain->row != &frugal->kept->chains[i])
			atomic_store(&frugal->kept->chains[i].number, 0);
	/* Of an object that was being committed the record counts now, and its key is not absent. */
	kills_forget_absent(frugal);
	blocks_tidy(frugal);
}
