/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash images for the tests of flashield-inspect, in a file that exists in memory only. Made from
 * segments/FORMAT.md, without the engine: golden.hex, which the engine made, is the proof that both agree.
 */
#ifndef FS_TESTS_UNIT_INSPECT_IMAGE_H
#define FS_TESTS_UNIT_INSPECT_IMAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/inspect/commands.h"
#include "tools/inspect/flash.h"
#include "tools/inspect/scan.h"
#include "tools/inspect/segment.h"

#define IMAGE_SEGMENT (64u << 10)
#define IMAGE_START(n) (FORMAT_AREA_BYTES + (uint64_t)(n)*IMAGE_SEGMENT)
#define IMAGE_TAIL(n) (IMAGE_START((n) + 1) - FORMAT_TAIL_BYTES)

struct image {
	int fd;
	char path[32]; /* to be opened by flash_open */
	uint8_t *bytes;
	uint64_t length;
};

/* What tests/unit/segments/golden.hex holds: four segments, the first with two extents, then slots, bins, a chain. */
void image_golden(struct image *image);

/* A flash of that many empty segments. */
void image_create(struct image *image, uint32_t segments);
void image_close(struct image *image);

/* Holds the lock that a daemon would, until it is closed. */
void image_lock(const struct image *image);

/* Writes what the test changed in image->bytes. */
void image_sync(const struct image *image);
void image_truncate(struct image *image, uint64_t length);

/* Sets a little-endian number of that many bytes. */
void image_put(struct image *image, uint64_t at, uint64_t value, unsigned bytes);

/* Makes the checksum right again of a superblock copy, a header page or a tail. */
void image_seal_super(struct image *image);
void image_seal_header(struct image *image, uint32_t segment); /* and the tail's copy of its checksum */
void image_seal_tail(struct image *image, uint32_t segment);

struct image_record {
	const char *key;
	uint32_t value_length;
	uint64_t cas;
	uint32_t expiry;
	bool extent; /* these come first */
};

/* How a segment is made; zeros are defaults. */
struct image_segment {
	uint64_t sequence;
	const struct image_record *records;
	uint32_t count;
	uint32_t granule; /* 8 */
	bool filter;
	bool no_tail; /* as if its writing had been cut off */
	uint64_t attach_epoch; /* 1 */
};

/* Where each record lies is written into offsets, when that isn't NULL. */
void image_write(struct image *image, uint32_t number, const struct image_segment *segment, uint64_t *offsets);

/* What verifying all of it finds. */
struct image_tally {
	int opened; /* of flash_open: the rest is not set unless it is 0 */
	uint64_t records, failures;
	uint32_t failed_segment; /* the last that had a failure */
	uint64_t failed_offset; /* the first of it */
	char text[SCAN_TEXT_BYTES];
	uint64_t states[SEGMENT_STATES];
};
void image_verify(const struct image *image, struct image_tally *tally);

/* The same, and fails the test unless just this is found. */
void image_expect_failure(const struct image *image, uint32_t segment, uint64_t offset, const char *text);

#endif
