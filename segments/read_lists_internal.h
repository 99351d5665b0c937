/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of a reader, each in the order of submission. A read is in one of them, or in none. One thread. */
#ifndef FS_SEGMENTS_READ_LISTS_INTERNAL_H
#define FS_SEGMENTS_READ_LISTS_INTERNAL_H

#include "base/assert.h"
#include "segments/segments.h"

enum read_list {
	LIST_NONE, /* it stays empty */
	LIST_WAITING,
	LIST_FRESH, /* the drive has it */
	LIST_LATE, /* the drive has had it for longer than the patience */
	LIST_FINISHED,
	LISTS
};

struct list {
	struct seg_read *first, *last;
	unsigned count;
};

/* reads_append appends a read that is in no list, reads_remove takes one out of its list, and reads_move does both.
   lists: LISTS of them. */
static inline void reads_append(struct list *lists, enum read_list in, struct seg_read *read)
{
	struct list *list = &lists[in];

	must(read->list == LIST_NONE && in > LIST_NONE && in < LISTS);
	read->list = (uint8_t)in;
	read->next = NULL;
	read->prev = list->last;
	if (list->last)
		list->last->next = read;
	else
		list->first = read;
	list->last = read;
	list->count++;
}

static inline void reads_remove(struct list *lists, struct seg_read *read)
{
	struct list *list = &lists[read->list];

	must(read->list > LIST_NONE && read->list < LISTS && list->count > 0);
	if (read->prev)
		read->prev->next = read->next;
	else
		list->first = read->next;
	if (read->next)
		read->next->prev = read->prev;
	else
		list->last = read->prev;
	list->count--;
	read->list = LIST_NONE;
}

static inline void reads_move(struct list *lists, enum read_list in, struct seg_read *read)
{
	reads_remove(lists, read);
	reads_append(lists, in, read);
}

#endif
