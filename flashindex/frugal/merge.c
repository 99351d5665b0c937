/* SPDX-License-Identifier: BSD-3-Clause */
/* A merge: bundles and the old chain become a new chain, which takes the place of both by one store. */
#include <string.h>

#include "base/fault.h"
#include "base/metrics/counters.h"
#include "flashindex/frugal/chain_internal.h"

#define BYTES_EACH 2.3 /* of a bundle, for each record ... */
#define KILL_BYTES 6.0 /* ... and for each kill */
#define BITS_LEAST 3.2 /* of the prefilter for each object: with fewer it grows, */
#define BITS_MOST 6.5 /* and with more it shrinks */

struct frugal_merge {
	struct frugal *frugal;
	struct gathering gathering;
	uint64_t covers;
	struct chain *chain; /* memory for it */
	struct block block; /* of the new chain, with room for FRUGAL_CHAIN_SEGMENTS */
	struct chain_segment *segment;
	uint32_t *places;
	uint32_t segments, partition; /* written: segments, and partitions */
	uint64_t place;
	uint8_t *buffer;
	uint64_t buffer_bytes;
};

uint64_t merge_covers(const struct frugal_merge *merge)
{
	return merge->covers;
}

/* ---- whether --------------------------------------------------------------------------------- */

/* Returns the objects that a full flash is likely to hold. */
static double objects_expected(const struct frugal *frugal)
{
	double open = atomic_load(&frugal->open_segments), records = (double)atomic_load(&frugal->open_records);

	return open > 0 ? records / open * frugal->config.segments : (double)frugal->config.objects;
}

/* Kills are many where clients change many objects for each that goes to flash: then they make a merge due, once they take
   as many bytes as the columns may. */
bool frugal_merge_is_due(const struct frugal *frugal)
{
	double share = frugal->config.share, columns = atomic_load(&frugal->columns_in_memory);
	double kill_bytes = KILL_BYTES * (double)atomic_load(&frugal->kills_listed);

	if (share >= 1 || frugal->merge || frugal->bundles == 0)
		return false;
	return columns >= share * frugal->config.segments || kill_bytes > BYTES_EACH * share * objects_expected(frugal);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Objects have got smaller or larger: the merge fills another prefilter. Without memory the old one stays. */
static void choose_prefilter(struct frugal *frugal)
{
	double objects = objects_expected(frugal);
	double bits = 8 * (double)prefilter_bytes(frugal, frugal->prefilter->blocks) / objects;
	uint64_t blocks = prefilter_blocks(frugal, (uint64_t)objects + 1), most = frugal->config.prefilter_most;

	if (most && prefilter_bytes(frugal, blocks) > most)
		blocks = most / prefilter_bytes(frugal, 1) ? most / prefilter_bytes(frugal, 1) : 1;
	if ((bits < BITS_LEAST || bits > BITS_MOST) && blocks != frugal->prefilter->blocks)
		frugal->next_prefilter = prefilter_create(frugal, blocks);
}

static int merge_take_block(struct frugal_merge *merge)
{
	struct frugal *frugal = merge->frugal;
	uint32_t columns = merge->gathering.columns;
	struct chain_layout layout = chain_layout(frugal->partitions, columns, FRUGAL_CHAIN_SEGMENTS);
	int result = block_take(frugal, layout.end, &merge->block);

	if (result != FS_OK)
		return result;
	memcpy(frugal->area + merge->block.offset, merge->gathering.column, columns * sizeof(struct column));
	merge->segment = (struct chain_segment *)(void *)(frugal->area + merge->block.offset + layout.segment);
	return FS_OK;
}

int frugal_merge_begin(struct frugal_merge **out, struct frugal *frugal)
{
	struct frugal_merge *merge;
	int result;

	*out = NULL;
	if (frugal->merge || (frugal->bundles == 0 && !frugal->chain))
		return FS_EBUSY;
	merge = mem_zalloc(sizeof(*merge));
	if (!merge)
		return FS_ENOMEM;
	merge->frugal = frugal;
	merge->covers = frugal->bundles ? frugal->bundle[0]->serial : frugal->chain->covers;
	result = gathering_begin(&merge->gathering, frugal, 0, frugal->bundles, true);
	if (result == FS_OK) {
		merge->places = mem_zalloc(((uint64_t)frugal->partitions + 1) * sizeof(*merge->places));
		merge->chain = mem_zalloc(sizeof(*merge->chain));
		result = merge->places && merge->chain ? merge_take_block(merge) : FS_ENOMEM;
	}
	frugal->merge = merge;
	if (result != FS_OK) {
		frugal_merge_cancel(merge);
		return result;
	}
	choose_prefilter(frugal);
	*out = merge;
	return FS_OK;
}

bool frugal_merge_old(const struct frugal_merge *merge, uint32_t partition, struct frugal_found *out)
{
	const struct chain *chain = merge->frugal->chain;

	return chain && chain_place(merge->frugal, chain, partition, out);
}

_Static_assert(sizeof(struct column) == 24, "as frugal_merge_columns tells");

const void *frugal_merge_columns(const struct frugal_merge *merge, uint32_t *count)
{
	*count = merge->gathering.columns;
	return merge->gathering.column;
}

bool frugal_merge_has(const struct frugal_merge *merge, uint32_t segment, uint64_t sequence)
{
	for (uint32_t s = 0; s < merge->segments; s++)
		if (merge->segment[s].segment == segment && merge->segment[s].sequence == sequence)
			return true;
	return false;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Makes the record of what was gathered. Returns its bytes; 0: memory is out. */
static uint64_t make_record(struct frugal_merge *merge)
{
	const struct gathering *gathering = &merge->gathering;
	uint64_t bytes = chain_record_bytes(gathering->columns, gathering->value_count, gathering->kill_count);
	struct lists_writer lists;
	struct chain_parts parts;

	if (bytes > merge->buffer_bytes) {
		mem_free(merge->buffer);
		merge->buffer_bytes = 0;
		merge->buffer = mem_aligned(8, (bytes + 4095) / 4096 * 4096);
		if (!merge->buffer)
			return 0;
		merge->buffer_bytes = (bytes + 4095) / 4096 * 4096;
	}
	memset(merge->buffer, 0, bytes);
	chain_record_make(merge->buffer, gathering->columns, gathering->value_count, gathering->kill_count, &parts);
	lists_write_begin(&lists, gathering->columns, parts.bits,
			  lists_words(1, gathering->columns, gathering->value_count), NULL);
	for (uint32_t c = 0; c < gathering->columns; c++)
		lists_write(&lists, gathering->counts[c]);
	memcpy(parts.values, gathering->values, gathering->value_count * sizeof(*parts.values));
	for (uint64_t i = 0; i < gathering->kill_count; i++) {
		parts.kills[i] = gathering->kills[i].kill;
		parts.kill_columns[i] = gathering->kills[i].column;
	}
	return bytes;
}

const void *frugal_merge_make(struct frugal_merge *merge, uint32_t partition, const void *old, uint64_t old_length,
			      uint64_t *length)
{
	static const uint8_t nothing[1];
	struct frugal *frugal = merge->frugal;
	struct frugal_found place;
	struct chain_record record;
	bool has_old = frugal->chain && old && chain_record_read(old, old_length, frugal->chain->columns, &record);

	*length = 0;
	if (gathering_cell(&merge->gathering, partition, has_old ? &record : NULL) != FS_OK)
		return NULL;
	/* The prefilter may hold back nothing of an old record until the new chain is in use. */
	if (has_old || frugal->next_prefilter || !frugal_merge_old(merge, partition, &place))
		prefilter_renew(frugal, partition, merge->gathering.values, merge->gathering.value_count,
				merge->covers);
	if (merge->gathering.value_count == 0)
		return nothing;
	*length = make_record(merge);
	return *length ? merge->buffer : NULL;
}

int frugal_merge_written(struct frugal_merge *merge, uint32_t segment, uint64_t sequence, uint64_t data_offset,
			 uint32_t first, uint32_t partitions, const uint32_t *lengths)
{
	uint64_t place = merge->place;

	must(first == merge->partition && partitions <= merge->frugal->partitions - first);
	if (merge->segments == FRUGAL_CHAIN_SEGMENTS)
		return FS_EFULL;
	merge->segment[merge->segments++] = (struct chain_segment){
		.sequence = sequence, .data_offset = data_offset, .segment = segment, .first = first, .from = place
	};
	for (uint32_t i = 0; i < partitions; i++) {
		merge->places[first + i] = (uint32_t)place;
		place += (lengths[i] + FRUGAL_CHAIN_ALIGN - 1) / FRUGAL_CHAIN_ALIGN;
		if (place > UINT32_MAX)
			return FS_EFULL;
	}
	merge->place = place;
	merge->partition += partitions;
	return FS_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void merge_free(struct frugal_merge *merge)
{
	merge->frugal->merge = NULL;
	gathering_end(&merge->gathering);
	mem_free(merge->places);
	mem_free(merge->chain);
	mem_free(merge->buffer);
	mem_free(merge);
}

void frugal_merge_cancel(struct frugal_merge *merge)
{
	if (!merge)
		return;
	prefilter_destroy(merge->frugal, merge->frugal->next_prefilter);
	merge->frugal->next_prefilter = NULL;
	block_give(merge->frugal, &merge->block);
	merge_free(merge);
}

/* The row of the new chain, which counts from the store of its number in the head on. */
static struct chain_row *fill_row(struct frugal_merge *merge, uint64_t number)
{
	struct frugal *frugal = merge->frugal;
	struct chain_row *row = &frugal->kept->chains[number % CHAINS];
	struct chain_layout layout = chain_layout(frugal->partitions, merge->gathering.columns, merge->segments);

	must(!frugal->chain || frugal->chain->row != row);
	memcpy(frugal->area + merge->block.offset + layout.places, merge->places,
	       ((uint64_t)frugal->partitions + 1) * sizeof(*merge->places));
	row->block = merge->block;
	row->covers = merge->covers;
	row->columns = merge->gathering.columns;
	row->segments = merge->segments;
	atomic_store_explicit(&row->number, number, memory_order_release);
	return row;
}

void frugal_merge_publish(struct frugal_merge *merge)
{
	struct frugal *frugal = merge->frugal;
	struct chain *old = frugal->chain, *chain = merge->chain;
	struct prefilter *old_prefilter = frugal->next_prefilter ? frugal->prefilter : NULL;
	unsigned covered = 0;

	for (uint32_t p = merge->partition; p <= frugal->partitions; p++)
		merge->places[p] = (uint32_t)merge->place;
	must(chain_fill(frugal, fill_row(merge, ++frugal->chain_number), chain));
	merge->chain = NULL;
	fault_kill(FAULT_killed_in_merge);
	atomic_store_explicit(&frugal->kept->chain, chain->number, memory_order_release);
	fault_kill(FAULT_killed_in_merge);
	frugal->chain = chain;
	chain_mark(frugal, chain);
	if (frugal->next_prefilter)
		prefilter_use(frugal, frugal->next_prefilter);
	frugal->next_prefilter = NULL;
	while (covered < frugal->bundles && frugal->bundle[covered]->serial > merge->covers)
		covered++;
	bundles_replace(frugal, covered, frugal->bundles - covered, NULL);
	fault_kill(FAULT_killed_in_merge);
	chain_destroy(frugal, old);
	prefilter_destroy(frugal, old_prefilter);
	merge_free(merge);
	ctr_add(CTR_frugal_merges, 1);
	bundles_tidy(frugal);
}
