/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goes through a segment's records in order of offset, and reads large pieces. The offsets of a whole footer
 * lead from record to record, over broken ones too. Without a footer, the walk tries every granule: the
 * keyed check tells a record from anything else, so that it finds all whole ones.
 *
 * A walk that wants some records only reads the heads first, of which several pages have one. Where the next head is at
 * least GAP_BYTES away, a piece ends behind the head, and the rest is read if the record is wanted.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (1u << 20)
#define HEAD_BYTES (SEG_RECORD_HEADER + LAYOUT_KEY_MAX)
#define GAP_BYTES (32u << 10) /* a drive reads as many in the time that a request of its own takes, or in less */

typedef bool visit_function(void *context, uint64_t offset, bool extent, const struct seg_record *record);

struct walk {
	struct segments *seg;
	uint32_t segment;
	const struct seg_entry *entry;
	uint64_t sequence;
	visit_function *want; /* NULL: all are wanted */
	visit_function *visit;
	void *context;
	uint8_t *buffer; /* [from, to) of the segment */
	uint64_t capacity, from, to;
	uint64_t ahead; /* no piece reads further, unless its first record is longer */
	struct offsets_list offsets;
	uint64_t visited, visited_bytes;
	bool corrupt, failed, stopped;
	bool cleaner; /* the segment is being reclaimed, so the caller is the cleaner */
	struct home_user homes;
};

/* Makes room for so many bytes. What is kept of the buffer begins at `from`; before the call it lies further behind. */
static int walk_make_room(struct walk *walk, uint64_t from, uint64_t bytes)
{
	uint64_t kept = from >= walk->from && from < walk->to ? walk->to - from : 0;
	uint8_t *buffer = walk->buffer, *of_kept = buffer ? buffer + (from - walk->from) : NULL;

	if (bytes > walk->capacity) {
		buffer = mem_aligned(SEG_PAGE, layout_page_up(bytes));
		if (!buffer)
			return FS_ENOMEM;
	}
	if (kept > 0)
		memmove(buffer, of_kept, kept);
	if (buffer != walk->buffer) {
		mem_free(walk->buffer);
		walk->capacity = layout_page_up(bytes);
		walk->buffer = buffer;
	}
	walk->from = from;
	walk->to = from + kept;
	return FS_OK;
}

/* Reads on from the end of the buffer up to `to`. */
static int walk_load(struct walk *walk, uint64_t to)
{
	struct segments *seg = walk->seg;
	struct seg_home home = home_enter(seg, &walk->homes, walk->segment);
	uint64_t bytes = to - walk->to;
	int error;

	if (walk->cleaner)
		device_asked(seg);
	error = dev_read(home.device, walk->buffer + (walk->to - walk->from), bytes, home.offset + walk->to);
	home_leave(&walk->homes, home.number);
	if (walk->cleaner) {
		device_answered(seg);
		ctr_add(CTR_flash_reclaim_bytes_read, bytes);
	}
	if (error == 0)
		walk->to = to;
	else
		health_read_error(seg, walk->segment, -error);
	return error == 0 ? FS_OK : FS_EIO;
}

/*
 * The bytes at offset, at least length of them (all lie below the segment's end). Reads a large
 * piece ahead; when that fails, only the pages asked for, because only some may be bad.
 */
static const uint8_t *bytes_at(struct walk *walk, uint64_t offset, uint64_t length)
{
	uint64_t from = offset & ~(uint64_t)(SEG_PAGE - 1);
	uint64_t least = layout_page_up(offset + length);
	uint64_t to = from + PIECE_BYTES;

	must(length > 0 && offset + length <= walk->seg->segment_bytes);
	if (offset >= walk->from && offset + length <= walk->to)
		return walk->buffer + (offset - walk->from);
	if (to > walk->ahead)
		to = walk->ahead;
	if (to < least)
		to = least;
	if (to > walk->seg->segment_bytes)
		to = walk->seg->segment_bytes;
	if (health_offline(walk->seg) || walk_make_room(walk, from, to - from) != FS_OK ||
	    (walk_load(walk, to) != FS_OK && walk_load(walk, least) != FS_OK)) {
		walk->to = walk->from;
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

static bool is_extent(const struct walk *walk, uint64_t offset)
{
	return offset < walk->entry->data_offset;
}

/* Is the record at offset, which ends at limit at the latest, one that is left out? Then it counts, and its value has not
   been read if it is long. A head that can't be one is left to record_at. */
static bool is_left_out(struct walk *walk, uint64_t offset, uint64_t limit)
{
	uint64_t known = limit - offset < HEAD_BYTES ? limit - offset : HEAD_BYTES, needed;
	const uint8_t *bytes = walk->want ? bytes_at(walk, offset, known) : NULL;
	struct seg_record head;
	int rc;

	if (!bytes)
		return false;
	rc = seg_record_read(walk->seg, walk->segment, walk->sequence, offset, bytes, known, &head, &needed);
	if (rc != FS_OK && (rc != FS_ESHORT || head.key_length == 0 || needed > limit - offset))
		return false;
	if (walk->want(walk->context, offset, is_extent(walk, offset), &head))
		return false;
	walk->visited++;
	walk->visited_bytes += seg_record_length(head.key_length, head.value_length);
	return true;
}

static void walk_record(struct walk *walk, uint64_t offset, const struct seg_record *record)
{
	walk->visited++;
	walk->visited_bytes += seg_record_length(record->key_length, record->value_length);
	if (!walk->visit(walk->context, offset, is_extent(walk, offset), record))
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

/* Where the piece that begins with record n, at offset, is to end: behind the first head that has a gap behind it. *at: of
   the list, behind record n. */
static uint64_t piece_end(const struct walk *walk, uint32_t n, uint64_t at, uint64_t offset)
{
	uint64_t most = offset + PIECE_BYTES, next = offset;

	for (; offset < most; offset = next, n++) {
		bool last = n + 1 >= walk->entry->objects || !next_offset(walk, n + 1, &at, &next);

		if (last)
			next = walk->entry->footer_offset;
		if (next - offset >= GAP_BYTES)
			return layout_page_up(offset + HEAD_BYTES);
		if (last)
			break;
	}
	return most;
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
		uint64_t offset = next, limit = entry->footer_offset, behind = at;

		if (n == entry->objects / 2 && fault_fires(FAULT_reclaim_walk_fails)) {
			walk->failed = true;
			return;
		}
		more = n + 1 < entry->objects && next_offset(walk, n + 1, &at, &next);
		if (n + 1 < entry->objects && !more)
			walk->corrupt = true;
		if (more)
			limit = next;
		if (walk->want && limit > walk->to)
			walk->ahead = piece_end(walk, n, behind, offset);
		if (limit > offset && is_left_out(walk, offset, limit))
			continue;
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

			if (!is_left_out(walk, offset, end))
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
	walk->ahead = UINT64_MAX;
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

static int walk_segment(struct segments *seg, uint32_t segment, visit_function *want, visit_function *visit,
			void *context, uint64_t *visited)
{
	const struct seg_entry *entry = &seg->table->entry[segment];
	struct walk walk = {
		.seg = seg,
		.segment = segment,
		.entry = entry,
		.sequence = entry->sequence,
		.want = want,
		.visit = visit,
		.ahead = want ? 0 : UINT64_MAX,
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

int seg_walk(struct segments *seg, uint32_t segment, visit_function *visit_record, void *context, uint64_t *visited)
{
	return walk_segment(seg, segment, NULL, visit_record, context, visited);
}

int seg_walk_wanted(struct segments *seg, uint32_t segment, visit_function *want, visit_function *visit_record,
		    void *context, uint64_t *visited)
{
	return walk_segment(seg, segment, want, visit_record, context, visited);
}
