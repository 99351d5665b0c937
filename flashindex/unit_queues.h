/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which segments have how many filter units in memory (ElasticBF, 3.2 and 3.3).
 *
 *   Q0   segments without a unit in memory          each queue: the least recently asked first
 *   Q1   segments with one
 *   ...
 *   Qm
 *
 * A segment that is asked goes to the end of its queue, and its expired time becomes the gets so far + life. If one more
 * unit of it would lower the expected reads in vain, the sum of f * fp over all segments, room is made: from Qm to Q1, from
 * the beginning of each queue, expired segments give up a unit each, until the unit fits. Where too little is found, or
 * these would raise the sum by more, nothing changes. fp is pass to the power of its units. f is how often a segment was
 * asked, halved every HALF_LIFE lives, and UNIT_ASKED_LEAST beside: that many say nothing yet, and without them chance alone
 * would move units among segments that are asked alike.
 *
 * The bytes of all units in memory stay within a budget, the sum of the segments' shares; unit_queues_shed keeps it when a
 * segment comes or goes.
 *
 * Nothing here reads flash or knows a filter: the caller drops and loads what it is told to. Calls belong to one thread at
 * a time. Times are counts of gets and don't go back.
 */
#ifndef FS_FLASHINDEX_UNIT_QUEUES_H
#define FS_FLASHINDEX_UNIT_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define UNIT_ASKED_LEAST 8
#define UNIT_VICTIMS_MOST 64u /* segments that give up a unit for one of another */

struct unit_queues;

/* Makes queues for segments 0 .. segments - 1, which are in none. life: in gets, of the order of segments. FS_OK, FS_ENOMEM.
   The caller calls unit_queues_destroy, for which NULL is nothing. */
FS_MUST_CHECK int unit_queues_create(struct unit_queues **out, uint32_t segments, uint64_t life);
void unit_queues_destroy(struct unit_queues *queues);

struct unit_entry {
	unsigned stored; /* units on flash: 1 .. FIDX_UNITS_MOST */
	unsigned resident; /* of these in memory */
	uint64_t bytes; /* of each, > 0 */
	uint64_t share; /* bytes that the segment adds to the budget */
	double pass; /* the share of other keys that a unit passes: 0 .. 1 */
};
/* The segment comes, which is in no queue; or goes, with its units. Afterwards unit_queues_shed is called until it is
   false. gets: so far. */
void unit_queues_add(struct unit_queues *queues, uint32_t segment, const struct unit_entry *entry, uint64_t gets);
void unit_queues_remove(struct unit_queues *queues, uint32_t segment);
/* Is the segment in a queue? Then unit_queues_unit_bytes returns the bytes of each of its units. */
FS_MUST_CHECK bool unit_queues_has(const struct unit_queues *queues, uint32_t segment);
uint64_t unit_queues_unit_bytes(const struct unit_queues *queues, uint32_t segment);
/* True: there are more bytes than the budget, and this segment gives up a unit. */
FS_MUST_CHECK bool unit_queues_shed(struct unit_queues *queues, uint32_t *segment, uint64_t gets);

struct unit_victims {
	uint32_t segment[UNIT_VICTIMS_MOST]; /* each gives up a unit */
	unsigned count;
};
/* The segment, which is in a queue, was asked so many times, once or more, the last time about `ago` gets before now. Where
   many segments were asked since the last look, all are noted before any asks for a unit. */
void unit_queues_note(struct unit_queues *queues, uint32_t segment, uint32_t times, uint64_t ago, uint64_t gets);
/* Is the segment, which was asked, to have one more unit? True: the victims give up a unit each, and the caller loads one
   for the segment and calls unit_queues_loaded; its bytes count from here on. */
FS_MUST_CHECK bool unit_queues_want(struct unit_queues *queues, uint32_t segment, uint64_t gets,
				    struct unit_victims *victims);
enum unit_load {
	UNIT_LOADED, /* it is in memory */
	UNIT_LATER, /* it could not be read this time: the segment may want it again */
	UNIT_DAMAGED /* it can't be had, so that the segment gets no further ones */
};
/* Tells what became of the unit. */
void unit_queues_loaded(struct unit_queues *queues, uint32_t segment, enum unit_load load);

struct unit_queues_figures {
	uint64_t bytes, budget;
	uint64_t units; /* in memory */
	double reads_in_vain; /* the sum of f * fp */
};
/* Fills out; reads_in_vain goes through all segments. */
void unit_queues_get_figures(const struct unit_queues *queues, struct unit_queues_figures *out);
/* Returns the bytes of memory that the queues themselves take. */
uint64_t unit_queues_own_bytes(const struct unit_queues *queues);

#endif
