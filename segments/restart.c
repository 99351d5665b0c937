/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment table over a clean end: written beside the data, judged field by field when it is read back. A row is
 * believed only as far as it can't lead a read or a walk out of its segment; the records judge themselves.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segments/segments_internal.h"

/* The head of the part; rows follow, one for each segment. */
struct saved_table {
	uint64_t newest_sequence, residence_ms;
	uint32_t segments, cursor;
};

static uint64_t saved_bytes(uint32_t segments)
{
	return sizeof(struct saved_table) + (uint64_t)segments * sizeof(struct seg_entry);
}

void seg_save(const struct segments *seg, struct parts_writer *writer)
{
	/* Fewer after a move to a smaller device, by which the next start will know the flash. */
	uint32_t segments = seg->super.segments;
	struct saved_table *table = mem_must_zalloc(saved_bytes(segments));
	struct seg_entry *row = (struct seg_entry *)(table + 1);

	table->newest_sequence = seg->newest_sequence;
	table->residence_ms = seg->residence_ms;
	table->segments = segments;
	table->cursor = seg->cursor < segments ? seg->cursor : 0;
	for (uint32_t i = 0; i < segments; i++)
		if (seg->live[i].state == SEG_LIVE)
			row[i] = seg->table->entry[i];
	parts_put(writer, PARTS_SEGMENTS, 0, table, saved_bytes(segments));
	parts_put(writer, PARTS_CROSSINGS, 0, seg_crossings(seg, 0), (uint64_t)segments * seg->crossings_bytes);
	mem_free(table);
}

int seg_end_clean(struct segments *seg)
{
	int rc;

	seg->super.clean_epoch = seg->super.attach_epoch;
	fill_end(seg);
	rc = seg_store_super(seg);
	if (rc != FS_OK)
		health_error(seg, "a superblock write", errno);
	return rc;
}

/* Are the areas those of the row's kind? */
static bool kind_is_sound(const struct seg_entry *row)
{
	if (row->kind >= SEG_KINDS || (row->kind != SEG_BINS && row->bin_bytes != 0))
		return false;
	if (row->kind == SEG_SLOTS)
		return true;
	return row->extents == 0 && row->granule <= 8 &&
	       (row->kind != SEG_BINS ||
		seg_bins_fit(row->data_offset, row->data_bytes, row->footer_offset, row->bin_bytes));
}

/* May the segment have such a row? */
static FS_MUST_CHECK bool row_is_sound(const struct segments *seg, uint32_t segment, const struct seg_entry *row)
{
	if (seg_live_at(seg, segment)->use != HOME_IN_USE || segment >= atomic_load(&seg->usable))
		return false;
	return row->sequence < seg->next_sequence && row->data_offset >= SEG_PAGE &&
	       row->data_offset <= seg->segment_bytes && row->data_bytes <= seg->segment_bytes - row->data_offset &&
	       row->footer_offset <= seg->segment_bytes && row->footer_offset >= row->data_offset &&
	       row->extents_bytes == row->data_offset - SEG_PAGE && row->record_bytes <= seg->segment_bytes &&
	       row->granule >= 1 && row->longest_999 <= seg->segment_bytes && row->extents <= row->objects &&
	       row->functions == seg->functions && row->written_at_ms <= clk_now_ms(seg->clock) && kind_is_sound(row);
}

/* The segment is LIVE, as its row says. seg->lock is held. */
static void make_live(struct segments *seg, uint32_t segment)
{
	seg_live_at(seg, segment)->state = SEG_LIVE;
	atomic_store(&seg->live[segment].sequence, seg->table->entry[segment].sequence);
}

static int table_take(struct segments *seg, const struct saved_table *table)
{
	const struct seg_entry *row = (const struct seg_entry *)(table + 1);

	if (table->segments != seg->found_segments || table->segments > seg->segments ||
	    table->cursor >= table->segments || table->newest_sequence >= seg->next_sequence)
		return FS_ECORRUPT;
	for (uint32_t i = 0; i < table->segments; i++)
		if (row[i].sequence != 0 && !row_is_sound(seg, i, &row[i]))
			return FS_ECORRUPT;
	lock_acquire(&seg->lock);
	/* A full flash goes on in the segments that it has grown by, before any is reclaimed. */
	seg->cursor =
		seg->segments > table->segments && row[table->cursor].sequence != 0 ? table->segments : table->cursor;
	seg->newest_sequence = table->newest_sequence;
	seg->residence_ms = seg->table->residence_ms = table->residence_ms;
	for (uint32_t i = 0; i < table->segments; i++) {
		struct seg_entry *entry = &seg->table->entry[i];

		if (row[i].sequence == 0)
			continue;
		*entry = row[i];
		entry->grid = layout_grid(entry->sequence, entry->data_bytes, entry->granule, entry->functions);
		make_live(seg, i);
	}
	lock_release(&seg->lock);
	return FS_OK;
}

/* Reads the crossing maps, or forgets them if the last run had none. */
static int load_crossings(struct segments *seg, struct parts_reader *reader)
{
	uint64_t length, bytes = (uint64_t)seg->found_segments * seg->crossings_bytes;
	void *maps = &seg->table->entry[seg->segments], *others;
	int rc = parts_next(reader, PARTS_CROSSINGS, 0, &length);

	if (rc != FS_OK || length == bytes)
		return rc == FS_OK ? parts_get(reader, maps) : rc;
	others = mem_alloc(length + 1);
	rc = others ? parts_get(reader, others) : FS_ENOMEM;
	mem_free(others);
	if (bytes)
		crossings_forget(seg_crossings(seg, 0), bytes);
	return rc;
}

int seg_load(struct segments *seg, struct parts_reader *reader)
{
	uint64_t bytes = saved_bytes(seg->found_segments);
	struct saved_table *table = mem_alloc(bytes);
	int rc = FS_ENOMEM;

	if (table)
		rc = parts_take(reader, PARTS_SEGMENTS, 0, table, bytes);
	if (rc == FS_OK)
		rc = table_take(seg, table);
	if (rc == FS_OK)
		rc = load_crossings(seg, reader);
	mem_free(table);
	return rc;
}

bool seg_was_in_file(const struct segments *seg, uint32_t segment)
{
	return !seg->device->ops->allocate || seg_offset(seg, segment) + seg->segment_bytes <= seg->device->found_bytes;
}

bool seg_file_is_whole(const struct segments *seg)
{
	for (uint32_t i = 0; i < seg->segments; i++)
		if (seg->live[i].state == SEG_LIVE && !seg_was_in_file(seg, i))
			return false;
	return true;
}

static bool grid_is_sound(const struct seg_entry *row)
{
	const struct layout_grid grid = layout_grid(row->sequence, row->data_bytes, row->granule, row->functions);

	return memcmp(&grid, &row->grid, sizeof(grid)) == 0;
}

/* The cursor stands behind the newest segment, because segments are written in turn. */
int seg_attach(struct segments *seg)
{
	const struct seg_table *table = seg->table;

	if (table->segments != seg->segments || table->crossings_bytes != seg->crossings_bytes)
		return FS_ECORRUPT;
	for (uint32_t i = 0; i < seg->segments; i++)
		if (table->entry[i].sequence != 0 &&
		    (!row_is_sound(seg, i, &table->entry[i]) || !grid_is_sound(&table->entry[i])))
			return FS_ECORRUPT;
	lock_acquire(&seg->lock);
	seg->residence_ms = table->residence_ms;
	for (uint32_t i = 0; i < seg->segments; i++) {
		if (table->entry[i].sequence == 0)
			continue;
		make_live(seg, i);
		if (table->entry[i].sequence <= seg->newest_sequence)
			continue;
		seg->newest_sequence = table->entry[i].sequence;
		seg->cursor = (i + 1) % seg->segments;
	}
	lock_release(&seg->lock);
	return FS_OK;
}

void seg_drop(struct segments *seg, uint32_t segment)
{
	struct seg_live *live = seg_live_at(seg, segment);

	lock_acquire(&seg->lock);
	must(seg->taken_over && live->state == SEG_LIVE && atomic_load(&live->pins) == 0);
	atomic_store(&live->sequence, 0);
	live->state = SEG_FREE;
	atomic_store(&seg->table->entry[segment].sequence, 0);
	lock_release(&seg->lock);
}

void seg_forget(struct segments *seg)
{
	lock_acquire(&seg->lock);
	for (uint32_t i = 0; i < seg->segments; i++) {
		must(atomic_load(&seg_live_at(seg, i)->pins) == 0);
		atomic_store(&seg->live[i].sequence, 0);
		seg->live[i].state = seg->live[i].use == HOME_IN_USE ? SEG_FREE : SEG_RETIRED;
	}
	memset(seg->table, 0, seg_region_bytes(seg->segments, seg->segment_bytes, seg->crossings_bytes != 0));
	seg->table->segments = seg->segments;
	seg->table->crossings_bytes = seg->crossings_bytes;
	seg->cursor = 0;
	seg->newest_sequence = seg->residence_ms = 0;
	lock_release(&seg->lock);
}
