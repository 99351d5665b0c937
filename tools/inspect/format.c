/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/format.h"

#include <endian.h>
#include <string.h>

#include "base/hash.h"

#define VERSION 1u
#define FEATURE_HOMES (1ull << 2) /* incompatible, of superblocks */
#define HOME_NUMBER 0x3fffu
#define SUM_SEED 0x464c534849454c44ull
#define VALUE_BITS 27u
#define ITEM_FLAGS 15u
#define FEATURE_BINS 1u
#define FEATURE_CHAIN 2u
#define BIN_MOST 16384u
#define BIN_GRANULE_MOST 8u
#define NUMBERS_END (1ull << 62) /* of generations, epochs and sequences */

_Static_assert(HASH_SECRET_BYTES == FORMAT_SECRET_BYTES, "keyed() takes the superblock's secret");

static uint32_t u32(const uint8_t *bytes, unsigned at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return le32toh(value);
}

static uint64_t u64(const uint8_t *bytes, unsigned at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return le64toh(value);
}

const char *format_kind_text(enum format_kind kind)
{
	static const char *const texts[] = { "slots", "bins", "chain", "" };

	return texts[kind];
}

bool format_is_zero(const uint8_t *bytes, uint64_t length)
{
	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

uint64_t format_sum(const void *bytes, uint64_t length)
{
	return hash64(bytes, length, SUM_SEED);
}

/* Returns the segment's entry in the list of homes; NULL: it lies where its number says. */
static const struct format_home *home_of(const struct format_super *super, uint32_t number)
{
	for (uint32_t i = 0; i < super->homes; i++)
		if (super->home[i].segment == number)
			return &super->home[i];
	return NULL;
}

bool format_segment_is_bad(const struct format_super *super, uint32_t number)
{
	const struct format_home *home = home_of(super, number);

	return home && home->bad;
}

uint64_t format_segment_offset(const struct format_super *super, uint32_t number)
{
	const struct format_home *home = home_of(super, number);

	return FORMAT_AREA_BYTES + (home ? home->home : number) * super->segment_bytes;
}

const char *format_verdict_text(enum format_verdict verdict)
{
	switch (verdict) {
	case FORMAT_GOOD:
		return "whole";
	case FORMAT_BLANK:
		return "all zeros";
	case FORMAT_NO_MAGIC:
		return "something else";
	case FORMAT_BROKEN:
		return "fails its checksum";
	case FORMAT_IMPOSSIBLE:
		return "has a generation, an epoch, a reserve or a home that can't be right";
	case FORMAT_UNKNOWN:
		return "of a version or with a feature that this program doesn't know";
	}
	return "";
}

/* ---- superblock, header, tail ---------------------------------------------------------------- */

/* Checks the fields that all three have: magic, version, size, features, of which the known incompatible ones are
   allowed, and the sum in the last 8 bytes. */
static enum format_verdict judge(const uint8_t *bytes, unsigned size, const char *magic, uint64_t known,
				 struct format_features *features)
{
	features->compatible = u64(bytes, 16);
	features->read_only_compatible = u64(bytes, 24);
	features->incompatible = u64(bytes, 32);
	if (format_is_zero(bytes, size))
		return FORMAT_BLANK;
	if (memcmp(bytes, magic, 8) != 0)
		return FORMAT_NO_MAGIC;
	if (u64(bytes, size - 8) != format_sum(bytes, size - 8))
		return FORMAT_BROKEN;
	if (u32(bytes, 8) != VERSION || u32(bytes, 12) != size || (features->incompatible & ~known) != 0)
		return FORMAT_UNKNOWN;
	return FORMAT_GOOD;
}

/* No daemon gets to other numbers, so a copy that has them isn't valid. */
static bool numbers_are_sound(const struct format_super *super)
{
	return super->generation < NUMBERS_END && super->attach_epoch < NUMBERS_END && super->cas_end >= 1 &&
	       super->sequence_end >= 1 && super->sequence_end < NUMBERS_END;
}

/* Reads the list of homes. False: it is none that a daemon writes. The segments in it have each other's homes. */
static bool parse_homes(const uint8_t *page, struct format_super *out)
{
	static const unsigned list = 360;
	uint32_t count = u32(page, 344);

	if (count > FORMAT_HOMES_MOST || (count > 0) != (out->features.incompatible == FEATURE_HOMES))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t entry = u32(page, list + 4 * i);

		out->home[i] = (struct format_home){ .segment = (uint16_t)entry,
						     .home = entry >> 16 & HOME_NUMBER,
						     .bad = entry >> 31 };
		if (out->home[i].segment >= out->segments || out->home[i].home >= out->segments ||
		    (i > 0 && out->home[i].segment <= out->home[i - 1].segment))
			return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		unsigned as_segment = 0, as_home = 0;

		for (uint32_t other = 0; other < count; other++) {
			as_segment += out->home[other].segment == out->home[i].home;
			as_home += out->home[other].home == out->home[i].home;
		}
		if (as_segment != 1 || as_home != 1)
			return false;
	}
	out->homes = count;
	return true;
}

enum format_verdict format_super_parse(const uint8_t *page, struct format_super *out)
{
	*out = (struct format_super){
		.generation = u64(page, 40),
		.hash_seed = u64(page, 256),
		.segment_bytes = u64(page, 264),
		.segments = u32(page, 272),
		.functions = u32(page, 276),
		.attach_epoch = u64(page, 280),
		.clean_epoch = u64(page, 288),
		.cas_end = u64(page, 296),
		.sequence_end = u64(page, 304),
		.made_s = u64(page, 312),
		.flash_bytes = u64(page, 320),
		.index_segments = u32(page, 348),
		.first_epoch = u64(page, 328) ? u64(page, 328) : u64(page, 280),
		.checksum = u64(page, 4088),
	};
	enum format_verdict verdict = judge(page, FORMAT_PAGE, "FLSHSUPR", FEATURE_HOMES, &out->features);

	memcpy(out->uuid, page + 48, sizeof(out->uuid));
	memcpy(out->secret, page + 64, sizeof(out->secret));
	if (verdict == FORMAT_GOOD && (!numbers_are_sound(out) || !parse_homes(page, out)))
		verdict = FORMAT_IMPOSSIBLE;
	return verdict;
}

static enum format_kind kind_of(uint64_t features)
{
	switch (features & (FEATURE_BINS | FEATURE_CHAIN)) {
	case 0:
		return FORMAT_SLOTS;
	case FEATURE_BINS:
		return FORMAT_BINS;
	case FEATURE_CHAIN:
		return FORMAT_CHAIN;
	}
	return FORMAT_NO_KIND;
}

enum format_verdict format_header_parse(const uint8_t *page, struct format_header *out)
{
	*out = (struct format_header){
		.sequence = u64(page, 56),
		.number = u32(page, 64),
		.table_id = u32(page, 68),
		.granule = u32(page, 72),
		.longest_999 = u32(page, 76),
		.extents_offset = u64(page, 80),
		.extents_bytes = u64(page, 88),
		.data_offset = u64(page, 96),
		.data_bytes = u64(page, 104),
		.footer_offset = u64(page, 112),
		.footer_bytes = u64(page, 120),
		.records = u32(page, 128),
		.extents = u32(page, 132),
		.record_bytes = u64(page, 136),
		.written_s = u64(page, 144),
		.attach_epoch = u64(page, 152),
		.functions = u32(page, 160),
		.bin_bytes = u32(page, 164),
		.checksum = u64(page, 4088),
	};
	enum format_verdict verdict =
		judge(page, FORMAT_PAGE, "FLSHSEGM", FEATURE_BINS | FEATURE_CHAIN, &out->features);

	memcpy(out->uuid, page + 40, sizeof(out->uuid));
	out->kind = kind_of(out->features.incompatible);
	return verdict;
}

enum format_verdict format_tail_parse(const uint8_t *bytes, struct format_tail *out)
{
	*out = (struct format_tail){
		.sequence = u64(bytes, 56),
		.records = u32(bytes, 64),
		.extents = u32(bytes, 68),
		.header_checksum = u64(bytes, 72),
		.list_bytes = u64(bytes, 80),
		.list_sum = u64(bytes, 88),
		.filter_bytes = u64(bytes, 96),
		.filter_sum = u64(bytes, 104),
	};
	memcpy(out->uuid, bytes + 40, sizeof(out->uuid));
	return judge(bytes, FORMAT_TAIL_BYTES, "FLSHFOOT", 0, &out->features);
}

/* ---- impossible numbers ---------------------------------------------------------------------- */

const char *format_super_flaw(const struct format_super *super)
{
	if (super->segment_bytes < FORMAT_SEGMENT_LEAST || super->segment_bytes > FORMAT_SEGMENT_MOST ||
	    super->segment_bytes % FORMAT_PAGE)
		return "segment size out of range";
	if (super->segments < 1 || super->segments > FORMAT_SEGMENTS_MOST)
		return "number of segments out of range";
	if (super->functions < 1 || super->functions > FORMAT_FUNCTIONS_MOST)
		return "number of functions out of range";
	if (super->clean_epoch > super->attach_epoch)
		return "ended cleanly more often than it was started";
	if (super->first_epoch > super->attach_epoch)
		return "has segments of a start to come";
	return NULL;
}

static bool page_aligned(uint64_t offset)
{
	return offset % FORMAT_PAGE == 0;
}

static const char *areas_flaw(const struct format_header *header, uint64_t segment_bytes)
{
	if (header->extents_offset != FORMAT_PAGE)
		return "header: extents don't begin at 4096";
	if (!page_aligned(header->data_offset) || header->data_offset < FORMAT_PAGE ||
	    header->extents_bytes != header->data_offset - FORMAT_PAGE)
		return "header: extents and data area don't follow each other";
	if (!page_aligned(header->footer_offset) || header->footer_offset < header->data_offset ||
	    header->footer_offset > segment_bytes - FORMAT_PAGE ||
	    header->footer_bytes != segment_bytes - header->footer_offset)
		return "header: the footer doesn't end with the segment";
	if (header->data_bytes > segment_bytes - header->data_offset ||
	    header->data_offset + header->data_bytes < header->footer_offset)
		return "header: data area and footer don't follow each other";
	return NULL;
}

static const char *kind_flaw(const struct format_header *header)
{
	if (header->kind == FORMAT_NO_KIND)
		return "header: bins and a chain at once";
	if (header->kind != FORMAT_BINS && header->bin_bytes != 0)
		return "header: a size of bins, without bins";
	if (header->kind == FORMAT_SLOTS)
		return NULL;
	if (header->extents != 0)
		return "header: extents beside bins or a chain";
	if (header->granule < 1 || header->granule > BIN_GRANULE_MOST)
		return "header: granule out of range";
	if (header->kind == FORMAT_CHAIN)
		return NULL;
	if (header->bin_bytes < FORMAT_PAGE || header->bin_bytes > BIN_MOST || !page_aligned(header->bin_bytes))
		return "header: size of bins out of range";
	if (header->data_bytes < header->bin_bytes || header->data_bytes % header->bin_bytes != 0 ||
	    header->data_offset + header->data_bytes > header->footer_offset)
		return "header: bins don't fill the data area";
	return NULL;
}

const char *format_header_flaw(const struct format_header *header, const struct format_super *super)
{
	const char *flaw = areas_flaw(header, super->segment_bytes);

	if (flaw)
		return flaw;
	if (header->extents > header->records)
		return "header: more extents than records";
	if (header->records > super->segment_bytes / FORMAT_RECORD_BYTES || header->record_bytes > super->segment_bytes)
		return "header: more records than fit";
	if (header->records > header->extents && header->granule == 0)
		return "header: granule 0";
	if (header->functions < 1 || header->functions > FORMAT_FUNCTIONS_MOST)
		return "header: number of functions out of range";
	if (header->attach_epoch > super->attach_epoch)
		return "header: written by a start that has not been yet";
	return kind_flaw(header);
}

const char *format_tail_flaw(const struct format_tail *tail, const struct format_header *header)
{
	uint64_t room = header->footer_bytes - FORMAT_TAIL_BYTES;

	if (tail->header_checksum != header->checksum)
		return "footer: belongs to another header";
	if (tail->records != header->records || tail->extents != header->extents)
		return "footer: number of records or extents differs from the header's";
	if (tail->list_bytes > room || tail->filter_bytes > room ||
	    (tail->list_bytes + 7) / 8 * 8 + tail->filter_bytes > room)
		return "footer: list and filter don't fit";
	return NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

uint64_t format_record_parse(const uint8_t *bytes, struct format_record *out)
{
	uint32_t lengths = u32(bytes, 4);

	out->check = u32(bytes, 0);
	out->value_length = lengths & ((1u << VALUE_BITS) - 1);
	out->item_flags = lengths >> VALUE_BITS & ITEM_FLAGS;
	out->last_of_bin = lengths >> 31;
	out->cas = u64(bytes, 8);
	out->client_flags = u32(bytes, 16);
	out->expiry = u32(bytes, 20);
	out->key_length = bytes[24];
	out->classifier = bytes + 25;
	out->key = bytes + FORMAT_RECORD_BYTES;
	out->value = out->key + out->key_length;
	if (out->key_length < 1 || out->key_length > FORMAT_KEY_MAX)
		return 0;
	return (uint64_t)FORMAT_RECORD_BYTES + out->key_length + out->value_length;
}

bool format_record_good(const struct format_super *super, uint64_t sequence, const uint8_t *bytes,
			const struct format_record *record)
{
	uint64_t head = hash64_keyed(bytes + 4, FORMAT_RECORD_BYTES - 4 + record->key_length, super->secret);
	uint64_t value = hash64_keyed(record->value, record->value_length, super->secret);
	uint64_t all[4] = { htole64(sequence), htole64(record->offset), htole64(head), htole64(value) };

	return (uint32_t)hash64_keyed(all, sizeof(all), super->secret) == record->check;
}

/* ---- the list -------------------------------------------------------------------------------- */

void format_list_init(struct format_list *list, const struct format_header *header, const uint8_t *bytes,
		      uint64_t length)
{
	*list = (struct format_list){
		.header = header,
		.bytes = bytes,
		.length = length,
		.offset = header->extents_offset,
	};
}

/* Offsets are below 2^29: five groups of seven bits hold any step. */
static bool take_number(struct format_list *list, uint64_t *number)
{
	*number = 0;
	for (unsigned shift = 0; shift < 35 && list->at < list->length; shift += 7) {
		uint8_t byte = list->bytes[list->at++];

		*number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

bool format_list_next(struct format_list *list, uint64_t *offset, bool *extent)
{
	const struct format_header *header = list->header;
	uint64_t step, end, unit;

	*extent = list->taken < header->extents;
	unit = *extent ? FORMAT_EXTENT_ALIGN : header->granule;
	end = *extent ? header->data_offset : header->footer_offset;
	if (list->taken == header->extents)
		list->offset = header->data_offset;
	if (list->taken == header->records || !take_number(list, &step) || unit == 0 ||
	    step > (end - list->offset) / unit || list->offset + step * unit >= end)
		return false;
	list->offset += step * unit;
	list->taken++;
	*offset = list->offset;
	return true;
}
