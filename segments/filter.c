/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the filter of a segment, or a part of it, back from its footer. */
#include <string.h>

#include "base/alloc.h"
#include "segments/segments_internal.h"

int segment_read(struct segments *seg, uint32_t segment, void *buffer, uint64_t bytes, uint64_t offset)
{
	int error;

	device_asked(seg);
	error = dev_read(seg->device, buffer, bytes, seg_offset(seg, segment) + offset);
	device_answered(seg);
	if (error != 0)
		health_read_error(seg, segment, -error);
	return error == 0 ? FS_OK : FS_EIO;
}

int filter_read(struct segments *seg, uint32_t segment, uint64_t footer_offset, const struct layout_footer *footer,
		void **filter, size_t *length)
{
	uint64_t most = seg->segment_bytes - footer_offset, from, first, to;
	uint8_t *pages;
	int rc;

	*filter = NULL;
	*length = 0;
	if (footer->filter_bytes == 0)
		return FS_OK;
	if (footer->offsets_bytes > most || footer->filter_bytes > most ||
	    layout_align8(footer->offsets_bytes) + footer->filter_bytes > most)
		return FS_ECORRUPT;
	from = footer_offset + layout_align8(footer->offsets_bytes);
	first = from & ~(uint64_t)(SEG_PAGE - 1);
	to = layout_page_up(from + footer->filter_bytes);
	pages = mem_aligned(SEG_PAGE, to - first);
	if (!pages)
		return FS_ENOMEM;
	rc = segment_read(seg, segment, pages, to - first, first);
	if (rc == FS_OK &&
	    hash64(pages + (from - first), footer->filter_bytes, LAYOUT_CHECK_SEED) != footer->filter_checksum)
		rc = FS_ECORRUPT;
	if (rc == FS_OK && !(*filter = mem_alloc(footer->filter_bytes)))
		rc = FS_ENOMEM;
	if (rc == FS_OK) {
		memcpy(*filter, pages + (from - first), footer->filter_bytes);
		*length = footer->filter_bytes;
	}
	mem_free(pages);
	return rc;
}

/* Reads and judges the tail of a LIVE segment's footer. */
static int read_footer(struct segments *seg, uint32_t segment, struct layout_footer *footer)
{
	uint8_t *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	int rc = FS_ENOMEM;

	must(segment < seg->segments && seg_live_at(seg, segment)->state == SEG_LIVE);
	if (page)
		rc = segment_read(seg, segment, page, SEG_PAGE, seg->segment_bytes - SEG_PAGE);
	if (rc == FS_OK) {
		memcpy(footer, page + SEG_PAGE - sizeof(*footer), sizeof(*footer));
		rc = footer_valid(seg, footer, seg_sequence(seg, segment)) ? FS_OK : FS_ECORRUPT;
	}
	mem_free(page);
	return rc;
}

int seg_read_filter(struct segments *seg, uint32_t segment, void **filter, size_t *length)
{
	struct layout_footer footer;
	int rc = read_footer(seg, segment, &footer);

	*filter = NULL;
	*length = 0;
	if (rc != FS_OK)
		return rc;
	return filter_read(seg, segment, seg->table->entry[segment].footer_offset, &footer, filter, length);
}

int seg_read_filter_part(struct segments *seg, uint32_t segment, uint64_t offset, void *part, size_t length)
{
	uint64_t from = seg->table->entry[segment].footer_offset, most = seg->segment_bytes - from, first, end;
	struct layout_footer footer;
	uint8_t *pages;
	int rc = read_footer(seg, segment, &footer);

	if (rc != FS_OK)
		return rc;
	if (footer.offsets_bytes > most || footer.filter_bytes > most ||
	    layout_align8(footer.offsets_bytes) + footer.filter_bytes > most || length > footer.filter_bytes ||
	    offset > footer.filter_bytes - length)
		return FS_ECORRUPT;
	from += layout_align8(footer.offsets_bytes) + offset;
	first = from & ~(uint64_t)(SEG_PAGE - 1);
	end = layout_page_up(from + length);
	pages = mem_aligned(SEG_PAGE, end - first);
	if (!pages)
		return FS_ENOMEM;
	rc = segment_read(seg, segment, pages, end - first, first);
	if (rc == FS_OK)
		memcpy(part, pages + (from - first), length);
	mem_free(pages);
	return rc;
}
