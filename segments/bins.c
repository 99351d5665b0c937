/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in bins: where a key's bin is, the search in its bytes, and walks over some bins. Nothing here trusts bytes. */
#include "segments/bins.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (1u << 20)

static const struct seg_entry *entry_of(const struct segments *seg, uint32_t segment)
{
	must(segment < seg->segments);
	return &seg->table->entry[segment];
}

enum seg_kind seg_kind_of(const struct segments *seg, uint32_t segment)
{
	return (enum seg_kind)entry_of(seg, segment)->kind;
}

uint32_t seg_bins(const struct segments *seg, uint32_t segment)
{
	const struct seg_entry *entry = entry_of(seg, segment);

	return entry->bin_bytes ? (uint32_t)(entry->data_bytes / entry->bin_bytes) : 0;
}

static struct seg_bin bin_at(const struct seg_entry *entry, uint64_t number)
{
	return (struct seg_bin){ .offset = entry->data_offset + number * entry->bin_bytes, .bytes = entry->bin_bytes };
}

struct seg_bin seg_bin_of(const struct segments *seg, uint32_t segment, uint64_t x)
{
	return bin_at(entry_of(seg, segment), reduce64(x, seg_bins(seg, segment)));
}

static uint64_t granule_up(uint64_t bytes, uint32_t granule)
{
	return (bytes + granule - 1) / granule * granule;
}

/* ---- the records of a bin ---------------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Returns the length of the record that begins with these bytes; 0: the bin's records end here; below 0: neither. */
static int64_t record_length(const uint8_t *bytes, uint64_t left)
{
	struct layout_record header;
	uint64_t length;

	if (left < sizeof(header))
		return is_zero(bytes, left) ? 0 : -1;
	memcpy(&header, bytes, sizeof(header));
	length = seg_record_length(header.key_length, header.value_length_flags & LAYOUT_VALUE_MAX);
	if (header.key_length == 0)
		return is_zero(bytes, sizeof(header)) ? 0 : -1;
	return header.key_length > LAYOUT_KEY_MAX || length > left ? -1 : (int64_t)length;
}

static bool record_is_key(const uint8_t *bytes, const char *key, size_t key_length)
{
	return bytes[offsetof(struct layout_record, key_length)] == key_length &&
	       memcmp(bytes + sizeof(struct layout_record), key, key_length) == 0;
}

static bool record_is_last(const uint8_t *bytes)
{
	uint32_t flags;

	memcpy(&flags, bytes + offsetof(struct layout_record, value_length_flags), sizeof(flags));
	return flags & LAYOUT_LAST_OF_BIN;
}

/* Are all records of the bin there, and whole? */
static bool bin_is_whole(const struct segments *seg, uint32_t segment, uint64_t sequence, const struct seg_bin *bin,
			 const uint8_t *bytes)
{
	uint32_t granule = entry_of(seg, segment)->granule;
	struct seg_record record;
	uint64_t at = 0, needed;
	bool last = false;
	int64_t length;

	while (at < bin->bytes && (length = record_length(bytes + at, bin->bytes - at)) != 0) {
		if (length < 0 || last ||
		    seg_record_read(seg, segment, sequence, bin->offset + at, bytes + at, bin->bytes - at, &record,
				    &needed) != FS_OK)
			return false;
		last = record_is_last(bytes + at);
		at += granule_up((uint64_t)length, granule);
	}
	return last && (at >= bin->bytes || is_zero(bytes + at, bin->bytes - at));
}

uint64_t seg_next_sequence(const struct segments *seg)
{
	return seg->next_sequence;
}

enum seg_bin_says seg_bin_find(const struct segments *seg, uint32_t segment, uint64_t sequence,
			       const struct seg_bin *bin, const void *given, const char *key, size_t key_length,
			       struct seg_record *out, uint64_t *at)
{
	uint32_t granule = entry_of(seg, segment)->granule;
	const uint8_t *bytes = given;
	uint64_t offset = 0, needed;
	int64_t length;

	while (offset < bin->bytes && (length = record_length(bytes + offset, bin->bytes - offset)) > 0) {
		if (record_is_key(bytes + offset, key, key_length)) {
			*at = bin->offset + offset;
			return seg_record_read(seg, segment, sequence, *at, bytes + offset, bin->bytes - offset, out,
					       &needed) == FS_OK
				       ? SEG_BIN_FOUND
				       : SEG_BIN_DAMAGED;
		}
		offset += granule_up((uint64_t)length, granule);
	}
	if (offset == 0 && is_zero(bytes, bin->bytes))
		return SEG_BIN_EMPTY;
	return bin_is_whole(seg, segment, sequence, bin, bytes) ? SEG_BIN_ABSENT : SEG_BIN_DAMAGED;
}

/* ---- reads ------------------------------------------------------------------------------------- */

/* Reads pages of the segment. The flash may be moved to another device meanwhile. */
static int read_pages(struct segments *seg, uint32_t segment, void *pages, uint64_t bytes, uint64_t offset,
		      bool cleaner)
{
	struct home_user user;
	struct seg_home home;
	int error;

	home_user_init(seg, &user);
	home = home_enter(seg, &user, segment);
	if (cleaner)
		device_asked(seg);
	error = dev_read(home.device, pages, bytes, home.offset + offset);
	home_leave(&user, home.number);
	if (cleaner)
		device_answered(seg);
	home_user_fini(seg, &user);
	return error;
}

int seg_read_now(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t bytes, bool cleaner, void *pages,
		 uint64_t room, uint64_t *from)
{
	uint64_t first = offset & ~(uint64_t)(SEG_PAGE - 1), end;
	int error;

	if (bytes == 0 || offset > seg->segment_bytes || bytes > seg->segment_bytes - offset)
		return FS_EINVAL;
	end = layout_page_up(offset + bytes);
	must((uintptr_t)pages % SEG_PAGE == 0 && end - first <= room);
	if (health_offline(seg))
		return FS_EIO;
	error = read_pages(seg, segment, pages, end - first, first, cleaner);
	if (error != 0)
		health_read_error(seg, segment, -error);
	*from = offset - first;
	return error == 0 ? FS_OK : FS_EIO;
}

/* The records of one bin. False: visit has stopped the walk. */
static bool visit_bin(const struct segments *seg, uint32_t segment, uint64_t sequence, const struct seg_bin *bin,
		      const uint8_t *bytes, bool (*visit)(void *context, uint64_t offset, const struct seg_record *),
		      void *context, bool *corrupt)
{
	uint32_t granule = entry_of(seg, segment)->granule;
	struct seg_record record;
	uint64_t at = 0, needed;
	int64_t length = 0;

	while (at < bin->bytes && (length = record_length(bytes + at, bin->bytes - at)) > 0) {
		if (seg_record_read(seg, segment, sequence, bin->offset + at, bytes + at, bin->bytes - at, &record,
				    &needed) != FS_OK)
			*corrupt = true;
		else if (!visit(context, bin->offset + at, &record))
			return false;
		at += granule_up((uint64_t)length, granule);
	}
	*corrupt |= length < 0;
	return true;
}

int seg_walk_bins(struct segments *seg, uint32_t segment, uint32_t first, uint32_t count, bool cleaner,
		  bool (*visit)(void *context, uint64_t offset, const struct seg_record *record), void *context)
{
	const struct seg_entry *entry = entry_of(seg, segment);
	uint64_t sequence = entry->sequence, from;
	uint32_t bins = seg_bins(seg, segment), each = bins ? PIECE_BYTES / entry->bin_bytes : 1;
	bool corrupt = false, failed = false, more = true;
	uint8_t *pages;
	uint64_t room;

	must(first <= bins && count <= bins - first);
	if (count == 0)
		return FS_OK;
	room = (uint64_t)(count < each ? count : each) * entry->bin_bytes + SEG_PAGE;
	pages = mem_aligned(SEG_PAGE, room);
	if (!pages)
		return FS_ENOMEM;
	for (uint32_t b = first, end = first + count; b < end && more; b += each) {
		uint32_t n = end - b < each ? end - b : each;

		if (seg_read_now(seg, segment, bin_at(entry, b).offset, (uint64_t)n * entry->bin_bytes, cleaner, pages,
				 room, &from) != FS_OK) {
			failed = true;
			continue;
		}
		for (uint32_t i = 0; i < n && more; i++) {
			struct seg_bin bin = bin_at(entry, b + i);

			more = visit_bin(seg, segment, sequence, &bin, pages + from + (uint64_t)i * bin.bytes, visit,
					 context, &corrupt);
		}
	}
	mem_free(pages);
	return failed ? FS_EIO : corrupt ? FS_ECORRUPT : FS_OK;
}
