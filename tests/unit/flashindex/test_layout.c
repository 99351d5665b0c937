/* SPDX-License-Identifier: BSD-3-Clause */
/* layout_internal.h: slot layouts, states, and the search of a bucket. */
#include "tests/unit/flashindex/support.h"

#include "flashindex/layout_internal.h"

static void test_every_layout_keeps_its_fields_apart(void **state)
{
	(void)state;
	for (uint32_t segments = 1; segments <= 16383; segments += segments < 40 ? 1 : segments / 7) {
		struct slot_layout l;

		assert_true(layout_init(&l, segments, 0));
		for (unsigned tag_bits = 2, widest = l.tag_bits; tag_bits <= widest; tag_bits++) {
			uint32_t segment = segments - 1, tag = (1u << tag_bits) - 1;

			assert_true(layout_init(&l, segments, tag_bits));
			for (unsigned function = 0; function < 16; function++) {
				uint32_t slot = slot_name(&l, segment, tag, function) | 5;

				assert_int_equal(slot_segment(&l, slot), segment);
				assert_int_equal(slot_tag(&l, slot), tag);
				assert_int_equal(slot_function(slot), function);
				assert_int_equal(slot_state(slot), 5);
				assert_false(slot_is_empty(&l, slot));
				assert_false(slot_is_empty(&l, slot_name(&l, 0, tag, function)));
			}
			assert_int_equal(slot_name(&l, segment, 0, 0) >> l.segment_shift, segment + 1);
			assert_true(slot_is_empty(&l, SLOT_EMPTY));
			assert_int_equal(slot_segment(&l, SLOT_EMPTY), UINT32_MAX);
		}
		assert_int_equal(l.segment_bits + l.tag_bits + SLOT_FIXED_BITS, 32);
	}
}

static void test_tag_widths_are_those_of_the_design(void **state)
{
	struct slot_layout l;

	(void)state;
	assert_true(layout_init(&l, 16383, 0));
	assert_int_equal(l.tag_bits, 11); /* 8 TiB of 512 MiB segments */
	assert_true(layout_init(&l, 511, 0));
	assert_int_equal(l.tag_bits, 16); /* 256 GiB */
	assert_true(layout_init(&l, 1, 0));
	assert_int_equal(l.tag_bits, 24);
}

static void test_states(void **state)
{
	static const unsigned ghost = 1, cold = 0, read1 = 3, read2 = 5, read3 = 7;

	(void)state;
	assert_true(state_is_ghost(ghost));
	for (unsigned s = 0; s < 8; s++) {
		assert_int_equal(state_is_read(s), s == read1 || s == read2 || s == read3);
		assert_false(state_is_ghost(state_after_hit(s, FIDX_CLOCK_LRU)));
		assert_int_equal(state_after_hit(s, FIDX_CLOCK_LRU), read3);
		assert_true(state_is_read(state_after_hit(s, FIDX_CLOCK_MFU)));
		assert_int_equal(state_clock(state_after_hit(s, FIDX_CLOCK_MFU)),
				 state_clock(s) == 3 ? 3 : state_clock(s) + 1);
	}
	assert_int_equal(state_after_hand(cold, true), ghost);
	assert_int_equal(state_after_hand(cold, false), cold);
	assert_int_equal(state_after_hand(ghost, true), ghost);
	assert_int_equal(state_after_hand(read3, false), read2);
	assert_int_equal(state_after_hand(read1, false), read1); /* the mark is kept */
	assert_int_equal(state_after_hand(read1, true), cold);
	assert_int_equal(state_after_hand(state_unread(1), false), cold);
	assert_true(state_warmth(ghost) < state_warmth(cold));
	assert_true(state_warmth(cold) < state_warmth(state_unread(1)));
	assert_true(state_warmth(state_unread(1)) < state_warmth(read1));
	assert_true(state_warmth(read1) < state_warmth(state_unread(2)));
}

static void test_bucket_search_finds_what_a_loop_finds(void **state)
{
	struct rng rng;
	struct bucket bucket;

	(void)state;
	rng_init(&rng, test_seed());
	for (unsigned round = 0; round < 2000; round++) {
		struct slot_layout l;
		unsigned match = 0, full = 0, occupied;
		uint32_t want;

		assert_true(layout_init(&l, 1 + (uint32_t)rng_below(&rng, 16383), 0));
		want = (uint32_t)rng_below(&rng, 4) << SLOT_TAG_SHIFT;
		for (unsigned i = 0; i < 16; i++) {
			uint32_t slot = rng_below(&rng, 3) ? (uint32_t)rng_next(&rng) : SLOT_EMPTY;

			if (rng_below(&rng, 2))
				slot = (slot & ~l.tag_mask) | want;
			atomic_init(&bucket.slot[i], slot);
			match |= (unsigned)((slot & l.tag_mask) == want) << i;
			full |= (unsigned)((slot & l.segment_mask) != 0) << i;
		}
		assert_int_equal(bucket_search(&bucket, l.tag_mask, want, l.segment_mask, &occupied), match);
		assert_int_equal(occupied, full);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_layout_keeps_its_fields_apart),
		cmocka_unit_test(test_tag_widths_are_those_of_the_design),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_bucket_search_finds_what_a_loop_finds),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
