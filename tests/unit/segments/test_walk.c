/* SPDX-License-Identifier: BSD-3-Clause */
/* seg_walk: finds every record of a whole segment, and what is left of a broken one. */
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (256u << 10)

struct setup {
	struct flash flash;
	struct batch batch;
	uint32_t segment;
	uint32_t n; /* of the next record expected */
	uint32_t skipped;
	uint32_t stop_after;
};

static void start_with_extents(struct setup *setup, uint32_t objects, uint32_t extents_from)
{
	memset(setup, 0, sizeof(*setup));
	setup->stop_after = UINT32_MAX;
	assert_int_equal(flash_open_ram(&setup->flash, 4, SEGMENT, 16, NULL), FS_OK);
	batch_make(&setup->batch, 1, objects, 0, 500);
	batch_make_extents(&setup->batch, extents_from);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
}

static void start(struct setup *setup)
{
	start_with_extents(setup, 1500, UINT32_MAX);
}

static void end(struct setup *setup)
{
	fault_disarm_all();
	flash_close(&setup->flash);
	batch_fini(&setup->batch);
}

/* Records come in order of offset, perhaps with some left out, and are what was written. */
static bool expect_next(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct setup *setup = context;

	while (setup->n < setup->batch.plan.count && setup->batch.plan.placed[setup->n].offset != offset) {
		setup->n++;
		setup->skipped++;
	}
	assert_in_range(setup->n, 0, setup->batch.plan.count - 1);
	assert_int_equal(extent, setup->n < setup->batch.plan.extents);
	assert_is_object(batch_placed(&setup->batch, setup->n), record);
	setup->n++;
	return setup->n < setup->stop_after;
}

static int walk(struct setup *setup, uint64_t *visited)
{
	setup->n = setup->skipped = 0;
	return seg_walk(setup->flash.seg, setup->segment, expect_next, setup, visited);
}

static uint8_t *segment_bytes(struct setup *setup)
{
	return setup->flash.ram->bytes + LAYOUT_SUPER_BYTES + (uint64_t)setup->segment * SEGMENT;
}

static void a_broken_record_is_stepped_over(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	segment_bytes(&setup)[setup.batch.plan.placed[100].offset + SEG_RECORD_HEADER + 2] ^= 4;
	assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count - 1);
	assert_int_equal(setup.skipped, 1);
	/* A length that points beyond the next record doesn't take that one along. */
	segment_bytes(&setup)[setup.batch.plan.placed[200].offset + 6] ^= 0x10;
	assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count - 2);
	end(&setup);
}

static void a_broken_footer_leaves_every_record_to_find(void **state)
{
	static const unsigned from_end[] = { 1, 8, 60, 100, 120, 127 };

	(void)state;
	for (unsigned i = 0; i < sizeof(from_end) / sizeof(from_end[0]); i++) {
		struct setup setup;
		uint64_t visited;

		start_with_extents(&setup, 900, 890);
		assert_in_range(setup.batch.plan.extents, 1, 10);
		segment_bytes(&setup)[SEGMENT - from_end[i]] ^= 1;
		assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
		assert_int_equal(visited, setup.batch.plan.count);
		end(&setup);
	}
}

static void a_broken_list_leaves_every_record_to_find(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	segment_bytes(&setup)[SEGMENT - setup.batch.plan.footer_bytes + 17] ^= 0x80;
	assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count);
	end(&setup);
}

static void each_bit_of_the_header_page_is_checked(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	for (unsigned byte = 0; byte < SEG_PAGE; byte += byte < 176 ? 1 : 97) {
		segment_bytes(&setup)[byte] ^= (uint8_t)(1u << byte % 8);
		assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
		assert_int_equal(visited, setup.batch.plan.count);
		segment_bytes(&setup)[byte] ^= (uint8_t)(1u << byte % 8);
	}
	assert_int_equal(walk(&setup, &visited), FS_OK);
	end(&setup);
}

static void each_bit_of_the_footer_is_checked(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	for (unsigned byte = SEGMENT - sizeof(struct layout_footer); byte < SEGMENT; byte++) {
		segment_bytes(&setup)[byte] ^= (uint8_t)(1u << byte % 8);
		assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
		segment_bytes(&setup)[byte] ^= (uint8_t)(1u << byte % 8);
	}
	assert_int_equal(walk(&setup, &visited), FS_OK);
	end(&setup);
}

static void an_unreadable_device_ends_the_walk(void **state)
{
	struct setup setup;
	uint64_t visited, before;

	(void)state;
	start(&setup);
	setup.flash.ram->fail_reads = true;
	before = setup.flash.ram->reads;
	assert_int_equal(walk(&setup, &visited), FS_EIO);
	assert_int_equal(visited, 0);
	/* The error budget bounds how often it tries. */
	assert_in_range(setup.flash.ram->reads - before, 1, 10);
	end(&setup);
}

static void the_fault_point_ends_it_half_way(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
#ifndef FS_FAULTS
	skip();
#endif
	start(&setup);
	fault_arm(FAULT_reclaim_walk_fails, FAULT_ALWAYS, 0);
	assert_int_equal(walk(&setup, &visited), FS_EIO);
	assert_int_equal(visited, setup.batch.plan.count / 2);
	end(&setup);
}

/* A segment written twice with the same objects: the bytes of its first life, and the second one's place. */
static uint8_t *start_second_life(struct setup *setup)
{
	uint8_t *before = mem_alloc(SEGMENT);

	memset(setup, 0, sizeof(*setup));
	setup->stop_after = UINT32_MAX;
	assert_int_equal(flash_open_ram(&setup->flash, 1, SEGMENT, 16, NULL), FS_OK);
	batch_make(&setup->batch, 1, 200, 50, 50);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
	memcpy(before, segment_bytes(setup), SEGMENT);
	seg_plan_fini(&setup->batch.plan);
	setup->batch.paced = 0;
	seg_reclaim_begin(setup->flash.seg, setup->segment);
	assert_int_equal(seg_reclaim_end(setup->flash.seg, setup->segment, 0), FS_OK);
	assert_int_equal(batch_write(&setup->batch, &setup->flash, &setup->segment), FS_OK);
	assert_int_equal(setup->batch.plan.count, 200);
	return before;
}

/* Its page was not written, and all else in it is as it should be. */
static void a_header_of_an_earlier_life_is_none(void **state)
{
	struct setup setup;
	uint8_t *before = start_second_life(&setup);
	uint64_t visited;

	(void)state;
	assert_int_equal(walk(&setup, &visited), FS_OK);
	memcpy(segment_bytes(&setup), before, SEG_PAGE);
	assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count);
	mem_free(before);
	end(&setup);
}

/* Its list of offsets would lead astray. */
static void a_footer_of_an_earlier_life_is_none(void **state)
{
	struct setup setup;
	uint8_t *before = start_second_life(&setup);
	uint64_t visited, footer = SEGMENT - setup.batch.plan.footer_bytes;

	(void)state;
	memcpy(segment_bytes(&setup) + footer, before + footer, SEGMENT - footer);
	assert_int_equal(walk(&setup, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count);
	mem_free(before);
	end(&setup);
}

static void it_stops_when_told(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start(&setup);
	setup.stop_after = 10;
	assert_int_equal(walk(&setup, &visited), FS_OK);
	assert_int_equal(visited, 10);
	end(&setup);
}

static void all_records_come_in_order(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start_with_extents(&setup, 1500, 1480);
	assert_in_range(setup.batch.plan.extents, 1, 20);
	assert_int_equal(walk(&setup, &visited), FS_OK);
	assert_int_equal(visited, setup.batch.plan.count);
	assert_int_equal(setup.skipped, 0);
	end(&setup);
}

/* From record to record it is more granules than a byte of the list holds. */
static void records_far_apart_are_found(void **state)
{
	struct setup setup;
	uint64_t visited, longest = 0;

	(void)state;
	memset(&setup, 0, sizeof(setup));
	setup.stop_after = UINT32_MAX;
	assert_int_equal(flash_open_ram(&setup.flash, 4, SEGMENT, 16, NULL), FS_OK);
	batch_make(&setup.batch, 1, 40, 0, 50);
	assert_int_equal(batch_write(&setup.batch, &setup.flash, &setup.segment), FS_OK);
	for (uint32_t n = 1; n < setup.batch.plan.count; n++) {
		uint64_t step = setup.batch.plan.placed[n].offset - setup.batch.plan.placed[n - 1].offset;

		longest = step > longest ? step : longest;
	}
	assert_true(longest / setup.batch.plan.granule > 0x7f);
	assert_int_equal(walk(&setup, &visited), FS_OK);
	assert_int_equal(visited, 40);
	end(&setup);
}

static void an_empty_segment_has_none(void **state)
{
	struct setup setup;
	uint64_t visited;

	(void)state;
	start_with_extents(&setup, 0, 0);
	assert_int_equal(walk(&setup, &visited), FS_OK);
	assert_int_equal(visited, 0);
	end(&setup);
}

/* ---- walks that leave records out ---------------------------------------------------------------- */

/* One record of `every` is wanted, by its place in the order. */
struct choice {
	struct setup *setup;
	uint32_t every; /* 0: none is wanted */
	uint32_t asked, visited, last; /* last: the number of the record asked for last */
	uint32_t other_keys; /* heads whose key is not the one that was written */
};

static bool choose(void *context, uint64_t offset, bool extent, const struct seg_record *head)
{
	struct choice *choice = context;
	const struct seg_plan *plan = &choice->setup->batch.plan;
	const struct object *object;

	while (choice->last + 1 < plan->count && plan->placed[choice->last].offset != offset)
		choice->last++;
	assert_int_equal(plan->placed[choice->last].offset, offset);
	assert_int_equal(extent, choice->last < plan->extents);
	object = batch_placed(&choice->setup->batch, choice->last);
	choice->asked++;
	choice->other_keys +=
		head->key_length != object->key_length || memcmp(head->key, object->key, object->key_length) != 0;
	return choice->every > 0 && choice->last % choice->every == 0;
}

static bool take(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct choice *choice = context;

	(void)extent;
	assert_int_equal(choice->setup->batch.plan.placed[choice->last].offset, offset);
	assert_is_object(batch_placed(&choice->setup->batch, choice->last), record);
	assert_true(choice->every > 0 && choice->last % choice->every == 0);
	choice->visited++;
	return true;
}

static int walk_chosen(struct setup *setup, uint32_t every, struct choice *choice, uint64_t *visited)
{
	*choice = (struct choice){ .setup = setup, .every = every };
	return seg_walk_wanted(setup->flash.seg, setup->segment, choose, take, choice, visited);
}

static void a_flipped_bit_of_what_is_left_out_is_no_error(void **state)
{
	struct setup setup;
	struct choice choice;
	uint64_t visited, offset;

	(void)state;
	start(&setup);
	for (uint32_t n = 100; batch_placed(&setup.batch, n)->value_length == 0; n++)
		;
	offset = setup.batch.plan.placed[101].offset;
	segment_bytes(&setup)[offset + SEG_RECORD_HEADER] ^= 1; /* the key is another one */
	assert_int_equal(walk_chosen(&setup, 0, &choice, &visited), FS_OK);
	assert_int_equal(visited, setup.batch.plan.count);
	assert_in_range(choice.other_keys, 0, 1); /* a short record is checked with its head, and not asked about */
	assert_int_equal(choice.asked + (1 - choice.other_keys), setup.batch.plan.count);
	assert_int_equal(walk_chosen(&setup, 1, &choice, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count - 1);
	segment_bytes(&setup)[offset + SEG_RECORD_HEADER] ^= 1;
	/* Another length shows in the sum. */
	segment_bytes(&setup)[offset + 4] ^= 1;
	assert_int_equal(walk_chosen(&setup, 0, &choice, &visited), FS_ECORRUPT);
	segment_bytes(&setup)[offset + 4] ^= 1;
	/* A head that can't be one. */
	segment_bytes(&setup)[offset + 24] = 0;
	assert_int_equal(walk_chosen(&setup, 0, &choice, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count - 1);
	end(&setup);
}

static void without_a_footer_each_record_is_asked_about(void **state)
{
	struct setup setup;
	struct choice choice;
	uint64_t visited;

	(void)state;
	start_with_extents(&setup, 900, 890);
	segment_bytes(&setup)[SEGMENT - 1] ^= 1;
	assert_int_equal(walk_chosen(&setup, 3, &choice, &visited), FS_ECORRUPT);
	assert_int_equal(visited, setup.batch.plan.count);
	assert_int_equal(choice.asked, setup.batch.plan.count);
	assert_int_equal(choice.visited, (setup.batch.plan.count + 2) / 3);
	end(&setup);
}

static void what_is_wanted_is_visited(void **state)
{
	static const uint32_t every[] = { 0, 1, 2, 7, 1000 };

	(void)state;
	for (unsigned i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		struct setup setup;
		struct choice choice;
		uint64_t visited;

		start_with_extents(&setup, 1500, 1480);
		assert_int_equal(walk_chosen(&setup, every[i], &choice, &visited), FS_OK);
		assert_int_equal(visited, setup.batch.plan.count);
		assert_int_equal(choice.asked, setup.batch.plan.count);
		assert_int_equal(choice.other_keys, 0);
		assert_int_equal(choice.visited, every[i] ? (setup.batch.plan.count - 1) / every[i] + 1 : 0);
		end(&setup);
	}
}

/* Of long records little more is read than the heads, and those that are wanted. */
static void long_values_are_not_read_for_nothing(void **state)
{
	static const struct {
		uint32_t shortest, longest;
	} sizes[] = { { 40000, 400000 }, { 0, 100000 }, { 0, 5000 } };
	const uint64_t segment = 8u << 20;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct choice choice;
		struct setup setup;
		uint64_t visited, before, bytes[3];

		memset(&setup, 0, sizeof(setup));
		assert_int_equal(flash_open_ram(&setup.flash, 2, segment, 16, NULL), FS_OK);
		batch_make(&setup.batch, 1, 20000000 / (sizes[i].shortest + sizes[i].longest), sizes[i].shortest,
			   sizes[i].longest);
		batch_make_extents(&setup.batch, setup.batch.count - 10);
		assert_int_equal(batch_write(&setup.batch, &setup.flash, &setup.segment), FS_OK);
		for (unsigned every = 0; every < 3; every++) {
			before = ctr_sum(CTR_flash_bytes_read);
			assert_int_equal(walk_chosen(&setup, every, &choice, &visited), FS_OK);
			assert_int_equal(visited, setup.batch.plan.count);
			bytes[every] = ctr_sum(CTR_flash_bytes_read) - before;
		}
		print_message("values of %u to %u bytes: %.2f, %.2f, %.2f MiB of 8 for none, all, half\n",
			      sizes[i].shortest, sizes[i].longest, (double)bytes[0] / (1 << 20),
			      (double)bytes[1] / (1 << 20), (double)bytes[2] / (1 << 20));
		if (i == 0) {
			assert_true(bytes[0] <= (setup.batch.plan.count + 4) * 2 * SEG_PAGE);
			assert_true(bytes[2] < segment * 3 / 4);
		}
		assert_true(bytes[0] < bytes[2] + segment / 100 && bytes[2] < bytes[1] + segment / 100);
		assert_true(bytes[1] < segment + segment / 100); /* hardly anything is read twice */
		flash_close(&setup.flash);
		batch_fini(&setup.batch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broken_record_is_stepped_over),
		cmocka_unit_test(a_broken_footer_leaves_every_record_to_find),
		cmocka_unit_test(a_broken_list_leaves_every_record_to_find),
		cmocka_unit_test(each_bit_of_the_header_page_is_checked),
		cmocka_unit_test(each_bit_of_the_footer_is_checked),
		cmocka_unit_test(an_unreadable_device_ends_the_walk),
		cmocka_unit_test(the_fault_point_ends_it_half_way),
		cmocka_unit_test(a_header_of_an_earlier_life_is_none),
		cmocka_unit_test(a_footer_of_an_earlier_life_is_none),
		cmocka_unit_test(it_stops_when_told),
		cmocka_unit_test(all_records_come_in_order),
		cmocka_unit_test(records_far_apart_are_found),
		cmocka_unit_test(an_empty_segment_has_none),
		cmocka_unit_test(a_flipped_bit_of_what_is_left_out_is_no_error),
		cmocka_unit_test(without_a_footer_each_record_is_asked_about),
		cmocka_unit_test(what_is_wanted_is_visited),
		cmocka_unit_test(long_values_are_not_read_for_nothing),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
