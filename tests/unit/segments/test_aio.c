/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues over libaio and a real file: refusals, errors of single requests, and that each request completes once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "tests/unit/segments/fixture.h"

#define PAGES 300u /* more than one call of aio_submit takes */
#define ROUNDS 20u

static char path[] = "/tmp/flashield-aio-XXXXXX";
static int file = -1;

static int make_file(void **state)
{
	(void)state;
	file = mkstemp(path);
	return file >= 0 ? 0 : -1;
}

static int remove_file(void **state)
{
	(void)state;
	close(file);
	return unlink(path);
}

/* Requests of a page each, with a buffer each, for the pages of a file from the first on. */
struct requests {
	struct dev_io *io;
	struct dev_io **list;
	uint8_t *buffers;
	unsigned count;
};

static void requests_make(struct requests *requests, unsigned count, bool write)
{
	requests->count = count;
	requests->io = mem_must_zalloc(count * sizeof(*requests->io));
	requests->list = mem_must_zalloc(count * sizeof(*requests->list));
	requests->buffers = mem_aligned(SEG_PAGE, (size_t)count * SEG_PAGE);
	assert_non_null(requests->buffers);
	for (unsigned i = 0; i < count; i++) {
		memset(requests->buffers + (size_t)i * SEG_PAGE, write ? (int)(i % 251 + 1) : 0, SEG_PAGE);
		requests->list[i] = &requests->io[i];
		requests->io[i] = (struct dev_io){
			.magic = DEV_IO_MAGIC,
			.buffer = requests->buffers + (size_t)i * SEG_PAGE,
			.bytes = SEG_PAGE,
			.offset = (uint64_t)i * SEG_PAGE,
			.result = INT64_MIN, /* not completed */
			.write = write,
		};
	}
}

static void requests_drop(struct requests *requests)
{
	mem_free(requests->io);
	mem_free(requests->list);
	mem_free(requests->buffers);
}

/* Reaps until so many have completed, at most `max` at a time; each must be one of the requests, and complete once. */
static void reap_all(struct dev_queue *queue, struct requests *requests, unsigned count, unsigned max)
{
	struct dev_io *done[256];
	uint8_t *seen = mem_must_zalloc(requests->count);

	while (count > 0) {
		int n = aio_reap(queue, done, max, true);

		assert_in_range(n, 1, max);
		assert_true((unsigned)n <= count);
		for (int i = 0; i < n; i++) {
			size_t number = (size_t)(done[i] - requests->io);

			assert_true(number < requests->count);
			assert_int_equal(seen[number]++, 0);
		}
		count -= (unsigned)n;
	}
	assert_int_equal(aio_reap(queue, done, max, false), 0);
	mem_free(seen);
}

/* Submits all and reaps them, as many at a time as the queue takes. */
static void pass_all(struct dev_queue *queue, struct requests *requests)
{
	for (unsigned at = 0; at < requests->count;) {
		int n = aio_submit(queue, requests->list + at, requests->count - at);

		assert_in_range(n, 1, requests->count - at);
		reap_all(queue, requests, (unsigned)n, 256);
		at += (unsigned)n;
	}
}

static struct dev_queue *open_queue(unsigned depth, int eventfd)
{
	struct dev_queue *queue;

	assert_int_equal(aio_queue_create(file, depth, eventfd, &queue), 0);
	return queue;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void a_depth_that_the_kernel_refuses_gives_no_queue(void **state)
{
	static const unsigned depths[] = { 0, UINT32_MAX, INT32_MAX };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct dev_queue *queue = (struct dev_queue *)&queue;

		assert_true(aio_queue_create(file, depths[i], -1, &queue) < 0);
		assert_null(queue);
	}
}

static void without_a_context_there_is_no_queue(void **state)
{
	struct dev_queue *queue;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	fault_arm(FAULT_aio_setup, FAULT_ALWAYS, 0);
	assert_int_equal(aio_queue_create(file, 8, -1, &queue), -EAGAIN);
	fault_disarm_all();
	assert_null(queue);
}

static void requests_for_no_open_file_are_refused(void **state)
{
	struct dev_queue *queue;
	struct requests requests;
	struct dev_io *done[1];

	(void)state;
	assert_int_equal(aio_queue_create(-1, 8, -1, &queue), 0);
	requests_make(&requests, 3, false);
	assert_int_equal(aio_submit(queue, requests.list, 3), -EBADF);
	assert_int_equal(aio_reap(queue, done, 1, false), 0);
	requests_drop(&requests);
	aio_queue_destroy(queue);
}

/* Until it is reaped: none of those that were taken is lost, and none of the others was touched. */
static void a_full_queue_refuses_and_takes_again_when_it_was_reaped(void **state)
{
	struct dev_queue *queue = open_queue(1, -1);
	struct requests requests;
	unsigned taken = 0;
	int n = 0;

	(void)state;
	assert_int_equal(ftruncate(file, (off_t)PAGES * SEG_PAGE), 0);
	requests_make(&requests, 20000, false); /* the kernel rounds a depth up, by pages and processors */
	for (unsigned i = 0; i < requests.count; i++)
		requests.io[i].offset = 0;
	while (taken < requests.count && (n = aio_submit(queue, requests.list + taken, 1)) == 1)
		taken++;
	assert_int_equal(n, -EAGAIN);
	assert_in_range(taken, 1, requests.count - 2);
	reap_all(queue, &requests, taken, 200);
	for (unsigned i = 0; i < requests.count; i++)
		assert_true(requests.io[i].result == (i < taken ? SEG_PAGE : INT64_MIN));
	assert_int_equal(aio_submit(queue, requests.list + taken, 1), 1);
	reap_all(queue, &requests, 1, 1);
	assert_int_equal(requests.io[taken].result, SEG_PAGE);
	requests_drop(&requests);
	aio_queue_destroy(queue);
}

/* ---- results --------------------------------------------------------------------------------- */

static void a_read_beyond_the_end_is_short(void **state)
{
	struct dev_queue *queue = open_queue(8, -1);
	struct requests requests;

	(void)state;
	assert_int_equal(ftruncate(file, SEG_PAGE + 100), 0);
	requests_make(&requests, 3, false);
	pass_all(queue, &requests);
	assert_int_equal(requests.io[0].result, SEG_PAGE);
	assert_int_equal(requests.io[1].result, 100);
	assert_int_equal(requests.io[2].result, 0);
	requests_drop(&requests);
	aio_queue_destroy(queue);
}

/* The kernel finds out about the buffer when it reads, and not before. */
static void an_error_belongs_to_its_request(void **state)
{
	struct dev_queue *queue = open_queue(8, -1);
	struct requests requests;

	(void)state;
	assert_int_equal(ftruncate(file, 0), 0);
	assert_int_equal(ftruncate(file, 3 * SEG_PAGE), 0);
	requests_make(&requests, 3, false);
	requests.io[1].buffer = (void *)(uintptr_t)SEG_PAGE; /* nothing is mapped there */
	pass_all(queue, &requests);
	assert_int_equal(requests.io[0].result, SEG_PAGE);
	assert_int_equal(requests.io[1].result, -EFAULT);
	assert_int_equal(requests.io[2].result, SEG_PAGE);
	requests_drop(&requests);
	aio_queue_destroy(queue);
}

static void nothing_to_reap_is_none(void **state)
{
	struct dev_queue *queue = open_queue(4, -1);
	struct dev_io *done[4];

	(void)state;
	assert_int_equal(aio_reap(queue, done, 4, false), 0);
	assert_int_equal(aio_reap(queue, done, 0, false), 0);
	aio_queue_destroy(queue);
}

static void no_more_are_reaped_than_there_is_room_for(void **state)
{
	struct dev_queue *queue = open_queue(64, -1);
	struct requests requests;

	(void)state;
	assert_int_equal(ftruncate(file, (off_t)PAGES * SEG_PAGE), 0);
	for (unsigned max = 1; max <= 7; max++) {
		requests_make(&requests, 50, false);
		assert_int_equal(aio_submit(queue, requests.list, 50), 50);
		reap_all(queue, &requests, 50, max);
		requests_drop(&requests);
	}
	aio_queue_destroy(queue);
}

/* So often that the kernel's ring of completions goes round several times. */
static void what_was_written_is_read_back(void **state)
{
	struct dev_queue *queue = open_queue(PAGES, -1);
	struct requests writes, reads;

	(void)state;
	assert_int_equal(ftruncate(file, 0), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		requests_make(&writes, PAGES, true);
		pass_all(queue, &writes);
		requests_make(&reads, PAGES, false);
		pass_all(queue, &reads);
		for (unsigned i = 0; i < PAGES; i++) {
			assert_int_equal(writes.io[i].result, SEG_PAGE);
			assert_int_equal(reads.io[i].result, SEG_PAGE);
		}
		assert_memory_equal(writes.buffers, reads.buffers, (size_t)PAGES * SEG_PAGE);
		requests_drop(&writes);
		requests_drop(&reads);
	}
	aio_queue_destroy(queue);
}

/* ---- the eventfd ----------------------------------------------------------------------------- */

static void each_completion_adds_one_to_the_eventfd(void **state)
{
	int events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct dev_queue *queue = open_queue(64, events);
	struct requests requests;
	uint64_t sum = 0;

	(void)state;
	assert_true(events >= 0);
	assert_int_equal(ftruncate(file, (off_t)PAGES * SEG_PAGE), 0);
	requests_make(&requests, 40, false);
	assert_int_equal(aio_submit(queue, requests.list, 40), 40);
	while (sum < 40) {
		struct pollfd ready = { .fd = events, .events = POLLIN };
		eventfd_t added;

		assert_int_equal(poll(&ready, 1, 120000), 1);
		assert_int_equal(eventfd_read(events, &added), 0);
		sum += added;
	}
	assert_int_equal(sum, 40);
	reap_all(queue, &requests, 40, 256); /* they are there: it needn't wait */
	requests_drop(&requests);
	aio_queue_destroy(queue);
	close(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_depth_that_the_kernel_refuses_gives_no_queue),
		cmocka_unit_test(without_a_context_there_is_no_queue),
		cmocka_unit_test(requests_for_no_open_file_are_refused),
		cmocka_unit_test(a_full_queue_refuses_and_takes_again_when_it_was_reaped),
		cmocka_unit_test(a_read_beyond_the_end_is_short),
		cmocka_unit_test(an_error_belongs_to_its_request),
		cmocka_unit_test(nothing_to_reap_is_none),
		cmocka_unit_test(no_more_are_reaped_than_there_is_room_for),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(each_completion_adds_one_to_the_eventfd),
	};

	return cmocka_run_group_tests_name("aio", tests, make_file, remove_file);
}
