/* SPDX-License-Identifier: BSD-3-Clause */
/* Features: the paper's example bit by bit, the gaps' floats, wrap, saturation, pack and unpack. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "classifier/classifier.h"

#define DAY_MS 86400000ull

static struct clf_features written_at(uint64_t now_ms)
{
	struct clf_features features;

	memset(&features, 0xff, sizeof(features)); /* what was there before must not shine through */
	clf_features_written(&features, now_ms);
	return features;
}

static void assert_vector(const struct clf_features *features, double reads, double mean, double last, double most,
			  double first)
{
	double v[CLF_FEATURES];

	clf_features_vector(features, v);
	assert_true(v[CLF_READS] == reads && v[CLF_MEAN_GAP] == mean && v[CLF_LAST_GAP] == last);
	assert_true(v[CLF_MAX_GAP] == most && v[CLF_FIRST_GAP] == first);
	for (unsigned f = CLF_FIRST_GAP + 1; f < CLF_FEATURES; f++)
		assert_true(v[f] == 0); /* what an object's state doesn't tell */
}

/* The vector's mean gap in milliseconds. */
static double mean_ms(const struct clf_features *features)
{
	double v[CLF_FEATURES];

	clf_features_vector(features, v);
	return v[CLF_MEAN_GAP] * 1000;
}

static void never_read_has_no_gaps(void **state)
{
	(void)state;
	struct clf_features features = written_at(123456789);

	assert_vector(&features, 0, 0, 0, 0, 0);
	assert_int_equal(features.past, 0);
}

static void a_clock_that_goes_back_gives_no_gap(void **state)
{
	(void)state;
	struct clf_features features = written_at(5000);

	clf_features_read(&features, 4990);
	assert_vector(&features, 1, 0, 0, 0, 0);
}

static void unpack_takes_any_bytes(void **state)
{
	(void)state;
	struct rng rng;

	rng_init(&rng, 1);
	for (int i = 0; i < 100000; i++) {
		struct clf_features_packed packed;
		struct clf_features features;
		double v[CLF_FEATURES];
		uint64_t bits = rng_next(&rng);
		memcpy(&packed, &bits, sizeof(packed));
		clf_features_unpack(&packed, rng_next(&rng) >> 20, &features);
		clf_features_vector(&features, v);
		for (int f = 0; f < CLF_FEATURES; f++)
			assert_true(isfinite(v[f]) && v[f] >= 0);
	}
}

static void the_papers_example(void **state)
{
	(void)state;
	struct clf_features features = written_at(0);

	clf_features_read(&features, 1000);
	assert_vector(&features, 1, 1, 1, 1, 1);
	clf_features_read(&features, 1500);
	assert_vector(&features, 2, 0.75, 0.5, 1, 1);
}

static void the_papers_example_over_the_wrap(void **state)
{
	(void)state;
	uint64_t start_ms = (1ull << 32) - 1200;
	struct clf_features features = written_at(start_ms);

	clf_features_read(&features, start_ms + 1000);
	assert_vector(&features, 1, 1, 1, 1, 1);
	clf_features_read(&features, start_ms + 1500);
	assert_vector(&features, 2, 0.75, 0.5, 1, 1);
}

static double last_gap_of(uint64_t gap_ms)
{
	struct clf_features features = written_at(0);
	double v[CLF_FEATURES];

	clf_features_read(&features, gap_ms);
	clf_features_vector(&features, v);
	return v[CLF_LAST_GAP] * 1000;
}

static void gaps_are_close_and_rise(void **state)
{
	(void)state;
	double before = -1;

	for (uint64_t ms = 0; ms < 42 * DAY_MS; ms += 1 + ms / 997) {
		double got = last_gap_of(ms);
		assert_true(fabs(got - (double)ms) <= (ms <= 15 ? 0.5 : 0.0626 * (double)ms));
		assert_true(got >= before);
		before = got;
	}
	assert_true(last_gap_of(49 * DAY_MS) == last_gap_of(43 * DAY_MS));
	for (uint64_t ms = 125; ms < 42 * DAY_MS; ms *= 2) /* an eighth of a second, and so on */
		assert_true(last_gap_of(ms) == (double)ms);
}

static void the_mean_is_closer(void **state)
{
	(void)state;
	for (uint64_t ms = 0; ms < 49 * DAY_MS; ms += 1 + ms / 997) {
		struct clf_features features = written_at(3);

		clf_features_read(&features, 3 + ms);
		assert_true(fabs(mean_ms(&features) - (double)ms) <= (ms <= 128 ? 0 : 0.0005 * (double)ms));
	}
}

/* Many gaps of many lengths: rounding must not add up to much. */
static void the_mean_follows_the_gaps(void **state)
{
	(void)state;
	struct rng rng;

	rng_init(&rng, 3);
	for (uint64_t longest = 2; longest < 2 * DAY_MS; longest *= 3) {
		struct clf_features features = written_at(0);
		uint64_t now_ms = 0;

		for (unsigned reads = 1; reads <= 1000; reads++) {
			clf_features_read(&features, now_ms += rng_below(&rng, longest));
			if (now_ms > 0)
				assert_true(fabs(mean_ms(&features) * reads / (double)now_ms - 1) < 0.05);
		}
	}
}

static void a_life_may_be_longer_than_the_wrap(void **state)
{
	(void)state;
	struct clf_features features = written_at(0);

	clf_features_read(&features, 30 * DAY_MS);
	clf_features_read(&features, 70 * DAY_MS);
	assert_int_equal(features.reads.count, 2);
	assert_true(fabs(mean_ms(&features) - 35.0 * DAY_MS) < 0.0005 * 35.0 * DAY_MS);
	for (uint64_t day = 1; day <= 400; day++)
		clf_features_read(&features, (70 + 35 * day) * DAY_MS);
	assert_int_equal(features.reads.count, 402);
	assert_true(fabs(mean_ms(&features) - 35.0 * DAY_MS) < 0.001 * 35.0 * DAY_MS);
}

static void reads_saturate_and_the_mean_stays(void **state)
{
	(void)state;
	struct clf_features features = written_at(0);
	uint64_t now_ms = 0;

	features.reads.stay = CLF_STAY_READ_AGAIN;
	for (int i = 0; i < 200000; i++)
		clf_features_read(&features, now_ms += 20);
	assert_int_equal(features.reads.count, CLF_READS_MAX);
	assert_int_equal(features.reads.stay, CLF_STAY_READ_AGAIN);
	assert_true(fabs(mean_ms(&features) - 20) < 0.1);
}

static bool near(double got, double want, double share)
{
	return fabs(got - want) <= share * want + 1e-9;
}

static void pack_keeps_to_its_steps(void **state)
{
	(void)state;
	for (uint64_t gap_ms = 1; gap_ms < 20 * DAY_MS; gap_ms += 1 + gap_ms / 31) {
		struct clf_features_packed packed;
		struct clf_features features = written_at(7), back;
		double v[CLF_FEATURES], w[CLF_FEATURES];

		clf_features_read(&features, 7 + gap_ms);
		clf_features_read(&features, 7 + gap_ms + gap_ms / 3);
		features.past = 200;
		clf_features_pack(&features, 7 + 2 * gap_ms, &packed);
		clf_features_unpack(&packed, 1000 + 2 * gap_ms, &back);
		clf_features_vector(&features, v);
		clf_features_vector(&back, w);
		assert_true(v[CLF_READS] == w[CLF_READS]);
		for (int f = CLF_MEAN_GAP; f <= CLF_FIRST_GAP; f++) {
			/* half a step of the file's, and of the state's, and what rounding of milliseconds may add */
			assert_true(fabs(w[f] - v[f]) <= (f == CLF_MEAN_GAP ? 0.047 : 0.112) * v[f] + 0.00151);
		}
		assert_int_equal(back.past, 200);
		uint32_t age = 1000 + (uint32_t)(2 * gap_ms) - back.accessed_ms;
		double want = (double)(7 + 2 * gap_ms - features.accessed_ms);
		assert_true(fabs(age - want) <= 0.046 * want + 0.51);
	}
}

/* Steps of the record and of the state differ, so that the first time may move a gap by a step; no later one does. */
static void pack_after_unpack_settles_at_once(void **state)
{
	(void)state;
	struct rng rng;

	rng_init(&rng, 2);
	for (int i = 0; i < 200000; i++) {
		struct clf_features_packed first, second, third;
		struct clf_features features = written_at(rng_next(&rng) >> 24);
		uint64_t now_ms = features.accessed_ms;
		uint64_t longest = 1ull << rng_below(&rng, 31);

		for (uint64_t reads = rng_below(&rng, 40); reads; reads--)
			clf_features_read(&features, now_ms += rng_below(&rng, longest));
		now_ms += rng_below(&rng, longest);
		features.past = (uint8_t)rng_next(&rng);
		clf_features_pack(&features, now_ms, &first);
		clf_features_unpack(&first, now_ms, &features);
		clf_features_pack(&features, now_ms, &second);
		assert_int_equal(first.reads, second.reads);
		assert_int_equal(first.mean_gap, second.mean_gap);
		assert_int_equal(first.age, second.age);
		assert_int_equal(first.past, second.past);
		assert_in_range(second.first_gap + 1, first.first_gap, first.first_gap + 2);
		assert_in_range(second.last_gap + 1, first.last_gap, first.last_gap + 2);
		assert_in_range(second.max_gap + 1, first.max_gap, first.max_gap + 2);
		clf_features_unpack(&second, now_ms, &features);
		clf_features_pack(&features, now_ms, &third);
		assert_memory_equal(&second, &third, sizeof(second));
	}
}

static void an_object_from_flash_continues(void **state)
{
	(void)state;
	struct clf_features_packed packed;
	struct clf_features features = written_at(0), back;
	double v[CLF_FEATURES];

	clf_features_read(&features, 1000);
	clf_features_read(&features, 1500);
	clf_features_pack(&features, 1500, &packed);
	clf_features_unpack(&packed, 1500, &back);
	clf_features_read(&back, 2500);
	clf_features_vector(&back, v);
	assert_true(v[CLF_READS] == 3);
	assert_true(near(v[CLF_MEAN_GAP], 2.5 / 3, 0.046));
	assert_true(v[CLF_LAST_GAP] == 1);
	assert_true(near(v[CLF_FIRST_GAP], 1, 0.112));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_read_has_no_gaps),
		cmocka_unit_test(a_clock_that_goes_back_gives_no_gap),
		cmocka_unit_test(unpack_takes_any_bytes),
		cmocka_unit_test(the_papers_example),
		cmocka_unit_test(the_papers_example_over_the_wrap),
		cmocka_unit_test(gaps_are_close_and_rise),
		cmocka_unit_test(the_mean_is_closer),
		cmocka_unit_test(the_mean_follows_the_gaps),
		cmocka_unit_test(a_life_may_be_longer_than_the_wrap),
		cmocka_unit_test(reads_saturate_and_the_mean_stays),
		cmocka_unit_test(pack_keeps_to_its_steps),
		cmocka_unit_test(pack_after_unpack_settles_at_once),
		cmocka_unit_test(an_object_from_flash_continues),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
