/* SPDX-License-Identifier: BSD-3-Clause */
#include "flashindex/frugal/lists.h"

#include "base/assert.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SKIPPED 32u /* lists, that a search goes over from a sample on */

uint32_t lists_group(uint32_t columns)
{
	return columns == 0 || columns >= SKIPPED ? 1 : SKIPPED / columns;
}

static uint64_t lists_bits(const struct lists *lists)
{
	return lists->values + (uint64_t)lists->partitions * lists->columns;
}

/* Returns the place of the nth one (n >= 1) of a word that has as many. */
static unsigned word_select(uint64_t word, uint64_t n)
{
	unsigned at = 0;

	for (unsigned half = 32; half >= 8; half /= 2) {
		unsigned ones = (unsigned)__builtin_popcountll(word & ((1ull << half) - 1));

		if (n > ones) {
			n -= ones;
			word >>= half;
			at += half;
		}
	}
	while (--n > 0)
		word &= word - 1;
	return at + (unsigned)__builtin_ctzll(word);
}

/* Returns the place behind the nth bit, from `at` on, that is not equal to those of flip; at for n 0. flip is 0 to look for
   ones, and all ones to look for zeros. Returns the end of the bits where there are fewer. */
static uint64_t bits_skip(const struct lists *lists, uint64_t at, uint64_t n, uint64_t flip)
{
	uint64_t end = lists_bits(lists);

	while (n > 0 && at < end) {
		uint64_t word = (lists->bits[at / 64] ^ flip) >> at % 64;
		uint64_t found = (uint64_t)__builtin_popcountll(word);

		if (found >= n) {
			at += word_select(word, n) + 1;
			return at < end ? at : end;
		}
		n -= found;
		at = (at / 64 + 1) * 64;
	}
	return at < end ? at : end;
}

struct lists_range lists_range(const struct lists *lists, uint32_t partition)
{
	uint32_t number = partition / lists->group, from = number * lists->group;
	uint64_t before = lists->samples ? lists->samples[number] : 0, ones = (uint64_t)from * lists->columns;
	struct lists_range range;
	uint64_t behind;

	must(partition < lists->partitions);
	range.bit = bits_skip(lists, before + ones, (uint64_t)(partition - from) * lists->columns, 0);
	if ((partition + 1) % lists->group == 0 && lists->samples)
		behind = lists->samples[number + 1] + (uint64_t)(partition + 1) * lists->columns;
	else
		behind = bits_skip(lists, range.bit, lists->columns, 0);
	ones = (uint64_t)partition * lists->columns;
	range.first = range.bit > ones ? range.bit - ones : 0;
	ones += lists->columns;
	range.end = behind > ones ? behind - ones : 0;
	if (range.end > lists->values)
		range.end = lists->values;
	if (range.first > range.end)
		range.first = range.end;
	return range;
}

uint32_t lists_column(const struct lists *lists, const struct lists_range *range, uint64_t value)
{
	uint64_t behind = bits_skip(lists, range->bit, value - range->first + 1, ~0ull);
	uint64_t column = behind - range->bit - (value - range->first + 1);

	return behind < range->bit + (value - range->first + 1) || column > lists->columns ? lists->columns
											   : (uint32_t)column;
}

/* ---- writing and reading in order ------------------------------------------------------------ */

void lists_write_begin(struct lists_writer *writer, uint32_t columns, uint64_t *bits, uint64_t words, uint32_t *samples)
{
	*writer = (struct lists_writer){
		.bits = bits, .words = words, .samples = samples, .columns = columns, .group = lists_group(columns)
	};
}

static void write_sample(const struct lists_writer *writer)
{
	if (writer->samples && writer->column == 0 && writer->partition % writer->group == 0)
		writer->samples[writer->partition / writer->group] = (uint32_t)writer->values;
}

void lists_write(struct lists_writer *writer, uint32_t count)
{
	uint64_t one = writer->at + count;

	must(writer->columns > 0 && one / 64 < writer->words && writer->values + count <= UINT32_MAX);
	write_sample(writer);
	writer->bits[one / 64] |= 1ull << one % 64;
	writer->at = one + 1;
	writer->values += count;
	if (++writer->column == writer->columns) {
		writer->column = 0;
		writer->partition++;
	}
}

void lists_write_end(const struct lists_writer *writer)
{
	must(writer->column == 0);
	if (writer->samples)
		writer->samples[(writer->partition + writer->group - 1) / writer->group] = (uint32_t)writer->values;
}

uint32_t lists_read(struct lists_reader *reader)
{
	const struct lists *lists = reader->lists;
	uint64_t from = reader->at, behind = bits_skip(lists, from, 1, 0);
	uint64_t count = behind > from ? behind - from - 1 : 0, left = lists->values - reader->values;

	reader->at = behind;
	if (count > left)
		count = left;
	reader->values += count;
	return (uint32_t)count;
}

/* ---- values ---------------------------------------------------------------------------------- */

uint64_t values16_find(const uint16_t *values, uint64_t from, uint64_t end, uint16_t value)
{
#if defined(__SSE2__)
	const __m128i wanted = _mm_set1_epi16((short)value);

	for (; from + 16 <= end; from += 16) {
		__m128i low = _mm_loadu_si128((const __m128i *)(const void *)(values + from));
		__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(values + from + 8));
		int found =
			_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(low, wanted), _mm_cmpeq_epi16(high, wanted)));

		if (found)
			return from + (unsigned)__builtin_ctz((unsigned)found);
	}
#endif
	while (from < end && values[from] != value)
		from++;
	return from;
}

uint64_t values32_find(const uint32_t *values, uint64_t from, uint64_t end, uint32_t value)
{
#if defined(__SSE2__)
	const __m128i wanted = _mm_set1_epi32((int)value);

	for (; from + 4 <= end; from += 4) {
		__m128i four = _mm_loadu_si128((const __m128i *)(const void *)(values + from));
		int found = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted)));

		if (found)
			return from + (unsigned)__builtin_ctz((unsigned)found);
	}
#endif
	while (from < end && values[from] != value)
		from++;
	return from;
}
