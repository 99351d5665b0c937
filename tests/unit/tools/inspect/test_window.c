/* SPDX-License-Identifier: BSD-3-Clause */
/* The window shows what is in the file, wherever pieces begin and end, and reads each byte once. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/unit/tools/inspect/image.h"
#include "tools/inspect/window.h"

#define SEGMENT_BYTES (3ull * WINDOW_PIECE_BYTES + 5 * FORMAT_PAGE)

/* Two segments' worth of bytes that differ from place to place. */
static void make(struct image *image, struct flash *flash)
{
	image_create(image, (uint32_t)(2 * SEGMENT_BYTES / IMAGE_SEGMENT) + 1);
	for (uint64_t at = 0; at + 8 <= image->length; at += 8)
		image_put(image, at, mix64(at), 8);
	image_sync(image);
	memset(flash, 0, sizeof(*flash));
	flash->fd = image->fd;
	flash->bytes = image->length;
	flash->super.segment_bytes = SEGMENT_BYTES;
}

static void expect_bytes(const struct image *image, struct window *window, uint64_t offset, uint64_t length)
{
	const uint8_t *bytes = window_at(window, offset, length);

	assert_non_null(bytes);
	assert_memory_equal(bytes, image->bytes + FORMAT_AREA_BYTES + SEGMENT_BYTES + offset, length);
}

static void steps_of_any_length_see_the_file(void **state)
{
	static const uint64_t lengths[] = { 1, 100, 4096, 70001, WINDOW_PIECE_BYTES - 1, WINDOW_PIECE_BYTES + 4097 };
	struct window window;
	struct image image;
	struct flash flash;

	(void)state;
	make(&image, &flash);
	window_init(&window, &flash);
	for (unsigned i = 1; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t at;

		window.read_bytes = 0;
		window_open(&window, 1);
		for (at = 7; at + lengths[i] <= SEGMENT_BYTES; at += lengths[i]) {
			expect_bytes(&image, &window, at, lengths[0]);
			expect_bytes(&image, &window, at, lengths[i]);
		}
		expect_bytes(&image, &window, at, SEGMENT_BYTES - at);
		assert_int_equal(window.read_bytes, SEGMENT_BYTES);
		assert_int_equal(window.unread.pages, 0);
	}
	window_fini(&window);
	image_close(&image);
}

static void leaps_and_returns_see_the_file(void **state)
{
	struct window window;
	struct image image;
	struct flash flash;

	(void)state;
	make(&image, &flash);
	window_init(&window, &flash);
	window_open(&window, 1);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t at = reduce64(mix64(i), SEGMENT_BYTES);
		uint64_t most = SEGMENT_BYTES - at;

		expect_bytes(&image, &window, at, reduce64(mix64(i + 1000), i % 4 || most < 5000 ? most : 5000));
	}
	expect_bytes(&image, &window, 0, SEGMENT_BYTES);
	window_fini(&window);
	image_close(&image);
}

static void another_segment_is_read_anew(void **state)
{
	struct window window;
	struct image image;
	struct flash flash;
	const uint8_t *bytes;

	(void)state;
	make(&image, &flash);
	window_init(&window, &flash);
	window_open(&window, 0);
	bytes = window_at(&window, 50, 10);
	assert_memory_equal(bytes, image.bytes + FORMAT_AREA_BYTES + 50, 10);
	window_open(&window, 1);
	expect_bytes(&image, &window, 50, 10);
	window_fini(&window);
	image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_any_length_see_the_file),
		cmocka_unit_test(leaps_and_returns_see_the_file),
		cmocka_unit_test(another_segment_is_read_anew),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
