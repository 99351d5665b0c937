/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment table: FIFO order, pins against reclaim, residence. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics/counters.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)

static uint32_t write_one(struct flash *flash, uint64_t first, uint64_t *sequence)
{
	struct batch batch;
	uint32_t segment;

	batch_make(&batch, first, 100, 50, 200);
	assert_int_equal(batch_write(&batch, flash, &segment), FS_OK);
	*sequence = batch.plan.sequence;
	batch_fini(&batch);
	return segment;
}

static void a_free_segment_gives_no_pin(void **state)
{
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	assert_false(seg_pin(flash.seg, 0, 0));
	assert_false(seg_pin(flash.seg, 0, 1));
	assert_int_equal(seg_sequence(flash.seg, 0), 0);
	flash_close(&flash);
}

static void only_the_right_sequence_pins(void **state)
{
	struct flash flash;
	uint64_t sequence;
	uint32_t segment;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	segment = write_one(&flash, 1, &sequence);
	assert_int_equal(seg_sequence(flash.seg, segment), sequence);
	assert_false(seg_pin(flash.seg, segment, sequence + 1));
	assert_false(seg_pin(flash.seg, segment, 0));
	assert_true(seg_pin(flash.seg, segment, sequence));
	seg_unpin(flash.seg, segment);
	flash_close(&flash);
}

static void a_pin_holds_reclaim_up(void **state)
{
	struct flash flash;
	struct seg_status status;
	uint64_t sequence, before = ctr_sum(CTR_segments_reclaimed);
	uint32_t segment;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	segment = write_one(&flash, 1, &sequence);
	assert_true(seg_pin(flash.seg, segment, sequence));
	clk_scripted_advance(&flash.clock, 5000000);
	seg_reclaim_begin(flash.seg, segment);
	/* While it is being reclaimed it may still be pinned; once the end has begun, no more. */
	assert_true(seg_pin(flash.seg, segment, sequence));
	seg_unpin(flash.seg, segment);
	assert_int_equal(seg_reclaim_end(flash.seg, segment, 1), FS_EBUSY);
	assert_false(seg_pin(flash.seg, segment, sequence));
	assert_int_equal(seg_reclaim_end(flash.seg, segment, 0), FS_EBUSY);
	seg_unpin(flash.seg, segment);
	assert_int_equal(seg_reclaim_end(flash.seg, segment, 0), FS_OK);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), before + 1);
	seg_get_status(flash.seg, &status);
	assert_int_equal(status.residence_ms, 5000);
	assert_int_equal(status.free, 3);
	flash_close(&flash);
}

struct race {
	struct flash flash;
	_Atomic uint64_t sequence; /* of segment 0 */
	_Atomic uint64_t reclaimed; /* all sequences up to this one have ended */
	_Atomic bool stop;
	_Atomic uint64_t pinned;
};

static void *pin_and_check(void *context)
{
	struct race *race = context;

	while (!atomic_load(&race->stop)) {
		uint64_t sequence = atomic_load(&race->sequence);

		if (sequence == 0 || !seg_pin(race->flash.seg, 0, sequence))
			continue;
		/* As long as the pin is held the segment can't have been given up. */
		assert_true(atomic_load(&race->reclaimed) < sequence);
		assert_int_equal(race->flash.seg->table->entry[0].sequence, sequence);
		assert_true(atomic_load(&race->reclaimed) < sequence);
		atomic_fetch_add(&race->pinned, 1);
		seg_unpin(race->flash.seg, 0);
	}
	return NULL;
}

static void no_pin_outlives_a_reclaim(void **state)
{
	struct race race;
	pthread_t threads[3];

	(void)state;
	memset(&race, 0, sizeof(race));
	assert_int_equal(flash_open_ram(&race.flash, 1, SEGMENT, 16, NULL), FS_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pin_and_check, &race), 0);
	for (int round = 0; round < 200; round++) {
		uint64_t sequence, before = atomic_load(&race.pinned);

		assert_int_equal(write_one(&race.flash, (uint64_t)round, &sequence), 0);
		atomic_store(&race.sequence, sequence);
		while (atomic_load(&race.pinned) == before)
			sched_yield();
		seg_reclaim_begin(race.flash.seg, 0);
		assert_int_equal(seg_reclaim_end(race.flash.seg, 0, 60000), FS_OK);
		atomic_store(&race.reclaimed, sequence);
	}
	atomic_store(&race.stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_true(atomic_load(&race.pinned) >= 200);
	flash_close(&race.flash);
}

static void numbers_go_round_in_order(void **state)
{
	struct flash flash;
	struct seg_status status;
	enum seg_state what;
	uint64_t sequence, last = 0;
	uint32_t next;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(seg_next(flash.seg, &next, &what), FS_OK);
		assert_int_equal(next, i % 3);
		assert_int_equal(what, i < 3 ? SEG_FREE : SEG_LIVE);
		if (what == SEG_LIVE) {
			seg_reclaim_begin(flash.seg, next);
			assert_int_equal(seg_next(flash.seg, &next, &what), FS_OK);
			assert_int_equal(what, SEG_RECLAIMING);
			assert_int_equal(seg_reclaim_end(flash.seg, next, 0), FS_OK);
		}
		assert_int_equal(write_one(&flash, i * 100, &sequence), i % 3);
		assert_true(sequence > last);
		last = sequence;
	}
	seg_get_status(flash.seg, &status);
	assert_int_equal(status.total, 3);
	assert_int_equal(status.live, 3);
	assert_int_equal(status.newest_sequence, last);
	assert_int_equal(status.records_live, 300);
	assert_true(status.fill > 0.2 && status.fill < 1);
	assert_false(status.offline);
	flash_close(&flash);
}

static void the_oldest_is_the_one_written_first(void **state)
{
	struct flash flash;
	uint32_t oldest;
	uint64_t sequence;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 4, SEGMENT, 16, NULL), FS_OK);
	assert_false(seg_oldest(flash.seg, &oldest));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(write_one(&flash, i * 100, &sequence), i);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(seg_oldest(flash.seg, &oldest));
		assert_int_equal(oldest, i);
		seg_reclaim_begin(flash.seg, oldest); /* before its turn: the next place is free */
		assert_int_equal(seg_reclaim_end(flash.seg, oldest, 0), FS_OK);
	}
	assert_int_equal(write_one(&flash, 300, &sequence), 3);
	assert_int_equal(write_one(&flash, 400, &sequence), 0);
	assert_true(seg_oldest(flash.seg, &oldest));
	assert_int_equal(oldest, 2);
	flash_close(&flash);
}

static void what_the_next_segments_hold_is_known(void **state)
{
	struct flash flash;
	uint64_t sequence;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, NULL), FS_OK);
	assert_true(seg_next_hold_nothing(flash.seg, 3, 0, 0));
	assert_int_equal(write_one(&flash, 0, &sequence), 0);
	seg_note_content(flash.seg, 0, 50, 1000);
	assert_true(seg_next_hold_nothing(flash.seg, 2, 0, 0));
	assert_false(seg_next_hold_nothing(flash.seg, 3, 49, 999));
	assert_true(seg_next_hold_nothing(flash.seg, 3, 50, 0)); /* flushed */
	assert_true(seg_next_hold_nothing(flash.seg, 3, 0, 1000)); /* expired */
	assert_int_equal(write_one(&flash, 100, &sequence), 1);
	seg_note_content(flash.seg, 1, 60, 0);
	assert_false(seg_next_hold_nothing(flash.seg, 3, 59, UINT32_MAX)); /* one never expires */
	assert_true(seg_next_hold_nothing(flash.seg, 3, 60, 0));
	assert_int_equal(write_one(&flash, 200, &sequence), 2);
	assert_true(seg_next_hold_nothing(flash.seg, 2, 60, 0));
	assert_false(seg_next_hold_nothing(flash.seg, 3, UINT64_MAX, UINT32_MAX)); /* nothing is noted of the third */
	seg_reclaim_begin(flash.seg, 0);
	assert_int_equal(seg_reclaim_end(flash.seg, 0, 0), FS_OK);
	assert_int_equal(write_one(&flash, 300, &sequence), 0);
	seg_reclaim_begin(flash.seg, 1);
	assert_int_equal(seg_reclaim_end(flash.seg, 1, 0), FS_OK);
	assert_int_equal(write_one(&flash, 400, &sequence), 1);
	seg_reclaim_begin(flash.seg, 2);
	assert_int_equal(seg_reclaim_end(flash.seg, 2, 0), FS_OK);
	assert_true(seg_next_hold_nothing(flash.seg, 1, 0, 0));
	assert_false(seg_next_hold_nothing(flash.seg, 2, UINT64_MAX,
					   UINT32_MAX)); /* what was noted is gone with its segment */
	flash_close(&flash);
}

static void the_function_that_leads_to_an_offset_is_found(unsigned functions)
{
	struct flash flash;
	struct batch batch;
	uint32_t segment;

	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, functions, NULL), FS_OK);
	batch_make(&batch, 1, 200, 50, 200);
	assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
	for (uint32_t n = 0; n < batch.plan.count; n++) {
		const struct seg_placed *placed = &batch.plan.placed[n];
		uint64_t place = batch.candidates[placed->candidate].place;

		assert_int_equal(seg_function_at(flash.seg, segment, place, placed->offset, 0), placed->function);
		assert_int_equal(seg_function_at(flash.seg, segment, place, placed->offset, placed->function + 1u),
				 SEG_MAX_FUNCTIONS);
		for (unsigned f = 0; f < functions; f++)
			assert_int_equal(seg_function_at(flash.seg, segment, place,
							 seg_position(flash.seg, segment, place, f), f),
					 f);
	}
	assert_int_equal(seg_function_at(flash.seg, segment, 1, 0, 0), SEG_MAX_FUNCTIONS);
	assert_int_equal(seg_function_at(flash.seg, segment, 1, batch.plan.data_offset + 1, 0), SEG_MAX_FUNCTIONS);
	assert_int_equal(seg_function_at(flash.seg, segment, 1, SEGMENT - 1, 0), SEG_MAX_FUNCTIONS);
	batch_fini(&batch);
	flash_close(&flash);
}

static void functions_are_found_by_their_offsets(void **state)
{
	(void)state;
	the_function_that_leads_to_an_offset_is_found(1);
	the_function_that_leads_to_an_offset_is_found(7);
	the_function_that_leads_to_an_offset_is_found(16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_segment_gives_no_pin),
		cmocka_unit_test(only_the_right_sequence_pins),
		cmocka_unit_test(a_pin_holds_reclaim_up),
		cmocka_unit_test(no_pin_outlives_a_reclaim),
		cmocka_unit_test(numbers_go_round_in_order),
		cmocka_unit_test(the_oldest_is_the_one_written_first),
		cmocka_unit_test(what_the_next_segments_hold_is_known),
		cmocka_unit_test(functions_are_found_by_their_offsets),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
