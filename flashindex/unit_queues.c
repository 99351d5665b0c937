/* SPDX-License-Identifier: BSD-3-Clause */
#include "flashindex/unit_queues.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "flashindex/units.h"

#define NOBODY UINT32_MAX
#define QUEUES (FIDX_UNITS_MOST + 1)
#define HALF_LIFE 256u /* lives after which f has half its weight */

struct entry {
	struct unit_entry unit;
	uint64_t expired, period; /* a time; half lives since the beginning up to which f is halved */
	double f; /* without UNIT_ASKED_LEAST */
	uint32_t before, after; /* in its queue; NOBODY */
	bool queued;
};

/* The least recently asked segment of a queue is first. */
struct queue {
	uint32_t first, last;
};

struct unit_queues {
	struct entry *entry;
	struct queue queue[QUEUES];
	uint32_t segments;
	uint64_t life, bytes, budget, units;
};

int unit_queues_create(struct unit_queues **out, uint32_t segments, uint64_t life)
{
	struct unit_queues *queues = mem_zalloc(sizeof(*queues));

	*out = NULL;
	if (!queues)
		return FS_ENOMEM;
	queues->entry = mem_zalloc(segments * sizeof(*queues->entry));
	if (!queues->entry) {
		mem_free(queues);
		return FS_ENOMEM;
	}
	queues->segments = segments;
	queues->life = life ? life : 1;
	for (unsigned q = 0; q < QUEUES; q++)
		queues->queue[q] = (struct queue){ NOBODY, NOBODY };
	*out = queues;
	return FS_OK;
}

void unit_queues_destroy(struct unit_queues *queues)
{
	if (queues)
		mem_free(queues->entry);
	mem_free(queues);
}

uint64_t unit_queues_own_bytes(const struct unit_queues *queues)
{
	return sizeof(*queues) + queues->segments * sizeof(*queues->entry);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static struct entry *entry_of(const struct unit_queues *queues, uint32_t segment)
{
	must(segment < queues->segments && queues->entry[segment].queued);
	return &queues->entry[segment];
}

static struct queue *queue_of(struct unit_queues *queues, const struct entry *entry)
{
	must(entry->unit.resident < QUEUES);
	return &queues->queue[entry->unit.resident];
}

static void take_out(struct unit_queues *queues, uint32_t segment)
{
	struct entry *entry = &queues->entry[segment];
	struct queue *queue = queue_of(queues, entry);

	if (entry->before == NOBODY)
		queue->first = entry->after;
	else
		queues->entry[entry->before].after = entry->after;
	if (entry->after == NOBODY)
		queue->last = entry->before;
	else
		queues->entry[entry->after].before = entry->before;
}

static void put_last(struct unit_queues *queues, uint32_t segment)
{
	struct entry *entry = &queues->entry[segment];
	struct queue *queue = queue_of(queues, entry);

	entry->before = queue->last;
	entry->after = NOBODY;
	if (queue->last == NOBODY)
		queue->first = segment;
	else
		queues->entry[queue->last].after = segment;
	queue->last = segment;
}

/* Sets the units in memory; the segment goes to the end of its new queue. */
static void set_resident(struct unit_queues *queues, uint32_t segment, unsigned resident)
{
	struct entry *entry = entry_of(queues, segment);

	take_out(queues, segment);
	queues->units += resident;
	queues->units -= entry->unit.resident;
	entry->unit.resident = resident;
	put_last(queues, segment);
}

/* All segments' f is halved at the same times, so that they compare. */
static uint64_t period_of(const struct unit_queues *queues, uint64_t gets)
{
	return gets / (HALF_LIFE * queues->life);
}

/* ---- coming and going ------------------------------------------------------------------------ */

bool unit_queues_has(const struct unit_queues *queues, uint32_t segment)
{
	return segment < queues->segments && queues->entry[segment].queued;
}

uint64_t unit_queues_unit_bytes(const struct unit_queues *queues, uint32_t segment)
{
	return entry_of(queues, segment)->unit.bytes;
}

void unit_queues_add(struct unit_queues *queues, uint32_t segment, const struct unit_entry *unit, uint64_t gets)
{
	struct entry *entry = &queues->entry[segment];

	must(segment < queues->segments && !entry->queued);
	must(unit->resident <= unit->stored && unit->stored < QUEUES && unit->bytes > 0);
	*entry = (struct entry){
		.unit = *unit, .expired = gets + queues->life, .period = period_of(queues, gets), .queued = true
	};
	queues->bytes += unit->resident * unit->bytes;
	queues->units += unit->resident;
	queues->budget += unit->share;
	put_last(queues, segment);
}

void unit_queues_remove(struct unit_queues *queues, uint32_t segment)
{
	struct entry *entry = entry_of(queues, segment);

	take_out(queues, segment);
	must(queues->bytes >= entry->unit.resident * entry->unit.bytes && queues->budget >= entry->unit.share);
	queues->bytes -= entry->unit.resident * entry->unit.bytes;
	queues->units -= entry->unit.resident;
	queues->budget -= entry->unit.share;
	entry->queued = false;
}

static void give_up(struct unit_queues *queues, uint32_t segment)
{
	struct entry *entry = entry_of(queues, segment);

	must(entry->unit.resident > 0 && queues->bytes >= entry->unit.bytes);
	queues->bytes -= entry->unit.bytes;
	set_resident(queues, segment, entry->unit.resident - 1);
}

/* Expired segments first, then the ones that were asked least recently, from the longest filters on. */
bool unit_queues_shed(struct unit_queues *queues, uint32_t *segment, uint64_t gets)
{
	uint32_t chosen = NOBODY;

	if (queues->bytes <= queues->budget)
		return false;
	for (unsigned q = QUEUES - 1; q > 0; q--) {
		uint32_t first = queues->queue[q].first;

		if (first == NOBODY)
			continue;
		if (queues->entry[first].expired < gets) {
			chosen = first;
			break;
		}
		if (chosen == NOBODY)
			chosen = first;
	}
	must(chosen != NOBODY); /* there are bytes, so some segment has a unit */
	give_up(queues, chosen);
	*segment = chosen;
	return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static double frequency(const struct unit_queues *queues, const struct entry *entry, uint64_t gets)
{
	uint64_t halvings = period_of(queues, gets) - entry->period;

	return UNIT_ASKED_LEAST + (halvings < 64 ? ldexp(entry->f, -(int)halvings) : 0);
}

/* The reads in vain that one more unit spares, over those that the present ones leave. */
static double spared(const struct entry *entry, unsigned resident, double f)
{
	return f * pow(entry->unit.pass, resident) * (1 - entry->unit.pass);
}

/* Finds expired segments, but one, whose units make room for so many bytes. False: there are too few. loss: the reads in vain that
   come with their going. */
static bool find_victims(const struct unit_queues *queues, uint32_t but, uint64_t bytes, uint64_t gets,
			 struct unit_victims *victims, double *loss)
{
	for (unsigned q = QUEUES - 1; q > 0; q--)
		for (uint32_t s = queues->queue[q].first; s != NOBODY; s = queues->entry[s].after) {
			const struct entry *entry = &queues->entry[s];

			if (entry->expired >= gets)
				break;
			if (s == but)
				continue;
			if (victims->count == UNIT_VICTIMS_MOST)
				return false;
			victims->segment[victims->count++] = s;
			*loss += spared(entry, q - 1, frequency(queues, entry, gets));
			if (entry->unit.bytes >= bytes)
				return true;
			bytes -= entry->unit.bytes;
		}
	return false;
}

void unit_queues_note(struct unit_queues *queues, uint32_t segment, uint32_t times, uint64_t ago, uint64_t gets)
{
	struct entry *entry = entry_of(queues, segment);

	must(ago <= gets);
	entry->f = frequency(queues, entry, gets) - UNIT_ASKED_LEAST + times;
	entry->period = period_of(queues, gets);
	entry->expired = gets - ago + queues->life;
	take_out(queues, segment);
	put_last(queues, segment);
}

bool unit_queues_want(struct unit_queues *queues, uint32_t segment, uint64_t gets, struct unit_victims *victims)
{
	struct entry *entry = entry_of(queues, segment);
	uint64_t room = queues->budget > queues->bytes ? queues->budget - queues->bytes : 0;
	double loss = 0;

	victims->count = 0;
	if (entry->unit.resident >= entry->unit.stored)
		return false;
	if (entry->unit.bytes > room &&
	    (!find_victims(queues, segment, entry->unit.bytes - room, gets, victims, &loss) ||
	     spared(entry, entry->unit.resident, frequency(queues, entry, gets)) <= loss)) {
		victims->count = 0;
		return false;
	}
	for (unsigned i = 0; i < victims->count; i++)
		give_up(queues, victims->segment[i]);
	queues->bytes += entry->unit.bytes;
	return true;
}

void unit_queues_loaded(struct unit_queues *queues, uint32_t segment, enum unit_load load)
{
	struct entry *entry = entry_of(queues, segment);

	if (load == UNIT_LOADED) {
		set_resident(queues, segment, entry->unit.resident + 1);
		return;
	}
	must(queues->bytes >= entry->unit.bytes);
	queues->bytes -= entry->unit.bytes;
	if (load == UNIT_DAMAGED)
		entry->unit.stored = entry->unit.resident;
}

void unit_queues_get_figures(const struct unit_queues *queues, struct unit_queues_figures *out)
{
	*out = (struct unit_queues_figures){ .bytes = queues->bytes, .budget = queues->budget, .units = queues->units };
	for (uint32_t s = 0; s < queues->segments; s++) {
		const struct entry *entry = &queues->entry[s];

		if (entry->queued)
			out->reads_in_vain +=
				(UNIT_ASKED_LEAST + entry->f) * pow(entry->unit.pass, entry->unit.resident);
	}
}
