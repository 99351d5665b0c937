/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index over a clean end. Tables and extents are written as they lie in memory, each with a checksum over all of
 * it. They are read back and compared with their checksums before anything is served. Slots and extents are judged when
 * they are looked up, and counted by the recount (recount.c) while the index is used; it drops those of segments that
 * are gone.
 *
 *   PARTS_INDEX -> PARTS_INDEX_SEGMENTS -> PARTS_FILTER for each segment with one -> PARTS_TABLE for each live table
 *   -> PARTS_EXTENTS if there are any
 */
#include "flashindex/flashindex.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "flashindex/extents_internal.h"

#define FILTER_BYTES_MOST (1ull << 30)

struct saved_index {
	uint32_t segments, functions, tag_bits, clock_mode;
	uint32_t live, next_table_id; /* live: a bit for each live table */
	struct {
		uint64_t buckets;
		uint64_t id;
	} table[FIDX_TABLES];
	uint64_t extent_groups;
};

/* A row for each segment. */
struct saved_segment {
	uint64_t sequence; /* 0: closed */
	uint64_t filter_length; /* 0: none */
	uint32_t table, mean_bytes;
};

/* ---- saving ---------------------------------------------------------------------------------- */

static const struct extent_table *extents_now(const struct fidx *index)
{
	return &index->extents.table[atomic_load(&index->extents.current)];
}

static void save_sizes(const struct fidx *index, struct parts_writer *writer)
{
	struct saved_index saved = { .segments = index->segments,
				     .functions = index->functions,
				     .tag_bits = index->layout.tag_bits,
				     .clock_mode = (uint32_t)index->clock_mode,
				     .live = tables_live(index),
				     .next_table_id = index->next_table_id,
				     .extent_groups = extent_groups(extents_now(index)) };

	for (uint32_t left = saved.live; left; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		saved.table[t].buckets = table_buckets(&index->table[t]);
		saved.table[t].id = atomic_load(&index->table[t].id);
	}
	parts_put(writer, PARTS_INDEX, 0, &saved, sizeof(saved));
}

static void save_filter(const struct filter *filter, uint32_t segment, struct parts_writer *writer)
{
	size_t length;
	void *bytes = filter_pack(filter, &length);

	must(bytes);
	parts_put(writer, PARTS_FILTER, segment, bytes, length);
	mem_free(bytes);
}

static void save_segments(const struct fidx *index, struct parts_writer *writer)
{
	struct saved_segment *row = mem_must_zalloc(index->segments * sizeof(*row));

	for (uint32_t s = 0; s < index->segments; s++) {
		const struct segment *segment = segment_at(index, s);

		if (segment_sequence(index, s) == SEGMENT_CLOSED)
			continue;
		row[s] = (struct saved_segment){ .sequence = segment_sequence(index, s),
						 .filter_length = filter_pack_length(atomic_load(&segment->filter)),
						 .table = segment_table(index, s),
						 .mean_bytes = atomic_load(&segment->mean_bytes) };
	}
	parts_put(writer, PARTS_INDEX_SEGMENTS, 0, row, index->segments * sizeof(*row));
	for (uint32_t s = 0; s < index->segments; s++)
		if (row[s].filter_length)
			save_filter(atomic_load(&segment_at(index, s)->filter), s, writer);
	mem_free(row);
}

void fidx_save(const struct fidx *index, struct parts_writer *writer)
{
	const struct extent_table *extents = extents_now(index);

	must(!fidx_is_counting(index)); /* extents may still be on the way from one table to the other */
	save_sizes(index, writer);
	save_segments(index, writer);
	for (uint32_t left = tables_live(index); left; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		parts_put(writer, PARTS_TABLE, t, index->table[t].bucket,
			  table_buckets(&index->table[t]) * sizeof(struct bucket));
	}
	if (extent_groups(extents))
		parts_put(writer, PARTS_EXTENTS, 0, extents->group,
			  extent_groups(extents) * sizeof(struct extent_group));
}

/* ---- sizes and segments ---------------------------------------------------------------------- */

static int judge_sizes(const struct fidx *index, const struct saved_index *saved)
{
	struct slot_layout layout;

	/* A tag that loses a bit leads to other buckets and positions. */
	if (saved->segments > index->segments || !layout_init(&layout, saved->segments, 0) ||
	    layout.segment_bits != index->layout.segment_bits)
		return FS_EFULL;
	if (saved->functions != index->functions || saved->tag_bits != index->layout.tag_bits ||
	    saved->clock_mode != (uint32_t)index->clock_mode)
		return FS_EINVAL;
	if (saved->live == 0 || saved->live >> FIDX_TABLES)
		return FS_ECORRUPT;
	for (uint32_t left = saved->live; left; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		if (saved->table[t].buckets > index->buckets_most)
			return FS_ERANGE;
		if (saved->table[t].buckets < 2 || saved->table[t].id >= saved->next_table_id)
			return FS_ECORRUPT;
	}
	return FS_OK;
}

/* Replaces the table that the index was made with by tables of the saved sizes, with memory of zeros. */
static int load_sizes(struct fidx *index, const struct saved_index *saved)
{
	int result = judge_sizes(index, saved);

	for (unsigned t = 0; t < FIDX_TABLES && result == FS_OK; t++) {
		region_decommit(index->region, table_area(t));
		if (!(saved->live >> t & 1))
			continue;
		result = region_commit(index->region, table_area(t), saved->table[t].buckets * sizeof(struct bucket));
		if (result != FS_OK)
			continue;
		table_set(&index->table[t], saved->table[t].buckets, (uint32_t)saved->table[t].id);
		table_keep(index, t);
	}
	if (result != FS_OK)
		return result;
	index->next_table_id = saved->next_table_id;
	atomic_store(&index->kept->next_table_id, saved->next_table_id);
	atomic_store(&index->kept->live, saved->live);
	tables_publish(index, saved->live);
	return FS_OK;
}

int fidx_shape_tables(struct fidx *index, const struct fidx_shape *shape, unsigned shapes, unsigned number[FIDX_TABLES])
{
	int result = shapes >= 1 && shapes <= FIDX_TABLES ? FS_OK : FS_EINVAL;

	for (unsigned t = 0; t < shapes && result == FS_OK; t++) {
		for (unsigned other = 0; other < t; other++)
			if (shape[other].id == shape[t].id)
				return FS_EINVAL;
		if (shape[t].buckets < 2 || shape[t].buckets > index->buckets_most)
			return FS_ERANGE;
		region_decommit(index->region, table_area(t));
		result = region_commit(index->region, table_area(t), shape[t].buckets * sizeof(struct bucket));
		if (result != FS_OK)
			return result;
		table_set(&index->table[t], shape[t].buckets, shape[t].id);
		if (shape[t].id >= index->next_table_id)
			index->next_table_id = shape[t].id + 1;
		table_keep(index, t);
		number[t] = t;
	}
	if (result != FS_OK)
		return result;
	atomic_store(&index->kept->live, (1u << shapes) - 1);
	tables_publish(index, (1u << shapes) - 1);
	return result;
}

static int load_filter(uint32_t segment, uint64_t length, struct parts_reader *reader, void **out)
{
	uint64_t found;
	int result;

	*out = NULL;
	if (length == 0)
		return FS_OK;
	result = parts_next(reader, PARTS_FILTER, segment, &found);
	if (result != FS_OK)
		return result;
	if (found != length || length > FILTER_BYTES_MOST)
		return FS_ECORRUPT;
	*out = mem_alloc(length);
	if (!*out)
		return FS_ENOMEM;
	result = parts_get(reader, *out);
	if (result != FS_OK) {
		mem_free(*out);
		*out = NULL;
	}
	return result;
}

/* Opens the segment, if it is LIVE, as it was. */
static int load_segment(struct fidx *index, uint32_t s, const struct saved_segment *row, uint64_t sequence,
			struct parts_reader *reader)
{
	void *filter;
	int result;

	if (sequence != 0 && row->sequence != sequence)
		return FS_ECORRUPT;
	if (row->sequence != 0 && (row->table >= FIDX_TABLES || !(tables_live(index) >> row->table & 1)))
		return FS_ECORRUPT;
	result = load_filter(s, row->filter_length, reader, &filter);
	if (result != FS_OK)
		return result;
	if (filter)
		atomic_store(&index->filters, true);
	if (sequence != 0)
		fidx_segment_open(index, s, row->table, sequence, row->mean_bytes, filter, row->filter_length);
	else
		mem_free(filter);
	return FS_OK;
}

/* The segments that were saved are the first ones of the index; the others stay closed. */
static int load_segments(struct fidx *index, uint32_t segments, const uint64_t *sequences, struct parts_reader *reader)
{
	struct saved_segment *row = mem_alloc(segments * sizeof(*row));
	int result = FS_ENOMEM;

	if (row)
		result = parts_take(reader, PARTS_INDEX_SEGMENTS, 0, row, segments * sizeof(*row));
	for (uint32_t s = 0; s < segments && result == FS_OK; s++)
		result = load_segment(index, s, &row[s], sequences[s], reader);
	mem_free(row);
	return result;
}

/* ---- slots and extents ----------------------------------------------------------------------- */

static int load_tables(struct fidx *index, struct parts_reader *reader)
{
	int result = FS_OK;

	for (uint32_t left = tables_live(index); left && result == FS_OK; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		result = parts_take(reader, PARTS_TABLE, t, index->table[t].bucket,
				    table_buckets(&index->table[t]) * sizeof(struct bucket));
	}
	return result;
}

static int load_extents(struct fidx *index, uint64_t groups, struct parts_reader *reader)
{
	struct extent_table *table = &index->extents.table[0];
	uint64_t bytes = groups * sizeof(struct extent_group);
	int result;

	if (groups == 0)
		return FS_OK;
	if (groups > region_most(index->region, REGION_EXTENTS_0) / sizeof(struct extent_group))
		return FS_ERANGE;
	must(atomic_load(&index->extents.current) == 0 && extent_groups(table) == 0);
	result = region_commit(index->region, REGION_EXTENTS_0, bytes);
	if (result == FS_OK)
		result = parts_take(reader, PARTS_EXTENTS, 0, table->group, bytes);
	if (result == FS_OK) {
		extent_store(&table->groups, groups);
		atomic_store(&index->kept->extent_groups[0], groups);
	}
	return result;
}

int fidx_load(struct fidx *index, const uint64_t *sequences, uint64_t segment_bytes, struct parts_reader *reader)
{
	struct saved_index saved;
	int result = parts_take(reader, PARTS_INDEX, 0, &saved, sizeof(saved));

	if (result == FS_OK)
		result = load_sizes(index, &saved);
	if (result == FS_OK)
		result = load_segments(index, saved.segments, sequences, reader);
	if (result == FS_OK)
		result = load_tables(index, reader);
	if (result == FS_OK)
		result = load_extents(index, saved.extent_groups, reader);
	index->segment_bytes = segment_bytes;
	if (result == FS_OK)
		result = recount_begin(index);
	return result;
}
