/* SPDX-License-Identifier: BSD-3-Clause */
#include "flashindex/units.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "flashindex/filter_internal.h"
#include "flashindex/index_internal.h"

#define SUM_AT 0 /* in the unit's trailer */
#define MARK_AT 8

/* What a unit's trailer says. */
struct shape {
	uint8_t probes, unit, stored;
};

static unsigned bits_of(const struct fidx *index)
{
	return atomic_load_explicit(&index->filter_bits, memory_order_relaxed);
}

unsigned fidx_unit_bits(const struct fidx *index)
{
	return filter_unit_bits(bits_of(index));
}

static uint64_t salt_of(unsigned unit)
{
	return mix64(unit + 1);
}

static uint64_t sum_of(const struct fidx *index, uint64_t sequence, const uint8_t *bytes, size_t length)
{
	uint64_t mark;

	memcpy(&mark, bytes + length - UNIT_TRAILER_BYTES + MARK_AT, sizeof(mark));
	return hash64(bytes, length - UNIT_TRAILER_BYTES, mix64(index->filter_seed ^ mix64(sequence ^ mix64(mark))));
}

void fidx_unit_build(const struct fidx *index, uint64_t sequence, unsigned unit, const uint64_t *hashes, uint64_t n,
		     void *filter, size_t length)
{
	size_t each = length / index->filter_units;
	uint8_t *bytes = (uint8_t *)filter + unit * each, *trailer = bytes + each - UNIT_TRAILER_BYTES;
	unsigned probes = filter_probes(fidx_unit_bits(index));
	uint64_t sum;

	must(unit < index->filter_units && each == unit_length(fidx_unit_bits(index), n));
	bloom_set(index->filter_seed ^ salt_of(unit), hashes, n, bytes, each / BLOCK_BYTES, probes);
	memcpy(trailer + MARK_AT,
	       (uint8_t[TRAILER_BYTES]){ 'F', 'U', TRAILER_VERSION, (uint8_t)probes, (uint8_t)unit,
					 (uint8_t)index->filter_units },
	       TRAILER_BYTES);
	sum = sum_of(index, sequence, bytes, each);
	memcpy(trailer + SUM_AT, &sum, sizeof(sum));
}

/* ---- units from flash ------------------------------------------------------------------------ */

/* Do these bytes end as a unit does? */
static bool read_shape(const uint8_t *bytes, size_t length, struct shape *out)
{
	const uint8_t *mark;

	if (!bytes || length < BLOCK_BYTES + UNIT_TRAILER_BYTES)
		return false;
	mark = bytes + length - TRAILER_BYTES;
	if (mark[0] != 'F' || mark[1] != 'U')
		return false;
	*out = (struct shape){ .probes = mark[3], .unit = mark[4], .stored = mark[5] };
	return mark[2] == TRAILER_VERSION && out->probes >= 1 && out->probes <= PROBES_MAX &&
	       out->stored <= FIDX_UNITS_MOST && out->unit < out->stored;
}

/* Makes a list element of the bytes of this unit, and owns them. FS_OK; FS_ECORRUPT, FS_ENOMEM: they are freed. */
static int unit_wrap(const struct fidx *index, uint64_t sequence, unsigned unit, uint8_t *bytes, size_t length,
		     struct filter **out)
{
	struct shape shape;
	uint64_t sum;

	*out = NULL;
	if (length % BLOCK_BYTES == UNIT_TRAILER_BYTES && read_shape(bytes, length, &shape) && shape.unit == unit) {
		memcpy(&sum, bytes + length - UNIT_TRAILER_BYTES + SUM_AT, sizeof(sum));
		if (sum == sum_of(index, sequence, bytes, length)) {
			*out = mem_alloc(sizeof(**out));
			if (*out)
				**out = (struct filter){ .bytes = bytes,
							 .blocks = length / BLOCK_BYTES,
							 .salt = salt_of(unit),
							 .probes = shape.probes,
							 .unit = shape.unit,
							 .stored = shape.stored };
			else
				mem_free(bytes);
			return *out ? FS_OK : FS_ENOMEM;
		}
	}
	mem_free(bytes);
	return FS_ECORRUPT;
}

/* Returns the units that a segment begins with. */
static unsigned units_first(const struct fidx *index)
{
	unsigned bits = bits_of(index), first = bits ? bits / filter_unit_bits(bits) : 1;

	return first;
}

/* bytes has the units 0 .. last, in this order. The list ends where one is damaged. */
static struct filter *units_take(const struct fidx *index, uint64_t sequence, const uint8_t *bytes, size_t length,
				 const struct shape *last)
{
	unsigned units = last->unit + 1u, take = units < last->stored ? units : units_first(index);
	struct filter *list = NULL, *unit;
	size_t each = length / units;

	if (length % units)
		return NULL;
	for (unsigned u = 0; u < units && u < take; u++) {
		uint8_t *copy = mem_alloc(each);

		if (!copy)
			break;
		memcpy(copy, bytes + u * each, each);
		if (unit_wrap(index, sequence, u, copy, each, &unit) != FS_OK)
			break;
		unit->next = list;
		list = unit;
	}
	return list;
}

struct filter *filter_take(const struct fidx *index, uint64_t sequence, void *bytes, size_t length)
{
	struct filter *filter;
	struct shape last;

	if (!bytes || length < TRAILER_BYTES || !read_shape(bytes, length, &last))
		return filter_wrap(bytes, length);
	filter = units_take(index, sequence, bytes, length, &last);
	mem_free(bytes);
	return filter;
}

size_t filter_pack_length(const struct filter *filter)
{
	size_t length = 0;

	for (; filter; filter = filter->next)
		length += filter_unit_length(filter);
	return length;
}

void *filter_pack(const struct filter *filter, size_t *length)
{
	uint8_t *bytes = mem_must_zalloc(filter_pack_length(filter));

	*length = filter_pack_length(filter);
	for (; filter; filter = filter->next)
		memcpy(bytes + filter->unit * filter_unit_length(filter), filter->bytes, filter_unit_length(filter));
	return bytes;
}

/* ---- units in memory ------------------------------------------------------------------------- */

static struct filter *filter_of(const struct fidx *index, uint32_t segment)
{
	return atomic_load(&segment_at(index, segment)->filter);
}

bool fidx_units_of(const struct fidx *index, uint32_t segment, struct fidx_units *out)
{
	const struct filter *filter = filter_of(index, segment);
	double pass;

	if (!fidx_segment_is_open(index, segment) || !filter || !filter->stored)
		return false;
	pass = (double)atomic_load(&segment_at(index, segment)->filter_pass) / FILTER_PASS_ALL;
	*out = (struct fidx_units){ .stored = filter->stored,
				    .resident = filter->unit + 1u,
				    .length = filter_unit_length(filter),
				    .pass = pow(pass, 1.0 / (filter->unit + 1)) };
	return true;
}

/* The rest of the list stays as it is: a lookup that has the old head asks fewer units. */
int fidx_unit_add(struct fidx *index, uint32_t segment, void *bytes, size_t length)
{
	struct filter *rest = filter_of(index, segment), *unit;
	int result;

	must(fidx_segment_is_open(index, segment));
	must(!rest || (rest->stored && rest->unit + 1 < rest->stored));
	result = unit_wrap(index, segment_sequence(index, segment), rest ? rest->unit + 1u : 0, bytes, length, &unit);
	if (result != FS_OK)
		return result;
	atomic_fetch_add_explicit(&index->filter_bytes, sizeof(*unit) + length, memory_order_relaxed);
	unit->next = rest;
	segment_note_filter(index, segment, unit);
	atomic_store(&segment_at(index, segment)->filter, unit);
	atomic_store(&index->filters, true);
	return FS_OK;
}

void fidx_unit_drop(struct fidx *index, uint32_t segment)
{
	struct filter *unit = filter_of(index, segment), *rest;

	must(unit && unit->stored);
	rest = unit->next;
	atomic_store(&segment_at(index, segment)->filter, rest);
	segment_note_filter(index, segment, rest);
	segment_wait_for_readers(index); /* one that has the unit may be on its way to the rest */
	unit->next = NULL;
	segment_free_filter(index, unit);
}

uint32_t fidx_units_asked(struct fidx *index, uint32_t segment)
{
	_Atomic uint32_t *asked = &segment_at(index, segment)->asked;

	return atomic_load_explicit(asked, memory_order_relaxed)
		       ? atomic_exchange_explicit(asked, 0, memory_order_relaxed)
		       : 0;
}

bool fidx_filter_passes(struct fidx *index, uint32_t segment, uint64_t hash)
{
	struct shard *shard = shard_self(index);
	const struct filter *filter;
	bool passes;

	readers_enter(shard);
	filter = filter_of(index, segment);
	passes = !filter || filter_passes(index, filter, hash);
	readers_leave(shard);
	if (!passes && index->filter_units)
		atomic_fetch_add_explicit(&segment_at(index, segment)->asked, 1, memory_order_relaxed);
	return passes;
}
