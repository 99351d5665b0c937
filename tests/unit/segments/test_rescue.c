/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment whose reads fail gets another home: what is saved, what is remembered, and what a cut leaves. */
#include "segments/rescue.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics/counters.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define SEGMENTS 16u
#define OBJECTS 100u
#define BAD_PAGE 5u /* of the segment that fails */
#define FAILING 1u

static const uint64_t device_bytes = LAYOUT_SUPER_BYTES + (uint64_t)SEGMENTS * SEGMENT;

struct run {
	struct flash flash;
	uint8_t *memory;
	struct batch batch[SEGMENTS];
	uint64_t sequence[SEGMENTS];
	uint32_t live;
};

static uint64_t home_at(uint32_t number)
{
	return LAYOUT_SUPER_BYTES + (uint64_t)number * SEGMENT;
}

static void write_next(struct run *run, uint32_t expected)
{
	uint32_t segment;

	batch_make(&run->batch[expected], 1 + expected * OBJECTS, OBJECTS, 50, 200);
	assert_int_equal(batch_write(&run->batch[expected], &run->flash, &segment), FS_OK);
	assert_int_equal(segment, expected);
	run->sequence[expected] = run->batch[expected].plan.sequence;
	run->live++;
}

static int setup(void **state)
{
	static struct run run;

	memset(&run, 0, sizeof(run));
	run.memory = ram_memory(device_bytes);
	assert_int_equal(flash_open_ram(&run.flash, SEGMENTS, SEGMENT, 16, run.memory), FS_OK);
	for (uint32_t n = 0; n < 4; n++)
		write_next(&run, n);
	*state = &run;
	return 0;
}

static int teardown(void **state)
{
	struct run *run = *state;

	flash_close(&run->flash);
	for (uint32_t n = 0; n < SEGMENTS; n++)
		if (run->sequence[n])
			batch_fini(&run->batch[n]);
	mem_free(run->memory);
	return 0;
}

/* A page of the segment is bad, and a read has met it. */
static void break_page(struct run *run, uint32_t segment)
{
	struct ram_device *ram = run->flash.ram;

	ram->bad_from = seg_offset(run->flash.seg, segment) + BAD_PAGE * SEG_PAGE;
	ram->bad_to = ram->bad_from + SEG_PAGE;
	health_read_error(run->flash.seg, segment, EIO);
}

static struct seg_rescued step_to_end(struct run *run)
{
	struct seg_rescued rescued;

	for (unsigned steps = 0; steps < 1000; steps++) {
		seg_rescue_step(run->flash.seg, &rescued);
		if (rescued.end != SEG_RESCUE_COPYING)
			return rescued;
	}
	fail();
	return rescued;
}

static struct seg_rescued rescue(struct run *run, uint32_t segment)
{
	uint32_t found;

	break_page(run, segment);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_OK);
	assert_int_equal(found, segment);
	assert_int_equal(seg_rescue_begin(run->flash.seg, segment), FS_OK);
	return step_to_end(run);
}

struct seen {
	const struct batch *batch;
	uint32_t whole;
};

static bool see(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct seen *seen = context;

	(void)extent;
	for (uint32_t n = 0; n < seen->batch->plan.count; n++)
		if (seen->batch->plan.placed[n].offset == offset) {
			assert_is_object(batch_placed(seen->batch, n), record);
			seen->whole++;
		}
	return true;
}

/* Returns the records that a walk finds, each of which is right. */
static uint32_t readable(struct run *run, uint32_t n)
{
	struct seen seen = { &run->batch[n], 0 };
	uint64_t visited;

	assert_true(seg_pin(run->flash.seg, n, run->sequence[n]));
	(void)!seg_walk(run->flash.seg, n, see, &seen, &visited);
	seg_unpin(run->flash.seg, n);
	return seen.whole;
}

static void what_can_be_read_is_saved_under_its_number(void **state)
{
	struct run *run = *state;
	uint64_t counted = ctr_sum(CTR_segments_rescued);
	struct seg_rescued rescued = rescue(run, FAILING);
	struct seg_status status;
	uint32_t found, left;

	assert_int_equal(rescued.end, SEG_RESCUE_DONE);
	assert_int_equal(rescued.segment, FAILING);
	assert_int_equal(rescued.bad, SEGMENTS - 1); /* the one that would have been written last */
	assert_int_equal(rescued.unreadable, 1);
	assert_int_equal(ctr_sum(CTR_segments_rescued), counted + 1);
	assert_int_equal(home_number(run->flash.seg, FAILING), SEGMENTS - 1);
	left = readable(run, FAILING);
	assert_in_range(left, OBJECTS / 2, run->batch[FAILING].plan.count - 1);
	for (uint32_t n = 0; n < 4; n++)
		if (n != FAILING)
			assert_int_equal(readable(run, n), run->batch[n].plan.count);
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.bad, 1);
	assert_int_equal(status.retired, 0);
	assert_int_equal(status.free, SEGMENTS - 5);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_ENOTFOUND);
	/* Its records that are gone say nothing about the device. */
	for (unsigned i = 0; i < 100; i++)
		seg_report_corrupt(run->flash.seg, FAILING, BAD_PAGE * SEG_PAGE);
	assert_false(seg_offline(run->flash.seg));
}

/* Round and round: nothing is ever written to the bad home, and the others are in use. */
static void the_bad_home_is_never_written_again(void **state)
{
	struct run *run = *state;
	uint8_t *bad = run->memory + home_at(FAILING), *before = mem_must_zalloc(SEGMENT);

	assert_int_equal(rescue(run, FAILING).end, SEG_RESCUE_DONE);
	memcpy(before, bad, SEGMENT);
	(void)seg_revive(run->flash.seg); /* as when the device comes back */
	for (unsigned i = 0; i < 3 * SEGMENTS; i++) {
		enum seg_state next;
		uint32_t segment;

		assert_int_equal(seg_next(run->flash.seg, &segment, &next), FS_OK);
		assert_int_not_equal(segment, SEGMENTS - 1);
		if (next == SEG_LIVE) {
			seg_reclaim_begin(run->flash.seg, segment);
			assert_int_equal(seg_reclaim_end(run->flash.seg, segment, 1000), FS_OK);
			batch_fini(&run->batch[segment]);
			run->sequence[segment] = 0;
		}
		write_next(run, segment);
		assert_int_equal(readable(run, segment), run->batch[segment].plan.count);
	}
	assert_memory_equal(before, bad, SEGMENT);
	mem_free(before);
}

static void errors_that_pass_move_nothing(void **state)
{
	struct run *run = *state;
	struct seg_rescued rescued;
	uint32_t found;

	health_read_error(run->flash.seg, FAILING, EIO);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_OK);
	assert_int_equal(seg_rescue_begin(run->flash.seg, found), FS_OK);
	rescued = step_to_end(run);
	assert_int_equal(rescued.end, SEG_RESCUE_NEEDLESS);
	assert_int_equal(home_number(run->flash.seg, FAILING), FAILING);
	/* Another error waits for the pause. */
	health_read_error(run->flash.seg, FAILING, EIO);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_ENOTFOUND);
	clk_scripted_advance(&run->flash.clock, SEG_RESCUE_PAUSE_MS * 1000ull);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_OK);
}

static void only_so_many_homes_may_be_bad(void **state)
{
	struct run *run = *state;
	uint32_t found;

	assert_int_equal(rescue(run, 0).end, SEG_RESCUE_DONE);
	assert_int_equal(rescue(run, 1).end, SEG_RESCUE_DONE);
	break_page(run, 2);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_OK);
	assert_int_equal(seg_rescue_begin(run->flash.seg, found), FS_ERANGE);
	seg_rescue_decline(run->flash.seg, found);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_ENOTFOUND);
}

/* A home that was good fails later: the segment moves on. */
static void a_segment_can_be_rescued_twice(void **state)
{
	struct run *run = *state;

	assert_int_equal(rescue(run, FAILING).end, SEG_RESCUE_DONE);
	assert_int_equal(rescue(run, FAILING).end, SEG_RESCUE_DONE);
	assert_int_equal(home_number(run->flash.seg, FAILING), SEGMENTS - 2);
	assert_in_range(readable(run, FAILING), OBJECTS / 2, run->batch[FAILING].plan.count - 1);
	assert_int_equal(home_number(run->flash.seg, SEGMENTS - 1), FAILING);
	assert_int_equal(home_number(run->flash.seg, SEGMENTS - 2), SEGMENTS - 1);
}

static void a_full_flash_has_no_room(void **state)
{
	struct run *run = *state;

	for (uint32_t n = 4; n < SEGMENTS; n++)
		write_next(run, n);
	break_page(run, FAILING);
	assert_int_equal(seg_rescue_begin(run->flash.seg, FAILING), FS_EFULL);
}

static void a_copy_that_cannot_be_written_ends_it(void **state)
{
	struct run *run = *state;
	uint32_t found;

	break_page(run, FAILING);
	assert_int_equal(seg_rescue_find(run->flash.seg, &found), FS_OK);
	assert_int_equal(seg_rescue_begin(run->flash.seg, found), FS_OK);
	ram_fault_arm(run->flash.ram, RAM_FAULT_write_eio, FAULT_AFTER, 0);
	assert_int_equal(step_to_end(run).end, SEG_RESCUE_FAILED);
	assert_int_equal(home_number(run->flash.seg, FAILING), FAILING);
	assert_int_equal(run->flash.seg->super.homes, 0);
	write_next(run, 4);
}

static void a_segment_that_is_reclaimed_meanwhile_ends_it(void **state)
{
	struct run *run = *state;
	struct seg_status status;

	break_page(run, 0);
	assert_int_equal(seg_rescue_begin(run->flash.seg, 0), FS_OK);
	seg_reclaim_begin(run->flash.seg, 0);
	assert_int_equal(seg_reclaim_end(run->flash.seg, 0, 1000), FS_OK);
	assert_int_equal(step_to_end(run).end, SEG_RESCUE_OVER);
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.free, SEGMENTS - 3);
	assert_int_equal(status.bad, 0);
}

/* The locks are still there, and what the rescue has held is free: teardown closes the flash. */
static void a_close_in_its_midst_ends_it(void **state)
{
	struct run *run = *state;

	break_page(run, 0);
	assert_int_equal(seg_rescue_begin(run->flash.seg, 0), FS_OK);
	assert_non_null(run->flash.seg->rescue);
}

struct client {
	struct run *run;
	_Atomic bool stop;
	_Atomic unsigned rounds;
};

/* Walks, as a dump does it: whole segments, and what is there of the failing one. */
static void *read_on(void *context)
{
	struct client *client = context;
	struct run *run = client->run;

	for (unsigned turn = 0; !atomic_load(&client->stop); turn++) {
		uint32_t n = turn % 4, whole;

		clk_scripted_advance(&run->flash.clock, 70000000); /* errors of more than a minute ago don't count */
		whole = readable(run, n);

		assert_in_range(whole, n == FAILING ? 1 : run->batch[n].plan.count, run->batch[n].plan.count);
		atomic_fetch_add(&client->rounds, 1);
	}
	return NULL;
}

static void another_thread_reads_on(void **state)
{
	struct run *run = *state;
	struct client client = { .run = run };
	uint64_t bad_from = seg_offset(run->flash.seg, FAILING) + BAD_PAGE * SEG_PAGE;
	pthread_t thread;

	run->flash.ram->bad_from = bad_from;
	run->flash.ram->bad_to = bad_from + SEG_PAGE;
	run->flash.seg->health.budget = HEALTH_ERRORS_MAX; /* one walk meets fewer */
	assert_int_equal(pthread_create(&thread, NULL, read_on, &client), 0);
	for (unsigned steps = 0; steps < 1000000 && run->flash.seg->super.homes == 0; steps++) {
		struct seg_rescued rescued;
		uint32_t found;

		if (seg_rescue_find(run->flash.seg, &found) == FS_OK) {
			assert_int_equal(found, FAILING);
			assert_int_equal(seg_rescue_begin(run->flash.seg, found), FS_OK);
		}
		seg_rescue_step(run->flash.seg, &rescued);
		sched_yield();
	}
	assert_int_equal(home_number(run->flash.seg, FAILING), SEGMENTS - 1);
	for (unsigned rounds = atomic_load(&client.rounds) + 20; atomic_load(&client.rounds) < rounds;)
		sched_yield();
	atomic_store(&client.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_in_range(readable(run, FAILING), OBJECTS / 2, run->batch[FAILING].plan.count - 1);
}

/* ---- over restarts ----------------------------------------------------------------------------- */

static void open_again(struct run *run)
{
	flash_close(&run->flash);
	assert_int_equal(flash_open_ram(&run->flash, SEGMENTS, SEGMENT, 16, run->memory), FS_OK);
}

static void homes_are_remembered(void **state)
{
	struct run *run = *state;
	struct seg_status status;

	assert_int_equal(rescue(run, FAILING).end, SEG_RESCUE_DONE);
	for (unsigned starts = 0; starts < 3; starts++) {
		open_again(run); /* an empty table: all that is remembered is the superblock's */
		seg_get_status(run->flash.seg, &status);
		assert_int_equal(status.bad, 1);
		assert_int_equal(status.free, SEGMENTS - 1);
		assert_int_equal(home_number(run->flash.seg, FAILING), SEGMENTS - 1);
		assert_int_equal(home_number(run->flash.seg, SEGMENTS - 1), FAILING);
		assert_true(atomic_load(&seg_live_at(run->flash.seg, FAILING)->partial));
	}
}

/* Another layout has other homes. */
static void another_layout_forgets_them(void **state)
{
	struct run *run = *state;
	struct seg_status status;

	assert_int_equal(rescue(run, FAILING).end, SEG_RESCUE_DONE);
	flash_close(&run->flash);
	assert_int_equal(flash_open_ram(&run->flash, SEGMENTS, SEGMENT, 8, run->memory), FS_OK);
	seg_get_status(run->flash.seg, &status);
	assert_int_equal(status.bad, 0);
	assert_int_equal(status.free, SEGMENTS);
	assert_int_equal(home_number(run->flash.seg, FAILING), FAILING);
	assert_int_equal(run->flash.seg->super.features.incompatible, 0);
}

/* The power goes at each page that is written: the superblock leads to a whole copy, or to the old home. */
static void a_power_cut_at_each_page_leaves_one_home(void **state)
{
	struct run *run = *state;
	uint8_t *image = mem_must_zalloc(device_bytes), *segment = run->memory + home_at(FAILING);
	bool old = false, new = false;

	memcpy(image, run->memory, device_bytes);
	for (uint64_t pages = 0; !new; pages++) {
		struct seg_adopted adopted;
		struct layout_super super;
		uint64_t generation;
		uint32_t at;

		assert_in_range(pages, 0, 100);
		break_page(run, FAILING);
		assert_int_equal(seg_rescue_begin(run->flash.seg, FAILING), FS_OK);
		run->flash.ram->power = pages;
		(void)step_to_end(run);
		run->flash.ram->fail_writes = false;
		run->flash.ram->power = UINT64_MAX;
		run->flash.ram->bad_to = 0;
		assert_int_equal(super_load(&run->flash.ram->dev, &super, &generation), FS_OK);
		at = super.homes ? super.home[0].home & LAYOUT_HOME_NUMBER : FAILING;
		if (super.homes) {
			assert_int_equal(super.homes, 2);
			assert_int_equal(super.home[0].segment, FAILING);
			assert_int_equal(super.home[0].home, (SEGMENTS - 1) | LAYOUT_HOME_PARTIAL);
			assert_int_equal(super.home[1].segment, SEGMENTS - 1);
			assert_int_equal(super.home[1].home, FAILING | LAYOUT_HOME_BAD);
			new = home_number(run->flash.seg, FAILING) != FAILING;
			memset(segment + BAD_PAGE * SEG_PAGE, 0, SEG_PAGE);
		}
		old |= !super.homes;
		assert_memory_equal(run->memory + home_at(at), segment, SEGMENT);
		memcpy(run->memory, image, device_bytes);
		if (!new)
			open_again(run);
		else
			break;
		/* The table is empty after a start; the segment is made live again by its row on flash. */
		assert_int_equal(seg_adopt(run->flash.seg, FAILING, run->sequence[FAILING], &adopted), FS_OK);
		mem_free(adopted.filter);
	}
	assert_true(old && new);
	mem_free(image);
}

static void a_list_of_homes_that_cannot_be_is_no_superblock(void **state)
{
	struct layout_super super = { .segments = 16 };
	static const struct {
		uint32_t homes;
		struct layout_home home[2];
		bool sound;
	} cases[] = {
		{ 0, { { 0, 0 } }, true },
		{ 2, { { 1, 15 }, { 15, 1 | LAYOUT_HOME_BAD } }, true },
		{ 1, { { 3, 3 | LAYOUT_HOME_BAD } }, true },
		{ 1, { { 1, 15 } }, false }, /* 15 lies there too */
		{ 2, { { 1, 15 }, { 15, 15 } }, false },
		{ 2, { { 1, 1 }, { 1, 1 } }, false },
		{ 2, { { 15, 1 }, { 1, 15 } }, false }, /* out of order */
		{ 2, { { 1, 16 }, { 16, 1 } }, false },
		{ 1, { { UINT16_MAX, LAYOUT_HOME_NUMBER } }, false },
		{ LAYOUT_HOMES_MOST + 1, { { 0, 0 } }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		homes_clear(&super);
		super.homes = cases[i].homes;
		super.features.incompatible = cases[i].homes ? LAYOUT_FEATURE_HOMES : 0;
		memcpy(super.home, cases[i].home, sizeof(cases[i].home));
		assert_int_equal(homes_are_sound(&super), cases[i].sound);
	}
	super.homes = 0;
	super.features.incompatible = LAYOUT_FEATURE_HOMES;
	assert_false(homes_are_sound(&super));
}

#define RESCUE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESCUE_TEST(what_can_be_read_is_saved_under_its_number),
		RESCUE_TEST(the_bad_home_is_never_written_again),
		RESCUE_TEST(errors_that_pass_move_nothing),
		RESCUE_TEST(only_so_many_homes_may_be_bad),
		RESCUE_TEST(a_segment_can_be_rescued_twice),
		RESCUE_TEST(a_full_flash_has_no_room),
		RESCUE_TEST(a_copy_that_cannot_be_written_ends_it),
		RESCUE_TEST(a_segment_that_is_reclaimed_meanwhile_ends_it),
		RESCUE_TEST(a_close_in_its_midst_ends_it),
		RESCUE_TEST(another_thread_reads_on),
		RESCUE_TEST(homes_are_remembered),
		RESCUE_TEST(another_layout_forgets_them),
		RESCUE_TEST(a_power_cut_at_each_page_leaves_one_home),
		cmocka_unit_test(a_list_of_homes_that_cannot_be_is_no_superblock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
