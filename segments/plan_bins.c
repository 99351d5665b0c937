/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of segments of bins, and of a chain. Each bin is filled from its own candidates: the best ranked ones up to about three
 * quarters of it, and for the rest those of the next ones whose lengths add up to the most that fits (a subset sum; among equal
 * sums the better ranked candidates are taken). Records begin at multiples of a granule, which is as large as keeps most steps
 * of the footer's list within a byte: more would lose bytes behind each record, and less a byte in the list.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "segments/plan_internal.h"
#include "segments/segments_internal.h"

#define GRANULE_MOST 8u
#define STEP_MOST 127u /* granules that a byte of the footer's list can have */
#define GAP_CANDIDATES 24u /* looked at for the rest of a bin */
#define GAP_PART 4u /* of a bin: the rest */
#define UNITS_MOST 4096u /* granules of a bin */
#define SUM_WORDS (UNITS_MOST / 64 + 1)
#define TRIAL_BINS 128u
#define WORTH_A_PAGE 0.05 /* more fill, for which each get reads a page more */
#define STEP_BINS 64u
#define TWIN (1u << 31) /* of a candidate's number, which is below PLAN_CANDIDATES_MAX: another one has its x */
#define SEEN_WORDS 64u

/* Sums of lengths in granules, a bit each: bit s says that s can be reached. */
struct sums {
	uint64_t word[SUM_WORDS];
};

/* The candidates by bin: those of bin b are order[first[b]] .. order[first[b + 1] - 1], in order of rank. */
struct binned {
	const struct seg_candidate *candidates;
	uint32_t *first, *order;
	uint32_t bins, bin_bytes, granule;
};

static uint32_t units_of(const struct binned *binned, uint32_t candidate)
{
	return (binned->candidates[candidate].length + binned->granule - 1) / binned->granule;
}

static bool is_for_bins(const struct seg_candidate *candidate)
{
	return !candidate->extent && candidate->length <= SEG_PAGE;
}

/* Adds the sums with one more length, up to most. */
static void sums_add(const struct sums *from, uint32_t units, uint32_t most, struct sums *to)
{
	unsigned words = most / 64 + 1, by = units / 64, bits = units % 64;

	*to = *from;
	for (unsigned w = words; w-- > by;) {
		uint64_t moved = from->word[w - by] << bits;

		if (bits && w > by)
			moved |= from->word[w - by - 1] >> (64 - bits);
		to->word[w] |= moved;
	}
}

static bool sums_has(const struct sums *sums, uint32_t units)
{
	return sums->word[units / 64] >> units % 64 & 1;
}

/*
 * Chooses of count candidates (at most GAP_CANDIDATES) those that fill so many units best: chosen[i] is 1. Returns the units
 * that they take.
 */
static uint32_t choose_for_gap(const struct binned *binned, const uint32_t *order, unsigned count, uint32_t units,
			       bool chosen[GAP_CANDIDATES])
{
	struct sums sums[GAP_CANDIDATES + 1];
	uint32_t best = units, left;

	memset(&sums[0], 0, sizeof(sums[0]));
	sums[0].word[0] = 1;
	for (unsigned i = 0; i < count; i++)
		sums_add(&sums[i], units_of(binned, order[i]), units, &sums[i + 1]);
	while (!sums_has(&sums[count], best))
		best--;
	left = best;
	for (unsigned i = count; i-- > 0;) {
		chosen[i] = !sums_has(&sums[i], left);
		if (chosen[i])
			left -= units_of(binned, order[i]);
	}
	must(left == 0);
	return best;
}

/* Fills a bin: calls take for each candidate that belongs in it, with its offset in the bin. Returns the bytes of records. */
static uint64_t fill_bin(const struct binned *binned, uint32_t bin,
			 void (*take)(void *context, uint32_t candidate, uint32_t offset), void *context)
{
	const uint32_t *order = binned->order + binned->first[bin];
	uint32_t count = binned->first[bin + 1] - binned->first[bin], units = binned->bin_bytes / binned->granule,
		 at = 0, n = 0;
	bool chosen[GAP_CANDIDATES] = { false };
	uint64_t bytes = 0;

	for (; n < count && at + units_of(binned, order[n]) <= units - units / GAP_PART; n++) {
		take(context, order[n], at * binned->granule);
		bytes += binned->candidates[order[n]].length;
		at += units_of(binned, order[n]);
	}
	order += n;
	count = count - n < GAP_CANDIDATES ? count - n : GAP_CANDIDATES;
	(void)choose_for_gap(binned, order, count, units - at, chosen);
	for (n = 0; n < count; n++) {
		if (!chosen[n])
			continue;
		take(context, order[n], at * binned->granule);
		bytes += binned->candidates[order[n]].length;
		at += units_of(binned, order[n]);
	}
	must(at <= units);
	return bytes;
}

/* ---- candidates by bin ------------------------------------------------------------------------- */

static void binned_free(struct binned *binned)
{
	mem_free(binned->first);
	mem_free(binned->order);
}

/* Sorts the candidates into so many bins; only those of the first `wanted` are kept. */
static int binned_make(struct binned *binned, const struct seg_candidate *candidates, uint32_t count, uint32_t bins,
		       uint32_t wanted, uint32_t bin_bytes, uint32_t granule, const struct seg_step *step)
{
	uint32_t sum = 0;

	*binned =
		(struct binned){ .candidates = candidates, .bins = wanted, .bin_bytes = bin_bytes, .granule = granule };
	binned->first = mem_zalloc((wanted + 2ull) * sizeof(*binned->first));
	if (!binned->first)
		return FS_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bin = reduce64(candidates[i].place, bins);

		if (is_for_bins(&candidates[i]) && bin < wanted)
			binned->first[bin + 2]++;
		if (i % 4096 == 0 && step->call)
			step->call(step->context);
	}
	for (uint32_t b = 0; b <= wanted; b++) {
		sum += binned->first[b + 1];
		binned->first[b + 1] = sum;
	}
	binned->order = mem_alloc((sum + 1ull) * sizeof(*binned->order));
	if (!binned->order) {
		binned_free(binned);
		return FS_ENOMEM;
	}
	/* first[b + 1] is where the next candidate of bin b goes; in the end it is where those of bin b + 1 begin. */
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bin = reduce64(candidates[i].place, bins);

		if (is_for_bins(&candidates[i]) && bin < wanted)
			binned->order[binned->first[bin + 1]++] = i;
		if (i % 4096 == 0 && step->call)
			step->call(step->context);
	}
	return FS_OK;
}

/* Marks candidates of a bin that have the same x. */
static void mark_twins(struct binned *binned, uint32_t begin, uint32_t end)
{
	uint64_t seen[SEEN_WORDS] = { 0 }; /* a bit for some bits of x: most candidates need no search */

	for (uint32_t i = begin; i < end; i++) {
		uint64_t x = binned->candidates[binned->order[i]].place, bit = 1ull << x % 64;
		uint64_t *word = &seen[x / 64 % SEEN_WORDS];

		for (uint32_t j = begin; *word & bit && j < i; j++)
			if (binned->candidates[binned->order[j] & ~TWIN].place == x) {
				binned->order[i] |= TWIN;
				binned->order[j] |= TWIN;
				break;
			}
		*word |= bit;
	}
}

/* Takes candidates with the same x out of the bins. An object that was changed while candidates were gathered may be among them
   twice, and a search could not tell which record is the newer one. */
static void drop_twins(struct binned *binned)
{
	uint32_t begin = 0, end, to = 0;

	for (uint32_t b = 0; b < binned->bins; b++, begin = end) {
		end = binned->first[b + 1];
		mark_twins(binned, begin, end);
		binned->first[b] = to;
		for (uint32_t i = begin; i < end; i++)
			if (!(binned->order[i] & TWIN))
				binned->order[to++] = binned->order[i];
	}
	binned->first[binned->bins] = to;
}

/* ---- granule and size of bins ----------------------------------------------------------------- */

static uint32_t choose_granule(uint64_t records, uint64_t bytes)
{
	uint32_t granule = 1;

	while (granule < GRANULE_MOST && records > 0 && bytes / records > (uint64_t)STEP_MOST * granule * 3 / 4)
		granule *= 2;
	return granule;
}

static void take_nothing(void *context, uint32_t candidate, uint32_t offset)
{
	(void)context;
	(void)candidate;
	(void)offset;
}

/* Fills some bins of that size, as a trial. Returns how full they get; below 0: memory is out. */
static double try_size(const struct seg_candidate *candidates, uint32_t count, uint64_t room, uint32_t bin_bytes,
		       uint32_t granule, const struct seg_step *step)
{
	uint32_t bins = (uint32_t)(room / bin_bytes), wanted = bins < TRIAL_BINS ? bins : TRIAL_BINS;
	struct binned binned;
	uint64_t bytes = 0;

	if (binned_make(&binned, candidates, count, bins, wanted, bin_bytes, granule, step) != FS_OK)
		return -1;
	for (uint32_t b = 0; b < wanted; b++)
		bytes += fill_bin(&binned, b, take_nothing, NULL);
	binned_free(&binned);
	return (double)bytes / ((double)wanted * bin_bytes);
}

/* Returns the size of bins, in bytes; 0: memory is out. */
static uint32_t choose_size(const struct seg_candidate *candidates, uint32_t count, uint64_t room, uint32_t granule,
			    const struct seg_step *step)
{
	uint32_t best = SEG_PAGE;
	double fill = try_size(candidates, count, room, best, granule, step);

	for (uint32_t size = 2 * SEG_PAGE;
	     fill >= 0 && size <= SEG_BIN_MOST && size / granule <= UNITS_MOST && 8ull * size <= room; size *= 2) {
		double larger = try_size(candidates, count, room, size, granule, step);

		if (larger < 0)
			return 0;
		if (larger < fill + WORTH_A_PAGE * ((size - best) / SEG_PAGE))
			continue;
		best = size;
		fill = larger;
	}
	return fill >= 0 ? best : 0;
}

/* ---- the plan --------------------------------------------------------------------------------- */

struct taking {
	struct seg_plan *plan;
	const struct seg_candidate *candidates;
	uint64_t bin_offset;
	uint32_t most;
	uint32_t longest;
};

static void take_into_plan(void *context, uint32_t candidate, uint32_t offset)
{
	struct taking *taking = context;
	struct seg_plan *plan = taking->plan;
	uint32_t length = taking->candidates[candidate].length;

	if (plan->count == taking->most)
		return; /* it waits: the footer has no room for more */
	plan->placed[plan->count++] =
		(struct seg_placed){ .candidate = candidate, .offset = (uint32_t)(taking->bin_offset + offset) };
	plan->stats.placed_bytes += length;
	if (length > taking->longest)
		taking->longest = length;
}

/* Divides the room behind the header into bins and footer. Returns the most records that the footer has room for. */
static uint32_t divide(uint64_t segment_bytes, uint64_t records, uint64_t record_bytes, struct seg_plan *out)
{
	uint64_t room = segment_bytes - SEG_PAGE, objects, footer;

	objects = records ? (uint64_t)((double)room / ((double)record_bytes / (double)records)) : 0;
	objects += objects / 8 + 16;
	if (objects > records)
		objects = records;
	footer = plan_footer_bytes(objects, 0, room / out->granule, 0);
	out->data_offset = SEG_PAGE;
	out->data_bytes = room > footer ? (room - footer) / out->bin_bytes * out->bin_bytes : 0;
	out->footer_bytes = room - out->data_bytes;
	return (uint32_t)objects;
}

/* The records that may be placed, and their bytes. */
static uint64_t sum_up(const struct seg_candidate *candidates, uint32_t count, uint64_t *bytes)
{
	uint64_t records = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		if (is_for_bins(&candidates[i])) {
			records++;
			*bytes += candidates[i].length;
		}
	return records;
}

static int fill_plan(struct seg_plan *out, const struct seg_candidate *candidates, uint32_t count, uint32_t most,
		     const struct seg_step *step)
{
	struct taking taking = { .plan = out, .candidates = candidates, .most = most };
	uint32_t bins = (uint32_t)(out->data_bytes / out->bin_bytes);
	struct binned binned;

	if (binned_make(&binned, candidates, count, bins, bins, out->bin_bytes, out->granule, step) != FS_OK)
		return FS_ENOMEM;
	drop_twins(&binned);
	for (uint32_t b = 0; b < bins; b++) {
		taking.bin_offset = out->data_offset + (uint64_t)b * out->bin_bytes;
		(void)fill_bin(&binned, b, take_into_plan, &taking);
		if (b % STEP_BINS == 0 && step->call)
			step->call(step->context);
	}
	binned_free(&binned);
	out->longest_999 = taking.longest;
	return FS_OK;
}

static int plan_bins(uint64_t segment_bytes, uint64_t sequence, const struct seg_candidate *candidates, uint32_t count,
		     const struct seg_step *step, struct seg_plan *out)
{
	uint64_t bytes, records;
	uint32_t most;
	int rc;

	*out = (struct seg_plan){ .sequence = sequence, .kind = SEG_BINS };
	if (count > PLAN_CANDIDATES_MAX || segment_bytes < SEG_MIN_BYTES || segment_bytes > SEG_MAX_BYTES ||
	    segment_bytes % SEG_PAGE)
		return FS_EINVAL;
	records = sum_up(candidates, count, &bytes);
	out->granule = choose_granule(records, bytes);
	out->bin_bytes = choose_size(candidates, count, segment_bytes - 2ull * SEG_PAGE, out->granule, step);
	if (out->bin_bytes == 0)
		return FS_ENOMEM;
	most = divide(segment_bytes, records, bytes, out);
	out->placed = mem_alloc((most + 1ull) * sizeof(*out->placed));
	rc = out->placed ? fill_plan(out, candidates, count, most, step) : FS_ENOMEM;
	if (rc != FS_OK) {
		seg_plan_fini(out);
		return rc;
	}
	out->stats.candidates = count;
	out->stats.candidate_bytes = bytes;
	out->stats.placed = out->stats.hashes = out->count;
	out->stats.granule = out->granule;
	out->stats.longest_999 = out->longest_999;
	out->stats.fill = out->data_bytes ? (double)out->stats.placed_bytes / (double)out->data_bytes : 0;
	return FS_OK;
}

int seg_plan_bins_simulate(uint64_t segment_bytes, uint64_t sequence, const struct seg_candidate *candidates,
			   uint32_t count, struct seg_plan *out)
{
	const struct seg_step none = { 0 };

	return plan_bins(segment_bytes, sequence, candidates, count, &none, out);
}

int seg_plan_bins(const struct segments *seg, const struct seg_candidate *candidates, uint32_t count,
		  struct seg_plan *out)
{
	return plan_bins(seg->segment_bytes, seg->next_sequence, candidates, count, &seg->step, out);
}

/* ---- a chain --------------------------------------------------------------------------------- */

static uint64_t chain_align(uint64_t bytes)
{
	return (bytes + SEG_CHAIN_ALIGN - 1) / SEG_CHAIN_ALIGN * SEG_CHAIN_ALIGN;
}

/* Returns the footer's bytes for that many records of a chain, whose steps are longer than those of objects. */
static uint64_t chain_footer(const struct segments *seg, uint32_t records)
{
	return plan_footer_bytes(records, 0, seg->segment_bytes / GRANULE_MOST, 0);
}

uint64_t seg_chain_room(const struct segments *seg, uint32_t records)
{
	uint64_t footer = chain_footer(seg, records), room = seg->segment_bytes - SEG_PAGE;

	return room > footer ? room - footer : 0;
}

int seg_plan_chain(const struct segments *seg, const uint32_t *lengths, uint32_t count, struct seg_plan *out)
{
	uint64_t at = 0;

	*out = (struct seg_plan){
		.sequence = seg->next_sequence, .granule = GRANULE_MOST, .kind = SEG_CHAIN, .data_offset = SEG_PAGE
	};
	if (count > PLAN_CANDIDATES_MAX)
		return FS_EINVAL;
	out->placed = mem_alloc((count + 1ull) * sizeof(*out->placed));
	if (!out->placed)
		return FS_ENOMEM;
	for (uint32_t i = 0; i < count && lengths[i] > SEG_RECORD_HEADER; i++) {
		if (at + lengths[i] > seg_chain_room(seg, i + 1))
			break;
		out->placed[out->count++] = (struct seg_placed){ .candidate = i, .offset = (uint32_t)(SEG_PAGE + at) };
		out->stats.placed_bytes += lengths[i];
		if (lengths[i] > out->longest_999)
			out->longest_999 = lengths[i];
		at += chain_align(lengths[i]);
	}
	out->footer_bytes = chain_footer(seg, out->count);
	out->data_bytes = seg->segment_bytes - SEG_PAGE - out->footer_bytes;
	out->stats.placed = out->count;
	out->stats.granule = out->granule;
	out->stats.longest_999 = out->longest_999;
	out->stats.fill = (double)out->stats.placed_bytes / (double)out->data_bytes;
	return FS_OK;
}
