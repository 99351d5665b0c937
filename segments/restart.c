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

static uint64_t saved_bytes(const struct segments *seg)
{
	return sizeof(struct saved_table) + (uint64_t)seg->segments * sizeof(struct seg_entry);
}

void seg_save(const struct segments *seg, struct parts_writer *writer)
{
	struct saved_table *table = mem_must_zalloc(saved_bytes(seg));
	struct seg_entry *row = (struct seg_entry *)(table + 1);

	table->newest_sequence = seg->newest_sequence;
	table->residence_ms = seg->residence_ms;
	table->segments = seg->segments;
	table->cursor = seg->cursor;
	for (uint32_t i = 0; i < seg->segments; i++)
		if (seg->live[i].state == SEG_LIVE)
			row[i] = seg->table->entry[i];
	parts_put(writer, PARTS_SEGMENTS, 0, table, saved_bytes(seg));
	mem_free(table);
}

int seg_end_clean(struct segments *seg)
{
	int rc;

	seg->super.clean_epoch = seg->super.attach_epoch;
	rc = seg_store_super(seg);
	if (rc != FS_OK)
		health_error(seg, "a superblock write", errno);
	return rc;
}

/* May a segment have such a row? */
static FS_MUST_CHECK bool row_is_sound(const struct segments *seg, const struct seg_entry *row)
{
	return row->sequence < seg->next_sequence && row->data_offset >= SEG_PAGE &&
	       row->data_offset <= seg->segment_bytes && row->data_bytes <= seg->segment_bytes - row->data_offset &&
	       row->footer_offset <= seg->segment_bytes && row->footer_offset >= row->data_offset &&
	       row->extents_bytes == row->data_offset - SEG_PAGE && row->record_bytes <= seg->segment_bytes &&
	       row->granule >= 1 && row->longest_999 <= seg->segment_bytes && row->extents <= row->objects &&
	       row->functions == seg->functions && row->written_at_ms <= clk_now_ms(seg->clock);
}

static int table_take(struct segments *seg, const struct saved_table *table)
{
	const struct seg_entry *row = (const struct seg_entry *)(table + 1);

	if (table->segments != seg->segments || table->cursor >= seg->segments ||
	    table->newest_sequence >= seg->next_sequence)
		return FS_ECORRUPT;
	for (uint32_t i = 0; i < seg->segments; i++)
		if (row[i].sequence != 0 && !row_is_sound(seg, &row[i]))
			return FS_ECORRUPT;
	lock_acquire(&seg->lock);
	seg->cursor = table->cursor;
	seg->newest_sequence = table->newest_sequence;
	seg->residence_ms = table->residence_ms;
	for (uint32_t i = 0; i < seg->segments; i++) {
		struct seg_entry *entry = &seg->table->entry[i];

		if (row[i].sequence == 0)
			continue;
		*entry = row[i];
		entry->grid = layout_grid(entry->sequence, entry->data_bytes, entry->granule, entry->functions);
		seg_live_at(seg, i)->state = SEG_LIVE;
		atomic_store(&seg->live[i].sequence, entry->sequence);
	}
	lock_release(&seg->lock);
	return FS_OK;
}

int seg_load(struct segments *seg, struct parts_reader *reader)
{
	struct saved_table *table = mem_alloc(saved_bytes(seg));
	int rc = FS_ENOMEM;

	if (table)
		rc = parts_take(reader, PARTS_SEGMENTS, 0, table, saved_bytes(seg));
	if (rc == FS_OK)
		rc = table_take(seg, table);
	mem_free(table);
	return rc;
}

int seg_keep(struct segments *seg)
{
	int rc;

	seg->super.first_epoch = seg->first_epoch;
	rc = seg_store_super(seg);
	if (rc != FS_OK)
		health_error(seg, "a superblock write", errno);
	return rc;
}

void seg_forget(struct segments *seg)
{
	lock_acquire(&seg->lock);
	for (uint32_t i = 0; i < seg->segments; i++) {
		must(atomic_load(&seg_live_at(seg, i)->pins) == 0);
		atomic_store(&seg->live[i].sequence, 0);
		seg->live[i].state = SEG_FREE;
	}
	memset(seg->table->entry, 0, seg->segments * sizeof(struct seg_entry));
	seg->cursor = 0;
	seg->newest_sequence = seg->residence_ms = 0;
	lock_release(&seg->lock);
}
