/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images with damage of all kinds: nothing crashes (run it under the sanitizers too), and each flipped
 * bit in an area that a check covers is found, and told of the right segment. FLASHIELD_SEED=N repeats
 * a run.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/unit/tools/inspect/image.h"

#ifdef __SANITIZE_THREAD__
#define SHARE 20 /* the threads of each round cost the most there, and are always the same */
#else
#define SHARE 1
#endif
#define FLIPS (2400 / SHARE)
#define ROUNDS (400 / SHARE)

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	return reduce64(mix64(random_state++), n);
}

static void seed(void)
{
	const char *given = getenv("FLASHIELD_SEED");

	random_state = given ? strtoull(given, NULL, 10) : 20261120;
	print_message("FLASHIELD_SEED=%llu\n", (unsigned long long)random_state);
}

/* Four segments: extents and a filter, many small records, an older life of the same keys, an empty one. */
static void make_image(struct image *image)
{
	static struct image_record records[400];
	static char keys[400][16];
	const struct image_segment first = { .sequence = 4, .records = records, .count = 60, .filter = true };
	const struct image_segment second = { .sequence = 5, .records = records + 60, .count = 340, .granule = 16 };
	const struct image_segment third = { .sequence = 3, .records = records + 60, .count = 100, .granule = 33 };

	for (uint32_t i = 0; i < 400; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key:%u", i);
		records[i] = (struct image_record){ .key = keys[i],
						    .value_length = i < 2 ? 4000 : i * 7 % 120,
						    .cas = i + 1,
						    .extent = i < 2,
						    .expiry = i % 3 };
	}
	image_create(image, 4);
	image_write(image, 0, &first, NULL);
	image_write(image, 1, &second, NULL);
	image_write(image, 2, &third, NULL);
}

static void flip(const struct image *image, uint64_t at, uint8_t bit)
{
	uint8_t byte = image->bytes[at] ^ (uint8_t)(1 << bit);

	assert_int_equal(pwrite(image->fd, &byte, 1, (off_t)at), 1);
}

static void restore(const struct image *image, uint64_t at)
{
	assert_int_equal(pwrite(image->fd, image->bytes + at, 1, (off_t)at), 1);
}

static void expect_flip_found(const struct image *image, uint64_t at, uint8_t bit)
{
	uint32_t segment = (uint32_t)((at - FORMAT_AREA_BYTES) / IMAGE_SEGMENT);
	struct image_tally tally;

	flip(image, at, bit);
	image_verify(image, &tally);
	if (tally.opened != 0 || tally.failures == 0 || tally.failed_segment != segment)
		fail_msg("bit %u of byte %llu: %llu failures, segment %u for %u", bit, (unsigned long long)at,
			 (unsigned long long)tally.failures, tally.failed_segment, segment);
	restore(image, at);
}

static void flip_all_over(struct image *image, uint32_t segments)
{
	for (unsigned i = 0; i < FLIPS; i++)
		expect_flip_found(image, FORMAT_AREA_BYTES + random_below(segments * (uint64_t)IMAGE_SEGMENT),
				  (uint8_t)random_below(8));
	/* The fields of headers and tails, bit by bit. */
	for (uint32_t n = 0; n < segments; n++) {
		for (unsigned i = 0; i < 176; i += SHARE)
			expect_flip_found(image, IMAGE_START(n) + i, (uint8_t)random_below(8));
		for (unsigned i = 0; i < FORMAT_TAIL_BYTES; i += SHARE)
			expect_flip_found(image, IMAGE_TAIL(n) + i, (uint8_t)random_below(8));
	}
}

static void each_flipped_bit_of_a_segment_is_found(void **state)
{
	struct image image;

	(void)state;
	seed();
	make_image(&image);
	flip_all_over(&image, 3);
	image_close(&image);
	image_golden(&image);
	flip_all_over(&image, 4);
	image_close(&image);
}

static void each_flipped_bit_of_a_superblock_is_found(void **state)
{
	struct image image;

	(void)state;
	seed();
	make_image(&image);
	for (unsigned i = 0; i < FLIPS / 4; i++) {
		unsigned copy = (unsigned)random_below(FORMAT_COPIES);
		uint64_t at = copy * FORMAT_COPY_OFFSET + (i < 336 ? i : random_below(FORMAT_PAGE));
		char problem[FLASH_PROBLEM_BYTES];
		struct flash flash;
		bool failure = false;

		flip(&image, at, (uint8_t)random_below(8));
		assert_int_equal(flash_open(&flash, image.path, problem), 0);
		assert_non_null(superblock_copy_remark(flash.copies, copy, &failure));
		assert_true(failure);
		flash_close(&flash);
		restore(&image, at);
	}
	image_close(&image);
}

static void what_no_check_covers_is_left_alone(void **state)
{
	struct image_tally tally;
	struct image image;

	(void)state;
	make_image(&image);
	memset(image.bytes + FORMAT_PAGE, 'x', FORMAT_COPY_OFFSET - FORMAT_PAGE);
	image_sync(&image);
	image_verify(&image, &tally);
	assert_int_equal(tally.failures, 0);
	assert_int_equal(tally.records, 500);
	image_close(&image);
}

/* ---- no crash -------------------------------------------------------------------------------- */

struct voices {
	int out, err;
};

/* What the commands print isn't looked at here. */
static struct voices silence(void)
{
	struct voices old = { .out = dup(STDOUT_FILENO), .err = dup(STDERR_FILENO) };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stdout);
	assert_true(old.out >= 0 && old.err >= 0 && null >= 0);
	assert_true(dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0);
	close(null);
	return old;
}

static void speak(struct voices old)
{
	fflush(stdout);
	assert_true(dup2(old.out, STDOUT_FILENO) >= 0 && dup2(old.err, STDERR_FILENO) >= 0);
	close(old.out);
	close(old.err);
}

/* Every command that goes over the whole flash, as text and as JSON. */
static void run_commands(const struct image *image)
{
	struct inspect_options options = { .path = image->path,
					   .live = true,
					   .threads = 2,
					   .quiet = true,
					   .uptime_s = 5,
					   .key = "key:70",
					   .key_length = 6 };
	char problem[FLASH_PROBLEM_BYTES];
	struct flash flash;

	if (flash_open(&flash, image->path, problem) == 0 && flash.super.segments <= 4) {
		for (int json = 0; json < 2; json++) {
			options.json = json;
			(void)!command_list(&options, &flash);
			(void)!command_verify(&options, &flash);
			(void)!command_find(&options, &flash);
			options.segment = (uint32_t)random_below(flash.super.segments);
			options.records = true;
			(void)!command_segment(&options, &flash);
			options.key = NULL;
			options.offset = random_below(IMAGE_SEGMENT + 100);
			(void)!command_dump(&options, &flash);
			options.key = "key:70";
		}
	}
	flash_close(&flash);
}

/* One kind of damage, drawn at random; the sums are right again after half of them, so that what
   lies behind a checksum is reached. */
static void damage(struct image *image)
{
	static const uint64_t nasty[] = { 0,     1,          7,          8,          31,         32,
					  127,   128,        4095,       4096,       61440,      65535,
					  65536, 1ull << 31, UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX };
	uint64_t value = nasty[random_below(sizeof(nasty) / sizeof(nasty[0]))];
	uint32_t n = (uint32_t)random_below(3);
	uint64_t at, length;

	switch (random_below(5)) {
	case 0: /* anything, anywhere */
		at = random_below(image->length);
		length = 1 + random_below(image->length - at < 300 ? image->length - at : 300);
		for (uint64_t i = 0; i < length; i++)
			image->bytes[at + i] = (uint8_t)mix64(random_state++);
		break;
	case 1: /* a header's field */
		image_put(image, IMAGE_START(n) + 56 + 4 * random_below(27), value, 4 + 4 * (unsigned)random_below(2));
		image_seal_header(image, n);
		break;
	case 2: /* a tail's */
		image_put(image, IMAGE_TAIL(n) + 56 + 8 * random_below(7), value, 8);
		image_seal_tail(image, n);
		break;
	case 3: /* the superblock's */
		image_put(image, 264 + 4 * random_below(16), value, 4);
		image_seal_super(image);
		break;
	case 4: /* the list or the filter, with sums that fit */
		at = IMAGE_START(n + 1) - 2 * FORMAT_PAGE;
		image_put(image, at + random_below(400), value, 8);
		image_put(image, IMAGE_TAIL(n) + 80, random_below(600), 8);
		memcpy(&length, image->bytes + IMAGE_TAIL(n) + 80, 8);
		image_put(image, IMAGE_TAIL(n) + 88, format_sum(image->bytes + at, length), 8);
		image_seal_tail(image, n);
		break;
	}
}

static void damage_of_any_kind_is_survived(void **state)
{
	struct image image, fresh;
	struct voices old;

	(void)state;
	seed();
	make_image(&image);
	make_image(&fresh);
	old = silence();
	for (unsigned i = 0; i < ROUNDS; i++) {
		memcpy(image.bytes, fresh.bytes, fresh.length);
		for (uint64_t n = 1 + random_below(3); n > 0; n--)
			damage(&image);
		image_sync(&image);
		run_commands(&image);
	}
	speak(old);
	image_close(&image);
	image_close(&fresh);
}

static void any_length_is_survived(void **state)
{
	struct image_tally tally;
	struct image image;
	struct voices old;

	(void)state;
	seed();
	make_image(&image);
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		uint64_t length = i < 12 ? i * FORMAT_PAGE / 2 : random_below(image.length);

		image_truncate(&image, length);
		image_verify(&image, &tally);
		assert_true(tally.opened != 0 || tally.failures > 0);
		old = silence();
		run_commands(&image);
		speak(old);
		image_sync(&image);
	}
	image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_flipped_bit_of_a_segment_is_found),
		cmocka_unit_test(each_flipped_bit_of_a_superblock_is_found),
		cmocka_unit_test(what_no_check_covers_is_left_alone),
		cmocka_unit_test(damage_of_any_kind_is_survived),
		cmocka_unit_test(any_length_is_survived),
	};

	return cmocka_run_group_tests_name("fuzz", tests, NULL, NULL);
}
