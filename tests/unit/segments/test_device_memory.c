/* SPDX-License-Identifier: BSD-3-Clause */
/* The device in memory: its bounds, its bytes, its queue, and a flash over it that a seed repeats. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define BYTES (16u * SEG_PAGE)
#define SEGMENT (64u << 10)

static char page[SEG_PAGE], back[SEG_PAGE];

static void beyond_the_end_nothing_is_read_or_written(void **state)
{
	static const uint64_t offsets[] = { BYTES, BYTES + SEG_PAGE, UINT64_MAX - SEG_PAGE + 1 };
	struct dev *dev = dev_memory_create(BYTES);

	(void)state;
	assert_non_null(dev);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(dev->ops->read(dev, page, SEG_PAGE, offsets[i]), -EIO);
		assert_int_equal(dev->ops->write(dev, page, SEG_PAGE, offsets[i]), -ENOSPC);
	}
	assert_int_equal(dev->ops->read(dev, page, 2 * SEG_PAGE, BYTES - SEG_PAGE), -EIO);
	dev->ops->close(dev);
}

static void it_begins_with_zeros_and_keeps_what_is_written(void **state)
{
	struct dev *dev = dev_memory_create(BYTES);

	(void)state;
	assert_non_null(dev);
	assert_int_equal(dev->bytes, BYTES);
	memset(back, 1, sizeof(back));
	assert_int_equal(dev->ops->read(dev, back, SEG_PAGE, BYTES - SEG_PAGE), 0);
	for (unsigned i = 0; i < SEG_PAGE; i++)
		assert_int_equal(back[i], 0);
	memset(page, 'x', sizeof(page));
	assert_int_equal(dev->ops->write(dev, page, SEG_PAGE, BYTES - SEG_PAGE), 0);
	assert_int_equal(dev->ops->flush(dev), 0);
	assert_int_equal(dev->ops->settle(dev, 0, BYTES), 0);
	assert_int_equal(dev->ops->read(dev, back, SEG_PAGE, BYTES - SEG_PAGE), 0);
	assert_memory_equal(back, page, SEG_PAGE);
	dev->ops->close(dev);
}

/* Requests are done at once, reaped in their order, and told by the eventfd. */
static void a_queue_does_what_it_is_given(void **state)
{
	struct dev *dev = dev_memory_create(BYTES);
	struct dev_io write_io = { .buffer = page, .bytes = SEG_PAGE, .write = true };
	struct dev_io read_io = { .buffer = back, .bytes = SEG_PAGE };
	struct dev_io bad_io = { .buffer = back, .bytes = SEG_PAGE, .offset = BYTES };
	struct dev_io *ios[] = { &write_io, &read_io, &bad_io }, *out[3];
	int fd = eventfd(0, EFD_NONBLOCK);
	struct dev_queue *queue;
	uint64_t told = 0;

	(void)state;
	assert_non_null(dev);
	assert_int_equal(dev->ops->queue_create(dev, 8, fd, &queue), 0);
	assert_int_equal(dev->ops->reap(queue, out, 3, true), 0); /* nothing is ever waited for */
	memset(page, 'q', sizeof(page));
	assert_int_equal(dev->ops->submit(queue, ios, 3), 3);
	assert_int_equal(read(fd, &told, sizeof(told)), sizeof(told));
	assert_int_equal(told, 3);
	assert_int_equal(dev->ops->reap(queue, out, 2, false), 2);
	assert_ptr_equal(out[0], &write_io);
	assert_ptr_equal(out[1], &read_io);
	assert_int_equal(read_io.result, SEG_PAGE);
	assert_memory_equal(back, page, SEG_PAGE);
	assert_int_equal(dev->ops->reap(queue, out, 3, false), 1);
	assert_int_equal(bad_io.result, -EIO);
	dev->ops->queue_destroy(queue);
	dev->ops->close(dev);
	close(fd);
}

static struct seg_info info_of_seed(uint64_t seed)
{
	struct clk clock;
	struct seg_config config = { .clock = &clock,
				     .device = dev_memory_create(LAYOUT_SUPER_BYTES + 8 * SEGMENT),
				     .segment_bytes = SEGMENT,
				     .functions = 16,
				     .seed = seed };
	void *table = mem_must_zalloc(seg_region_bytes(8, 0, false));
	struct segments *seg;
	struct seg_info info;

	clk_scripted_init(&clock, 1000000);
	assert_non_null(config.device);
	assert_int_equal(seg_open(&seg, &config, table), FS_OK);
	seg_get_info(seg, &info);
	seg_close(seg);
	mem_free(table);
	return info;
}

static void the_same_seed_gives_the_same_flash(void **state)
{
	struct seg_info one = info_of_seed(7), same = info_of_seed(7), other = info_of_seed(8),
			random = info_of_seed(0);

	(void)state;
	assert_int_equal(one.hash_seed, same.hash_seed);
	assert_memory_equal(one.uuid, same.uuid, sizeof(one.uuid));
	assert_int_not_equal(one.hash_seed, other.hash_seed);
	assert_int_not_equal(one.hash_seed, random.hash_seed);
	assert_int_not_equal(random.hash_seed, info_of_seed(0).hash_seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beyond_the_end_nothing_is_read_or_written),
		cmocka_unit_test(it_begins_with_zeros_and_keeps_what_is_written),
		cmocka_unit_test(a_queue_does_what_it_is_given),
		cmocka_unit_test(the_same_seed_gives_the_same_flash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
