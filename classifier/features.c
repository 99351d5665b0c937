/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five features of an object (Flashield paper, 3.1) in 18 bytes of state and 7 on flash.
 *
 * The mean gap is not stored: the gaps of an object, the one from its write to its first read
 * included, add up to the time from the write to the last read. So
 *
 *	mean gap = (last_read_ms - written_ms) / reads
 *
 * and saturation and rebasing, which change the state, keep that quotient.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier.h"

/* Gaps in 16 bits: exact below 2^12, rounded to 11 bits after the leading one above. */
#define GAP_MANTISSA_BITS 11
#define GAP_MANTISSA (1u << GAP_MANTISSA_BITS)
#define GAP_EXPONENT_MAX 31

/* A read that seems to come this little before the last one is no wrap: two threads have read the clock in turn. */
#define BACKWARDS_TOLERANCE_MS 60000u

/* From this age on a read moves the write time forward, so that 32-bit times stay unambiguous. */
#define REBASE_AGE_MS (1ull << 31)

/*
 * Logarithmic steps of a byte: 0 stands for 0, c >= 1 for ratio^(c - 1), and 255 for 2^32 - 1 ms (49.7 days). The ratio
 * is 1.0912, so that no value is off by more than 4.6 %.
 */
#define LOG_STEPS 254
#define LOG_OF_RATIO (22.180709777685 / LOG_STEPS) /* ln(2^32 - 1) / 254 */

static uint16_t gap_encode(uint64_t ms)
{
	if (ms < GAP_MANTISSA)
		return (uint16_t)ms;

	unsigned shift = 63 - (unsigned)__builtin_clzll(ms) - GAP_MANTISSA_BITS;
	uint64_t mantissa = (ms + ((1ull << shift) >> 1)) >> shift;
	if (mantissa == 2 * GAP_MANTISSA) { /* rounded up into the next power of two */
		mantissa = GAP_MANTISSA;
		shift++;
	}
	if (shift + 1 > GAP_EXPONENT_MAX)
		return UINT16_MAX;
	return (uint16_t)((shift + 1) << GAP_MANTISSA_BITS | (mantissa - GAP_MANTISSA));
}

static uint64_t gap_decode(uint16_t gap)
{
	unsigned exponent = gap >> GAP_MANTISSA_BITS;
	uint64_t mantissa = gap & (GAP_MANTISSA - 1);

	return exponent == 0 ? mantissa : (mantissa + GAP_MANTISSA) << (exponent - 1);
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
	features->written_ms = (uint32_t)now_ms;
}

static uint32_t gap_since(uint32_t then_ms, uint64_t now_ms)
{
	uint32_t gap = (uint32_t)now_ms - then_ms;

	return gap > UINT32_MAX - BACKWARDS_TOLERANCE_MS ? 0 : gap;
}

void clf_features_read(struct clf_features *features, uint64_t now_ms)
{
	bool first = features->reads == 0;
	uint32_t gap = gap_since(first ? features->written_ms : features->last_read_ms, now_ms);
	uint64_t age = gap;
	uint16_t code = gap_encode(gap);

	if (!first)
		age += features->last_read_ms - features->written_ms;
	if (features->reads < UINT16_MAX)
		features->reads++;
	else
		age -= (age + (1 << 15)) >> 16; /* there is one read more, but the count stays */
	while (features->reads > 1 && age > REBASE_AGE_MS) {
		uint16_t reads = features->reads / 2;
		age = age * reads / features->reads;
		features->reads = reads;
	}
	must(features->reads > 0);
	features->written_ms = (uint32_t)(now_ms - age);
	features->last_read_ms = (uint32_t)now_ms;
	features->last_gap = code;
	if (first)
		features->first_gap = code;
	if (code > features->max_gap)
		features->max_gap = code;
}

static double mean_gap_ms(const struct clf_features *features)
{
	if (features->reads == 0)
		return 0;
	return (double)(uint32_t)(features->last_read_ms - features->written_ms) / features->reads;
}

void clf_features_vector(const struct clf_features *features, double out[CLF_FEATURES])
{
	memset(out, 0, CLF_FEATURES * sizeof(*out));
	out[CLF_READS] = features->reads;
	out[CLF_MEAN_GAP] = mean_gap_ms(features) / 1000;
	out[CLF_LAST_GAP] = (double)gap_decode(features->last_gap) / 1000;
	out[CLF_MAX_GAP] = (double)gap_decode(features->max_gap) / 1000;
	out[CLF_FIRST_GAP] = (double)gap_decode(features->first_gap) / 1000;
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
	uint32_t accessed_ms = features->reads ? features->last_read_ms : features->written_ms;

	out->reads = log_pack(features->reads);
	out->first_gap = log_pack((double)gap_decode(features->first_gap));
	out->last_gap = log_pack((double)gap_decode(features->last_gap));
	out->max_gap = log_pack((double)gap_decode(features->max_gap));
	out->mean_gap = log_pack(mean_gap_ms(features));
	out->age = log_pack(gap_since(accessed_ms, now_ms));
	out->past = features->past;
}

/* Bytes from flash may hold anything: every combination becomes a valid state. */
void clf_features_unpack(const struct clf_features_packed *packed, uint64_t packed_ms, struct clf_features *out)
{
	double reads = fmin(round(log_unpack(packed->reads)), UINT16_MAX);
	double life = fmin(round(log_unpack(packed->mean_gap) * reads), UINT32_MAX);
	double age = fmin(round(log_unpack(packed->age)), UINT32_MAX);
	uint32_t accessed_ms = (uint32_t)packed_ms - (uint32_t)age;

	memset(out, 0, sizeof(*out));
	out->reads = (uint16_t)reads;
	out->last_read_ms = out->reads ? accessed_ms : 0;
	out->written_ms = accessed_ms - (uint32_t)life;
	out->first_gap = gap_encode((uint64_t)round(log_unpack(packed->first_gap)));
	out->last_gap = gap_encode((uint64_t)round(log_unpack(packed->last_gap)));
	out->max_gap = gap_encode((uint64_t)round(log_unpack(packed->max_gap)));
	out->past = packed->past;
}
