/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads one record in the caller's thread. */
#include "base/alloc.h"
#include "segments/segments_internal.h"

/* Reads the pages from offset on, of which the record has so many bytes. *needed: it is longer than that. */
static int read_pages(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t length, struct seg_record *out,
		      void **memory, uint64_t *needed)
{
	uint64_t first = offset & ~(uint64_t)(SEG_PAGE - 1), end = layout_page_up(offset + length);
	uint8_t *pages;
	int rc;

	if (end > seg->segment_bytes)
		end = seg->segment_bytes;
	if (first >= end)
		return FS_ECORRUPT;
	pages = mem_aligned(SEG_PAGE, end - first);
	if (!pages)
		return FS_ENOMEM;
	rc = segment_read(seg, segment, pages, end - first, first);
	if (rc == FS_OK)
		rc = seg_record_read(seg, segment, seg_sequence(seg, segment), offset, pages + (offset - first),
				     end - offset, out, needed);
	if (rc == FS_OK)
		*memory = pages;
	else
		mem_free(pages);
	return rc;
}

int seg_read_record(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t length, struct seg_record *out,
		    void **memory)
{
	uint64_t needed = 0;
	int rc;

	must(segment < seg->segments);
	*memory = NULL;
	if (offset >= seg->segment_bytes)
		return FS_ECORRUPT;
	rc = read_pages(seg, segment, offset, length, out, memory, &needed);
	if (rc == FS_ESHORT && needed > length)
		rc = read_pages(seg, segment, offset, needed, out, memory, &needed);
	return rc == FS_ESHORT ? FS_ECORRUPT : rc;
}
