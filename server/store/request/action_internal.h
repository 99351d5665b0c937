/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command under way in one critical section of its key's stripe. The files that carry commands out share it: apply.c
 * (the table of commands), apply_read.c, apply_write.c, apply_number.c, options.c.
 *
 * All functions here run in the worker's thread, and with the stripe held unless they say otherwise. None does I/O.
 */
#ifndef FS_STORE_ACTION_H
#define FS_STORE_ACTION_H

#include "base/error.h"
#include "server/store/request/request_internal.h"

/* The key's present object: an item in DRAM, a record read from flash, or none. */
struct current {
	struct item *item;
	const struct seg_record *record;
	uint64_t packed_ms; /* when the record was written */
	bool read_on_flash; /* a request read the record before */
};

struct action {
	struct store_context *context;
	struct store *store;
	struct stripe *stripe; /* held */
	struct store_request *request;
	const struct fidx_key *key; /* NULL without flash */
	/* The slot or the extent that leads to the record which was read; at most one of them is set. */
	const struct fidx_match *own_slot;
	const struct fidx_extent *own_extent;
	uint64_t now_ms;
	uint32_t now_seconds;
	uint64_t cas; /* the new object's id, if the command writes; action_begin takes it */
	struct item *garbage[2]; /* references to drop once the stripe is released */
	unsigned garbage_count;
};

/* Is the key there? */
static inline bool current_present(const struct current *current)
{
	return current->item || current->record;
}

/* The following functions are for a key that is present. */
static inline uint32_t current_expiry(const struct current *current)
{
	return current->item ? current->item->expiry : current->record->expiry;
}

static inline const char *current_value(const struct current *current)
{
	return current->item ? item_value(current->item) : current->record->value;
}

static inline uint32_t current_length(const struct current *current)
{
	return current->item ? current->item->value_length : current->record->value_length;
}

static inline uint32_t current_flags(const struct current *current)
{
	return current->item ? item_client_flags(current->item) : current->record->client_flags;
}

static inline uint64_t current_shown_cas(const struct current *current)
{
	return current->item ? item_shown_cas(current->item) : current->record->cas;
}

static inline bool current_fetched(const struct current *current)
{
	return current->item ? current->item->state & ITEM_FETCHED
			     : current->record->item_flags & 1 || current->read_on_flash;
}

/* Fills out with the features of the key's object in DRAM, and returns it; NULL: there is none, or nobody asks for
   them. */
static inline const struct clf_features *current_features(const struct action *action, const struct current *current,
							  struct clf_features *out)
{
	if (!current->item || !action->store->classifier)
		return NULL;
	*out = item_features(current->item);
	return out;
}

/* ---- apply.c: the table of commands, and steps that all of them need ------------------------- */

/* Is the first step of the critical section: gives a writing command its id. Waits for a flush_all in progress. */
void action_begin(struct action *action);
/* Returns the key's item in DRAM, or NULL. Unlinks a dead item, and clears the slots of a clean copy. */
struct item *action_find(struct action *action);
/* Executes the request against current, and fills its result, value, number, cas and found. */
void action_apply(struct action *action, const struct current *current);
/* Executes the request when flash may hold an object of the key that can't be read in time; current has DRAM's object.
   A change clears the key's slots first, because its answer about an absent key must be true from then on. Under -M a
   change is refused. */
void action_unread(struct action *action, const struct current *current);
/* Drops garbage, and an object that the request could not store. The stripe is not held any more. */
void action_finish(struct action *action);

/* Links new as the key's object with this id; an older object is gone from both tiers. Takes over new's
   reference. The request's cas becomes the id that clients see. False: the key had no object in DRAM, and there is no
   memory for a larger table; the key is absent then, or under -M as it was. */
FS_MUST_CHECK bool action_put(struct action *action, const struct current *current, struct item *new, uint64_t cas);
/* The key's object, which is present, goes from both tiers; the classifier is told. Its bytes are valid until
   action_finish. */
void action_remove(struct action *action, const struct current *current);
/* Clears the key's slots and its extent. Returns how many; under -M at most one, the one that was read. */
unsigned action_clear_slots(struct action *action);
/* The key's item in DRAM is about to change, or to go: clears the slots of a clean copy, and sees to it that no record in a
   segment of bins counts as the key's. */
static inline void action_disown(struct action *action, struct item *item)
{
	if (item->state & ITEM_CLEAN)
		action_clear_slots(action);
	else
		bins_disown(action->store, item, action->request->hash);
}
/* Leaves a reference for action_finish to drop; two at most. */
void action_garbage(struct action *action, struct item *item);
/* May a command bring so many bytes into DRAM by itself? Under -M only while there is room, because nothing would ever
   evict them. Otherwise the cleaner or the next set makes room. */
FS_MUST_CHECK bool action_room_for(const struct action *action, size_t bytes);
/* Fills in what the classifier knows of the key of an item that begins empty, which is no write. old: as below. */
void action_note_made(struct action *action, const struct clf_features *old, struct item *item);
/* Tells the classifier of a write, and scores the item. old: of the object in DRAM that it replaces, or NULL. */
void action_note_written(struct action *action, const struct clf_features *old, struct item *item);

/* ---- apply_read.c ---------------------------------------------------------------------------- */

/* A hit with the value of a record, in the bytes as they were read: who has the read passes it on to the value. */
void answer_with_record(struct store_request *request, const struct seg_record *record);
/* Executes GET, with current->item or nothing. */
void apply_get(struct action *action, const struct current *current);
/* Executes TOUCH and GAT. */
void apply_touch(struct action *action, const struct current *current);
/* Executes GET, GAT and TOUCH with options. */
void apply_read_with_options(struct action *action, const struct current *current);

/* ---- apply_write.c --------------------------------------------------------------------------- */

/* Each of these takes over the request's object if it stores the object. apply_store executes SET, and is the last step
   of the others. */
void apply_store(struct action *action, const struct current *current);
void apply_add(struct action *action, const struct current *current);
void apply_replace(struct action *action, const struct current *current);
/* Executes CAS, and SET and REPLACE that compare. */
void apply_compared(struct action *action, const struct current *current);
/* Executes APPEND and PREPEND. */
void apply_join(struct action *action, const struct current *current);
/* Executes DELETE. */
void apply_delete(struct action *action, const struct current *current);

/* ---- apply_number.c -------------------------------------------------------------------------- */

/* Executes INCR and DECR. */
void apply_number(struct action *action, const struct current *current);

/* ---- options.c: options of meta and binary commands ------------------------------------------ */

/* Gives the request's object room for marks where it may need them, before the stripe is taken. False: memory is out,
   and the object is dropped. */
FS_MUST_CHECK bool options_prepare(struct store_context *context, struct store_request *request);
/* Fills found with the object as it was before the request. Needs no stripe for a record that answers a GET. */
void options_found(struct store_request *request, const struct current *current, uint32_t now_seconds, uint64_t now_ms);
/* Returns the expiry of an object that is vivified; fills found's. touch: the request has an expiry of its own too. */
uint32_t options_made(struct action *action, bool touch);
/* Notes in found that the object has this expiry now. */
void options_expires(struct action *action, uint32_t expiry);
/* Does the request ask for a comparison, and is the object's id a different one? (CAS, SET and REPLACE compare
   themselves.) */
bool options_differs(const struct action *action, const struct current *current);
/* Returns the id that clients see on the object that the request stores; 0: ours. */
static inline uint64_t options_own_cas(const struct store_request *request)
{
	return __builtin_expect(request->has_options, 0) && request->options.own_cas ? request->options.new_cas : 0;
}
/* Returns a new item of the request's key, with room for marks where the request needs it. NULL without memory. */
struct item *options_item(struct action *action, uint32_t client_flags, uint32_t expiry, uint64_t length);
/* Returns the key's object in DRAM with room for marks, its id unchanged; it has no slot and is in no plan. NULL
   without memory. */
struct item *options_markable(struct action *action, const struct current *current);
/* Does an object with this expiry end so soon that the request wants it made anew? No lock. */
bool options_recaches(const struct store_request *request, uint32_t expiry, uint32_t now_seconds);
/* Is the request a GET that changes nothing of a record with this expiry, so that it is answered from the bytes read?
   No lock. */
bool options_unchanged(const struct store_request *request, uint32_t expiry, uint32_t now_seconds);

#endif
