/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream of a segment: bytes go out in order and in chunks, the last page after all others, and errors stick. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "base/rng.h"
#include "segments/writer_internal.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (256u << 10)
#define CHUNK (SEGMENT / 16)
#define SUBMITS_MOST 64u
#define NUMBER 1u /* the segment that is written */

/* What the device was given by its queue. It tells of completions only when it is waited for, and then of one. */
static struct {
	const struct dev_ops *ram;
	struct dev_ops ops;
	struct {
		uint64_t offset, bytes;
		unsigned before; /* in flight when it came */
	} submit[SUBMITS_MOST];
	unsigned submits, in_flight, queues;
	int no_queue; /* a negative errno for queue_create */
	int64_t bad_result; /* of the next write that is reaped; 0: its own */
	uint64_t paced, pauses;
} trace;

static int traced_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	int taken;

	assert_int_equal(n, 1);
	assert_true(trace.submits < SUBMITS_MOST);
	trace.submit[trace.submits].offset = ios[0]->offset;
	trace.submit[trace.submits].bytes = ios[0]->bytes;
	trace.submit[trace.submits].before = trace.in_flight;
	trace.submits++;
	taken = trace.ram->submit(queue, ios, n);
	trace.in_flight += taken == 1;
	return taken;
}

static int traced_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	int n = wait && max > 0 ? trace.ram->reap(queue, out, 1, true) : 0;

	trace.in_flight -= (unsigned)n;
	if (n == 1 && trace.bad_result != 0) {
		out[0]->result = trace.bad_result;
		trace.bad_result = 0;
	}
	return n;
}

static int traced_queue_create(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out)
{
	trace.queues++;
	return trace.no_queue ? trace.no_queue : trace.ram->queue_create(dev, depth, eventfd, out);
}

static void no_record(void *context, uint32_t n, struct seg_record *out)
{
	(void)context, (void)n, (void)out;
	fail_msg("a stream asks for no records");
}

static void count_pause(void *context, uint64_t bytes)
{
	assert_ptr_equal(context, &trace);
	trace.paced += bytes;
	trace.pauses++;
}

static const struct seg_writer_ops writer_ops = { .record = no_record, .pace = count_pause };

static void open_flash(struct flash *flash)
{
	assert_int_equal(flash_open_ram(flash, 3, SEGMENT, 16, NULL), FS_OK);
	memset(&trace, 0, sizeof(trace));
	trace.ram = flash->ram->dev.ops;
	trace.ops = *trace.ram;
	trace.ops.submit = traced_submit;
	trace.ops.reap = traced_reap;
	trace.ops.queue_create = traced_queue_create;
	flash->ram->dev.ops = &trace.ops;
}

static void begin(struct flash *flash, struct stream *stream)
{
	open_flash(flash);
	assert_int_equal(stream_init(stream, flash->seg, NUMBER, &writer_ops, &trace), FS_OK);
	assert_int_equal(stream->chunk_bytes, CHUNK);
}

static void end(struct flash *flash, struct stream *stream)
{
	stream_wait(stream);
	assert_int_equal(trace.in_flight, 0);
	stream_fini(stream);
	flash_close(flash);
}

static uint8_t *segment_of(const struct flash *flash)
{
	return flash->ram->bytes + LAYOUT_SUPER_BYTES + NUMBER * SEGMENT;
}

static uint8_t *pattern(void)
{
	uint8_t *bytes = mem_must_zalloc(SEGMENT);
	struct rng rng;

	rng_init(&rng, 12);
	for (unsigned i = 0; i < SEGMENT; i++)
		bytes[i] = (uint8_t)(1 + rng_below(&rng, 255)); /* none is zero */
	return bytes;
}

/* Puts the pattern from the stream's position up to there, in pieces of many lengths. */
static void put_to(struct stream *stream, const uint8_t *bytes, uint64_t to)
{
	struct rng rng;

	rng_init(&rng, 13);
	for (uint64_t at = stream->position; at < to;) {
		uint64_t length = rng_below(&rng, rng_below(&rng, 4) ? 700 : 3 * CHUNK);

		if (length > to - at)
			length = to - at;
		stream_put(stream, bytes + at, length);
		at += length;
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void without_a_queue_it_does_not_begin(void **state)
{
	struct flash flash;
	struct stream stream;

	(void)state;
	open_flash(&flash);
	trace.no_queue = -EMFILE;
	errno = 0;
	assert_int_equal(stream_init(&stream, flash.seg, NUMBER, &writer_ops, &trace), FS_ESYS);
	assert_int_equal(errno, EMFILE);
	trace.no_queue = 0;
	assert_int_equal(stream_init(&stream, flash.seg, NUMBER, &writer_ops, &trace), FS_OK);
	end(&flash, &stream);
}

static void nothing_is_issued_after_an_error(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;
	unsigned submits;

	(void)state;
	begin(&flash, &stream);
	flash.ram->limit = LAYOUT_SUPER_BYTES + NUMBER * SEGMENT + 2 * CHUNK; /* the device is full then */
	put_to(&stream, bytes, 8 * CHUNK);
	stream_wait(&stream);
	assert_int_equal(stream.error, -ENOSPC);
	submits = trace.submits;
	put_to(&stream, bytes, SEGMENT);
	stream_zero_to(&stream, SEGMENT);
	stream_zero_to(&stream, 0); /* a position that has passed is no fault then */
	stream_drain(&stream);
	assert_int_equal(trace.submits, submits);
	assert_int_equal(stream.error, -ENOSPC);
	assert_memory_equal(segment_of(&flash), bytes, 2 * CHUNK);
	end(&flash, &stream);
	mem_free(bytes);
}

static void the_first_error_is_the_one_that_counts(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	stream_put(&stream, bytes, 2 * CHUNK);
	assert_int_equal(trace.in_flight, 2);
	trace.bad_result = -ENODEV;
	flash.ram->fail_writes = true; /* of the third */
	stream_put(&stream, bytes, CHUNK);
	stream_wait(&stream);
	assert_int_equal(stream.error, -ENODEV);
	end(&flash, &stream);
	mem_free(bytes);
}

static void a_short_write_is_an_error(void **state)
{
	static const int64_t results[] = { CHUNK - 1, CHUNK + 1, 1 };
	uint8_t *bytes = pattern();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct flash flash;
		struct stream stream;

		begin(&flash, &stream);
		stream_put(&stream, bytes, CHUNK);
		trace.bad_result = results[i];
		stream_wait(&stream);
		assert_int_equal(stream.error, -EIO);
		end(&flash, &stream);
	}
	mem_free(bytes);
}

static void a_write_in_place_that_fails_is_an_error(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	flash.ram->refuse = true;
	flash.ram->fail_writes = true;
	stream_put(&stream, bytes, CHUNK);
	assert_int_equal(stream.error, -EIO);
	assert_int_equal(stream.in_flight, 0);
	end(&flash, &stream);
	mem_free(bytes);
}

static void the_fault_point_is_an_error_without_a_write(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
#ifndef FS_FAULTS
	mem_free(bytes);
	skip();
#endif
	begin(&flash, &stream);
	fault_arm(FAULT_device_write_eio, FAULT_AFTER, 1);
	stream_put(&stream, bytes, 2 * CHUNK);
	fault_disarm_all();
	assert_int_equal(stream.error, -EIO);
	assert_int_equal(trace.submits, 1);
	end(&flash, &stream);
	mem_free(bytes);
}

/* ---- order and chunks ------------------------------------------------------------------------ */

static void chunks_follow_the_size_of_the_segment(void **state)
{
	(void)state;
	assert_int_equal(stream_chunk_bytes(SEG_MIN_BYTES), 2 * SEG_PAGE);
	assert_int_equal(stream_chunk_bytes(SEGMENT), CHUNK);
	assert_int_equal(stream_chunk_bytes(SEGMENT + SEG_PAGE) % SEG_PAGE, 0);
	assert_int_equal(stream_chunk_bytes(16 * STREAM_CHUNK_MAX), STREAM_CHUNK_MAX);
	assert_int_equal(stream_chunk_bytes(SEG_MAX_BYTES), STREAM_CHUNK_MAX);
}

static void nothing_is_issued_before_a_chunk_is_full(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	stream_put(&stream, bytes, CHUNK - 1);
	assert_int_equal(trace.submits, 0);
	assert_int_equal(stream.issued, 0);
	stream_put(&stream, bytes, 0);
	assert_int_equal(trace.submits, 0);
	stream_put(&stream, bytes + CHUNK - 1, 1);
	assert_int_equal(trace.submits, 1);
	assert_int_equal(stream.issued, CHUNK);
	stream_drain(&stream); /* nothing is left to issue */
	assert_int_equal(trace.submits, 1);
	assert_int_equal(trace.in_flight, 0);
	stream_put(&stream, bytes + CHUNK, SEG_PAGE);
	stream_drain(&stream);
	assert_int_equal(trace.submits, 2);
	assert_int_equal(trace.submit[1].bytes, SEG_PAGE);
	assert_int_equal(trace.in_flight, 0);
	end(&flash, &stream);
	mem_free(bytes);
}

static void all_bytes_go_out_once_and_in_order(void **state)
{
	uint8_t *bytes = pattern();
	uint64_t at = LAYOUT_SUPER_BYTES + NUMBER * SEGMENT, before;
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	before = ctr_sum(CTR_flash_bytes_written);
	put_to(&stream, bytes, SEGMENT);
	stream_drain(&stream);
	assert_int_equal(stream.error, 0);
	assert_int_equal(stream.position, SEGMENT);
	assert_int_equal(stream.issued, SEGMENT);
	assert_int_equal(ctr_sum(CTR_flash_bytes_written) - before, SEGMENT);
	for (unsigned i = 0; i < trace.submits; i++) {
		assert_int_equal(trace.submit[i].offset, at);
		assert_in_range(trace.submit[i].bytes, SEG_PAGE, CHUNK);
		assert_int_equal(trace.submit[i].bytes % SEG_PAGE, 0);
		at += trace.submit[i].bytes;
	}
	assert_int_equal(at, LAYOUT_SUPER_BYTES + (NUMBER + 1) * SEGMENT);
	assert_memory_equal(segment_of(&flash), bytes, SEGMENT);
	/* What lies beside the segment is as it was. */
	assert_int_equal(segment_of(&flash)[-1], 0);
	assert_int_equal(segment_of(&flash)[SEGMENT], 0);
	assert_int_equal(trace.paced, SEGMENT);
	assert_int_equal(trace.pauses, trace.submits);
	end(&flash, &stream);
	mem_free(bytes);
}

/* Several chunks are in flight, never more than there are buffers; none is when the last page goes out, alone. */
static void the_last_page_goes_out_after_all_others(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;
	unsigned most = 0;

	(void)state;
	begin(&flash, &stream);
	stream_put(&stream, bytes, SEGMENT); /* in one piece, over the barrier */
	stream_drain(&stream);
	for (unsigned i = 0; i < trace.submits; i++)
		most = trace.submit[i].before > most ? trace.submit[i].before : most;
	assert_int_equal(most, STREAM_BUFFERS - 1);
	assert_int_equal(trace.submit[trace.submits - 1].before, 0);
	assert_int_equal(trace.submit[trace.submits - 1].bytes, SEG_PAGE);
	assert_memory_equal(segment_of(&flash), bytes, SEGMENT);
	end(&flash, &stream);
	mem_free(bytes);
}

static void gaps_are_filled_with_zeros(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	memset(segment_of(&flash), 0xaa, SEGMENT); /* of an earlier life */
	stream_put(&stream, bytes, 100);
	stream_zero_to(&stream, 100); /* it is there already */
	assert_int_equal(stream.position, 100);
	stream_zero_to(&stream, 5 * CHUNK + 7);
	stream_put(&stream, bytes, 1);
	stream_zero_to(&stream, SEGMENT);
	stream_drain(&stream);
	assert_memory_equal(segment_of(&flash), bytes, 100);
	for (unsigned i = 100; i < SEGMENT; i++)
		assert_int_equal(segment_of(&flash)[i], i == 5 * CHUNK + 7 ? bytes[0] : 0);
	end(&flash, &stream);
	mem_free(bytes);
}

static void a_queue_that_takes_nothing_is_written_around(void **state)
{
	uint8_t *bytes = pattern();
	struct flash flash;
	struct stream stream;

	(void)state;
	begin(&flash, &stream);
	flash.ram->refuse = true;
	put_to(&stream, bytes, SEGMENT);
	stream_drain(&stream);
	assert_int_equal(stream.error, 0);
	assert_int_equal(stream.issued, SEGMENT);
	assert_memory_equal(segment_of(&flash), bytes, SEGMENT);
	end(&flash, &stream);
	mem_free(bytes);
}

static void queue_and_buffers_are_made_once(void **state)
{
	struct flash flash;
	struct stream stream;
	const uint8_t *memory;

	(void)state;
	begin(&flash, &stream);
	memory = stream.memory;
	for (uint32_t i = 0; i < 3; i++) {
		stream_fini(&stream);
		assert_int_equal(stream_init(&stream, flash.seg, i, &writer_ops, &trace), FS_OK);
		assert_int_equal(stream.start, LAYOUT_SUPER_BYTES + i * SEGMENT);
		assert_int_equal(stream.position, 0);
		assert_ptr_equal(stream.memory, memory);
	}
	assert_int_equal(trace.queues, 1);
	end(&flash, &stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_queue_it_does_not_begin),
		cmocka_unit_test(nothing_is_issued_after_an_error),
		cmocka_unit_test(the_first_error_is_the_one_that_counts),
		cmocka_unit_test(a_short_write_is_an_error),
		cmocka_unit_test(a_write_in_place_that_fails_is_an_error),
		cmocka_unit_test(the_fault_point_is_an_error_without_a_write),
		cmocka_unit_test(chunks_follow_the_size_of_the_segment),
		cmocka_unit_test(nothing_is_issued_before_a_chunk_is_full),
		cmocka_unit_test(all_bytes_go_out_once_and_in_order),
		cmocka_unit_test(the_last_page_goes_out_after_all_others),
		cmocka_unit_test(gaps_are_filled_with_zeros),
		cmocka_unit_test(a_queue_that_takes_nothing_is_written_around),
		cmocka_unit_test(queue_and_buffers_are_made_once),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
