/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two readers written from segments/FORMAT.md, this tool and tests/unit/segments/read_image.py, find the
 * same in the image that the engine made, and in one that neither of the three made.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/unit/tools/inspect/image.h"
#include "tools/inspect/words.h"

/* Lines as read_image.py prints them. */
struct lines {
	FILE *pipe;
	const struct flash *flash;
	bool chain; /* of the segment */
	uint64_t records;
};

static void expect_line(struct lines *lines, const char *expected)
{
	char line[1024];

	assert_non_null(fgets(line, sizeof(line), lines->pipe));
	assert_string_equal(line, expected);
}

/* The other reader shows what a record of a chain says, and this tool doesn't. */
static void expect_link(struct lines *lines, const struct format_record *record)
{
	char line[1024], name[16];
	unsigned long long offset;

	assert_non_null(fgets(line, sizeof(line), lines->pipe));
	assert_int_equal(sscanf(line, "%15s %llu", name, &offset), 2);
	assert_string_equal(name, memcmp(record->key, "FLCO", 4) == 0 ? "columns" : "partition");
	assert_int_equal(offset, record->offset);
}

static void on_record(void *context, const struct format_record *record, bool good)
{
	struct lines *lines = context;
	char expected[1024];
	int used;

	assert_true(good);
	lines->records++;
	if (lines->chain) {
		expect_link(lines, record);
		return;
	}
	used = snprintf(expected, sizeof(expected),
			"%s %" PRIu64 " %.*s %u %016" PRIx64 " cas %" PRIu64 " flags %u expiry %u item %u features ",
			record->extent ? "extent" : "record", record->offset, record->key_length,
			(const char *)record->key, record->value_length,
			format_sum(record->value, record->value_length), record->cas, record->client_flags,
			record->expiry, record->item_flags);
	for (unsigned i = 0; i < FORMAT_CLASSIFIER_BYTES; i++)
		used += snprintf(expected + used, sizeof(expected) - (size_t)used, "%02x", record->classifier[i]);
	snprintf(expected + used, sizeof(expected) - (size_t)used, "\n");
	expect_line(lines, expected);
}

static void on_failure(void *context, uint64_t offset, const char *text)
{
	(void)context;
	fail_msg("offset %" PRIu64 ": %s", offset, text);
}

static void expect_segment(struct lines *lines, const struct segment *segment)
{
	static const struct walk_events events = { .record = on_record, .failure = on_failure };
	const struct format_header *header = &segment->header;
	struct walk_totals totals;
	struct window window;
	char expected[256], kind[64] = "";

	if (header->kind == FORMAT_BINS)
		snprintf(kind, sizeof(kind), " bins %" PRIu64 " of %u", header->data_bytes / header->bin_bytes,
			 header->bin_bytes);
	else if (header->kind == FORMAT_CHAIN)
		snprintf(kind, sizeof(kind), " chain");
	lines->chain = header->kind == FORMAT_CHAIN;
	snprintf(expected, sizeof(expected),
		 "segment %u sequence %" PRIu64 " objects %u extents %u granule %u L %u filter %" PRIu64 "%s\n",
		 segment->number, header->sequence, header->records, header->extents, header->granule,
		 header->longest_999, segment->tail.filter_bytes, kind);
	expect_line(lines, expected);
	window_init(&window, lines->flash);
	assert_int_equal(walk_segment(&lines->flash->super, segment, &window, &events, lines, &totals), FS_OK);
	window_fini(&window);
	assert_int_equal(totals.records, header->records);
}

static FILE *other_reader(const struct image *image, char path[32])
{
	const char *slash = strrchr(__FILE__, '/');
	char command[1024];
	FILE *pipe;
	int fd;

	strcpy(path, "/tmp/flashield-image-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, image->bytes, image->length), (ssize_t)image->length);
	close(fd);
	snprintf(command, sizeof(command), "python3 %.*s../../segments/read_image.py %s 2>&1",
		 slash ? (int)(slash - __FILE__) + 1 : 0, __FILE__, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	return pipe;
}

static void needs_python(void)
{
	if (system("python3 -c '' 2>/dev/null") == 0)
		return;
	print_message("skipped: no python3 here\n");
	skip();
}

static void expect_agreement(const struct image *image, uint64_t records)
{
	char path[32], problem[FLASH_PROBLEM_BYTES], uuid[WORDS_UUID_BYTES], expected[128];
	struct segment *segments;
	struct flash flash;
	struct lines lines = { .flash = &flash };
	uint64_t newest;

	needs_python();
	lines.pipe = other_reader(image, path);
	assert_int_equal(flash_open(&flash, image->path, problem), 0);
	segments = command_segments(&flash, &newest);
	snprintf(expected, sizeof(expected), "flash %s segments %u of %" PRIu64 "\n",
		 words_uuid(flash.super.uuid, uuid), flash.super.segments, flash.super.segment_bytes);
	expect_line(&lines, expected);
	for (uint32_t n = 0; n < flash.super.segments; n++)
		if (segments[n].state == SEGMENT_COMPLETE)
			expect_segment(&lines, &segments[n]);
	assert_null(fgets(expected, sizeof(expected), lines.pipe));
	assert_int_equal(pclose(lines.pipe), 0);
	assert_int_equal(lines.records, records);
	mem_free(segments);
	flash_close(&flash);
	unlink(path);
}

static void on_the_image_that_the_engine_made(void **state)
{
	struct image image;

	(void)state;
	image_golden(&image);
	expect_agreement(&image, 106);
	image_close(&image);
}

static void on_an_image_of_our_own(void **state)
{
	static const struct image_record records[] = {
		{ .key = "extent", .value_length = 9999, .cas = 3, .extent = true },
		{ .key = "x", .value_length = 0, .cas = 4 },
		{ .key = "y", .value_length = 2000, .cas = 5, .expiry = 77 },
		{ .key = "z", .value_length = 16, .cas = 6 },
	};
	const struct image_segment segment = {
		.sequence = 8, .records = records, .count = 4, .granule = 50, .filter = true
	};
	struct image image;

	(void)state;
	image_create(&image, 3);
	image_write(&image, 1, &segment, NULL);
	expect_agreement(&image, 4);
	image_close(&image);
}

/* Segment 0 lies at home 2, and segment 2 would lie at the bad home 0. */
static void on_segments_that_lie_elsewhere(void **state)
{
	static const struct image_record records[] = { { .key = "x", .value_length = 70, .cas = 4 } };
	const struct image_segment segment = { .sequence = 8, .records = records, .count = 1, .granule = 50 };
	struct image image;
	uint64_t bytes, home;

	(void)state;
	image_create(&image, 3);
	image_write(&image, 0, &segment, NULL);
	image_write(&image, 1, &segment, NULL);
	bytes = (image.length - FORMAT_AREA_BYTES) / 3;
	home = FORMAT_AREA_BYTES;
	memcpy(image.bytes + home + 2 * bytes, image.bytes + home, bytes);
	image_put(&image, 32, 4, 8);
	image_put(&image, 344, 2, 4);
	image_put(&image, 360, 0 | 2 << 16, 4);
	image_put(&image, 364, 2 | 1u << 31, 4);
	image_seal_super(&image);
	expect_agreement(&image, 2);
	image_close(&image);
}

/* Neither takes a superblock whose numbers no daemon reaches, though it is whole. */
static void on_numbers_that_cannot_be(void **state)
{
	static const struct {
		unsigned at;
		uint64_t value;
	} cases[] = { { 40, 1ull << 62 },  { 280, 1ull << 62 }, { 296, 0 }, { 304, 0 },
		      { 304, 1ull << 62 }, { 344, 1 },          { 32, 4 } };

	(void)state;
	needs_python();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[32], problem[FLASH_PROBLEM_BYTES], line[128];
		struct flash flash;
		struct image image;
		FILE *pipe;

		image_create(&image, 1);
		image_put(&image, cases[i].at, cases[i].value, 8);
		image_seal_super(&image);
		image_sync(&image);
		assert_int_not_equal(flash_open(&flash, image.path, problem), 0);
		flash_close(&flash);
		pipe = other_reader(&image, path);
		assert_non_null(fgets(line, sizeof(line), pipe));
		assert_string_equal(line, "bad superblock\n");
		assert_int_not_equal(pclose(pipe), 0);
		unlink(path);
		image_close(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_image_that_the_engine_made),
		cmocka_unit_test(on_an_image_of_our_own),
		cmocka_unit_test(on_segments_that_lie_elsewhere),
		cmocka_unit_test(on_numbers_that_cannot_be),
	};

	return cmocka_run_group_tests_name("agreement", tests, NULL, NULL);
}
