/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five features of an object (Flashield paper, 3.1) in 12 bytes of state and 7 on flash.
 *
 * Of the times of an object only the last access is stored. The gaps of an object, the one from its write to its first
 * read included, add up to the time from the write to the last read, so that
 *
 *	time of the write = last access - reads * mean gap
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier.h"

/*
 * Gaps in 8 bits are the upper bits of a float of so many ticks, three of its mantissa among them; code 0 stands for 0.
 * A tick is 1/1024 s, so that a second and its halves are exact.
 */
#define GAP_SHIFT 20 /* bits of the float that are left out */
#define GAP_NONE 0.9375f /* ticks: what the code below that of one tick would be */
#define GAP_MOST 3.75e9f /* ticks, 42 days */
#define TICKS_PER_MS 1.024f

/* The mean gap in 16 bits is the same of one more millisecond, with eleven bits of the mantissa. */
#define MEAN_SHIFT 12
#define MEAN_MOST 4.29e9f /* ms */

/* A read that seems to come this little before the last one is no wrap: two threads have read the clock in turn. */
#define BACKWARDS_TOLERANCE_MS 60000u

/*
 * Logarithmic steps of a byte: 0 stands for 0, c >= 1 for ratio^(c - 1), and 255 for 2^32 - 1 ms (49.7 days). The ratio
 * is 1.0912, so that no value is off by more than 4.6 %.
 */
#define LOG_STEPS 254
#define LOG_OF_RATIO (22.180709777685 / LOG_STEPS) /* ln(2^32 - 1) / 254 */

/* The upper bits of a float >= 0, rounded; they rise with it. */
static inline uint32_t float_encode(float value, unsigned shift)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (bits + (1u << (shift - 1))) >> shift;
}

static inline float float_decode(uint32_t code, unsigned shift)
{
	uint32_t bits = code << shift;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint8_t gap_encode(float ms)
{
	float ticks = ms * TICKS_PER_MS;

	ticks = ticks > GAP_NONE ? ticks : GAP_NONE;
	ticks = ticks < GAP_MOST ? ticks : GAP_MOST;
	return (uint8_t)(float_encode(ticks, GAP_SHIFT) - float_encode(GAP_NONE, GAP_SHIFT));
}

static double gap_seconds(uint8_t code)
{
	return code == 0 ? 0 : (double)float_decode(code + float_encode(GAP_NONE, GAP_SHIFT), GAP_SHIFT) / 1024;
}

static inline uint16_t mean_encode(float ms)
{
	ms = ms < MEAN_MOST ? ms : MEAN_MOST;
	return (uint16_t)(float_encode(ms + 1, MEAN_SHIFT) - float_encode(1, MEAN_SHIFT));
}

static inline float mean_decode(uint16_t code)
{
	return float_decode(code + float_encode(1, MEAN_SHIFT), MEAN_SHIFT) - 1;
}

const char *clf_feature_name(enum clf_feature feature)
{
	static const char *const names[CLF_FEATURES] = {
		[CLF_READS] = "reads",     [CLF_MEAN_GAP] = "mean_gap",   [CLF_LAST_GAP] = "last_gap",
		[CLF_MAX_GAP] = "max_gap", [CLF_FIRST_GAP] = "first_gap", [CLF_COUNT] = "count",
		[CLF_IDLE] = "idle",       [CLF_SIZE] = "size",           [CLF_TTL] = "ttl",
	};

	must((unsigned)feature < CLF_FEATURES);
	return names[feature];
}

void clf_features_written(struct clf_features *features, uint64_t now_ms)
{
	memset(features, 0, sizeof(*features));
	features->accessed_ms = (uint32_t)now_ms;
}

static uint32_t gap_since(uint32_t then_ms, uint64_t now_ms)
{
	uint32_t gap = (uint32_t)now_ms - then_ms;

	return gap > UINT32_MAX - BACKWARDS_TOLERANCE_MS ? 0 : gap;
}

static void gaps_add(struct clf_gaps *gaps, float gap_ms, bool first)
{
	uint8_t code = gap_encode(gap_ms);

	if (first)
		gaps->first = code;
	gaps->last = code;
	if (code > gaps->max)
		gaps->max = code;
}

void clf_read(uint32_t *accessed_ms, struct clf_reads *reads, struct clf_gaps *gaps, uint64_t now_ms)
{
	float gap_ms = (float)(int64_t)gap_since(*accessed_ms, now_ms), mean_ms = mean_decode(reads->mean_gap);
	unsigned count = reads->count + 1u;

	if (gaps)
		gaps_add(gaps, gap_ms, count == 1);
	reads->mean_gap = mean_encode(mean_ms + (gap_ms - mean_ms) / (float)(int)count);
	reads->count = (count < CLF_READS_MAX ? count : CLF_READS_MAX) & CLF_READS_MAX;
	*accessed_ms = (uint32_t)now_ms;
}

double clf_features_mean_gap_ms(const struct clf_features *features)
{
	return (double)mean_decode(features->reads.mean_gap);
}

void clf_features_vector(const struct clf_features *features, double out[CLF_FEATURES])
{
	memset(out, 0, CLF_FEATURES * sizeof(*out));
	out[CLF_READS] = features->reads.count;
	out[CLF_MEAN_GAP] = clf_features_mean_gap_ms(features) / 1000;
	out[CLF_LAST_GAP] = gap_seconds(features->gaps.last);
	out[CLF_MAX_GAP] = gap_seconds(features->gaps.max);
	out[CLF_FIRST_GAP] = gap_seconds(features->gaps.first);
}

static uint8_t log_pack(double value)
{
	if (value < 0.5)
		return 0;
	if (value < 1)
		return 1;
	double step = log(value) / LOG_OF_RATIO + 0.5;
	return step >= LOG_STEPS ? 255 : (uint8_t)(1 + (unsigned)step);
}

static double log_unpack(uint8_t code)
{
	return code == 0 ? 0 : exp((code - 1) * LOG_OF_RATIO);
}

void clf_features_pack(const struct clf_features *features, uint64_t now_ms, struct clf_features_packed *out)
{
	out->reads = log_pack(features->reads.count);
	out->first_gap = log_pack(1000 * gap_seconds(features->gaps.first));
	out->last_gap = log_pack(1000 * gap_seconds(features->gaps.last));
	out->max_gap = log_pack(1000 * gap_seconds(features->gaps.max));
	out->mean_gap = log_pack(clf_features_mean_gap_ms(features));
	out->age = log_pack(gap_since(features->accessed_ms, now_ms));
	out->past = features->past;
}

/* Bytes from flash may hold anything: every combination becomes a valid state. */
void clf_features_unpack(const struct clf_features_packed *packed, uint64_t packed_ms, struct clf_features *out)
{
	double age = fmin(round(log_unpack(packed->age)), UINT32_MAX);

	memset(out, 0, sizeof(*out));
	out->reads.count = (uint16_t)fmin(round(log_unpack(packed->reads)), CLF_READS_MAX) & CLF_READS_MAX;
	out->accessed_ms = (uint32_t)packed_ms - (uint32_t)age;
	out->reads.mean_gap = mean_encode((float)log_unpack(packed->mean_gap));
	out->gaps.first = gap_encode((float)log_unpack(packed->first_gap));
	out->gaps.last = gap_encode((float)log_unpack(packed->last_gap));
	out->gaps.max = gap_encode((float)log_unpack(packed->max_gap));
	out->past = packed->past;
}
