/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes on flash. FORMAT.md is the specification, and this file is its mirror in C: every size and every
 * offset is asserted below, so that the two can't part without a failing build. Integers are little endian;
 * reserved bytes are written as zeros and never read. The functions are pure: any thread, no lock.
 */
#ifndef FS_SEGMENTS_LAYOUT_H
#define FS_SEGMENTS_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "segments/bins.h"
#include "segments/segments.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the structs are the format as they are");

#define LAYOUT_VERSION 1u
#define LAYOUT_SUPER_BYTES (64u << 10) /* before segment 0 */
#define LAYOUT_SUPER_COPY_OFFSET (32u << 10) /* of the second copy: so far away that no torn write hits both */
#define LAYOUT_SUPER_COPIES 2u
#define LAYOUT_EXTENT_ALIGN 8u
#define LAYOUT_KEY_MAX 250u
#define LAYOUT_VALUE_BITS 27u
#define LAYOUT_ITEM_FLAGS 15u /* behind the value's bits */
#define LAYOUT_LAST_OF_BIN (1u << 31)
#define LAYOUT_VALUE_MAX ((1u << LAYOUT_VALUE_BITS) - 1)
#define LAYOUT_CHECK_SEED 0x464c534849454c44ull /* of the unkeyed checksums */

/* Feature bits that this version knows (FORMAT.md: Features): of header pages ... */
#define LAYOUT_FEATURE_BINS (1ull << 0) /* incompatible */
#define LAYOUT_FEATURE_CHAIN (1ull << 1) /* incompatible */
#define LAYOUT_KNOWN_INCOMPATIBLE (LAYOUT_FEATURE_BINS | LAYOUT_FEATURE_CHAIN)
/* ... and of superblocks. */
#define LAYOUT_FEATURE_HOMES (1ull << 2) /* incompatible: segments lie elsewhere than their numbers say */
#define LAYOUT_SUPER_KNOWN_INCOMPATIBLE LAYOUT_FEATURE_HOMES
#define LAYOUT_KNOWN_RO_COMPATIBLE 0ull

struct layout_features {
	uint64_t compatible; /* unknown bit: ignore */
	uint64_t ro_compatible; /* unknown bit: may be read, not written */
	uint64_t incompatible; /* unknown bit: leave alone */
};
_Static_assert(sizeof(struct layout_features) == 24, "three masks");

/* FORMAT.md: Homes. The number of a home is that of the segment which lies there on a flash without homes. */
#define LAYOUT_HOMES_MOST 512u
#define LAYOUT_HOME_NUMBER 0x3fffu
#define LAYOUT_HOME_PARTIAL 0x4000u /* the segment that lies there was copied with pages that could not be read */
#define LAYOUT_HOME_BAD 0x8000u /* its segment is not used any more */
struct layout_home {
	uint16_t segment;
	uint16_t home; /* its number, and the two marks */
};

/* FORMAT.md: Superblock. */
#define LAYOUT_SUPER_MAGIC "FLSHSUPR"
struct layout_super {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* of this page: 4096 */
	struct layout_features features;
	uint64_t generation; /* the higher of two valid copies counts */
	uint8_t uuid[16];
	uint8_t secret[HASH_SECRET_BYTES];
	uint64_t hash_seed;
	uint64_t segment_bytes;
	uint32_t segments;
	uint32_t functions;
	uint64_t attach_epoch;
	uint64_t clean_epoch; /* the attach epoch that ended cleanly; 0 while in use */
	uint64_t cas_end; /* CAS ids below may have been given out */
	uint64_t sequence_end; /* sequence numbers below may have been used */
	uint64_t created_s; /* wall clock */
	uint64_t flash_bytes;
	uint64_t
		first_epoch; /* segments of this attach epoch and of later ones may be live; 0: of attach_epoch alone */
	uint64_t region_id; /* of the region in which the index of this attach epoch lies; 0: in none */
	uint32_t homes; /* used entries of home; 0 without LAYOUT_FEATURE_HOMES */
	uint32_t index_segments; /* that the index is made for, when they are more than segments; else 0 */
	uint64_t
		index_flash_bytes; /* with index_segments: the size of the flash that index and region were made for; else 0 */
	struct layout_home home[LAYOUT_HOMES_MOST];
	uint64_t fill_began_s; /* when the last fill began, wall clock; 0: there was none */
	uint64_t fill_left_bytes; /* of the last fill: not written, and not taken to be written */
	uint32_t fills; /* that have begun */
	uint32_t zero;
	uint64_t asked_bytes; /* of which flash_bytes are all or what had room; 0: not known */
	uint8_t reserved[4096 - 2440 - 8];
	uint64_t checksum; /* hash64 of all bytes before it */
};
#define AT(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field " is where FORMAT.md says")
AT(layout_super, version, 8);
AT(layout_super, header_bytes, 12);
AT(layout_super, features, 16);
AT(layout_super, generation, 40);
AT(layout_super, uuid, 48);
AT(layout_super, secret, 64);
AT(layout_super, hash_seed, 256);
AT(layout_super, segment_bytes, 264);
AT(layout_super, segments, 272);
AT(layout_super, functions, 276);
AT(layout_super, attach_epoch, 280);
AT(layout_super, clean_epoch, 288);
AT(layout_super, cas_end, 296);
AT(layout_super, sequence_end, 304);
AT(layout_super, created_s, 312);
AT(layout_super, flash_bytes, 320);
AT(layout_super, first_epoch, 328);
AT(layout_super, region_id, 336);
AT(layout_super, homes, 344);
AT(layout_super, index_segments, 348);
AT(layout_super, index_flash_bytes, 352);
AT(layout_super, fill_began_s, 2408);
AT(layout_super, fill_left_bytes, 2416);
AT(layout_super, fills, 2424);
AT(layout_super, asked_bytes, 2432);
AT(layout_super, home, 360);
AT(layout_super, reserved, 2440);
AT(layout_super, checksum, 4088);
_Static_assert(sizeof(struct layout_super) == SEG_PAGE, "a page");

/* FORMAT.md: Header page. */
#define LAYOUT_HEADER_MAGIC "FLSHSEGM"
struct layout_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* of this page: 4096 */
	struct layout_features features;
	uint8_t uuid[16];
	uint64_t sequence;
	uint32_t segment; /* its number */
	uint32_t table_id; /* the index table that its slots lie in */
	uint32_t granule;
	uint32_t longest_999; /* L */
	uint64_t extents_offset, extents_bytes; /* offsets from the segment's start */
	uint64_t data_offset, data_bytes;
	uint64_t footer_offset, footer_bytes;
	uint32_t objects; /* extents included */
	uint32_t extents;
	uint64_t record_bytes;
	uint64_t written_s; /* wall clock */
	uint64_t attach_epoch;
	uint32_t functions;
	uint32_t bin_bytes; /* with LAYOUT_FEATURE_BINS; else 0 */
	uint8_t reserved[4096 - 168 - 8];
	uint64_t checksum; /* hash64 of all bytes before it */
};
AT(layout_header, version, 8);
AT(layout_header, header_bytes, 12);
AT(layout_header, features, 16);
AT(layout_header, uuid, 40);
AT(layout_header, sequence, 56);
AT(layout_header, segment, 64);
AT(layout_header, table_id, 68);
AT(layout_header, granule, 72);
AT(layout_header, longest_999, 76);
AT(layout_header, extents_offset, 80);
AT(layout_header, extents_bytes, 88);
AT(layout_header, data_offset, 96);
AT(layout_header, data_bytes, 104);
AT(layout_header, footer_offset, 112);
AT(layout_header, footer_bytes, 120);
AT(layout_header, objects, 128);
AT(layout_header, extents, 132);
AT(layout_header, record_bytes, 136);
AT(layout_header, written_s, 144);
AT(layout_header, attach_epoch, 152);
AT(layout_header, functions, 160);
AT(layout_header, bin_bytes, 164);
AT(layout_header, reserved, 168);
AT(layout_header, checksum, 4088);
_Static_assert(sizeof(struct layout_header) == SEG_PAGE, "a page");

/* FORMAT.md: Footer. The last bytes of a segment, written after all its other bytes. */
#define LAYOUT_FOOTER_MAGIC "FLSHFOOT"
struct layout_footer {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* of this struct: 128 */
	struct layout_features features;
	uint8_t uuid[16];
	uint64_t sequence;
	uint32_t objects, extents;
	uint64_t header_checksum; /* of the segment's header page */
	uint64_t offsets_bytes; /* the list begins at the footer's offset */
	uint64_t offsets_checksum; /* hash64 of the list */
	uint64_t filter_bytes; /* the filter follows the list, 8-byte aligned */
	uint64_t filter_checksum; /* hash64 of the filter */
	uint64_t reserved;
	uint64_t checksum; /* hash64 of the 120 bytes before */
};
AT(layout_footer, version, 8);
AT(layout_footer, header_bytes, 12);
AT(layout_footer, features, 16);
AT(layout_footer, uuid, 40);
AT(layout_footer, sequence, 56);
AT(layout_footer, objects, 64);
AT(layout_footer, extents, 68);
AT(layout_footer, header_checksum, 72);
AT(layout_footer, offsets_bytes, 80);
AT(layout_footer, offsets_checksum, 88);
AT(layout_footer, filter_bytes, 96);
AT(layout_footer, filter_checksum, 104);
AT(layout_footer, checksum, 120);
_Static_assert(sizeof(struct layout_footer) == 128, "the tail of the last page");

/* FORMAT.md: Record. Key and value follow. */
struct layout_record {
	uint32_t check;
	uint32_t value_length_flags; /* value length in the low 27 bits, item flags above */
	uint64_t cas;
	uint32_t client_flags;
	uint32_t expiry;
	uint8_t key_length;
	uint8_t features[7];
};
AT(layout_record, value_length_flags, 4);
AT(layout_record, cas, 8);
AT(layout_record, client_flags, 16);
AT(layout_record, expiry, 20);
AT(layout_record, key_length, 24);
AT(layout_record, features, 25);
_Static_assert(sizeof(struct layout_record) == SEG_RECORD_HEADER, "32 bytes a record");
#undef AT

/* Round up to the next multiple of SEG_PAGE, and of 8. */
static inline uint64_t layout_page_up(uint64_t bytes)
{
	return (bytes + SEG_PAGE - 1) & ~(uint64_t)(SEG_PAGE - 1);
}

static inline uint64_t layout_align8(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t)7;
}

/* ---- positions ------------------------------------------------------------------------------- */

/*
 * A key's positions are stratified: the area's positions are cut into as many equal parts as there are functions, and
 * each function of a key falls into another part. The key's hash turns the order of the parts. So every function by
 * itself is uniform over the whole area, a key has a chance in every part, and the planner can go through the area part
 * by part with one position per key at a time.
 */
struct layout_grid {
	uint64_t sequence_mix;
	uint32_t positions;
	uint32_t functions;
	uint32_t parts;
	uint32_t granule;
};

/* Returns the grid of a segment's data area. granule and functions are 1 or more; fewer positions than functions make
   fewer parts, none without a position. */
static inline struct layout_grid layout_grid(uint64_t sequence, uint64_t data_bytes, uint32_t granule,
					     uint32_t functions)
{
	uint32_t positions = (uint32_t)(data_bytes / granule);

	return (struct layout_grid){
		.sequence_mix = mix64(sequence + 0x9e3779b97f4a7c15ull),
		.positions = positions,
		.functions = functions,
		.parts = positions < functions ? positions : functions,
		.granule = granule,
	};
}

/* Returns the first position of a part, 0 .. parts; the grid has positions. */
static inline uint32_t layout_part_start(const struct layout_grid *grid, uint32_t part)
{
	return (uint32_t)((uint64_t)grid->positions * part / grid->parts);
}

/* Returns the hash of a place in this segment, from which all its positions follow. */
static inline uint64_t layout_place_hash(const struct layout_grid *grid, uint64_t place)
{
	return mix64(place ^ grid->sequence_mix);
}

/* Returns the number of parts by which the functions of this key are turned. */
static inline uint32_t layout_turn(const struct layout_grid *grid, uint64_t hash)
{
	return (uint32_t)reduce64(hash, grid->parts);
}

/* Returns the least function that leads keys with this hash to a part; the next ones are parts further on. */
static inline uint32_t layout_first_function(const struct layout_grid *grid, uint64_t hash, uint32_t part)
{
	uint32_t turn = layout_turn(grid, hash);

	return part >= turn ? part - turn : part + grid->parts - turn;
}

/* Returns the position of a function within a part that begins at start and has width positions. */
static inline uint32_t layout_within(uint64_t hash, uint32_t function, uint32_t start, uint32_t width)
{
	return start + (uint32_t)reduce64(mix64(hash + (function + 1) * 0x9e3779b97f4a7c15ull), width);
}

/* Returns the position to which a function leads a place, in granules of the data area. The grid has positions. */
static inline uint32_t layout_position(const struct layout_grid *grid, uint64_t place, uint32_t function)
{
	uint64_t hash = layout_place_hash(grid, place);
	uint32_t part = (function + layout_turn(grid, hash)) % grid->parts;
	uint32_t start = layout_part_start(grid, part);

	return layout_within(hash, function, start, layout_part_start(grid, part + 1) - start);
}

/* ---- kinds of segments ----------------------------------------------------------------------- */

/* Returns the features of the header page of a segment of that kind. */
static inline uint64_t layout_features_of(enum seg_kind kind)
{
	return kind == SEG_BINS ? LAYOUT_FEATURE_BINS : kind == SEG_CHAIN ? LAYOUT_FEATURE_CHAIN : 0;
}

/* Fills in the kind that a header page tells. False: it tells none, or its areas are not those of its kind. */
static inline bool layout_kind(const struct layout_header *header, enum seg_kind *kind)
{
	uint64_t features = header->features.incompatible & LAYOUT_KNOWN_INCOMPATIBLE;
	bool bins = features == LAYOUT_FEATURE_BINS;

	*kind = bins ? SEG_BINS : features == LAYOUT_FEATURE_CHAIN ? SEG_CHAIN : SEG_SLOTS;
	if (features != layout_features_of(*kind) || (!bins && header->bin_bytes != 0))
		return false;
	if (*kind == SEG_SLOTS)
		return true;
	return header->extents == 0 && header->granule >= 1 && header->granule <= 8 &&
	       (!bins ||
		seg_bins_fit(header->data_offset, header->data_bytes, header->footer_offset, header->bin_bytes));
}

/* ---- the footer's list of offsets ------------------------------------------------------------ */

/* Returns the bytes of a LEB128 number. */
static inline unsigned layout_varint_bytes(uint64_t value)
{
	unsigned bytes = 1;

	while (value >>= 7)
		bytes++;
	return bytes;
}

/*
 * Returns the most bytes that the list takes: four for an extent, and one for a data record. All steps together are at
 * most `positions` granules long, and cost one byte more per 128, 128^2, ... granules.
 */
static inline uint64_t layout_offsets_bound(uint64_t objects, uint64_t extents, uint64_t positions)
{
	return 4 * extents + objects + (positions >> 7) + (positions >> 14) + (positions >> 21) + (positions >> 28) + 8;
}

#endif
