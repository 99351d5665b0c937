/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of bins and of a chain: nonsense, every shape, what is best goes first, and how full bins get. */
#include "segments/bins.h"
#include "tests/unit/segments/plans.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/rng.h"

static void nonsense_is_refused(void **state)
{
	struct seg_plan plan;

	(void)state;
	assert_int_equal(seg_plan_bins_simulate(MIB + 1, 1, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(seg_plan_bins_simulate(SEG_PAGE, 1, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(seg_plan_bins_simulate(2ull * SEG_MAX_BYTES, 1, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(seg_plan_bins_simulate(MIB, 1, NULL, 1u << 27, &plan), FS_EINVAL);
}

static void without_memory_there_is_nothing_to_free(void **state)
{
	struct seg_candidate candidates[4] = { { .place = 1, .length = 100 } };
	struct seg_plan plan;

	(void)state;
	for (unsigned n = 0; n < 16; n++) {
		int rc;

		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		rc = seg_plan_bins_simulate(MIB, 1, candidates, 4, &plan);
		fault_disarm_all();
		if (rc == FS_OK) {
			seg_plan_fini(&plan);
			break;
		}
		assert_int_equal(rc, FS_ENOMEM);
		assert_null(plan.placed);
	}
}

/* All that must hold for any plan of bins. */
static void check(const struct seg_plan *plan, const struct seg_candidate *candidates, uint32_t count,
		  uint64_t segment_bytes)
{
	uint8_t *seen = mem_must_zalloc(count + 1);
	uint64_t bytes = 0, end = 0, bins;

	assert_int_equal(plan->kind, SEG_BINS);
	assert_true(seg_bins_fit(plan->data_offset, plan->data_bytes, segment_bytes - plan->footer_bytes,
				 plan->bin_bytes) ||
		    plan->count == 0);
	assert_int_equal(plan->data_offset + plan->data_bytes + plan->footer_bytes, segment_bytes);
	assert_true(plan_footer_bytes(plan->count, 0, plan->data_bytes / plan->granule, 0) <= plan->footer_bytes);
	assert_int_equal(plan->extents, 0);
	bins = plan->data_bytes / plan->bin_bytes;
	for (uint32_t n = 0; n < plan->count; n++) {
		const struct seg_placed *placed = &plan->placed[n];
		const struct seg_candidate *candidate = &candidates[placed->candidate];
		uint64_t within = placed->offset - plan->data_offset, bin = within / plan->bin_bytes;

		assert_in_range(placed->candidate, 0, count - 1);
		assert_false(seen[placed->candidate]++);
		assert_true(placed->offset % plan->granule == 0 && placed->offset >= plan->data_offset);
		assert_int_equal(bin, reduce64(candidate->place, bins));
		/* One behind the other, without a gap, and within the bin. */
		assert_int_equal(placed->offset, within % plan->bin_bytes == 0
							 ? placed->offset
							 : (end + plan->granule - 1) / plan->granule * plan->granule);
		end = placed->offset + candidate->length;
		assert_true(end <= plan->data_offset + (bin + 1) * plan->bin_bytes);
		bytes += candidate->length;
	}
	assert_int_equal(bytes, plan->stats.placed_bytes);
	mem_free(seen);
}

static void plans_hold_what_they_must(void **state)
{
	static const double means[] = { 1, 40, 300, 700, 2000 };

	(void)state;
	for (unsigned m = 0; m < 5; m++)
		for (unsigned share = 0; share < 4; share++) {
			struct seg_candidate *candidates;
			struct seg_plan plan;
			uint32_t count;

			candidates =
				candidates_make(&count, MIB / 2 * share + 100, means[m], m % 2 ? 0 : 1, m * 10 + share);
			for (uint32_t i = 0; i < count; i += 7)
				candidates[i].extent = i % 2;
			assert_int_equal(
				seg_plan_bins_simulate(m % 2 ? MIB : SEG_MIN_BYTES, 1, candidates, count, &plan),
				FS_OK);
			check(&plan, candidates, count, m % 2 ? MIB : SEG_MIN_BYTES);
			for (uint32_t n = 0; n < plan.count; n++)
				assert_true(!candidates[plan.placed[n].candidate].extent &&
					    candidates[plan.placed[n].candidate].length <= SEG_PAGE);
			seg_plan_fini(&plan);
			seg_plan_fini(&plan);
			mem_free(candidates);
		}
}

static void one_bin_may_be_wanted_by_all(void **state)
{
	struct seg_candidate candidates[500];
	struct seg_plan plan;

	(void)state;
	for (unsigned i = 0; i < 500; i++)
		candidates[i] = (struct seg_candidate){ .place = (1ull << 63) + i, .length = 100 + i % 50 };
	assert_int_equal(seg_plan_bins_simulate(MIB, 1, candidates, 500, &plan), FS_OK);
	check(&plan, candidates, 500, MIB);
	assert_true(plan.stats.placed_bytes > SEG_PAGE * 0.96);
	seg_plan_fini(&plan);
}

/* Some keys are among the candidates twice or three times, at any distance. */
static void of_candidates_with_the_same_x_none_is_placed(void **state)
{
	struct seg_candidate *candidates;
	uint32_t count, placed = 0;
	struct seg_plan plan;

	(void)state;
	candidates = candidates_make(&count, 2 * MIB, 100, 1, 3);
	for (uint32_t i = 0; i + 2 < count; i += 10) {
		candidates[i + 1 + i % 9].place = candidates[i].place;
		if (i % 20 == 0)
			candidates[count - 1 - i].place = candidates[i].place;
	}
	assert_int_equal(seg_plan_bins_simulate(MIB, 1, candidates, count, &plan), FS_OK);
	check(&plan, candidates, count, MIB);
	for (uint32_t n = 0; n < plan.count; n++) {
		uint64_t x = candidates[plan.placed[n].candidate].place;

		placed = 0;
		for (uint32_t i = 0; i < count; i++)
			placed += candidates[i].place == x;
		assert_int_equal(placed, 1);
	}
	assert_true(placed > 0);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static struct seg_plan plan_of(uint64_t segment, double times, double mean, double sigma,
			       struct seg_candidate **candidates, uint32_t *count)
{
	struct seg_plan plan;

	*candidates = candidates_make(count, (uint64_t)(times * (double)segment), mean, sigma, 7);
	assert_int_equal(seg_plan_bins_simulate(segment, 1, *candidates, *count, &plan), FS_OK);
	check(&plan, *candidates, *count, segment);
	return plan;
}

static void bins_get_full(void **state)
{
	const struct {
		double times, mean, sigma, least;
	} cases[] = { { 2, 200, 1, 0.985 },  { 2, 250, 0.5, 0.98 }, { 1.25, 200, 1, 0.93 }, { 2, 60, 0.5, 0.98 },
		      { 2, 700, 0.3, 0.95 }, { 2, 247, 0, 0.94 },   { 2, 647, 0, 0.9 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seg_candidate *candidates;
		uint32_t count;
		struct seg_plan plan =
			plan_of(8 * MIB, cases[i].times, cases[i].mean, cases[i].sigma, &candidates, &count);

		if (getenv("FIGURES"))
			printf("%.2f times, values of %.0f, sigma %.1f: fill %.4f, of the segment %.4f, bins of %u\n",
			       cases[i].times, cases[i].mean, cases[i].sigma, plan.stats.fill,
			       (double)plan.stats.placed_bytes / (8 * MIB), plan.bin_bytes);
		assert_true(plan.stats.fill > cases[i].least);
		seg_plan_fini(&plan);
		mem_free(candidates);
	}
}

/* Candidates come best first: of the better half more are placed than of the other. */
static void better_ones_go_first(void **state)
{
	struct seg_candidate *candidates;
	uint32_t count, of_best = 0, of_worst = 0;
	struct seg_plan plan = plan_of(4 * MIB, 2, 250, 0.5, &candidates, &count);

	(void)state;
	for (uint32_t n = 0; n < plan.count; n++) {
		of_best += plan.placed[n].candidate < count / 4;
		of_worst += plan.placed[n].candidate >= count / 4 * 3;
	}
	if (getenv("FIGURES"))
		printf("of the best quarter %.3f are placed, of the worst %.3f\n", of_best / (count / 4.0),
		       of_worst / (count / 4.0));
	assert_true(of_best > count / 4 * 0.9 && of_worst < count / 4 * 0.25);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

/* Where pages would stay empty, and only there, bins are larger. */
static void bins_are_larger_where_pages_stay_empty(void **state)
{
	struct seg_candidate *candidates;
	uint32_t count;
	struct seg_plan plan = plan_of(4 * MIB, 2, 700 - 53, 0, &candidates, &count);

	(void)state;
	assert_int_equal(plan.bin_bytes, 2 * SEG_PAGE);
	seg_plan_fini(&plan);
	mem_free(candidates);
	plan = plan_of(4 * MIB, 2, 300 - 53, 0, &candidates, &count);
	assert_int_equal(plan.bin_bytes, SEG_PAGE);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void a_chain_takes_what_fits_in_order(void **state)
{
	struct flash flash;
	struct seg_plan plan;
	uint32_t lengths[1000], at = SEG_PAGE;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEG_MIN_BYTES, 16, NULL), FS_OK);
	for (unsigned i = 0; i < 1000; i++)
		lengths[i] = 40 + i % 300;
	assert_int_equal(seg_plan_chain(flash.seg, lengths, 1u << 27, &plan), FS_EINVAL);
	assert_int_equal(seg_plan_chain(flash.seg, lengths, 1000, &plan), FS_OK);
	assert_int_equal(plan.kind, SEG_CHAIN);
	assert_in_range(plan.count, 200, 999);
	for (uint32_t n = 0; n < plan.count; n++) {
		assert_int_equal(plan.placed[n].candidate, n);
		assert_int_equal(plan.placed[n].offset, at);
		at += (lengths[n] + 15) / 16 * 16;
	}
	assert_true(at - SEG_PAGE <= seg_chain_room(flash.seg, plan.count) + 16);
	assert_true(plan.data_offset + plan.data_bytes + plan.footer_bytes == SEG_MIN_BYTES);
	seg_plan_fini(&plan);
	lengths[0] = SEG_MIN_BYTES;
	assert_int_equal(seg_plan_chain(flash.seg, lengths, 3, &plan), FS_OK);
	assert_int_equal(plan.count, 0);
	seg_plan_fini(&plan);
	flash_close(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(without_memory_there_is_nothing_to_free),
		cmocka_unit_test(plans_hold_what_they_must),
		cmocka_unit_test(one_bin_may_be_wanted_by_all),
		cmocka_unit_test(of_candidates_with_the_same_x_none_is_placed),
		cmocka_unit_test(bins_get_full),
		cmocka_unit_test(better_ones_go_first),
		cmocka_unit_test(bins_are_larger_where_pages_stay_empty),
		cmocka_unit_test(a_chain_takes_what_fits_in_order),
	};

	return cmocka_run_group_tests_name("plan_bins", tests, NULL, NULL);
}
