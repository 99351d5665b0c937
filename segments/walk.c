/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goes through a segment's records in order of offset, and reads large pieces. The offsets of a whole footer
 * lead from record to record, over broken ones too. Without a footer, the walk tries every granule: the
 * keyed check tells a record from anything else, so that it finds all whole ones.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (1u << 20)

typedef bool visit_function(void *context, uint64_t offset, bool extent, const struct seg_record *record);

struct walk {
	struct segments *seg;
	uint32_t segment;
	const struct seg_entry *entry;
	uint64_t sequence;
	visit_function *visit;
	void *context;
	uint8_t *buffer; /* [from, to) of the segment */
	uint64_t capacity, from, to;
	struct offsets_list offsets;
	uint64_t visited, visited_bytes;
	bool corrupt, failed, stopped;
	bool cleaner; /* the segment is being reclaimed, so the caller is the cleaner */
	struct home_user homes;
};

static int walk_grow(struct walk *walk, uint64_t bytes)
{
	if (bytes <= walk->capacity)
		return FS_OK;
	mem_free(walk->buffer);
	walk->from = walk->to = 0;
	walk->capacity = layout_page_up(bytes);
	walk->buffer = mem_aligned(SEG_PAGE, walk->capacity);
	if (walk->buffer)
		return FS_OK;
	walk->capacity = 0;
	return FS_ENOMEM;
}

static int walk_load(struct walk *walk, uint64_t from, uint64_t to)
{
	struct segments *seg = walk->seg;
	struct seg_home home = home_enter(seg, &walk->homes, walk->segment);
	int error;

	if (walk->cleaner)
		device_asked(seg);
	error = dev_read(home.device, walk->buffer, to - from, home.offset + from);
	home_leave(&walk->homes, home.number);
	if (walk->cleaner) {
		device_answered(seg);
		ctr_add(CTR_flash_reclaim_bytes_read, to - from);
	}
	walk->from = from;
	walk->to = error == 0 ? to : from;
	if (error != 0)
		health_read_error(seg, -error);
	return error == 0 ? FS_OK : FS_EIO;
}

/*
 * The bytes at offset, at least length of them (all lie below the segment's end). Reads a large
 * piece ahead; when that fails, only the wanted pages, because only some may be bad.
 */
static const uint8_t *bytes_at(struct walk *walk, uint64_t offset, uint64_t length)
{
	uint64_t from = offset & ~(uint64_t)(SEG_PAGE - 1);
	uint64_t least = layout_page_up(offset + length);
	uint64_t to = from + PIECE_BYTES;

	must(length > 0 && offset + length <= walk->seg->segment_bytes);
	if (offset >= walk->from && offset + length <= walk->to)
		return walk->buffer + (offset - walk->from);
	if (to < least)
		to = least;
	if (to > walk->seg->segment_bytes)
		to = walk->seg->segment_bytes;
	if (health_offline(walk->seg) || walk_grow(walk, to - from) != FS_OK ||
	    (walk_load(walk, from, to) != FS_OK && walk_load(walk, from, least) != FS_OK)) {
		walk->failed = true;
		return NULL;
	}
	return walk->buffer + (offset - walk->from);
}

/* The record at offset, which ends at limit at the latest. False: there is no whole one. */
static bool record_at(struct walk *walk, uint64_t offset, uint64_t limit, struct seg_record *record)
{
	const struct segments *seg = walk->seg;
	uint64_t known = limit - offset < SEG_PAGE ? limit - offset : SEG_PAGE;
	uint64_t needed;
	const uint8_t *bytes = bytes_at(walk, offset, known);
	int rc;

	if (!bytes)
		return false;
	rc = seg_record_read(seg, walk->segment, walk->sequence, offset, bytes, known, record, &needed);
	if (rc == FS_ESHORT && needed <= limit - offset) {
		bytes = bytes_at(walk, offset, needed);
		if (!bytes)
			return false;
		rc = seg_record_read(seg, walk->segment, walk->sequence, offset, bytes, needed, record, &needed);
	}
	return rc == FS_OK;
}

static void walk_record(struct walk *walk, uint64_t offset, const struct seg_record *record)
{
	bool extent = offset < walk->entry->data_offset;

	walk->visited++;
	walk->visited_bytes += seg_record_length(record->key_length, record->value_length);
	if (!walk->visit(walk->context, offset, extent, record))
		walk->stopped = true;
}

/* ---- by the footer ---- */

/* The next offset of the list, that of record n. */
static bool next_offset(const struct walk *walk, uint32_t n, uint64_t *at, uint64_t *offset)
{
	const struct seg_entry *entry = walk->entry;
	bool extent = n < entry->extents;
	uint64_t step;

	if (!offsets_take(&walk->offsets, at, &step))
		return false;
	if (n == entry->extents)
		*offset = entry->data_offset;
	*offset += step * (extent ? LAYOUT_EXTENT_ALIGN : entry->granule);
	return *offset < (extent ? entry->data_offset : entry->footer_offset);
}

static void walk_list(struct walk *walk)
{
	const struct seg_entry *entry = walk->entry;
	uint64_t at = 0, next = SEG_PAGE;
	struct seg_record record;
	bool more = entry->objects > 0 && next_offset(walk, 0, &at, &next);

	if (entry->objects > 0 && !more)
		walk->corrupt = true;
	for (uint32_t n = 0; more && !walk->stopped; n++) {
		uint64_t offset = next, limit = entry->footer_offset;

		if (n == entry->objects / 2 && fault_fires(FAULT_reclaim_walk_fails)) {
			walk->failed = true;
			return;
		}
		more = n + 1 < entry->objects && next_offset(walk, n + 1, &at, &next);
		if (n + 1 < entry->objects && !more)
			walk->corrupt = true;
		if (more)
			limit = next;
		if (limit > offset && record_at(walk, offset, limit, &record))
			walk_record(walk, offset, &record);
		else
			walk->corrupt = true;
	}
}

/* ---- without a footer ---- */

static void walk_area(struct walk *walk, uint64_t offset, uint64_t end, uint32_t granule)
{
	struct seg_record record;
	uint64_t begin = offset;

	while (end - offset > SEG_RECORD_HEADER && !walk->stopped) {
		uint64_t next = offset + granule;

		if (record_at(walk, offset, end, &record)) {
			uint64_t length = seg_record_length(record.key_length, record.value_length);

			walk_record(walk, offset, &record);
			next = begin + (offset - begin + length + granule - 1) / granule * granule;
		} else if (walk->to <= offset) { /* the page is unreadable: go on to the next one */
			next = begin + (layout_page_up(offset + 1) - begin + granule - 1) / granule * granule;
		}
		if (next >= end)
			return;
		offset = next;
	}
}

static void walk_all(struct walk *walk)
{
	const struct seg_entry *entry = walk->entry;

	walk->corrupt = true;
	if (entry->extents)
		walk_area(walk, SEG_PAGE, entry->data_offset, LAYOUT_EXTENT_ALIGN);
	if (!walk->stopped && entry->data_bytes > 0)
		walk_area(walk, entry->data_offset, entry->footer_offset, entry->granule);
}

/* ---- both ---- */

static void check_header(struct walk *walk)
{
	const uint8_t *bytes = bytes_at(walk, 0, SEG_PAGE);
	struct layout_header *header;

	if (!bytes)
		return;
	header = mem_alloc(sizeof(*header));
	if (header)
		memcpy(header, bytes, sizeof(*header));
	if (!header || !header_valid(walk->seg, header, walk->segment, walk->sequence))
		walk->corrupt = true;
	mem_free(header);
}

/* Reads the list of offsets. False when footer or list is broken or can't be read. */
static bool read_list(struct walk *walk)
{
	const struct seg_entry *entry = walk->entry;
	uint64_t end = walk->seg->segment_bytes;
	struct layout_footer footer;
	const uint8_t *bytes = bytes_at(walk, end - sizeof(footer), sizeof(footer));

	if (!bytes)
		return false;
	memcpy(&footer, bytes, sizeof(footer));
	if (!footer_valid(walk->seg, &footer, walk->sequence) || footer.objects != entry->objects ||
	    footer.extents != entry->extents || footer.offsets_bytes > end - entry->footer_offset)
		return false;
	walk->offsets.bytes = mem_alloc(footer.offsets_bytes + 1);
	bytes = walk->offsets.bytes && footer.offsets_bytes ? bytes_at(walk, entry->footer_offset, footer.offsets_bytes)
							    : NULL;
	if (!walk->offsets.bytes || (!bytes && footer.offsets_bytes))
		return false;
	if (bytes)
		memcpy(walk->offsets.bytes, bytes, footer.offsets_bytes);
	walk->offsets.length = footer.offsets_bytes;
	return hash64(walk->offsets.bytes, footer.offsets_bytes, LAYOUT_CHECK_SEED) == footer.offsets_checksum;
}

static bool is_reclaiming(struct segments *seg, uint32_t segment)
{
	enum seg_state state;

	lock_acquire(&seg->lock);
	state = seg_live_at(seg, segment)->state;
	lock_release(&seg->lock);
	return state == SEG_RECLAIMING;
}

int seg_walk(struct segments *seg, uint32_t segment,
	     bool (*visit_record)(void *context, uint64_t offset, bool extent, const struct seg_record *record),
	     void *context, uint64_t *visited)
{
	const struct seg_entry *entry = &seg->table->entry[segment];
	struct walk walk = {
		.seg = seg,
		.segment = segment,
		.entry = entry,
		.sequence = entry->sequence,
		.visit = visit_record,
		.cleaner = is_reclaiming(seg, segment),
		.context = context,
	};

	*visited = 0;
	if (health_offline(seg))
		return FS_EIO;
	home_user_init(seg, &walk.homes);
	if (read_list(&walk)) {
		check_header(&walk);
		walk_list(&walk);
	} else {
		walk_all(&walk);
	}
	if (!walk.stopped && (walk.visited != entry->objects || walk.visited_bytes != entry->record_bytes))
		walk.corrupt = true;
	*visited = walk.visited;
	home_user_fini(seg, &walk.homes);
	mem_free(walk.buffer);
	mem_free(walk.offsets.bytes);
	return walk.failed ? FS_EIO : walk.corrupt ? FS_ECORRUPT : FS_OK;
}
