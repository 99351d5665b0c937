/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format on flash, read from bytes. It is written from segments/FORMAT.md alone and includes no file
 * of the engine, so that a mistake in one of the two shows as a failed check and not as agreement. Of
 * base it uses only the published hash (base/hash.h: XXH3).
 *
 * No byte is trusted: parse functions report a verdict, flaw functions report impossible numbers. After
 * both, offsets and lengths lie within a segment.
 *
 * Threads: any, as the functions are pure. Ownership: structs point into the caller's bytes where their fields say so.
 */
#ifndef FS_TOOLS_INSPECT_FORMAT_H
#define FS_TOOLS_INSPECT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define FORMAT_PAGE 4096u
#define FORMAT_AREA_BYTES 65536u /* before segment 0 */
#define FORMAT_HOMES_MOST 512u
#define FORMAT_COPY_OFFSET 32768u /* of the superblock's copy 1 */
#define FORMAT_COPIES 2u
#define FORMAT_TAIL_BYTES 128u
#define FORMAT_RECORD_BYTES 32u /* of a record's header */
#define FORMAT_KEY_MAX 250u
#define FORMAT_EXTENT_ALIGN 8u
#define FORMAT_UUID_BYTES 16u
#define FORMAT_SECRET_BYTES 192u
#define FORMAT_CLASSIFIER_BYTES 7u /* of a record, for the classifier */
#define FORMAT_SEGMENT_LEAST (64u << 10)
#define FORMAT_SEGMENT_MOST (512u << 20)
#define FORMAT_SEGMENTS_MOST 16383u
#define FORMAT_FUNCTIONS_MOST 16u

/* The verdict on bytes that should be a superblock, a header page or a tail. */
enum format_verdict {
	FORMAT_GOOD,
	FORMAT_BLANK, /* all zeros */
	FORMAT_NO_MAGIC, /* not ours, or another structure of ours */
	FORMAT_BROKEN, /* has the magic and fails its checksum */
	FORMAT_IMPOSSIBLE, /* a whole superblock whose counters no daemon reaches */
	FORMAT_UNKNOWN, /* whole, but of another version or with an incompatible feature */
};

/* What the data area of a segment holds. */
enum format_kind { FORMAT_SLOTS, FORMAT_BINS, FORMAT_CHAIN, FORMAT_NO_KIND /* two at once */ };

/* Returns static text. */
const char *format_kind_text(enum format_kind kind);

/* Returns static text. */
const char *format_verdict_text(enum format_verdict verdict);

struct format_features {
	uint64_t compatible, read_only_compatible, incompatible;
};

struct format_super {
	struct format_features features;
	uint64_t generation;
	uint8_t uuid[FORMAT_UUID_BYTES];
	uint8_t secret[FORMAT_SECRET_BYTES]; /* never printed, because it allows forging records */
	uint64_t hash_seed;
	uint64_t segment_bytes;
	uint32_t segments, functions;
	uint64_t attach_epoch, clean_epoch;
	uint64_t first_epoch; /* 1 .. attach_epoch: segments of this one and later ones may be served */
	uint64_t cas_end, sequence_end;
	uint64_t made_s;
	uint64_t flash_bytes;
	uint32_t index_segments; /* that the index was made for; 0: as many as segments */
	/* Segments that don't lie at the home of their number, or whose home is bad, in rising order. */
	uint32_t homes;
	struct format_home {
		uint16_t segment, home;
		bool bad;
	} home[FORMAT_HOMES_MOST];
	uint64_t checksum;
};

struct format_header {
	struct format_features features;
	enum format_kind kind;
	uint32_t bin_bytes;
	uint8_t uuid[FORMAT_UUID_BYTES];
	uint64_t sequence;
	uint32_t number, table_id, granule, longest_999;
	uint64_t extents_offset, extents_bytes;
	uint64_t data_offset, data_bytes;
	uint64_t footer_offset, footer_bytes;
	uint32_t records, extents; /* extents are the first of the records */
	uint64_t record_bytes;
	uint64_t written_s;
	uint64_t attach_epoch;
	uint32_t functions;
	uint64_t checksum;
};

struct format_tail {
	struct format_features features;
	uint8_t uuid[FORMAT_UUID_BYTES];
	uint64_t sequence;
	uint32_t records, extents;
	uint64_t header_checksum;
	uint64_t list_bytes, list_sum;
	uint64_t filter_bytes, filter_sum;
};

/* format_super_parse and format_header_parse judge a page of FORMAT_PAGE bytes. *out is filled unless the result is BLANK
   or NO_MAGIC. */
FS_MUST_CHECK enum format_verdict format_super_parse(const uint8_t *page, struct format_super *out);
FS_MUST_CHECK enum format_verdict format_header_parse(const uint8_t *page, struct format_header *out);
/* Judges the last FORMAT_TAIL_BYTES of a segment. *out is filled whatever the result. */
FS_MUST_CHECK enum format_verdict format_tail_parse(const uint8_t *bytes, struct format_tail *out);

/* format_super_flaw, format_header_flaw and format_tail_flaw return an impossible number as static text, or NULL. After
   NULL the areas of a segment lie within it, in their order. */
const char *format_super_flaw(const struct format_super *super);
const char *format_header_flaw(const struct format_header *header, const struct format_super *super);
const char *format_tail_flaw(const struct format_tail *tail, const struct format_header *header);

/* format_is_zero returns whether all bytes are zero, format_sum the format's checksum of the bytes. */
bool format_is_zero(const uint8_t *bytes, uint64_t length);
uint64_t format_sum(const void *bytes, uint64_t length);

/* Returns whether the home of a segment is bad, so that the segment is not used. */
bool format_segment_is_bad(const struct format_super *super, uint32_t number);
/* Returns the offset of a segment on the device. */
uint64_t format_segment_offset(const struct format_super *super, uint32_t number);

/* ---- records --------------------------------------------------------------------------------- */

struct format_record {
	uint64_t offset; /* within the segment */
	bool extent;
	uint32_t check;
	uint32_t value_length;
	uint8_t item_flags; /* four bits */
	bool last_of_bin;
	uint8_t key_length;
	uint64_t cas;
	uint32_t client_flags;
	uint32_t expiry;
	const uint8_t *classifier; /* these three point into the bytes that were parsed */
	const uint8_t *key;
	const uint8_t *value;
};

/*
 * Parses the 32 bytes at `bytes`. Returns the length of the whole record, or 0 when these can't be a
 * record's first bytes (the length of the key is out of range). key and value point behind the 32 bytes;
 * the caller may follow them only if the whole record is in memory.
 */
uint64_t format_record_parse(const uint8_t *bytes, struct format_record *out);

/* Returns whether the keyed check holds. The whole record is at bytes. */
FS_MUST_CHECK bool format_record_good(const struct format_super *super, uint64_t sequence, const uint8_t *bytes,
				      const struct format_record *record);

/* ---- the footer's list of offsets ------------------------------------------------------------ */

struct format_list {
	const struct format_header *header;
	const uint8_t *bytes;
	uint64_t length, at; /* at: bytes taken */
	uint64_t offset; /* of the last record that was returned */
	uint32_t taken;
};

/* Begins with the first record. bytes is the list of the footer, length bytes long, which outlives *list. */
void format_list_init(struct format_list *list, const struct format_header *header, const uint8_t *bytes,
		      uint64_t length);

/*
 * Stores the next record's offset; call it header->records times. False when the list is broken: it ends
 * too early, or leads out of its area; no further record can be found then. Offsets never fall. The first
 * offset of an area may be its first byte, and the same offset may come twice: the caller judges that.
 */
FS_MUST_CHECK bool format_list_next(struct format_list *list, uint64_t *offset, bool *extent);

#endif
