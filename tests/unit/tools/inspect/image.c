/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/tools/inspect/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

#define SUM_SEED 0x464c534849454c44ull
#define HASH_SEED 77u
#define ROW 32u

void image_put(struct image *image, uint64_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		image->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void seal(struct image *image, uint64_t at, unsigned bytes)
{
	image_put(image, at + bytes - 8, hash64(image->bytes + at, bytes - 8, SUM_SEED), 8);
}

void image_seal_super(struct image *image)
{
	seal(image, 0, FORMAT_PAGE);
	memcpy(image->bytes + FORMAT_COPY_OFFSET, image->bytes, FORMAT_PAGE);
}

void image_seal_tail(struct image *image, uint32_t segment)
{
	seal(image, IMAGE_TAIL(segment), FORMAT_TAIL_BYTES);
}

void image_seal_header(struct image *image, uint32_t segment)
{
	seal(image, IMAGE_START(segment), FORMAT_PAGE);
	memcpy(image->bytes + IMAGE_TAIL(segment) + 72, image->bytes + IMAGE_START(segment) + FORMAT_PAGE - 8, 8);
	image_seal_tail(image, segment);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void open_image(struct image *image, uint32_t segments)
{
	image->length = IMAGE_START(segments);
	image->bytes = calloc(1, image->length);
	assert_non_null(image->bytes);
	image->fd = memfd_create("flash", MFD_CLOEXEC);
	assert_true(image->fd >= 0);
	snprintf(image->path, sizeof(image->path), "/proc/self/fd/%d", image->fd);
}

void image_close(struct image *image)
{
	close(image->fd);
	free(image->bytes);
}

void image_sync(const struct image *image)
{
	assert_int_equal(pwrite(image->fd, image->bytes, image->length, 0), (ssize_t)image->length);
}

void image_truncate(struct image *image, uint64_t length)
{
	assert_int_equal(ftruncate(image->fd, (off_t)length), 0);
}

void image_lock(const struct image *image)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	assert_int_equal(fcntl(image->fd, F_OFD_SETLK, &whole), 0);
}

/* Rows of offset and 32 bytes; __FILE__ leads to where the golden image lies. */
void image_golden(struct image *image)
{
	const char *slash = strrchr(__FILE__, '/');
	char path[512], row[2 * ROW + 1];
	unsigned long long at;
	FILE *file;

	snprintf(path, sizeof(path), "%.*s../../segments/golden.hex", slash ? (int)(slash - __FILE__) + 1 : 0,
		 __FILE__);
	file = fopen(path, "r");
	assert_non_null(file);
	open_image(image, 4);
	while (fscanf(file, "%llx %64s", &at, row) == 2) {
		assert_in_range(at, 0, image->length - ROW);
		for (unsigned i = 0; i < ROW; i++)
			assert_int_equal(sscanf(row + 2 * i, "%2hhx", &image->bytes[at + i]), 1);
	}
	fclose(file);
	image_sync(image);
}

void image_create(struct image *image, uint32_t segments)
{
	open_image(image, segments);
	memcpy(image->bytes, "FLSHSUPR", 8);
	image_put(image, 8, 1, 4);
	image_put(image, 12, FORMAT_PAGE, 4);
	image_put(image, 40, 5, 8);
	for (unsigned i = 0; i < FORMAT_UUID_BYTES; i++)
		image_put(image, 48 + i, 0x10 + i, 1);
	for (unsigned i = 0; i < FORMAT_SECRET_BYTES; i++)
		image_put(image, 64 + i, i * 5 + 3, 1);
	image_put(image, 256, HASH_SEED, 8);
	image_put(image, 264, IMAGE_SEGMENT, 8);
	image_put(image, 272, segments, 4);
	image_put(image, 276, 16, 4);
	image_put(image, 280, 1, 8);
	image_put(image, 296, 1000000, 8);
	image_put(image, 304, 1000, 8);
	image_put(image, 312, 1700000000, 8);
	image_put(image, 320, image->length, 8);
	image_seal_super(image);
	image_sync(image);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* A segment in the making; offsets are within it. */
struct making {
	struct image *image;
	const struct image_segment *segment;
	uint64_t start;
	uint64_t data_offset, footer_offset;
	uint32_t granule, extents;
	uint8_t list[IMAGE_SEGMENT / 8];
	uint32_t list_bytes, filter_bytes;
	uint64_t record_bytes;
	uint32_t longest;
};

static uint64_t up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint32_t length_of(const struct image_record *record)
{
	return FORMAT_RECORD_BYTES + (uint32_t)strlen(record->key) + record->value_length;
}

static uint64_t keyed(const struct making *making, const void *bytes, uint64_t length)
{
	return hash64_keyed(bytes, length, making->image->bytes + 64);
}

static void put_record(struct making *making, const struct image_record *record, uint64_t offset)
{
	struct image *image = making->image;
	uint64_t at = making->start + offset, key_length = strlen(record->key);
	uint64_t parts[4] = { making->segment->sequence, offset };

	image_put(image, at + 4, record->value_length, 4);
	image_put(image, at + 8, record->cas, 8);
	image_put(image, at + 16, 7, 4);
	image_put(image, at + 20, record->expiry, 4);
	image_put(image, at + 24, key_length, 1);
	memcpy(image->bytes + at + 32, record->key, key_length);
	for (uint32_t i = 0; i < record->value_length; i++)
		image->bytes[at + 32 + key_length + i] = (uint8_t)('a' + i % 26);
	parts[2] = keyed(making, image->bytes + at + 4, 28 + key_length);
	parts[3] = keyed(making, image->bytes + at + 32 + key_length, record->value_length);
	image_put(image, at, keyed(making, parts, sizeof(parts)), 4);
	making->record_bytes += length_of(record);
	if (!record->extent && length_of(record) > making->longest)
		making->longest = length_of(record);
}

static void put_step(struct making *making, uint64_t step)
{
	do {
		making->list[making->list_bytes++] = (uint8_t)((step & 127) | (step > 127 ? 128 : 0));
		step >>= 7;
	} while (step);
}

/* One after the other, with a gap before each second one of the data area. */
static void put_records(struct making *making, uint64_t *offsets)
{
	uint64_t before = FORMAT_PAGE, next = FORMAT_PAGE;

	for (uint32_t n = 0; n < making->segment->count; n++) {
		const struct image_record *record = &making->segment->records[n];

		if (n == making->extents)
			before = next = making->data_offset;
		else
			next = record->extent ? up(next, 8)
					      : making->data_offset + up(next - making->data_offset, making->granule) +
							making->granule * (n % 2);
		put_step(making, (next - before) / (record->extent ? 8 : making->granule));
		put_record(making, record, next);
		if (offsets)
			offsets[n] = next;
		before = next;
		next += length_of(record);
		assert_true(next <= making->footer_offset);
	}
}

/* Two blocks and four probes. */
static void put_filter(struct making *making, uint8_t *filter)
{
	for (uint32_t n = making->extents; n < making->segment->count; n++) {
		const char *key = making->segment->records[n].key;
		uint64_t x = mix64(hash64(key, strlen(key), HASH_SEED) ^ mix64(HASH_SEED ^ 0x8cb92ba72f3d8dd7ull));
		uint64_t numbers = mix64(x + 1), block = reduce64(x, 2);

		for (unsigned probe = 0; probe < 4; probe++, numbers >>= 9)
			filter[block * 64 + numbers % 512 / 8] |= (uint8_t)(1u << numbers % 8);
	}
	memcpy(filter + 128, "FB\1\4\0\0\0\0", 8);
	making->filter_bytes = 136;
}

static void put_head(struct making *making, uint64_t at, const char *magic, uint32_t size)
{
	memcpy(making->image->bytes + at, magic, 8);
	image_put(making->image, at + 8, 1, 4);
	image_put(making->image, at + 12, size, 4);
	memcpy(making->image->bytes + at + 40, making->image->bytes + 48, FORMAT_UUID_BYTES);
	image_put(making->image, at + 56, making->segment->sequence, 8);
}

static void put_header(struct making *making, uint32_t number)
{
	const uint64_t fields[] = {
		FORMAT_PAGE,           making->data_offset - FORMAT_PAGE,
		making->data_offset,   making->footer_offset - making->data_offset,
		making->footer_offset, IMAGE_SEGMENT - making->footer_offset,
	};
	struct image *image = making->image;
	uint64_t at = making->start;

	put_head(making, at, "FLSHSEGM", FORMAT_PAGE);
	image_put(image, at + 64, number, 4);
	image_put(image, at + 72, making->granule, 4);
	image_put(image, at + 76, making->longest, 4);
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		image_put(image, at + 80 + 8 * i, fields[i], 8);
	image_put(image, at + 128, making->segment->count, 4);
	image_put(image, at + 132, making->extents, 4);
	image_put(image, at + 136, making->record_bytes, 8);
	image_put(image, at + 144, 1700000000 + making->segment->sequence, 8);
	image_put(image, at + 152, making->segment->attach_epoch ? making->segment->attach_epoch : 1, 8);
	image_put(image, at + 160, 16, 4);
}

static void put_footer(struct making *making, uint32_t number)
{
	struct image *image = making->image;
	uint8_t *list = image->bytes + making->start + making->footer_offset;
	uint8_t *filter = list + up(making->list_bytes, 8);
	uint64_t at = IMAGE_TAIL(number);

	memcpy(list, making->list, making->list_bytes);
	if (making->segment->filter)
		put_filter(making, filter);
	put_head(making, at, "FLSHFOOT", FORMAT_TAIL_BYTES);
	image_put(image, at + 64, making->segment->count, 4);
	image_put(image, at + 68, making->extents, 4);
	image_put(image, at + 80, making->list_bytes, 8);
	image_put(image, at + 88, hash64(list, making->list_bytes, SUM_SEED), 8);
	image_put(image, at + 96, making->filter_bytes, 8);
	image_put(image, at + 104, hash64(filter, making->filter_bytes, SUM_SEED), 8);
}

void image_write(struct image *image, uint32_t number, const struct image_segment *segment, uint64_t *offsets)
{
	struct making making = {
		.image = image,
		.segment = segment,
		.start = IMAGE_START(number),
		.data_offset = FORMAT_PAGE,
		.footer_offset = IMAGE_SEGMENT - 2 * FORMAT_PAGE,
		.granule = segment->granule ? segment->granule : 8,
	};

	for (uint32_t n = 0; n < segment->count && segment->records[n].extent; n++) {
		making.extents++;
		making.data_offset += up(length_of(&segment->records[n]), 8);
	}
	making.data_offset = up(making.data_offset, FORMAT_PAGE);
	memset(image->bytes + making.start, 0, IMAGE_SEGMENT);
	put_records(&making, offsets);
	put_header(&making, number);
	put_footer(&making, number);
	image_seal_header(image, number);
	if (segment->no_tail)
		memset(image->bytes + IMAGE_TAIL(number), 0, FORMAT_TAIL_BYTES);
	image_sync(image);
}

/* ---- verifying ------------------------------------------------------------------------------- */

static void end_segment(void *context, const struct scan_outcome *outcome)
{
	struct image_tally *tally = context;

	tally->records += outcome->walked ? outcome->totals.records : 0;
	tally->failures += outcome->failures;
	tally->states[outcome->segment.state]++;
	if (outcome->failures == 0)
		return;
	tally->failed_segment = outcome->segment.number;
	tally->failed_offset = outcome->kept[0].offset;
	memcpy(tally->text, outcome->kept[0].text, sizeof(tally->text));
}

void image_verify(const struct image *image, struct image_tally *tally)
{
	static const struct scan_ops ops = { .end = end_segment };
	struct scan_request request = { .threads = 1, .quiet = true, .note = "" };
	char problem[FLASH_PROBLEM_BYTES];
	struct segment *segments;
	struct flash flash;

	memset(tally, 0, sizeof(*tally));
	tally->opened = flash_open(&flash, image->path, problem);
	if (tally->opened == 0) {
		uint32_t *numbers = calloc(flash.super.segments, sizeof(*numbers));

		for (uint32_t n = 0; n < flash.super.segments; n++)
			numbers[n] = n;
		segments = command_segments(&flash, &request.newest);
		request.flash = &flash;
		request.numbers = numbers;
		request.count = flash.super.segments;
		scan_run(&request, &ops, tally);
		mem_free(segments);
		free(numbers);
	}
	flash_close(&flash);
}

void image_expect_failure(const struct image *image, uint32_t segment, uint64_t offset, const char *text)
{
	struct image_tally tally;

	image_verify(image, &tally);
	assert_int_equal(tally.opened, 0);
	if (tally.failures != 1 || tally.failed_segment != segment || tally.failed_offset != offset ||
	    !strstr(tally.text, text))
		fail_msg("%llu failures, the last in segment %u at %llu: \"%s\"; wanted one in segment %u "
			 "at %llu: "
			 "\"%s\"",
			 (unsigned long long)tally.failures, tally.failed_segment,
			 (unsigned long long)tally.failed_offset, tally.text, segment, (unsigned long long)offset,
			 text);
}
