/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format on flash against two witnesses: an image made once (golden.hex: rows of 32 bytes that
 * aren't all zero) that each version must still make and read, and read_image.py, which knows
 * FORMAT.md alone. FLASHIELD_GOLDEN=write writes golden.hex anew, for a new version of the format.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define SEGMENTS 4u
#define BYTES (LAYOUT_SUPER_BYTES + SEGMENTS * SEGMENT)
#define ROW 32u
#define WRITTEN_S 1700000000u

static char golden_path[512], script_path[512];

/* Objects of slots and two extents, the same in each run. */
static void make_objects(struct batch *batch, uint64_t first)
{
	batch_make(batch, first, 24, 3, 700);
	batch_make_extents(batch, 22);
}

/* The wall clock is all that differs between two runs: set to the golden one's. */
static void set_time(uint8_t *segment)
{
	struct layout_header *header = (struct layout_header *)segment;
	struct layout_footer *footer = (struct layout_footer *)(segment + SEGMENT - sizeof(*footer));

	header->written_s = WRITTEN_S;
	header->checksum = hash64(header, offsetof(struct layout_header, checksum), LAYOUT_CHECK_SEED);
	footer->header_checksum = header->checksum;
	footer->checksum = hash64(footer, offsetof(struct layout_footer, checksum), LAYOUT_CHECK_SEED);
}

static void fix_super(struct layout_super *super)
{
	for (unsigned i = 0; i < sizeof(super->uuid); i++)
		super->uuid[i] = (uint8_t)(0xa0 + i);
	for (unsigned i = 0; i < sizeof(super->secret); i++)
		super->secret[i] = (uint8_t)(i * 7 + 1);
	super->hash_seed = 0x0123456789abcdefull;
	super->created_s = WRITTEN_S;
	super->cas_end = 1000;
}

/* ---- a chain --------------------------------------------------------------------------------- */

/* A record of columns, and one of partition 7, which has fingerprints 0x1111 and 0x2222 in column 0, 0x3333 in column 1, and a
   kill in column 0. */
static const struct seg_record chain_records[] = {
	{ .key = "FLCO\x02\0\0",
	  .key_length = 8,
	  .value_length = 48,
	  .value = "\x03\0\0\0\0\0\0\0"
		   "\x02\0\0\0"
		   "\x28\0\0\0"
		   "\x10\x27\0\0\0\0\0\0"
		   "\x02\0\0\0\0\0\0\0"
		   "\x01\0\0\0"
		   "\x14\0\0\0"
		   "\x88\x13\0\0\0\0\0\0" },
	{ .key = "FLCH\x07\0\0",
	  .key_length = 8,
	  .value_length = 38,
	  .value = "\x01\0\0\0"
		   "\x02\0\0\0"
		   "\x03\0\0\0"
		   "\x01\0\0\0"
		   "\x14\0\0\0\0\0\0\0"
		   "\x11\x11\x22\x22\x33\x33\0\0"
		   "\x78\x56\x34\x12"
		   "\0\0" },
};

static void hand_out_chain(void *context, uint32_t n, struct seg_record *out)
{
	(void)context;
	*out = chain_records[n];
}

static void no_pace(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
}

static void write_chain(struct flash *flash)
{
	static const struct seg_writer_ops ops = { .record = hand_out_chain, .pace = no_pace };
	uint32_t lengths[2], segment;
	enum seg_state state;
	struct seg_plan plan;
	uint64_t written;

	for (unsigned i = 0; i < 2; i++)
		lengths[i] = (uint32_t)seg_record_length(8, chain_records[i].value_length);
	assert_int_equal(seg_next(flash->seg, &segment, &state), FS_OK);
	assert_int_equal(seg_plan_chain(flash->seg, lengths, 2, &plan), FS_OK);
	assert_int_equal(plan.count, 2);
	assert_int_equal(seg_write(flash->seg, segment, &plan, NULL, 0, &ops, NULL, &written), FS_OK);
	seg_plan_fini(&plan);
}

/* What the independent reader is to print of it. */
static const char *const chain_lines[] = {
	"segment 3 sequence 4 objects 2 extents 0 granule 8 L 88 filter 0 chain\n",
	"columns 4096: sequence 3 segment 2 records 40 bytes 10000, sequence 2 segment 1 records 20 bytes 5000\n",
	"partition 4192 7: [[4369, 8738], [13107]] kills [(305419896, 0)]\n",
};

/* ---- the image ------------------------------------------------------------------------------- */

/* Segments with a filter and extents, with slots alone, of bins, and of a chain. batches: of the first three. */
static uint8_t *make_image(struct batch batches[3])
{
	uint8_t *memory = ram_memory(BYTES);
	struct flash flash;
	uint32_t segment;

	assert_int_equal(flash_open_ram(&flash, SEGMENTS, SEGMENT, 16, memory), FS_OK);
	fix_super(&flash.seg->super);
	assert_int_equal(super_store(flash.seg->device, flash.seg->clock, &flash.seg->super), FS_OK);
	make_objects(&batches[0], 1);
	assert_int_equal(batch_write(&batches[0], &flash, &segment), FS_OK);
	batch_make(&batches[1], 100, 20, 0, 100);
	assert_int_equal(batch_write(&batches[1], &flash, &segment), FS_OK);
	batch_make(&batches[2], 200, 60, 0, 900);
	assert_int_equal(batch_write_bins(&batches[2], &flash, &segment), FS_OK);
	write_chain(&flash);
	flash_close(&flash);
	for (unsigned i = 0; i < SEGMENTS; i++)
		set_time(memory + LAYOUT_SUPER_BYTES + i * SEGMENT);
	return memory;
}

static void write_golden(const uint8_t *memory)
{
	static const uint8_t zeros[ROW];
	FILE *file = fopen(golden_path, "w");

	assert_non_null(file);
	for (uint64_t at = 0; at < BYTES; at += ROW) {
		if (memcmp(memory + at, zeros, ROW) == 0)
			continue;
		fprintf(file, "%06llx ", (unsigned long long)at);
		for (unsigned i = 0; i < ROW; i++)
			fprintf(file, "%02x", memory[at + i]);
		fputc('\n', file);
	}
	assert_int_equal(fclose(file), 0);
}

static uint8_t *read_golden(void)
{
	uint8_t *memory = ram_memory(BYTES);
	FILE *file = fopen(golden_path, "r");
	unsigned long long at;
	char row[2 * ROW + 1];

	assert_non_null(file);
	while (fscanf(file, "%llx %64s", &at, row) == 2) {
		assert_in_range(at, 0, BYTES - ROW);
		assert_int_equal(strlen(row), 2 * ROW);
		for (unsigned i = 0; i < ROW; i++) {
			unsigned byte;

			assert_int_equal(sscanf(row + 2 * i, "%2x", &byte), 1);
			memory[at + i] = (uint8_t)byte;
		}
	}
	fclose(file);
	return memory;
}

static void the_golden_image_is_still_made(void **state)
{
	struct batch batches[3];
	uint8_t *memory = make_image(batches), *golden;

	(void)state;
	if (getenv("FLASHIELD_GOLDEN"))
		write_golden(memory);
	golden = read_golden();
	for (uint64_t at = 0; at < BYTES; at++)
		if (memory[at] != golden[at])
			fail_msg("byte %llu is %02x, golden %02x", (unsigned long long)at, memory[at], golden[at]);
	mem_free(memory);
	mem_free(golden);
	for (unsigned i = 0; i < 3; i++)
		batch_fini(&batches[i]);
}

struct expected {
	const struct batch *batch;
	uint32_t n;
};

static bool expect_next(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct expected *expected = context;

	assert_int_equal(offset, expected->batch->plan.placed[expected->n].offset);
	assert_int_equal(extent, expected->n < expected->batch->plan.extents);
	assert_is_object(batch_placed(expected->batch, expected->n), record);
	expected->n++;
	return true;
}

static uint8_t kind_of(const struct layout_header *header)
{
	enum seg_kind kind;

	assert_true(layout_kind(header, &kind));
	return (uint8_t)kind;
}

/* Opened with today's code; the entries are what a later restart will take from the header. */
static void the_golden_image_is_still_read(void **state)
{
	struct batch batches[3];
	uint8_t *memory = make_image(batches), *golden = read_golden();
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, SEGMENTS, SEGMENT, 16, golden), FS_OK);
	for (uint32_t i = 0; i < 3; i++) {
		struct layout_header header;
		struct seg_entry *entry = &flash.seg->table->entry[i];
		struct expected expected = { .batch = &batches[i] };
		uint64_t visited;

		memcpy(&header, golden + LAYOUT_SUPER_BYTES + i * SEGMENT, sizeof(header));
		*entry = (struct seg_entry){
			.sequence = header.sequence,
			.data_offset = header.data_offset,
			.data_bytes = header.data_bytes,
			.footer_offset = header.footer_offset,
			.record_bytes = header.record_bytes,
			.granule = header.granule,
			.objects = header.objects,
			.extents = header.extents,
			.bin_bytes = header.bin_bytes,
			.kind = kind_of(&header),
		};
		assert_int_equal(seg_walk(flash.seg, i, expect_next, &expected, &visited), FS_OK);
		assert_int_equal(visited, batches[i].plan.count);
		batch_fini(&batches[i]);
	}
	flash_close(&flash);
	mem_free(memory);
	mem_free(golden);
}

/* What the independent reader is to print of a record. */
static void describe(const struct batch *batch, uint32_t n, char *line, size_t size)
{
	const struct object *object = batch_placed(batch, n);
	char *value = mem_alloc(object->value_length + 1);
	char features[15];

	object_value(object, value);
	for (unsigned i = 0; i < 7; i++)
		snprintf(features + 2 * i, 3, "%02x", (uint8_t)(object->number + i));
	snprintf(line, size, "%s %u %s %u %016llx cas %llu flags %u expiry %u item %u features %s\n",
		 n < batch->plan.extents ? "extent" : "record", batch->plan.placed[n].offset, object->key,
		 object->value_length, (unsigned long long)hash64(value, object->value_length, LAYOUT_CHECK_SEED),
		 (unsigned long long)object->number + 1, (uint32_t)(object->number * 3), (uint32_t)(object->number * 5),
		 (unsigned)(object->number % 16), features);
	mem_free(value);
}

static void assert_line(FILE *pipe, const char *expected)
{
	char line[600];

	assert_non_null(fgets(line, sizeof(line), pipe));
	assert_string_equal(line, expected);
}

static void an_independent_reader_finds_the_same(void **state)
{
	char image[] = "/tmp/flashield-image-XXXXXX", command[1200], line[600];
	struct batch batches[3];
	uint8_t *memory = make_image(batches);
	int fd = mkstemp(image);
	FILE *pipe;

	(void)state;
	if (system("python3 -c '' 2>/dev/null") != 0) {
		print_message("skipped: no python3 here\n");
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(write(fd, memory, BYTES), BYTES);
	close(fd);
	snprintf(command, sizeof(command), "python3 %s %s 2>&1", script_path, image);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_line(pipe, "flash a0a1a2a3a4a5a6a7a8a9aaabacadaeaf segments 4 of 65536\n");
	for (uint32_t i = 0; i < 3; i++) {
		const struct seg_plan *plan = &batches[i].plan;

		snprintf(line, sizeof(line),
			 "segment %u sequence %u objects %u extents %u granule %u L %u filter %llu%s\n", i, i + 1,
			 plan->count, plan->extents, plan->granule, plan->longest_999,
			 (unsigned long long)(i < 2 ? filter_bytes(NULL, plan->count) : 0),
			 i < 2 ? "" : " bins 14 of 4096");
		assert_line(pipe, line);
		for (uint32_t n = 0; n < plan->count; n++) {
			describe(&batches[i], n, line, sizeof(line));
			assert_line(pipe, line);
		}
		batch_fini(&batches[i]);
	}
	for (unsigned i = 0; i < sizeof(chain_lines) / sizeof(chain_lines[0]); i++)
		assert_line(pipe, chain_lines[i]);
	assert_null(fgets(line, sizeof(line), pipe));
	assert_int_equal(pclose(pipe), 0);
	unlink(image);
	mem_free(memory);
}

static void it_computes_the_same_positions(void **state)
{
	static const struct {
		uint64_t place, sequence, data_bytes;
		uint32_t function, granule, functions;
	} cases[] = {
		{ 0, 0, 4096, 0, 8, 1 },
		{ 0x123456789abcdefull, 77, 500u << 20, 15, 8, 16 },
		{ UINT64_MAX, UINT64_MAX, 65536, 3, 309, 7 },
		{ 42, 1, 100000, 9, 30000, 16 }, /* fewer positions than functions */
	};

	(void)state;
	if (system("python3 -c '' 2>/dev/null") != 0)
		skip();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct layout_grid grid =
			layout_grid(cases[i].sequence, cases[i].data_bytes, cases[i].granule, cases[i].functions);
		char command[800], line[40];
		FILE *pipe;

		snprintf(command, sizeof(command), "python3 %s --position %llu %u %llu %llu %u %u", script_path,
			 (unsigned long long)cases[i].place, cases[i].function, (unsigned long long)cases[i].sequence,
			 (unsigned long long)cases[i].data_bytes, cases[i].granule, cases[i].functions);
		pipe = popen(command, "r");
		assert_non_null(pipe);
		snprintf(line, sizeof(line), "%u\n", layout_position(&grid, cases[i].place, cases[i].function));
		assert_line(pipe, line);
		assert_int_equal(pclose(pipe), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_golden_image_is_still_made),
		cmocka_unit_test(the_golden_image_is_still_read),
		cmocka_unit_test(an_independent_reader_finds_the_same),
		cmocka_unit_test(it_computes_the_same_positions),
	};
	const char *slash = strrchr(__FILE__, '/');
	int folder = slash ? (int)(slash - __FILE__) : 1;

	snprintf(golden_path, sizeof(golden_path), "%.*s/golden.hex", folder, slash ? __FILE__ : ".");
	snprintf(script_path, sizeof(script_path), "%.*s/read_image.py", folder, slash ? __FILE__ : ".");
	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
