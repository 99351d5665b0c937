/* SPDX-License-Identifier: BSD-3-Clause */
/* A flash moves to another device: what the new one has, who may still read the old one, and how a move ends early. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/metrics/counters.h"
#include "segments/move.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define SEGMENTS 5u
#define OBJECTS 100u
#define STEPS_MOST 10000u

static uint64_t bytes_of(uint32_t segments)
{
	return LAYOUT_SUPER_BYTES + (uint64_t)segments * SEGMENT;
}

/* A flash with batch n in its segment n. */
struct run {
	struct flash flash;
	uint8_t *memory; /* of the device that the flash begins on */
	struct batch batch[SEGMENTS];
	uint64_t sequence[SEGMENTS];
	uint32_t live; /* segments */
	struct ram_device *to;
};

static void write_batch(struct run *run, uint32_t n, uint64_t first)
{
	uint32_t segment;

	batch_make(&run->batch[n], first, OBJECTS, 50, 200);
	assert_int_equal(batch_write(&run->batch[n], &run->flash, &segment), FS_OK);
	assert_int_equal(segment, n);
	run->sequence[n] = run->batch[n].plan.sequence;
}

static void begin_run(struct run *run, uint32_t live)
{
	memset(run, 0, sizeof(*run));
	run->memory = ram_memory(bytes_of(SEGMENTS));
	run->live = live;
	assert_int_equal(flash_open_ram(&run->flash, SEGMENTS, SEGMENT, 16, run->memory), FS_OK);
	for (uint32_t n = 0; n < live; n++)
		write_batch(run, n, 1 + n * OBJECTS);
}

static void end_run(struct run *run)
{
	flash_close(&run->flash);
	for (uint32_t n = 0; n < run->live; n++)
		batch_fini(&run->batch[n]);
	mem_free(run->memory);
}

static int setup(void **state)
{
	static struct run run;

	begin_run(&run, 4);
	*state = &run;
	return 0;
}

static int teardown(void **state)
{
	end_run(*state);
	return 0;
}

static void reclaim(struct run *run, uint32_t segment)
{
	seg_reclaim_begin(run->flash.seg, segment);
	assert_int_equal(seg_reclaim_end(run->flash.seg, segment, 1000), FS_OK);
}

static void begin_move_over(struct run *run, uint32_t segments, uint8_t *memory)
{
	char reason[256];

	run->to = ram_device_create(bytes_of(segments), memory);
	assert_int_equal(seg_move_begin(run->flash.seg, &(struct seg_move_config){ .device = &run->to->dev }, reason),
			 FS_OK);
}

static void begin_move(struct run *run, uint32_t segments)
{
	begin_move_over(run, segments, NULL);
}

/* Steps until this phase, at most so often that a move which stands still fails. */
static struct seg_moved step_to(struct run *run, enum seg_move_phase phase)
{
	struct seg_moved moved;

	for (unsigned steps = 0; steps < STEPS_MOST; steps++) {
		assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
		if (moved.phase == phase)
			return moved;
	}
	fail();
	return moved;
}

/* Reads each record of a segment by a walk. */
struct seen {
	const struct batch *batch;
	uint32_t n;
};

static bool see(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct seen *seen = context;

	(void)extent;
	assert_int_equal(offset, seen->batch->plan.placed[seen->n].offset);
	assert_is_object(batch_placed(seen->batch, seen->n), record);
	seen->n++;
	return true;
}

static void assert_readable(struct run *run, uint32_t n)
{
	struct seen seen = { &run->batch[n], 0 };
	uint64_t visited;

	assert_true(seg_pin(run->flash.seg, n, run->sequence[n]));
	assert_int_equal(seg_walk(run->flash.seg, n, see, &seen, &visited), FS_OK);
	seg_unpin(run->flash.seg, n);
	assert_int_equal(visited, run->batch[n].plan.count);
}

static void switch_and_leave(struct run *run)
{
	struct seg_moved moved;

	assert_int_equal(seg_move_switch(run->flash.seg, 0), FS_OK);
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.phase, SEG_MOVE_NONE);
}

static void all_segments_are_on_the_new_device(void **state)
{
	struct run *run = *state;
	uint64_t epoch = run->flash.seg->super.attach_epoch, moved = ctr_sum(CTR_flash_moved_bytes), generation;
	struct layout_super super;
	struct ram_device *old;

	begin_move(run, SEGMENTS);
	step_to(run, SEG_MOVE_READY);
	assert_int_equal(ctr_sum(CTR_flash_moved_bytes) - moved, 4 * SEGMENT);
	switch_and_leave(run);
	memset(run->memory + LAYOUT_SUPER_BYTES, 0xee, bytes_of(SEGMENTS) - LAYOUT_SUPER_BYTES); /* nobody reads it */
	for (uint32_t n = 0; n < 4; n++)
		assert_readable(run, n);
	assert_int_equal(super_load(&run->to->dev, &super, &generation), FS_OK);
	assert_int_equal(super.attach_epoch, epoch + SEG_MOVE_EPOCHS);
	old = ram_device_create(bytes_of(SEGMENTS), run->memory);
	assert_int_equal(super_load(&old->dev, &super, &generation), FS_ENOTFOUND);
	old->dev.ops->close(&old->dev);
	/* The flash goes on there. */
	run->live = 5;
	write_batch(run, 4, 1000);
	assert_readable(run, 4);
	reclaim(run, 0);
	batch_fini(&run->batch[0]);
	write_batch(run, 0, 2000);
	assert_readable(run, 0);
}

/* ---- reads under way --------------------------------------------------------------------------- */

struct flight {
	struct seg_read read;
	struct run *run;
	uint32_t segment, n;
	bool done;
};

static void on_done(struct seg_read *read)
{
	struct flight *flight = read->context;
	struct segments *seg = flight->run->flash.seg;
	struct seg_record record;
	uint64_t needed;

	assert_int_equal(read->result, FS_OK);
	assert_int_equal(seg_record_read(seg, flight->segment, flight->run->sequence[flight->segment], read->offset,
					 read->bytes, read->available, &record, &needed),
			 FS_OK);
	assert_is_object(batch_placed(&flight->run->batch[flight->segment], flight->n), &record);
	seg_read_release(read->reader, read);
	seg_unpin(seg, flight->segment);
	flight->done = true;
}

static void ask(struct run *run, struct seg_reader *reader, struct flight *flight, uint32_t segment, uint32_t n)
{
	*flight = (struct flight){ .run = run, .segment = segment, .n = n };
	flight->read = (struct seg_read){ .segment = segment,
					  .offset = run->batch[segment].plan.placed[n].offset,
					  .length = 400,
					  .done = on_done,
					  .context = flight };
	assert_true(seg_pin(run->flash.seg, segment, run->sequence[segment]));
	seg_read_submit(reader, &flight->read);
	seg_reader_flush(reader);
}

static void poll_until_done(struct seg_reader *reader, const struct flight *flight)
{
	for (unsigned turns = 0; !flight->done && turns < 1000; turns++)
		seg_reader_poll(reader);
	assert_true(flight->done);
}

/* Reads that were sent to the old device, reads that were submitted and not sent, and those of after the switch: each has
   the object, and the old device is open as long as one of the first is under way. */
static void reads_under_way_end_where_they_began(void **state)
{
	struct run *run = *state;
	struct flight sent, waiting, later;
	struct ram_device *from = run->flash.ram;
	struct seg_reader *reader;
	struct seg_moved moved;

	assert_int_equal(seg_reader_create(&reader, run->flash.seg, 1), FS_OK);
	from->hold = true;
	ask(run, reader, &sent, 1, 3);
	ask(run, reader, &waiting, 2, 5); /* of depth 1: it goes out when the first is back */
	begin_move(run, SEGMENTS);
	step_to(run, SEG_MOVE_READY);
	assert_int_equal(seg_move_switch(run->flash.seg, 0), FS_OK);
	for (unsigned steps = 0; steps < 3; steps++) {
		assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
		assert_int_equal(moved.phase, SEG_MOVE_LEAVING);
	}
	assert_false(sent.done || waiting.done);
	from->hold = false;
	poll_until_done(reader, &sent);
	poll_until_done(reader, &waiting);
	ask(run, reader, &later, 1, 4);
	assert_int_equal(run->to->reads, 1);
	poll_until_done(reader, &later);
	/* The queue was made by the old device, and is the new one's from now on. */
	step_to(run, SEG_MOVE_NONE);
	ask(run, reader, &later, 3, 0);
	poll_until_done(reader, &later);
	seg_reader_destroy(reader);
}

/* Somebody always has the segment pinned; what began on the old device is soon over all the same. */
static void reads_of_after_the_switch_hold_nothing_up(void **state)
{
	struct run *run = *state;
	struct flight before, later;
	struct ram_device *from = run->flash.ram;
	struct seg_reader *first, *second;
	struct seg_moved moved;

	assert_int_equal(seg_reader_create(&first, run->flash.seg, 4), FS_OK);
	assert_int_equal(seg_reader_create(&second, run->flash.seg, 4), FS_OK);
	from->hold = true;
	ask(run, first, &before, 1, 3);
	begin_move(run, SEGMENTS);
	step_to(run, SEG_MOVE_READY);
	assert_int_equal(seg_move_switch(run->flash.seg, 0), FS_OK);
	run->to->hold = true;
	ask(run, second, &later, 1, 4);
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.phase, SEG_MOVE_LEAVING);
	from->hold = false;
	poll_until_done(first, &before);
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.phase, SEG_MOVE_NONE);
	seg_reader_poll(second);
	assert_false(later.done);
	run->to->hold = false;
	poll_until_done(second, &later);
	seg_reader_destroy(first);
	seg_reader_destroy(second);
}

struct client {
	struct run *run;
	struct seg_reader *reader;
	_Atomic bool stop;
	_Atomic unsigned reads;
};

/* A worker's reads, and now and then a walk, as a dump does it. */
static void *read_on(void *context)
{
	struct client *client = context;

	for (unsigned turn = 0; !atomic_load(&client->stop); turn++) {
		uint32_t segment = turn % 4;
		struct flight flight;

		ask(client->run, client->reader, &flight, segment, turn % client->run->batch[segment].plan.count);
		poll_until_done(client->reader, &flight);
		if (turn % 16 == 0)
			assert_readable(client->run, segment);
		atomic_fetch_add(&client->reads, 1);
	}
	return NULL;
}

/* From device to device, each of which is freed when it is left. */
static void another_thread_reads_on(void **state)
{
	struct run *run = *state;
	struct client client = { .run = run };
	pthread_t thread;

	assert_int_equal(seg_reader_create(&client.reader, run->flash.seg, 4), FS_OK);
	assert_int_equal(pthread_create(&thread, NULL, read_on, &client), 0);
	for (unsigned turn = 0; turn < 20; turn++) {
		unsigned reads = atomic_load(&client.reads);

		begin_move(run, SEGMENTS);
		step_to(run, SEG_MOVE_READY);
		assert_int_equal(seg_move_switch(run->flash.seg, 0), FS_OK);
		while (run->flash.seg->move) {
			struct seg_moved moved;

			assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
			sched_yield();
		}
		while (atomic_load(&client.reads) < reads + 10)
			sched_yield();
	}
	atomic_store(&client.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	seg_reader_destroy(client.reader);
}

/* ---- writes meanwhile -------------------------------------------------------------------------- */

static void what_is_written_meanwhile_is_copied_again(void **state)
{
	struct run *run = *state;
	struct seg_moved moved;

	begin_move(run, SEGMENTS);
	step_to(run, SEG_MOVE_READY);
	run->live = 5;
	write_batch(run, 4, 1000);
	reclaim(run, 0);
	batch_fini(&run->batch[0]);
	write_batch(run, 0, 2000);
	/* Paced, a step still copies what was copied before, and nothing else. */
	assert_int_equal(seg_move_step(run->flash.seg, true, &moved), FS_OK);
	assert_int_equal(moved.bytes, SEGMENT);
	assert_int_equal(seg_move_step(run->flash.seg, true, &moved), FS_OK);
	assert_int_equal(moved.bytes, 0);
	assert_int_equal(moved.phase, SEG_MOVE_COPYING);
	assert_int_equal(moved.copied, 4);
	assert_int_equal(moved.live, 5);
	step_to(run, SEG_MOVE_READY);
	switch_and_leave(run);
	for (uint32_t n = 0; n < 5; n++)
		assert_readable(run, n);
}

/* ---- other sizes ------------------------------------------------------------------------------- */

static void on_a_smaller_device_the_last_segments_are_emptied(void **state)
{
	struct run *run = *state;
	struct seg_status status;
	enum seg_state next;
	uint32_t segment;

	begin_move(run, 2);
	assert_int_equal(step_to(run, SEG_MOVE_EMPTYING).segment, 2);
	reclaim(run, 2);
	assert_int_equal(step_to(run, SEG_MOVE_EMPTYING).segment, 3);
	reclaim(run, 3);
	step_to(run, SEG_MOVE_READY);
	switch_and_leave(run);
	assert_readable(run, 0);
	assert_readable(run, 1);
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.total, 2);
	assert_int_equal(status.free, 0);
	for (unsigned turn = 0; turn < 4; turn++) {
		assert_int_equal(seg_next(run->flash.seg, &segment, &next), FS_OK);
		assert_int_equal(segment, turn % 2);
		reclaim(run, segment);
		batch_fini(&run->batch[segment]);
		write_batch(run, segment, 1000 + turn * OBJECTS);
	}
}

static void a_device_with_room_for_one_segment_is_refused(void **state)
{
	struct run *run = *state;
	char reason[256] = "";

	run->to = ram_device_create(bytes_of(1), NULL);
	assert_int_equal(seg_move_begin(run->flash.seg, &(struct seg_move_config){ .device = &run->to->dev }, reason),
			 FS_ERANGE);
	assert_non_null(strstr(reason, "two segments"));
	assert_readable(run, 0);
}

/* What could not be written is a part of the old device; the number is of use again on the new one. */
static void retired_segments_are_free_on_the_new_device(void **state)
{
	struct run *run = *state;
	struct seg_status status;
	struct batch batch;
	uint32_t segment;

	batch_make(&batch, 3000, OBJECTS, 50, 200);
	run->flash.ram->fail_writes = true;
	assert_int_equal(batch_write(&batch, &run->flash, &segment), FS_EIO);
	batch_fini(&batch);
	run->flash.ram->fail_writes = false;
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.retired, 1);
	begin_move(run, SEGMENTS);
	step_to(run, SEG_MOVE_READY);
	switch_and_leave(run);
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.retired, 0);
	assert_int_equal(status.free, 1);
}

/* ---- failures ---------------------------------------------------------------------------------- */

static bool count_record(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	(void)offset, (void)extent, (void)record;
	++*(uint32_t *)context;
	return true;
}

static void the_readable_part_of_a_bad_segment_is_saved(void **state)
{
	struct run *run = *state;
	struct dev *from = &run->flash.ram->dev;
	uint8_t *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	uint32_t found = 0;
	struct seg_moved moved;
	uint64_t visited;

	begin_move(run, SEGMENTS);
	/* The fourth read, which is that of the piece, fails, and then every fourth page. */
	ram_fault_arm(run->flash.ram, RAM_FAULT_read_eio, FAULT_EVERY, 4);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(from->ops->read(from, page, SEG_PAGE, 0), 0);
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.unreadable, SEGMENT / SEG_PAGE / 4);
	ram_fault_disarm_all(run->flash.ram);
	step_to(run, SEG_MOVE_READY);
	switch_and_leave(run);
	assert_false(seg_offline(run->flash.seg));
	assert_int_equal(seg_walk(run->flash.seg, 0, count_record, &found, &visited), FS_ECORRUPT);
	assert_in_range(found, OBJECTS / 4, run->batch[0].plan.count - 1);
	for (uint32_t n = 1; n < 4; n++)
		assert_readable(run, n);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(atomic_load(&seg_live_at(run->flash.seg, n)->partial), n == 0);
	mem_free(page);
}

static void a_cancelled_move_changes_nothing(void **state)
{
	struct run *run = *state;
	uint8_t *before = mem_must_zalloc(bytes_of(SEGMENTS));
	struct seg_moved moved;

	memcpy(before, run->memory, bytes_of(SEGMENTS));
	begin_move(run, 2);
	step_to(run, SEG_MOVE_EMPTYING);
	seg_move_cancel(run->flash.seg);
	assert_memory_equal(before, run->memory, bytes_of(SEGMENTS));
	mem_free(before);
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.phase, SEG_MOVE_NONE);
	assert_int_equal(seg_allocated(run->flash.seg), SEGMENTS);
	for (uint32_t n = 0; n < 4; n++)
		assert_readable(run, n);
	begin_move(run, SEGMENTS); /* another try; the flash is closed in its midst */
	assert_int_equal(seg_move_step(run->flash.seg, false, &moved), FS_OK);
}

/* What a start finds on the new device after a move that ended early. Either no flash, or all of it. */
static void assert_none_or_all(struct run *run, uint8_t *memory)
{
	struct ram_device *ram = ram_device_create(bytes_of(SEGMENTS), memory);
	struct layout_super super;
	uint64_t generation;

	if (super_load(&ram->dev, &super, &generation) == FS_OK)
		for (uint32_t n = 0; n < run->live; n++)
			assert_memory_equal(memory + bytes_of(n), run->memory + bytes_of(n), SEGMENT);
	ram->dev.ops->close(&ram->dev);
}

/* The new device loses its power at each of its writes. */
static void a_new_device_that_fails_ends_the_move(void **state)
{
	struct run *run = *state;
	uint8_t *memory = ram_memory(bytes_of(SEGMENTS)), *cut = ram_memory(bytes_of(SEGMENTS));
	struct layout_super super;
	uint64_t generation, power = 2; /* pages: the first ones erase a superblock, and begin_move would fail */
	bool moved = false;

	for (; !moved; power++) {
		struct seg_moved step = { .phase = SEG_MOVE_COPYING };
		int rc = FS_OK;

		memset(memory, 0, bytes_of(SEGMENTS));
		begin_move_over(run, SEGMENTS, memory);
		run->to->power = power - 2;
		while (rc == FS_OK && step.phase == SEG_MOVE_COPYING)
			rc = seg_move_step(run->flash.seg, false, &step);
		if (rc == FS_OK)
			rc = seg_move_switch(run->flash.seg, 0);
		memcpy(cut, memory, bytes_of(SEGMENTS));
		assert_none_or_all(run, cut);
		moved = rc == FS_OK;
		if (!moved) {
			assert_int_equal(rc, FS_EIO);
			assert_int_equal(super_load(&run->flash.ram->dev, &super, &generation), FS_OK);
			assert_int_equal(super.attach_epoch, run->flash.seg->super.attach_epoch);
			seg_move_cancel(run->flash.seg);
			assert_readable(run, power % 4);
		}
	}
	/* Four segments and two superblocks. */
	assert_int_equal(power - 3, 4 * SEGMENT / SEG_PAGE + 2);
	for (uint32_t n = 0; n < 4; n++)
		assert_readable(run, n);
	flash_close(&run->flash);
	mem_free(memory);
	mem_free(cut);
	assert_int_equal(flash_open_ram(&run->flash, SEGMENTS, SEGMENT, 16, run->memory), FS_OK); /* for teardown */
}

static void a_device_that_cant_be_written_is_refused(void **state)
{
	struct run *run = *state;
	char reason[256] = "";

	run->to = ram_device_create(bytes_of(SEGMENTS), NULL);
	run->to->fail_writes = true;
	assert_int_equal(seg_move_begin(run->flash.seg, &(struct seg_move_config){ .device = &run->to->dev }, reason),
			 FS_EIO);
	assert_non_null(strstr(reason, "error"));
	assert_readable(run, 3);
}

/* ---- files ------------------------------------------------------------------------------------- */

static void a_file_is_made_and_removed_when_the_move_ends(void **state)
{
	char old[] = "/tmp/flashield-move-XXXXXX", path[sizeof(old) + 8], reason[256];
	const struct seg_move_config config = { .path = path, .flash_bytes = bytes_of(8) };
	struct seg_moved moved;
	struct flash flash;
	struct batch batch;
	uint32_t segment;
	int fd = mkstemp(old);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s.new", old);
	assert_int_equal(flash_open_file(&flash, old, bytes_of(SEGMENTS), SEGMENT), FS_OK);
	batch_make(&batch, 1, OBJECTS, 50, 200);
	assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
	assert_int_equal(seg_move_begin(flash.seg, &config, reason), FS_OK);
	assert_int_equal(access(path, F_OK), 0);
	seg_move_cancel(flash.seg);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(seg_move_begin(flash.seg, &config, reason), FS_OK);
	do
		assert_int_equal(seg_move_step(flash.seg, false, &moved), FS_OK);
	while (moved.phase == SEG_MOVE_COPYING);
	assert_int_equal(moved.phase, SEG_MOVE_READY);
	assert_int_equal(seg_move_bytes(flash.seg), bytes_of(8));
	assert_int_equal(seg_move_switch(flash.seg, 0), FS_OK);
	assert_int_equal(seg_move_step(flash.seg, false, &moved), FS_OK);
	assert_int_equal(moved.phase, SEG_MOVE_NONE);
	/* The old one is open no longer, so that the flash may move back. */
	assert_int_equal(seg_move_begin(flash.seg, &(struct seg_move_config){ .path = old }, reason), FS_OK);
	seg_move_cancel(flash.seg);
	/* The present one is in use. */
	assert_int_equal(seg_move_begin(flash.seg, &config, reason), FS_EBUSY);
	batch_fini(&batch);
	flash_close(&flash);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(old), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_segments_are_on_the_new_device, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_under_way_end_where_they_began, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_of_after_the_switch_hold_nothing_up, setup, teardown),
		cmocka_unit_test_setup_teardown(another_thread_reads_on, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_written_meanwhile_is_copied_again, setup, teardown),
		cmocka_unit_test_setup_teardown(on_a_smaller_device_the_last_segments_are_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_with_room_for_one_segment_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(retired_segments_are_free_on_the_new_device, setup, teardown),
		cmocka_unit_test_setup_teardown(the_readable_part_of_a_bad_segment_is_saved, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cancelled_move_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_device_that_fails_ends_the_move, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_that_cant_be_written_is_refused, setup, teardown),
		cmocka_unit_test(a_file_is_made_and_removed_when_the_move_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
