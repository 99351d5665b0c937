/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/bench/load_internal.h"

#define ZIPF_EXPONENT 0.99 /* where none is given */
#define CHECK_WHOLE_ONE_IN 64

/* --- the next key --- */

/*
 * Rejection-inversion (W. Hoermann, G. Derflinger: Rejection-inversion to generate variates from monotone
 * discrete distributions, ACM TOMACS 6 (1996) 169-184): draws from the continuous density x^-s by
 * inverting its integral H, rounds, and rejects the little by which the rounded density is too large.
 * Constant expected time whatever the number of ranks; below 1.1 draws per rank.
 */

/* H(x), the integral of x^-s from 1; exponent != 1. */
static double zipf_integral(const struct zipf *zipf, double x)
{
	double power = 1 - zipf->exponent;

	return expm1(power * log(x)) / power;
}

static double zipf_integral_inverse(const struct zipf *zipf, double y)
{
	double power = 1 - zipf->exponent;

	return exp(log1p(y * power) / power);
}

void zipf_init(struct zipf *zipf, uint64_t ranks, double exponent)
{
	zipf->ranks = ranks;
	zipf->exponent = exponent;
	zipf->integral_first = zipf_integral(zipf, 1.5) - 1;
	zipf->integral_last = zipf_integral(zipf, (double)ranks + 0.5);
	/* Within this of its rank, a draw is accepted without computing the bound. */
	zipf->shortcut = 2 - zipf_integral_inverse(zipf, zipf_integral(zipf, 2.5) - pow(2, -exponent));
}

uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng)
{
	for (;;) {
		double u = zipf->integral_last + rng_real(rng) * (zipf->integral_first - zipf->integral_last);
		double x = zipf_integral_inverse(zipf, u), rank = floor(x + 0.5);

		if (rank < 1)
			rank = 1;
		if (rank > (double)zipf->ranks)
			rank = (double)zipf->ranks;
		if (rank - x <= zipf->shortcut || u >= zipf_integral(zipf, rank + 0.5) - pow(rank, -zipf->exponent))
			return (uint64_t)rank;
	}
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void load_sequence_init(struct load_sequence *sequence, const struct load_spec *spec, struct rng *rng)
{
	*sequence = (struct load_sequence){
		.order = spec->order,
		.first = spec->first_key,
		.keys = spec->keys,
		.rng = rng,
	};
	if (spec->order != LOAD_ZIPF)
		return;
	zipf_init(&sequence->zipf, spec->keys, spec->zipf_exponent > 0 ? spec->zipf_exponent : ZIPF_EXPONENT);
	/* Popular ranks are spread over the range by a multiplication modulo its size, a bijection. */
	sequence->scramble = (uint64_t)((double)spec->keys * 0.6180339887498949) | 1;
	while (common_divisor(sequence->scramble, spec->keys) != 1)
		sequence->scramble += 2;
}

uint64_t load_sequence_next(struct load_sequence *sequence)
{
	uint64_t offset, rank;

	switch (sequence->order) {
	case LOAD_SEQUENTIAL:
		offset = sequence->next++;
		if (sequence->next == sequence->keys)
			sequence->next = 0;
		break;
	case LOAD_UNIFORM:
		offset = rng_below(sequence->rng, sequence->keys);
		break;
	default:
		rank = zipf_draw(&sequence->zipf, sequence->rng) - 1;
		offset = (uint64_t)((unsigned __int128)rank * sequence->scramble % sequence->keys);
		break;
	}
	return sequence->first + offset;
}

/* --- keys and values by number --- */

static void sizes_init(struct load_keys *keys, const struct load_spec *spec)
{
	double least = spec->value_bytes ? spec->value_bytes : 1;
	bool equal = spec->value_bytes_most <= spec->value_bytes;

	keys->size_most = equal ? spec->value_bytes : spec->value_bytes_most;
	for (unsigned i = 0; i < VALUE_SIZES; i++) {
		double quantile = (i + 0.5) / VALUE_SIZES;

		keys->sizes[i] = equal ? spec->value_bytes
				       : (uint32_t)(least * pow(spec->value_bytes_most / least, quantile) + 0.5);
	}
}

int load_keys_init(struct load_keys *keys, const struct load_spec *spec)
{
	unsigned digits;
	uint64_t numbers = 1;
	struct rng rng;
	size_t filler_bytes;

	keys->key_bytes = spec->key_bytes ? spec->key_bytes : KEY_BYTES_DEFAULT;
	keys->filler = NULL;
	if (keys->key_bytes < KEY_BYTES_LEAST || keys->key_bytes > KEY_BYTES_MOST || spec->keys == 0)
		return FS_EINVAL;
	digits = keys->key_bytes - KEY_PREFIX_BYTES;
	for (unsigned i = 0; i < digits && numbers <= UINT64_MAX / 10; i++)
		numbers *= 10;
	if (spec->keys > numbers || spec->first_key > numbers - spec->keys)
		return FS_EINVAL;
	memset(keys->key_zero, '0', keys->key_bytes);
	memcpy(keys->key_zero, KEY_PREFIX, KEY_PREFIX_BYTES);

	sizes_init(keys, spec);
	filler_bytes = VALUE_SPREAD + (size_t)keys->size_most + sizeof(uint64_t);
	keys->filler = mem_alloc(filler_bytes);
	if (!keys->filler)
		return FS_ENOMEM;
	/* The bytes are printable, so that a person can read a dump, and without blanks or line ends. */
	rng_init(&rng, 0x76616c7565); /* the same in every run: a server may be read by a later load */
	for (size_t i = 0; i < filler_bytes; i++)
		keys->filler[i] = (char)('0' + (rng_next(&rng) & 63));
	return 0;
}

void load_keys_fini(struct load_keys *keys)
{
	mem_free(keys->filler);
	keys->filler = NULL;
}

void load_key_write(const struct load_keys *keys, uint64_t number, char *out)
{
	char *digit = out + keys->key_bytes;

	memcpy(out, keys->key_zero, keys->key_bytes);
	for (; number; number /= 10)
		*--digit = (char)('0' + number % 10);
}

uint32_t value_size(const struct load_keys *keys, uint64_t number)
{
	return keys->sizes[mix64(number + 1) % VALUE_SIZES];
}

/* 48 of the bits as eight printable characters. */
static void stamp_write(char stamp[VALUE_STAMP_BYTES], uint64_t bits)
{
	uint64_t characters = (bits & 0x3f3f3f3f3f3f3f3f) + 0x3030303030303030;

	memcpy(stamp, &characters, VALUE_STAMP_BYTES);
}

void value_parts(const struct load_keys *keys, uint64_t number, struct value_parts *parts)
{
	uint64_t mixed = mix64(number + 1);
	uint32_t size = keys->sizes[mixed % VALUE_SIZES];

	stamp_write(parts->front, mix64(mixed));
	stamp_write(parts->back, mixed);
	parts->front_bytes = size < VALUE_STAMP_BYTES ? size : VALUE_STAMP_BYTES;
	parts->back_bytes = size < 2 * VALUE_STAMP_BYTES ? 0 : VALUE_STAMP_BYTES;
	parts->middle_bytes = size - parts->front_bytes - parts->back_bytes;
	parts->middle = keys->filler + (mixed >> 32) % VALUE_SPREAD;
}

/* Compares the overlap of the bytes, which start at `at`, with a part that starts at `start`. */
static bool part_matches(const char *part, uint32_t start, uint32_t part_bytes, uint32_t at, const char *bytes,
			 size_t length)
{
	uint64_t from = at > start ? at : start;
	uint64_t end = (uint64_t)at + length, part_end = (uint64_t)start + part_bytes;
	uint64_t to = end < part_end ? end : part_end;

	return from >= to || memcmp(bytes + (from - at), part + (from - start), to - from) == 0;
}

bool value_matches(const struct value_parts *parts, uint32_t at, const char *bytes, size_t length, bool every)
{
	uint32_t back = parts->front_bytes + parts->middle_bytes;

	return part_matches(parts->front, 0, parts->front_bytes, at, bytes, length) &&
	       part_matches(parts->back, back, parts->back_bytes, at, bytes, length) &&
	       (!every || part_matches(parts->middle, parts->front_bytes, parts->middle_bytes, at, bytes, length));
}

bool value_is_checked_whole(uint64_t number)
{
	return mix64(number ^ 0x63686563) % CHECK_WHOLE_ONE_IN == 0;
}
