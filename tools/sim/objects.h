/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of a policy, by number, in lists that run through them: 24 bytes an object, in one list at a time.
 *
 *   head (the newest) -> next -> ... -> tail (the oldest)
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_SIM_OBJECTS_H
#define FS_TOOLS_SIM_OBJECTS_H

#include <stdint.h>

#define OBJECT_NONE UINT32_MAX

/* In which kind of list an object is. A zeroed object is in none. */
enum object_state { OBJECT_OUT, OBJECT_IN_DRAM, OBJECT_ON_FLASH, OBJECT_REMEMBERED };

struct object {
	uint32_t previous, next; /* in its list; previous is the newer one */
	uint64_t bytes; /* with its charge where it is now */
	uint32_t segment; /* on flash: the number of the entry in the ring */
	uint8_t state; /* enum object_state */
	uint8_t reads; /* of this stay, saturated, or a CLOCK */
	uint8_t seen; /* the policy's own */
	uint8_t level; /* the policy's own */
};

_Static_assert(sizeof(struct object) == 24, "an object takes 24 bytes");

struct object_list {
	uint32_t head, tail;
	uint64_t bytes, count;
};

/* An empty list. */
static inline void list_init(struct object_list *list)
{
	*list = (struct object_list){ .head = OBJECT_NONE, .tail = OBJECT_NONE };
}

/* Puts an object, which is in no list, to the head. */
static inline void list_push(struct object_list *list, struct object *objects, uint32_t number)
{
	struct object *object = &objects[number];

	object->previous = OBJECT_NONE;
	object->next = list->head;
	if (list->head == OBJECT_NONE)
		list->tail = number;
	else
		objects[list->head].previous = number;
	list->head = number;
	list->bytes += object->bytes;
	list->count++;
}

/* Takes an object out of its list, which is this one. */
static inline void list_take(struct object_list *list, struct object *objects, uint32_t number)
{
	struct object *object = &objects[number];

	if (object->previous == OBJECT_NONE)
		list->head = object->next;
	else
		objects[object->previous].next = object->next;
	if (object->next == OBJECT_NONE)
		list->tail = object->previous;
	else
		objects[object->next].previous = object->previous;
	list->bytes -= object->bytes;
	list->count--;
}

/* Makes an object of the list the newest one. */
static inline void list_renew(struct object_list *list, struct object *objects, uint32_t number)
{
	if (list->head == number)
		return;
	list_take(list, objects, number);
	list_push(list, objects, number);
}

/* Counts a read, up to `most`. */
static inline void object_read(struct object *object, uint8_t most)
{
	if (object->reads < most)
		object->reads++;
}

#endif
