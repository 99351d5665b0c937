/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/inspect/filter.h"
#include "tools/inspect/kinds.h"

#define ZEROS_PIECE_BYTES (1u << 20)
#define TEXT_MOST 160

struct walk {
	const struct format_super *super;
	const struct format_header *header;
	const struct format_tail *tail;
	struct window *window;
	const struct walk_events *events;
	void *context;
	struct walk_totals *totals;
	struct filter filter;
	struct kinds_check kinds;
	uint8_t *footer; /* the whole footer, read before the records */
	uint64_t clear; /* all bytes before this offset were checked */
	bool clear_known; /* false after a broken record, whose end is unknown */
	uint64_t over_length; /* records of the data area longer than L */
	bool no_memory;
};

__attribute__((format(printf, 3, 4))) static void fail(struct walk *walk, uint64_t offset, const char *format, ...)
{
	char text[TEXT_MOST];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	walk->totals->failures++;
	walk->events->failure(walk->context, offset, text);
}

static const uint8_t *bytes_at(struct walk *walk, uint64_t offset, uint64_t length)
{
	const uint8_t *bytes = window_at(walk->window, offset, length);

	walk->no_memory |= !bytes;
	return bytes;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static void report_no_zeros(struct walk *walk, uint64_t offset, const uint8_t *bytes)
{
	while (*bytes == 0) {
		bytes++;
		offset++;
	}
	fail(walk, offset, "between records: byte 0x%02x where zeros belong", *bytes);
}

/* Checks that [walk->clear, offset), which holds no record, is zeros. Reports one failure at most. */
static void check_gap(struct walk *walk, uint64_t offset)
{
	uint64_t at = walk->clear;

	if (!walk->clear_known || offset <= at)
		return;
	if (offset - at > walk->totals->largest_gap) {
		walk->totals->largest_gap = offset - at;
		walk->totals->largest_gap_offset = at;
	}
	while (at < offset) {
		uint64_t length = offset - at < ZEROS_PIECE_BYTES ? offset - at : ZEROS_PIECE_BYTES;
		const uint8_t *bytes = bytes_at(walk, at, length);

		if (!bytes)
			return;
		if (!format_is_zero(bytes, length)) {
			report_no_zeros(walk, at, bytes);
			return;
		}
		at += length;
	}
}

/* ---- footer ---------------------------------------------------------------------------------- */

static bool read_footer(struct walk *walk)
{
	const struct format_header *header = walk->header;

	walk->footer = mem_aligned(FORMAT_PAGE, header->footer_bytes);
	if (!walk->footer) {
		walk->no_memory = true;
		return false;
	}
	flash_read(walk->window->flash, walk->footer, header->footer_bytes, walk->window->start + header->footer_offset,
		   &walk->window->unread);
	walk->window->read_bytes += header->footer_bytes;
	return true;
}

static void check_footer_zeros(struct walk *walk, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at++)
		if (walk->footer[at] != 0) {
			fail(walk, walk->header->footer_offset + at, "in the footer: byte 0x%02x where zeros belong",
			     walk->footer[at]);
			return;
		}
}

/* Returns true when the list can be followed. */
static bool check_footer(struct walk *walk)
{
	const struct format_tail *tail = walk->tail;
	uint64_t filter_at = (tail->list_bytes + 7) / 8 * 8;
	uint64_t tail_at = walk->header->footer_bytes - FORMAT_TAIL_BYTES;
	bool list_good = format_sum(walk->footer, tail->list_bytes) == tail->list_sum;
	bool filter_good = format_sum(walk->footer + filter_at, tail->filter_bytes) == tail->filter_sum;

	if (!list_good)
		fail(walk, walk->header->footer_offset,
		     "the list of offsets fails its checksum: its %u records can't be found", walk->header->records);
	if (!filter_good)
		fail(walk, walk->header->footer_offset + filter_at, "the filter fails its checksum");
	filter_init(&walk->filter, walk->super, walk->footer + filter_at, filter_good ? tail->filter_bytes : 0);
	check_footer_zeros(walk, tail->list_bytes, filter_at);
	check_footer_zeros(walk, filter_at + tail->filter_bytes, tail_at);
	return list_good;
}

/* Returns whether the segment was judged by this footer. */
static bool footer_is_current(const struct walk *walk)
{
	struct format_tail tail;

	return format_tail_parse(walk->footer + walk->header->footer_bytes - FORMAT_TAIL_BYTES, &tail) == FORMAT_GOOD &&
	       tail.sequence == walk->tail->sequence && tail.header_checksum == walk->tail->header_checksum;
}

/* ---- records --------------------------------------------------------------------------------- */

static void check_fields(struct walk *walk, const struct format_record *record, uint64_t length)
{
	uint64_t offset;
	const char *text = kinds_take(&walk->kinds, record, length, &offset);

	if (text)
		fail(walk, offset, "%s", text);
	walk->totals->records++;
	walk->totals->bytes += length;
	if (!record->extent && length > walk->header->longest_999)
		walk->over_length++;
	if (!record->extent && !filter_has_key(&walk->filter, record->key, record->key_length))
		fail(walk, record->offset, "record: the segment's filter denies its key, so gets miss it");
	if (record->cas >= walk->super->cas_end)
		fail(walk, record->offset, "record: CAS id %" PRIu64 ", which the superblock has not reserved",
		     record->cas);
}

/*
 * Checks the record at an offset of the list. `limit` is the offset of the next record or the end of the
 * area. After a broken record the bytes up to the next one are not checked, because they may belong to it.
 */
static void check_record(struct walk *walk, uint64_t offset, bool extent, uint64_t limit)
{
	struct format_record record;
	const uint8_t *bytes;
	uint64_t length = 0;
	bool good;

	check_gap(walk, offset);
	walk->clear_known = false;
	if (limit < offset + FORMAT_RECORD_BYTES) {
		kinds_take_broken(&walk->kinds);
		fail(walk, offset, "record: no room for it before %s at %" PRIu64,
		     limit == offset ? "itself, listed twice," : "the next one", limit);
		return;
	}
	bytes = bytes_at(walk, offset, FORMAT_RECORD_BYTES);
	if (!bytes)
		return;
	length = format_record_parse(bytes, &record);
	if (length == 0 || length > limit - offset) {
		kinds_take_broken(&walk->kinds);
		fail(walk, offset, "record: broken, its lengths can't be right (key %u, value %u bytes)",
		     record.key_length, record.value_length);
		return;
	}
	bytes = bytes_at(walk, offset, length);
	if (!bytes)
		return;
	format_record_parse(bytes, &record);
	record.offset = offset;
	record.extent = extent;
	good = format_record_good(walk->super, walk->header->sequence, bytes, &record);
	walk->events->record(walk->context, &record, good);
	if (!good) {
		kinds_take_broken(&walk->kinds);
		fail(walk, offset, "record: broken, fails its check");
		return;
	}
	walk->clear = offset + length;
	walk->clear_known = true;
	check_fields(walk, &record, length);
}

/* The end of the area that a record lies in. */
static uint64_t area_end(const struct walk *walk, bool extent)
{
	return extent ? walk->header->data_offset : walk->header->footer_offset;
}

static void check_end(struct walk *walk)
{
	uint64_t offset;
	const char *text = kinds_end(&walk->kinds, &offset);

	if (text)
		fail(walk, offset, "%s", text);
	check_gap(walk, walk->header->footer_offset);
}

static void check_records(struct walk *walk)
{
	const struct format_header *header = walk->header;
	uint64_t offset = 0, next = 0;
	bool extent = false, next_extent = false;
	struct format_list list;

	kinds_begin(&walk->kinds, walk->super, header);
	format_list_init(&list, header, walk->footer, walk->tail->list_bytes);
	for (uint32_t n = 0; n <= header->records && !walk->no_memory; n++) {
		bool more = n < header->records && format_list_next(&list, &next, &next_extent);

		if (n < header->records && !more)
			fail(walk, header->footer_offset + list.at, "the list of offsets leads nowhere after %u of %u",
			     n, header->records);
		if (n > 0)
			check_record(walk, offset, extent,
				     more && next_extent == extent ? next : area_end(walk, extent));
		if (!more)
			break;
		offset = next;
		extent = next_extent;
	}
	if (list.taken == header->records && list.at != list.length)
		fail(walk, header->footer_offset + list.at, "the list of offsets has %" PRIu64 " bytes too many",
		     list.length - list.at);
	if (!walk->no_memory && list.taken == header->records)
		check_end(walk);
}

/* Compares with the counts of the header, unless an earlier failure explains a difference. */
static void check_counts(struct walk *walk)
{
	const struct format_header *header = walk->header;
	uint64_t slots = header->records - header->extents;

	if (walk->totals->failures > 0)
		return;
	if (walk->totals->bytes != header->record_bytes)
		fail(walk, 0, "header: %" PRIu64 " bytes of records, but there are %" PRIu64, header->record_bytes,
		     walk->totals->bytes);
	if (walk->over_length > slots / 1000)
		fail(walk, 0, "header: L is %u, but %" PRIu64 " of %" PRIu64 " records are longer", header->longest_999,
		     walk->over_length, slots);
}

static void report_unread(struct walk *walk)
{
	const struct flash_unread *unread = &walk->window->unread;

	if (unread->pages > 0)
		fail(walk, unread->first - walk->window->start, "%" PRIu64 " %s can't be read, this first: %s",
		     unread->pages, unread->pages == 1 ? "page" : "pages",
		     unread->error ? strerror(unread->error) : "it lies beyond the end");
}

int walk_segment(const struct format_super *super, const struct segment *segment, struct window *window,
		 const struct walk_events *events, void *context, struct walk_totals *totals)
{
	struct walk walk = {
		.super = super,
		.header = &segment->header,
		.tail = &segment->tail,
		.window = window,
		.events = events,
		.context = context,
		.totals = totals,
		.clear = FORMAT_PAGE,
		.clear_known = true,
	};

	*totals = (struct walk_totals){ 0 };
	window_open(window, segment->number);
	if (read_footer(&walk)) {
		totals->overtaken = window->unread.pages == 0 && !footer_is_current(&walk);
		if (!totals->overtaken && check_footer(&walk)) {
			check_records(&walk);
			check_counts(&walk);
		}
		report_unread(&walk);
	}
	mem_free(walk.footer);
	return walk.no_memory ? FS_ENOMEM : FS_OK;
}
