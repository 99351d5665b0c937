/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes segments over whose table row is lost: header page and footer on flash are judged, and give the row back. What is
 * believed of them can't lead a read or a walk out of the segment; the records judge themselves.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segments/segments_internal.h"

void seg_set_durable(struct segments *seg)
{
	seg->durable = true;
}

int seg_adopt_begin(struct segments *seg, uint32_t newest, uint64_t sequence)
{
	if (newest >= seg->segments || sequence == 0 || sequence >= seg->next_sequence)
		return FS_EINVAL;
	lock_acquire(&seg->lock);
	seg->cursor = (newest + 1) % seg->segments;
	seg->newest_sequence = sequence;
	lock_release(&seg->lock);
	return FS_OK;
}

/* The milliseconds of the clock at which the header says it was written; 0: before the clock began. */
static uint64_t written_at_ms(const struct segments *seg, const struct layout_header *header)
{
	uint64_t now_s = (uint64_t)clk_wall_seconds(), now_ms = clk_now_ms(seg->clock);
	uint64_t age_ms = now_s > header->written_s ? (now_s - header->written_s) * 1000 : 0;

	return now_ms > age_ms ? now_ms - age_ms : 0;
}

static bool header_is_sound(const struct segments *seg, const struct layout_header *header)
{
	uint64_t bytes = seg->segment_bytes;
	enum seg_kind kind;

	return layout_kind(header, &kind) && header->sequence < seg->next_sequence && header->data_offset >= SEG_PAGE &&
	       header->data_offset <= bytes && header->data_offset % SEG_PAGE == 0 &&
	       header->data_bytes <= bytes - header->data_offset && header->footer_offset >= header->data_offset &&
	       header->footer_offset <= bytes - sizeof(struct layout_footer) && header->footer_offset % SEG_PAGE == 0 &&
	       header->extents_offset == SEG_PAGE && header->extents_bytes == header->data_offset - SEG_PAGE &&
	       header->record_bytes <= bytes && header->granule >= 1 && header->longest_999 <= bytes &&
	       header->extents <= header->objects && header->functions == seg->functions;
}

/* Without the sequence: until that is there, the row counts for nobody, a start after a kill included. */
void entry_from_header(const struct layout_header *header, struct seg_entry *entry)
{
	enum seg_kind kind;

	(void)layout_kind(header, &kind);
	*entry = (struct seg_entry){
		.data_offset = header->data_offset,
		.data_bytes = header->data_bytes,
		.footer_offset = header->footer_offset,
		.extents_bytes = header->extents_bytes,
		.record_bytes = header->record_bytes,
		.granule = header->granule,
		.longest_999 = header->longest_999,
		.objects = header->objects,
		.extents = header->extents,
		.functions = header->functions,
		.table_id = header->table_id,
		.kind = kind,
		.bin_bytes = header->bin_bytes,
		.grid = layout_grid(header->sequence, header->data_bytes, header->granule, header->functions),
	};
}

/* Reads and judges header and footer. FS_OK: the table has the segment's row. */
static int judge(struct segments *seg, uint32_t segment, uint64_t sequence, struct layout_header *header,
		 struct layout_footer *footer, uint8_t *page)
{
	struct seg_entry *entry = &seg->table->entry[segment];
	int rc = segment_read(seg, segment, header, SEG_PAGE, 0);

	if (rc == FS_OK)
		rc = segment_read(seg, segment, page, SEG_PAGE, seg->segment_bytes - SEG_PAGE);
	if (rc != FS_OK)
		return rc;
	memcpy(footer, page + SEG_PAGE - sizeof(*footer), sizeof(*footer));
	if (!header_is_sound(seg, header))
		return FS_ECORRUPT;
	entry_from_header(header, entry);
	entry->written_at_ms = written_at_ms(seg, header);
	if (seg->crossings_bytes)
		crossings_forget(seg_crossings(seg, segment), seg->crossings_bytes);
	if (!header_valid(seg, header, segment, sequence) || !footer_valid(seg, footer, sequence) ||
	    footer->header_checksum != header->checksum || footer->objects != header->objects ||
	    footer->extents != header->extents) {
		memset(entry, 0, sizeof(*entry));
		return FS_ECORRUPT;
	}
	atomic_store_explicit(&entry->sequence, sequence, memory_order_release);
	return FS_OK;
}

int seg_adopt(struct segments *seg, uint32_t segment, uint64_t sequence, struct seg_adopted *out)
{
	struct layout_header *header = mem_aligned(SEG_PAGE, SEG_PAGE);
	uint8_t *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	struct layout_footer footer;
	int rc = FS_ENOMEM;

	memset(out, 0, sizeof(*out));
	must(segment < seg->segments && sequence != 0);
	if (seg_live_at(seg, segment)->use == HOME_BAD || !seg_was_in_file(seg, segment))
		rc = FS_ECORRUPT;
	else if (header && page) {
		must(seg_live_at(seg, segment)->state == SEG_FREE);
		rc = judge(seg, segment, sequence, header, &footer, page);
	}
	if (rc == FS_OK) {
		out->objects = header->objects;
		out->extents = header->extents;
		out->record_bytes = header->record_bytes;
		(void)!filter_read(seg, segment, header->footer_offset, &footer, &out->filter, &out->filter_length);
		lock_acquire(&seg->lock);
		seg_live_at(seg, segment)->state = SEG_LIVE;
		lock_release(&seg->lock);
		atomic_store(&seg->live[segment].sequence, sequence);
	}
	mem_free(header);
	mem_free(page);
	return rc;
}

int seg_raise_epoch(struct segments *seg)
{
	if (seg->super.first_epoch == 0)
		seg->super.first_epoch = seg->super.attach_epoch;
	seg->super.attach_epoch++;
	return seg_store_super(seg);
}
