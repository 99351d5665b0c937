/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of the granule. A coarse one rounds every record up; a fine one spreads the candidates
 * over more positions, so that fewer begin right at the end of the record before. The estimate below adds both
 * losses; for records of one size the size itself is the granule, and neither loss is left.
 */
#include <math.h>

#include "segments/plan_internal.h"

#define SAMPLE_MAX 4096u
#define GRANULE_MIN 8u /* finer ones fill no better by measurement: they round off less and miss more */

struct sample {
	uint32_t length[SAMPLE_MAX];
	uint32_t count;
};

static void take_sample(struct sample *sample, const struct seg_candidate *candidates, uint32_t count)
{
	uint32_t step = count / SAMPLE_MAX + 1;

	sample->count = 0;
	for (uint32_t i = 0; i < count; i += step)
		if (plan_is_slot(&candidates[i]))
			sample->length[sample->count++] = candidates[i].length;
}

static double rounding_loss(const struct sample *sample, uint32_t granule)
{
	uint64_t loss = 0;

	for (uint32_t i = 0; i < sample->count; i++)
		loss += (granule - sample->length[i] % granule) % granule;
	return (double)loss / sample->count;
}

/*
 * Bytes of gap per record in the best of all chains of records, when density candidates begin per byte: the
 * speed of the slowest particle of a branching random walk whose steps are gaps.
 * Zero once a position has a candidate on average.
 */
static double gap_loss(double density, uint32_t granule)
{
	double per_position = density * granule;
	double best = 0;

	if (per_position >= 1)
		return 0;
	for (double theta = 0.001; theta < 20; theta *= 1.1) {
		double speed = log((1 - exp(-theta * granule)) / per_position) / theta;

		if (speed > best)
			best = speed;
	}
	return best;
}

static uint32_t common_divisor(const struct sample *sample)
{
	uint32_t divisor = 0;

	for (uint32_t i = 0; i < sample->count; i++) {
		uint32_t a = sample->length[i];

		while (divisor) {
			uint32_t rest = a % divisor;

			a = divisor;
			divisor = rest;
		}
		divisor = a;
	}
	return divisor;
}

/* Boyer and Moore's majority vote: the length of more than half of the sample, if there is such a length. */
static uint32_t majority_length(const struct sample *sample)
{
	uint32_t length = 0, votes = 0;

	for (uint32_t i = 0; i < sample->count; i++) {
		if (votes == 0)
			length = sample->length[i];
		votes += sample->length[i] == length ? 1 : UINT32_MAX;
	}
	return length;
}

uint32_t plan_choose_granule(const struct seg_candidate *candidates, uint32_t count, uint64_t slot_count,
			     uint64_t slot_bytes, uint64_t data_bytes, unsigned functions)
{
	static const uint32_t fine[] = { 8, 16, 32, 64 };
	struct sample sample;
	uint32_t tried[8];
	uint32_t n = 0, granule = GRANULE_MIN;
	double least = INFINITY, waiting, density;

	take_sample(&sample, candidates, count);
	must(sample.count <= SAMPLE_MAX);
	if (sample.count == 0 || data_bytes == 0)
		return granule;
	/* Halfway through the sweep, half of the records that fit have been placed. */
	waiting = (double)slot_count;
	if (slot_bytes > data_bytes)
		waiting -= (double)slot_count * (double)data_bytes / (double)slot_bytes / 2;
	else
		waiting /= 2;
	density = waiting * functions / (double)data_bytes;
	tried[n++] = common_divisor(&sample);
	tried[n++] = majority_length(&sample);
	for (unsigned i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		tried[n++] = fine[i];
	for (uint32_t i = 0; i < n; i++) {
		double loss;

		if (tried[i] < GRANULE_MIN || tried[i] > data_bytes)
			continue;
		loss = rounding_loss(&sample, tried[i]) + gap_loss(density, tried[i]);
		if (loss < least) {
			least = loss;
			granule = tried[i];
		}
	}
	return granule;
}
