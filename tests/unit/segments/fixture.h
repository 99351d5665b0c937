/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flash for a test: opened over a RAM device or a file, with objects made from numbers (object n
 * has a key and a value that prove n), planned and written segment by segment.
 */
#ifndef FS_TESTS_SEGMENTS_FIXTURE_H
#define FS_TESTS_SEGMENTS_FIXTURE_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After them. */
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics/latency.h"
#include "segments/segments_internal.h"
#include "tests/unit/devices/ram_device.h"

#define FIXTURE_KEY_MAX 24

struct flash {
	struct segments *seg;
	struct ram_device *ram; /* NULL over a file */
	void *table;
	struct clk clock;
	struct seg_config config;
};

struct object {
	char key[FIXTURE_KEY_MAX];
	uint8_t key_length;
	uint32_t value_length;
	uint64_t number;
	uint64_t place;
};

/* A set of objects and the plan over them, for one segment. */
struct batch {
	struct object *objects;
	struct seg_candidate *candidates;
	uint32_t count;
	struct seg_plan plan;
	char *value; /* the record being handed out */
	uint64_t paced;
};

/* Opens over a RAM device with room for that many segments. memory: kept by the caller, or NULL. */
int flash_open_ram(struct flash *flash, uint32_t segments, uint64_t segment_bytes, unsigned functions, uint8_t *memory);
/* The same over a device made already. */
int flash_open_on(struct flash *flash, struct ram_device *ram, uint64_t segment_bytes, unsigned functions);
int flash_open_file(struct flash *flash, const char *path, uint64_t bytes, uint64_t segment_bytes);
void flash_close(struct flash *flash);

/* Objects numbered from first on, value lengths between shortest and longest. */
void batch_make(struct batch *batch, uint64_t first, uint32_t count, uint32_t shortest, uint32_t longest);
void batch_make_extents(struct batch *batch, uint32_t from); /* candidates from there on are extents */
void batch_fini(struct batch *batch);
uint64_t filter_bytes(void *context, uint64_t n);
int batch_plan(struct batch *batch, const struct segments *seg, enum seg_placement placement);
/* Plans and writes into the next segment. */
int batch_write(struct batch *batch, struct flash *flash, uint32_t *segment);
/* Plans a segment of bins and writes it into the next segment; places are as FORMAT.md says. */
int batch_write_bins(struct batch *batch, struct flash *flash, uint32_t *segment);
/* x of a key on that flash. */
uint64_t object_x(const struct segments *seg, const struct object *object);
const struct object *batch_placed(const struct batch *batch, uint32_t n);
extern const struct seg_writer_ops batch_ops;

/* Durations that were recorded since earlier was read. */
struct hist *durations_since(enum lat latency, const struct hist *earlier);

void object_value(const struct object *object, char *value);
void assert_is_object(const struct object *object, const struct seg_record *record);

#endif
