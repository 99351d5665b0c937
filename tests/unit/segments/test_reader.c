/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers: many reads in flight, in any order, failing, late, deferred. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "base/rng.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (1u << 20)

struct setup {
	struct flash flash;
	struct batch batch;
	struct seg_reader *reader;
	uint32_t segment;
	uint64_t sequence;
	unsigned done, good, failed, missing;
	int result; /* of the last one done */
	uint64_t done_order;
	bool resubmit;
};

struct one {
	struct seg_read read;
	struct setup *setup;
	uint32_t n; /* of the placed record wanted */
	uint64_t order; /* in which it was done */
};

static void on_done(struct seg_read *read)
{
	struct one *one = read->context;
	struct setup *setup = one->setup;
	struct seg_record record;
	uint64_t needed;
	int rc;

	one->order = ++setup->done_order;
	setup->done++;
	setup->result = read->result;
	if (read->result != FS_OK) {
		assert_int_equal(read->available, 0);
		setup->failed++;
	} else {
		rc = seg_record_read(setup->flash.seg, read->segment, setup->sequence, read->offset, read->bytes,
				     read->available, &record, &needed);
		if (rc == FS_ESHORT) {
			/* Longer than L: the rest is read with a second request. */
			assert_true(needed > read->available);
			seg_read_release(setup->reader, read);
			read->length = needed;
			setup->done--;
			seg_read_submit(setup->reader, read);
			seg_reader_flush(setup->reader);
			return;
		}
		if (rc == FS_OK) {
			assert_is_object(batch_placed(&setup->batch, one->n), &record);
			setup->good++;
		} else {
			setup->missing++;
		}
	}
	seg_read_release(setup->reader, read);
}

static void begin(struct setup *setup, unsigned depth, uint32_t objects, uint32_t longest)
{
	struct seg_placed *placed;

	assert_int_equal(seg_reader_create(&setup->reader, setup->flash.seg, depth), FS_OK);
	batch_make(&setup->batch, 1, objects, 0, longest);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
	setup->sequence = setup->batch.plan.sequence;
	placed = setup->batch.plan.placed;
	for (uint32_t n = 0; n < setup->batch.plan.count; n++)
		assert_int_equal(placed[n].offset,
				 seg_position(setup->flash.seg, setup->segment, batch_placed(&setup->batch, n)->place,
					      placed[n].function));
}

static void start(struct setup *setup, unsigned depth)
{
	memset(setup, 0, sizeof(*setup));
	assert_int_equal(flash_open_ram(&setup->flash, 2, SEGMENT, 16, NULL), FS_OK);
	begin(setup, depth, 5000, 400);
}

static void end(struct setup *setup)
{
	fault_disarm_all();
	seg_reader_destroy(setup->reader);
	flash_close(&setup->flash);
	batch_fini(&setup->batch);
}

static void ask(struct setup *setup, struct one *one, uint32_t n)
{
	*one = (struct one){ .setup = setup, .n = n };
	one->read.segment = setup->segment;
	one->read.offset = setup->batch.plan.placed[n].offset;
	one->read.length = seg_read_length(setup->flash.seg, setup->segment, one->read.offset);
	one->read.done = on_done;
	one->read.context = one;
	assert_true(seg_pin(setup->flash.seg, setup->segment, setup->sequence));
	seg_read_submit(setup->reader, &one->read);
}

/* Polls when the descriptor says so until that many are done. */
static void await(struct setup *setup, unsigned done)
{
	while (setup->done < done) {
		struct pollfd ready = { .fd = seg_reader_fd(setup->reader), .events = POLLIN };
		eventfd_t events;

		assert_int_equal(poll(&ready, 1, 120000), 1);
		assert_int_equal(eventfd_read(ready.fd, &events), 0);
		seg_reader_poll(setup->reader);
	}
	assert_int_equal(seg_reader_in_flight(setup->reader), 0);
}

/* Asks for many records at once and waits for all. */
static struct one *ask_many(struct setup *setup, unsigned count)
{
	struct one *ones = mem_must_zalloc(count * sizeof(*ones));
	struct rng rng;

	rng_init(&rng, 5);
	for (unsigned i = 0; i < count; i++)
		ask(setup, &ones[i], (uint32_t)rng_below(&rng, setup->batch.plan.count));
	seg_reader_flush(setup->reader);
	assert_int_equal(setup->done, 0);
	await(setup, count);
	for (unsigned i = 0; i < count; i++)
		seg_unpin(setup->flash.seg, setup->segment);
	return ones;
}

static void an_error_of_the_device_is_told(void **state)
{
	struct setup setup;
	struct one one;
	uint64_t before = ctr_sum(CTR_flash_read_errors);

	(void)state;
	start(&setup, 8);
	setup.flash.ram->fail_reads = true;
	ask(&setup, &one, 3);
	seg_reader_flush(setup.reader);
	await(&setup, 1);
	assert_int_equal(setup.result, FS_EIO);
	assert_int_equal(ctr_sum(CTR_flash_read_errors), before + 1);
	seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void an_offline_device_is_not_asked(void **state)
{
	struct setup setup;
	struct one one;
	uint64_t before;

	(void)state;
	start(&setup, 8);
	for (int i = 0; i < 5; i++)
		health_error(setup.flash.seg, "a test", 5);
	before = setup.flash.ram->reads;
	ask(&setup, &one, 3);
	seg_reader_flush(setup.reader);
	await(&setup, 1);
	assert_int_equal(setup.result, FS_EOFFLINE);
	assert_int_equal(setup.flash.ram->reads, before);
	seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void a_read_outside_the_segment_is_refused(void **state)
{
	struct setup setup;
	struct one one;

	(void)state;
	start(&setup, 8);
	ask(&setup, &one, 0);
	seg_reader_flush(setup.reader);
	await(&setup, 1);
	one.read.offset = SEGMENT;
	seg_read_submit(setup.reader, &one.read);
	seg_reader_flush(setup.reader);
	await(&setup, 2);
	assert_int_equal(setup.result, FS_EINVAL);
	seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void only_a_read_that_was_not_sent_can_be_taken_out(void **state)
{
	struct setup setup;
	struct one ones[3];

	(void)state;
	start(&setup, 1);
	setup.flash.ram->hold = true;
	for (uint32_t i = 0; i < 3; i++)
		ask(&setup, &ones[i], i);
	seg_reader_flush(setup.reader);
	assert_false(seg_read_cancel(setup.reader, &ones[0].read));
	assert_true(seg_read_cancel(setup.reader, &ones[1].read));
	setup.flash.ram->hold = false;
	await(&setup, 2);
	assert_int_equal(setup.good, 2);
	assert_int_equal(ones[1].order, 0);
	assert_int_equal(setup.flash.ram->reads, 2 + 2); /* and the superblock's */
	for (int i = 0; i < 3; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

/* The drive has one that it doesn't answer; of those behind it the first would come too late. */
static void what_would_come_too_late_is_not_sent(void **state)
{
	struct setup setup;
	struct one ones[3];

	(void)state;
	start(&setup, 1);
	seg_reader_set_patience(setup.reader, 100000000);
	setup.flash.ram->hold = true;
	for (uint32_t i = 0; i < 3; i++)
		ask(&setup, &ones[i], i);
	ones[1].read.expires_ns = clk_now_ns(&setup.flash.clock) + 100000000;
	seg_reader_flush(setup.reader);
	clk_scripted_advance(&setup.flash.clock, 60000);
	seg_reader_poll(setup.reader);
	seg_reader_poll(setup.reader);
	assert_int_equal(setup.done, 1);
	assert_int_equal(setup.result, FS_ELATE);
	assert_true(ones[1].order == 1);
	setup.flash.ram->hold = false;
	await(&setup, 3);
	assert_int_equal(setup.good, 2);
	for (int i = 0; i < 3; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void a_silent_drive_goes_offline_and_what_waits_for_it_is_told(void **state)
{
	struct setup setup;
	struct one ones[20];

	(void)state;
	start(&setup, 10);
	seg_reader_set_patience(setup.reader, 1000000000);
	setup.flash.ram->hold = true;
	for (uint32_t i = 0; i < 20; i++)
		ask(&setup, &ones[i], i);
	seg_reader_flush(setup.reader);
	clk_scripted_advance(&setup.flash.clock, 999000);
	seg_reader_poll(setup.reader);
	assert_false(health_offline(setup.flash.seg));
	clk_scripted_advance(&setup.flash.clock, 1000);
	seg_reader_poll(setup.reader);
	assert_true(health_offline(setup.flash.seg));
	seg_reader_poll(setup.reader);
	assert_int_equal(setup.done, 10);
	assert_int_equal(setup.result, FS_EOFFLINE);
	setup.flash.ram->hold = false;
	await(&setup, 20);
	assert_int_equal(setup.good, 10); /* late, and true */
	for (int i = 0; i < 20; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void a_flipped_bit_is_a_miss(void **state)
{
	struct setup setup;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	start(&setup, 8);
	fault_arm(FAULT_device_read_corrupt, FAULT_EVERY, 2);
	mem_free(ask_many(&setup, 100));
	assert_int_equal(setup.failed, 0);
	assert_int_equal(setup.good + setup.missing, 100);
	assert_in_range(setup.missing, 10, 60);
	end(&setup);
}

static void the_fault_points_fail_and_delay(void **state)
{
	struct setup setup;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	start(&setup, 8);
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 3);
	fault_arm(FAULT_device_read_slow, FAULT_EVERY, 5);
	mem_free(ask_many(&setup, 40));
	assert_int_equal(setup.failed, 1);
	assert_int_equal(setup.good, 39);
	assert_int_equal(fault_fired(FAULT_device_read_slow), 8);
	end(&setup);
}

static void a_late_read_keeps_its_buffer(void **state)
{
	struct setup setup;
	struct one ones[20];

	(void)state;
	start(&setup, 8);
	setup.flash.ram->hold = true;
	for (uint32_t i = 0; i < 20; i++)
		ask(&setup, &ones[i], i);
	seg_reader_flush(setup.reader);
	seg_reader_poll(setup.reader);
	assert_in_range(seg_reader_memory(setup.reader), 8 * 512, 8 * 2048); /* depth 8 */
	assert_int_equal(seg_reader_in_flight(setup.reader), 20);
	setup.flash.ram->hold = false;
	await(&setup, 20);
	assert_int_equal(setup.good, 20);
	for (int i = 0; i < 20; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void destroy_waits_for_reads(void **state)
{
	struct setup setup;
	struct one ones[20];

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	start(&setup, 8);
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	for (uint32_t i = 0; i < 20; i++)
		ask(&setup, &ones[i], i);
	seg_reader_flush(setup.reader);
	seg_reader_destroy(setup.reader);
	assert_int_equal(setup.good, 20);
	assert_int_equal(seg_reader_create(&setup.reader, setup.flash.seg, 1), FS_OK);
	for (int i = 0; i < 20; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void again_goes_through_the_submitter(void **state)
{
	struct setup setup;
	uint64_t before = ctr_sum(CTR_flash_reads_deferred);

	(void)state;
	start(&setup, 16);
	setup.flash.ram->again = true;
	mem_free(ask_many(&setup, 300));
	assert_int_equal(setup.good, 300);
	assert_in_range(ctr_sum(CTR_flash_reads_deferred) - before, 300, 320);
	end(&setup);
}

static void the_fault_point_again_does_so_too(void **state)
{
	struct setup setup;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	start(&setup, 16);
	fault_arm(FAULT_device_read_again, FAULT_EVERY, 3);
	mem_free(ask_many(&setup, 300));
	assert_int_equal(setup.good, 300);
	end(&setup);
}

static void a_queue_that_takes_nothing_is_read_around(void **state)
{
	struct setup setup;

	(void)state;
	start(&setup, 16);
	setup.flash.ram->refuse = true;
	mem_free(ask_many(&setup, 100));
	assert_int_equal(setup.good, 100);
	end(&setup);
}

static void without_nowait_it_is_not_asked_for_again(void **state)
{
	struct setup setup;

	(void)state;
	start(&setup, 16);
	setup.flash.ram->no_nowait = true;
	mem_free(ask_many(&setup, 100));
	assert_int_equal(setup.good, 100);
	assert_false(atomic_load(&setup.flash.seg->nowait));
	end(&setup);
}

static void completions_come_in_any_order(void **state)
{
	struct setup setup;
	struct one *ones;

	(void)state;
	start(&setup, 16);
	setup.flash.ram->reverse = true;
	ones = ask_many(&setup, 16);
	assert_int_equal(setup.good, 16);
	assert_true(ones[0].order > ones[15].order);
	mem_free(ones);
	end(&setup);
}

static void depth_bounds_what_the_device_has(void **state)
{
	struct setup setup;
	struct one ones[10];
	uint64_t before;

	(void)state;
	start(&setup, 4);
	setup.flash.ram->hold = true;
	before = setup.flash.ram->reads;
	for (uint32_t i = 0; i < 10; i++)
		ask(&setup, &ones[i], i);
	assert_int_equal(setup.flash.ram->reads, before); /* nothing before the flush */
	seg_reader_flush(setup.reader);
	assert_int_equal(setup.flash.ram->reads - before, 4);
	assert_int_equal(seg_reader_in_flight(setup.reader), 10);
	setup.flash.ram->hold = false;
	await(&setup, 10);
	assert_int_equal(setup.good, 10);
	for (int i = 0; i < 10; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void assert_took(const struct hist *earlier, uint64_t count, uint64_t sum_us)
{
	struct hist *took = durations_since(LAT_flash_read, earlier);

	assert_int_equal(took->count, count);
	assert_int_equal(took->sum, sum_us * 1000);
	hist_destroy(took);
}

/* From the flush, not from when they were asked for; what the device has no room for yet, from when it has. */
static void what_reads_take(void **state)
{
	struct setup setup;
	struct one ones[5];
	struct hist *earlier = durations_since(LAT_flash_read, NULL);

	(void)state;
	start(&setup, 4);
	setup.flash.ram->hold = true;
	for (uint32_t i = 0; i < 5; i++)
		ask(&setup, &ones[i], i);
	clk_scripted_advance(&setup.flash.clock, 1000);
	seg_reader_flush(setup.reader);
	clk_scripted_advance(&setup.flash.clock, 70);
	seg_reader_poll(setup.reader);
	assert_took(earlier, 0, 0);
	clk_scripted_advance(&setup.flash.clock, 10);
	setup.flash.ram->hold = false;
	await(&setup, 5);
	assert_took(earlier, 5, 4 * 80 + 0);
	for (int i = 0; i < 5; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	hist_destroy(earlier);
	end(&setup);
}

/* Once each, whoever had to submit it again; failed ones too, but not what no device was asked for. */
static void what_other_reads_take(void **state)
{
	struct setup setup;
	struct one ones[2];
	struct hist *earlier = durations_since(LAT_flash_read, NULL);

	(void)state;
	start(&setup, 16);
	setup.flash.ram->again = true;
	ask(&setup, &ones[0], 0);
	seg_reader_flush(setup.reader);
	clk_scripted_advance(&setup.flash.clock, 30);
	await(&setup, 1);
	assert_took(earlier, 1, 30);
	setup.flash.ram->again = false;
	setup.flash.ram->fail_reads = true;
	ask(&setup, &ones[1], 1);
	seg_reader_flush(setup.reader);
	clk_scripted_advance(&setup.flash.clock, 5);
	await(&setup, 2);
	assert_int_equal(setup.failed, 1);
	assert_took(earlier, 2, 35);
	ones[1].read.segment = 4711;
	seg_read_submit(setup.reader, &ones[1].read);
	await(&setup, 3);
	assert_int_equal(setup.failed, 2);
	assert_took(earlier, 2, 35);
	for (int i = 0; i < 2; i++)
		seg_unpin(setup.flash.seg, setup.segment);
	hist_destroy(earlier);
	end(&setup);
}

/* Every record, so that many straddle pages; long ones take a second read. */
static void every_record_can_be_read(void **state)
{
	struct setup setup;
	struct one *ones;
	unsigned straddling = 0;

	(void)state;
	memset(&setup, 0, sizeof(setup));
	assert_int_equal(flash_open_ram(&setup.flash, 2, SEGMENT, 16, NULL), FS_OK);
	begin(&setup, 32, 2000, 15000);
	ones = mem_must_zalloc(setup.batch.plan.count * sizeof(*ones));
	for (uint32_t n = 0; n < setup.batch.plan.count; n++) {
		ask(&setup, &ones[n], n);
		straddling += ones[n].read.pages > 1;
	}
	seg_reader_flush(setup.reader);
	await(&setup, setup.batch.plan.count);
	assert_int_equal(setup.good, setup.batch.plan.count);
	assert_true(straddling > 0);
	for (uint32_t n = 0; n < setup.batch.plan.count; n++)
		seg_unpin(setup.flash.seg, setup.segment);
	mem_free(ones);
	end(&setup);
}

/* A read begins and ends at the unit next to its record, and no further. */
static void assert_units(const struct seg_read *read, uint32_t unit)
{
	uint64_t first = read->offset - (read->transferred - read->available), end = first + read->transferred;

	assert_int_equal(first % unit, 0);
	assert_int_equal(end % unit, 0);
	assert_in_range(read->offset - first, 0, unit - 1);
	assert_in_range(end - (read->offset + read->length), 0, unit - 1);
	assert_int_equal(read->pages, (end - 1) / SEG_PAGE - first / SEG_PAGE + 1);
}

static void read_all_by(uint32_t block, enum seg_read_unit wanted)
{
	struct ram_device *ram = ram_device_create(LAYOUT_SUPER_BYTES + 2 * SEGMENT, NULL);
	uint32_t unit = wanted == SEG_READ_PAGE ? SEG_PAGE : block;
	uint64_t bytes = 0;
	struct setup setup;
	struct seg_info info;
	struct one *ones;

	memset(&setup, 0, sizeof(setup));
	ram->dev.read_block = block;
	assert_int_equal(flash_open_on(&setup.flash, ram, SEGMENT, 16), FS_OK);
	setup.flash.seg->read_unit_wanted = wanted;
	seg_note_device(setup.flash.seg);
	seg_get_info(setup.flash.seg, &info);
	assert_int_equal(info.read_unit, unit);
	begin(&setup, 32, 2000, 3000);
	ones = mem_must_zalloc(setup.batch.plan.count * sizeof(*ones));
	for (uint32_t n = 0; n < setup.batch.plan.count; n++) {
		ask(&setup, &ones[n], n);
		assert_units(&ones[n].read, unit);
		bytes += ones[n].read.transferred;
	}
	seg_reader_flush(setup.reader);
	await(&setup, setup.batch.plan.count);
	assert_int_equal(setup.good, setup.batch.plan.count);
	for (uint32_t n = 0; n < setup.batch.plan.count; n++)
		seg_unpin(setup.flash.seg, setup.segment);
	print_message("units of %u bytes: %.0f bytes a read\n", unit, (double)bytes / setup.batch.plan.count);
	mem_free(ones);
	end(&setup);
}

static void reads_begin_and_end_at_units(void **state)
{
	(void)state;
	for (uint32_t block = 512; block <= SEG_PAGE; block *= 2)
		read_all_by(block, SEG_READ_BLOCK);
	read_all_by(512, SEG_READ_PAGE);
}

static void large_objects_are_read_whole(void **state)
{
	struct setup setup;
	struct one ones[8];
	uint32_t count;

	(void)state;
	memset(&setup, 0, sizeof(setup));
	assert_int_equal(flash_open_ram(&setup.flash, 1, 32u << 20, 16, NULL), FS_OK);
	assert_int_equal(seg_reader_create(&setup.reader, setup.flash.seg, 4), FS_OK);
	batch_make(&setup.batch, 1, 8, 100000, 7u << 20);
	batch_make_extents(&setup.batch, 0);
	assert_int_equal(batch_write(&setup.batch, &setup.flash, &setup.segment), FS_OK);
	setup.sequence = setup.batch.plan.sequence;
	count = setup.batch.plan.extents;
	assert_in_range(count, 3, 8);
	for (uint32_t n = 0; n < count; n++) {
		ask(&setup, &ones[n], n);
		ones[n].read.length = setup.batch.candidates[setup.batch.plan.placed[n].candidate].length;
	}
	seg_reader_flush(setup.reader);
	await(&setup, count);
	assert_int_equal(setup.good, count);
	for (uint32_t n = 0; n < count; n++)
		seg_unpin(setup.flash.seg, setup.segment);
	end(&setup);
}

static void idle_buffers_are_bounded(void **state)
{
	struct setup setup;

	(void)state;
	start(&setup, 64);
	mem_free(ask_many(&setup, 2000));
	assert_in_range(seg_reader_memory(setup.reader), 1, 1u << 20);
	end(&setup);
}

static void a_file_is_read_through_libaio(void **state)
{
	char path[] = "/tmp/flashield-reader-XXXXXX";
	struct setup setup;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	memset(&setup, 0, sizeof(setup));
	assert_int_equal(flash_open_file(&setup.flash, path, 3 * SEGMENT, SEGMENT), FS_OK);
	begin(&setup, 64, 5000, 400);
	mem_free(ask_many(&setup, 3000));
	assert_int_equal(setup.good, 3000);
	/* And a truncated one gives errors, not garbage. */
	assert_int_equal(truncate(path, SEG_PAGE), 0);
	setup.done = setup.good = 0;
	mem_free(ask_many(&setup, 3));
	assert_int_equal(setup.failed, 3);
	end(&setup);
	unlink(path);
}

/* Small waves, so that completions keep coming while others are polled; the eventfd is never read. */
static void read_in_waves(struct setup *setup, unsigned waves)
{
	struct epoll_event watch = { .events = EPOLLIN | EPOLLET }, event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct one ones[5];
	struct rng rng;

	rng_init(&rng, 6);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, seg_reader_fd(setup->reader), &watch), 0);
	for (unsigned wave = 0; wave < waves; wave++) {
		unsigned size = 1 + (unsigned)rng_below(&rng, 5);

		setup->done = 0;
		for (unsigned i = 0; i < size; i++)
			ask(setup, &ones[i], (uint32_t)rng_below(&rng, setup->batch.plan.count));
		seg_reader_flush(setup->reader);
		while (setup->done < size) {
			assert_int_equal(epoll_wait(epoll, &event, 1, 20000), 1);
			seg_reader_poll(setup->reader);
		}
		for (unsigned i = 0; i < size; i++)
			seg_unpin(setup->flash.seg, setup->segment);
	}
	assert_int_equal(setup->failed + setup->missing, 0);
	close(epoll);
}

static void an_edge_triggered_watch_misses_nothing_of_the_device(void **state)
{
	char path[] = "/tmp/flashield-reader-XXXXXX";
	struct setup setup;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	memset(&setup, 0, sizeof(setup));
	assert_int_equal(flash_open_file(&setup.flash, path, 3 * SEGMENT, SEGMENT), FS_OK);
	begin(&setup, 3, 5000, 400);
	read_in_waves(&setup, 3000);
	end(&setup);
	unlink(path);
}

static void an_edge_triggered_watch_misses_nothing_of_the_submitter(void **state)
{
	struct setup setup;

	(void)state;
	start(&setup, 3);
	setup.flash.ram->refuse = true;
	read_in_waves(&setup, 3000);
	end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_of_the_device_is_told),
		cmocka_unit_test(an_offline_device_is_not_asked),
		cmocka_unit_test(a_read_outside_the_segment_is_refused),
		cmocka_unit_test(only_a_read_that_was_not_sent_can_be_taken_out),
		cmocka_unit_test(what_would_come_too_late_is_not_sent),
		cmocka_unit_test(a_silent_drive_goes_offline_and_what_waits_for_it_is_told),
		cmocka_unit_test(a_flipped_bit_is_a_miss),
		cmocka_unit_test(the_fault_points_fail_and_delay),
		cmocka_unit_test(a_late_read_keeps_its_buffer),
		cmocka_unit_test(destroy_waits_for_reads),
		cmocka_unit_test(again_goes_through_the_submitter),
		cmocka_unit_test(the_fault_point_again_does_so_too),
		cmocka_unit_test(a_queue_that_takes_nothing_is_read_around),
		cmocka_unit_test(without_nowait_it_is_not_asked_for_again),
		cmocka_unit_test(completions_come_in_any_order),
		cmocka_unit_test(depth_bounds_what_the_device_has),
		cmocka_unit_test(what_reads_take),
		cmocka_unit_test(what_other_reads_take),
		cmocka_unit_test(every_record_can_be_read),
		cmocka_unit_test(reads_begin_and_end_at_units),
		cmocka_unit_test(large_objects_are_read_whole),
		cmocka_unit_test(idle_buffers_are_bounded),
		cmocka_unit_test(a_file_is_read_through_libaio),
		cmocka_unit_test(an_edge_triggered_watch_misses_nothing_of_the_device),
		cmocka_unit_test(an_edge_triggered_watch_misses_nothing_of_the_submitter),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
