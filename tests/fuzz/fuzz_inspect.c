/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An image with damage, shown by all commands of flashield-inspect: each comes to its end, whatever is there. The input
 * is a list of changes to an image of two segments, eight bytes each: kind, segment, place (2), value (4). After most
 * kinds checksums are right again, so that what lies behind them is reached.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/tools/inspect/image.h"

#define SEGMENTS 3u
#define RECORDS 150u
#define CHANGES 32u

struct change {
	unsigned kind;
	uint32_t segment;
	uint64_t place, value;
};

/* Extents and a filter, many small records with an older life of their keys, and a segment that is empty. */
static void make_image(struct image *image)
{
	static struct image_record records[RECORDS];
	static char keys[RECORDS][16];
	const struct image_segment first = { .sequence = 4, .records = records, .count = 60, .filter = true };
	const struct image_segment second = { .sequence = 3, .records = records + 30, .count = 120, .granule = 16 };

	for (uint32_t i = 0; i < RECORDS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key:%u", i);
		records[i] = (struct image_record){ .key = keys[i],
						    .value_length = i < 2 ? 4000 : i * 7 % 120,
						    .cas = i + 1,
						    .extent = i < 2,
						    .expiry = i % 3 };
	}
	image_create(image, SEGMENTS);
	image_write(image, 0, &first, NULL);
	image_write(image, 1, &second, NULL);
}

static void put(struct image *image, uint64_t at, uint64_t value, unsigned bytes)
{
	if (at + bytes <= image->length)
		image_put(image, at, value, bytes);
}

/* List and filter lie before the tail, whose sum of them is right again. */
static void put_behind_sum(struct image *image, const struct change *change)
{
	uint64_t at = IMAGE_START(change->segment + 1) - 2 * FORMAT_PAGE, length = change->value % 600;

	put(image, at + change->place % 4000, change->value, 4);
	put(image, IMAGE_TAIL(change->segment) + 80, length, 8);
	put(image, IMAGE_TAIL(change->segment) + 88, format_sum(image->bytes + at, length), 8);
	image_seal_tail(image, change->segment);
}

/* 0, or the length that the file is to have. */
static uint64_t apply(struct image *image, const struct change *change)
{
	uint64_t widened = (uint64_t)(int64_t)(int32_t)change->value;

	switch (change->kind % 6) {
	case 0:
		put(image, change->place * 4 + change->segment, change->value, 4);
		break;
	case 1:
		put(image, IMAGE_START(change->segment) + 56 + change->place % 120, change->value, 4);
		image_seal_header(image, change->segment);
		break;
	case 2:
		put(image, IMAGE_TAIL(change->segment) + 56 + change->place % 56, widened, 8);
		image_seal_tail(image, change->segment);
		break;
	case 3:
		put(image, 256 + change->place % 80, change->value, 4);
		image_seal_super(image);
		break;
	case 4:
		put_behind_sum(image, change);
		break;
	default:
		return change->place * 4 + 1;
	}
	return 0;
}

static int run_commands(const struct image *image, bool json)
{
	struct inspect_options options = { .path = image->path,
					   .live = true,
					   .threads = 1,
					   .quiet = true,
					   .uptime_s = 5,
					   .key = "key:70",
					   .key_length = 6,
					   .json = json,
					   .records = true };
	char problem[FLASH_PROBLEM_BYTES];
	struct find_location place;
	struct flash flash;
	int wrong = 0;

	if (flash_open(&flash, image->path, problem) == 0 && flash.super.segments <= SEGMENTS) {
		wrong |= command_list(&options, &flash);
		wrong |= command_verify(&options, &flash);
		wrong |= command_find(&options, &flash);
		for (options.segment = 0; options.segment < flash.super.segments; options.segment++)
			wrong |= command_segment(&options, &flash);
		if (find_youngest(&options, &flash, &place)) /* else dump would end the program */
			wrong |= command_dump(&options, &flash);
	}
	flash_close(&flash);
	return wrong;
}

/* What the commands print is of no interest here. Returns where they print otherwise. */
static int silence(void)
{
	static int null = -1;
	int old = dup(STDOUT_FILENO);

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fflush(stdout);
	require(old >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
	return old;
}

static void speak(int old)
{
	fflush(stdout);
	require(dup2(old, STDOUT_FILENO) >= 0);
	close(old);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taking from = { data, data + size };
	uint64_t length = 0;
	struct image image;
	int out = silence();

	make_image(&image);
	for (unsigned i = 0; i < CHANGES && left_of(&from) > 0; i++) {
		struct change change = { .kind = (unsigned)take_number(&from, 1) };
		uint64_t cut;

		change.segment = (uint32_t)take_number(&from, 1) % SEGMENTS;
		change.place = take_number(&from, 2);
		change.value = take_number(&from, 4);
		cut = apply(&image, &change);
		length = cut ? cut : length;
	}
	image_sync(&image);
	if (length > 0 && length < image.length)
		image_truncate(&image, length);
	for (int json = 0; json < 2; json++)
		require(run_commands(&image, json) == 0 || size > 0);
	image_close(&image);
	speak(out);
	return 0;
}
